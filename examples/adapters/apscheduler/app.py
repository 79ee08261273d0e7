"""A small app for the tests of solotick_executor.py: app.py API SECONDS TAKE_MS SKEW_MS JOB...

Its jobs take so long. Then those named fails... fail; and those named endless... end when they are told to. SKEW_MS is by how much
the app's clock is fast.
"""

import datetime
import logging
import os
import sys

api, seconds, take, skew, *jobs = sys.argv[1:]


class Skewed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(milliseconds=int(skew))


datetime.datetime = Skewed

from apscheduler.schedulers.blocking import BlockingScheduler  # noqa: E402

from solotick_executor import SolotickExecutor, current  # noqa: E402

logging.basicConfig(level=logging.INFO)


def say(what, job):
    line = " ".join([what, job, *(str(current.claim[name]) for name in ("tick", "run", "fencingToken"))])
    os.write(1, (line + "\n").encode())  # whole, whatever other threads write


def work(job):
    say("begun", job)
    if current.stop.wait(600 if job.startswith("endless") else int(take) / 1000):
        say("stopped", job)
        raise RuntimeError("told to stop")
    if job.startswith("fails"):
        raise RuntimeError("disk full")
    say("done", job)


scheduler = BlockingScheduler(executors={"default": SolotickExecutor(api, max_workers=50)}, timezone="UTC")
for job in jobs:
    scheduler.add_job(work, "cron", second=seconds, id=job, args=[job], max_instances=10, misfire_grace_time=5)
print("ready", flush=True)
scheduler.start()
