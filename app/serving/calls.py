"""Calls of the named endpoints over plain HTTP, of which Gradio 6.31 makes faults of ours.

A script that names no endpoint, leaves an argument out, or asks for an answer that is not there got
a broken answer, and the log a traceback with all that was sent. And answers that nobody fetches
stayed in memory.
"""

import re
from collections import Counter
from typing import Any

import gradio as gr
from gradio.blocks import BlockFunction
from gradio.components.api_component import Api
from gradio.route_utils import FnIndexInferError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MOST_UNFETCHED = 64
"""Answers that wait to be fetched, of all scripts together; the largest take 10 MB each."""
V2 = "/gradio_api/call/v2/"
ASKING = ("/gradio_api/call/", "/gradio_api/queue/join")
_FETCHING = re.compile(r"/gradio_api/call/(?:v2/)?[^/]+/([^/]+)/?")
NO_ENDPOINT = "There is no endpoint of this name. GET /gradio_api/info lists them."
NO_ARGUMENTS = (
    "An argument is missing, or there is none of that name. GET /gradio_api/info lists those of "
    "each endpoint."
)
NO_ANSWER = (
    "No answer of this number waits here. Each is given once, and forgotten where "
    f"{MOST_UNFETCHED} later ones wait to be fetched. Ask again."
)


class Blocks(gr.Blocks):
    """Gradio's, where an argument of an endpoint may be left out."""

    def validate_inputs(self, block_fn: BlockFunction, inputs: list[Any]) -> None:
        """Put in the defaults of what a call leaves out; see the base class."""
        missing = block_fn.inputs[len(inputs) :]
        if not all(isinstance(each, Api) for each in missing):
            needs = f"It takes {len(block_fn.inputs)} values, and got {len(inputs)}."
            raise gr.Error(needs, print_exception=False)
        # Of an argument without a default this is None, which the endpoint refuses in words.
        inputs += [each.value for each in missing]


class Calls:
    """Refuses wrong calls in words, and lets answers go that nobody fetches."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, refused = scope["path"], None
        if scope["method"] == "POST" and path.startswith(ASKING):
            forget(scope["app"].get_blocks()._queue)
        found = _FETCHING.fullmatch(path) if scope["method"] == "GET" else None
        if found and not _waits(scope["app"].get_blocks()._queue, found[1]):
            refused = NO_ANSWER, 404
        else:
            try:
                await self.app(scope, receive, send)
            except FnIndexInferError:
                refused = NO_ENDPOINT, 404
            except (KeyError, TypeError) as error:
                if not path.startswith(V2):
                    raise
                refused = (NO_ENDPOINT, 404) if isinstance(error, KeyError) else (NO_ARGUMENTS, 422)
        if refused:
            text, status = refused
            await JSONResponse({"detail": text, "error": text}, status)(scope, receive, send)


def _waits(queue: Any, event: str) -> bool:
    """Whether an answer is there or on its way."""
    return any(event in events for events in queue.pending_event_ids_session.values())


def forget(queue: Any) -> None:
    """Drop the answers that have waited longest to be fetched, beyond so many.

    By itself Gradio keeps those of 2,000 sessions, any number of each, and the session of every
    call for ever.
    """
    held, asked = queue.pending_messages_per_session, queue.pending_event_ids_session
    for session in [each for each, events in asked.items() if not events or each not in held]:
        del asked[session]
    events = [*queue.event_ids_to_events.values()]
    under_way = Counter(event.session_hash for event in events)
    waiting = {each: len(found) - under_way[each] for each, found in asked.items()}
    over = sum(waiting.values()) - MOST_UNFETCHED
    for session in [each for each, count in waiting.items() if count > 0]:
        if over <= 0:
            return
        for event in events:
            event.alive = event.alive and event.session_hash != session
        del held[session], asked[session]
        over -= waiting[session]
