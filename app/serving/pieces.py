"""A sentence in the pieces of a model, and the marks that fit on them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.serving.ask import Mark
from core_models import InputError, Model
from core_models.tokenizer import Encoding, Tokenizer
from viz.svg import Wording

BEFORE_MARK = re.compile(
    r"(?<=\S)\s+(?=([.,;:!?\u2026\u3002\uff0c\uff1b\uff1a\uff01\uff1f])(?:\s|$))"
)
"""A blank between a word and the mark after it, as texts have that were cut into words before."""


@dataclass(frozen=True, kw_only=True)
class SentenceToken:
    """One piece of a sentence as the page shows it."""

    position: int
    id: int
    piece: str
    """Raw piece of the vocabulary ("##ing")."""
    text: str
    """What stands in the sentence there, in the visitor's own spelling, no blanks around it."""
    start: int
    end: int
    """Characters (code points) of the text: [start, end), those of ``text``."""
    word: int | None
    """Word group; None for [CLS] and [SEP]."""
    special: bool
    masked: bool
    """[MASK] written in the text."""
    unknown: bool
    """The vocabulary has no piece for it."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A text in the pieces of one model."""

    text: str
    model: str
    tokens: tuple[SentenceToken, ...]
    truncated: bool
    """Pieces beyond the model's longest input were cut off."""
    blank: str | None = None
    """See :func:`blank_note`."""


def sentence_tokens(encoding: Encoding, tokenizer: Tokenizer) -> tuple[SentenceToken, ...]:
    """The pieces of an encoding with what stands in the text at their place."""
    tokens = []
    text = encoding.text
    for position, (start, end) in enumerate(encoding.offsets):
        index = encoding.ids[position]
        written = text[start:end]
        if written.strip():  # byte-level and unigram pieces begin with the blank before them
            start += len(written) - len(written.lstrip())
            end -= len(written) - len(written.rstrip())
        tokens.append(
            SentenceToken(
                position=position,
                id=index,
                piece=encoding.pieces[position],
                text=written.strip() or tokenizer.display(index),
                start=start,
                end=end,
                word=encoding.words[position],
                special=encoding.special[position],
                masked=index == tokenizer.mask_id,
                unknown=index == tokenizer.unknown_id,
            )
        )
    return tuple(tokens)


def sentence_of(model: Model, text: str, name: str) -> Sentence:
    """A text in the pieces of a model, which is called by its name in the picker."""
    (encoding,) = model.encode([text])
    return Sentence(
        text=text,
        model=name,
        tokens=sentence_tokens(encoding, model.tokenizer),
        truncated=encoding.truncated,
        blank=blank_note(encoding, model),
    )


def cut_note(truncated: bool, pieces: int) -> Wording | None:
    """What to know of a text that a lab shows no more than the first pieces of."""
    text = "The text is long: this tab uses its first {0} pieces."
    return Wording(text, pieces) if truncated else None


def unread_note(title: str, unread: Mapping[str, str]) -> Wording | None:
    """What to know where a model has no piece for something of the text.

    Args:
        title: What the model is called.
        unread: The piece that it reads by what stands in the text; see :func:`unread_of`.
    """
    if not unread:
        return None
    words, sign = [*unread], next(iter(unread.values()))
    some = ", ".join([*(f"“{word}”" for word in words[:6]), *(["…"] if len(words) > 6 else [])])
    return Wording("{0} has no piece for {1} and reads {2} instead.", title, some, sign)


def unread_of(tokens: Iterable[SentenceToken]) -> dict[str, str]:
    """What the vocabulary has no piece for, and the piece that stands there: [UNK] or <unk>."""
    return {token.text: token.piece for token in tokens if token.unknown}


def blank_note(encoding: Encoding, model: Model) -> Wording | None:
    """What to know of a blank before a mark, if the model reads other pieces than without it.

    Byte-level and unigram vocabularies do: few texts have such blanks, and what stands alone there
    is seldom a mark.
    """
    found = BEFORE_MARK.search(encoding.text)
    if found is None or model.encode([BEFORE_MARK.sub("", encoding.text)])[0].ids == encoding.ids:
        return None
    return Wording(
        "To this model the blank before “{0}” is part of the text, as in few that it has read: "
        "without it, its answers may be others.",
        found[1],
    )


def check_marks(marks: Sequence[Mark], encoding: Encoding, tokenizer: Tokenizer) -> None:
    """Refuse marks that the text or the vocabulary has no place for."""
    for mark in marks:
        if mark.position >= len(encoding):
            raise InputError(
                f"Position {mark.position} is beyond the text, which has {len(encoding)} pieces "
                f"(0 to {len(encoding) - 1})."
            )
        if encoding.special[mark.position]:
            raise InputError(
                f"Position {mark.position} is {encoding.pieces[mark.position]}, which cannot be "
                "hidden; choose a word."
            )
        if mark.piece is not None and mark.piece >= tokenizer.vocabulary:
            raise InputError(
                f"Piece {mark.piece} is outside the vocabulary (0 to {tokenizer.vocabulary - 1})."
            )


def one_piece(tokenizer: Tokenizer, word: str) -> tuple[int | None, str | None]:
    """The piece that a word is, or why it cannot stand in one position."""
    ids = tokenizer.pieces_of(word)
    if len(ids) != 1 and (raw := tokenizer.id(word)) is not None:
        ids = [raw]
    if not ids or tokenizer.unknown_id in ids:
        return None, Wording(
            "“{0}” is not in the vocabulary of this model. Try another word.", word
        )
    if len(ids) > 1:
        pieces = " · ".join(tokenizer.display(index) for index in ids)
        return None, Wording(
            "“{0}” is {1} pieces here ({2}), but one position holds one piece. Try a more common "
            "word.",
            word,
            len(ids),
            pieces,
        )
    if ids[0] in tokenizer.special_ids or ids[0] == tokenizer.mask_id:
        return None, Wording("“{0}” is a special piece, not a word.", word)
    return ids[0], None
