"""A proxy that shows a page under a path and another name, as nginx or Caddy would."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.waiting import until

HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "host"}
"""Headers of one connection alone."""


@contextmanager
def proxied(server: str, path: str, name: str) -> Iterator[str]:
    """The address of a proxy in front of a server.

    Args:
        server: address of the server.
        path: under which its page lies, such as ``/class/cloze``.
        name: by which the server is called, in place of the one that the visitor wrote.
    """
    client = httpx.AsyncClient(base_url=server, timeout=None)

    async def forward(request: Request) -> StreamingResponse:
        headers = [(k, v) for k, v in request.headers.items() if k not in HOP]
        headers += [("host", name), ("x-forwarded-host", request.headers["host"])]
        headers.append(("x-forwarded-proto", request.url.scheme))
        address = request.url.path.removeprefix(path) or "/"
        asked = client.build_request(
            request.method,
            httpx.URL(address, query=request.url.query.encode()),
            headers=headers,
            content=await request.body(),
        )
        found = await client.send(asked, stream=True)
        answer = StreamingResponse(
            found.aiter_raw(), found.status_code, background=BackgroundTask(found.aclose)
        )
        answer.raw_headers = [(k.lower(), v) for k, v in found.headers.raw if k.lower() not in HOP]
        return answer

    methods = ["GET", "HEAD", "POST", "OPTIONS"]
    routes = [Route(f"{path}{{rest:path}}", forward, methods=methods)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = uvicorn.Config(Starlette(routes=routes), port=port, log_level="critical")
    front = uvicorn.Server(config)
    thread = threading.Thread(target=front.run, daemon=True)
    thread.start()
    assert until(lambda: front.started)
    yield f"http://127.0.0.1:{port}{path}"
    front.should_exit = front.force_exit = True
    thread.join(20)
