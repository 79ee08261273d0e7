// For node-cron 4.4 or later: each tick runs in one copy of the app alone. Copy this file into your app.
//
//   cron.schedule('*/5 * * * *', ...solotick('report', async ({ signal }) => { … }));
//
// node-cron asks before it runs a tick, and names the tick. This file passes the question on to the replica beside the app:
// it claims the tick. If the answer is not 200, the tick does not run here, and node-cron emits execution:skipped. After the
// claim come heartbeats. The work begins when the first one is answered with 200, so a claim whose answer was lost is never
// begun. Each 200 lets the work go on for the time of a heartbeat, counted from when it was sent. When that time is over, or
// a heartbeat is answered 404 or 410, `signal` aborts, and the work must stop at once.
//
// Work that keeps the event loop busy keeps heartbeats and signal from coming. Tasks in a file of their own, which node-cron
// runs in another process, are not supported. task.execute() runs the work without a claim.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const agent = new http.Agent({ keepAlive: true }); // an agent of its own uses no proxy
const unlimited = new AbortController().signal;

// post returns the status and text of an answer; the status is 0 if none came in time.
function post(url, { ms, token, body = {}, agent }) {
  const headers = { 'Content-Type': 'application/json' };
  if (token) headers.Authorization = `Bearer ${token}`;
  return new Promise(resolve => {
    const failed = err => resolve({ status: 0, text: err.message });
    const signal = AbortSignal.timeout(Math.max(1, Math.round(ms)));
    const request = http.request(url, { method: 'POST', agent, headers, signal });
    request.on('error', failed);
    request.on('response', async answer => {
      let text = '';
      try {
        for await (const part of answer.setEncoding('utf8')) text += part;
        resolve({ status: answer.statusCode, text });
      } catch (err) {
        failed(err);
      }
    });
    request.end(JSON.stringify(body));
  });
}

class Run {
  constructor(url, claim) {
    Object.assign(this, { url, claim, stop: new AbortController() });
    this.report = { outcome: 'interrupted', detail: 'node-cron has not begun the work' };
    this.until = performance.now() + claim.heartbeatMs;
    this.first = new Promise(resolve => { this.answered = resolve; }); // whether the work may begin
    this.beating = this.beat();
  }

  post(path, ms, body) {
    return post(`${this.url}/${path}`, { ms, body, token: this.claim.token, agent });
  }

  async beat() {
    const { signal } = this.stop;
    const third = this.claim.heartbeatMs / 3;
    while (!signal.aborted) {
      const sent = performance.now();
      const { status, text } = await this.post('heartbeat', Math.min(third, this.until - sent));
      let wait = Math.min(third, 1000); // no answer, or the replica is not sure of its lock: ask again, within the time
      if (status === 200) {
        this.until = sent + this.claim.heartbeatMs * 0.9; // a tenth of the time is for the work to stop
        this.answered(true);
        wait = sent + third - performance.now();
      } else if (status > 0 && status < 500) {
        this.stop.abort(new Error(`a heartbeat was answered ${status} ${text.trim()}`));
      }
      await sleep(Math.min(wait, this.until - performance.now()), null, { signal }).catch(() => {});
      if (performance.now() >= this.until) this.stop.abort(new Error('no heartbeat was answered in time'));
    }
    this.answered(false);
  }

  // finish reports the end of the work, again for a while if no answer comes.
  async finish() {
    this.stop.abort();
    await this.beating;
    for (const end = performance.now() + Math.max(this.claim.heartbeatMs, 5000); performance.now() < end; await sleep(500)) {
      const { status } = await this.post('finish', 2000, this.report);
      if (status > 0 && status < 500) return;
    }
  }
}

// solotick returns the second and third argument of cron.schedule: job is the job's name in the table. The work gets what
// node-cron gives it, with `signal` and with `claim`, the answer to the claim.
export function solotick(job, work, { api = 'http://127.0.0.1:9748', ...options } = {}) {
  const runs = new Map(); // by key, which is name:tick
  const runCoordinator = {
    async shouldRun(key) {
      const url = `${api}/v1/jobs/${encodeURIComponent(job)}/ticks/${key.slice(job.length + 1)}`;
      const { status, text } = await post(url, { ms: 70_000, agent: false }); // the answer may be held back for 60 s
      if (status === 409 && JSON.parse(text).reason) return false; // another copy runs it, or nobody may
      if (status !== 200) throw new Error(`the claim of ${key} was answered ${status} ${text.trim()}`); // node-cron logs it
      const claim = JSON.parse(text);
      const run = new Run(`${api}/v1/runs/${claim.run}`, claim);
      if (await run.first) return Boolean(runs.set(key, run));
      run.report.detail = run.stop.signal.reason.message;
      await run.finish();
      return false;
    },
    async onComplete(key) {
      const run = runs.get(key);
      runs.delete(key);
      await run.finish();
    },
  };
  const task = async context => {
    if (context.execution?.reason === 'invoked') return work({ ...context, signal: unlimited });
    const run = runs.get(`${job}:${context.date.toISOString()}`);
    if (!run) throw new Error('node-cron has not asked for the tick: it has to be 4.4 or later');
    try {
      const result = await work({ ...context, signal: run.stop.signal, claim: run.claim });
      run.report = { outcome: 'succeeded' };
      return result;
    } catch (err) {
      const { aborted, reason } = run.stop.signal;
      const why = aborted ? reason : err;
      run.report = { outcome: aborted ? 'interrupted' : 'failed', detail: String(why?.message ?? why).slice(0, 300) };
      throw err;
    }
  };
  return [task, { ...options, name: job, distributed: true, runCoordinator }];
}
