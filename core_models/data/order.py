"""Which examples come when: an endless stream of batches whose position can be saved."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Position:
    """Where a stream stands."""

    epoch: int
    """Epochs finished."""
    batch: int
    """Batches of the current epoch that were handed out."""
    generator: Tensor
    """State of the generator before it drew the current epoch, uint8."""


class Order:
    """Batches of indices, epoch after epoch, in an order drawn from one generator.

    Within pools of ``bucketing`` batches examples are sorted by length before they are cut into
    batches, so that a batch needs little padding; the batches are then shuffled again. The rest
    that does not fill a batch is left out, another one each epoch.

    Even batches have about as many tokens each, and ``batch_size`` examples on average: an update
    is as sure with short examples as with long ones. As many batches come of it.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        *,
        batch_size: int,
        bucketing: int,
        generator: torch.Generator,
        even: bool = False,
    ) -> None:
        """``lengths`` [N] in tokens, N > 0."""
        self._lengths = torch.as_tensor(np.asarray(lengths, dtype=np.int64))
        self._batch_size = min(batch_size, len(lengths))
        self._pool = self._batch_size * bucketing
        self._generator = generator
        self._even = even
        self._epoch = 0
        self._batch = 0
        self._drawn_from = generator.get_state()
        self._batches = self._draw()

    def __next__(self) -> Tensor:
        """Indices [B] of the next batch."""
        if self._batch == len(self._batches):
            self._epoch += 1
            self._batch = 0
            self._drawn_from = self._generator.get_state()
            self._batches = self._draw()
        self._batch += 1
        return self._batches[self._batch - 1]

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches in one epoch."""
        return len(self._batches)

    def position(self) -> Position:
        """Everything :meth:`restore` needs."""
        return Position(self._epoch, self._batch, self._drawn_from)

    def restore(self, position: Position) -> None:
        """Go on where :meth:`position` was taken."""
        self._generator.set_state(position.generator)
        self._epoch, self._batch = position.epoch, position.batch
        self._drawn_from = position.generator
        self._batches = self._draw()

    def _draw(self) -> list[Tensor]:
        order = torch.randperm(len(self._lengths), generator=self._generator)
        order = order[: len(order) // self._batch_size * self._batch_size]
        batches: list[Tensor] = []
        for pool in order.split(self._pool):
            by_length = pool[self._lengths[pool].argsort(stable=True)]
            batches.extend(self._cut(by_length))
        if self._pool == self._batch_size:
            return batches
        shuffled = torch.randperm(len(batches), generator=self._generator)
        return [batches[i] for i in shuffled.tolist()]

    def _cut(self, pool: Tensor) -> tuple[Tensor, ...]:
        if not self._even:
            return torch.split(pool, self._batch_size)
        count, fewest = len(pool) // self._batch_size, fewest_rows(self._batch_size)
        totals = self._lengths[pool].cumsum(0)
        ends = [0]
        for number in range(1, count):
            end = int((totals * count <= totals[-1] * number).sum())
            most = len(pool) - (count - number) * fewest
            ends.append(min(max(end, ends[-1] + fewest), most))
        return torch.tensor_split(pool, ends[1:])


def fewest_rows(batch_size: int) -> int:
    """Examples that an even batch has at least: a quarter of those on average, and one."""
    return max(1, batch_size // 4)
