"""Attention as charts: maps of numbers, what a token is made of, what a prediction needs, q·k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from viz.attention import strongest
from viz.encoding import Weights, block_maximum, check_weights
from viz.figure import LIGHT, apart, colour, diverging, finish, plain
from viz.svg import Wording, shorten
from viz.words import percent, quote

Values = NDArray[np.floating]

MOST_LETTERS = 14
"""Of a token beside a map."""
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
FLOW_ROOM = 0.15
"""Part of the flow's own range that is left free at its ends."""


def label(text: str) -> str:
    """A token beside a picture: cut, and safe."""
    return plain(shorten(text, lambda each: len(each) <= MOST_LETTERS))


def labels(texts: Sequence[str]) -> list[str]:
    """Rows or columns of a map: tokens, each apart from those that look the same, or wordings."""
    tokens = apart([label(text) for text in texts])
    pairs = zip(texts, tokens, strict=True)
    return [text if isinstance(text, Wording) else token for text, token in pairs]


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
        return max(float(np.nanmax(np.abs(self.values), initial=0)), 1e-9)


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
    return draw(
        Map(title=title, values=weights, rows=labels, columns=labels, top=1.0, share=True),
        note=Wording("Rows look at columns; numbers are percent."),
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
        hovertemplate=_hover(found.says),
        hoverongaps=False,
        **_printed(found, drawn),
    )
    figure = go.Figure(heatmap)
    figure.update_xaxes(type="category", showgrid=False, side="top", tickangle=-90)
    figure.update_yaxes(type="category", showgrid=False, autorange="reversed")
    height = 90 + 8 * min(MOST_LETTERS, max(map(len, columns), default=0))
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


def _hover(says: str) -> str:
    if isinstance(says, Wording):
        return Wording("{0}{1}", says, "<extra></extra>")
    return f"{says}<extra></extra>"


def _printed(found: Map, drawn: Values) -> dict[str, Any]:
    """The numbers in the cells of a small map, without those that would read as zero."""
    if max(drawn.shape) > NUMBERED:
        return {}
    form = "{:.0f}" if found.share or found.highest >= 10 else "{:.2f}"
    least = 0.5 if found.share else 0.005 * max(1.0, found.highest)
    text = [
        ["" if np.isnan(each) or abs(each) < least else _signed(form.format(each)) for each in row]
        for row in drawn
    ]
    return {"text": text, "texttemplate": "%{text}", "textfont": {"size": 11}}


def _signed(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


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
    links = strongest(found.values, MOST_LINKS)
    head = [Wording("from"), Wording("to"), found.title]
    return head, [
        [
            f"{found.rows[link.source]} ({link.source})",
            f"{found.columns[link.target]} ({link.target})",
            float(f"{link.weight:.6g}"),
        ]
        for link in links
    ]


# --- what a token is made of ----------------------------------------------------------------------


def ways(
    names: Sequence[str], shares: Values, labels: Sequence[str], *, title: str, flow: bool
) -> go.Figure:
    """Several answers to what a token is made of, one above the other.

    Args:
        names: Of the ways, N.
        shares: [N, L], each in [0, 1].
        labels: L tokens.
        title: What is asked.
        flow: Whether the last way is the flow. Each of its numbers is a problem of its own, and
            all are large: it has an axis that begins at the smallest, and marks instead of bars,
            whose lengths would have to begin at zero.
    """
    count = len(names)
    figure = make_subplots(rows=count, shared_xaxes=True, vertical_spacing=0.09)
    places = list(range(len(labels)))
    for number, (name, row) in enumerate(zip(names, 100 * shares, strict=True), 1):
        common: dict[str, Any] = {
            "x": places,
            "y": row.astype(np.float32),
            "customdata": [label(text) for text in labels],
            "hovertemplate": _hover(
                Wording(
                    "{0}: {1} of it comes from {2}",
                    name,
                    "%{y:.3~g}\N{NO-BREAK SPACE}%",
                    "“%{customdata}”",
                )
            ),
            "showlegend": False,
        }
        if flow and number == count:
            low, high = float(row.min()), float(row.max())
            room = FLOW_ROOM * max(high - low, 1)
            figure.add_scatter(
                **common,
                mode="markers",
                marker={"color": colour("hidden"), "size": 11},
                row=number,
                col=1,
            )
            figure.update_yaxes(range=[low - room, high + room], row=number, col=1)
        else:
            figure.add_bar(**common, marker={"color": colour("model")}, row=number, col=1)
            figure.update_yaxes(rangemode="tozero", row=number, col=1)
        figure.update_yaxes(
            title={"text": name}, ticksuffix="\N{NO-BREAK SPACE}%", nticks=4, row=number, col=1
        )
    figure.update_xaxes(showgrid=False, range=[-0.6, len(labels) - 0.4])
    figure.update_xaxes(
        tickmode="array",
        tickvals=places if len(places) <= 48 else places[:: len(places) // 24],
        ticktext=[
            label(text) for text in (labels if len(places) <= 48 else labels[:: len(places) // 24])
        ],
        row=count,
        col=1,
    )
    finish(
        figure,
        "",
        alt=title,
        columns=[Wording("Token"), *names],
        rows=[
            [text, *(float(f"{each:.6g}") for each in column)]
            for text, column in zip(labels, shares.T.tolist(), strict=True)
        ],
        height=150 * count + 40,
        revision=f"{title} {list(labels)}",
    )
    figure.update_layout(margin={"t": 12})
    return figure


# --- heads switched off ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Chance:
    """What a model puts into a gap."""

    word: str
    before: float
    """With all heads."""
    after: float
    """Without some."""
    own: bool
    """Whether it is the word that is watched."""


def chances(found: Sequence[Chance], *, some_off: bool) -> go.Figure:
    """Words of a gap with all heads and, where some are off, without them.

    Raises:
        ValueError: There is no word.
    """
    if not found:
        raise ValueError("there is nothing to draw")
    words = apart([label(each.word) for each in found])
    shown = [
        f"<b>{word}</b>" if each.own else word for word, each in zip(words, found, strict=True)
    ]
    sides = [(Wording("all heads"), [each.before for each in found], "model")]
    if some_off:
        sides.append((Wording("some off"), [each.after for each in found], "hidden"))
    figure = go.Figure()
    for name, shares, tone in sides:
        figure.add_bar(
            x=[100 * share for share in shares],
            y=shown,
            orientation="h",
            name=name,
            marker={"color": colour(tone)},
            text=[percent(share) for share in shares],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.4~g}\N{NO-BREAK SPACE}%<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_xaxes(rangemode="tozero", ticksuffix="\N{NO-BREAK SPACE}%")
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    target = next((each for each in found if each.own), found[0])
    return finish(
        figure,
        "",
        alt=Wording("{0}: {1}", quote(target.word), percent(target.before)),
        columns=[Wording("word"), *(name for name, _, _ in sides)],
        rows=[
            [each.word, *([each.before, each.after] if some_off else [each.before])]
            for each in found
        ],
        height=100 + (44 if some_off else 30) * len(found),
        revision=str([each.word for each in found]),
        x=Wording("Probability"),
    )


# --- one query and its keys -----------------------------------------------------------------------


def products(
    values: Values, shares: Sequence[float], keys: Sequence[str], *, title: str
) -> go.Figure:
    """One query times every key, dimension by dimension, and the share that each key gets.

    Args:
        values: [K, d], products of the query with each key.
        shares: K, what softmax makes of their sums.
        keys: K tokens.
        title: Which query it is.
    """
    figure = make_subplots(
        cols=2, shared_yaxes=True, column_widths=[0.7, 0.3], horizontal_spacing=0.03
    )
    names = apart([label(text) for text in keys])
    top = max(float(np.abs(values).max(initial=0)), 1e-9)
    figure.add_heatmap(
        z=values.astype(np.float32),
        x=list(range(1, values.shape[1] + 1)),
        y=names,
        zmin=-top,
        zmax=top,
        colorscale=diverging(),
        showscale=False,
        ygap=3,
        hovertemplate=_hover(Wording("{0}, dimension {1}: {2}", "%{y}", "%{x}", "%{z:.3f}")),
        row=1,
        col=1,
    )
    figure.add_bar(
        x=[100 * share for share in shares],
        y=names,
        orientation="h",
        marker={"color": colour("model")},
        text=[percent(share) for share in shares],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{x:.3~g}\N{NO-BREAK SPACE}%<extra></extra>",
        showlegend=False,
        row=1,
        col=2,
    )
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, row=1, col=1)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, row=1, col=2)
    figure.update_xaxes(
        showgrid=False,
        title={"text": Wording("q \N{MULTIPLICATION SIGN} k in each dimension")},
        row=1,
        col=1,
    )
    room = 100 * max(shares, default=1.0)
    figure.update_xaxes(
        range=[0, 1.35 * room],
        showticklabels=False,
        showgrid=False,
        title={"text": Wording("softmax")},
        row=1,
        col=2,
    )
    finish(
        figure,
        "",
        alt=title,
        columns=[Wording("key"), *(str(n + 1) for n in range(values.shape[1]))],
        rows=[
            [key, *(float(f"{each:.6g}") for each in line)]
            for key, line in zip(keys, values.tolist(), strict=True)
        ],
        height=90 + 30 * len(keys),
        revision=f"{title} {list(keys)}",
    )
    figure.update_layout(margin={"t": 12})
    return figure
