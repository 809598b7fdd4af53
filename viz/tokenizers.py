"""A text cut into pieces by several vocabularies, as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viz.check import something
from viz.svg import MONO, SOFT, document, text_width, write

WIDTH = 860
MARGIN = 16
PAD = 6
GAP = 3
WORD_GAP = 9
BOX = 26
LINE = 46
HEAD = 34
TINTS = ("#dbeae8", "#f7e7f0")
SPECIAL, UNKNOWN = "#eceae4", "#c4500a"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One box."""

    text: str
    number: int
    word: int | None
    """Word group; None for special pieces."""
    unknown: bool = False


@dataclass(frozen=True, kw_only=True)
class Line:
    """One vocabulary's cut."""

    title: str
    pieces: Sequence[Piece]


def pieces_svg(lines: Sequence[Line], *, title: str) -> str:
    """Draw boxes with ids beneath; the boxes of a word stand together in one tint.

    Args:
        lines: from top to bottom; texts may hold anything, they are escaped.
        title: the line above the picture.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no line.
    """
    something("line", lines)
    parts: list[str] = [write(MARGIN, 26, title, size=15)]
    y = 46.0
    for line in lines:
        parts.append(write(MARGIN, y + 16, line.title, fill=SOFT))
        boxes, bottom = _boxes(line.pieces, y + HEAD - 8)
        parts += boxes
        y = bottom + LINE
    widest = max((_width(piece) for line in lines for piece in line.pieces), default=0.0)
    return document(max(WIDTH, round(2 * MARGIN + widest)), round(y), title, parts)


def _width(piece: Piece) -> float:
    return max(text_width(piece.text), 7 * len(str(piece.number))) + 2 * PAD


def _boxes(pieces: Sequence[Piece], y: float) -> tuple[list[str], float]:
    """The boxes from ``y`` on, and the top of their last row."""
    parts: list[str] = []
    x = float(MARGIN)
    before: int | None = None
    for n, piece in enumerate(pieces):
        width = _width(piece)
        joined = n > 0 and piece.word is not None and piece.word == before
        x += (GAP if joined else WORD_GAP) if n else 0
        if n and x + width > WIDTH - MARGIN:
            x, y = float(MARGIN), y + LINE
        fill = SPECIAL if piece.word is None else TINTS[piece.word % 2]
        stroke = f' stroke="{UNKNOWN}" stroke-dasharray="4 2"' if piece.unknown else ""
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOX}" rx="4" '
            f'fill="{fill}"{stroke}/>'
        )
        middle = x + width / 2
        parts.append(write(middle, y + 18, piece.text, anchor="middle", family=MONO, size=14))
        number = str(piece.number)
        parts.append(write(middle, y + BOX + 13, number, anchor="middle", size=10, fill=SOFT))
        x += width
        before = piece.word
    return parts, y
