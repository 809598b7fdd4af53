"""The shortest way from a view's question to its answer.

A view's event has no component's value in it and its answer goes into a view as it is, so there is
nothing that Gradio would have to convert. Gradio 6.31 takes several milliseconds for that all the
same, in three threads by turns, and keeps the answer for each page.
"""

import time
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.parts.views import Reply, answered
from app.runs.owner import USER

PATH = "/gradio_api/run/predict"


class Direct:
    """Answers the questions of views; all else goes on to Gradio."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != PATH:
            await self.app(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        body = b"".join(message.get("body", b"") for message in messages)
        gradio = scope["app"]
        known = gradio.auth is None or scope.get(USER) is not None
        asked = _asked(gradio.get_blocks().fns, body) if known else None
        if asked is None:

            async def again() -> Message:
                return messages.pop(0) if messages else await receive()

            await self.app(scope, again, send)
            return
        began = time.perf_counter()
        answer = await answered(*asked)
        seconds = time.perf_counter() - began
        sent = orjson.dumps(
            {"data": [answer], "is_generating": False, "duration": seconds},
            option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS,
        )
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(sent))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": sent})


def _asked(functions: Mapping[int, Any], body: bytes) -> tuple[Reply, Mapping[str, Any]] | None:
    """Who answers a request, and what was asked; None where Gradio has to look at it."""
    try:
        asked = orjson.loads(body)
        reply = functions[asked["fn_index"]].fn.reply
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    if asked.get("data") != []:
        return None
    question = asked.get("event_data")
    return reply, question if isinstance(question, Mapping) else {}
