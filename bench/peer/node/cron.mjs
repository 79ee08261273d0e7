// One replica of an app that keeps node-cron: with Solotick's adapter, or with the coordinator that users write for
// Redis, which is SET NX with the key and the time that node-cron gives it.
//
//   node cron.mjs solotick|setnx HOST:PORT FILE NAME
//
// The address is the API of the replica beside the app, or Redis. FILE holds the jobs as JSON.
import './skew.mjs';
import { readFileSync } from 'node:fs';
import Redis from 'ioredis';
import cron from 'node-cron';
import { solotick } from '../../../examples/adapters/node-cron/solotick.mjs';

const [kind, address, file, name] = process.argv.slice(2);

async function call(job, tick, signal) {
  const headers = { 'Solotick-Tick': tick, 'Solotick-Replica': name };
  const answer = await fetch(job.url, { method: 'POST', headers, signal });
  await answer.arrayBuffer();
}

let schedule;
if (kind === 'solotick') {
  const options = { api: `http://${address}` };
  schedule = (job) => solotick(job.name, ({ signal, claim }) => call(job, claim.tick, signal), options);
} else {
  const redis = new Redis(`redis://${address}`);
  redis.on('error', (error) => console.error(error.message));
  const runCoordinator = {
    shouldRun: async (key, ttl) => (await redis.set(key, name, 'PX', ttl, 'NX')) === 'OK',
  };
  const options = (job) => ({ name: job.name, distributed: true, runCoordinator });
  schedule = (job) => [({ date }) => call(job, date.toISOString()), options(job)];
}
for (const job of JSON.parse(readFileSync(file, 'utf8'))) {
  cron.schedule(`*/${job.every} * * * * *`, ...schedule(job));
}
console.log('ready');
