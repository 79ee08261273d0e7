"""A handler for jobs with http.async, whose work lasts for longer than a request, as an ASGI app. Copy this file into your app.

It answers 202, tells the replica by heartbeats that the work goes on, and reports its end. Calls of jobs without http.async are
answered when the work is done. Put the middleware of solotick.py before it: it sends requests to the address that a call names.

    app.mount("/jobs/rebuild-reports", Long(rebuild_reports))  # FastAPI, Starlette

The work is a function of one argument, a Call. If it is a coroutine function, it is cancelled when it must stop, and must not
keep the event loop busy. Any other function runs in a thread, and must return at once when call.stop is set. An exception says
why the work failed. Python 3.9 or later.
"""

import asyncio
import inspect
import json
import threading
import time
from urllib.parse import urlsplit

SILENT = "no heartbeat was answered in time"


class Call:
    """A call of a job. The names of headers are in lower case."""

    def __init__(self, scope, body):
        self.scope, self.body = scope, body
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self.stop = threading.Event()  # the work must stop
        self.reason = None  # why it must
        self.coroutine = None  # the work, if it is one

    def end(self, reason):
        """Tell the work to stop."""
        if self.reason is None:
            self.reason = reason
            self.stop.set()
            if self.coroutine:
                self.coroutine.cancel()

    async def run(self, work):
        """Do the work, and return why it failed; None if it is done, even if it was told to stop meanwhile."""
        try:
            if self.reason is None:
                if inspect.iscoroutinefunction(work):
                    self.coroutine = asyncio.ensure_future(work(self))
                    await self.coroutine
                else:
                    await asyncio.to_thread(work, self)
                return None
        except asyncio.CancelledError:
            if self.reason is None:
                raise  # the app ends
        except Exception as err:
            if self.reason is None:
                return str(err) or repr(err)
        return f"stopped: {self.reason}"


class Long:
    def __init__(self, work):
        self.work = work
        self.under_way = set()  # tasks

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            raise ValueError("a job is called by http")
        call = Call(scope, await read(receive))
        if "solotick-callback" not in call.headers:
            watching = asyncio.create_task(gone(receive, call))
            try:
                reason = await call.run(self.work)
            finally:
                watching.cancel()
            return await answer(send, 500, reason) if reason else await answer(send, 200, "done")
        try:
            replica = Replica(call)
        except (KeyError, ValueError):
            return await answer(send, 400, "this is no call of Solotick")
        end = scope.get("solotick.later", lambda: None)()  # of the middleware: the key is under way until then
        task = asyncio.create_task(self.accepted(call, replica, end))
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        await answer(send, 202, "")

    async def accepted(self, call, replica, end):
        replica.may_work(time.monotonic())
        beating = asyncio.create_task(replica.beat())
        try:
            await replica.heard.wait()
            reason = await call.run(self.work)
        finally:
            beating.cancel()
            replica.timer.cancel()
        try:
            if end:
                await end(reason is None)
        except Exception as err:  # no success is told that a repeat would not be told, too
            reason = reason or f"the store of keys does not answer: {err}"
        await replica.finish(reason)

    async def wait(self):
        """Wait until all work under way has been reported. Call it when the app ends."""
        await asyncio.gather(*self.under_way, return_exceptions=True)


class Replica:
    """The replica to which the app reports."""

    def __init__(self, call):
        self.call = call
        url = urlsplit(call.headers["solotick-callback"])
        self.host, self.port, self.path = url.hostname, url.port, url.path
        self.token = call.headers["solotick-callback-token"]
        self.heartbeat = float(call.headers["solotick-heartbeat"])  # seconds that the app may work by an answered heartbeat
        self.heard = asyncio.Event()  # the work may begin, or must not
        self.timer = None  # a timer of its own: a heartbeat may hang

    def may_work(self, since):
        """Let the app work for a heartbeat, counted from when it was sent, less a tenth for the work to stop."""
        if self.timer:
            self.timer.cancel()
        left = since + self.heartbeat * 0.9 - time.monotonic()
        self.timer = asyncio.get_running_loop().call_later(max(left, 0), self.stop, SILENT)

    def stop(self, reason):
        self.call.end(reason)
        self.heard.set()

    async def beat(self):
        """Send heartbeats until the work has ended, or must stop."""
        while not self.call.stop.is_set():
            sent = time.monotonic()
            status, text = await self.post("/heartbeat", b"")
            wait = min(self.heartbeat / 3, 1)  # no answer, or the replica is not sure of its lock: ask again, within the time
            if status == 200:
                self.may_work(sent)
                self.heard.set()
                wait = self.heartbeat / 3
            elif 0 < status < 500:
                self.stop(f"a heartbeat was answered {status} {text}")
            await asyncio.sleep(wait)

    async def finish(self, reason):
        """Report the end of the work, again if no answer comes."""
        report = {"outcome": "failed", "detail": reason[:1000]} if reason else {"outcome": "succeeded"}
        if reason and self.call.reason:
            report["outcome"] = "interrupted"  # it had to end, so at-least-once runs the tick again
        for _ in range(5):
            status, _text = await self.post("/finish", json.dumps(report).encode())
            if 0 < status < 500:
                return
            await asyncio.sleep(min(self.heartbeat / 6, 1))

    async def post(self, path, body):
        """The status and text of an answer; 0 if none came in a third of a heartbeat."""
        try:
            return await asyncio.wait_for(self.exchange(path, body), self.heartbeat / 3)
        except (OSError, ValueError, IndexError, asyncio.TimeoutError):
            return 0, ""

    async def exchange(self, path, body):
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            host = f"[{self.host}]" if ":" in self.host else self.host
            head = [f"POST {self.path}{path} HTTP/1.0", f"Host: {host}:{self.port}", f"Authorization: Bearer {self.token}",
                    "Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
            writer.write("\r\n".join(head).encode() + body)
            head, _, text = (await reader.read()).partition(b"\r\n\r\n")
            return int(head.split()[1]), text.decode(errors="replace").strip()
        finally:
            writer.close()


async def read(receive):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def gone(receive, call):
    """Tell the work to stop when the connection ends."""
    while (await receive())["type"] != "http.disconnect":
        pass
    call.end("the connection has ended")


async def answer(send, status, text):
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(text.encode())).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
