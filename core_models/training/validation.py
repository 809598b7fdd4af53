"""Held-out batches: the same text with the same tokens hidden, each time they are asked for."""

from collections.abc import Iterator

import torch

from core_models.data.recurrent import Recurrent
from core_models.training.examples import Examples
from core_models.training.feed import Drawn

# Constant, so that every validation of every run hides the same tokens of the same text.
_SEED = 20181011
_EXAMPLES = 2000


class Validation:
    """Batches of one split, from its first example on."""

    def __init__(
        self, examples: Examples, *, batch_size: int, segments: Recurrent | None = None
    ) -> None:
        """Look at the examples; nothing is read yet.

        Args:
            examples: The held-out split.
            batch_size: Examples of a batch.
            segments: The split as recurrent segments, where the run reads those.
        """
        self._examples, self._batch_size, self._segments = examples, batch_size, segments

    def __iter__(self) -> Iterator[Drawn]:
        """At most 2000 examples, every time the same."""
        generator = torch.Generator().manual_seed(_SEED)
        if self._segments is not None:
            yield from self._continued(generator)
            return
        lengths = torch.as_tensor(self._examples.lengths)
        for indices in torch.arange(min(len(self._examples), _EXAMPLES)).split(self._batch_size):
            batch = self._examples.masked(indices, generator)
            yield Drawn(batch, int(lengths[indices].sum()))

    def _continued(self, generator: torch.Generator) -> Iterator[Drawn]:
        assert self._segments is not None
        most = max(1, _EXAMPLES // self._segments.batch_size)
        for step in range(min(self._segments.steps, most)):
            raw = self._segments.batch(0, step)
            batch = self._examples.masker(raw, generator)
            yield Drawn(batch, int(raw.lengths.sum()), fresh=step == 0)
