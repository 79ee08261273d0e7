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
  let body;
  try {
    body = await answer.json();
  } catch (e) {
    throw new Error('the answer is not the replica\'s');
  }
  if (!answer.ok) throw new Error(clean(body.error) + (body.hint ? ` (${clean(body.hint)})` : ''));
  return body;
}
let from = '';

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
  asking = false;
  showLive(trouble);
  timer = setTimeout(poll, again ? 0 : document.hidden ? pollHidden : pollEvery);
  again = false;
}

let lost = '';
const age = make('strong', '');
age.setAttribute('aria-hidden', 'true'); // otherwise a screen reader would read it every second
function showLive(trouble) {
  if (trouble !== undefined) lost = trouble;
  document.body.classList.toggle('stale', Boolean(lost && status));
  dress($('live'), 'live ' + (lost ? 'bad' : 'good'));
  say($('live-text'), lost ? 'out of date' : 'live, seen from ' + from);
  banner('lost', lost && 'bad', 'Out of date:', () => [lost + '. ', age]);
  say(age, status ? `What you see is ${formatDuration(performance.now() - fresh)} old.` : 'There is nothing to show yet.');
}

function show() {
  $('main').hidden = false;
  say($('service'), status.service);
  showReplicas(status);
  showJobs();
  const failing = status.jobs.filter(needsAttention).length;
  document.title = (failing ? `(${failing}) ` : '') + clean(status.service) + ' · Solotick';
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

async function showTimers() {
  if (!document.hidden && !lost) {
    try {
      const list = await ask('v1/timers?limit=10');
      $('timers').hidden = list.length === 0;
      fill($('timer-list'), JSON.stringify(list) + Math.floor(clock.now() / 10000), () => list.map(t => make('li', '', make('span', 'text', t.id), make('span', 'quiet', 'in ' + formatDuration(when(t.at) - clock.now())), make('span', '', formatTime(when(t.at))))));
    } catch (e) {
      $('timers').hidden = true;
    }
  }
  setTimeout(showTimers, 10000);
}

document.addEventListener('visibilitychange', () => { if (!document.hidden) poll(); });
$('search').addEventListener('input', () => { if (status) showJobs(); });
document.addEventListener('keydown', e => {
  if (e.key === '/' && !e.target.closest('input, select, dialog')) {
    e.preventDefault();
    $('search').focus();
  }
});
poll().then(showTimers);
