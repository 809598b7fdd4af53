"""Tokenizer files: what a folder in transformers format holds, read and written.

Everything that differs between families is a value here: the names of the special pieces
(`Specials`), where they go and on which side padding goes (`Template`).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from core_models.errors import InputError

FIRST, SECOND = "$A", "$B"
"""Names of the two texts in a template."""
CONFIG_FILE, TOKENIZER_FILE, VOCABULARY_FILE = (
    "tokenizer_config.json",
    "tokenizer.json",
    "vocab.txt",
)


@dataclass(frozen=True, kw_only=True)
class Specials:
    """Spelling of the five special pieces."""

    pad: str = "[PAD]"
    unknown: str = "[UNK]"
    cls: str = "[CLS]"
    sep: str = "[SEP]"
    mask: str = "[MASK]"

    def names(self) -> tuple[str, str, str, str, str]:
        """The pieces in the order in which a vocabulary trained here places them."""
        return (self.pad, self.unknown, self.cls, self.sep, self.mask)


_SPACE = "\u0120"
"""How byte-level vocabularies write a blank."""
ANGLED = Specials(pad="<pad>", unknown="<unk>", cls="<s>", sep="</s>", mask="<mask>")
"""Spelling of RoBERTa."""
_CONFIG_KEYS = {
    "pad": "pad_token",
    "unknown": "unk_token",
    "cls": "cls_token",
    "sep": "sep_token",
    "mask": "mask_token",
}
# In this order: XLNet has both <cls> and <s>, and means <cls>.
_OTHER_KEYS = {"cls": "bos_token", "sep": "eos_token"}
"""What a decoder's vocabulary has in their place (EuroBERT's is Llama's)."""
_SPELLINGS = {
    "pad": ("[PAD]", "<pad>"),
    "unknown": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<cls>", "<s>"),
    "sep": ("[SEP]", "<sep>", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}


class Slot(NamedTuple):
    """One place of a template: a special piece, or a text (`FIRST`, `SECOND`)."""

    content: str
    segment: int


@dataclass(frozen=True, kw_only=True)
class Template:
    """Where the special pieces go."""

    single: tuple[Slot, ...]
    pair: tuple[Slot, ...]
    pad_left: bool = False
    """True: padding comes before the text (XLNet)."""
    pad_segment: int = 0

    @classmethod
    def enclosing(cls, specials: Specials) -> Self:
        """``[CLS] A [SEP]`` and ``[CLS] A [SEP] B [SEP]``, segments 0 and 1 (BERT)."""
        single = (Slot(specials.cls, 0), Slot(FIRST, 0), Slot(specials.sep, 0))
        return cls(single=single, pair=(*single, Slot(SECOND, 1), Slot(specials.sep, 1)))

    @classmethod
    def doubled(cls, specials: Specials) -> Self:
        """``<s> A </s>`` and ``<s> A </s></s> B </s>``, segment 0 throughout (RoBERTa)."""
        single = (Slot(specials.cls, 0), Slot(FIRST, 0), Slot(specials.sep, 0))
        end = Slot(specials.sep, 0)
        return cls(single=single, pair=(*single, end, Slot(SECOND, 0), end))

    @classmethod
    def trailing(cls, specials: Specials) -> Self:
        """``A [SEP] [CLS]`` and ``A [SEP] B [SEP] [CLS]``, padding on the left (XLNet)."""
        last = Slot(specials.cls, 2)
        first = (Slot(FIRST, 0), Slot(specials.sep, 0))
        second = (Slot(SECOND, 1), Slot(specials.sep, 1))
        return cls(
            single=(*first, last), pair=(*first, *second, last), pad_left=True, pad_segment=3
        )

    def of(self, *, pair: bool) -> tuple[Slot, ...]:
        """The slots for one text or for two."""
        return self.pair if pair else self.single

    def extra(self, *, pair: bool) -> int:
        """How many special pieces are added to one text or to two."""
        return sum(slot.content not in {FIRST, SECOND} for slot in self.of(pair=pair))

    def processor(self, backend: tokenizers.Tokenizer) -> processors.TemplateProcessing:
        """The same template for the tokenizers library (and so for transformers)."""
        names = {s.content for s in (*self.single, *self.pair)} - {FIRST, SECOND}
        return processors.TemplateProcessing(
            single=[f"{s.content}:{s.segment}" for s in self.single],
            pair=[f"{s.content}:{s.segment}" for s in self.pair],
            special_tokens=[(name, backend.token_to_id(name)) for name in sorted(names)],
        )


def template_from(
    processor: Mapping[str, Any] | None,
    specials: Specials,
    *,
    pad_segment: int | None,
) -> Template:
    """The template that a tokenizer.json describes.

    Padding goes where the class piece is not, whatever tokenizer_config.json says: heads read that
    piece at the edge of a batch, and tables of positions count from its left.

    Args:
        processor: The value of ``post_processor``.
        specials: The special pieces, for files that describe no template.
        pad_segment: Segment id of padding; None = 3 where the class piece comes last (XLNet),
            else 0.
    """
    template = Template.enclosing(specials)
    found = [processor] if processor else []
    while found:
        step = found.pop()
        if step["type"] == "Sequence":
            found.extend(step["processors"])
        elif step["type"] == "TemplateProcessing":
            template = Template(single=_slots(step["single"]), pair=_slots(step["pair"]))
        elif step["type"] == "RobertaProcessing":
            template = Template.doubled(Specials(cls=step["cls"][0], sep=step["sep"][0]))
        elif step["type"] == "BertProcessing":
            template = Template.enclosing(Specials(cls=step["cls"][0], sep=step["sep"][0]))
    trailing = template.single[-1].content == specials.cls != specials.sep
    usual = Template.trailing(specials) if trailing else template
    return Template(
        single=template.single,
        pair=template.pair,
        pad_left=trailing,
        pad_segment=usual.pad_segment if pad_segment is None else pad_segment,
    )


def _slots(entries: list[dict[str, dict[str, Any]]]) -> tuple[Slot, ...]:
    slots = []
    for entry in entries:
        ((what, value),) = entry.items()
        content = "$" + value["id"] if what == "Sequence" else value["id"]
        slots.append(Slot(content, value["type_id"]))
    return tuple(slots)


def specials_from(settings: Mapping[str, Any], vocabulary: Mapping[str, int]) -> Specials:
    """The special pieces: as tokenizer_config.json names them, else by their usual spelling.

    A vocabulary that spells every text in bytes may have no unknown piece: that of padding then
    stands in its place, which no text gives.

    Raises:
        InputError: A special piece is missing from the vocabulary.
    """
    found: dict[str, str] = {}
    for role, key in _CONFIG_KEYS.items():
        candidates = (_named(settings, key), *_SPELLINGS[role])
        if role in _OTHER_KEYS:
            candidates += (_named(settings, _OTHER_KEYS[role]),)
        if role == "unknown" and _SPACE in vocabulary:
            candidates += (found["pad"],)
        name = next((c for c in candidates if c in vocabulary), None)
        if name is None:
            raise InputError(
                f"The tokenizer has no {role} piece: none of {', '.join(_SPELLINGS[role])} is in "
                f"its vocabulary of {len(vocabulary)}; name it as {key} in {CONFIG_FILE}."
            )
        found[role] = name
    return Specials(**found)


def _named(settings: Mapping[str, Any], key: str) -> str | None:
    """The piece that tokenizer_config.json names."""
    named = settings.get(key)
    named = named.get("content") if isinstance(named, Mapping) else named
    if named is not None and not isinstance(named, str):
        raise InputError(
            f"{CONFIG_FILE}: {key} is {settings[key]!r}; expected a piece of the vocabulary "
            "as text, or null."
        )
    return named


def wordpiece(
    vocabulary: Mapping[str, int], specials: Specials, *, lowercase: bool, **options: Any
) -> tokenizers.Tokenizer:
    """BERT's tokenizer over a ready vocabulary.

    Args:
        vocabulary: Piece to id; continuations start with ``##``.
        specials: Names of the special pieces.
        lowercase: Lower-case the text and strip its accents.
        **options: Of `tokenizers.normalizers.BertNormalizer`, e.g. ``handle_chinese_chars``.
    """
    model = models.WordPiece(dict(vocabulary), unk_token=specials.unknown)
    backend = tokenizers.Tokenizer(model)
    backend.normalizer = normalizers.BertNormalizer(lowercase=lowercase, **options)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    add_specials(backend, specials)
    backend.post_processor = Template.enclosing(specials).processor(backend)
    return backend


def add_specials(
    backend: tokenizers.Tokenizer, specials: Specials, *, lstrip: bool = False
) -> None:
    """Declare the special pieces, so that "[MASK]" written in a text is one piece.

    Args:
        backend: Changed in place.
        specials: Names of the special pieces.
        lstrip: The mask swallows the blank before it; needed where pieces carry their blank
            (byte-level BPE, unigram), else a lone blank piece is left over.
    """
    plain = [name for name in specials.names() if name != specials.mask]
    backend.add_special_tokens([AddedToken(n, special=True, normalized=False) for n in plain])
    mask = AddedToken(specials.mask, special=True, normalized=False, lstrip=lstrip)
    backend.add_special_tokens([mask])


def settings_for(
    backend: tokenizers.Tokenizer, specials: Specials, template: Template, *, lowercase: bool
) -> dict[str, Any]:
    """The tokenizer_config.json of a tokenizer made here."""
    is_wordpiece = isinstance(backend.model, models.WordPiece)
    # BertTokenizer rebuilds itself from the pieces; the generic class takes tokenizer.json as is.
    kind = "BertTokenizer" if is_wordpiece else "PreTrainedTokenizerFast"
    settings: dict[str, Any] = {"tokenizer_class": kind, "clean_up_tokenization_spaces": False}
    settings |= {_CONFIG_KEYS[role]: name for role, name in asdict(specials).items()}
    settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    if is_wordpiece:
        settings |= {"do_lower_case": lowercase, "tokenize_chinese_chars": True}
        settings["strip_accents"] = None
    if template.pad_left:
        settings |= {"padding_side": "left", "pad_token_type_id": template.pad_segment}
    return settings
