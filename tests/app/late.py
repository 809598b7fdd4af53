"""A slow server, as in a full classroom: what is asked for comes late, and in another order."""

import asyncio
import json
import random
import re
from collections.abc import Callable
from typing import Any

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

RUN = re.compile(r"(?<=/runs/)[^/]+")


class Late:
    """Holds all answers of some kinds back: one that is drawn for each kind, by the delay itself.

    Held back one by one, two answers would seldom come in the order that a test does not expect.
    """

    def __init__(self, app: ASGIApp, milliseconds: int) -> None:
        self.app = app
        self.milliseconds = milliseconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = await self._body(receive) if scope["path"].endswith("/run/predict") else None
        kind = f"{RUN.sub('*', scope['path'])} {body and json.loads(body['body']).get('fn_index')}"
        if random.Random(f"{self.milliseconds} {kind}").random() < 0.5:
            await asyncio.sleep(self.milliseconds / 1000)
        kept = [body] if body else []

        async def again() -> Message:
            return kept.pop() if kept else await receive()

        await self.app(scope, again, send)

    @staticmethod
    async def _body(receive: Receive) -> Message:
        parts = [await receive()]
        while parts[-1].get("more_body"):
            parts.append(await receive())
        return {"type": "http.request", "body": b"".join(part["body"] for part in parts)}


def late(app_kwargs: Callable[..., dict[str, Any]], milliseconds: int) -> Callable[..., Any]:
    """The arguments of the page's server, and this delay before it."""

    def kwargs(*args: Any, **options: Any) -> dict[str, Any]:
        found = app_kwargs(*args, **options)
        before = Middleware(Late, milliseconds=milliseconds)
        return found | {"middleware": [before, *found["middleware"]]}

    return kwargs
