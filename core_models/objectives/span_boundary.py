"""Span-boundary objective (arXiv 1907.10529, section 3.2)."""

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.config import Config
from core_models.heads.pretraining import SpanBoundaryHead
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import IGNORED, Losses, Objective


class SpanBoundary(Objective):
    """Cross-entropy of each piece of a hidden span, told from the two tokens around the span.

    The loss is the mean over the labelled pieces. The released code divides by their number plus
    one, which only keeps a batch without spans from dividing by zero; here such a batch has the
    loss 0 anyway, and a mean over pieces stays the same however a batch is cut into parts.
    """

    name = "span_boundary"

    def __init__(self, head: nn.Module) -> None:
        """Own a head that answers from boundaries [N, 2 D + 200] -> logits [N, V]."""
        super().__init__()
        self.head = head

    @classmethod
    def build(cls, config: Config, encoder: Encoder) -> Self:
        """With a new head, tied to the encoder's piece table."""
        return cls(SpanBoundaryHead(config, encoder.embeddings))

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labelled pieces."""
        _, labels = _asked(batch)
        return {self.name: (labels != IGNORED).sum().float()}

    def reads(self, encoder: Encoder, batch: Batch) -> Tensor:
        """The two tokens around every labelled span."""
        boundaries, labels = _asked(batch)
        row, index = (labels != IGNORED).nonzero(as_tuple=True)
        read = torch.zeros(batch.shape, dtype=torch.bool, device=batch.device)
        for side in (0, 1):
            read[row, boundaries[row, index, side]] = True
        return read

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses over ``batch.boundary_labels`` [B, S]; -100 marks places without a piece."""
        if output is None:
            output = self.run(encoder, batch, trace)
        boundaries, labels = _asked(batch)
        selected = labels != IGNORED  # [B, S]
        rows = selected.nonzero()[:, :1]  # [N, 1]
        spans = torch.cat([rows, boundaries[selected]], 1)  # [N, 4]
        start = self.head.boundaries(output.hidden, spans)  # type: ignore[operator]
        logits = self.head(start).float()  # [N, V]
        targets = labels[selected]
        total = functional.cross_entropy(logits, targets, reduction="sum")
        correct = (logits.detach().argmax(-1) == targets).sum().float()
        return Losses.of_one(self.name, total, selected.sum().float(), correct)


def _asked(batch: Batch) -> tuple[Tensor, Tensor]:
    """Boundaries [B, S, 3] and labels [B, S]."""
    if batch.boundaries is None or batch.boundary_labels is None:
        raise ValueError("span_boundary needs batch.boundaries and batch.boundary_labels")
    return batch.boundaries, batch.boundary_labels
