"""A small app with one job, for the tests: python3 app.py SECRET. It prints its address."""

import asyncio
import json
import socket
import sys
from collections import Counter, defaultdict
from urllib.parse import parse_qs

import uvicorn
from long import Long
from solotick import Memory, Solotick

counts = Counter()
longs = defaultdict(lambda: {"began": 0, "stopped": 0})  # job -> state


def query_of(scope):
    return {k: v[0] for k, v in parse_qs(scope["query_string"].decode()).items()}


async def work_long(call):
    """Takes ?take= milliseconds, and fails with the words of ?fail=. /long tells of it."""
    query, state = query_of(call.scope), longs[call.headers["solotick-job"]]
    state["began"] += 1
    try:
        await asyncio.sleep(int(query.get("take", 0)) / 1000)
    except asyncio.CancelledError:
        state["stopped"] += 1
        raise
    if "fail" in query:
        raise RuntimeError(query["fail"])


def work_in_a_thread(call):
    """The same without asyncio."""
    query, state = query_of(call.scope), longs[call.headers["solotick-job"]]
    state["began"] += 1
    if call.stop.wait(int(query.get("take", 0)) / 1000):
        state["stopped"] += 1
        raise RuntimeError("stopped")
    if "fail" in query:
        raise RuntimeError(query["fail"])


long = {"/jobs/long": Long(work_long), "/jobs/thread": Long(work_in_a_thread)}


async def app(scope, receive, send):
    """Answers with the code of ?codes= that is next for the job, after ?take= milliseconds."""
    assert scope["type"] == "http"
    query = query_of(scope)
    if scope["path"] in long:
        return await long[scope["path"]](scope, receive, send)
    if scope["path"] == "/long":
        return await reply(send, 200, longs[query["job"]])
    if scope["path"] == "/count":
        return await reply(send, 200, counts[query["job"]])
    job = dict(scope["headers"])[b"solotick-job"].decode()
    counts[job] += 1
    n = counts[job]
    await asyncio.sleep(int(query.get("take", 0)) / 1000)
    codes = query.get("codes", "200").split(",")
    code = codes[min(n, len(codes)) - 1]
    if code == "throw":
        raise RuntimeError("broken")
    if code == "torn":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"the beginning", "more_body": True})
        raise RuntimeError("broken")
    await reply(send, int(code), {"n": n})


async def reply(send, status, body):
    headers = [(b"content-type", b"application/json")] + [(b"retry-after", b"7")] * (status == 503)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


class Failing(Memory):
    """Fails for two keys."""

    async def begin(self, job, key, token):
        if key.endswith(b"/no-begin"):
            raise OSError("the store is away")
        return await super().begin(job, key, token)

    async def end(self, key, token, answer):
        if key.endswith(b"/no-end"):
            raise OSError("the store is away")
        await super().end(key, token, answer)


guarded = Solotick(app, secret=sys.argv[1], store=Failing())


async def server_of_tests(scope, receive, send):
    """A request can come from the peer that a test pretends to be, and under another root."""
    headers = dict(scope["headers"])
    if b"test-peer" in headers:
        scope = {**scope, "client": (headers[b"test-peer"].decode(), 1)}
    if b"test-root" in headers:
        root = headers[b"test-root"].decode()
        scope = {**scope, "root_path": root, "path": root + scope["path"]}
    await guarded(scope, receive, send)


listener = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
server = uvicorn.Server(uvicorn.Config(server_of_tests, lifespan="off", log_level="critical"))
asyncio.run(server.serve(sockets=[listener]))
