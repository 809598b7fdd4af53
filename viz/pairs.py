"""Probabilities of two texts by topic and order, as a self-contained SVG; scores over many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figure import colour, finish, plain, series
from viz.svg import LINE, MONO, SOFT, TRACK, Wording, document, shorten, text_width, write
from viz.words import percent

WIDTH = 620
MARGIN = 16
LABEL = 120
CELL, TALL = 220, 74
BAR = 180
HEAD = 62
NOTE = 20
LETTERS = 84
"""Letters of a note that fit on its line."""
QUIET, LOUD = "#0f5c63", "#c4500a"


@dataclass(frozen=True, kw_only=True)
class Square:
    """One 2 x 2."""

    title: str
    chances: Sequence[float]
    """Four probabilities of "yes", row by row."""


def squares_svg(
    squares: Sequence[Square],
    *,
    rows: tuple[str, str],
    columns: tuple[str, str],
    title: str,
    notes: Sequence[str] = (),
) -> str:
    """Draw each 2 x 2 under the one before, with a bar in every cell.

    Args:
        squares: from top to bottom; texts may hold anything, they are escaped.
        rows: names of the two rows.
        columns: names of the two columns.
        title: the line above the picture.
        notes: lines under it; long ones are cut.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no square, or one has not four probabilities within 0 to 1.
    """
    if not squares:
        raise ValueError("there is nothing to draw")
    parts = [write(MARGIN, 28, title, size=16)]
    y = 46.0
    for square in squares:
        if len(square.chances) != 4 or not all(0 <= chance <= 1 for chance in square.chances):
            raise ValueError(f"{square.title!r} needs four probabilities within 0 to 1")
        parts.append(write(MARGIN, y + 20, square.title, size=14))
        for n, name in enumerate(columns):
            parts.append(write(MARGIN + LABEL + n * CELL + 12, y + 50, name, fill=SOFT))
        y += HEAD
        for n, name in enumerate(rows):
            parts.append(write(MARGIN, y + 30, name))
            for m in range(2):
                parts += _cell(square.chances[2 * n + m], MARGIN + LABEL + m * CELL, y)
            y += TALL
        y += 18
    room = text_width("n" * LETTERS)
    for note in notes:
        short = shorten(note, lambda each: text_width(each) <= room)
        parts.append(write(MARGIN, y + 12, short, size=12, fill=SOFT))
        y += NOTE
    height = round(y + MARGIN)
    return document(WIDTH, height, title, parts)


def _cell(chance: float, x: float, y: float) -> list[str]:
    fill = QUIET if chance >= 0.5 else LOUD
    return [
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{CELL}" height="{TALL}" fill="none" '
        f'stroke="{LINE}"/>',
        write(x + 12, y + 30, percent(chance), family=MONO, size=16),
        f'<rect x="{x + 12:.1f}" y="{y + 44:.1f}" width="{BAR}" height="12" rx="3" '
        f'fill="{TRACK}"/>',
        f'<rect x="{x + 12:.1f}" y="{y + 44:.1f}" width="{BAR * chance:.2f}" height="12" rx="3" '
        f'fill="{fill}"/>',
        f'<path d="M{x + 12 + BAR / 2:.1f} {y + 41:.1f}v18" stroke="{SOFT}" '
        'stroke-dasharray="3 2"/>',
    ]


@dataclass(frozen=True, kw_only=True)
class Count:
    """How often something was so, of all examples."""

    of_all: float
    """Ties count half."""
    said: str
    """The number as people read it."""
    right: str = ""
    """What would be right; "" where that is in the picture."""


def scores(
    judges: Mapping[str, Sequence[Count]], cases: Sequence[str], *, examples: int, title: str
) -> go.Figure:
    """A group of bars for each case: how often each judge says so.

    Args:
        judges: A count for each case, by who judges.
        cases: What is judged.
        examples: How many of each case.
        title: What is counted.

    Raises:
        ValueError: A judge has not a count for each case.
    """
    figure = go.Figure()
    rights = any(count.right for counts in judges.values() for count in counts)
    for index, (name, counts) in enumerate(judges.items()):
        if len(counts) != len(cases):
            raise ValueError(f"{name} needs a count for each of {len(cases)} cases")
        figure.add_bar(
            x=list(cases),
            y=[count.of_all for count in counts],
            name=name if isinstance(name, Wording) else plain(name),
            marker={"color": series(index)},
            customdata=[[count.said, count.right] for count in counts],
            hovertemplate="%{fullData.name}<br>%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            showlegend=True,
        )
    figure.add_hline(examples / 2, line={"color": colour("grey"), "dash": "dot", "width": 1})
    figure.update_layout(barmode="group")
    figure.update_xaxes(type="category")
    figure.update_yaxes(range=[0, examples])
    rows: list[list[str | int | float | None]] = [
        [name, case, count.of_all, count.said, *([count.right] if rights else [])]
        for name, counts in judges.items()
        for case, count in zip(cases, counts, strict=True)
    ]
    return finish(
        figure,
        title,
        alt=Wording("{0} examples, each judged by {1}.", examples, ", ".join(judges)),
        columns=[
            Wording("Judge"),
            Wording("Pair"),
            Wording("Times"),
            Wording("In words"),
            *([Wording("What would be right")] if rights else []),
        ],
        rows=rows,
        height=340,
        revision=str(title),
        y=Wording("Times of {0}", examples),
    )
