"""Tokens with a signed bar above or below a line, as a self-contained SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from viz.svg import MONO, SOFT, Wording, document, text_width, write

WIDTH = 860
MARGIN = 16
LEAST = 50
GAP = 6
BAR = 22
HALF = 40
"""Height of the longest bar, upwards or downwards."""
LINE = 138
RULE = "#b9b5ab"
FOR, AGAINST, ASKED = "#0f5c63", "#c4500a", "#f7e7f0"
_text = partial(write, anchor="middle")


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
            Wording("{0}: bars upwards speak for it, bars downwards against it", method),
            anchor="start",
            fill=SOFT,
        ),
    ]
    x, y = float(MARGIN), 58.0
    for token in tokens:
        width = max(LEAST, text_width(token.text)) + 8
        if x + width > WIDTH - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + LINE
        parts += _column(token, x, y, width, most)
        x += width + GAP
    height = round(y + LINE)
    return document(WIDTH, height, title, parts)


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


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.2f}" width="{width:.1f}" height="{height:.2f}" fill="{fill}"/>'
    )
