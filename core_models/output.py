"""What calling a model gives: its heads' answers, each by the way that its family takes to them."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.heads.task import TaskHead
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace

UNASKED = frozenset({"span_boundary"})
"""Heads whose questions are more than a text: which span is hidden (`prediction.fill_spans`)."""


@dataclass(frozen=True)
class ModelOutput:
    """The answers of a :class:`~core_models.model.Model` to a batch."""

    batch: Batch
    """What was read [B, L]: pieces, segments, and which of them are padding."""
    hidden: Tensor
    """The encoder's last hidden states [B, L, D]; XLNet's content stream."""
    logits: dict[str, Tensor]
    """Scores by head:

    ``masked_token`` [B, L, V]
        the piece at each place, seen from the mask decoder where there is one (DeBERTa);
    ``permutation`` [B, L, V]
        the piece at each place, from the query stream, which sees every piece but that one and the
        hidden ones (XLNet); [B, M, V] where the batch names its own ``targets``;
    ``causal`` [B, L, V]
        the piece *after* each place;
    ``replaced_token`` [B, L]
        above 0 = replaced;
    ``next_sentence``, ``sentence_order`` [B, 2]
        0 = next or in order, 1 = random or swapped;
    fine-tuning heads
        as their ``forward`` says.
    """
    attention: tuple[Tensor, ...] = ()
    """Attention of each step [B, H, L, L] where asked for; rows look at columns."""


torch.export.register_dataclass(ModelOutput)


def ask(
    encoder: Encoder,
    heads: nn.ModuleDict,
    batch: Batch,
    *,
    mask_id: int,
    attention: bool = False,
) -> ModelOutput:
    """One forward pass and all heads that a text alone can ask.

    Args:
        encoder: of the model.
        heads: of the model.
        batch: inputs [B, L]. Where a permutation head is asked and the batch has no ``targets``,
            every place is one, and pieces that are the mask piece are hidden from all others.
        mask_id: the mask piece.
        attention: whether to hand out the attention of every step; takes the slower path.

    A model that reads from left to right is asked alike: what follows a mask piece does not see it,
    as it was never read.
    """
    ids = batch.input_ids
    if ids is not None and batch.targets is None:
        if "permutation" in heads:
            batch = every_place(batch, mask_id)
        elif "causal" in heads and encoder.config.left_to_right and mask_id in ids:
            batch = replace(batch, visibility=every_place(batch, mask_id).visibility)
    trace = Trace(["probabilities"]) if attention else None
    task = encoder.config.task
    output = encoder(batch, trace, every_step=task is not None and task.every_step)
    logits = {
        name: _logits(encoder, name, head, batch, output)
        for name, head in heads.items()
        if name not in UNASKED
    }
    steps = range(encoder.config.steps) if trace is not None else ()
    seen = tuple(trace["probabilities", step] for step in steps) if trace is not None else ()
    return ModelOutput(batch, output.hidden, logits, seen)


def every_place(batch: Batch, mask_id: int) -> Batch:
    """The batch with a query for every place, which sees all but itself and the mask pieces.

    Of a batch with a ``visibility`` it sees of these what the place may see.
    """
    assert batch.input_ids is not None
    rows, length = batch.shape
    shown = batch.input_ids != mask_id
    itself = torch.eye(length, dtype=torch.bool, device=batch.device)
    content = shown[:, None, :] | itself
    if batch.visibility is not None:
        content = content & batch.visibility
    return replace(
        batch,
        visibility=content,
        targets=torch.arange(length, device=batch.device).expand(rows, -1),
        target_visibility=content & ~itself,
    )


def _logits(
    encoder: Encoder, name: str, head: nn.Module, batch: Batch, output: EncoderOutput
) -> Tensor:
    if isinstance(head, TaskHead):
        return head.answer(encoder, batch, output=output)
    if name == "masked_token":
        hidden = encoder.decode(batch, output)
    else:
        stream = "query" if name == "permutation" else ""
        hidden = output.streams.get(stream, output.hidden)
    logits: Tensor = head(hidden)
    return logits
