"""The app of app.py for WSGI, without long jobs: python3 wsgi_app.py SECRET. It prints its address."""

import json
import os
import sys
import threading
import time
from collections import Counter
from socketserver import ThreadingMixIn
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.validate import validator

from solotick import SolotickWSGI, SyncMemory

REASONS = {200: "200 OK", 201: "201 Created", 202: "202 Accepted", 404: "404 Not Found", 500: "500 Broken", 503: "503 Away"}

counts = Counter()
ends = {}  # job -> what says that its work has ended
closed = set()  # jobs whose answer 404 was closed, as WSGI wants it
counting = threading.Lock()


def app(environ, start_response):
    """Answers with the code of ?codes= that is next for the job, after ?take= milliseconds."""
    query = {k: v[0] for k, v in parse_qs(environ["QUERY_STRING"]).items()}
    if environ["PATH_INFO"] == "/count":
        return reply(start_response, 200, counts[query["job"]])
    if environ["PATH_INFO"] == "/end":
        ends.pop(query["job"])(query["ok"] == "yes")
        return reply(start_response, 200, {})
    job = environ["HTTP_SOLOTICK_JOB"]
    with counting:
        counts[job] += 1
        n = counts[job]
    time.sleep(int(query.get("take", 0)) / 1000)
    codes = query.get("codes", "200").split(",")
    code = codes[min(n, len(codes)) - 1]
    if code == "throw":
        raise RuntimeError("broken")
    if code == "torn":
        return torn(start_response)
    if code == "redone":
        return redone(start_response)
    if code == "later":
        ends[job] = environ["solotick.later"]()
        code = 202
    if code == "201" and job not in closed:
        raise RuntimeError("the answer before was not closed")
    return Body(job, reply(start_response, int(code), {"n": n})) if code == "404" else reply(start_response, int(code), {"n": n})


class Body(list):
    def __init__(self, job, parts):
        super().__init__(parts)
        self.job = job

    def close(self):
        closed.add(self.job)


def reply(start_response, status, body):
    write = start_response(REASONS[status], [("Content-Type", "application/json")] + [("Retry-After", "7")] * (status == 503))
    if status == 201:  # the old way to answer
        write(json.dumps(body).encode())
        return []
    return [json.dumps(body).encode()]


def torn(start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield b"the beginning"
    raise RuntimeError("broken")


def redone(start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield b"the beginning"
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        start_response("500 Broken", [("Content-Type", "text/plain")], sys.exc_info())
    yield b"broken"


class Failing(SyncMemory):
    """Fails for two keys."""

    def begin(self, job, key, token):
        if key.endswith(b"/no-begin"):
            raise OSError("the store is away")
        return super().begin(job, key, token)

    def end(self, key, token, answer):
        if key.endswith(b"/no-end"):
            raise OSError("the store is away")
        super().end(key, token, answer)


# The validators find what is against the rules of WSGI, on both sides of the middleware.
guarded = validator(SolotickWSGI(validator(app), secret=sys.argv[1], store=Failing()))


def server_of_tests(environ, start_response):
    """A request can come from the peer that a test pretends to be."""
    environ["REMOTE_ADDR"] = environ.get("HTTP_TEST_PEER", environ["REMOTE_ADDR"])
    return guarded(environ, start_response)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Handler(WSGIRequestHandler):
    def log_message(self, *_):
        pass

    def get_stderr(self):
        return nowhere  # the exceptions


nowhere = open(os.devnull, "w")
server = Server(("127.0.0.1", 0), Handler)
server.set_app(server_of_tests)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
