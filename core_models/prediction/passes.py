"""Forward passes that read single positions, each family through its own pretraining head.

========  ================  =================================================================
kind      head              what predicts a hidden piece
========  ================  =================================================================
masked    masked_token      its own position, where the model sees [MASK]
order     permutation       the query stream: it knows the position and every piece that is not
                            hidden, as if the hidden ones came last in the order of prediction
causal    causal            the position before it, which saw only the pieces to the left
========  ================  =================================================================
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.errors import InputError
from core_models.model import Model
from core_models.tokenizer import Encoding
from core_models.trace import Trace

KINDS = {"masked_token": "masked", "permutation": "order", "causal": "causal"}
"""Kind of prediction by head."""
HEAD_ROWS = 512
"""Most positions that go through a head at once: 60 MB of logits at V = 30,522."""


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


def hidden_at(
    model: Model,
    encodings: Sequence[Encoding],
    places: Sequence[tuple[int, int]],
    trace: Trace | None = None,
) -> Tensor:
    """Hidden states [N, D] that the head predicts from, at (row, position) places.

    Pieces that are the mask piece are hidden from every place, whatever the family. The trace
    listens to the one forward pass, the mask decoder's included.
    """
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
        batch = replace(batch, visibility=_shown(model, batch)[0])
        columns = columns - 1
    hidden = model.encoder.decode(batch, model.encoder(batch, trace), trace)
    return hidden[rows.to(hidden.device), columns.to(hidden.device)]


def _queries(
    model: Model, batch: Batch, rows: Tensor, columns: Tensor, trace: Trace | None
) -> Tensor:
    """The query stream at N places; its own place is hidden from each."""
    content, shown = _shown(model, batch)
    counts = torch.bincount(rows, minlength=batch.shape[0])
    # Number of each place among those of its row.
    index = torch.stack([(rows[:n] == rows[n]).sum() for n in range(len(rows))])
    targets = torch.zeros(batch.shape[0], max(1, int(counts.max())), dtype=torch.long)
    targets[rows, index] = columns
    targets = targets.to(batch.device)
    seen = shown[:, None, :].expand(-1, targets.shape[1], -1)
    itself = torch.arange(batch.shape[1], device=batch.device) == targets[..., None]
    out = model.encoder(
        replace(batch, visibility=content, targets=targets, target_visibility=seen & ~itself),
        trace,
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
