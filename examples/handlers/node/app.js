// A small app with one job, for the tests: node app.js express|fastify SECRET. It prints its address.
'use strict';

const solotick = require('./solotick.js');

const [kind, secret] = process.argv.slice(2);
const sleep = ms => new Promise(done => setTimeout(done, ms));
let count = 0;

// work answers with ?code= after ?take= milliseconds.
async function work({ code = '200', take = '0' }) {
  const n = ++count;
  await sleep(Number(take));
  if (code === 'throw') throw new Error('broken');
  return { code: Number(code), body: { n } };
}

const listening = port => console.log(`http://127.0.0.1:${port}`);

if (kind === 'express') {
  const app = require('express')();
  app.post('/jobs/work', solotick.express({ secret }), async (req, res) => {
    const { code, body } = await work(req.query);
    res.status(code).json(body);
  });
  app.get('/count', (req, res) => res.json(count));
  app.use((err, req, res, next) => res.status(500).end()); // eslint-disable-line no-unused-vars
  const server = app.listen(0, '127.0.0.1', () => listening(server.address().port));
} else {
  const app = require('fastify')();
  app.register(async jobs => {
    jobs.register(solotick.fastify, { secret });
    jobs.post('/jobs/work', async (request, reply) => {
      const { code, body } = await work(request.query);
      return reply.code(code).send(body);
    });
  });
  app.get('/count', async () => count);
  app.listen({ port: 0, host: '127.0.0.1' }).then(() => listening(app.server.address().port));
}
