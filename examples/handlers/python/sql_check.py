"""Runs the SQL of a page in SQLite: python3 sql_check.py docs/handlers.md. Two copies of an app share it as their store."""

import asyncio
import json
import re
import sqlite3
import sys

from solotick import BUSY, OLD, Solotick

with open(sys.argv[1], encoding="utf-8") as page:
    SQL = re.findall(r"(?ms)^```sql\n(.*?)^```$", page.read())
TOKENS, CALLS, COMPARE, TAKE, READ, END, START, WRITE = SQL


def run(sql, **values):
    """The rows that come back, or the number of those that were changed."""
    cursor = db.execute(sql, values)
    return cursor.fetchall() if cursor.description else cursor.rowcount


class Shared:
    """A store in the database that all copies of an app share."""

    def __init__(self, replica):
        self.replica = replica
        run(START, replica=replica)

    async def begin(self, job, key, token):
        if not run(COMPARE, job=job, token=token):
            return OLD
        if run(TAKE, key=key, token=token, replica=self.replica):
            return None
        [(state, answer)] = run(READ, key=key)
        if state == "running":
            return BUSY
        status, kind, body = json.loads(answer)
        return status, kind.encode(), body.encode()

    async def end(self, key, token, answer):
        kept = answer and json.dumps([answer[0], answer[1].decode(), answer[2].decode()])
        ended.append(run(END, key=key, token=token, state="done" if answer else "failed", answer=kept))


ended = []  # rows that each end has changed
works = 0



async def app(scope, receive, send):
    global works
    works += 1
    n = works
    await scope["work"]()
    await send({"type": "http.response.start", "status": scope["status"], "headers": []})
    await send({"type": "http.response.body", "body": str(n).encode()})


async def call(copy, token, key=b"k", status=200, work=lambda: asyncio.sleep(0)):
    """The status and body of the answer."""
    headers = [(b"authorization", b"Bearer s"), (b"solotick-job", b"j"), (b"idempotency-key", key)]
    headers.append((b"solotick-fencing-token", str(token).encode()))
    got = []

    async def send(message):
        got.append(message.get("status", message.get("body")))

    scope = {"type": "http", "path": "/jobs/x", "headers": headers, "status": status, "work": work}
    await copy(scope, None, send)
    return tuple(got)


def copy(replica):
    return Solotick(app, secret="s", store=Shared(replica))


def want(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got}, want {wanted}")


async def calls():
    one, two = copy("one"), copy("two")
    want("a failure", await call(one, 5, status=500), (500, b"1"))
    release = asyncio.Event()
    again = asyncio.create_task(call(two, 5, work=release.wait))
    await asyncio.sleep(0)
    want("the failed work is done again", works, 2)
    want("under way in the other copy", (await call(one, 5))[0], 409)
    want("a greater token", await call(one, 6, work=lambda: overtaken(release, again)), (200, b"3"))
    want("the rows that ends have changed", ended, [1, 0, 1])
    want("repeated in the other copy", await call(two, 6), (200, b"3"))
    want("repeated with a greater token", await call(two, 7), (200, b"3"))
    want("an older run", (await call(two, 6, key=b"l"))[0], 412)

    one.store.end = two.store.end = lost
    await call(one, 8, key=b"m")  # the process dies before it has written the end
    one = copy("two")
    want("only the app of the other copy has started again", (await call(one, 8, key=b"m"))[0], 409)
    one = copy("one")
    want("the app has started again", (await call(one, 8, key=b"m"))[0], 200)
    one.store.end = lost
    await call(one, 9, key=b"n")
    await call(two, 10, key=b"n")  # takes it over, and has not ended
    want("the first app has started again", (await call(copy("one"), 10, key=b"n"))[0], 409)
    want("what was done before stays done", await call(one, 10), (200, b"3"))
    want("the end of what is done", run(END, key=b"k", token=6, state="failed", answer=None), 0)


async def overtaken(release, old):
    """The old run ends while the new one works."""
    release.set()
    await old


async def lost(key, token, answer):
    pass


db = sqlite3.connect(":memory:", isolation_level=None)
run(TOKENS)
run(CALLS)
asyncio.run(calls())

run("CREATE TABLE balances (account TEXT PRIMARY KEY, amount INT, token BIGINT)")
run("INSERT INTO balances VALUES ('a', 0, 0)")
want("a write", run(WRITE, account="a", amount=1, token=6), 1)
want("a write of an older run", run(WRITE, account="a", amount=2, token=5), 0)
want("another write", run(WRITE, account="a", amount=3, token=6), 1)
want("what was written", run("SELECT amount FROM balances"), [(3,)])
