"""One replica of an app that keeps APScheduler 3: with Solotick's adapter, or with a lock by SET NX in each job.

    python3 apscheduler_app.py solotick|setnx HOST:PORT FILE NAME

The address is the API of the replica beside the app, or Redis. FILE holds the jobs as JSON. SOLOTICK_SKEW moves the
wall clock, by a Go duration in s or ms.
"""

import datetime
import http.client
import json
import logging
import os
import pathlib
import re
import select
import sys
import threading
import urllib.parse

skewed = re.fullmatch(r"(-?[\d.]+)(ms|s)", os.environ.get("SOLOTICK_SKEW", ""))
if skewed:
    by = datetime.timedelta(**{{"ms": "milliseconds", "s": "seconds"}[skewed[2]]: float(skewed[1])})

    class Skewed(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz) + by

    datetime.datetime = Skewed

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/adapters/apscheduler"))

import redis  # noqa: E402
from apscheduler.executors.pool import ThreadPoolExecutor  # noqa: E402
from apscheduler.schedulers.blocking import BlockingScheduler  # noqa: E402
from solotick_executor import SolotickExecutor, current  # noqa: E402

kind, address, file, name = sys.argv[1:]
logging.basicConfig(level=logging.INFO)


def call(job, tick, stop):
    """Call the app, until the job is told to stop."""
    url = urllib.parse.urlsplit(job["url"])
    connection = http.client.HTTPConnection(url.netloc)
    headers = {"Solotick-Tick": tick, "Solotick-Replica": name}
    connection.request("POST", f"{url.path}?{url.query}", headers=headers)
    while not select.select([connection.sock], [], [], 0.1)[0]:
        if stop.is_set():
            connection.close()
            raise RuntimeError("told to stop")
    connection.getresponse().read()
    connection.close()


def claimed(job):
    call(job, current.claim["tick"], current.stop)


def locked(job):
    """APScheduler does not tell a job its run time, so the key is of the job, and lasts for half of its period."""
    every = job["every"]
    now = datetime.datetime.now(datetime.timezone.utc).timestamp()
    tick = datetime.datetime.fromtimestamp(now // every * every, datetime.timezone.utc)
    if client.set("lock:" + job["name"], name, nx=True, px=every * 500):
        call(job, tick.isoformat(), threading.Event())


if kind == "solotick":
    work, executor = claimed, SolotickExecutor("http://" + address, max_workers=50)
else:
    host, port = address.split(":")
    client = redis.Redis(host, int(port))
    work, executor = locked, ThreadPoolExecutor(50)
scheduler = BlockingScheduler(executors={"default": executor}, timezone="UTC")
with open(file) as jobs:
    for job in json.load(jobs):
        at = f"*/{job['every']}"
        scheduler.add_job(work, "cron", second=at, id=job["name"], args=[job], max_instances=5)
print("ready", flush=True)
scheduler.start()
