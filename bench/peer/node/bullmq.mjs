// One replica of BullMQ's job schedulers, used as its documentation shows: each replica upserts the schedulers at its
// start, and works on the queue.
//
//   node bullmq.mjs HOST:PORT FILE NAME
//
// FILE holds the jobs as JSON: [{"name", "every", "url"}].
import './skew.mjs';
import { readFileSync } from 'node:fs';
import { Queue, Worker } from 'bullmq';

const [address, file, name] = process.argv.slice(2);
const [host, port] = address.split(':');
const jobs = JSON.parse(readFileSync(file, 'utf8'));
const urls = new Map(jobs.map((job) => [job.name, job.url]));

const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const log = (error) => console.error(error.message);

const queue = new Queue('bench', { connection });
queue.on('error', log);
const worker = new Worker(
  'bench',
  async (job) => {
    const tick = new Date(Number(job.id.split(':').at(-1))); // repeat:<scheduler>:<tick>
    const answer = await fetch(urls.get(job.name), {
      method: 'POST',
      headers: { 'Solotick-Tick': tick.toISOString(), 'Solotick-Replica': name },
    });
    await answer.arrayBuffer();
  },
  { connection, concurrency: Math.max(100, jobs.length) },
);
worker.on('error', log);

for (const job of jobs) {
  await queue.upsertJobScheduler(
    job.name,
    { pattern: `*/${job.every} * * * * *`, tz: 'UTC' },
    { name: job.name, opts: { removeOnComplete: { count: 1000 } } },
  );
}

process.on('SIGTERM', async () => {
  await worker.close();
  await queue.close();
  process.exit(0);
});
