"""Masked-token objective (arXiv 1810.04805, section 3.1, task 1)."""

from typing import Self

from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.config import Config
from core_models.encoder import Encoder, EncoderOutput
from core_models.heads import MaskedTokenHead
from core_models.objectives.base import Losses
from core_models.trace import Trace

IGNORED = -100


class MaskedToken(nn.Module):
    """Cross-entropy of the hidden pieces.

    Selected positions are gathered before the head, because vocabulary scores of the other 85 %
    would be the dearest part of a small model's step and are never used.
    """

    name = "masked_token"

    def __init__(self, head: nn.Module) -> None:
        """Own a head [N, D] -> logits [N, V]."""
        super().__init__()
        self.head = head

    @classmethod
    def build(cls, config: Config, encoder: Encoder) -> Self:
        """With a new head, tied to the encoder's piece table."""
        return cls(MaskedTokenHead(config, encoder.embeddings))

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labelled positions."""
        return {self.name: (_labels(batch) != IGNORED).sum().float()}

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
        if output is None:
            output = encoder(batch, trace)
        labels = _labels(batch)
        selected = labels != IGNORED  # [B, L]
        targets = labels[selected]  # [N]
        hidden = encoder.decode(batch, output, trace)  # [B, L, D]
        logits = self.head(hidden[selected]).float()  # [N, V]
        total = functional.cross_entropy(logits, targets, reduction="sum")
        count = selected.sum().float()
        correct = (logits.detach().argmax(-1) == targets).sum().float()
        return Losses.of_one(self.name, total, count, correct)


def _labels(batch: Batch) -> Tensor:
    if batch.labels is None:
        raise ValueError("masked_token needs batch.labels")
    return batch.labels
