"""Tables of the Tokenizers lab, and its picture."""

from collections.abc import Iterable, Sequence
from typing import Any

from app.labs.tokenizers.answers import (
    KINDS,
    Cut,
    counts,
    differences,
    facts_of,
    segments,
    templates,
)
from app.parts.plain import table
from core_models import ModelInfo
from core_models.families import FAMILIES
from viz.svg import Wording
from viz.tokenizers import Line, Piece, pieces_svg

WHOLE_WORD = {
    "wordpiece": "A word ends at a blank or a punctuation mark, and every Chinese character is a "
    "word of its own. Whole-word masking hides a piece together with the ## pieces after it.",
    "byte_bpe": "A word is a run of letters, digits or marks with the blank before it. Chinese has "
    "no blanks: each of its pieces counts as a word, and so do the pieces of one character.",
    "unigram": "A word is what stands between two blanks; marks are words of their own. Chinese "
    "has no blanks: each of its pieces counts as a word, be it of one character or of several.",
}
UNKNOWN = {
    "wordpiece": "A word with a letter that the vocabulary lacks becomes one [UNK].",
    "byte_bpe": "Nothing is unknown: what has no piece is spelt in bytes.",
    "unigram": "A character that the vocabulary lacks becomes <unk>; the rest of the word stays.",
}
CASES = {True: Wording("lower case"), False: Wording("keeps case")}


def numbers(cuts: Sequence[Cut]) -> dict[str, Any]:
    """How many pieces each vocabulary needs."""
    names = ("content", "words", "characters", "per_word", "per_character", "unknown")
    return table(
        Wording("Pieces without the special ones; characters without blanks"),
        [
            Wording("Vocabulary"),
            Wording("Pieces in it"),
            Wording("Pieces"),
            Wording("Words"),
            Wording("Characters"),
            Wording("Per word"),
            Wording("Per character"),
            Wording("Unknown"),
        ],
        [[each.title, each.vocabulary, *(getattr(each, name) for name in names)] for each in cuts],
    )


def every_piece(cuts: Sequence[Cut]) -> dict[str, Any]:
    """A row for each piece of each vocabulary."""
    kinds = (("special", Wording("special")), ("unknown", Wording("unknown")))
    return table(
        Wording("Every piece"),
        [
            Wording("Vocabulary"),
            Wording("Position"),
            Wording("Piece"),
            Wording("Id"),
            Wording("UTF-8 bytes"),
            Wording("Word"),
            Wording("Kind"),
        ],
        [
            [
                each.title,
                position,
                piece["piece"],
                piece["id"],
                piece["bytes"],
                None if piece["word"] is None else piece["word"] + 1,
                next((word for kind, word in kinds if piece[kind]), None),
            ]
            for each in cuts
            for position, piece in enumerate(each.pieces)
        ],
    )


def rules() -> dict[str, Any]:
    """What counts as a word, and what is unknown, by kind of vocabulary."""
    return table(
        Wording("What a kind of vocabulary decides"),
        [Wording("Kind"), Wording("Whole word"), Wording("Unknown")],
        [[title, WHOLE_WORD[kind], UNKNOWN[kind]] for kind, title in KINDS.items()],
        messages=[1, 2],
    )


def frames(infos: Iterable[ModelInfo]) -> dict[str, Any]:
    """Where each family puts its special pieces, and below it the models here that differ."""
    differ = differences(infos)
    rows = []
    for mask, template, name in templates():
        family = FAMILIES[name]
        own = facts_of(KINDS[family.tokenizer], family.lowercase, template, mask)
        own["segments"] = segments(next(iter(family.sizes.values())), template)
        rows.append([family.title, *_cells(own)])
        rows += [
            [Wording("{0} here", each["model"]), *_cells(each)] for each in differ.get(name, ())
        ]
    return table(
        Wording("A and B stand for the texts; a number is the segment of each part of two texts."),
        [
            Wording("Family"),
            Wording("Kind"),
            Wording("Letters"),
            Wording("One text"),
            Wording("Two texts"),
            Wording("Segments"),
            Wording("Padding"),
            Wording("Gap"),
        ],
        rows,
    )


def _cells(facts: dict[str, Any]) -> list[Any]:
    case = CASES.get(facts.get("lowercase", -1))
    names = ("single", "pair", "segments", "padding", "mask")
    return [facts.get("kind"), case, *(facts.get(name) for name in names)]


def picture(cuts: Sequence[Cut]) -> str:
    """The boxes of every vocabulary as a drawing."""
    lines = [
        Line(
            title=Wording("{0}: {1}", each.title, counts(each)),
            pieces=[
                Piece(
                    text=piece["prefix"] + piece["text"].strip(),
                    number=piece["id"],
                    word=piece["word"],
                    unknown=piece["unknown"],
                )
                for piece in each.pieces
            ],
        )
        for each in cuts
    ]
    return pieces_svg(lines, title=Wording("One text, cut by each kind of vocabulary"))
