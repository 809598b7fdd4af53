"""The stream of batches: which examples, how they are masked, and where it stands.

The next batch is made by a second thread while a step runs. What is saved is the place behind the
last batch that was handed out, so a batch made ahead costs nothing when the run dies.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Tensor

from core_models.batch import Batch
from core_models.data.order import Order, Position
from core_models.data.recurrent import Recurrent
from core_models.masking import tokens as masking
from core_models.training.examples import Examples
from core_models.training.host import put_back

_STREAM = 7  # keeps the draws of recurrent batches apart from those of single examples


@dataclass(frozen=True)
class Place:
    """Where a stream stands."""

    epoch: int
    """Epochs finished."""
    batch: int
    """Batches of the current epoch that were handed out."""
    states: dict[str, Tensor] = field(default_factory=dict)
    """States of generators, uint8."""


@dataclass(frozen=True)
class Drawn:
    """A batch and what the host knows of it without asking the device."""

    batch: Batch
    tokens: int
    """Real tokens, padding not counted."""
    fresh: bool = True
    """Whether it goes on from nothing: a memory of earlier batches must be dropped."""


class Stream(Protocol):
    """Makes batches one after the other."""

    def draw(self) -> Drawn:
        """The next batch."""
        ...

    def place(self) -> Place:
        """Everything :meth:`restore` needs."""
        ...

    def restore(self, place: Place) -> None:
        """Go on where :meth:`place` was taken."""
        ...


class Shuffled:
    """Examples in random order, epoch after epoch."""

    def __init__(
        self,
        examples: Examples,
        *,
        batch_size: int,
        bucketing: int,
        seed: int,
        device: torch.device,
        steps: int = 1,
        even: bool = False,
        before: int = 0,
    ) -> None:
        """Draw the first epoch.

        Args:
            examples: What is read.
            batch_size: Examples of a batch.
            bucketing: Batches that are sorted by length together.
            seed: Of order and masking.
            device: Where what may be drawn there is masked.
            steps: Updates of the run, over which the share moves.
            even: Whether batches are cut by tokens.
            before: Updates that read something else before.
        """
        self._examples = examples
        self._lengths = torch.as_tensor(examples.lengths)
        self._steps, self._before = steps, before
        self._device = device if examples.masker.on_device else torch.device("cpu")
        self._masking = torch.Generator(self._device).manual_seed(seed + 1)
        self._order = Order(
            examples.lengths,
            batch_size=batch_size,
            bucketing=bucketing,
            generator=torch.Generator().manual_seed(seed + 2),
            even=even,
        )

    def draw(self) -> Drawn:
        """The next batch, masked."""
        place = self._order.position()
        number = place.epoch * self._order.batches_per_epoch + place.batch
        rate = self._examples.masker.plan.masking.rate_at(self._before + number, self._steps)
        indices = next(self._order)
        batch = self._examples.masked(indices, self._masking, self._device, rate=rate)
        return Drawn(batch, int(self._lengths[indices].sum()))

    @property
    def epoch(self) -> int:
        """Batches of one epoch."""
        return self._order.batches_per_epoch

    def place(self) -> Place:
        """Position of the order and states of both generators."""
        position = self._order.position()
        states = {"order": position.generator, "masking": self._masking.get_state()}
        return Place(position.epoch, position.batch, states)

    def restore(self, place: Place) -> None:
        """Go on from a place."""
        self._order.restore(Position(place.epoch, place.batch, place.states["order"]))
        anew = (self._masking.initial_seed(), place.epoch, place.batch)
        put_back(self._masking, place.states["masking"], anew=anew)


class Changed:
    """Examples of one kind first, then those of another: longer ones, or more in a batch.

    Epochs of the later ones are counted on from those of the first, so that a place says to which
    of both it belongs.
    """

    def __init__(self, first: Shuffled, later: Shuffled, *, steps: int) -> None:
        """``steps``: batches of the first, at least 1."""
        self._first, self._later = first, later
        self._left = self._steps = steps
        self._epochs = -(-steps // first.epoch)

    def draw(self) -> Drawn:
        """The next batch."""
        if not self._left:
            return self._later.draw()
        self._left -= 1
        return self._first.draw()

    def place(self) -> Place:
        """That of the examples that come next."""
        if self._left:
            return self._first.place()
        place = self._later.place()
        return replace(place, epoch=self._epochs + place.epoch)

    def restore(self, place: Place) -> None:
        """Go on from a place."""
        if place.epoch < self._epochs:
            self._left = self._steps - place.epoch * self._first.epoch - place.batch
            self._first.restore(place)
        else:
            self._left = 0
            self._later.restore(replace(place, epoch=place.epoch - self._epochs))


class Continued:
    """Segments of long texts: row i of a batch goes on in row i of the next one."""

    def __init__(
        self, segments: Recurrent, examples: Examples, *, seed: int, steps: int = 1
    ) -> None:
        """Begin at the first step of the first epoch; ``steps``: updates of the run."""
        self._segments, self._examples, self._seed = segments, examples, seed
        self._steps = steps
        self._masking = torch.Generator().manual_seed(seed + 1)

    def draw(self) -> Drawn:
        """The next segments, with an order of prediction."""
        epoch, step = self._segments.position()
        masker = self._examples.masker
        rate = masker.plan.masking.rate_at(epoch * self._segments.steps + step, self._steps)
        fresh = self._segments.fresh
        raw = next(self._segments)
        sources: masking.Generators = self._masking
        if not masker.plan.masking.dynamic:
            count = len(raw.input_ids)
            sources = [
                masking.generator_for(self._seed, _STREAM, step, row) for row in range(count)
            ]
        batch = masker(raw, sources, rate=rate)
        return Drawn(batch, int(raw.lengths.sum()), fresh)

    def place(self) -> Place:
        """Epoch, step and the state of the generator."""
        epoch, step = self._segments.position()
        return Place(epoch, step, {"masking": self._masking.get_state()})

    def restore(self, place: Place) -> None:
        """Go on from a place."""
        self._segments.restore((place.epoch, place.batch))
        self._masking.set_state(place.states["masking"])


class Feed(Iterator[Drawn]):
    """Hands out batches, the next of which is in the making."""

    def __init__(self, stream: Stream) -> None:
        """Nothing is drawn before the first call."""
        self._stream = stream
        self._place = stream.place()
        self._pool = ThreadPoolExecutor(
            1, "batches", initializer=torch.set_num_threads, initargs=(torch.get_num_threads(),)
        )
        self._ahead: Future[tuple[Drawn, Place]] | None = None

    def __next__(self) -> Drawn:
        """The next batch; whatever goes wrong in making it is raised here."""
        pending = self._ahead or self._pool.submit(self._draw)
        drawn, self._place = pending.result()
        self._ahead = self._pool.submit(self._draw)
        return drawn

    def _draw(self) -> tuple[Drawn, Place]:
        drawn = self._stream.draw()
        return drawn, self._stream.place()

    def place(self) -> Place:
        """Where the batches handed out so far end."""
        return self._place

    def restore(self, place: Place) -> None:
        """Go on from a place; what was made ahead is dropped."""
        if self._ahead is not None:
            self._ahead.result()
            self._ahead = None
        self._stream.restore(place)
        self._place = place

    def close(self) -> None:
        """End the second thread."""
        self._pool.shutdown(cancel_futures=True)
