"""A fresh model that begins with the encoder of another one, of any family and vocabulary."""

import re

import torch
from torch import Tensor

from core_models.errors import InputError
from core_models.model import Model, load
from core_models.tokenizer import Tokenizer

_Parts = dict[str, Tensor]

_PIECES = "embeddings.pieces.weight"
_POSITIONS = "embeddings.positions.weight"
_SEGMENTS = "embeddings.segments.weight"
_NORM = "embeddings.norm."
_PROJECTION = "embeddings.projection.weight"
_DECODER = "mask_decoder."
_BLOCK = re.compile(r"blocks\.(\d+)\.")


def take_encoder(model: Model, name: str) -> None:
    """Begin with the encoder of another model.

    Layers must fit. Of a table of positions each row is taken, from the first position of either
    family on. Where the vocabularies differ, a piece that reads the same in both, small letters or
    not, takes the other's vector; the rest stay as drawn. A family that knows fewer segments takes
    the first ones. A deeper encoder takes all layers again from the first on (stacking, Gong et al.
    2019, PMLR 97), as a discriminator does that begins with a generator half as deep; the mask
    decoder that only the generator has is left out. One block that serves all layers takes that of
    the middle layer, and tables narrower than the layers take the directions that hold most of the
    others' (ALBERT that begins with BERT); both are rough, and training has to do the rest.

    Args:
        model: A fresh one; its encoder is changed.
        name: A shipped name or a folder.

    Raises:
        InputError: a part is missing on either side, or has another shape.
    """
    source = load(name)
    own, given = model.encoder.state_dict(), source.encoder.state_dict()
    if _PROJECTION in own and _PROJECTION not in given:
        given = _narrowed(given, own[_PIECES].shape[1])
    taken = _stacked(given, own, shared=model.config.blocks == 1 < model.config.steps)
    if own[_PIECES].shape[1] != given[_PIECES].shape[1]:
        _refuse_misfits(name, own, taken)
    if _all(model.tokenizer) != _all(source.tokenizer):
        taken[_PIECES] = _pieces(model.tokenizer, own[_PIECES], source.tokenizer, given[_PIECES])
    if _POSITIONS in own and _POSITIONS in given:
        here = model.config.embeddings.first_position
        there = source.config.embeddings.first_position
        taken[_POSITIONS] = torch.cat([own[_POSITIONS][:here], given[_POSITIONS][there:]])
    if _SEGMENTS in own and _SEGMENTS in given:
        taken[_SEGMENTS] = given[_SEGMENTS][: len(own[_SEGMENTS])]
    _refuse_misfits(name, own, taken)
    model.encoder.load_state_dict(taken)


def _stacked(given: _Parts, own: _Parts, *, shared: bool) -> _Parts:
    """The given parts, with as many layers as the own encoder has if that is a multiple."""
    rest = {k: v for k, v in given.items() if k in own or not k.startswith(_DECODER)}
    here, there = _depth(own), _depth(given)
    blocks = {(int(m[1]), k[m.end() :]): v for k, v in given.items() if (m := _BLOCK.match(k))}
    if shared and here < there:
        rest = {k: v for k, v in rest.items() if not _BLOCK.match(k)}
        middle = {name: v for (number, name), v in blocks.items() if number == there // 2}
        return rest | {f"blocks.0.{name}": v for name, v in middle.items()}
    if there and here > there and here % there == 0:
        for (number, name), tensor in blocks.items():
            for copy in range(number + there, here, there):
                rest[f"blocks.{copy}.{name}"] = tensor
    return rest


def _narrowed(given: _Parts, width: int) -> _Parts:
    """The same embeddings through tables of fewer columns E and a projection to all D.

    Rows are centred, as the norm would do it, and turned to the E directions with the largest
    singular values of the pieces. The norm over E columns makes vectors sqrt(D / E) shorter than
    that over D; weight and bias of the latter go into the projection.
    """
    tables = [name for name in (_PIECES, _POSITIONS, _SEGMENTS) if name in given]
    centred = {name: given[name] - given[name].mean(1, keepdim=True) for name in tables}
    basis = torch.linalg.svd(centred[_PIECES], full_matrices=False).Vh[:width].T  # [D, E]
    scale = given[_NORM + "weight"] * (len(basis) / width) ** 0.5
    return given | {
        **{name: table @ basis for name, table in centred.items()},
        _NORM + "weight": torch.ones(width),
        _NORM + "bias": torch.zeros(width),
        _PROJECTION: scale[:, None] * basis,
        _PROJECTION.replace("weight", "bias"): given[_NORM + "bias"],
    }


def _depth(parts: _Parts) -> int:
    return 1 + max((int(m[1]) for key in parts if (m := _BLOCK.match(key))), default=-1)


def _refuse_misfits(name: str, own: _Parts, given: _Parts) -> None:
    odd = [
        key
        for key in sorted({*own, *given})
        if key not in own or key not in given or own[key].shape != given[key].shape
    ]
    if odd:
        key = odd[0]
        here, there = (list(t[key].shape) if key in t else "missing" for t in (own, given))
        raise InputError(
            f"model.encoder_from: the encoder of {name} does not fit: {key} is {here} here and "
            f"{there} there ({len(odd)} parts differ). Choose the same layers, width and positions."
        )


def _pieces(words: Tokenizer, own: Tensor, known: Tokenizer, given: Tensor) -> Tensor:
    """The own table [V, D] with the vectors of pieces that both vocabularies read alike."""
    by_reading = {_reading(known, i): i for i in reversed(range(known.vocabulary))}
    table = own.clone()
    for index in range(words.vocabulary):
        there = by_reading.get(_reading(words, index))
        if there is not None:
            table[index] = given[there]
    return table


def _all(tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.piece(index) for index in range(tokenizer.vocabulary)]


def _reading(tokenizer: Tokenizer, index: int) -> tuple[str, bool | None]:
    """What a piece is to a reader: its text, and whether it starts a word (marks: no matter)."""
    roles = {
        tokenizer.mask_id: "mask",
        tokenizer.pad_id: "pad",
        tokenizer.cls_id: "first",
        tokenizer.sep_id: "end",
        tokenizer.unknown_id: "unknown",
    }
    if index in roles:
        return roles[index], None
    text = tokenizer.display(index).lower()
    return text, tokenizer.starts_word(index) if any(c.isalnum() for c in text) else None
