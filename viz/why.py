"""Tokens with a signed bar above or below a line, as a self-contained SVG."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from viz.lines import clean

WIDTH = 860
MARGIN = 16
LETTER = 8.6
LEAST = 50
GAP = 6
BAR = 22
HALF = 40
"""Height of the longest bar, upwards or downwards."""
LINE = 138
MONO, SANS = "Menlo, Consolas, monospace", "Helvetica, Arial, sans-serif"
PAPER, INK, SOFT, RULE = "#ffffff", "#1d232a", "#5c646d", "#b9b5ab"
FOR, AGAINST, ASKED = "#0f5c63", "#c4500a", "#f7e7f0"


@dataclass(frozen=True, kw_only=True)
class Attributed:
    """One token."""

    text: str
    value: float
    """Above 0 speaks for the answer, below 0 against it."""
    quiet: bool = False
    """Drawn pale: a special piece."""
    asked: bool = False
    """The question is about this place."""


def attributions_svg(tokens: Sequence[Attributed], *, title: str, method: str) -> str:
    """Draw a column for each token: its text, a bar up or down, and its number.

    Args:
        tokens: in the order of the text; texts may hold anything, they are escaped.
        title: the line above the picture.
        method: named in a second line.

    Returns:
        An SVG document. The longest bar has the full height, whatever its number.

    Raises:
        ValueError: when there is no token, or a number is not finite.
    """
    if not tokens:
        raise ValueError("there is nothing to draw")
    if bad := next((token for token in tokens if not math.isfinite(token.value)), None):
        raise ValueError(f"the number of {bad.text!r} is {bad.value}")
    most = max(abs(token.value) for token in tokens) or 1.0
    parts = [
        _text(MARGIN, 26, title, size=15, anchor="start"),
        _text(
            MARGIN,
            46,
            f"{method}: bars upwards speak for it, bars downwards against it",
            anchor="start",
            fill=SOFT,
        ),
    ]
    x, y = float(MARGIN), 58.0
    for token in tokens:
        width = max(LEAST, _width(token.text)) + 8
        if x + width > WIDTH - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + LINE
        parts += _column(token, x, y, width, most)
        x += width + GAP
    height = round(y + LINE)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{clean(title)}</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>',
            *parts,
            "</svg>",
        ]
    )


def _column(token: Attributed, x: float, y: float, width: float, most: float) -> list[str]:
    middle, zero = x + width / 2, y + 28 + HALF
    tall = HALF * abs(token.value) / most
    top = zero - tall if token.value > 0 else zero
    pale = ' opacity="0.45"' if token.quiet else ""
    parts = [_box(x, y, width, LINE - 10, ASKED)] if token.asked else []
    return [
        *parts,
        f"<g{pale}>",
        _text(middle, y + 18, token.text, family=MONO, size=14),
        _box(middle - BAR / 2, top, BAR, tall, FOR if token.value > 0 else AGAINST),
        f'<path d="M{x + 4:.1f} {zero:.1f}h{width - 8:.1f}" stroke="{RULE}"/>',
        _text(middle, zero + HALF + 15, f"{token.value:+.3f}", family=MONO, size=12),
        "</g>",
    ]


def _width(text: str) -> float:
    """Pixels of a text; East Asian characters are wide."""
    return LETTER * sum(1.75 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.2f}" width="{width:.1f}" height="{height:.2f}" fill="{fill}"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "middle",
    family: str = SANS,
    size: float = 13,
    fill: str = INK,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-family="{family}" '
        f'font-size="{size:g}" fill="{fill}" xml:space="preserve">{clean(text)}</text>'
    )
