// The jobs: first those that need a person.

const rows = new Map();
let filter = 'all';

const filters = {
  all: ['All', () => true],
  attention: ['Attention', j => needsAttention(j)],
  running: ['Running', j => j.running.length > 0],
  missed: ['Missed', j => j.missed],
  waiting: ['Waiting', j => j.waiting.length > 0],
  paused: ['Paused', j => j.paused || j.suspended],
};

// urgency orders the jobs: those below 3 need a person.
const urgencies = { failing: 0, overdue: 1, missed: 2, never_ran: 3 };
const urgency = j => Math.min(urgencies[j.health] ?? 4, j.running.some(r => doubt(r)) ? 1 : 4);
const needsAttention = j => urgency(j) < 3;

// scheduled returns the last run of the schedule; of an every-replica job, of any replica.
const scheduled = j => j.lastScheduled ?? (j.results ? j.last : undefined);
const byHand = e => e?.kind === 'manual' || e?.kind === 'backfill';

// failing returns the last runs of a job that failed: at most one, or for an every-replica job one per replica.
const failing = j => (j.results ?? [scheduled(j)]).filter(e => e?.failed);

// doubt says why a run's replica may be gone.
function doubt(r) {
  if (status.replicas.some(x => x.replica === r.replica && x.silent)) return 'its replica is silent';
  return when(r.leaseEnd) < clock.now() - 2000 ? 'its lease is over' : '';
}

function newRow(name) {
  const toggleButton = make('button', '', name);
  toggleButton.type = 'button';
  toggleButton.setAttribute('aria-expanded', 'false');
  const act = (label, run) => {
    const b = make('button', '', label);
    b.type = 'button';
    b.setAttribute('aria-label', clean(label + ' ' + name));
    b.addEventListener('click', run);
    return b;
  };
  const r = {
    toggle: toggleButton, plan: make('span', 'small plan'),
    outcome: make('span', 'outcome'), lastly: make('span', 'small'),
    strip: make('div', 'strip'), next: make('span', 'next'), nextLocal: make('span', 'small'), nextAt: make('span', 'small'),
    run: act('Trigger', () => openTrigger(name)), rerun: act('Rerun', () => openRerun(name, scheduled(status.jobs.find(j => j.job === name))?.tick)), cancel: act('Cancel run', () => openCancel(name)), drop: act('Drop what waits', () => openCancel(name, waits)), pause: act('Pause', () => openPause(name)), resume: act('Resume', () => resume(name)),
    notes: make('div', 'notes'), more: make('div', 'more'),
  };
  r.strip.setAttribute('role', 'img');
  r.more.hidden = true;
  const cell = (role, cls, ...children) => {
    const c = make('div', cls, ...children);
    c.setAttribute('role', role);
    return c;
  };
  const recent = cell('cell', 'recent', r.strip);
  r.row = make('div', 'job', cell('rowheader', 'what', toggleButton, r.plan), cell('cell', 'last', r.outcome, r.lastly), recent,
    cell('cell', 'next', r.next, r.nextLocal, r.nextAt), cell('cell', 'acts', r.run, r.pause, r.resume, r.rerun, r.cancel, r.drop), r.notes, r.more);
  r.notes.setAttribute('role', 'cell');
  r.more.setAttribute('role', 'cell');
  r.row.setAttribute('role', 'row');
  r.row.dataset.job = name;
  toggleButton.addEventListener('click', () => toggle(r, name));
  return r;
}

function showJobs() {
  const here = new Set(status.jobs.map(j => j.job));
  for (const [name, r] of rows) if (!here.has(name)) { r.row.remove(); rows.delete(name); }
  const wanted = $('search').value.trim().toLowerCase();
  const first = [], others = [];
  for (const j of status.jobs.toSorted((a, b) => urgency(a) - urgency(b))) {
    let r = rows.get(j.job);
    if (!r) rows.set(j.job, r = newRow(j.job));
    if (!filters[filter][1](j) || !j.job.includes(wanted)) continue;
    showJob(r, j);
    (needsAttention(j) ? first : others).push(r.row);
    if (opened.has(j.job) && r.more.hidden) expand(r, j.job);
  }
  arrange($('attention'), first);
  arrange($('rest'), others);
  $('nothing').hidden = first.length + others.length > 0;
  showFilters();
}

function showJob(r, j) {
  const everywhere = j.guarantee === 'every-replica';
  say(r.plan, j.schedule + (j.timeZone === 'UTC' ? '' : ' · ' + j.timeZone));
  const results = j.results ?? [], bad = failing(j), last = scheduled(j);
  if (results.length > 1) {
    dress(r.outcome, 'outcome ' + look(bad[0] ?? last));
    say(r.outcome, bad.length && bad.length < results.length ? `failed on ${bad.length} of ${results.length}` : outcome((bad[0] ?? last).outcome));
    attr(r.lastly, 'title', results.map(e => outcome(e.outcome) + ' on ' + e.replica).join(', '));
    say(r.lastly, `${ago(when(last.tick))} · on ${plural(results.length, 'replica')}`);
  } else if (last) {
    dress(r.outcome, 'outcome ' + look(last));
    say(r.outcome, outcome(last.outcome));
    attr(r.lastly, 'title', 'on ' + last.replica);
    say(r.lastly, `${ago(when(last.tick))} · ${took(last.durationMs)} · ${labels.short(last.replica)}` + (last.attempt > 1 ? `, try ${last.attempt}` : ''));
  } else {
    dress(r.outcome, 'outcome none');
    say(r.outcome, everywhere ? 'on every replica' : 'never ran');
    say(r.lastly, '');
  }
  showStrip(r.strip, j);
  showNext(r, j);
  r.run.hidden = everywhere;
  r.rerun.hidden = everywhere || !last?.failed;
  r.cancel.hidden = everywhere || j.running.length === 0;
  r.drop.hidden = !j.waiting.some(w => w.kind === 'manual' || w.kind === 'backfill');
  r.pause.hidden = r.resume.hidden = false;
  const own = j.paused && !j.paused.all; // only "resume --all" ends a pause of "pause --all"
  r.pause.hidden ||= Boolean(own);
  r.resume.hidden ||= !own;
  showNotes(r.notes, j);
  if (!r.more.hidden) showMore(r, j);
}

// showNext also runs every second.
function showNext(r, j) {
  const t = when(j.next);
  say(r.next, t ? (t > clock.now() ? 'in ' + formatDuration(t - clock.now()) : 'now') : j.suspended ? 'suspended' : j.paused ? 'paused' : 'none');
  say(r.nextLocal, local(t, j.timeZone));
  say(r.nextAt, t ? formatTime(t) + ' UTC' : '');
}

// showNotes shows what does not fit into the columns. Each note begins with a word for its kind.
function showNotes(notes, j) {
  const list = [], last = scheduled(j), missed = j.missed;
  if (j.failures) list.push(['bad', 'failing', failingWords(j)]);
  for (const e of failing(j).slice(0, 3)) if (e.detail) list.push(['', 'error', (j.results?.length > 1 ? labels.short(e.replica) + ': ' : '') + e.detail, 'failed']);
  if (j.overdue) list.push(['bad', 'overdue', `tick ${formatTime(when(j.overdue))} came due ${ago(when(j.overdue))}, and no replica runs it`]);
  if (missed && !(when(last?.tick) > when(missed.tick))) list.push(['warn', 'missed', missedWords(missed)]);
  if (byHand(j.last)) list.push([j.last.failed ? 'warn' : '', 'by hand', `${outcome(j.last.outcome)} on ${labels.short(j.last.replica)}, ${ago(when(j.last.ended ?? j.last.tick))}` + (j.last.detail ? ': ' + j.last.detail : '')]);
  for (const r of j.running) {
    const why = doubt(r);
    list.push([why ? 'bad' : 'busy', 'running', `for ${formatDuration(clock.now() - when(r.since))} on ${labels.short(r.replica)}` +
      (r.kind === 'schedule' ? '' : ', ' + kind(r.kind, r.attempt)) + (why ? ': ' + why : '')]);
  }
  if (j.waiting.length) list.push(['busy', 'waiting', waitingWords(j.waiting)]);
  if (j.paused && !j.paused.all) list.push(['warn', 'paused', pauseWords(j.paused)]);
  if (j.pausedAll) list.push(['warn', 'paused', 'by pause --all, ' + pauseWords(j.pausedAll)]);
  if (j.suspended) list.push(['', 'suspended', 'in the table']);
  if (!j.registered && j.guarantee !== 'every-replica') list.push(['warn', 'unknown', 'no replica has registered it']);
  for (const k of skips(j).slice(0, 1)) if (k.at > when(j.last?.ended ?? j.last?.tick)) list.push(['', 'skipped', skipWords(k)]);
  while (notes.children.length > list.length) notes.lastElementChild.remove();
  list.forEach(([cls, word, text, extra], i) => {
    const n = notes.children[i] ?? notes.appendChild(make('p', '', make('span', ''), make('span', 'text')));
    dress(n, 'note ' + (extra ?? ''));
    dress(n.firstChild, 'tag ' + cls);
    say(n.firstChild, word);
    say(n.lastChild, text);
  });
}

const failingWords = j => `since ${formatTime(when(j.failingSince))}, ${j.failures} in a row, ` + (j.lastSuccess ? `last success ${ago(when(j.lastSuccess))}` : 'no success known');
const missedWords = m => (m.ticks > 1 ? `${m.ticks} ticks, ${formatTime(when(m.first))} to ${formatTime(when(m.tick))}` : `tick ${formatTime(when(m.tick))}`) + (m.detail ? ': ' + m.detail : '');
const pauseWords = p => (p.by ? `by ${p.by} ` : '') + (p.until ? 'until ' + formatTime(when(p.until)) : 'until it is resumed') + ': ' + p.reason;

function waitingWords(waiting) {
  const count = {};
  for (const w of waiting) count[w.kind] = (count[w.kind] ?? 0) + 1;
  return Object.entries(count).map(([k, n]) => `${n} ${k}`).join(', ');
}

// skips returns a job's last skips, the newest first. Skips of one tick for one reason share an entry.
function skips(j) {
  const by = new Map();
  for (const k of j.skips) {
    const key = k.tick + k.reason, same = by.get(key);
    if (same) same.replicas.push(k.replica);
    else by.set(key, { at: when(k.at), tick: when(k.tick), reason: k.reason, replicas: [k.replica] });
  }
  return [...by.values()];
}
const skipWords = k => `${ago(k.at)}: ${k.reason.replaceAll('_', ' ')}, tick ${formatTime(k.tick)}, by ${k.replicas.toSorted().map(labels.short).join(', ')}`;

function showFilters() {
  for (const [name, [word, test]] of Object.entries(filters)) {
    let b = $('filters').querySelector(`[data-filter=${name}]`);
    if (!b) {
      b = make('button', '');
      b.type = 'button';
      b.dataset.filter = name;
      b.addEventListener('click', () => { filter = name; showJobs(); remember(); });
      $('filters').append(b);
    }
    const n = status.jobs.filter(test).length;
    say(b, `${word} ${n}`);
    dress(b, name === 'attention' && n ? 'bad' : '');
    attr(b, 'aria-pressed', String(filter === name));
    b.hidden = n === 0 && filter !== name;
  }
}
