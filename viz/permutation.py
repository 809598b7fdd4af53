"""Which position may see which, as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viz.svg import INK, LINE, MONO, PAPER, SOFT, document, text_width, write

CELL = 22
MARGIN = 16
GAP = 44
HEAD = 30
SEEN, HIDDEN = "#0f5c63", "#c4500a"


@dataclass(frozen=True, kw_only=True)
class Mask:
    """One matrix."""

    title: str
    rows: Sequence[int]
    """Position of each row."""
    seen: Sequence[Sequence[bool]]
    """[rows, L], whether the row may see the column."""
    hidden: int | None = None
    """Position that is marked, in the colour of what is hidden."""


def masks_svg(masks: Sequence[Mask], names: Sequence[str], *, title: str, note: str = "") -> str:
    """Draw matrices one under the other; every row has a ring at its own place.

    Args:
        masks: from top to bottom.
        names: piece at each position; texts may hold anything, they are escaped.
        title: the line above the picture.
        note: a line below it, such as what the signs mean.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no mask, or a row has not one cell per name.
    """
    if not masks or any(len(row) != len(names) for mask in masks for row in mask.seen):
        raise ValueError("every row needs one cell per piece, and there must be a mask")
    label = 40 + max(text_width(name) for name in names)
    width = round(2 * MARGIN + label + CELL * len(names))
    parts = [write(MARGIN, 26, title, size=15)]
    y = 46.0
    if note:
        parts.append(write(MARGIN, 46, note, size=12, fill=SOFT))
        width = max(width, round(2 * MARGIN + 0.8 * text_width(note)))
        y += 16
    for mask in masks:
        parts.append(write(MARGIN, y + 16, mask.title, fill=SOFT))
        y += HEAD + 14
        parts += _matrix(mask, names, MARGIN + label, y)
        y += CELL * len(mask.rows) + GAP
    height = round(y)
    return document(width, height, title, parts)


def _matrix(mask: Mask, names: Sequence[str], x: float, y: float) -> list[str]:
    parts = []
    for n in range(len(names)):
        ink, bold = (HIDDEN, True) if n == mask.hidden else (SOFT, False)
        centre = x + CELL * (n + 0.5)
        parts.append(write(centre, y - 6, str(n), anchor="middle", size=11, fill=ink, bold=bold))
    for n, (row, seen) in enumerate(zip(mask.rows, mask.seen, strict=True)):
        top = y + CELL * n
        name = f"{row} {names[row]}"
        ink, bold = (HIDDEN, True) if row == mask.hidden else (INK, False)
        label = write(x - 8, top + 16, name, anchor="end", family=MONO, fill=ink, bold=bold)
        parts.append(label)
        for column, flag in enumerate(seen):
            left = x + CELL * column
            parts.append(
                f'<rect x="{left + 1:.1f}" y="{top + 1:.1f}" width="{CELL - 2}" '
                f'height="{CELL - 2}" rx="3" fill="{SEEN if flag else PAPER}" stroke="{LINE}"/>'
            )
            if column == row:
                middle = f'cx="{left + CELL / 2:.1f}" cy="{top + CELL / 2:.1f}"'
                ring = PAPER if flag else SEEN
                parts.append(
                    f'<circle {middle} r="5" fill="none" stroke="{ring}" stroke-width="2"/>'
                )
    return parts
