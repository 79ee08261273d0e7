// Handlers for jobs with http.async, whose work lasts for longer than a request, for Express and Fastify. Copy this file into
// your app.
//
// Such a handler answers 202, tells the replica by heartbeats that the work goes on, and reports its end. Calls of jobs without
// http.async are answered when the work is done. Put the middleware of solotick.js before it: it sends requests to the address
// that a call names.
//
// work(request, signal) does the work. When the signal aborts, it must stop at once. An error says why the work failed. Work
// that keeps the event loop busy keeps heartbeats and signal from coming: put it into a worker thread.
// Node 18 or later.
'use strict';

const timers = require('node:timers/promises');

const underWay = new Set(); // promises
const silent = new Error('no heartbeat was answered in time');

// Stopped is the failure of work that had to end.
class Stopped extends Error {}

const pause = (ms, signal) => timers.setTimeout(ms, undefined, { signal }).catch(() => {});

// post returns the status and text of an answer; 0 if none came in a third of a heartbeat.
async function post({ url, token, heartbeat }, path, body) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const signal = AbortSignal.timeout(Math.round(heartbeat / 3)); // which takes whole numbers alone
  try {
    const answer = await fetch(url + path, { method: 'POST', headers, body, signal, redirect: 'manual' });
    return { status: answer.status, text: (await answer.text()).trim() };
  } catch {
    return { status: 0, text: '' };
  }
}

// run does the work once the first heartbeat is answered. A heartbeat that is answered with 200 lets it go on for the length of
// a heartbeat, counted from its sending.
async function run(call, work) {
  const { heartbeat } = call; // in milliseconds
  const stop = new AbortController();
  let leave; // a timer of its own: a heartbeat may hang
  const mayWork = (from = performance.now()) => {
    clearTimeout(leave);
    const left = from + heartbeat * 0.9 - performance.now(); // a tenth of the time is for the work to stop
    leave = setTimeout(() => stop.abort(silent), left);
  };
  mayWork();
  let allowed; // or stopped
  const first = new Promise(done => { allowed = done; });
  stop.signal.addEventListener('abort', allowed);
  const beating = (async () => {
    while (!stop.signal.aborted) {
      const sent = performance.now();
      const answer = await post(call, '/heartbeat');
      let wait = Math.min(heartbeat / 3, 1000); // no answer, or the replica is not sure of its lock: ask again, within the time
      if (stop.signal.aborted) break;
      if (answer.status === 200) {
        mayWork(sent);
        allowed();
        wait = heartbeat / 3;
      } else if (answer.status > 0 && answer.status < 500) {
        stop.abort(new Error(`a heartbeat was answered ${answer.status} ${answer.text}`));
      }
      await pause(wait, stop.signal);
    }
  })();
  try {
    await first;
    stop.signal.throwIfAborted();
    await work(stop.signal); // it is done if it throws nothing, even if the signal has aborted meanwhile
  } catch (err) {
    throw stop.signal.aborted ? new Stopped(`stopped: ${stop.signal.reason.message}`) : err;
  } finally {
    clearTimeout(leave);
    stop.abort();
    await beating;
  }
}

// finish reports the end of the work, again if no answer comes.
async function finish(call, failure) {
  const report = failure ? { outcome: 'failed', detail: String(failure.message ?? failure).slice(0, 1000) } : { outcome: 'succeeded' };
  if (failure instanceof Stopped) report.outcome = 'interrupted'; // so at-least-once runs the tick again
  for (let i = 0; i < 5; i++) {
    const answer = await post(call, '/finish', JSON.stringify(report));
    if (answer.status > 0 && answer.status < 500) return;
    await pause(Math.min(call.heartbeat / 6, 1000));
  }
}

async function accepted(call, work, end) {
  let failure = null;
  await run(call, work).catch(err => { failure = err ?? new Error('the work failed'); });
  try {
    await end(!failure);
  } catch (err) { // no success is told that a repeat would not be told, too
    failure ??= new Error(`the store of keys does not answer: ${err.message}`);
  }
  await finish(call, failure);
}

// answer accepts a call, or does its work, and returns the status and text of the answer. raw is node's own request.
async function answer(raw, response, work) {
  const url = raw.headers['solotick-callback'];
  if (!url) {
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the connection has ended')));
    return work(gone.signal).then(() => [200, 'done'], err => [500, String(err?.message ?? err)]);
  }
  const heartbeat = Number(raw.headers['solotick-heartbeat']) * 1000;
  if (!(heartbeat > 0)) return [400, 'this is no call of Solotick'];
  const end = raw.solotick?.later() ?? (() => {}); // the middleware keeps the key under way until then
  const going = accepted({ url, token: raw.headers['solotick-callback-token'], heartbeat }, work, end);
  underWay.add(going);
  going.finally(() => underWay.delete(going));
  return [202, ''];
}

// express returns a handler, also for node's own server: app.post('/jobs/x', solotick.express({ secret }), express.json(),
// long.express(work)).
const express = work => async (req, res) => {
  const [status, text] = await answer(req, res, async signal => work(req, signal));
  res.statusCode = status;
  res.setHeader('Content-Type', 'text/plain; charset=utf-8');
  res.end(text);
};

// fastify returns a handler: jobs.post('/jobs/x', long.fastify(work)).
const fastify = work => async (request, reply) => {
  const [status, text] = await answer(request.raw, reply.raw, async signal => work(request, signal));
  return reply.code(status).type('text/plain; charset=utf-8').send(text);
};

// wait waits until all work under way has been reported. Call it when the app ends, after its server has closed.
const wait = () => Promise.all(underWay);

module.exports = { express, fastify, wait };
