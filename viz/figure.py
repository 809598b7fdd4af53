"""What all charts share: one look in light, dark and print, text that is safe, a table beside.

A function of this package that draws axes takes plain values and returns a
``plotly.graph_objects.Figure``: ``fig.show()`` in a notebook gives the picture of the page. Beside
the picture, ``layout.meta`` holds what a reader without a pointer or without eyes needs: the same
numbers as a table, and the picture in a sentence (:func:`finish`).

Texts of ours are :class:`viz.svg.Wording`, which a page may show in its own language
(:func:`payload`); texts of visitors go through :func:`plain`, because Plotly reads markup. Titles,
and names of traces, go through it in :func:`finish`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

from viz.draft import Draft, axes
from viz.svg import LETTER, Wording, legal, shorten, text_width, told, with_values
from viz.svg import SANS as SAVED

LIGHT = {
    "paper": "#fffefb",
    "ink": "#1d232a",
    "soft": "#59626b",
    "line": "#e2dcd0",
    "model": "#0f5c63",
    "hidden": "#c4500a",
    "random": "#b55a92",
    "kept": "#2b7fb5",
    "ochre": "#b8860b",
    "green": "#2e8b57",
    "grey": "#8f8a80",
    "sky": "#56a9df",
    "heat_0": "#f3f0e9",
    "heat_1": "#cfe3e0",
    "heat_2": "#79b4b3",
    "heat_3": "#2b7d82",
    "heat_4": "#0a3f45",
    "cool": "#2b6fb5",
}
"""Colours by what they stand for: ``model`` for what a model says, ``hidden`` for a gap."""
DARK = {
    "paper": "#181f25",
    "ink": "#e9ebe8",
    "soft": "#9eaab2",
    "line": "#2b353d",
    "model": "#63c2c4",
    "hidden": "#ff9a5a",
    "random": "#d382b0",
    "kept": "#56a9de",
    "ochre": "#e0b84c",
    "green": "#6fc79a",
    "grey": "#6d7a84",
    "sky": "#8fcbf2",
    "heat_0": "#10151a",
    "heat_1": "#17383c",
    "heat_2": "#1f6a70",
    "heat_3": "#4fb0b2",
    "heat_4": "#d5f3ef",
    "cool": "#7fb2ff",
}
SERIES = ("model", "hidden", "kept", "random", "ochre", "green", "grey", "sky")
"""Colours of series, in the order in which they are taken."""
SANS = '"IBM Plex Sans", Helvetica, Arial, sans-serif'
MOST_TABLE_ROWS = 2500
MOST_LETTERS = 20
"""Of a text beside an axis: Plotly drops a margin that takes more than half of a chart, and then
cuts the texts in it, on a phone from some 24 letters on."""


def colour(name: str) -> str:
    """The light theme's colour for a meaning; a page in the dark swaps it (:func:`twins`)."""
    return LIGHT[name]


def series(index: int) -> str:
    """The colour of the series with this number, from 0; they repeat after eight."""
    return LIGHT[SERIES[index % len(SERIES)]]


def twins() -> dict[str, str]:
    """The dark theme's colour for each of the light theme's."""
    return {LIGHT[name]: DARK[name] for name in LIGHT}


def heat() -> list[list[Any]]:
    """A colour scale from nothing (paper) to all (the model's colour)."""
    return [[step / 4, LIGHT[f"heat_{step}"]] for step in range(5)]


def diverging() -> list[list[Any]]:
    """A colour scale for signed values: against, nothing, for."""
    return [[0.0, LIGHT["cool"]], [0.5, LIGHT["heat_0"]], [1.0, LIGHT["hidden"]]]


def template(colours: Mapping[str, str] = LIGHT) -> go.layout.Template:
    """The one look of all charts, in the colours of a theme."""
    axis = {
        "gridcolor": colours["line"],
        "linecolor": colours["line"],
        "zerolinecolor": colours["line"],
        "tickcolor": colours["line"],
        "tickfont": {"color": colours["soft"], "size": 12},
        "title": {"font": {"color": colours["soft"], "size": 13}, "standoff": 8},
        "automargin": True,
        "ticklabeloverflow": "allow",
    }
    return go.layout.Template(
        layout={
            "paper_bgcolor": colours["paper"],
            "plot_bgcolor": colours["paper"],
            "font": {"family": SANS, "size": 13, "color": colours["ink"]},
            "title": {
                "font": {"size": 16},
                "x": 0,
                "xref": "container",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"l": 4, "t": 10},
            },
            "colorway": [colours[name] for name in SERIES],
            "xaxis": axis,
            "yaxis": axis,
            "margin": {"l": 8, "r": 8, "t": 48, "b": 8},
            "legend": {
                "orientation": "h",
                "yanchor": "bottom",
                "y": 1.0,
                "xanchor": "left",
                "x": 0,
            },
            "hoverlabel": {
                "font": {"family": SANS, "size": 13, "color": colours["ink"]},
                "bgcolor": colours["heat_0"],
                "bordercolor": colours["line"],
                "namelength": -1,  # else Plotly cuts names after 15 letters
            },
            "hovermode": "closest",
            "bargap": 0.3,
            "colorscale": {
                "sequential": [[step / 4, colours[f"heat_{step}"]] for step in range(5)],
                "diverging": [
                    [0.0, colours["cool"]],
                    [0.5, colours["heat_0"]],
                    [1.0, colours["hidden"]],
                ],
            },
            "modebar": {
                "bgcolor": "rgba(0,0,0,0)",
                "color": colours["soft"],
                "activecolor": colours["model"],
            },
        }
    )


@cache
def _look() -> dict[str, Any]:
    found: dict[str, Any] = template().to_plotly_json()
    return found


NO_LOOK = "none"
"""Plotly's name for its empty template."""


class Chart(Draft):
    """A figure that takes on the look of all charts when it is shown or saved.

    Not sooner: the page has the look already (:func:`payload`). A template that somebody sets
    stays.
    """

    def __init__(self, *traces: Any) -> None:
        super().__init__(traces, {"template": NO_LOOK})

    def to_dict(self) -> dict[str, Any]:
        """The figure as plain values, with its look."""
        whole = super().to_dict()
        if self.layout.template == pio.templates[NO_LOOK]:
            whole["layout"]["template"] = copy.deepcopy(_look())
        return whole


PRINT = {**LIGHT, "paper": "#ffffff"}


def templates() -> dict[str, Any]:
    """The look in light, dark and print, and which dark colour stands for which light one."""
    looks = {"light": LIGHT, "dark": DARK, "print": PRINT}
    found = {name: template(colours).to_plotly_json() for name, colours in looks.items()}
    # A saved picture has none of the page's fonts: texts are measured in what they are drawn with.
    found["print"]["layout"]["font"]["family"] = SAVED
    return found | {"twins": twins()}


def plain(text: str) -> str:
    """A visitor's text for a label: Plotly would read ``<b>``, ``<a>`` and ``&amp;`` as markup.

    It would put a value, or nothing, for ``%{x}``, and a control character would make of the saved
    SVG a file that nothing opens.
    """
    escaped = legal(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("%{", "%&#123;")


def safe(text: str) -> str:
    """A text for a label, of which only what is ours is not escaped: of a wording, its values."""
    return with_values(text, plain)


def tick(text: str) -> str:
    """A visitor's text beside an axis, as `plain`; where it is long, its beginning."""
    return plain(shorten(text, lambda each: text_width(each) <= MOST_LETTERS * LETTER))


def middle(count: int) -> list[float]:
    """Range of an axis of places 0, 1, ...: few stand in the middle, not as wide as the chart."""
    spare = max(3 - count, 0) / 2
    return [-0.6 - spare, count - 0.4 + spare]


def categories(texts: Sequence[str]) -> list[str]:
    """Texts as categories of an axis, each apart from those that look the same; ours stay whole."""
    labels = apart([tick(text) for text in texts])
    pairs = zip(texts, labels, strict=True)
    return [safe(text) if isinstance(text, Wording) else label for text, label in pairs]


def whole(texts: Sequence[str]) -> list[str]:
    """The same texts for what is shown in hover: nothing of them is cut."""
    return [safe(text) for text in texts]


def beside(lengths: Sequence[float]) -> list[str]:
    """Where bars have their numbers: within, or beside where there is no room.

    Of a bar without length Plotly would leave the number out.
    """
    return ["auto" if length else "outside" for length in lengths]


def apart(labels: Sequence[str]) -> list[str]:
    """Labels of categories that look the same and are different: Plotly would draw them as one."""
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, -1) + 1
        found.append(label + "\N{ZERO WIDTH SPACE}" * seen[label])
    return found


def finish(
    figure: go.Figure,
    title: str,
    *,
    alt: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | int | float | None]],
    height: int = 360,
    revision: str = "kept",
    x: str | None = None,
    y: str | None = None,
    left_out: int = 0,
) -> go.Figure:
    """Give a figure the look of all charts, its titles, and what stands beside the picture.

    Args:
        figure: Traces; returned with its layout filled in.
        title: What the chart shows; of it, of ``x`` and ``y`` and of the names of traces what is
            not ours becomes no markup.
        alt: The picture in one sentence, for who cannot see it.
        columns: Headings of the table twin.
        rows: Its rows: every number of the picture, as it is, and texts as people wrote them. At
            most ``MOST_TABLE_ROWS``.
        height: Pixels.
        revision: What the picture is about: while it stays the same, so does a visitor's zoom.
        x: Title of the horizontal axis.
        y: Title of the vertical axis.
        left_out: Rows that the picture has and ``rows`` has not.
    """
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"Every row of the table needs {len(columns)} cells.")
    draft = figure.draft if isinstance(figure, Draft) else None
    whole = draft or {"data": figure.data, "layout": figure.layout.to_plotly_json()}
    named = [trace for trace in whole["data"] if _of(trace, "name")]
    for trace in named:
        trace["name"] = safe(_of(trace, "name"))
    legend = [trace for trace in named if _of(trace, "showlegend") is not False]
    above = (44 if len(legend) > 1 else 20) + (28 if title else 0)
    figure.update_layout(  # in one go: each update looks at the whole figure
        margin={"t": above},
        title={"text": safe(title)},
        height=height,
        uirevision=revision,
        meta={
            "alt": alt,
            "columns": list(columns),
            "rows": [list(row) for row in rows[:MOST_TABLE_ROWS]],
            "left_out": left_out + max(0, len(rows) - MOST_TABLE_ROWS),
        },
        **{
            axis: {"title": {"text": safe(text)}}
            for kind, text in {"x": x, "y": y}.items()
            if text is not None
            for axis in axes(whole["layout"], kind)
        },
    )
    return figure


def _of(trace: Any, name: str) -> Any:
    """A value of a trace, whether it is Plotly's or plain."""
    return trace.get(name) if isinstance(trace, dict) else trace[name]


def payload(figure: go.Figure) -> dict[str, Any]:
    """A figure for a page: ``data``, ``layout`` without its look, and the ``words`` to translate.

    ``words``: pairs of a path into the two others (keys and indices) and the text as its key and
    values (:func:`viz.svg.told`); every other text is a visitor's, or the same in each language.
    """
    whole = figure.drawn() if isinstance(figure, Draft) else figure.to_dict()
    layout = {key: value for key, value in whole["layout"].items() if key != "template"}
    found = {"data": [dict(trace) for trace in whole["data"]], "layout": layout}
    return {**found, "words": wordings(found)}


def wordings(value: Any) -> list[Any]:
    """Every text of ours in plain values: pairs of its path (keys and indices) and what is told."""
    return [[path, told(text)] for path, text in _wordings(value, ())]


def _wordings(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[list[str | int], Wording]]:
    if isinstance(value, Wording):
        yield list(path), value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _wordings(each, (*path, key))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _wordings(each, (*path, index))
