"""Middlewares for the handlers that Solotick calls: Solotick for any ASGI app (FastAPI, Starlette, Django, Litestar), and
SolotickWSGI for any WSGI app (Flask, Django, Pyramid, Bottle). Copy this file into your app.

    app = Solotick(app, secret=os.environ["SECRET"])                                 # FastAPI
    app.wsgi_app = SolotickWSGI(app.wsgi_app, secret=os.environ["SECRET"])           # Flask
    application = SolotickWSGI(get_wsgi_application(), secret=os.environ["SECRET"])  # Django

Each admits only the replica beside the app, refuses a run whose fencing token is lower than one it has seen for the job, and
does the work of a tick once: a repeated Idempotency-Key gets 409 while the work is under way, and the stored answer once it
has succeeded. After a failure the work is done again. Work that goes on after the answer 202 is under way until it has ended;
long.py has a handler for it.

Memory and SyncMemory keep the keys in this process. If an app has several copies, or several worker processes as most WSGI apps
have, its store must be shared by them: write one over your database, with the SQL of docs/handlers.md. Do not use the
middlewares for jobs with concurrencyPolicy Allow: their runs overlap, so a lower token is no sign of an old run.
"""

import hmac
import ipaddress
import threading
import time
from http.client import responses

WEEK = 7 * 24 * 3600

# Answers: status, Content-Type, body.
FOREIGN = (403, b"text/plain", b"only the replica beside this app may call")
STRANGE = (403, b"text/plain", b"the secret is missing or wrong: send it in the job's headers, as Authorization: Bearer SECRET")
UNKNOWN = (400, b"text/plain", b"this is no call of Solotick")
OLD = (412, b"text/plain", b"a newer run of this job has begun")
BUSY = (409, b"text/plain", b"the work of this tick is under way")
DONE = (200, b"text/plain", b"done")


class SyncMemory:
    """A store in this process for SolotickWSGI. Each method is one atomic step."""

    def __init__(self, keep=WEEK):
        self.keep = keep  # seconds
        self.keys = {}  # key -> [token, since, busy, answer]
        self.tokens = {}  # job -> the greatest token that was seen
        self.cleaned = 0.0
        self.lock = threading.Lock()

    def begin(self, job, key, token):
        """Decide on a call: None = do the work, or else the answer. token is 0 for a run that has none."""
        with self.lock:
            now = time.monotonic()
            if now - self.cleaned > 60:
                self.cleaned = now
                self.keys = {k: e for k, e in self.keys.items() if e[2] or now - e[1] < self.keep}
            greatest = self.tokens.get(job, 0)
            if 0 < token < greatest:
                return OLD
            self.tokens[job] = max(token, greatest)
            entry = self.keys.get(key)
            if entry is None or entry[2] and entry[0] < token or not entry[2] and entry[3] is None:
                self.keys[key] = [token, now, True, None]
                return None
            return BUSY if entry[2] else entry[3]

    def end(self, key, token, answer):
        """Keep the answer of a key whose work succeeded; None says that it failed. It does nothing if the key has been
        taken over by a run with another token."""
        with self.lock:
            entry = self.keys.get(key)
            if entry and entry[2] and entry[0] == token:
                entry[2:] = [False, answer]


class Memory:
    """A store in this process for Solotick: the same with coroutines."""

    def __init__(self, keep=WEEK):
        self.store = SyncMemory(keep)

    async def begin(self, job, key, token):
        return self.store.begin(job, key, token)

    async def end(self, key, token, answer):
        self.store.end(key, token, answer)


class Guard:
    """What both middlewares decide alike, for the paths of jobs alone: other requests have no key and are refused."""

    def __init__(self, app, secret, store=None, prefix="/jobs/"):
        if not secret:
            raise ValueError("the secret is empty, so everybody would know it")
        self.app, self.secret, self.prefix = app, secret.encode(), prefix
        self.store = store or self.memory()

    def examine(self, peer, headers):
        """The answer to what is no call of the replica, or None; and the job, key and token of a call."""
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
        if not beside(peer):
            return FOREIGN, None
        if not hmac.compare_digest(given, self.secret):
            return STRANGE, None
        job, key = headers.get(b"solotick-job"), headers.get(b"idempotency-key")
        token = headers.get(b"solotick-fencing-token", b"0")
        if not job or not key or not token.isdigit():
            return UNKNOWN, None
        return None, (job, key, int(token))


class Solotick(Guard):
    """The middleware for ASGI. Its store has coroutines."""

    memory = Memory

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or not self.guards(scope):
            return await self.app(scope, receive, send)
        headers = {name.lower(): value for name, value in scope["headers"]}
        answer, call = self.examine((scope.get("client") or [None])[0], headers)
        if answer is None:
            answer = await self.store.begin(*call)
        if answer is not None:
            return await answer_with(send, answer)
        _job, key, token = call
        await self.work(scope, receive, send, key, token)

    def guards(self, scope):
        """Whether this is the path of a job. Some servers put the root_path before it, and some do not."""
        path = scope["path"]
        return path.startswith(self.prefix) or path.removeprefix(scope.get("root_path", "")).startswith(self.prefix)

    async def work(self, scope, receive, send, key, token):
        """Run the app, keep its answer if it is a success, and send it."""
        status, headers, body = 500, [], b""

        async def hold_back(message):
            nonlocal status, headers, body
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message.get("headers", []))
            elif message["type"] == "http.response.body":
                body += message.get("body", b"")

        goes_on = False

        def later():
            """Say that the work goes on when its handler has answered 202. The key is under way until the handler calls what
            this returns, with True if the work has succeeded."""
            nonlocal goes_on
            goes_on = True
            return lambda ok: self.store.end(key, token, DONE if ok else None)

        answer = None
        try:
            # An extension could send past us.
            await self.app({**scope, "extensions": {}, "solotick.later": later}, receive, hold_back)
            answer = (status, dict(headers).get(b"content-type", b""), body)
        finally:
            if not goes_on:
                is_async = any(name.lower() == b"solotick-callback" for name, _ in scope["headers"])
                await self.store.end(key, token, answer if answer and kept(status, is_async) else None)
        await answer_with(send, answer, headers)


class SolotickWSGI(Guard):
    """The middleware for WSGI. Its store has plain methods, which threads call at the same time."""

    memory = SyncMemory

    def __call__(self, environ, start_response):
        if not environ.get("PATH_INFO", "").startswith(self.prefix):
            return self.app(environ, start_response)
        headers = {name[5:].replace("_", "-").lower().encode(): value.encode("latin-1")
                   for name, value in environ.items() if name.startswith("HTTP_")}
        answer, call = self.examine(environ.get("REMOTE_ADDR"), headers)
        if answer is None:
            answer = self.store.begin(*call)
        if answer is None:
            _job, key, token = call
            return self.work(environ, start_response, key, token)
        status, kind, body = answer
        start_response(f"{status} {responses.get(status, '')}", [("Content-Type", kind.decode("latin-1"))] if kind else [])
        return [body]

    def work(self, environ, start_response, key, token):
        """Run the app, keep its answer if it is a success, and send it."""
        status, headers, body = None, [], []

        def hold_back(new_status, new_headers, exc_info=None):
            nonlocal status, headers
            status, headers = new_status, new_headers
            body.clear()  # an answer after an error replaces the one before
            return body.append

        goes_on = False

        def later():
            """As in Solotick.work."""
            nonlocal goes_on
            goes_on = True
            return lambda ok: self.store.end(key, token, DONE if ok else None)

        answer = None
        try:
            environ["solotick.later"] = later
            parts = self.app(environ, hold_back)
            try:
                for part in parts:
                    body.append(part)
            finally:
                if hasattr(parts, "close"):
                    parts.close()
            kind = next((value for name, value in headers if name.lower() == "content-type"), "")
            answer = (int(status[:3]), kind.encode("latin-1"), b"".join(body))
        finally:
            if not goes_on:
                is_async = "HTTP_SOLOTICK_CALLBACK" in environ
                self.store.end(key, token, answer if answer and kept(answer[0], is_async) else None)
        start_response(status, headers)
        return [answer[2]]


def kept(status, is_async):
    """Whether an answer is that of work that is done. A call that is accepted without later() counts as failed."""
    return 200 <= status < 300 and not (status == 202 and is_async)


def beside(peer):
    """Whether a request comes from this machine: over loopback, or a unix socket, which has no address."""
    if not peer:
        return True
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


async def answer_with(send, answer, headers=None):
    status, kind, body = answer
    if headers is None:
        headers = [(b"content-type", kind)] if kind else []
    headers = [h for h in headers if h[0] != b"content-length"] + [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
