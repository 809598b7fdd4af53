"""One part that shows Plotly figures, and Plotly's script from the Python package."""

import gzip
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import plotly
import plotly.graph_objects as go
from anyio import to_thread
from plotly.io.json import to_json_plotly
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.parts.views import Part, mounted
from viz.figure import payload, templates

SCRIPT = f"/cloze/plotly-{plotly.__version__}.min.js"
"""Its address names the version, so that browsers keep it for ever."""
LOOK = "/cloze/plotly-look.json"


class Figure(Part):
    """A Plotly figure that keeps its zoom, follows the page's theme and language, and has a twin.

    Unlike ``gr.Plot`` it updates in place (``Plotly.react``), uses the plotly.js of the installed
    package, and shows the numbers of ``layout.meta`` as a table for readers without a pointer
    (:func:`viz.figure.finish`). Its value is a ``plotly.graph_objects.Figure``.

    Example::

        chart = Figure(elem_id="loss")
        slider.input(draw, slider, chart, queue=False)  # draw returns a Figure

    Events:
        pick: a mark was clicked; ``event._data`` has ``curve``, ``point``, ``x``, ``y`` and
            ``customdata``. So has ``picked`` of its value, for events without a request.

    Args:
        value: The first figure.
        elem_id: Id in the page, and the name of saved files.
        main: Whether it is the main picture of its lab.
        events: ``["pick"]`` where somebody listens.
    """

    def __init__(
        self,
        value: go.Figure | None = None,
        *,
        elem_id: str | None = None,
        main: bool = False,
        events: Sequence[str] = (),
        **more: Any,
    ) -> None:
        parts = mounted("figure", module="parts/figure", events=events, main=main, files=elem_id)
        super().__init__(value, elem_id=elem_id, **{**parts, **more})

    def postprocess(self, value: Any) -> Any:
        """What the page gets of a figure; None clears it.

        One text: Gradio walks over every value within an object, here and several times on the
        page.
        """
        return {"figure": _json(value)} if isinstance(value, go.Figure) else value


def drawn(figure: go.Figure) -> dict[str, Any]:
    """A figure as plain values, for a view with a figure among its parts (figure.js)."""
    found: dict[str, Any] = json.loads(_json(figure))
    return found


def _json(figure: go.Figure) -> str:
    return str(to_json_plotly(payload(figure)))


def routes() -> list[Route]:
    """Plotly's script and the look of all charts."""
    return [Route(SCRIPT, _script), Route(LOOK, _look)]


def warm() -> None:
    """Compress the script before the first visitor asks for it."""
    _packed()


@cache
def _plain() -> bytes:
    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()


@cache
def _packed() -> bytes:
    return gzip.compress(_plain(), 9)


async def _script(request: Request) -> Response:
    headers = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(_plain(), media_type="text/javascript", headers=headers)
    body = await to_thread.run_sync(_packed)
    headers["content-encoding"] = "gzip"
    return Response(body, media_type="text/javascript", headers=headers)


async def _look(_: Request) -> Response:
    text = json.dumps({"script": SCRIPT.removeprefix("/"), **templates()})
    return Response(text, media_type="application/json", headers={"cache-control": "no-cache"})
