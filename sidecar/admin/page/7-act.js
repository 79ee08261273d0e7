// The actions on jobs, and their results.

// act sends an action and returns the answer, or throws an error with the words of the replica.
async function act(job, verb, body) {
  return ask(`v1/jobs/${encodeURIComponent(job)}/${verb}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
}

function toast(text, bad) {
  const t = make('p', bad ? 'toast bad' : 'toast', text);
  $('toasts').append(t);
  setTimeout(() => t.remove(), bad ? 12000 : 6000);
}

// dialog connects a form to an action. It stays open and shows the error if the action fails.
function dialog(name, send) {
  const d = $(name), form = $(name + '-form'), wrong = form.querySelector('.wrong'), main = form.querySelector('.main');
  form.querySelector('.close').addEventListener('click', () => d.close());
  form.addEventListener('submit', async e => {
    e.preventDefault();
    say(wrong, '');
    main.disabled = true;
    try {
      toast(await send(d.dataset.job));
      d.close();
      poll();
    } catch (err) {
      say(wrong, err.message);
    }
    main.disabled = false;
  });
  return (job, title) => {
    d.dataset.job = job;
    say($(name + '-title'), title);
    say(wrong, '');
    d.showModal();
  };
}

// triggered has the runs triggered here; announce says how they ended.
const triggered = new Map();
let request = '';

const askTrigger = dialog('trigger', async job => {
  const made = await act(job, 'trigger', { id: request });
  triggered.set(job + ' ' + made.tick, true);
  return `Triggered ${job}`;
});
function openTrigger(job) {
  request = crypto.randomUUID(); // one per dialog, so that a repetition after a lost answer is the same request
  askTrigger(job, `Trigger ${job}?`);
}

// about is the tick that the open dialog is about, or the run; '' = all runs of the job; waits = what waits by hand.
let about = '';
const waits = 'waiting';
const askRerun = dialog('rerun', async job => {
  const made = await act(job, 'rerun', { id: request, tick: about });
  triggered.set(job + ' ' + made.tick, true);
  return `Rerunning ${job}, tick ${formatTime(when(made.tick))}`;
});
function openRerun(job, tick) {
  if (!tick) return;
  request = crypto.randomUUID();
  about = tick;
  askRerun(job, `Rerun ${job}, tick ${formatTime(when(tick))}?`);
}

const askCancel = dialog('cancel', async job => {
  const body = { reason: $('cancel-reason').value };
  if (about === waits) body.waiting = true;
  else if (about) body.run = about;
  const made = await act(job, 'cancel', body);
  return made.waiting ? `Dropped ${plural(made.waiting.length, 'tick')} of ${job}` : `Cancelled ${plural(made.runs.length, 'run')} of ${job}`;
});
function openCancel(job, run = '') {
  $('cancel-reason').value = '';
  about = run;
  askCancel(job, run === waits ? `Drop what waits of ${job}?` : run ? `Cancel run ${run.slice(0, 8)} of ${job}?` : `Cancel the run of ${job}?`);
}

function announce(e) {
  if (e.outcome !== 'handed_over' && triggered.delete(e.job + ' ' + e.tick)) toast(`${e.job} ${outcome(e.outcome)} on ${e.replica}` + (e.durationMs ? ` after ${took(e.durationMs)}` : ''), e.failed);
}

const askPause = dialog('pause', async job => {
  const span = $('pause-for').value, body = { reason: $('pause-reason').value };
  if (span) body.for = span;
  const made = await act(job, 'pause', body);
  return `Paused ${job} ` + (made.until ? 'until ' + formatTime(when(made.until)) : 'until it is resumed');
});
function openPause(job) {
  $('pause-reason').value = '';
  askPause(job, `Pause ${job}`);
}

async function resume(job) {
  try {
    const made = await act(job, 'resume', {});
    toast(made.resumed ? `Resumed ${job}` : `${job} was not paused`);
  } catch (err) {
    toast(`${job} was not resumed: ${err.message}`, true);
  }
  poll();
}
