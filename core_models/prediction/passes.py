"""Forward passes that read single positions, each family through its own pretraining head.

========  ================  =================================================================
kind      head              what predicts a hidden piece
========  ================  =================================================================
masked    masked_token      its own position, where the model sees [MASK]
order     permutation       the query stream: it knows the position and every piece that is not
                            hidden, as if the hidden ones came last in the order of prediction
causal    causal            the position before it; in a model that reads from left to right it saw
                            only the pieces to the left, else all that are not hidden
========  ================  =================================================================
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.errors import InputError
from core_models.foreign.encoder import ForeignEncoder
from core_models.model import Model
from core_models.network.trace import Trace
from core_models.tokenizer import Encoding

KINDS = {"masked_token": "masked", "permutation": "order", "causal": "causal"}
"""Kind of prediction by head."""
HEAD_ROWS = 512
"""Most positions that go through a head at once: 60 MB of logits at V = 30,522."""

Place = TypeVar("Place")
"""One position of a row, or several."""


def kind_of(heads: Collection[str], *, leftward: bool) -> str | None:
    """How a model predicts pieces, of :data:`KINDS` or ``before``; None = it has no such head.

    ``before``: a causal head over an encoder that sees both sides (pretrained by
    ``masked_next_token``, GPT-BERT): hidden pieces are [MASK] to it, each is told from the position
    before its own.

    Args:
        heads: names of the model's heads.
        leftward: whether its encoder reads from left to right (``config.left_to_right``).
    """
    kind = next((kind for name, kind in KINDS.items() if name in heads), None)
    return "before" if kind == "causal" and not leftward else kind


def ready(model: Model) -> None:
    """InputError where dropout would blur the answers."""
    if model.training:
        raise InputError("The model is in training mode, where dropout is on; call model.eval().")


def head_of(model: Model) -> nn.Module:
    """The head that predicts pieces, of a model that is ready to answer.

    Raises:
        InputError: It has none, or the model is in training mode.
    """
    head = model.heads[head_name(model)]
    ready(model)
    return head


def head_name(model: Model) -> str:
    """Name of the head that predicts pieces.

    Raises:
        InputError: The model has none; an ELECTRA discriminator, for example, judges only.
    """
    for name in KINDS:
        if name in model.heads:
            return name
    held = ", ".join(model.heads) or "none"
    hint = " It judges tokens and predicts none." if "replaced_token" in model.heads else ""
    raise InputError(
        f"{model.name or 'This model'} has no head that predicts pieces (heads: {held}; needed is "
        f"one of {', '.join(KINDS)}).{hint}"
    )


def first_told(model: Model) -> int:
    """The first position that the head can be asked for: a causal one needs a piece before it."""
    return 1 if KINDS[head_name(model)] == "causal" else 0


def check_told(model: Model, position: int) -> None:
    """InputError for a position that the head cannot be asked for."""
    if position < first_told(model):
        raise InputError(
            f"Position {position} is the first piece, and {model.name or 'this model'} tells a "
            "piece from those before it; choose a later one."
        )


def hidden_at(
    model: Model,
    encodings: Sequence[Encoding],
    places: Sequence[tuple[int, int]],
    trace: Trace | None = None,
) -> Tensor:
    """Hidden states [N, D] that the head predicts from, at (row, position) places.

    Pieces that are the mask piece are hidden from every place, whatever the family. The trace
    listens to the one forward pass, the mask decoder's included.

    Raises:
        InputError: A causal head is asked for a piece that stands first.
    """
    check_told(model, min((p for _, p in places), default=1))
    if trace is None and len(parts := together(model, encodings)) > 1:
        return apart(partial(hidden_at, model), encodings, places, parts)
    batch = model.collate(encodings)
    longest = batch.shape[1]
    left = model.tokenizer.template.pad_left
    columns = torch.tensor(
        [p + (longest - len(encodings[row]) if left else 0) for row, p in places]
    )
    rows = torch.tensor([row for row, _ in places])
    kind = KINDS[head_name(model)]
    if kind == "order":
        return _queries(model, batch, rows, columns, trace)
    if kind == "causal":
        if model.config.left_to_right:
            batch = replace(batch, visibility=_shown(model, batch)[0])
        columns = columns - 1
    if trace is not None:
        hidden = model.encoder.decode(batch, model.encoder(batch, trace), trace)
        return hidden[rows.to(hidden.device), columns.to(hidden.device)]
    targets, index = _by_row(batch, rows, columns)
    hidden = hidden_of(model, batch, targets)
    return hidden[rows.to(hidden.device), index.to(hidden.device)]


def together(model: Model, encodings: Sequence[Encoding]) -> list[list[int]]:
    """Which of the encodings may share a pass: all, or those of one length.

    The latter where padding would change what stands beside it, as in ConvBERT and FNet, which
    transformers runs: a text would mean something else beside a longer one.
    """
    rows = list(range(len(encodings)))
    if not (isinstance(model.encoder, ForeignEncoder) and model.encoder.reads_padding):
        return [rows]
    lengths = sorted({len(encoding) for encoding in encodings})
    return [[row for row in rows if len(encodings[row]) == length] for length in lengths]


def apart(
    ask: Callable[[Sequence[Encoding], Sequence[tuple[int, Place]]], Tensor],
    encodings: Sequence[Encoding],
    places: Sequence[tuple[int, Place]],
    parts: Sequence[Sequence[int]],
) -> Tensor:
    """What ``ask`` gives at N places [N, ...], each part of the rows in a pass of its own."""
    found: dict[int, Tensor] = {}
    for rows in parts:
        numbers = [n for n, (row, _) in enumerate(places) if row in rows]
        if numbers:
            own = [(rows.index(places[n][0]), places[n][1]) for n in numbers]
            answers = ask([encodings[row] for row in rows], own)
            found.update(zip(numbers, answers, strict=True))
    return torch.stack([found[n] for n in range(len(places))])


def hidden_of(model: Model, batch: Batch, places: Tensor) -> Tensor:
    """Hidden states [B, M, D] that a masked-token or causal head predicts from, at places [B, M].

    Places differ within a row. Only what they need is computed.
    """
    encoder = model.encoder
    # A mask decoder starts from the state before the last step, whose own result nobody reads.
    read = places if encoder.mask_decoder is None else places[:, :0]
    return encoder.decode(batch, encoder(batch, places=read), targets=places)


def _by_row(batch: Batch, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """N places as positions of each row [B, M], and the number of each in its row [N].

    A row with fewer is filled with positions that it does not have yet.
    """
    wanted: list[list[int]] = [[] for _ in range(batch.shape[0])]
    index = []
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        own = wanted[row]
        if column not in own:
            own.append(column)
        index.append(own.index(column))
    most = max(1, *(len(own) for own in wanted))
    for own in wanted:
        own += [p for p in range(batch.shape[1]) if p not in own][: most - len(own)]
    return torch.tensor(wanted, device=batch.device), torch.tensor(index)


def _queries(
    model: Model, batch: Batch, rows: Tensor, columns: Tensor, trace: Trace | None
) -> Tensor:
    """The query stream at N places; its own place is hidden from each."""
    content, shown = _shown(model, batch)
    targets, index = _by_row(batch, rows, columns)
    seen = shown[:, None, :].expand(-1, targets.shape[1], -1)
    itself = torch.arange(batch.shape[1], device=batch.device) == targets[..., None]
    out = model.encoder(
        replace(batch, visibility=content, targets=targets, target_visibility=seen & ~itself),
        trace,
        places=targets[:, :0] if trace is None else None,
    )
    stream = out.streams["query"]
    found: Tensor = stream[rows.to(stream.device), index.to(stream.device)]
    return found


def _shown(model: Model, batch: Batch) -> tuple[Tensor, Tensor]:
    """What the content stream sees [B, L, L], and which pieces are not hidden [B, L]."""
    assert batch.input_ids is not None
    shown = batch.input_ids != model.tokenizer.mask_id
    itself = torch.eye(batch.shape[1], dtype=torch.bool, device=batch.device)
    return shown[:, None, :] | itself, shown


def seen_with(encoding: Encoding, changes: Mapping[int, int]) -> Encoding:
    """The encoding with other pieces at some positions."""
    ids = list(encoding.ids)
    for position, index in changes.items():
        ids[position] = index
    return replace(encoding, ids=ids)
