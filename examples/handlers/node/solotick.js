// A middleware for the handlers that Solotick calls, for Express and Fastify. Copy this file into your app.
//
// It admits only the replica beside the app, refuses a run whose fencing token is lower than one it has seen for the job,
// and does the work of a tick once: a repeated Idempotency-Key gets 409 while the work is under way, and the stored answer
// once it has succeeded. After a failure the work is done again. Work that goes on after the answer 202 is under way until it
// has ended; long.js has handlers for it.
//
// memory() keeps the keys in this process. If an app has several copies, its store must be shared by them: write one over
// your database, with the SQL of docs/handlers.md. Do not use the middleware for jobs with concurrencyPolicy Allow: their
// runs overlap, so a lower token is no sign of an old run.
'use strict';

const { createHash, timingSafeEqual } = require('node:crypto');

const week = 7 * 24 * 3600 * 1000;

// memory is a store in this process. Each of its functions is one atomic step, and may return a promise.
function memory(keep = week) {
  const keys = new Map(); // key -> {token, since, busy, answer}
  const tokens = new Map(); // job -> the greatest token that was seen
  let cleaned = 0;
  const forget = now => {
    if (now - cleaned < 60_000) return;
    cleaned = now;
    for (const [key, e] of keys) if (!e.busy && now - e.since > keep) keys.delete(key);
  };
  return {
    // begin decides on a call: 'work', 'busy', 'old', or the answer of a key that is done. token is 0 for a run that has none.
    begin(job, key, token) {
      const now = Date.now();
      forget(now);
      const greatest = tokens.get(job) ?? 0;
      if (token > 0 && token < greatest) return 'old';
      tokens.set(job, Math.max(token, greatest));
      const e = keys.get(key);
      if (!e || (e.busy && e.token < token) || (!e.busy && !e.answer)) {
        keys.set(key, { token, since: now, busy: true, answer: null });
        return 'work';
      }
      return e.busy ? 'busy' : e.answer;
    },
    // end keeps the answer of a key whose work succeeded; null says that it failed. It does nothing if the key has been
    // taken over by a run with another token.
    end(key, token, answer) {
      const e = keys.get(key);
      if (e?.busy && e.token === token) Object.assign(e, { busy: false, answer });
    },
  };
}

const known = secret => {
  if (!secret) throw new Error('the secret is empty, so everybody would know it');
};

const refusals = {
  foreign: { status: 403, body: 'only the replica beside this app may call' },
  strange: { status: 403, body: "the secret is missing or wrong: send it in the job's headers, as Authorization: Bearer SECRET" },
  unknown: { status: 400, body: 'this is no call of Solotick' },
  old: { status: 412, body: 'a newer run of this job has begun' },
  busy: { status: 409, body: 'the work of this tick is under way' },
};

const hash = text => createHash('sha256').update(text).digest();
const loopback = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/;

// examine returns {answer} for a call that is answered at once, and {end} for one whose work is to be done.
async function examine(req, secret, store) {
  const given = (req.headers.authorization ?? '').replace(/^Bearer /, '');
  const peer = req.socket.remoteAddress; // undefined on a unix socket
  if (peer && !loopback.test(peer)) return { answer: refusals.foreign };
  if (!timingSafeEqual(hash(given), hash(secret))) return { answer: refusals.strange };
  const job = req.headers['solotick-job'];
  const key = req.headers['idempotency-key'];
  const text = req.headers['solotick-fencing-token'] ?? '0';
  const token = Number(text);
  if (!job || !key || !/^\d+$/.test(text) || !Number.isSafeInteger(token)) return { answer: refusals.unknown };
  const verdict = await store.begin(job, key, token);
  if (verdict !== 'work') return { answer: refusals[verdict] ?? verdict };
  let goesOn = false;
  // later says that the work goes on when its handler has answered 202. The key is under way until the handler calls what it
  // returns, with true if the work has succeeded. The key of a call that is accepted without it counts as failed.
  req.solotick = {
    later() {
      goesOn = true;
      return async ok => store.end(key, token, ok ? { status: 200, body: 'done' } : null);
    },
  };
  const kept = status => status >= 200 && status < 300 && !(status === 202 && req.headers['solotick-callback']);
  return {
    end: answer => (goesOn ? null : store.end(key, token, kept(answer.status) ? answer : null)),
  };
}

// express returns a middleware: app.post('/jobs/x', solotick.express({ secret }), express.json(), handler).
function express({ secret, store = memory() }) {
  known(secret);
  return (req, res, next) => {
    examine(req, secret, store).then(({ answer, end }) => {
      if (end) {
        holdBack(res, end);
        next();
        return;
      }
      if (answer.type) res.setHeader('Content-Type', answer.type);
      res.statusCode = answer.status;
      res.end(answer.body);
    }).catch(next);
  };
}

// holdBack sends an answer only when it is kept.
function holdBack(res, keep) {
  const { write, end } = res;
  const chunks = [];
  const told = []; // callbacks
  const add = args => {
    told.push(...args.filter(a => typeof a === 'function'));
    const [chunk, encoding] = args;
    if (chunk && typeof chunk !== 'function') chunks.push(Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8'));
  };
  res.write = (...args) => {
    add(args);
    for (const f of told.splice(0)) process.nextTick(f);
    return true;
  };
  res.end = (...args) => {
    add(args);
    const body = Buffer.concat(chunks);
    const send = text => {
      delete res.headersSent;
      Object.assign(res, { write, end });
      if (!res.headersSent) res.removeHeader('Content-Length'); // it may be that of an error after the beginning of another body
      res.end(text, () => told.forEach(f => f()));
    };
    Object.defineProperty(res, 'headersSent', { value: true, configurable: true }); // no error handler answers once more
    Object.assign(res, { write: () => false, end: () => res });
    const type = res.getHeader('Content-Type');
    Promise.resolve().then(() => keep({ status: res.statusCode, type, body })).then(() => send(body), () => {
      res.statusCode = 500;
      send('the store of keys does not answer');
    });
    return res;
  };
}

// fastify is a plugin; it guards the routes of the scope it is registered in: app.register(solotick.fastify, { secret }).
async function fastify(app, { secret, store = memory() }) {
  known(secret);
  const ends = new WeakMap(); // request -> end
  app.addHook('onRequest', async (request, reply) => {
    const { answer, end } = await examine(request.raw, secret, store);
    if (end) {
      ends.set(request, end);
      return;
    }
    if (answer.type) reply.header('Content-Type', answer.type);
    await reply.code(answer.status).send(answer.body);
    return reply;
  });
  app.addHook('onSend', async (request, reply, payload) => {
    const end = ends.get(request);
    if (!end) return payload;
    ends.delete(request);
    let body = payload ?? '';
    if (body[Symbol.asyncIterator]) { // a stream
      const chunks = [];
      try {
        for await (const chunk of body) chunks.push(Buffer.from(chunk));
      } catch (err) {
        await end({ status: 500 });
        throw err;
      }
      body = Buffer.concat(chunks);
    }
    await end({ status: reply.statusCode, type: reply.getHeader('Content-Type'), body });
    return body;
  });
}
fastify[Symbol.for('skip-override')] = true; // the hooks hold in the scope that registers the plugin

module.exports = { express, fastify, memory };
