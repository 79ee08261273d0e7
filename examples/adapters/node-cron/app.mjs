// A small app for the tests of solotick.mjs: app.mjs API SECONDS TAKE_MS SKEW_MS JOB…
// Its jobs take so long. Then those named fails… fail; and those named endless… end when they are told to. SKEW_MS is by how
// much the app's clock is fast.
import { setTimeout as sleep } from 'node:timers/promises';

const [api, seconds, take, skew, ...jobs] = process.argv.slice(2);
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length ? args : [RealDate.now() + Number(skew)]));
  }
  static now() {
    return RealDate.now() + Number(skew);
  }
};
const { default: cron } = await import('node-cron');
const { solotick } = await import('./solotick.mjs');

const say = (what, job, claim) => console.log(what, job, claim.tick, claim.run, claim.fencingToken);

for (const job of jobs) {
  cron.schedule(`${seconds} * * * * *`, ...solotick(job, async ({ signal, claim }) => {
    say('begun', job, claim);
    try {
      await sleep(job.startsWith('endless') ? 600_000 : Number(take), null, { signal });
    } catch (err) {
      say('stopped', job, claim);
      throw err;
    }
    if (job.startsWith('fails')) throw new Error('disk full');
    say('done', job, claim);
  }, { api }));
}
console.log('ready');
