"""One line of text cut by several kinds of vocabulary. No Gradio in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from core_models import Config, InputError, ModelInfo, Tokenizer
from core_models.config import TransformerXL
from core_models.families import FAMILIES
from core_models.tokenizer.files import ANGLED, FIRST, SECOND, Specials, Template
from viz.svg import Wording

FOLDER = Path(__file__).resolve().parents[3] / "assets" / "tokenizers"
MOST_PIECES = 256
KINDS = {
    "wordpiece": Wording("WordPiece"),
    "byte_bpe": Wording("Byte-level BPE"),
    "unigram": Wording("Unigram"),
}
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
PREFIX = {"wordpiece": "##", "byte_bpe": "\u0120", "unigram": "\u2581"}
XLNET = Specials(pad="<pad>", unknown="<unk>", cls="<cls>", sep="<sep>", mask="<mask>")
_TEMPLATES = {
    "enclosing": (Template.enclosing, Specials()),
    "doubled": (Template.doubled, ANGLED),
    "trailing": (Template.trailing, XLNET),
}


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A text in the pieces of one vocabulary."""

    pieces: tuple[dict[str, Any], ...]
    """id, piece (raw), prefix (the mark of its kind), text (what people read), bytes (UTF-8), word,
    special, unknown, masked."""
    words: int
    """Word groups, as this vocabulary counts words."""
    characters: int
    """Characters of the text that are not blank, up to where it was cut off."""
    unknown: int
    truncated: bool

    @property
    def content(self) -> int:
        """Pieces without the special ones."""
        return sum(not piece["special"] for piece in self.pieces)


@cache
def shipped(kind: str) -> Tokenizer:
    """The vocabulary of a kind that was learnt from the Primer; InputError where it is missing."""
    return Tokenizer.from_folder(FOLDER / kind)


def cut(tokenizer: Tokenizer, text: str) -> Cut:
    """Cut a text into at most 256 pieces and say what stands under each."""
    encoding = tokenizer.encode(text, max_length=MOST_PIECES)
    under = bytes_under(tokenizer, text, encoding.ids, encoding.offsets)
    prefix = PREFIX[tokenizer.kind]
    pieces = []
    for position, index in enumerate(encoding.ids):
        raw = encoding.pieces[position]
        marked = raw.startswith(prefix) and not encoding.special[position]
        shown = tokenizer.display(index)
        pieces.append(
            {
                "id": index,
                "piece": raw,
                "prefix": prefix if marked else "",
                "text": "" if raw == prefix else shown,
                "bytes": under[position].hex(" "),
                "word": encoding.words[position],
                "special": encoding.special[position],
                "unknown": index == tokenizer.unknown_id,
                "masked": index == tokenizer.mask_id,
            }
        )
    end = max(end for _, end in encoding.offsets) if encoding.truncated else len(text)
    return Cut(
        pieces=tuple(pieces),
        words=len({word for word in encoding.words if word is not None}),
        characters=sum(not character.isspace() for character in text[:end]),
        unknown=sum(piece["unknown"] for piece in pieces),
        truncated=encoding.truncated,
    )


def bytes_under(
    tokenizer: Tokenizer, text: str, ids: Sequence[int], offsets: Sequence[tuple[int, int]]
) -> list[bytes]:
    """The UTF-8 bytes of the text that each piece stands for.

    Byte-level pieces may split a character: each of their letters is one byte, so they are counted
    off. Other kinds cover whole characters.
    """
    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(character.encode("utf-8")))
    whole = text.encode("utf-8")
    named = tokenizer.special_ids | {tokenizer.mask_id, tokenizer.unknown_id}
    found: list[bytes] = []
    at = 0
    for index, (start, end) in zip(ids, offsets, strict=True):
        first, last = starts[start], starts[end]
        if tokenizer.kind == "byte_bpe" and index not in named:
            first = max(at, first)
            last = first + len(tokenizer.piece(index))
        found.append(whole[first:last])
        at = last if end else at
    return found


def describe(tokenizer: Tokenizer, text: str, *, title: str, source: str) -> dict[str, Any]:
    """One vocabulary's cut of a text as plain values."""
    found = cut(tokenizer, text)
    return {
        "title": title,
        "source": source,
        "kind": tokenizer.kind,
        "kind_title": KINDS[tokenizer.kind],
        "vocabulary": tokenizer.vocabulary,
        "pieces": list(found.pieces),
        "content": found.content,
        "words": found.words,
        "characters": found.characters,
        "per_word": found.content / found.words if found.words else None,
        "per_character": found.content / found.characters if found.characters else None,
        "unknown": found.unknown,
        "truncated": found.truncated,
        "whole_word": WHOLE_WORD[tokenizer.kind],
        "unknown_rule": UNKNOWN[tokenizer.kind],
    }


def compare(name: str, own: Tokenizer, text: str) -> list[dict[str, Any]]:
    """The chosen model's own cut, then one of each kind."""
    rows = [describe(own, text, title=name, source="the chosen model")]
    for kind, title in KINDS.items():
        try:
            tokenizer = shipped(kind)
        except InputError:
            continue
        rows.append(describe(tokenizer, text, title=title, source="learnt from the Primer"))
    return rows


@cache
def templates() -> tuple[dict[str, Any], ...]:
    """Where the families' released vocabularies put their special pieces."""
    rows = []
    for name, (make, specials) in _TEMPLATES.items():
        template = make(specials)
        rows.append(
            {
                "families": [
                    {
                        "name": family.name,
                        "title": family.title,
                        "kind": KINDS[family.tokenizer],
                        "lowercase": family.lowercase,
                        "segments": _segments(next(iter(family.sizes.values()))),
                    }
                    for family in FAMILIES.values()
                    if family.template == name
                ],
                "single": _slots(template, pair=False),
                "pair": _slots(template, pair=True),
                "padding": "left" if template.pad_left else "right",
                "mask": specials.mask,
            }
        )
    return tuple(rows)


def differences(infos: Iterable[ModelInfo]) -> dict[str, list[dict[str, Any]]]:
    """By family, the installed models that cut or frame texts otherwise than it was released.

    Each with ``model``, and only what differs: ``kind``, ``lowercase``, ``single``, ``pair`` (the
    pieces of one text and of two), ``padding`` and ``mask``.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for info in infos:
        family = FAMILIES.get(info.family)
        own = _facts_of(info.folder)
        if family is None or own is None:
            continue
        make, specials = _TEMPLATES[family.template]
        released = _facts(KINDS[family.tokenizer], family.lowercase, make(specials), specials)
        if other := {key: value for key, value in own.items() if released[key] != value}:
            found.setdefault(info.family, []).append({"model": info.name, **other})
    return found


@lru_cache(maxsize=64)
def _facts_of(folder: Path) -> dict[str, Any] | None:
    """The same facts of a model's own vocabulary; None where it cannot be read."""
    try:
        own = Tokenizer.from_folder(folder)
    except InputError:
        return None
    # A text without its capitals tells; whoever has no Latin letters keeps what it is given.
    small = own.encode("ABCD").ids == own.encode("abcd").ids
    return _facts(KINDS[own.kind], small, own.template, own.specials)


def _facts(kind: str, lowercase: bool, template: Template, specials: Specials) -> dict[str, Any]:
    return {
        "kind": kind,
        "lowercase": lowercase,
        "single": " ".join(slot["text"] for slot in _slots(template, pair=False)),
        "pair": " ".join(slot["text"] for slot in _slots(template, pair=True)),
        "padding": "left" if template.pad_left else "right",
        "mask": specials.mask,
    }


def _segments(config: Config) -> str:
    """Where a family tells the two texts apart: "table", "scores" or "none"."""
    if config.embeddings.segments > 1:
        return "table"
    terms = config.attention.terms
    return "scores" if isinstance(terms, TransformerXL) and terms.segments else "none"


def _slots(template: Template, *, pair: bool) -> list[dict[str, Any]]:
    names = {FIRST: "A", SECOND: "B"}
    return [
        {
            "text": names.get(slot.content, slot.content),
            "special": slot.content not in names,
            "segment": slot.segment,
        }
        for slot in template.of(pair=pair)
    ]


def summary(rows: Sequence[dict[str, Any]]) -> Wording:
    """The shortest and the longest cut in one sentence; of a text cut off, how far they come."""
    if any(row["truncated"] for row in rows):
        far = max(rows, key=lambda row: row["characters"])
        near = min(rows, key=lambda row: row["characters"])
        if near["characters"] == far["characters"]:
            return Wording(
                "The text is too long: {0} pieces of each vocabulary hold {1} characters of it "
                "(blanks not counted).",
                *(MOST_PIECES, far["characters"]),
            )
        return Wording(
            "The text is too long: {0} pieces hold {1} characters of it in {2}, {3} in {4} "
            "(blanks not counted).",
            *(MOST_PIECES, far["characters"], far["title"], near["characters"], near["title"]),
        )
    few = min(rows, key=lambda row: row["content"])
    many = max(rows, key=lambda row: row["content"])
    if few["content"] == many["content"]:
        return Wording("Every vocabulary cuts this into {0} pieces.", few["content"])
    return Wording(
        "{0} needs {1} pieces, {2} {3}, for the same {4} characters (blanks not counted).",
        *(many["title"], many["content"], few["title"], few["content"], few["characters"]),
    )


def code_lines(model: str, text: str) -> str:
    """Python that cuts the text again."""
    return "\n".join(
        [
            "import core_models as cm",
            "",
            f"text = {text!r}",
            f"tokenizers = [cm.load({model!r}).tokenizer]",
            f"for kind in {list(KINDS)!r}:",
            '    tokenizers.append(cm.Tokenizer.from_folder(f"assets/tokenizers/{kind}"))',
            "for tokenizer in tokenizers:",
            f"    encoding = tokenizer.encode(text, max_length={MOST_PIECES})",
            "    print(tokenizer.kind, encoding.pieces, encoding.ids, encoding.words)",
        ]
    )
