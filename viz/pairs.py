"""Probabilities of two texts by topic and order, as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viz.svg import LINE, MONO, SOFT, TRACK, document, shorten, text_width, write
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
