"""Aligned maps of the terms of attention scores, as a self-contained SVG; what they change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.check import one_each, something
from viz.figure import Chart, apart, finish, plain, tick
from viz.figure import colour as tone
from viz.svg import (
    LINE,
    MONO,
    SOFT,
    Wording,
    caption,
    count_words,
    document,
    shorten,
    text_width,
    write,
)

CELL = 18
MARGIN = 16
GAP = 28
PER_LINE = 3
MOST_LABEL = 110.0
LABEL_SIZE = 11
NEGATIVE, ZERO, POSITIVE = (196, 80, 10), (250, 248, 244), (15, 92, 99)
NOT_SEEN = "#d8d3c8"


@dataclass(frozen=True, kw_only=True)
class TermMap:
    """One map."""

    title: str
    values: Sequence[Sequence[float]]
    """[Q, K]; NaN = the query may not see the key."""
    top: float
    """The value that has the darkest colour, above 0; -top has the other darkest."""
    share: bool = False
    """Values are shares in 0..1, or changes of them, drawn by their square root."""


def colour(value: float, top: float, *, share: bool = False) -> str:
    """Colour of a value: orange below zero, paper at zero, teal above; grey for NaN."""
    if math.isnan(value):
        return NOT_SEEN
    at = max(-1.0, min(1.0, value / top)) if top > 0 else 0.0
    if share:
        at = math.copysign(math.sqrt(abs(at)), at)
    end = POSITIVE if at >= 0 else NEGATIVE
    mixed = (round(z + (e - z) * abs(at)) for z, e in zip(ZERO, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def maps_svg(
    maps: Sequence[TermMap], *, rows: Sequence[str], columns: Sequence[str], title: str
) -> str:
    """Draw maps of equal shape, three in a line, with their true numbers as tooltips.

    Args:
        maps: in reading order.
        rows: label of each query; texts may hold anything, they are escaped.
        columns: label of each key.
        title: the line above the picture.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no map, or one has another shape than the labels.
    """
    shape = (len(rows), len(columns))
    if not maps or not rows or not columns:
        raise ValueError("there is nothing to draw")
    for each in maps:
        if (len(each.values), *{len(row) for row in each.values}) != shape:
            raise ValueError(f"the map {each.title!r} has not one value per row and column")
    label = min(MOST_LABEL, 8 + max(text_width(text) for text in (*rows, *columns)))
    wide, high = label + CELL * shape[1], label + CELL * shape[0] + 24
    width = round(2 * MARGIN + min(PER_LINE, len(maps)) * (wide + GAP) - GAP)
    width = max(width, round(2 * MARGIN + 1.3 * text_width(title)))
    parts = [write(MARGIN, 26, title, size=15)]
    for number, each in enumerate(maps):
        x = MARGIN + (number % PER_LINE) * (wide + GAP)
        y = 44 + (number // PER_LINE) * (high + GAP)
        parts += _map(each, rows, columns, x, y, label)
    height = round(44 + math.ceil(len(maps) / PER_LINE) * (high + GAP))
    return document(width, height, title, parts)


def _map(
    each: TermMap,
    rows: Sequence[str],
    columns: Sequence[str],
    x: float,
    y: float,
    label: float,
) -> list[str]:
    left, top = x + label, y + 24 + label
    parts = [write(x, y + 12, each.title, size=13)]
    for c, name in enumerate(columns):
        at = left + CELL * (c + 0.5) + 4
        text = write(at, top - 5, _cut(name), size=LABEL_SIZE, family=MONO, fill=SOFT)
        parts.append(f'<g transform="rotate(-90 {at:.1f} {top - 5:.1f})">{text}</g>')
    for r, name in enumerate(rows):
        middle = top + CELL * (r + 0.5) + 4
        text = write(
            left - 5, middle, _cut(name), size=LABEL_SIZE, family=MONO, fill=SOFT, anchor="end"
        )
        parts.append(text)
        for c, value in enumerate(each.values[r]):
            # An arrow needs no translation: thousands of cells stay without a mark.
            said = f"{name} → {columns[c]}: {value:.4g}"
            if math.isnan(value):
                said = Wording("{0} → {1}: {2}", name, columns[c], Wording("not seen"))
            parts.append(
                f'<rect x="{left + CELL * c:.1f}" y="{top + CELL * r:.1f}" width="{CELL - 1}" '
                f'height="{CELL - 1}" fill="{colour(value, each.top, share=each.share)}">'
                f"{caption(said)}</rect>"
            )
    frame = f'width="{CELL * len(columns)}" height="{CELL * len(rows)}"'
    parts.append(
        f'<rect x="{left:.1f}" y="{top:.1f}" {frame} fill="none" stroke="{LINE}"/>',
    )
    return parts


def _cut(text: str) -> str:
    return shorten(text, lambda each: len(each) <= 14)


@dataclass(frozen=True, kw_only=True)
class Chance:
    """A word, or a token, under several conditions."""

    text: str
    chances: Sequence[float]
    ranks: Sequence[int] = ()
    own: bool = False
    """It is the word of the text."""


TONES = ("model", "hidden", "random")
MOST_BARS = 40


def chances(found: Sequence[Chance], names: Sequence[str], *, title: str) -> go.Figure:
    """Probabilities of words under several conditions, a bar each; the first at the top.

    Args:
        found: At most ``MOST_BARS`` are drawn, the table has all.
        names: What the conditions are called.
        title: What is shown.

    Raises:
        ValueError: There is nothing to draw.
    """
    something("word", found)
    if len(names) > len(TONES):
        raise ValueError(f"there are {len(names)} conditions; give {len(TONES)} at most")
    ranked = bool(found[0].ranks)
    for each in found:
        one_each(len(names), "condition", **{each.text: each.chances})
        if ranked:
            one_each(len(names), "condition", **{f"ranks of {each.text}": each.ranks})
    drawn = found[:MOST_BARS]
    labels = apart([f"<b>{tick(e.text)}</b>" if e.own else tick(e.text) for e in drawn])
    figure = Chart()
    for number, name in enumerate(names):
        figure.add_bar(
            x=[100 * each.chances[number] for each in drawn],
            y=labels,
            orientation="h",
            name=name,
            marker={"color": tone(TONES[number])},
            hovertext=[plain(each.text) for each in drawn],
            hovertemplate="%{hovertext}: %{x:.4g} %<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_xaxes(ticksuffix=" %", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", type="category", showgrid=False)
    rows: list[list[str | int | float | None]] = []
    for each in found:
        row: list[str | int | float | None] = [each.text]
        for number, chance in enumerate(each.chances):
            row += [chance, each.ranks[number]] if ranked else [chance]
        rows.append(row)
    rank = [Wording("Rank")] if ranked else []
    return finish(
        figure,
        title,
        alt=Wording("Probability of {0}: {1}", count_words(len(found)), found[0].text),
        columns=[Wording("Word"), *(text for name in names for text in (name, *rank))],
        rows=rows,
        height=130 + (12 + 12 * len(names)) * len(drawn),
        revision=f"{len(found)} {len(names)}",
    )
