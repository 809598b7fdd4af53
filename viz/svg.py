"""What all SVG documents of this package share: paper, inks, fonts, and text that is safe."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from xml.sax.saxutils import escape

SANS, MONO, SERIF = (
    "Helvetica, Arial, sans-serif",
    "Menlo, Consolas, monospace",
    "Georgia, serif",
)
# The light paper of the page: a figure for print cannot read the page's style sheet.
PAPER, INK, SOFT = "#ffffff", "#1d232a", "#5c646d"
TRACK, LINE = "#e9ebe6", "#e2dcd0"
LETTER = 8.6
"""Pixels of a letter of ``MONO`` at size 14."""
# XML 1.0 allows no control characters but tab, line feed and carriage return, no lone surrogates.
ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Text that is safe inside an XML element or attribute."""
    return escape(ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text), {'"': "&quot;", "'": "&apos;"})


def text_width(text: str) -> float:
    """Pixels of a text whose letters have the width ``LETTER``; East Asian characters are wide."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return LETTER * (len(text) + 0.75 * wide)


def write(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    family: str = SANS,
    size: float = 13,
    fill: str = INK,
    bold: bool = False,
) -> str:
    """A line of text, escaped, as an element."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-family="{family}" '
        f'font-size="{size:g}" fill="{fill}"{weight} xml:space="preserve">{clean(text)}</text>'
    )


def document(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """A whole document on paper; the title is what is read out, not drawn."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">',
            f"<title>{clean(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
            *parts,
            "</svg>",
        ]
    )
