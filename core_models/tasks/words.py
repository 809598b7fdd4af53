"""Words of a text with their places, for tagging and for counting."""

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

_CHINESE = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
"""Ideographs: the blocks that BERT's tokenizer sets apart."""
MARKS = "".join(
    character
    for character in map(chr, range(0x300, 0x10000))
    if unicodedata.category(character).startswith("M")
)
"""Accents and vowel signs that are characters of their own, and what tells a sign's form."""
_LETTERS_ON_END = rf"(?:[^\W{_CHINESE}][{MARKS}]*)+"
_WORD = re.compile(
    rf"[{_CHINESE}][{MARKS}]*"
    r"|'s\b"
    r"|\d+(?:[./:,-]\d+)+"
    rf"|{_LETTERS_ON_END}(?:[-'](?!s\b){_LETTERS_ON_END})*"
    rf"|[^\w\s][{MARKS}]*"
)
_IDEOGRAPH = re.compile(f"[{_CHINESE}]")
_LETTERS = re.compile(rf"[{_CHINESE}]|[^\W\d_]")


class Word(NamedTuple):
    """A word or punctuation mark, and its characters in the text."""

    text: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """Words, numbers, punctuation marks and single Chinese characters; ``'s`` stands alone.

    A letter keeps the accents and vowel signs that follow it as characters of their own.
    """
    return [Word(m.group(), m.start(), m.end()) for m in _WORD.finditer(text)]


def is_chinese(texts: Iterable[str]) -> bool:
    """Whether at least a third of the letters are Chinese characters."""
    letters = ideographs = 0
    for text in texts:
        letters += len(_LETTERS.findall(text))
        ideographs += len(_IDEOGRAPH.findall(text))
    return ideographs > 0 and 3 * ideographs >= letters


def join(tokens: Iterable[str]) -> tuple[str, list[tuple[int, int]]]:
    """Tokens with a blank between, and the characters of each."""
    parts = list(tokens)
    places = []
    start = 0
    for token in parts:
        places.append((start, start + len(token)))
        start += len(token) + 1
    return " ".join(parts), places
