"""What a tokenizer gives, what it refuses, and how pieces are written."""

import json
import re
import unicodedata
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from core_models.errors import InputError

MAX_CHARACTERS = 20_000
"""Longest text that people may enter."""
MASKS = ("[MASK]", "<mask>")
"""Spellings of a gap."""
_MASK = re.compile("|".join(map(re.escape, MASKS)))


@dataclass(frozen=True)
class Encoding:
    """One input, special pieces included. Every list has one entry per piece."""

    ids: list[int]
    segment_ids: list[int]
    pieces: list[str]
    """Raw pieces ("##ing")."""
    offsets: list[tuple[int, int]]
    """Start and end in characters (code points) of ``text``, or of ``pair`` for the pieces of
    the second text; (0, 0) for special pieces."""
    words: list[int | None]
    """Word group, counted over the whole input; None for special pieces."""
    special: list[bool]
    """True for padding, [CLS] and [SEP]. [MASK] is not special: it stands for a piece."""
    text: str
    pair: str | None
    truncated: bool
    """Pieces were cut off at the end to keep to ``max_length``."""

    def __len__(self) -> int:
        """Number of pieces."""
        return len(self.ids)


class Marker(NamedTuple):
    """How the pieces of a kind of vocabulary show where words start."""

    word: str
    """Prefix of pieces that start a word ("" = none)."""
    continuation: str
    """Prefix of pieces that continue a word ("" = none)."""
    readable: Callable[[str], str]
    """What is left of a piece without prefix -> what people read."""


def _byte_glyphs() -> dict[str, int]:
    """Glyph -> byte of byte-level pieces: printable bytes stand for themselves, others follow."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return {chr(b if b in plain else next(others)): b for b in range(256)}


_GLYPHS = _byte_glyphs()


def _from_bytes(piece: str) -> str:
    """A byte-level piece as text; bytes of a broken character are shown as hexadecimal."""
    if any(glyph not in _GLYPHS for glyph in piece):
        return piece
    return bytes(_GLYPHS[glyph] for glyph in piece).decode("utf-8", errors="backslashreplace")


_UNDERLINED = Marker("\u2581", "", lambda piece: piece.replace("\u2581", " "))
MARKERS = {
    "wordpiece": Marker("", "##", str),
    "byte_bpe": Marker("\u0120", "", _from_bytes),
    "bpe": _UNDERLINED,
    "unigram": _UNDERLINED,
    "word_level": Marker("", "", str),
}


_OTHER_SPACES = "\t\n\f\r\u2028\u2029"
"""Those that SentencePiece's own table of characters (nmt_nfkc) writes as blanks."""
_SPACES = {"\n": "↵", "\t": "⇥"}
"""Signs of spaces; others are "␣"."""


def shown(piece: str, marker: Marker) -> str:
    """A piece without the marks of its vocabulary, with signs where it is nothing but space."""
    bare = piece
    for prefix in (marker.word, marker.continuation):
        if prefix and bare.startswith(prefix) and len(bare) > len(prefix):
            bare = bare[len(prefix) :]
    text = marker.readable(bare)
    return text if text.strip() else "".join(_SPACES.get(c, "␣") for c in text)


def begins_word(piece: str, marker: Marker) -> bool:
    """Whether the mark of a piece says that a word begins with it."""
    if marker.continuation:
        return not piece.startswith(marker.continuation)
    return piece.startswith(marker.word)


def check_text(text: object) -> str:
    """Refuse what is no text to work on.

    Raises:
        InputError: Not a string, blank, over 20,000 characters, or not valid Unicode.
    """
    text = check_unicode(text)
    if not text.strip():
        raise InputError("The text is empty; write a sentence.")
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"The text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed, "
            "so shorten it."
        )
    return text


def check_unicode(text: object) -> str:
    """Refuse what is no string, or not valid Unicode; a blank one passes."""
    if not isinstance(text, str):
        raise InputError(f"A text must be a string, not {type(text).__name__}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError("The text holds half a character (a lone surrogate); remove it.") from None
    return text


def longest_first(counts: list[int], room: int) -> list[int]:
    """How many pieces of each text stay: the longer one is cut first, as transformers does."""
    if sum(counts) <= room:
        return counts
    if len(counts) == 1:
        return [room]
    short = min(*counts, room // 2)
    return [short, room - short] if counts[0] <= counts[1] else [room - short, short]


def spell_masks(text: str, own: str) -> tuple[str, list[int]]:
    """Write every gap as a vocabulary spells it.

    Args:
        text: With gaps in any spelling of :data:`MASKS`.
        own: The vocabulary's mask piece.

    Returns:
        The text, and for each of its character boundaries (n + 1 of them) the boundary of the
        given text that it stands for.
    """
    parts: list[str] = []
    origins: list[int] = []
    end = 0
    for match in _MASK.finditer(text):
        parts += [text[end : match.start()], own]
        origins += [*range(end, match.start()), *([match.start()] * len(own))]
        end = match.end()
    return "".join([*parts, text[end:]]), [*origins, *range(end, len(text) + 1)]


def with_marks(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Offsets of pieces that hold the combining accents behind them, too.

    Vocabularies without accents, and those that compose them, leave these out.
    """
    begun = {start for start, end in offsets if start < end}
    found = []
    for start, end in offsets:
        while start < end < len(text) and end not in begun and unicodedata.combining(text[end]):
            end += 1
        found.append((start, end))
    return found


def blanks_for(model: Mapping[str, Any], vocabulary: Container[str]) -> dict[int, str]:
    """Spaces that are read as blanks, as `str.translate` takes them.

    SentencePiece does so, but rules that were not made by it may know blanks alone. A vocabulary
    that spells what it lacks in bytes has a piece for them, unless its table makes blanks of them.

    Args:
        model: The part ``model`` of a tokenizer.json.
        vocabulary: Its pieces.
    """
    if model["type"] != "Unigram" or (model.get("byte_fallback") and "<0x0A>" in vocabulary):
        return {}
    return {ord(space): " " for space in _OTHER_SPACES if space not in vocabulary}


class PlainPart(NamedTuple):
    """The pieces of one text, without special pieces."""

    ids: list[int]
    word_ids: list[int | None]
    offsets: list[tuple[int, int]]
    """Characters of the text as it was given."""


def lowercases(normalizer: object) -> bool:
    """Whether a normalizer, as read from tokenizer.json, makes letters small."""
    return '"lowercase": true' in json.dumps(normalizer) or '"Lowercase"' in json.dumps(normalizer)
