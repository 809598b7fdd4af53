"""Masked-token objective (arXiv 1810.04805, section 3.1, task 1)."""

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.config import Config
from core_models.heads.pretraining import build_head
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import IGNORED, Losses, Objective, positions


class MaskedToken(Objective):
    """Cross-entropy of the hidden pieces.

    Selected positions are gathered before the head, because vocabulary scores of the other 85 %
    would be the dearest part of a small model's step and are never used.

    Where the batch weights its labels (ELECTRA draws positions with replacement, and one drawn
    twice counts twice), every sum is weighted and the sum of the weights is the count.
    """

    name = "masked_token"

    def __init__(self, head: nn.Module) -> None:
        """Own a head [N, D] -> logits [N, V]."""
        super().__init__()
        self.head = head

    @classmethod
    def build(cls, config: Config, encoder: Encoder) -> Self:
        """With a new head over the encoder's piece table."""
        return cls(build_head(cls.name, config, encoder.embeddings))

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labelled positions, or the sum of their weights."""
        selected = labelled(batch)
        return {self.name: _count(batch, selected)}

    def reads(self, encoder: Encoder, batch: Batch) -> Tensor:
        """The labelled positions; none where a mask decoder starts from the state before."""
        selected = labelled(batch)
        return selected if encoder.mask_decoder is None else torch.zeros_like(selected)

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses over ``batch.labels`` [B, L]; -100 marks positions without a label.

        With no label at all the loss is 0 and its gradient is zero, not NaN.
        """
        return self.losses(batch, self.scores(encoder, batch, trace, output))

    def scores(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Tensor:
        """Logits [N, V] in float32 at the labelled positions, in the order of the batch."""
        if output is None:
            output = self.run(encoder, batch, trace)
        selected = labelled(batch)
        if encoder.mask_decoder is None or trace is not None:
            hidden = encoder.decode(batch, output, trace)[selected]  # [N, D]
        else:  # its queries need none of the other 85 %
            targets, real = positions(selected)
            hidden = encoder.decode(batch, output, targets=targets)[real]
        logits: Tensor = self.head(hidden)
        return logits.float()

    def losses(self, batch: Batch, logits: Tensor) -> Losses:
        """Losses of the logits [N, V] that :meth:`scores` gives."""
        selected = labelled(batch)
        assert batch.labels is not None
        targets = batch.labels[selected]  # [N]
        count = _count(batch, selected)
        hits = logits.detach().argmax(-1) == targets
        if batch.label_weights is None:
            total = functional.cross_entropy(logits, targets, reduction="sum")
            return Losses.of_one(self.name, total, count, hits.sum().float())
        weights = batch.label_weights[selected].float()
        total = (functional.cross_entropy(logits, targets, reduction="none") * weights).sum()
        return Losses.of_one(self.name, total, count, (hits * weights).sum())


def labelled(batch: Batch) -> Tensor:
    """Bool [B, L], True where the batch asks for a piece."""
    if batch.labels is None:
        raise ValueError("masked_token needs batch.labels")
    return batch.labels != IGNORED


def _count(batch: Batch, selected: Tensor) -> Tensor:
    if batch.label_weights is None:
        return selected.sum().float()
    return batch.label_weights[selected].float().sum()
