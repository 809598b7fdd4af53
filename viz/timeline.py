"""A text masked epoch by epoch, as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Sequence

from viz.svg import INK, MONO, SOFT, clean, document, text_width, write

CELL, MARGIN, LEFT = 22, 16, 44
EMPTY = "#f0eee9"
FILLS = {"M": "#fdeadd", "R": "#f7e7f0", "K": "#e2eef7"}
INKS = {"M": "#a23f05", "R": "#8a3468", "K": "#0b5a8c"}


def timeline_svg(epochs: Sequence[str], names: Sequence[str], *, title: str) -> str:
    """Draw a row per epoch; M is [MASK], R a random piece, K a piece that is kept.

    Args:
        epochs: a letter per piece, "." for pieces that are not chosen.
        names: the pieces; texts may hold anything, they are escaped.
        title: the line above the picture.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no epoch, or one has not a letter per piece.
    """
    if not epochs or any(len(epoch) != len(names) for epoch in epochs):
        raise ValueError("every epoch needs one letter per piece, and there must be an epoch")
    head = max(text_width(name) for name in names) + 12
    top = 40 + head
    width = max(360, round(2 * MARGIN + LEFT + CELL * len(names)))
    height = round(top + CELL * len(epochs) + MARGIN)
    parts = [write(MARGIN, 26, title, size=15)]
    for n, name in enumerate(names):
        x = MARGIN + LEFT + CELL * n + 15
        parts.append(
            f'<text x="{x}" y="{top - 6:.1f}" transform="rotate(-90 {x} {top - 6:.1f})" '
            f'font-family="{MONO}" font-size="13" fill="{INK}">{clean(name)}</text>'
        )
    for row, epoch in enumerate(epochs):
        y = top + CELL * row
        parts.append(
            f'<text x="{MARGIN + LEFT - 8}" y="{y + 15:.1f}" text-anchor="end" '
            f'font-family="{MONO}" font-size="12" fill="{SOFT}">{row + 1}</text>'
        )
        for n, case in enumerate(epoch):
            x = MARGIN + LEFT + CELL * n
            parts.append(
                f'<rect x="{x + 1}" y="{y + 1:.1f}" width="{CELL - 2}" height="{CELL - 2}" '
                f'rx="3" fill="{FILLS.get(case, EMPTY)}"/>'
            )
            if case in INKS:
                parts.append(
                    f'<text x="{x + CELL / 2}" y="{y + 15:.1f}" text-anchor="middle" '
                    f'font-family="{MONO}" font-size="12" fill="{INKS[case]}">{case}</text>'
                )
    return document(width, height, title, parts)
