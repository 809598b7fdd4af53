"""Measured statements with their numbers as a self-contained SVG."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from viz.svg import INK, SOFT, document, write

WIDTH, MARGIN, LINE, BAR = 760, 20, 20, 12
LABEL, NUMBER = 400, 110
TEAL, EMPTY = "#0f5c63", "#eceae4"
INKS = {"right": "#0f5c63", "wrong": "#a23f05", "half": "#7a5200", "depends": "#7a5200"}
LETTERS = 92
"""Letters of a line of a statement; an East Asian one counts twice."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number."""

    label: str
    shown: str
    """The number as people read it."""
    share: float | None
    """Length of its bar, 0 to 1; None = no bar."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """One statement."""

    statement: str
    verdict: str
    """``right``, ``wrong``, ``half`` or ``depends``."""
    said: str
    """The verdict in words."""
    rows: Sequence[Row]


def bars(values: Sequence[tuple[float, str]]) -> list[float | None]:
    """Lengths of bars: numbers of one unit share a scale; a lone or a unitless one has none.

    Args:
        values: number and unit; percent fill the bar at 100.
    """
    units = [unit for _, unit in values]
    found: list[float | None] = []
    for value, unit in values:
        same = [abs(other) for other, name in values if name == unit]
        if not unit or (unit != "%" and units.count(unit) < 2):
            found.append(None)
            continue
        most = max(100.0, *same) if unit == "%" else max(same)
        found.append(abs(value) / most if most else 0.0)
    return found


def claims_svg(cards: Sequence[Card], *, title: str) -> str:
    """Draw statements with verdicts and bars.

    Args:
        cards: from top to bottom; texts may hold anything, they are escaped.
        title: the line above the picture.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no card.
    """
    if not cards:
        raise ValueError("there is no card to draw")
    parts = [write(MARGIN, 30, title, size=16)]
    y = 52.0
    for card in cards:
        drawn, y = _card(card, y)
        parts += drawn
    height = round(y)
    return document(WIDTH, height, title, parts)


def _card(card: Card, y: float) -> tuple[list[str], float]:
    """A card from ``y`` on, and where it ends."""
    parts = [f'<path d="M{MARGIN} {y:.1f}H{WIDTH - MARGIN}" stroke="{EMPTY}"/>']
    y += 24
    for line in lines(card.statement):
        parts.append(write(MARGIN, y, line, size=15))
        y += LINE
    parts.append(write(MARGIN, y, card.said, size=14, fill=INKS.get(card.verdict, INK), bold=True))
    y += LINE
    room = WIDTH - 2 * MARGIN - LABEL - NUMBER
    for row in card.rows:
        parts.append(write(MARGIN, y, row.label, fill=SOFT))
        parts.append(write(MARGIN + LABEL + NUMBER - 10, y, row.shown, anchor="end"))
        if row.share is not None:
            left, width = MARGIN + LABEL + NUMBER, room * min(1.0, max(0.0, row.share))
            for wide, fill in ((float(room), EMPTY), (width, TEAL)):
                parts.append(
                    f'<rect x="{left}" y="{y - 10:.1f}" width="{wide:.1f}" height="{BAR}" '
                    f'rx="2" fill="{fill}"/>'
                )
        y += LINE
    return parts, y + 4


def lines(text: str, letters: int = LETTERS) -> list[str]:
    """A text in lines; Chinese may break anywhere."""
    if not any(unicodedata.east_asian_width(c) in "WF" for c in text):
        return textwrap.wrap(text, letters) or [""]
    found, width = [""], 0
    for character in text:
        wide = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width + wide > letters:
            found.append("")
            width = 0
        found[-1] += character
        width += wide
    return found
