"""What every objective gives back, in sums and counts, so that parts of a batch add up exactly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

import torch
from torch import Tensor

from core_models.batch import Batch
from core_models.encoder import Encoder, EncoderOutput
from core_models.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Losses of one forward pass.

    A mean over a large batch is not the mean of the means of its parts where these hold different
    numbers of labels. So losses are kept as sums, and the caller may divide by the counts of the
    whole batch (:meth:`total_over`).
    """

    sums: dict[str, Tensor]
    """Summed loss in nats of each objective, with gradient, scalar."""
    counts: dict[str, Tensor]
    """Number of labels behind each sum, scalar float."""
    weights: dict[str, float]
    """Weight of each objective in the total."""
    metrics: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """(sum, count) by name, detached; they add up over batches, and the mean is sum / count."""

    @classmethod
    def of_one(cls, name: str, total: Tensor, count: Tensor, correct: Tensor) -> Self:
        """Losses of a single objective that answers ``count`` questions, ``correct`` of them right.

        Args:
            name: of the objective.
            total: summed loss in nats, with gradient, scalar.
            count: number of labels, scalar float.
            correct: how many of them the highest score hits, scalar float.
        """
        return cls(
            sums={name: total},
            counts={name: count},
            weights={name: 1.0},
            metrics={
                f"{name}_loss": (total.detach(), count),
                f"{name}_accuracy": (correct, count),
            },
        )

    @property
    def parts(self) -> dict[str, Tensor]:
        """Mean loss of each objective in nats; 0 where nothing is labelled."""
        return {name: _mean(total, self.counts[name]) for name, total in self.sums.items()}

    @property
    def total(self) -> Tensor:
        """Weighted sum of the means in nats."""
        return self.total_over(self.counts)

    def total_over(self, counts: Mapping[str, Tensor]) -> Tensor:
        """Weighted sum of each summed loss divided by the given count, scalar.

        With the counts of a large batch, the results of its parts add up to the total of the whole.
        """
        return torch.stack(
            [
                self.weights[name] * _mean(total, counts[name]).float()
                for name, total in self.sums.items()
            ]
        ).sum()


class Objective(Protocol):
    """An ``nn.Module`` that owns its heads."""

    name: str

    def __call__(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses of one batch; ``output`` saves the encoder's pass where there already is one."""
        ...

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labels in a batch, known before any forward pass, scalar floats."""
        ...


def _mean(total: Tensor, count: Tensor) -> Tensor:
    return total / count.clamp(min=1)
