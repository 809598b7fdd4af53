"""Next-sentence objective (arXiv 1810.04805, section 3.1, task 2)."""

from typing import Self

from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.config import Config
from core_models.encoder import Encoder, EncoderOutput
from core_models.heads import NextSentenceHead
from core_models.objectives.base import Losses
from core_models.trace import Trace

IGNORED = -100


class NextSentence(nn.Module):
    """Two-way cross-entropy: does the second segment follow the first (0) or not (1)?"""

    name = "next_sentence"

    def __init__(self, head: nn.Module) -> None:
        """Own a head [B, L, D] -> logits [B, 2]."""
        super().__init__()
        self.head = head

    @classmethod
    def build(cls, config: Config) -> Self:
        """With a new head."""
        return cls(NextSentenceHead(config))

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labelled pairs."""
        return {self.name: (_labels(batch) != IGNORED).sum().float()}

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses over ``batch.pair_labels`` [B]; -100 marks examples that are no pair."""
        if output is None:
            output = encoder(batch, trace)
        labels = _labels(batch)
        logits = self.head(output.hidden).float()  # [B, 2]
        total = functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")
        labelled = labels != IGNORED
        count = labelled.sum().float()
        correct = ((logits.detach().argmax(-1) == labels) & labelled).sum().float()
        return Losses.of_one(self.name, total, count, correct)


def _labels(batch: Batch) -> Tensor:
    if batch.pair_labels is None:
        raise ValueError("next_sentence needs batch.pair_labels")
    return batch.pair_labels
