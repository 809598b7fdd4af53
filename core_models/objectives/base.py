"""What every objective is and gives back, in sums and counts that add up over parts of a batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.errors import InputError
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace

if TYPE_CHECKING:
    from core_models.model import Model

IGNORED = -100
"""Label of what is not asked."""


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Losses of one forward pass.

    A mean over a large batch is not the mean of the means of its parts where these hold different
    numbers of labels. So losses are kept as sums, and the caller may divide by the counts of the
    whole batch (:meth:`total_over`).
    """

    sums: dict[str, Tensor]
    """Summed loss in nats of each part, with gradient, scalar."""
    counts: dict[str, Tensor]
    """Number of labels behind each sum, scalar float."""
    weights: dict[str, float]
    """Weight of each part in the total."""
    metrics: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """(sum, count) by name, detached; they add up over batches, and the mean is sum / count."""
    memory: tuple[Tensor, ...] = ()
    """What the pass remembers for the next segment, as in ``EncoderOutput.memory``."""

    @classmethod
    def of_one(cls, name: str, total: Tensor, count: Tensor, correct: Tensor) -> Self:
        """Losses of a single part that answers ``count`` questions, ``correct`` of them right.

        Args:
            name: of the part.
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

    @classmethod
    def merge(cls, results: Sequence[tuple[float, "Losses"]]) -> Self:
        """Losses with different part names side by side, the weights of each times a factor."""
        return cls(
            sums={key: value for _, r in results for key, value in r.sums.items()},
            counts={key: value for _, r in results for key, value in r.counts.items()},
            weights={key: w * value for w, r in results for key, value in r.weights.items()},
            metrics={key: value for _, r in results for key, value in r.metrics.items()},
            memory=next((r.memory for _, r in results if r.memory), ()),
        )

    @property
    def parts(self) -> dict[str, Tensor]:
        """Mean loss of each part in nats; 0 where nothing is labelled."""
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


class Objective(nn.Module):
    """Base of all objectives: a module that owns its heads."""

    name: ClassVar[str]
    """Name in settings and, for most, of the head and of the one loss."""
    own_pass: ClassVar[bool] = False
    """Whether it feeds the encoder something else than the batch, so a pass cannot be shared."""

    def __call__(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses of one batch; ``output`` saves the encoder's pass where there already is one."""
        losses: Losses = super().__call__(encoder, batch, trace, output)
        return losses

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labels in a batch by part, known before any forward pass, scalar floats."""
        raise NotImplementedError

    def reads(self, encoder: Encoder, batch: Batch) -> Tensor | None:
        """Bool [B, L], the positions of which it reads the last hidden state; None = all."""
        return None

    def run(self, encoder: Encoder, batch: Batch, trace: Trace | None = None) -> EncoderOutput:
        """The encoder's pass; its last step only where :meth:`reads` says so.

        Not on a GPU, where the host would have to wait for the number of positions.
        """
        read = None
        if trace is None and batch.device.type == "cpu":
            read = self.reads(encoder, batch)
        places = None if read is None else positions(read)[0]
        output: EncoderOutput = encoder(batch, trace, places=places)
        return output

    def loss_weights(self) -> dict[str, float]:
        """Names of the parts of its losses, with their weights in its total."""
        return {self.name: 1.0}

    def companions(self) -> dict[str, "Model"]:
        """Further models that are trained with the main one and saved beside it, by name."""
        return {}

    def own_state(self) -> dict[str, Tensor]:
        """Tensors that an exact resume needs and that are in none of the models."""
        return {}

    def load_own_state(self, state: Mapping[str, Tensor]) -> None:
        """Take what :meth:`own_state` gave.

        Raises:
            InputError: names or shapes are not those of :meth:`own_state`.
        """
        own = self.own_state()
        if set(own) != set(state):
            raise InputError(
                f"The state of {self.name} holds {sorted(state) or 'nothing'}; "
                f"expected {sorted(own) or 'nothing'}."
            )
        for name, tensor in own.items():
            if tensor.shape != state[name].shape:
                raise InputError(
                    f"{name!r} in the state of {self.name} has shape {list(state[name].shape)}; "
                    f"expected {list(tensor.shape)}."
                )
            with torch.no_grad():
                tensor.copy_(state[name])


def real_tokens(batch: Batch) -> Tensor:
    """Bool [B, L], False on padding."""
    if batch.attention_mask is not None:
        return batch.attention_mask.bool()
    return torch.ones(batch.shape, dtype=torch.bool, device=batch.device)


def original_ids(batch: Batch) -> Tensor:
    """Piece ids [B, L] as they were before masking."""
    if batch.input_ids is None:
        raise ValueError("this objective needs batch.input_ids, not embeddings")
    if batch.labels is None:
        return batch.input_ids
    return torch.where(batch.labels != IGNORED, batch.labels, batch.input_ids)


def positions(selected: Tensor) -> tuple[Tensor, Tensor]:
    """Selected positions of each row [B, M], and which of them are no padding [B, M].

    Args:
        selected: bool [B, L]; M is the most of any row, at least 1. Padding names other positions
            of the row.
    """
    counts = selected.sum(1)
    most = max(1, int(counts.max()))
    # A stable sort of the flags puts the selected ones first, in the order of the text.
    places = (~selected).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
    return places, torch.arange(most, device=selected.device) < counts[:, None]


def _mean(total: Tensor, count: Tensor) -> Tensor:
    return total / count.clamp(min=1)
