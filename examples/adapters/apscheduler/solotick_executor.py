"""For APScheduler 3: each run time of a job runs in one copy of the app alone. Copy this file into your app.

    scheduler = BlockingScheduler(executors={"default": SolotickExecutor()}, timezone="UTC")
    scheduler.add_job(report, "cron", minute="*/5", id="report")

The id of a job is its name in Solotick's table. The executor asks the replica beside the app for each run time: it claims the
tick. If the answer is not 200, the job does not run here, and no event says so. After the claim come heartbeats. The job begins
when the first one is answered with 200, so a claim whose answer was lost is never begun. Each 200 lets the job go on for the
time of a heartbeat, counted from when it was sent. When that time is over, or a heartbeat is answered 404 or 410,
`current.stop` is set, a threading.Event, and the job must return or raise at once: nothing can end a thread from outside.

A run time that is older than the job's misfire_grace_time is not asked for. While an answer is held back, the run counts for the
job's max_instances. Python 3.7 or later.
"""

import http.client
import json
import logging
import threading
import time
import traceback
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone
from urllib.parse import quote

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED, EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.executors.pool import ThreadPoolExecutor

log = logging.getLogger("solotick")
current = threading.local()  # in a job: current.stop, and current.claim, the answer to the claim
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def post(url, seconds, token="", body=None):
    """The status and text of an answer; the status is 0 if none came in time."""
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + token}
    request = urllib.request.Request(url, json.dumps(body or {}).encode(), headers, method="POST")
    try:
        with direct.open(request, timeout=max(seconds, 0.001)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as err:
        with err:
            return err.code, err.reason
    except (OSError, ValueError, http.client.HTTPException) as err:  # a URLError is an OSError
        return 0, str(err)


class Run:
    def __init__(self, api, claim):
        self.url, self.claim = api + "/v1/runs/" + claim["run"], claim
        self.heartbeat = claim["heartbeatMs"] / 1000
        self.until = time.monotonic() + self.heartbeat
        self.stop, self.over, self.reason = threading.Event(), threading.Event(), ""
        self.heard, self.may_begin = threading.Event(), False
        for work in self.beat, self.watch:
            threading.Thread(target=work, daemon=True).start()
        self.heard.wait()

    def watch(self):
        """Stop the job when its time is over, even if a heartbeat hangs: a timeout counts for each part of an answer."""
        while not self.over.wait(max(self.until - time.monotonic(), 0)):
            if time.monotonic() >= self.until:
                self.reason = self.reason or "no heartbeat was answered in time"
                self.stop.set()
                self.heard.set()
                return

    def beat(self):
        try:
            self.beat_on()
        finally:  # whatever ends the heartbeats ends the job, too
            if not self.over.is_set():
                self.stop.set()
            self.heard.set()

    def beat_on(self):
        third = self.heartbeat / 3
        while not self.over.is_set() and not self.reason:
            sent = time.monotonic()
            status, text = post(self.url + "/heartbeat", min(third, self.until - sent), self.claim["token"])
            wait = min(third, 1)  # no answer, or the replica is not sure of its lock: ask again, within the time
            if status == 200:
                self.until = sent + self.heartbeat * 0.9  # a tenth of the time is for the job to stop
                self.may_begin = True
                self.heard.set()
                wait = sent + third - time.monotonic()
            elif 0 < status < 500:
                self.reason = f"a heartbeat was answered {status} {text}"
                break
            self.over.wait(max(min(wait, self.until - time.monotonic()), 0))

    def finish(self, outcome, detail=""):
        """Report the end of the job, again for a while if no answer comes."""
        self.over.set()
        end = time.monotonic() + max(self.heartbeat, 5)
        while time.monotonic() < end:
            status, _ = post(self.url + "/finish", 2, self.claim["token"], {"outcome": outcome, "detail": detail[:300]})
            if 0 < status < 500:
                return
            time.sleep(0.5)


class SolotickExecutor(ThreadPoolExecutor):
    def __init__(self, api="http://127.0.0.1:9748", max_workers=10, pool_kwargs=None):
        super().__init__(max_workers, pool_kwargs)
        self.api = api

    def _do_submit_job(self, job, run_times):
        def done(future):
            err = future.exception()
            if err:
                self._run_job_error(job.id, err, err.__traceback__)
            else:
                self._run_job_success(job.id, future.result())

        self._pool.submit(lambda: [e for at in run_times for e in self.run(job, at)]).add_done_callback(done)

    def run(self, job, at):
        """Claim a run time and run the job. Return the events."""

        def event(code, **how):
            return JobExecutionEvent(code, job.id, job._jobstore_alias, at, **how)

        late, grace = datetime.now(timezone.utc) - at, job.misfire_grace_time
        if grace is not None and late > timedelta(seconds=grace):
            return [event(EVENT_JOB_MISSED)]
        tick = at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        # The answer may be held back for 60 s.
        status, text = post(f"{self.api}/v1/jobs/{quote(job.id, safe='')}/ticks/{tick}", 70)
        if status != 200:
            level = logging.INFO if status == 409 else logging.WARNING
            log.log(level, "%s at %s does not run here: %s %s", job.id, tick, status, text)
            return []
        run = Run(self.api, json.loads(text))
        if not run.may_begin:
            run.finish("interrupted", run.reason)
            return []
        current.stop, current.claim = run.stop, run.claim
        try:
            result = job.func(*job.args, **job.kwargs)
        except BaseException as err:
            log.exception("%s at %s failed", job.id, tick)
            run.finish(*("interrupted", run.reason) if run.stop.is_set() else ("failed", str(err) or repr(err)))
            return [event(EVENT_JOB_ERROR, exception=err, traceback=traceback.format_exc())]
        run.finish("succeeded")
        return [event(EVENT_JOB_EXECUTED, retval=result)]
