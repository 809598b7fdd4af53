"""A text as it comes out of [MASK]s, a row for each step, as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viz.svg import INK, MONO, SERIF, SOFT, Wording, document, text_width, write
from viz.words import percent

MARGIN = 16
NUMBER = 34
LEAST = 30
GAP = 4
TALL = 38
FILLS = {"new": "#d5e8e6", "again": "#fbe3d2"}
HIDDEN = "#c4500a"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What stands at a place after a step."""

    text: str
    """"" = it is hidden."""
    kind: str
    """``given``, ``hidden``, ``again`` (hidden again), ``new`` (put in by this step) or ``old``."""
    chance: float | None = None
    """With which it was put in."""


def steps_svg(rows: Sequence[Sequence[Cell]], *, title: str) -> str:
    """Draw the text before the first step and after each one.

    Args:
        rows: one for each step, each with a cell for every place; texts may hold anything, they are
            escaped.
        title: the line above the picture.

    Returns:
        An SVG document.

    Raises:
        ValueError: there is no row, or rows are of different lengths.
    """
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        raise ValueError("steps are rows of one length, with a cell at least")
    columns = zip(*rows, strict=True)
    widths = [max([LEAST, *map(_width, each)]) for each in columns]
    note = Wording("Filled: put in by this step, with its probability. Dot: hidden. Bold: given.")
    parts = [
        write(MARGIN, 26, title, size=15),
        write(MARGIN, 46, note, size=12, fill=SOFT),
    ]
    y = 60.0
    for number, row in enumerate(rows):
        parts.append(write(MARGIN, y + 19, str(number), family=MONO, size=12, fill=SOFT))
        x = float(MARGIN + NUMBER)
        for cell, width in zip(row, widths, strict=True):
            parts += _cell(cell, x, y, width)
            x += width + GAP
        y += TALL + GAP
    across = MARGIN + NUMBER + sum(widths) + GAP * len(widths) + MARGIN
    least = 2 * MARGIN + 0.85 * max(text_width(title), text_width(note))
    return document(round(max(across, least)), round(y + MARGIN), title, parts)


def _cell(cell: Cell, x: float, y: float, width: float) -> list[str]:
    middle = x + width / 2
    parts = []
    if cell.kind in FILLS:
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{TALL}" rx="4" '
            f'fill="{FILLS[cell.kind]}"/>'
        )
    bold = cell.kind == "given"
    ink = HIDDEN if not cell.text else INK if cell.kind in ("given", "new") else SOFT
    text = cell.text or "·"
    parts.append(
        write(middle, y + 18, text, anchor="middle", family=SERIF, size=15, fill=ink, bold=bold)
    )
    if cell.kind == "new" and cell.chance is not None:
        told = _told(cell.chance)
        parts.append(write(middle, y + 32, told, anchor="middle", family=MONO, size=10, fill=SOFT))
    return parts


def _width(cell: Cell) -> float:
    told = _told(cell.chance) if cell.kind == "new" and cell.chance is not None else ""
    return max(text_width(cell.text) + 12, 0.75 * text_width(told))


def _told(chance: float) -> str:
    return percent(chance).replace("under ", "<")
