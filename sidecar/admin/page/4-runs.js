// The newest runs of every job: some of each at first, and from then on what is new.

const shownRuns = 20;
const runs = { of: new Map(), known: new Set(), loaded: false };

// take takes runs in, the newest first, and says which of them are new.
runs.take = list => {
  const fresh = list.filter(e => !runs.known.has(e.run));
  for (const e of fresh.toReversed()) {
    runs.known.add(e.run);
    const of = runs.of.get(e.job) ?? [];
    of.unshift(e);
    for (const old of of.splice(shownRuns)) runs.known.delete(old.run);
    runs.of.set(e.job, of);
  }
  return fresh;
};

// load asks for what is new. When nothing of it is known there may be a gap, and all is asked for anew.
runs.load = async () => {
  if (runs.loaded) {
    const list = await ask('v1/runs?limit=100');
    if (list.length < 100 || list.some(e => runs.known.has(e.run))) {
      runs.take(list).forEach(announce);
      return;
    }
  }
  const list = await ask('v1/runs?each=' + shownRuns);
  runs.of.clear();
  runs.known.clear();
  runs.take(list);
  runs.loaded = true;
};

// A run of a job that is asked for seldom may have left the history; the job itself still knows its last.
runs.last = job => runs.of.get(job.job) ?? (job.last ? [job.last] : []);

function showStrip(strip, job) {
  const past = runs.last(job), busy = job.running;
  const key = past.map(e => e.run).join() + '|' + busy.map(r => r.run + r.replica).join() + labels.key;
  fill(strip, key, () => [...busy.toReversed().map(r => {
    const c = make('i', 'cell busy', labels.get(r.replica));
    c.title = clean(`running on ${r.replica}, tick ${moment(when(r.tick))}, ${kind(r.kind, r.attempt)}`);
    return c;
  }), ...past.slice(0, Math.max(0, shownRuns - busy.length)).map(e => {
    const c = make('i', 'cell ' + look(e), labels.get(e.replica));
    c.title = clean(`${outcome(e.outcome)} on ${e.replica}, tick ${moment(when(e.tick))}, ${took(e.durationMs)}, ${kind(e.kind, e.attempt)}`);
    return c;
  })]);
  attr(strip, 'aria-label', past.length + busy.length === 0 ? 'no runs' : stripWords(past, busy));
}

function stripWords(past, busy) {
  const failed = past.filter(e => e.failed).length;
  const newest = past[0] ? `; the newest ${outcome(past[0].outcome)} on ${past[0].replica}` : '';
  return `last ${plural(past.length, 'run')}, ${failed} failed${newest}` + (busy.length ? `; ${busy.length} running` : '');
}
