// A small app with one job, for the tests: node app.js express|fastify SECRET. It prints its address.
'use strict';

const { Readable } = require('node:stream');
const timers = require('node:timers/promises');
const long = require('./long.js');
const solotick = require('./solotick.js');

const [kind, secret] = process.argv.slice(2);
const sleep = ms => new Promise(done => setTimeout(done, ms));
const counts = new Map();

// work answers with the code of ?codes= that is next for the job, after ?take= milliseconds.
async function work(headers, { codes = '200', take = '0' }) {
  const job = headers['solotick-job'];
  const n = (counts.get(job) ?? 0) + 1;
  counts.set(job, n);
  await sleep(Number(take));
  const code = codes.split(',')[Math.min(n, codes.split(',').length) - 1];
  if (code === 'throw') throw new Error('broken');
  return { code, body: { n } };
}

// longWork takes ?take= milliseconds, and fails with the words of ?fail=. /long tells of it.
const longs = new Map(); // job -> {began, stopped}
const longOf = job => longs.get(job) ?? longs.set(job, { began: 0, stopped: 0 }).get(job);
async function longWork({ headers, query }, signal) {
  const state = longOf(headers['solotick-job']);
  state.began++;
  await timers.setTimeout(Number(query.take ?? 0), null, { signal }).catch(err => {
    state.stopped++;
    throw err;
  });
  if (query.fail) throw new Error(query.fail);
}

// torn is a body that breaks off.
const torn = () => Readable.from((function* () {
  yield 'the beginning';
  throw new Error('broken');
})());

// memory fails for two keys.
const memory = solotick.memory();
const away = () => Promise.reject(new Error('the store is away'));
const store = {
  begin: (job, key, token) => (key.endsWith('/no-begin') ? away() : memory.begin(job, key, token)),
  end: (key, token, answer) => (key.endsWith('/no-end') ? away() : memory.end(key, token, answer)),
};

// listen lets a request come from the peer that a test pretends to be.
function listen(server) {
  server.prependListener('request', req => {
    const peer = req.headers['test-peer'];
    if (peer) Object.defineProperty(req.socket, 'remoteAddress', { value: peer });
  });
  console.log(`http://127.0.0.1:${server.address().port}`);
}

if (kind === 'express') {
  const app = require('express')();
  app.set('env', 'test'); // it prints no errors
  app.post('/jobs/work', solotick.express({ secret, store }), async (req, res) => {
    const { code, body } = await work(req.headers, req.query);
    if (code === '503') res.set('Retry-After', '7');
    if (code === 'torn') {
      res.write('the beginning');
      throw new Error('broken');
    }
    if (code === 'late') { // an error after the answer
      res.status(200).json(body);
      res.end();
      throw new Error('broken');
    }
    res.status(Number(code)).json(body);
  });
  app.post('/jobs/long', solotick.express({ secret, store }), long.express(longWork));
  app.get('/long', (req, res) => res.json(longOf(req.query.job)));
  app.get('/count', (req, res) => res.json(counts.get(req.query.job) ?? 0));
  const server = app.listen(0, '127.0.0.1', () => listen(server));
} else {
  const app = require('fastify')();
  app.register(async jobs => {
    jobs.register(solotick.fastify, { secret, store });
    jobs.post('/jobs/work', async (request, reply) => {
      const { code, body } = await work(request.headers, request.query);
      if (code === '503') reply.header('Retry-After', '7');
      if (code === 'torn') return reply.type('application/json').send(torn());
      if (code === 'late') {
        reply.code(200).send(body);
        throw new Error('broken');
      }
      return reply.code(Number(code)).send(body);
    });
    jobs.post('/jobs/long', long.fastify(longWork));
  });
  app.get('/long', async request => longOf(request.query.job));
  app.get('/count', async request => counts.get(request.query.job) ?? 0);
  app.listen({ port: 0, host: '127.0.0.1' }).then(() => listen(app.server));
}
