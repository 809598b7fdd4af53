"""Tokens with a bar of probability beneath each, as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from viz.check import something
from viz.svg import MONO, SOFT, TRACK, document, text_width, write

WIDTH = 860
MARGIN = 16
LEAST = 46
GAP = 6
BAR = 22
TALL = 64
LINE = 134
QUIET, LOUD, CHANGED = "#0f5c63", "#c4500a", "#f7e7f0"
_text = partial(write, anchor="middle")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One token."""

    text: str
    chance: float
    """0 to 1."""
    note: str = ""
    """What stood there before; "" = the token is untouched."""


def verdicts_svg(tokens: Sequence[Judged], *, title: str, threshold: float = 0.5) -> str:
    """Draw a column for each token: its text, what stood there, a bar and its number.

    Args:
        tokens: in the order of the text; texts may hold anything, they are escaped.
        title: the line above the picture.
        threshold: where the dashed line is; bars from there on have the loud colour.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no token, or a chance is not within 0 to 1.
    """
    something("token", tokens)
    parts = [_text(MARGIN, 26, title, size=15, anchor="start")]
    x, y, across = float(MARGIN), 44.0, float(WIDTH)
    for token in tokens:
        if not 0 <= token.chance <= 1:
            raise ValueError(f"the chance of {token.text!r} is {token.chance}, not within 0 to 1")
        width = max(LEAST, text_width(token.text), 0.8 * text_width(token.note)) + 8
        if x + width > WIDTH - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + LINE
        parts += _column(token, x, y, width, threshold)
        across = max(across, x + width + MARGIN)
        x += width + GAP
    height = round(y + LINE)
    return document(round(across), height, title, parts)


def _column(token: Judged, x: float, y: float, width: float, threshold: float) -> list[str]:
    middle, top = x + width / 2, y + 38
    filled = TALL * token.chance
    line = top + TALL * (1 - threshold)
    parts = []
    if token.note:
        parts.append(_box(x, y, width, LINE - 12, CHANGED))
    return [
        *parts,
        _text(middle, y + 18, token.text, family=MONO, size=14),
        _text(middle, y + 32, token.note, size=11, fill=SOFT),
        _box(middle - BAR / 2, top, BAR, TALL, TRACK),
        _box(
            middle - BAR / 2,
            top + TALL - filled,
            BAR,
            filled,
            LOUD if token.chance >= threshold else QUIET,
        ),
        f'<path d="M{middle - BAR / 2:.1f} {line:.1f}h{BAR}" stroke="{SOFT}" '
        'stroke-dasharray="3 2"/>',
        _text(middle, top + TALL + 15, whole(token.chance), family=MONO, size=12),
    ]


def whole(chance: float) -> str:
    """In whole percent, but only what rounds to 100.0 % is called 100 %."""
    return f"{100 * chance:.{int(0.995 <= chance < 0.9995)}f} %"


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.2f}" rx="3" '
        f'fill="{fill}"/>'
    )
