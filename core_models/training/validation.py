"""Held-out batches: the same text with the same tokens hidden, each time they are asked for."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import nn

from core_models.data.recurrent import Recurrent
from core_models.training.examples import Examples
from core_models.training.extremes import Extremes
from core_models.training.feed import Drawn
from core_models.training.memory import Memory
from core_models.training.meter import Meter, means

# Constant, so that every validation of every run hides the same tokens of the same text.
_SEED = 20181011
_EXAMPLES = 2000


class Validation:
    """Batches of one split."""

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
        """At most 2000 examples from all of the split (singles stand first), always the same."""
        generator = torch.Generator().manual_seed(_SEED)
        if self._segments is not None:
            yield from self._continued(generator)
            return
        lengths = torch.as_tensor(self._examples.lengths)
        most = min(len(self._examples), _EXAMPLES)
        chosen = torch.arange(most) * len(self._examples) // max(1, most)
        for indices in chosen.split(self._batch_size):
            batch = self._examples.masked(indices, generator)
            yield Drawn(batch, int(lengths[indices].sum()))

    def _continued(self, generator: torch.Generator) -> Iterator[Drawn]:
        assert self._segments is not None
        most = max(1, _EXAMPLES // self._segments.batch_size)
        for step in range(min(self._segments.steps, most)):
            raw = self._segments.batch(0, step)
            batch = self._examples.masker(raw, generator)
            yield Drawn(batch, int(raw.lengths.sum()), fresh=step == 0)


@torch.no_grad()
def measure(
    module: nn.Module,
    validation: Iterable[Drawn],
    *,
    weights: Mapping[str, float],
    device: torch.device,
    remember: int = 0,
    extremes: Extremes | None = None,
) -> dict[str, float]:
    """Means over the held-out batches; the total only where every part has a label there.

    Args:
        module: takes a batch and gives its losses; set to measuring, not to training.
        validation: what to measure on.
        weights: of the losses in their total.
        device: where the module is.
        remember: tokens of earlier segments that the model sees; 0 = none.
        extremes: notes the hardest and easiest examples.
    """
    module.eval()
    meter = Meter(device)
    memory: Memory = ()
    with extremes.listening() if extremes else contextlib.nullcontext():
        for drawn in validation:
            batch = drawn.batch.to(device, non_blocking=True)
            if remember:
                known = () if drawn.fresh else memory
                batch = replace(batch, memory=known, remember=remember)
            losses = module(batch)
            memory = losses.memory
            meter.add(meter.of(losses))
            if extremes:
                extremes.note(batch)
    found = means(meter.sums(), weights)
    if not all(f"{name}_loss" in found for name in weights):
        del found["loss"]  # without a part the total is no total, and beside others looks better
    return found
