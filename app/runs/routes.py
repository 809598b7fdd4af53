"""Plain routes under /train for the Train lab: runs, and the files that visitors send for them.

Not events of Gradio, as the forms are: an event needs its session and its stream, which a restart
of the server ends, and costs five times as much. A page that polls here goes on by itself when the
server is back, and so does any number of other pages.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.runs import owner as run_owner
from app.runs import room
from app.runs.export import archive as run_export
from app.runs.forms import tasks as run_tasks
from app.runs.reports import charts as run_charts
from app.runs.reports import scrub as run_scrub
from app.runs.reports.reports import Reports, plain
from app.runs.reports.shown import Shown
from app.runs.reports.tried import tried
from app.runs.runs import Runs
from app.runs.unplaced import unplaced
from app.serving.ask import whole_number
from app.serving.metrics import counted
from app.serving.session import Session
from core_models import InputError

PREFIX = "/train"
TEXTS = f"{PREFIX}/texts"
HEADER = "x-cloze"
"""Every change carries this header. Another site's page cannot send it without being asked."""
OWNER = "x-cloze-owner"
"""The browser's secret: runs that are made with it can only be changed with it."""
MOST_OFFSET = 2**53
_LOG = logging.getLogger("cloze.train")

Answer = Callable[[Request], Awaitable[Any]]


class RunRoutes:
    """One method per route; each gives plain values."""

    def __init__(self, runs: Runs, reports: Reports, session: Session) -> None:
        self.runs = runs
        self.reports = reports
        self.session = session
        self.shown = Shown(reports)
        self._packing = asyncio.Lock()

    async def overview(self, request: Request) -> Any:
        """Every run in short."""
        runs = await asyncio.to_thread(self.reports.overview)
        return {
            "runs": [run | {"mine": self._mine(run["id"], request)} for run in runs],
            "enabled": self.runs.enabled,
            "slots": self.runs.slots,
        }

    async def show(self, request: Request) -> Any:
        """What is new for a page that shows runs (:class:`app.runs.reports.shown.Shown`)."""
        return await asyncio.to_thread(self.shown.answer, await _object(request), _owner(request))

    async def live(self, request: Request) -> Any:
        """One run, with its reports from ``offset`` on."""
        place = [
            whole_number(_number(request.query_params.get(name, "0")), name, 0, MOST_OFFSET)
            for name in ("offset", "generation")
        ]
        run = request.path_params["run"]
        found = await asyncio.to_thread(self.reports.live, run, *place, owner=_owner(request))
        return found | {"mine": self._mine(run, request)}

    def _mine(self, run: str, request: Request) -> bool:
        try:
            return self.runs.may_change(run, _owner(request))
        except InputError:
            return False  # deleted since it was listed

    async def followed(self, request: Request) -> Any:
        """The chart of a word over snapshots, from what the page was told of it."""
        return await asyncio.to_thread(run_charts.followed, await _object(request))

    async def try_out(self, request: Request) -> Any:
        """What a fine-tuned model says about a text."""
        values = await _object(request)
        run = request.path_params["run"]
        found = await run_tasks.try_out(self.session, self.runs, run, values)
        return {"parts": tried(found)}

    async def config(self, request: Request) -> Any:
        """The config of a run, as the form may send it again; ``full``: with its defaults."""
        full = request.query_params.get("full", "0") != "0"
        read = self.reports.settings if full else self.runs.as_form
        return await asyncio.to_thread(read, request.path_params["run"])

    async def rows(self, request: Request) -> Response:
        """All reports of a run as a table."""
        run = request.path_params["run"]
        text = await asyncio.to_thread(self.reports.as_csv, run)
        named = {"content-disposition": f'attachment; filename="{run}.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=named)

    async def model(self, request: Request) -> Response:
        """The model of a run as a zip that transformers opens, or that of a snapshot."""
        text = request.query_params.get("step")
        step = None if text is None else whole_number(_number(text), "step", 0, MOST_OFFSET)
        # One after the other: each needs as much room on the disk as its model.
        async with self._packing:
            packed = await asyncio.to_thread(
                run_export.pack, self.runs, request.path_params["run"], step
            )
        return run_export.Download(packed)

    async def send_text(self, request: Request) -> Any:
        """Keep a text for a run to come; the body is its bytes."""
        if not self.runs.enabled:
            raise InputError("Training is switched off on this server.")
        content = bytearray()
        async for part in request.stream():
            content += part
            if len(content) > self.runs.limits.upload:
                raise InputError(
                    f"The text is larger than {self.runs.limits.upload >> 20} MB, the most that "
                    "this server takes."
                )
        name, column = (request.query_params.get(key, "") for key in ("name", "column"))
        if request.query_params.get("kind") == "labelled":
            return await asyncio.to_thread(self.runs.inbox.save_labelled, name, bytes(content))
        column = column[:200] or None
        return await asyncio.to_thread(self.runs.inbox.save, name, bytes(content), column)

    async def act(self, request: Request) -> Any:
        """Start, continue, stop or delete a run."""
        values = await _object(request)
        run, action = request.path_params["run"], request.path_params["action"]
        self.runs.check_owner(run, _owner(request))
        if action == "delete":
            if values.get("confirm") != run:
                raise InputError("To delete a run, its id must be given once more.")
            await asyncio.to_thread(self.runs.delete, run)
            self.reports.forget(run)
            return {}
        if action not in ("start", "stop"):
            raise InputError(f"There is no action “{action[:20]}”: start, stop or delete.")
        await asyncio.to_thread(getattr(self.runs, action), run)
        found = await asyncio.to_thread(self.reports.summary, run)
        return found | {"mine": True}

    async def guess(self, request: Request) -> Any:
        """What a snapshot makes of a text: guesses or verdicts, and where it looks."""
        values = await _object(request)
        run = request.path_params["run"]
        return await run_scrub.guess(self.session, self.runs, run, values)

    def routes(self) -> list[Route]:
        """All of them."""
        run, guarded = PREFIX + "/runs/{run}", partial(_guarded, self.runs.root)
        get, post = ["GET"], ["POST"]
        return [
            Route(f"{PREFIX}/runs", guarded(self.overview), methods=get),
            Route(f"{PREFIX}/shown", guarded(self.show), methods=post),
            Route(f"{run}/reports.csv", guarded(self.rows, refused=404), methods=get),
            Route(run, guarded(self.live), methods=get),
            Route(f"{run}/config", guarded(self.config), methods=get),
            Route(TEXTS, guarded(self.send_text), methods=post),
            Route(f"{run}/model.zip", guarded(self.model, refused=404), methods=get),
            Route(f"{PREFIX}/followed", guarded(self.followed), methods=post),
            Route(f"{run}/try", guarded(self.try_out), methods=post),
            Route(f"{run}/guess", guarded(self.guess), methods=post),
            Route(run + "/{action}", guarded(self.act), methods=post),
        ]


def _guarded(
    root: Path, answer: Answer, refused: int = 200
) -> Callable[[Request], Awaitable[Response]]:
    """Answers as JSON; a message for people instead of an error's inside.

    Args:
        root: the folder of all runs.
        answer: gives plain values, or a whole response.
        refused: status of a message for people. Not 200 where a browser would save it as a file.
    """

    async def handle(request: Request) -> Response:
        if request.method == "POST" and request.headers.get(HEADER) != "train":
            return JSONResponse({"error": f"The header {HEADER} is missing."}, 403)
        try:
            with counted(answer):
                values = await answer(request)
        except InputError as error:
            # With status 200: browsers put every other one into their console as a fault.
            return JSONResponse({"error": unplaced(str(error), root)}, refused)
        except ClientDisconnect:
            return Response(status_code=499)  # to nobody: the page has gone while it was sending
        except Exception as error:
            if room.is_full(error):
                return JSONResponse({"error": room.FULL}, refused)
            _LOG.exception("%s %s", request.method, request.url.path)
            text = "Something went wrong on the server. Its log says what."
            return JSONResponse({"error": text}, 500)
        if isinstance(values, Response):
            return values
        # A diverging run writes NaN, which is no JSON: null in its place.
        return JSONResponse(plain(values), headers={"cache-control": "no-store"})

    return handle


def _owner(request: Request) -> str | None:
    """Who asks: the name that they have signed in with, else the secret of their browser."""
    return run_owner.of(request.scope.get(run_owner.USER), request.headers.get(OWNER))


async def _object(request: Request) -> dict[str, Any]:
    try:
        values = await request.json()
    except (ValueError, RecursionError):
        raise InputError("The request is not JSON.") from None
    if not isinstance(values, dict):
        raise InputError("The request must be an object.")
    return values


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 16:
        raise InputError(f"{text[:20]!r} is not a whole number.")
    return int(text)
