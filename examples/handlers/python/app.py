"""A small app with one job, for the tests: python3 app.py SECRET. It prints its address."""

import asyncio
import json
import socket
import sys
from urllib.parse import parse_qs

import uvicorn
from solotick import Solotick

count = 0


async def app(scope, receive, send):
    """Answers with ?code= after ?take= milliseconds."""
    global count
    assert scope["type"] == "http"
    if scope["path"] == "/count":
        return await reply(send, 200, count)
    query = {k: v[0] for k, v in parse_qs(scope["query_string"].decode()).items()}
    count += 1
    n = count
    await asyncio.sleep(int(query.get("take", 0)) / 1000)
    code = query.get("code", "200")
    if code == "throw":
        raise RuntimeError("broken")
    await reply(send, int(code), {"n": n})


async def reply(send, status, body):
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


listener = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
server = uvicorn.Server(uvicorn.Config(Solotick(app, secret=sys.argv[1]), lifespan="off", log_level="critical"))
asyncio.run(server.serve(sockets=[listener]))
