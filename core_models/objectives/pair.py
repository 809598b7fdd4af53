"""Objectives about a pair of segments: next sentence and sentence order."""

from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.config import Config
from core_models.heads.pretraining import NextSentenceHead, PairHead, SentenceOrderHead
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import IGNORED, Losses, Objective


class Pair(Objective):
    """Two-way cross-entropy of one answer per example."""

    head_type: ClassVar[type[PairHead]]

    def __init__(self, head: nn.Module) -> None:
        """Own a head [B, L, D] -> logits [B, 2]."""
        super().__init__()
        self.head = head

    @classmethod
    def build(cls, config: Config) -> Self:
        """With a new head."""
        return cls(cls.head_type(config))

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labelled pairs."""
        return {self.name: (self._labels(batch) != IGNORED).sum().float()}

    def reads(self, encoder: Encoder, batch: Batch) -> Tensor:
        """The first position, from which the head pools."""
        read = torch.zeros(batch.shape, dtype=torch.bool, device=batch.device)
        read[:, 0] = True
        return read

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses over ``batch.pair_labels`` [B]; -100 marks examples that are no pair."""
        if output is None:
            output = self.run(encoder, batch, trace)
        labels = self._labels(batch)
        logits = self.head(output.hidden).float()  # [B, 2]
        total = functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")
        known = labels != IGNORED
        correct = ((logits.detach().argmax(-1) == labels) & known).sum().float()
        return Losses.of_one(self.name, total, known.sum().float(), correct)

    def _labels(self, batch: Batch) -> Tensor:
        if batch.pair_labels is None:
            raise ValueError(f"{self.name} needs batch.pair_labels")
        return batch.pair_labels


class NextSentence(Pair):
    """Does the second segment follow the first (0) or not (1)? (arXiv 1810.04805, section 3.1)."""

    name = "next_sentence"
    head_type = NextSentenceHead


class SentenceOrder(Pair):
    """Do two neighbours stand in their order (0) or swapped (1)? (arXiv 1909.11942, section 3.1).

    Both segments come from one document, so the topic does not give the answer away.
    """

    name = "sentence_order"
    head_type = SentenceOrderHead
