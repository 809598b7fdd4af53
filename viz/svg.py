"""What all SVG documents of this package share: paper, inks, fonts, and text that is safe."""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, Self
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
VALUE = re.compile(r"\{(\d)\}")


class Wording(str):
    """A text of the program, not of a visitor, so that a page may show it in its own language.

    It reads as the English text with its values in place. Elements that hold one are marked (see
    `mark`); whoever saves a drawing translates those (``spoken`` of the page's export.js). All
    that makes a text of it, such as ``+``, f-strings and ``str.lower``, gives a plain one, which
    is never translated.

    Args:
        key: The English text, with ``{0}``, ``{1}``, ... where values stand.
        values: What stands there: a visitor's text or a number, which stay as they are, or a
            wording.
    """

    key: str
    values: tuple[str, ...]

    def __new__(cls, key: str, *values: object) -> Self:
        """Fill the values in.

        A text without any stays as it is: it may be a name or a title from a file.
        """
        texts = tuple(value if isinstance(value, str) else str(value) for value in values)
        whole = VALUE.sub(lambda found: texts[int(found[1])], key) if texts else key
        made = super().__new__(cls, whole)
        made.key, made.values = key, texts
        return made

    def __getnewargs__(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a copy is made of: the text alone could not be filled in once more."""
        return (self.key, *self.values)


def count_words(count: int) -> Wording:
    """How many words."""
    return Wording("1 word") if count == 1 else Wording("{0} words", count)


def listed(texts: Iterable[str]) -> str:
    """Texts one after the other; wordings among them can still be translated."""
    said = list(texts)
    return reduce(lambda before, text: Wording("{0}, {1}", before, text), said) if said else ""


def mark(text: str) -> str:
    """The attribute of an element that holds a wording: its key and its values as JSON.

    Values that are wordings are such lists, too. "" for any other text, whatever it says.
    """
    if not isinstance(text, Wording):
        return ""
    return f' data-wording="{clean(json.dumps(told(text), ensure_ascii=False))}"'


def told(text: str) -> Any:
    """A wording as its key and its values, for ``phrase`` of the page's language.js.

    Values that are wordings are such lists, too; any other text stays what it is.
    """
    # JSON writes control characters as escapes, which the reader would put into the drawing.
    return [text.key, *map(told, text.values)] if isinstance(text, Wording) else legal(text)


def untold(parts: Any) -> str:
    """What `told` was made of: a wording from its key and its values, any other text as it is."""
    return Wording(parts[0], *map(untold, parts[1:])) if isinstance(parts, list) else str(parts)


def with_values(text: str, change: Callable[[str], str]) -> str:
    """A text with another one for what is not ours: all of it, or the values of a wording."""
    if isinstance(text, Wording):
        return Wording(text.key, *(with_values(value, change) for value in text.values))
    return change(text)


def shorten(text: str, fits: Callable[[str], bool]) -> str:
    """The beginning of a text that is too long, with an ellipsis; of a wording, its longest value.

    Args:
        text: What is to be written.
        fits: Whether a text is short enough; if it is, its beginnings are, too.
    """
    if fits(text):
        return text
    if isinstance(text, Wording):
        return _shorten_value(text, fits)
    # A try reads all of the text: one for each letter of a long one would take half a minute.
    kept = bisect_right(range(1, len(text)), False, key=lambda n: not fits(text[:n] + "…"))
    return text[:kept] + "…"


def _shorten_value(text: Wording, fits: Callable[[str], bool]) -> Wording:
    values = list(text.values)
    free = [n for n, value in enumerate(values) if not isinstance(value, Wording)]
    if not free:
        return text
    longest = max(free, key=lambda n: len(values[n]))

    def cut(value: str) -> Wording:
        return Wording(text.key, *values[:longest], value, *values[longest + 1 :])

    return cut(shorten(values[longest], lambda value: fits(cut(value))))


def legal(text: str) -> str:
    """Text without what no XML document may hold, for example control characters."""
    return ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)


def clean(text: str) -> str:
    """Text that is safe inside an XML element or attribute."""
    return escape(legal(text), {'"': "&quot;", "'": "&apos;"})


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
        f'font-size="{size:g}" fill="{fill}"{weight} xml:space="preserve"{mark(text)}>'
        f"{clean(text)}</text>"
    )


def caption(text: str) -> str:
    """What an element is called: its first child, read out or shown beside the pointer."""
    return f"<title{mark(text)}>{clean(text)}</title>"


def document(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """A whole document on paper; the title is what is read out, not drawn."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">',
            caption(title),
            f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
            *parts,
            "</svg>",
        ]
    )
