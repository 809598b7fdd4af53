"""One line of text cut by several kinds of vocabulary. No Gradio in it."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from core_models import Config, InputError, ModelInfo, Tokenizer
from core_models.config import TransformerXL
from core_models.families import FAMILIES
from core_models.families.family import Family
from core_models.tokenizer.files import ANGLED, FIRST, SECOND, Specials, Template
from viz.svg import Wording

FOLDER = Path(__file__).resolve().parents[3] / "assets" / "tokenizers"
MOST_PIECES = 256
KINDS = {
    "wordpiece": Wording("WordPiece"),
    "byte_bpe": Wording("Byte-level BPE"),
    "unigram": Wording("Unigram"),
}
"""Kinds of which a vocabulary is shipped."""
NAMES = {**KINDS, "bpe": Wording("BPE"), "word_level": Wording("Whole pieces")}
EXAMPLES = {
    "A long word": "Unbelievable! They reopened the antislavery museum.",
    "An accent": "The café\u2019s crème brûlée wasn\u2019t re-heated.",
    "Chinese": "北京是中国的首都，位于华北平原的北部。",  # noqa: RUF001
    "Both": "In Chinese, Beijing is written 北京 .",
    "Unknown signs": "I like 龘 and 😀 very much.",
}
"""Lines that vocabularies cut in different ways."""
PADDING = {True: Wording("left"), False: Wording("right")}
PREFIX = {"wordpiece": "##", "byte_bpe": "\u0120", "word_level": ""}
PREFIX |= dict.fromkeys(("bpe", "unigram"), "\u2581")
XLNET = Specials(pad="<pad>", unknown="<unk>", cls="<cls>", sep="<sep>", mask="<mask>")
_TEMPLATES = {
    "enclosing": (Template.enclosing, Specials()),
    "doubled": (Template.doubled, ANGLED),
    "trailing": (Template.trailing, XLNET),
}


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A text in the pieces of one vocabulary."""

    title: str = ""
    source: str = ""
    """Where the vocabulary comes from."""
    vocabulary: int
    """Pieces in it."""
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

    @property
    def per_word(self) -> float | None:
        """Pieces per word."""
        return self.content / self.words if self.words else None

    @property
    def per_character(self) -> float | None:
        """Pieces per character."""
        return self.content / self.characters if self.characters else None


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
        vocabulary=tokenizer.vocabulary,
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
    off. Other kinds cover whole characters. A blank that a vocabulary puts before a text by itself
    stands for nothing.
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
            first, piece = max(at, first), tokenizer.piece(index)
            added = piece.startswith(PREFIX["byte_bpe"]) and whole[first : first + 1] != b" "
            last = first + len(piece) - added
        elif tokenizer.piece(index) == PREFIX["unigram"] and not text[start:end].isspace():
            last = first
        found.append(whole[first:last])
        at = last if end else at
    return found


def compare(name: str, own: Tokenizer, text: str) -> list[Cut]:
    """The chosen model's own cut, then one of each kind."""
    chosen, primer = Wording("the chosen model"), Wording("learnt from the Primer")
    cuts = [replace(cut(own, text), title=name, source=chosen)]
    for kind, title in KINDS.items():
        with suppress(InputError):  # it is not there
            cuts.append(replace(cut(shipped(kind), text), title=title, source=primer))
    return cuts


def released(family: Family) -> tuple[str, Template]:
    """The sign of a gap in a family's released vocabulary, and where its special pieces stand."""
    make, specials = _TEMPLATES[family.template]
    specials = replace(specials, **family.signs)
    return specials.mask, make(specials)


@cache
def templates() -> tuple[tuple[str, Template, str], ...]:
    """Where families put their special pieces: the sign of a gap, the template, the family."""
    return tuple(
        (*released(family), family.name)
        for name in _TEMPLATES
        for family in FAMILIES.values()
        if family.template == name
    )


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
        mask, template = released(family)
        published = facts_of(KINDS[family.tokenizer], family.lowercase, template, mask)
        if other := {key: value for key, value in own.items() if published[key] != value}:
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
    return facts_of(NAMES[own.kind], small, own.template, own.specials.mask)


def facts_of(kind: str, lowercase: bool, template: Template, mask: str) -> dict[str, Any]:
    """How a vocabulary cuts and frames texts; see :func:`differences`."""
    return {
        "kind": kind,
        "lowercase": lowercase,
        "single": framed(template, pair=False),
        "pair": framed(template, pair=True),
        "padding": PADDING[template.pad_left],
        "mask": mask,
    }


def framed(template: Template, *, pair: bool) -> str:
    """One text, A, or two, A and B, among the special pieces."""
    names = {FIRST: "A", SECOND: "B"}
    return " ".join(names.get(slot.content, slot.content) for slot in template.of(pair=pair))


def segments(config: Config, template: Template) -> Wording:
    """The segment of each part of two texts, and where a family tells them apart."""
    numbers = " ".join(str(slot.segment) for slot in template.of(pair=True))
    if config.embeddings.segments > 1:
        return Wording("{0}, from a table", numbers)
    terms = config.attention.terms
    told_apart = isinstance(terms, TransformerXL) and terms.segments
    return Wording("{0}, in the scores", numbers) if told_apart else Wording("no segments")


def summary(cuts: Sequence[Cut]) -> Wording:
    """The shortest and the longest cut in one sentence; of a text cut off, how far they come."""
    if any(each.truncated for each in cuts):
        far = max(cuts, key=lambda each: each.characters)
        near = min(cuts, key=lambda each: each.characters)
        if near.characters == far.characters:
            return Wording(
                "The text is too long: {0} pieces of each vocabulary hold {1} characters of it "
                "(blanks not counted).",
                *(MOST_PIECES, far.characters),
            )
        return Wording(
            "The text is too long: {0} pieces hold {1} characters of it in {2}, {3} in {4} "
            "(blanks not counted).",
            *(MOST_PIECES, far.characters, far.title, near.characters, near.title),
        )
    few = min(cuts, key=lambda each: each.content)
    many = max(cuts, key=lambda each: each.content)
    if few.content == many.content == 1:
        return Wording("Every vocabulary cuts this into one piece.")
    if few.content == many.content:
        return Wording("Every vocabulary cuts this into {0} pieces.", few.content)
    if few.characters == 1:
        return Wording(
            "{0} needs {1} pieces, {2} {3}, for the same character.",
            *(many.title, many.content, few.title, few.content),
        )
    return Wording(
        "{0} needs {1} pieces, {2} {3}, for the same {4} characters (blanks not counted).",
        *(many.title, many.content, few.title, few.content, few.characters),
    )


def counts(each: Cut) -> Wording:
    """How many pieces and words a cut has."""
    pieces, words = each.content, each.words
    return Wording(
        "{0}, {1}",
        Wording("1 piece") if pieces == 1 else Wording("{0} pieces", pieces),
        Wording("1 word") if words == 1 else Wording("{0} words", words),
    )


def code_lines(model: str, text: str) -> str:
    """Python that cuts the text again."""
    return f"""\
import core_models as cm

text = {text!r}
tokenizers = [cm.load({model!r}).tokenizer]
for kind in {list(KINDS)!r}:
    tokenizers.append(cm.Tokenizer.from_folder(f"assets/tokenizers/{{kind}}"))
for tokenizer in tokenizers:
    encoding = tokenizer.encode(text, max_length={MOST_PIECES})
    print(tokenizer.kind, encoding.pieces, encoding.ids, encoding.words)"""
