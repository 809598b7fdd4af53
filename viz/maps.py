"""Attention as maps of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.attention import strongest
from viz.encoding import Weights, block_maximum, check_weights
from viz.figure import LIGHT, Chart, apart, diverging, finish, plain, safe
from viz.svg import LETTER, Wording, shorten, text_width

Values = NDArray[np.floating]

MOST_LETTERS = 14
"""Of a token beside a map; Chinese characters are nearly as wide as two."""
NUMBERED = 16
"""Maps of up to so many rows and columns have their numbers printed."""
MOST_SIDE = 256
"""Rows and columns that are drawn; of larger maps the strongest of each block."""
WHOLE_TABLE = 64
"""Up to so many rows the table is the map; above it lists its strongest links."""
MOST_LINKS = 1_000
LOOKS = Wording("{0} looks at {1}: {2}", "“%{y}”", "“%{x}”", "%{z:.3~g}\N{NO-BREAK SPACE}%")
GIVES = Wording("{0} gives {1} a vector of length {2}", "“%{x}”", "“%{y}”", "%{z:.3f}")
MADE_OF = Wording("{0}: {1} of it comes from {2}", "%{y}", "%{z:.3~g}\N{NO-BREAK SPACE}%", "“%{x}”")


def label(text: str) -> str:
    """A token beside a picture: cut, and safe."""
    return plain(shorten(text, lambda each: text_width(each) <= MOST_LETTERS * LETTER))


def labels(texts: Sequence[str]) -> list[str]:
    """Rows or columns of a map: tokens, each apart from those that look the same, or wordings."""
    tokens = apart([label(text) for text in texts])
    pairs = zip(texts, tokens, strict=True)
    return [safe(text) if isinstance(text, Wording) else token for text, token in pairs]


def square_root() -> list[list[Any]]:
    """Colours from nothing to all that grow with the square root of a share."""
    return [[(step / 4) ** 2, LIGHT[f"heat_{step}"]] for step in range(5)]


@dataclass(frozen=True, kw_only=True)
class Map:
    """Numbers between two lists of words."""

    title: str
    values: Values
    """[R, C]; NaN = nothing there."""
    rows: Sequence[str]
    columns: Sequence[str]
    says: str = LOOKS
    """What is told of a cell, with Plotly's names of its place (``%{x}``) and its number."""
    signed: bool = False
    """Values may be below zero; colours then run both ways from it."""
    top: float | None = None
    """Value of the strongest colour; None = the largest one."""
    share: bool = False
    """Values are shares: drawn in percent."""
    corner: str = Wording("from \\ to")

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.rows), len(self.columns)):
            raise ValueError(
                f"values are {self.values.shape}, labels {len(self.rows)} x {len(self.columns)}"
            )

    @property
    def square(self) -> bool:
        """Whether its rows are its columns, as of tokens that look at each other."""
        return list(self.rows) == list(self.columns)

    @property
    def highest(self) -> float:
        """Value of the strongest colour, above zero."""
        if self.top is not None:
            return self.top
        finite = self.values[np.isfinite(self.values)]
        return max(float(np.abs(finite).max(initial=0)), 1e-9)


def attention_map(weights: Weights, labels: Sequence[str], *, title: str = "") -> go.Figure:
    """One head, or several as one, as a map: rows look at columns.

    Args:
        weights: [L, L], row = the token that looks.
        labels: L words; they may hold anything.
        title: What stands above.

    Raises:
        ValueError: Labels and weights do not fit, or a weight is not in [0, 1].
    """
    check_weights(weights)
    note = Wording("Rows look at columns; numbers are percent.")
    return draw(
        Map(title=title or note, values=weights, rows=labels, columns=labels, top=1.0, share=True),
        note=Wording("{0}. {1}", title, note) if title else note,
    )


def draw(found: Map, *, note: str = "") -> go.Figure:
    """A map as a chart; ``note`` stands above its columns instead of the map's title."""
    values, rows, columns = _shrunk(found)
    drawn = 100 * values if found.share else values
    top = 100 * found.highest if found.share else found.highest
    heatmap = go.Heatmap(
        z=drawn.astype(np.float32),
        x=labels(columns),
        y=labels(rows),
        zmin=-top if found.signed else 0,
        zmax=top,
        colorscale=diverging() if found.signed else square_root(),
        showscale=False,
        hovertemplate=hover(found.says),
        hoverongaps=False,
        **_printed(found, drawn),
    )
    figure = Chart(heatmap)
    figure.update_xaxes(type="category", showgrid=False, side="top", tickangle=-90)
    figure.update_yaxes(type="category", showgrid=False, autorange="reversed")
    widest = max(map(text_width, columns), default=0) / LETTER
    height = 90 + round(8 * min(MOST_LETTERS, widest))
    if found.square:
        figure.update_xaxes(constrain="domain")
        figure.update_yaxes(scaleanchor="x", constrain="domain")
        height = 440
    else:
        height += 30 * min(len(rows), 16)
    head, cells = _table(found)
    finish(
        figure,
        "",
        alt=found.title,
        columns=head,
        rows=cells,
        height=height,
        revision=f"{found.title} {list(rows)} {list(columns)}",
        x=note or found.title,
    )
    figure.update_layout(margin={"t": 12})
    return figure


def hover(says: str) -> str:
    """What is told of a mark, without the box that Plotly puts a trace's name into."""
    if isinstance(says, Wording):
        return Wording("{0}{1}", says, "<extra></extra>")
    return f"{says}<extra></extra>"


def _printed(found: Map, drawn: Values) -> dict[str, Any]:
    """The numbers in the cells of a small map, without those that would read as zero."""
    if max(drawn.shape) > NUMBERED:
        return {}
    entire = found.share or found.highest >= 10
    form = "{:.0f}" if entire else "{:.2f}"
    faint = 0 if found.share else 0.005 * max(1.0, found.highest)
    least = max(faint, 0.5 if entire else 0)

    def written(number: float) -> str:
        if np.isnan(number) or abs(number) <= least:
            return ""
        nearly = found.share and 99.5 <= number < 99.95  # not "100"
        return ("{:.1f}" if nearly else form).format(number).replace("-", "\N{MINUS SIGN}")

    text = [[written(each) for each in row] for row in drawn]
    return {"text": text, "texttemplate": "%{text}", "textfont": {"size": 11}}


def _shrunk(found: Map) -> tuple[Values, list[str], list[str]]:
    """Values and labels that are drawn."""
    rows, columns = list(found.rows), list(found.columns)
    if max(found.values.shape) <= MOST_SIDE or found.signed:
        return found.values, rows, columns
    small = block_maximum(found.values, MOST_SIDE)
    rows, columns = (
        [labels[at * len(labels) // size] for at in range(size)]
        for labels, size in zip((rows, columns), small.shape, strict=True)
    )
    return small, rows, columns


def _table(found: Map) -> tuple[list[str], list[list[Any]]]:
    """Headings and rows of the table twin."""
    if max(found.values.shape) <= WHOLE_TABLE or not found.square:
        cells = [
            [text, *(None if np.isnan(value) else float(f"{value:.6g}") for value in line)]
            for text, line in zip(found.rows, found.values.tolist(), strict=True)
        ]
        return [found.corner, *found.columns], cells
    links = strongest(np.nan_to_num(np.abs(found.values), nan=-1.0), MOST_LINKS)
    head = [Wording("from"), Wording("to"), found.title]
    return head, [
        [
            f"{found.rows[link.source]} ({link.source})",
            f"{found.columns[link.target]} ({link.target})",
            float(f"{found.values[link.source, link.target]:.6g}"),
        ]
        for link in links
        if link.weight >= 0
    ]
