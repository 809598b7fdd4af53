"""SentencePiece's own files: spiece.model of ALBERT and XLNet, spm.model of DeBERTa v2 and v3.

Such a file holds pieces with their scores and how text is cleaned before (google/sentencepiece,
sentencepiece_model.proto). What the released code does besides depends on the family: ALBERT and
XLNet straighten quotes, drop accents and part a comma from the number before it; DeBERTa does none
of this and adds the mask piece behind the others.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from core_models.config.check import MOST_PIECES
from core_models.errors import InputError
from core_models.tokenizer import checks, files

NAMES = ("spm.model", "spiece.model")
_MOST_BYTES = 64 * 2**20
_UNIGRAM = 1
"""Of the four algorithms that such a file may name."""
_NEVER = -100.0
"""Added to the score of a piece that must not be chosen: far below any sum of single letters."""


class _Type(IntEnum):
    """What a piece is (SentencePiece.Type)."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class _Family:
    """What a family's released code does around the file."""

    name: str
    lowercase: bool
    straight: bool
    """Straight quotes, no accents, a comma apart from its number (ALBERT, XLNet)."""
    trailing: bool = False
    """``A <sep> <cls>`` in place of ``[CLS] A [SEP]``."""
    mask: str | None = None
    """A mask piece that stands behind those of the file."""


_FAMILIES = {
    "<cls>": _Family("XLNet", lowercase=False, straight=True, trailing=True),
    "[PAD]": _Family("DeBERTa", lowercase=False, straight=False, mask="[MASK]"),
    "[CLS]": _Family("ALBERT", lowercase=True, straight=True),
}
"""By the first of these pieces that the file has."""


def read(path: Path, given: Mapping[str, Any]) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """Backend and settings from a file of SentencePiece's.

    Args:
        path: spiece.model or spm.model.
        given: The content of tokenizer_config.json, for ``do_lower_case``, ``keep_accents``,
            ``split_by_punct`` and the names of the special pieces.

    Raises:
        InputError: The file is damaged or too large, holds no unigram model, or has the special
            pieces of none of these families.
    """
    proto = _parse(path)
    _check(proto, path)
    pieces = [piece.piece for piece in proto.pieces]
    sign = next((piece for piece in _FAMILIES if piece in set(pieces)), None)
    if sign is None:
        raise InputError(
            f"{path.name} has the special pieces of no family known here: none of "
            f"{', '.join(_FAMILIES)} is among its {len(pieces):,} pieces. Give the file of an "
            "ALBERT, XLNet or DeBERTa, or save the tokenizer as tokenizer.json."
        )
    family = _FAMILIES[sign]
    lowercase = checks.said(given, "do_lower_case", family.lowercase)
    backend = tokenizers.Tokenizer(_model(proto, family))
    backend.normalizer = _normalizer(proto, family, given, lowercase)
    backend.pre_tokenizer, backend.decoder = _words(proto, given)
    if family.mask and family.mask not in pieces:
        backend.add_special_tokens([AddedToken(family.mask, special=True, normalized=False)])
    specials = files.specials_from(given, backend.get_vocab(with_added_tokens=True))
    files.add_specials(backend, specials, lstrip=True)
    control = {piece.piece for piece in proto.pieces if piece.type == _Type.CONTROL}
    others = sorted(control - set(specials.names()))
    backend.add_special_tokens([AddedToken(p, special=True, normalized=False) for p in others])
    make = files.Template.trailing if family.trailing else files.Template.enclosing
    template = make(specials)
    backend.post_processor = template.processor(backend)
    return backend, files.settings_for(backend, specials, template, lowercase=lowercase)


def _model(proto: Any, family: _Family) -> models.Unigram:
    best = max((p.score for p in proto.pieces if p.type == _Type.NORMAL), default=0.0)
    scored = []
    for piece in proto.pieces:
        # The released code cuts "9," again without its comma; here it is never chosen.
        comma = family.straight and piece.piece[-1:] == "," and piece.piece[-2:-1].isdigit()
        score = piece.score
        if piece.type == _Type.USER_DEFINED:
            score = len(piece.piece) * best - 0.1  # unigram_model.cc: whole wherever it stands
        elif comma or piece.type == _Type.UNUSED:
            score += _NEVER
        scored.append((piece.piece, score))
    unknown = next(n for n, piece in enumerate(proto.pieces) if piece.type == _Type.UNKNOWN)
    return models.Unigram(
        scored, unk_id=unknown, byte_fallback=bool(proto.trainer_spec.byte_fallback)
    )


def _normalizer(
    proto: Any, family: _Family, given: Mapping[str, Any], lowercase: bool
) -> normalizers.Sequence:
    steps: list[Any] = []
    if family.straight:
        steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
        if not checks.said(given, "keep_accents", False):
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if lowercase:
        steps.append(normalizers.Lowercase())
    if table := proto.normalizer_spec.precompiled_charsmap:
        steps.append(_table(table))
    if proto.normalizer_spec.remove_extra_whitespaces:
        # Where words begin with a blank, one at the beginning is that of the first word.
        bare = not proto.normalizer_spec.add_dummy_prefix
        steps += [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(left=bare)]
    return normalizers.Sequence(steps)


def _table(table: bytes) -> normalizers.Precompiled:
    """Which characters are written as others, as SentencePiece has laid it out."""
    with checks.readable("The table of characters in this tokenizer is not readable"):
        made = normalizers.Precompiled(table)
        made.normalize_str("Aa\u00e9 \uff21\u6f22")
    return made


def _words(proto: Any, given: Mapping[str, Any]) -> tuple[Any, Any]:
    # "first": what follows a mask piece directly ("[MASK].") gets no blank of its own, as in the
    # texts of pretraining, where pieces are hidden after the text was cut. What it costs: a text
    # that begins with something that is cleaned away ("''") has no blank at its first piece.
    prepend = "first" if proto.normalizer_spec.add_dummy_prefix else "never"
    steps: list[Any] = [pre_tokenizers.Metaspace(prepend_scheme=prepend)]
    if checks.said(given, "split_by_punct", False):
        steps.insert(0, pre_tokenizers.Punctuation())
    back: list[Any] = [decoders.Metaspace(prepend_scheme=prepend)]
    if proto.trainer_spec.byte_fallback:
        back = [decoders.ByteFallback(), *back]
    return pre_tokenizers.Sequence(steps), decoders.Sequence(back)


def _check(proto: Any, path: Path) -> None:
    pieces = [piece.piece for piece in proto.pieces]
    unknown = sum(piece.type == _Type.UNKNOWN for piece in proto.pieces)
    problem = None
    if not pieces or not proto.HasField("trainer_spec"):
        problem = "it holds no pieces or does not say how they were learnt; it may be cut short"
    elif proto.trainer_spec.model_type != _UNIGRAM:
        problem = "it holds no unigram model, the only one that this family uses"
    elif not all(isinstance(piece, str) for piece in pieces):
        problem = "a piece is no valid text"
    elif len(pieces) > MOST_PIECES:
        problem = f"it has {len(pieces):,} pieces; allowed are {MOST_PIECES:,}"
    elif len(set(pieces)) < len(pieces) or "" in pieces:
        problem = "a piece is empty or stands there twice"
    elif unknown != 1:
        problem = f"{unknown} of its pieces stand for what is unknown; one must"
    elif not all(math.isfinite(piece.score) for piece in proto.pieces):
        problem = "a piece has a score that is no number"
    if problem:
        raise InputError(f"{path.name} is not a usable tokenizer: {problem}.")


def _parse(path: Path) -> Any:
    if (size := path.stat().st_size) > _MOST_BYTES:
        raise InputError(
            f"{path.name} has {size:,} bytes; a tokenizer has at most {_MOST_BYTES:,}."
        )
    try:
        from google.protobuf.message import DecodeError  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"Reading {path.name} needs the package protobuf: pip install protobuf. Or save the "
            "tokenizer as tokenizer.json with transformers' save_pretrained."
        ) from error
    content = path.read_bytes()
    if _count(content) > MOST_PIECES:
        raise InputError(f"{path.name} has more than {MOST_PIECES:,} pieces.")
    proto = _schema()()
    try:
        proto.ParseFromString(content)
    except DecodeError as error:
        raise InputError(
            f"{path.name} is not readable as a model of SentencePiece's: {error}"
        ) from error
    return proto


def _count(content: bytes) -> int:
    """How many parts a file has, or one more than there may be pieces: to tell before unpacking.

    A part is a number that says which and how it is written, and what it holds.
    """
    at = count = 0
    while at < len(content) and count <= MOST_PIECES:
        written = content[at] & 7
        at = _after_number(content, at)
        if written == 0:
            at = _after_number(content, at)
        elif written == 2:
            start = _after_number(content, at)
            if start == at + 1:  # nearly all: a file may hold millions
                at += 1 + content[at] if at < len(content) else 1
            else:
                low = [byte & 127 for byte in content[at:start]]
                at = start + sum(byte << 7 * place for place, byte in enumerate(low))
        elif written in (1, 5):
            at += 8 if written == 1 else 4
        else:
            break  # what unpacks it says what is wrong
        count += 1
    return count


def _after_number(content: bytes, at: int) -> int:
    while at < len(content) and content[at] & 128:
        at += 1
    return at + 1


@cache
def _schema() -> Any:
    """The part of sentencepiece_model.proto that is needed; other fields are passed over."""
    from google.protobuf import (  # noqa: PLC0415
        descriptor_pb2,
        descriptor_pool,
        json_format,
        message_factory,
    )

    def field(name: str, number: int, kind: str, default: str = "", **more: str) -> dict[str, Any]:
        values = {"name": name, "number": number, "type": f"TYPE_{kind}", **more}
        values.setdefault("label", "LABEL_OPTIONAL")
        return values | ({"defaultValue": default} if default else {})

    package = "cloze.sentencepiece"
    messages = {
        "SentencePiece": [
            field("piece", 1, "STRING"),
            field("score", 2, "FLOAT"),
            field("type", 3, "INT32", "1"),
        ],
        "TrainerSpec": [
            field("model_type", 3, "INT32", "1"),
            field("byte_fallback", 35, "BOOL", "false"),
        ],
        "NormalizerSpec": [
            field("precompiled_charsmap", 2, "BYTES"),
            field("add_dummy_prefix", 3, "BOOL", "true"),
            field("remove_extra_whitespaces", 4, "BOOL", "true"),
        ],
        "ModelProto": [
            field(name, number, "MESSAGE", typeName=f".{package}.{kind}", label=label)
            for name, number, kind, label in (
                ("pieces", 1, "SentencePiece", "LABEL_REPEATED"),
                ("trainer_spec", 2, "TrainerSpec", "LABEL_OPTIONAL"),
                ("normalizer_spec", 3, "NormalizerSpec", "LABEL_OPTIONAL"),
            )
        ],
    }
    described = {
        "name": "cloze_sentencepiece.proto",
        "package": package,
        "syntax": "proto2",
        "messageType": [{"name": name, "field": fields} for name, fields in messages.items()],
    }
    pool = descriptor_pool.DescriptorPool()
    pool.Add(json_format.ParseDict(described, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.ModelProto"))
