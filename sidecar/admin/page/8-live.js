// Asks the replica again and again, and says how old the shown data is.

const pollEvery = 2000, pollHidden = 30000, patience = 6000;
let status = null; // the newest answer
let fresh = 0; // when it came, by performance.now()
let timer = 0, asking = false, again = false;

// ask returns the JSON of an answer. The error of a refusal is in the replica's words.
async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, cache: 'no-store', signal: AbortSignal.timeout(patience) });
  } catch (e) {
    throw new Error('the replica does not answer');
  }
  const name = answer.headers.get('Solotick-Replica');
  if (name) from = name;
  if (answer.headers.has('Solotick-Timers')) timers = { waiting: Number(answer.headers.get('Solotick-Timers')), lag: 1000 * answer.headers.get('Solotick-Timers-Lag') };
  let body;
  try {
    body = await answer.json();
  } catch (e) {
    throw new Error('the answer is not the replica\'s');
  }
  if (!answer.ok) throw new Error(clean(body.error) + (body.hint ? ` (${clean(body.hint)})` : ''));
  return body;
}
let from = '', timers = { waiting: 0, lag: 0 };

async function poll() {
  clearTimeout(timer);
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  let trouble = '';
  try {
    const sent = performance.now();
    const s = await ask('v1/status');
    const got = performance.now();
    clock.ahead = Date.parse(s.time) - (sent + got) / 2;
    await runs.load();
    status = s;
    fresh = got;
    show();
  } catch (e) {
    trouble = e.message;
  }
  const own = trouble && await ask('v1/replica').catch(() => null);
  asking = false;
  away = Boolean(own && !own.redis.ok);
  showLive(trouble);
  showOwn(own);
  timer = setTimeout(poll, again ? 0 : document.hidden ? pollHidden : pollEvery);
  again = false;
}

let lost = '', away = false; // away: the replica answers, and Redis does not
const age = make('strong', '');
age.setAttribute('aria-hidden', 'true'); // otherwise a screen reader would read it every second
function showLive(trouble) {
  if (trouble !== undefined) lost = trouble;
  document.body.classList.toggle('stale', Boolean(lost && status));
  dress($('live'), 'live ' + (lost ? 'bad' : 'good'));
  say($('live-text'), lost ? 'out of date' : 'live, seen from ' + from);
  banner('lost', lost && !away && 'bad', 'Out of date:', () => [lost + '. ', age]);
  say(age, status ? `What you see is ${formatDuration(performance.now() - fresh)} old.` : 'The jobs have not been read yet.');
}

function show() {
  const first = $('main').hidden;
  $('main').hidden = false;
  say($('service'), status.service);
  showHealth(status.summary);
  showReplicas(status);
  showJobs();
  if (first) document.querySelector('.job [aria-expanded=true]')?.scrollIntoView({ block: 'center' });
  const urgent = status.jobs.filter(needsAttention).length;
  document.title = (urgent ? `(${urgent}) ` : '') + clean(status.service) + ' · Solotick';
}

function showHealth(s) {
  const bad = s.failingJobs || s.overdueJobs || !s.readyReplicas, warn = s.missedToday || s.readyReplicas < status.replicas.length;
  dress($('health'), 'health ' + (bad ? 'bad' : warn ? 'warn' : 'good'));
  say($('health'), s.text);
}

// showOwn shows what the replica knows itself while Redis is away.
function showOwn(own) {
  const r = own?.redis;
  $('own').hidden = !away;
  if (away && !status) {
    clock.ahead = Date.parse(own.time) - performance.now();
    say($('service'), own.service);
  }
  banner('redis', away && 'bad', 'Nothing is fired while Redis is away.', () => [`Redis ${r.address ? 'at ' + r.address + ' ' : ''}${r.says}, since ${formatTime(when(r.since))} UTC.`,
    r.error ? ` ${r.error}` : '', r.hint ? ` (${r.hint})` : '', ' ', age]);
  if (!away) return;
  say($('own-title'), `Seen by replica ${own.replica} alone`);
  const known = j => j.running.length ? 0 : j.last ? 1 : 2; // first what it has to do with
  fill($('own-list'), JSON.stringify(own.jobs), () => own.jobs.toSorted((a, b) => known(a) - known(b)).map(j => make('li', '', make('span', 'name text', j.job), make('span', j.last && !j.running.length ? 'outcome ' + look(j.last) : '',
    j.running.length ? `running here since ${formatTime(when(j.running[0].since))}` : j.last ? `${outcome(j.last.outcome)} here, tick ${formatTime(when(j.last.tick))}` : 'not run here yet'),
    make('span', 'quiet', j.suspended ? 'suspended' : j.next ? `next tick ${formatTime(when(j.next))} UTC` : 'no next tick'))));
}

// The address holds which jobs are opened, the filter and the search, so that others can be sent what one sees.
function remember() {
  const p = new URLSearchParams();
  for (const name of opened) p.append('job', name);
  if (filter !== 'all') p.set('filter', filter);
  if ($('search').value) p.set('q', $('search').value);
  history.replaceState(null, '', p.size ? '#' + p : location.pathname + location.search);
}
function recall() {
  const p = new URLSearchParams(location.hash.slice(1)), wanted = new Set(p.getAll('job'));
  filter = p.get('filter') in filters ? p.get('filter') : 'all';
  $('search').value = p.get('q') ?? '';
  for (const name of opened) if (!wanted.has(name)) {
    opened.delete(name);
    if (rows.has(name)) close(rows.get(name));
  }
  wanted.forEach(name => opened.add(name));
  if (status) showJobs();
}

async function showEvents() {
  if (!$('events').open) return;
  const list = await ask('v1/events?limit=50').catch(() => []);
  fill($('event-list'), JSON.stringify(list) + Math.floor(clock.now() / 10000), () => list.length
    ? list.map(e => make('li', '', make('span', 'name text', e.job), make('span', 'text', eventWords(e)))) : [make('li', 'quiet', 'Nobody has asked for anything.')]);
}

// Updates everything that counts seconds.
setInterval(() => {
  if (document.hidden || !status) return;
  say($('clock'), new Date(clock.now()).toISOString().slice(0, 19).replace('T', ' ') + ' UTC, by Redis\' clock');
  showLive();
  if (!lost) for (const j of status.jobs) {
    const r = rows.get(j.job);
    if (r?.row.isConnected) {
      showNext(r, j);
      showNotes(r.notes, j);
    }
  }
}, 1000);

const lateBy = ms => 'late by ' + formatDuration(ms);
const waitedLong = 2000; // so much may pass before a replica has claimed what is due

// showTimers shows those that come due next, or those with the id or of the group that is searched for.
async function showTimers() {
  const wanted = $('timer-search').value.trim(), of = encodeURIComponent(wanted), or = other => () => other;
  let list, told = '';
  try {
    list = await ask('v1/timers?limit=10');
    if (wanted) {
      const [one, group, why] = await Promise.all([ask('v1/timers/' + of).catch(or(null)), ask('v1/timers?limit=100&group=' + of).catch(or([])),
        ask(`v1/jobs/timer:${of}/ticks/now`).catch(or({}))]);
      list = one ? [{ id: one.id, at: one.at, schedule: one.definition.schedule, timeZone: one.definition.timeZone }, ...group] : group;
      told = one || !group.length ? why.text ?? '' : '';
    }
  } catch (e) {
    $('timers').hidden = !wanted;
    return;
  }
  if (wanted !== $('timer-search').value.trim()) return; // another is searched for meanwhile
  $('timers').hidden = !timers.waiting && !list.length && !wanted;
  say($('timer-count'), `${timers.waiting} waiting` + (timers.lag > waitedLong ? ', the oldest is ' + lateBy(timers.lag) : ''));
  dress($('timer-count'), timers.lag > waitedLong ? 'outcome bad' : 'quiet');
  say($('timer-told'), told);
  $('timer-told').hidden = !told;
  $('timer-list').hidden = !list.length;
  fill($('timer-list'), JSON.stringify(list) + Math.floor(clock.now() / 10000), () => list.map(t => {
    const left = when(t.at) - clock.now(), late = left < -waitedLong;
    return make('li', '', make('span', 'text', t.id), t.schedule && make('span', 'quiet plan', [t.schedule].flat().join('; ') + (t.timeZone && t.timeZone !== 'UTC' ? ' · ' + t.timeZone : '')),
      make('span', late ? 'late' : 'quiet', late ? lateBy(-left) : 'in ' + formatDuration(left)), make('span', '', formatTime(when(t.at))));
  }));
}
async function showTimersAgain() {
  if (!document.hidden && !lost) await showTimers();
  showEvents();
  setTimeout(showTimersAgain, 10000);
}

document.addEventListener('visibilitychange', () => { if (!document.hidden) poll(); });
$('search').addEventListener('input', () => {
  if (status) showJobs();
  remember();
});
$('timer-search').addEventListener('change', showTimers);
$('events').addEventListener('toggle', showEvents);
addEventListener('hashchange', recall);
document.addEventListener('keydown', e => {
  if (e.key === '/' && !e.target.closest('input, select, dialog')) {
    e.preventDefault();
    $('search').focus();
  }
});
$('well').open = innerWidth > 600;
recall();
poll().then(showTimersAgain);
