"""A fresh model that begins with the encoder of another one, of any family and vocabulary."""

import re

import torch
from torch import Tensor

from core_models.config import Config, Disentangled
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
_PLACES = f"{_DECODER}weight"
_CONVOLUTION = "convolution."
_QUERY_START = "query_start"
_BLOCK = re.compile(r"blocks\.(\d+)\.")
_ALONE = re.compile(
    rf"table\.|{_DECODER}|{_CONVOLUTION}|{_QUERY_START}$|blocks\.\d+\.attention\.terms\."
)
"""Parts that only families with score terms or a second stream have."""
_DRAWN = 0.05
"""Standard deviation of pieces that no norm follows; near that of drawn ones, so that the scores of
a decoder tied to them begin small."""


def take_encoder(model: Model, name: str) -> None:
    """Begin with the encoder of another model.

    Layers must fit. Of a table of positions each row is taken, from the first position of either
    family on. Where the vocabularies differ, a piece that reads the same in both, small letters or
    not, takes the other's vector; the rest stay as drawn. A family that knows fewer segments takes
    the first ones. A deeper encoder takes all layers again from the first on (stacking, Gong et al.
    2019, PMLR 97), as a discriminator does that begins with a generator half as deep; a shallower
    one takes the last of every two or more (as DistilBERT every second, arXiv 1910.01108, section
    3); a mask decoder or a convolution that only the other has is left out, and of the absolute
    positions in the mask decoder as many are taken as both have. One block that serves all layers
    takes that of the middle layer, and tables narrower than the layers take the directions that
    hold most of the others' (ALBERT that begins with BERT); both are rough, and training has to do
    the rest. A family with score terms of its own begins from plain attention with equal content
    scores; its terms stay as drawn, and what it has no place for is left out (:func:`_with_terms`).

    Args:
        model: A fresh one; its encoder is changed.
        name: A shipped name or a folder.

    Raises:
        InputError: a part is missing on either side, or has another shape.
    """
    source = load(name)
    own, given = model.encoder.state_dict(), source.encoder.state_dict()
    own_kind, given_kind = (m.config.attention.terms.kind for m in (model, source))
    crossing = given_kind == "plain" != own_kind
    if crossing:
        given = _with_terms(model.config, own, given, source)
    if _PROJECTION in own and _PROJECTION not in given:
        given = _narrowed(given, own[_PIECES].shape[1])
    taken = _stacked(given, own, shared=model.config.blocks == 1 < model.config.steps)
    if crossing:
        taken = {k: v for k, v in own.items() if _ALONE.match(k)} | taken
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
    if _PLACES in own and _PLACES in taken:
        rows = min(len(own[_PLACES]), len(taken[_PLACES]))
        taken[_PLACES] = torch.cat([taken[_PLACES][:rows], own[_PLACES][rows:]])
    _refuse_misfits(name, own, taken)
    model.encoder.load_state_dict(taken)


def _stacked(given: _Parts, own: _Parts, *, shared: bool) -> _Parts:
    """The given parts, with as many layers as the own encoder has where one is a multiple."""
    left_out = (_DECODER, _CONVOLUTION)
    rest = {k: v for k, v in given.items() if k in own or not k.startswith(left_out)}
    here, there = _depth(own), _depth(given)
    blocks = {(int(m[1]), k[m.end() :]): v for k, v in given.items() if (m := _BLOCK.match(k))}
    if shared and here < there:
        rest = {k: v for k, v in rest.items() if not _BLOCK.match(k)}
        middle = {name: v for (number, name), v in blocks.items() if number == there // 2}
        return rest | {f"blocks.0.{name}": v for name, v in middle.items()}
    if here and here < there and there % here == 0:
        every = there // here
        rest = {k: v for k, v in rest.items() if not _BLOCK.match(k)}
        for (number, name), tensor in blocks.items():
            if number % every == every - 1:
                rest[f"blocks.{number // every}.{name}"] = tensor
    if there and here > there and here % there == 0:
        for (number, name), tensor in blocks.items():
            for copy in range(number + there, here, there):
                rest[f"blocks.{copy}.{name}"] = tensor
    return rest


def _with_terms(config: Config, own: _Parts, given: _Parts, source: Model) -> _Parts:
    """The parts of an encoder with plain attention for one of another kind.

    DeBERTa divides content scores by sqrt(3 d), so queries grow by sqrt(3). XLNet has no biases but
    that of the queries, no norm after the pieces, and starts its second stream with one vector,
    that of the mask. Biases of keys move no score; those of values and outputs are lost, as are
    absolute positions and segments where the family has none.
    """
    parts = dict(given)
    if _NORM + "weight" not in own:
        parts |= _unnormed(parts, source.config.norm_epsilon)
    for key, tensor in given.items():
        terms = config.attention.terms
        if isinstance(terms, Disentangled) and ".attention.query." in key:
            parts[key] = tensor * (1 + len(terms.kinds)) ** 0.5
        if key.endswith(".attention.query.bias") and key not in own:
            bias = key.replace("query.bias", "terms.content_bias")
            if bias in own:
                parts[bias] = tensor.view_as(own[bias])
    if _QUERY_START in own:
        parts[_QUERY_START] = parts[_PIECES][source.tokenizer.mask_id]
    lost = (_POSITIONS, _SEGMENTS, _NORM + "weight")
    return {
        key: tensor
        for key, tensor in parts.items()
        if _BLOCK.sub("blocks.0.", key) in own or not (key in lost or key.endswith("bias"))
    }


def _normed(given: _Parts) -> bool:
    """Whether a norm with weight and bias follows the pieces; others are refused as misfits."""
    return _NORM + "weight" in given and _NORM + "bias" in given


def _unnormed(given: _Parts, epsilon: float) -> _Parts:
    """The pieces as their norm leaves them, made small; the first layer's scores stay the same."""
    if not _normed(given):
        return given
    width = given[_PIECES].shape[1:]
    weight, bias = given[_NORM + "weight"], given[_NORM + "bias"]
    normed = torch.nn.functional.layer_norm(given[_PIECES], width, weight, bias, epsilon)
    factor = _DRAWN / float(normed.std())
    first = {
        f"blocks.0.attention.{name}": given[f"blocks.0.attention.{name}"] / factor
        for name in ("query.weight", "key.weight")
    }
    return {_PIECES: normed * factor, **first}


def _narrowed(given: _Parts, width: int) -> _Parts:
    """The same embeddings through tables of fewer columns E and a projection to all D.

    Rows are centred, as the norm would do it, and turned to the E directions with the largest
    singular values of the pieces. The norm over E columns makes vectors sqrt(D / E) shorter than
    that over D; weight and bias of the latter go into the projection.
    """
    if not _normed(given):
        return given
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
            f"{there} there (parts that differ: {len(odd)}). Choose the same layers, width and "
            "positions."
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
