"""Groups of horizontal bars with their numbers, as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viz.check import something
from viz.svg import INK, MONO, SOFT, TRACK, document, shorten, text_width, write

WIDTH = 720
"""Of a picture whose numbers are short."""
MARGIN = 16
LABEL = 250
"""Where the bars begin."""
FULL = 320
"""Length of a bar of 1."""
ROW = 24
GAP = 22
LETTERS = 26
QUIET, LOUD = "#0f5c63", "#c4500a"


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One line: a text, a bar and a number."""

    label: str
    share: float
    """0 to 1 of the full length."""
    shown: str
    """The number as people read it."""
    loud: bool = False
    """The word of the text, not one that a model chose."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Bars under one heading."""

    title: str
    bars: Sequence[Bar]


def bars_svg(groups: Sequence[Group], *, title: str, lines: Sequence[str] = ()) -> str:
    """Draw groups of bars one under the other.

    Args:
        groups: from top to bottom; texts may hold anything, they are escaped, long ones are cut.
        title: the line above the picture.
        lines: further ones, smaller.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no bar, or a share is not within 0 to 1.
    """
    something("bar", [bar for group in groups for bar in group.bars])
    parts = [write(MARGIN, 26, _short(title, 80), size=15)]
    parts += [
        write(MARGIN, 48 + 20 * n, _short(line, 92), fill=SOFT) for n, line in enumerate(lines)
    ]
    y = 44.0 + 20 * len(lines)
    for group in groups:
        parts.append(write(MARGIN, y + 14, _short(group.title, 86), fill=SOFT))
        y += 24
        for bar in group.bars:
            if not 0 <= bar.share <= 1:
                raise ValueError(f"the bar of {bar.label!r} is {bar.share}, not within 0 to 1")
            parts += _line(bar, y)
            y += ROW
        y += GAP
    numbers = max(text_width(bar.shown) for group in groups for bar in group.bars)
    width = max(WIDTH, round(LABEL + FULL + 12 + numbers + MARGIN))
    return document(width, round(y), title, parts)


def _line(bar: Bar, y: float) -> list[str]:
    colour = LOUD if bar.loud else QUIET
    middle = y + ROW / 2 + 4
    return [
        write(LABEL - 12, middle, _short(bar.label, LETTERS), anchor="end", fill=INK, size=14),
        _box(FULL, y, TRACK),
        _box(FULL * bar.share, y, colour),
        write(LABEL + FULL + 12, middle, bar.shown, family=MONO),
    ]


def _box(width: float, y: float, fill: str) -> str:
    return (
        f'<rect x="{LABEL}" y="{y + 6:.1f}" width="{width:.2f}" height="{ROW - 12}" rx="3" '
        f'fill="{fill}"/>'
    )


def _short(text: str, letters: int) -> str:
    """The beginning of a long text, as wide as so many letters."""
    room = text_width("n" * letters)
    return shorten(text, lambda each: text_width(each) <= room)
