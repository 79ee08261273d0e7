// The details of a job that is opened.

const opened = new Set(); // names of jobs

function toggle(r, name) {
  if (opened.delete(name)) close(r);
  else {
    opened.add(name);
    expand(r, name);
  }
  remember();
}

function close(r) {
  r.more.hidden = true;
  r.toggle.setAttribute('aria-expanded', 'false');
}

async function expand(r, name) {
  r.more.hidden = false;
  r.toggle.setAttribute('aria-expanded', 'true');
  r.runs = [];
  r.whys = new Map(); // by tick, what became of it
  r.told = {};
  const showNow = () => {
    const j = status.jobs.find(x => x.job === name);
    if (j && !r.more.hidden) showMore(r, j);
  };
  showNow();
  const path = 'v1/jobs/' + encodeURIComponent(name), or = other => () => other;
  const [all, whole, now, events] = await Promise.all([
    ask(`v1/runs?limit=${keptRuns}&job=${encodeURIComponent(name)}`).catch(or(runs.last({ job: name }))),
    ask(path).catch(or({})), ask(path + '/ticks/now').catch(or({})), ask('v1/events?limit=5&job=' + encodeURIComponent(name)).catch(or([])),
  ]);
  r.runs = all;
  r.told = { target: whole.target, settings: whole.settings, now: now.text, events };
  showNow();
}

// why asks what became of a tick, and shows the answer below its run.
async function why(r, j, tick) {
  try {
    r.whys.set(tick, (await ask(`v1/jobs/${encodeURIComponent(j.job)}/ticks/${encodeURIComponent(tick)}`)).text);
  } catch (e) {
    r.whys.set(tick, e.message);
  }
  showMore(r, j);
}

const runWords = e => [e.detail, e.same.length && `${plural(e.same.length, 'tick')} before ended the same way, since ${formatTime(when(e.same.at(-1).tick))}`,
  handedWords(e)].filter(Boolean).join('; ');
const eventWords = e => [`${ago(when(e.at))}: ${e.what}${e.by ? ' by ' + e.by : ''}`, e.until && 'until ' + formatTime(when(e.until)), e.tick && 'tick ' + formatTime(when(e.tick)), e.reason].filter(Boolean).join(', ');

// link leads to another site, in a tab of its own. That site learns nothing of this page.
function link(url, text) {
  const a = make('a', '', text);
  a.href = url;
  a.target = '_blank';
  a.rel = 'noopener noreferrer';
  return a;
}

function button(cls, text, label, run) {
  const b = make('button', cls, text);
  b.type = 'button';
  b.setAttribute('aria-label', clean(label));
  b.addEventListener('click', run);
  return b;
}

// runId shows the beginning of a run's UUID, which the command line takes in its place.
function runId(run) {
  const e = make('code', '', run.slice(0, 8));
  e.title = clean(run);
  return e;
}

function showMore(r, j) {
  const newest = runs.last(j).filter(e => !r.runs.some(x => idOf(x) === idOf(e)) && when(e.ended) > when(r.runs[0]?.ended));
  const list = collapse(fold([...newest, ...r.runs], keptRuns));
  const known = skips(j);
  const key = [list.map(e => idOf(e) + e.handed.length + '.' + e.same.length), known, j.missed, j.waiting, j.running.map(e => e.run), [...r.whys], r.told, j.description, j.owner, j.runbook, j.labels];
  fill(r.more, JSON.stringify(key), () => {
    const dl = make('dl', '');
    const fact = (name, ...lines) => lines.filter(Boolean).forEach((line, i) => dl.append(make('dt', '', i ? '' : name), make('dd', '', line)));
    fact('Now', r.told.now);
    fact('Description', j.description);
    fact('Owner', j.owner);
    fact('Runbook', j.runbook && link(j.runbook, j.runbook));
    fact('Labels', ...Object.entries(j.labels ?? {}).map(([name, text]) => `${name}: ${text}`));
    fact('Job', r.told.target);
    fact('Settings', r.told.settings ?? 'guarantee ' + j.guarantee);
    fact('Running', ...j.running.map(e => make('span', '', `tick ${formatTime(when(e.tick))} on ${e.replica}, ${kind(e.kind, e.attempt)}, run `, runId(e.run),
      button('', 'Cancel this run', 'Cancel the run of ' + j.job + ' on ' + e.replica, () => openCancel(j.job, e.run)))));
    fact('Missed', j.missed && missedWords(j.missed));
    fact('Skipped', ...known.slice(0, 5).map(skipWords));
    fact('Waiting', ...j.waiting.slice(0, 5).map(w => `tick ${formatTime(when(w.tick))}, ${kind(w.kind, w.attempt)}`));
    fact('By hand', ...(r.told.events ?? []).map(eventWords));
    const item = e => {
      const t = when(e.tick), zone = local(t, j.timeZone), text = runWords(e), said = r.whys.get(e.tick);
      const tick = button('tick', formatTime(t), `Why? What became of tick ${formatTime(t)} of ${j.job}`, () => why(r, j, e.tick));
      return make('li', '', make('span', '', tick, zone && make('span', 'small', zone)), make('span', 'outcome ' + look(e), outcome(e.outcome)), make('span', '', took(e.durationMs)),
        make('span', '', kind(e.kind, e.attempt)), make('span', '', e.replica, ' ', e.run && runId(e.run)),
        make('span', 'again', e.failed && e.kind !== 'manual' && e.kind !== 'timer' && j.guarantee !== 'every-replica' &&
          button('', 'Rerun', `Rerun tick ${formatTime(t)} of ${j.job}`, () => openRerun(j.job, e.tick))),
        text ? make('span', 'text', text) : null, said ? make('span', 'told', said) : null);
    };
    return [dl, list.length ? make('p', 'quiet', 'Click on a tick to see what became of it. Times are UTC.') : '', make('ol', '', ...list.map(item))];
  });
}
