"""A hidden span between its boundary tokens, as a self-contained SVG; lengths of spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import plotly.graph_objects as go

from viz.figure import colour, finish, series
from viz.svg import LINE, MONO, PAPER, SOFT, TRACK, Wording, document, text_width, write
from viz.words import percent

MARGIN = 16
GAP = 10
LEAST = 96
BOX_TOP, BOX = 58, 30
PLACE_TOP = 168
BAR_TOP, BAR, TALL = 204, 18, 70
HEIGHT = 334
EDGE, HIDDEN, HIDDEN_SOFT, EDGE_SOFT = "#0f5c63", "#c4500a", "#fdeadd", "#dbeae8"
_text = partial(write, anchor="middle")


@dataclass(frozen=True, kw_only=True)
class SpanColumn:
    """One piece of the sentence."""

    text: str
    seen: str = ""
    """What the model sees in its place; "" outside the span."""
    place: int | None = None
    """Inside the span, from 0; None outside."""
    boundary: bool = False
    """The boundary head reads this piece's state."""
    own: float | None = None
    """Probability of the piece by the masked-token head, 0 to 1."""
    told: float | None = None
    """Probability of the piece by the boundary head, 0 to 1."""


def span_svg(columns: Sequence[SpanColumn], *, title: str) -> str:
    """Draw lines from both boundary tokens to each place, and two bars under each place.

    Args:
        columns: neighbours of the span and its pieces, from left to right; texts are escaped.
        title: the line above the picture.

    Returns:
        An SVG document.

    Raises:
        ValueError: when no column lies in a span, or a probability is not within 0 to 1.
    """
    if all(column.place is None for column in columns):
        raise ValueError("no column lies in a span")
    middles, x = [], float(MARGIN)
    widths = [max(LEAST, text_width(c.text), text_width(c.seen)) + 12 for c in columns]
    for width in widths:
        middles.append(x + width / 2)
        x += width + GAP
    width = round(max(x - GAP + MARGIN, 2 * MARGIN + text_width(title)))
    edges = [m for m, column in zip(middles, columns, strict=True) if column.boundary]
    parts = [_text(MARGIN, 28, title, size=15, anchor="start")]
    for middle, column in zip(middles, columns, strict=True):
        if column.place is not None:
            parts += [
                f'<path d="M{edge:.1f} {BOX_TOP + BOX} L{middle:.1f} {PLACE_TOP - 13}" '
                f'stroke="{EDGE}" stroke-width="1.2" fill="none" opacity="0.7"/>'
                for edge in edges
            ]
    for middle, size, column in zip(middles, widths, columns, strict=True):
        parts += _token(column, middle, size)
        if column.place is not None:
            parts += _place(column, middle)
    parts.append(
        _text(
            MARGIN,
            HEIGHT - 12,
            Wording("Left bar: masked-token head. Right bar: span-boundary head."),
            size=12,
            fill=SOFT,
            anchor="start",
        )
    )
    return document(width, HEIGHT, title, parts)


def _token(column: SpanColumn, middle: float, width: float) -> list[str]:
    fill, stroke = PAPER, LINE
    if column.boundary:
        fill, stroke = EDGE_SOFT, EDGE
    elif column.place is not None:
        fill, stroke = HIDDEN_SOFT, HIDDEN
    shown = column.seen if column.place is not None else column.text
    dashes = ' stroke-dasharray="5 3"' if column.place is not None else ""
    parts = [
        f'<rect x="{middle - width / 2:.1f}" y="{BOX_TOP}" width="{width:.1f}" height="{BOX}" '
        f'rx="6" fill="{fill}" stroke="{stroke}"{dashes}/>',
        _text(middle, BOX_TOP + 20, shown, family=MONO, size=14),
    ]
    if column.place is not None:
        parts.append(_text(middle, BOX_TOP - 7, column.text, size=12, fill=SOFT))
    return parts


def _place(column: SpanColumn, middle: float) -> list[str]:
    parts = [
        f'<circle cx="{middle:.1f}" cy="{PLACE_TOP}" r="13" fill="{PAPER}" stroke="{EDGE}"/>',
        _text(middle, PLACE_TOP + 5, str(column.place), family=MONO, size=13),
    ]
    for chance, at, fill in ((column.own, middle - 25, HIDDEN), (column.told, middle + 25, EDGE)):
        if chance is None:
            continue
        if not 0 <= chance <= 1:
            raise ValueError(f"the chance of {column.text!r} is {chance}, not within 0 to 1")
        filled = TALL * chance
        number = percent(chance).replace("under ", "<")  # two numbers share a column
        parts += [
            _box(at, BAR_TOP, TALL, TRACK),
            _box(at, BAR_TOP + TALL - filled, filled, fill),
            _text(at, BAR_TOP + TALL + 16, number, family=MONO, size=10),
        ]
    return parts


def _box(middle: float, y: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{middle - BAR / 2:.1f}" y="{y:.1f}" width="{BAR}" height="{height:.2f}" rx="3" '
        f'fill="{fill}"/>'
    )


def lengths(
    shares: Mapping[str, Sequence[float]],
    *,
    last: str,
    title: str = "",
    means: Mapping[str, float | None] | None = None,
    hidden: Sequence[int] = (),
) -> go.Figure:
    """Shares of spans by their length in words: a bar for each law, draw or corpus.

    Args:
        shares: For lengths 1, 2, ...; names as they are told.
        last: What the last length is called: "10+".
        title: What is shown.
        means: Mean length under each name, for the table.
        hidden: How many runs of each length a visitor has hidden: marks above the first bars.
    """
    count = max(map(len, shares.values()))
    labels = [*map(str, range(1, count)), last]
    figure = go.Figure()
    for index, (name, values) in enumerate(shares.items()):
        figure.add_bar(
            x=labels[: len(values)],
            y=[100 * value for value in values],
            name=name,
            marker={"color": series(index)},
            hovertemplate="%{x}: %{y:.3g} %<extra>%{fullData.name}</extra>",
        )
    if any(hidden):
        first = list(next(iter(shares.values())))
        runs = [(n, times) for n, times in enumerate(hidden) if times]
        figure.add_scatter(
            x=[labels[n] for n, _ in runs],
            y=[100 * first[n] for n, _ in runs],
            mode="markers+text",
            marker={"symbol": "diamond", "size": 12, "color": colour("hidden")},
            text=[str(times) if times > 1 else "" for _, times in runs],
            textposition="top center",
            name=Wording("hidden above"),
            hoverinfo="skip",
        )
    figure.update_xaxes(type="category")
    figure.update_yaxes(ticksuffix=" %")
    rows: list[list[str | int | float | None]] = [
        [
            label,
            *(values[n] if n < len(values) else None for values in shares.values()),
            *([hidden[n]] if hidden else []),
        ]
        for n, label in enumerate(labels)
    ]
    if means is not None:
        rows.append([Wording("mean"), *(means[name] for name in shares), *([None] * bool(hidden))])
    return finish(
        figure,
        title,
        alt=Wording("Shares of spans by their length in words, 1 to {0}.", last),
        columns=[Wording("Words"), *shares, *([Wording("hidden above")] if hidden else [])],
        rows=rows,
        height=300,
        x=Wording("Length in words"),
    )
