"""Tags that mark stretches of words: BIO, and the schemes that are read as it."""

from collections.abc import Iterable, Sequence

NAMELESS = "_"
"""The type of all stretches whose tags are plain ``B`` and ``I``; seqeval calls it so."""
_TO_BIO = {"S": "B", "U": "B", "E": "I", "L": "I", "M": "I"}
"""Prefixes of tags in BIOES, BILOU and BMES, which also tell single words and ends."""


def is_bio(tag: str) -> bool:
    """Whether a tag belongs to BIO: ``O``, or ``B`` or ``I``, plain or with a type (``B-PER``)."""
    return tag in ("O", "B", "I") or (tag[:2] in ("B-", "I-") and len(tag) > 2)


def type_of(tag: str) -> str:
    """What the stretch of a tag in BIO is; :data:`NAMELESS` of a plain one."""
    return tag[2:] or NAMELESS


def begins(before: str, tag: str) -> bool:
    """Whether a stretch begins with a tag in BIO that follows another one.

    An ``I`` that continues nothing begins a stretch (``conlleval``).
    """
    inside = tag[0] == "I" and before != "O" and type_of(before) == type_of(tag)
    return tag != "O" and not inside


def beginnings(tags: Sequence[str]) -> list[str]:
    """The tags in BIO with which a stretch begins, in their order."""
    return [tag for before, tag in zip(("O", *tags), tags, strict=False) if begins(before, tag)]


def in_another_scheme(tags: Iterable[str]) -> bool:
    """Whether tags are names in one of the schemes that :func:`as_bio` rewrites."""
    named = set(tags) - {"O"}
    known = all(tag[:1] in "BI" or tag[:1] in _TO_BIO for tag in named)
    typed = all(tag[1:2] == "-" and len(tag) > 2 for tag in named)
    return known and typed and any(tag[:1] in _TO_BIO for tag in named)


def as_bio(tag: str) -> str:
    """A tag of one of these schemes in BIO."""
    return tag if tag == "O" else _TO_BIO.get(tag[0], tag[0]) + tag[1:]
