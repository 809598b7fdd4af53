"""Permutation objective (arXiv 1906.08237, sections 2.2 and 2.3)."""

from dataclasses import replace
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.config import Config
from core_models.heads.pretraining import build_head
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import IGNORED, Losses, Objective


class Permutation(Objective):
    """Cross-entropy of the last pieces of a random order, each told from those before it.

    The answers come from the query stream, which knows the place of a target and not its contents.
    Only ``batch.targets`` are predicted; what each stream sees is in the batch too. The memory for
    the next segment is passed on in ``Losses.memory``.
    """

    name = "permutation"

    def __init__(self, head: nn.Module) -> None:
        """Own a head [N, D] -> logits [N, V]."""
        super().__init__()
        self.head = head

    @classmethod
    def build(cls, config: Config, encoder: Encoder) -> Self:
        """With a new head, tied to the encoder's piece table."""
        return cls(build_head("permutation", config, encoder.embeddings))

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of targets that are no padding."""
        return {self.name: (_labels(batch) != IGNORED).sum().float()}

    def reads(self, encoder: Encoder, batch: Batch) -> Tensor:
        """No position: the answers come from the query stream."""
        return torch.zeros(batch.shape, dtype=torch.bool, device=batch.device)

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses over ``batch.target_labels`` [B, M]; -100 marks targets that are padding."""
        labels = _labels(batch)
        if output is None:
            output = self.run(encoder, batch, trace)
        selected = labels != IGNORED  # [B, M]
        targets = labels[selected]  # [N]
        logits = self.head(output.streams["query"][selected]).float()  # [N, V]
        total = functional.cross_entropy(logits, targets, reduction="sum")
        count = selected.sum().float()
        correct = (logits.detach().argmax(-1) == targets).sum().float()
        losses = Losses.of_one(self.name, total, count, correct)
        return replace(losses, memory=output.memory)


def _labels(batch: Batch) -> Tensor:
    if batch.targets is None or batch.target_labels is None:
        raise ValueError("permutation needs batch.targets and batch.target_labels")
    return batch.target_labels
