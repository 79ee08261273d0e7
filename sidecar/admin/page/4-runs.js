// The newest runs of every job: first some of each job, and then only new ones.

const shownRuns = 20;
const keptRuns = 100; // with handovers, which are shown with the run that followed
const runs = { of: new Map(), known: new Set(), loaded: false };

// idOf tells entries of the history apart. Ticks that no replica fired have no run.
const idOf = e => e.run || e.job + e.tick;

// take adds runs, the newest first, and returns the new ones.
runs.take = list => {
  const fresh = list.filter(e => !runs.known.has(idOf(e)));
  for (const e of fresh.toReversed()) {
    runs.known.add(idOf(e));
    const of = runs.of.get(e.job) ?? [];
    of.unshift(e);
    for (const old of of.splice(keptRuns)) runs.known.delete(idOf(old));
    runs.of.set(e.job, of);
  }
  return fresh;
};

// load asks for new runs. If none of the answer is known there may be a gap, so it asks for all runs again.
runs.load = async () => {
  if (runs.loaded) {
    const list = await ask('v1/runs?limit=100');
    if (list.length < 100 || list.some(e => runs.known.has(idOf(e)))) {
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

// The last run of a job that runs seldom may have left the history; the job's state still has it.
runs.last = job => runs.of.get(job.job) ?? (job.last ? [job.last] : []);

// fold groups the handovers of a tick under its last entry. The newest comes first.
function fold(list, most = shownRuns) {
  const rows = [], of = new Map();
  for (const e of list) {
    const known = of.get(e.tick);
    if (known && e.outcome === 'handed_over') {
      known.handed.push(e);
      continue;
    }
    const row = { ...e, handed: [] };
    of.set(e.tick, row);
    rows.push(row);
  }
  return rows.slice(0, most);
}

// collapse puts runs that failed in the same way, one after the other, under the newest of them.
function collapse(rows) {
  const all = [];
  for (const e of rows) {
    const newer = all.at(-1);
    if (newer && e.failed && !e.handed.length && newer.outcome === e.outcome && newer.detail === e.detail) newer.same.push(e);
    else all.push({ ...e, same: [] });
  }
  return all.slice(0, shownRuns);
}
function handedWords(row) {
  if (row.handed.length === 0) return '';
  const by = [...new Set(row.handed.map(e => labels.short(e.replica)).reverse())], why = row.handed[0].detail;
  return `handed over ${row.handed.length === 1 ? 'once' : row.handed.length + ' times'} before, by ${by.join(', ')}` +
    (why && why !== row.detail ? ': ' + why : '');
}

function showStrip(strip, job) {
  const all = fold(runs.last(job)), past = all.filter(e => e.run), busy = job.running;
  const gone = holes(job, all);
  const key = past.map(e => e.run + e.handed.length).join() + '|' + gone.map(h => h.tick + h.mark + h.text).join() + '|' + busy.map(r => r.run + r.replica).join() + labels.key;
  fill(strip, key, () => [...busy.toReversed().map(r => {
    const c = make('i', 'cell busy', labels.get(r.replica));
    c.title = clean(`running on ${r.replica}, tick ${formatTime(when(r.tick))}, ${kind(r.kind, r.attempt)}`);
    return c;
  }), ...[...past, ...gone].sort((a, b) => when(b.tick) - when(a.tick)).slice(0, Math.max(0, shownRuns - busy.length)).map(e => {
    const c = make('i', 'cell ' + (e.mark ? 'hole' : e.failed && byHand(e) ? 'warn' : look(e)), e.mark ?? labels.get(e.replica));
    if (e.mark) {
      c.title = clean(e.text);
      return c;
    }
    c.title = clean([`${outcome(e.outcome)} on ${e.replica}`, `tick ${formatTime(when(e.tick))}`, took(e.durationMs), kind(e.kind, e.attempt), handedWords(e)]
      .filter(Boolean).join(', '));
    return c;
  })]);
  attr(strip, 'aria-label', past.length + busy.length === 0 ? 'no runs' : stripWords(past, busy));
}

const overlaps = new Map(); // by job, those that the page has seen: a replica tells only of its last

// holes returns the ticks of a job that no run took, back to its oldest entry. Missed ticks in a row share a hole with their number.
function holes(job, all) {
  const missed = all.filter(e => !e.run), seen = overlaps.get(job.job) ?? new Map();
  if (job.missed && !missed.some(e => e.tick === job.missed.tick)) missed.push(job.missed);
  for (const k of skips(job)) if (k.reason === 'overlap' && !(seen.get(k.tick)?.replicas.length > k.replicas.length)) seen.set(k.tick, k);
  for (const tick of [...seen.keys()].sort((a, b) => b - a).slice(shownRuns)) seen.delete(tick);
  overlaps.set(job.job, seen);
  const known = new Set([...all, ...job.running, ...job.waiting].map(e => when(e.tick))); // such a tick has run after all, or will
  return [...missed.map(m => ({ tick: m.tick, mark: String(Math.min(m.ticks, 99)), text: 'missed: ' + missedWords(m) })),
    ...[...seen.values()].filter(k => !known.has(k.tick)).map(k => ({ tick: new Date(k.tick).toISOString(), mark: '–', text: skipWords(k) }))]
    .filter(h => when(h.tick) >= when(all.at(-1)?.tick));
}

function stripWords(past, busy) {
  const failed = past.filter(e => e.failed).length;
  const newest = past[0] ? `; the newest ${outcome(past[0].outcome)} on ${past[0].replica}` : '';
  return `last ${plural(past.length, 'run')}, ${failed} failed${newest}` + (busy.length ? `; ${busy.length} running` : '');
}
