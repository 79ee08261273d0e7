// The details of a job that is opened.

async function expand(r, name) {
  r.more.hidden = !r.more.hidden;
  r.toggle.setAttribute('aria-expanded', String(!r.more.hidden));
  if (r.more.hidden) return;
  r.runs = [];
  const j = status.jobs.find(x => x.job === name);
  if (j) showMore(r, j);
  try {
    r.runs = await ask('v1/runs?limit=' + keptRuns + '&job=' + encodeURIComponent(name));
  } catch (e) {
    r.runs = runs.last({ job: name });
  }
  const now = status.jobs.find(x => x.job === name);
  if (now) showMore(r, now);
}

const runWords = e => [e.detail, handedWords(e)].filter(Boolean).join('; ');

// link leads to another site, in a tab of its own. That site learns nothing of this page.
function link(url, text) {
  const a = make('a', '', text);
  a.href = url;
  a.target = '_blank';
  a.rel = 'noopener noreferrer';
  return a;
}
const linksOf = run => Object.entries(run.links ?? {}).map(([name, url]) => link(url, name));

function showMore(r, j) {
  const newest = runs.last(j).filter(e => !r.runs.some(x => x.run === e.run) && when(e.ended) > when(r.runs[0]?.ended));
  const list = fold([...newest, ...r.runs]);
  const known = skips(j);
  fill(r.more, JSON.stringify([list.map(e => e.run + e.handed.length), known, j.waiting, j.guarantee, j.description, j.owner, j.runbook, j.labels, j.running.map(e => e.links)]), () => {
    const dl = make('dl', '');
    const fact = (name, ...lines) => lines.forEach((line, i) => dl.append(make('dt', '', i ? '' : name), make('dd', '', line)));
    if (j.description) fact('Description', j.description);
    if (j.owner) fact('Owner', j.owner);
    if (j.runbook) fact('Runbook', link(j.runbook, j.runbook));
    fact('Labels', ...Object.entries(j.labels ?? {}).map(([name, text]) => `${name}: ${text}`));
    fact('Guarantee', j.guarantee);
    fact('Running', ...j.running.filter(e => e.links).map(e => make('span', '', `tick ${formatTime(when(e.tick))} on ${e.replica}`, ...linksOf(e))));
    if (known.length) fact('Skipped', ...known.slice(0, 5).map(skipWords));
    if (j.waiting.length) fact('Waiting', ...j.waiting.slice(0, 5).map(w => `tick ${formatTime(when(w.tick))}, ${kind(w.kind, w.attempt)}`));
    return [dl, make('ol', '', ...list.map(e => make('li', '', make('span', '', formatTime(when(e.tick))), make('span', 'outcome ' + look(e), outcome(e.outcome)),
      make('span', '', took(e.durationMs)), make('span', '', kind(e.kind, e.attempt)), make('span', '', e.replica, ...linksOf(e)), runWords(e) ? make('span', 'text', runWords(e)) : null)))];
  });
}
