"""One training, update by update: what pretraining and fine-tuning have in common.

What differs between them is below :class:`Learning`: where batches come from, how their gradients
are computed, what is measured, and what is in the state.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.model import Model
from core_models.network.encoder import Encoder
from core_models.objectives import Losses
from core_models.training import optimizer
from core_models.training.checkpoint import Progress, Saved, State
from core_models.training.feed import Drawn
from core_models.training.guard import Guard, divergence
from core_models.training.meter import Meter
from core_models.training.optimizer import Names, Schedule
from core_models.training.schema import OptimizerSettings
from core_models.training.sharding import whole


class EncoderWithLoss(nn.Module):
    """Encoder and objective as one module, in the arithmetic that was asked for."""

    def __init__(
        self, encoder: Encoder, objective: Callable[..., Losses], *, low: bool = False
    ) -> None:
        """Hold both; ``low``: matrix products in bfloat16."""
        super().__init__()
        self.encoder, self.objective, self.low = encoder, objective, low

    def forward(self, batch: Batch) -> Losses:
        """Losses of one batch."""
        with torch.autocast(batch.device.type, torch.bfloat16, enabled=self.low):
            return self.objective(self.encoder, batch)


class Learning:
    """A model on its way. Everything that decides its future is in its state.

    On a GPU the host never waits for the device inside an update: sums, norms and the flag for
    numbers that are not finite stay there until :meth:`settle`.
    """

    module: nn.Module
    """What gives the losses of a batch; holds everything that is trained."""
    epoch: int = 0
    """Updates after which it is measured whatever the settings say, and may be saved; 0 = none."""
    validates: bool = True
    """Whether there is anything to measure on."""
    main: bool = True
    """Whether this process, of several, writes the run's files."""

    def __init__(
        self,
        model: Model,
        *,
        names: Names,
        optimizers: list[torch.optim.Optimizer],
        options: OptimizerSettings,
        schedule: Schedule,
        weights: Mapping[str, float],
    ) -> None:
        """At step 0.

        Args:
            model: What is trained, on its device.
            names: The parameters that learn.
            optimizers: That train them.
            options: Peak rate and largest gradient.
            schedule: Of the learning rate.
            weights: Of the losses in their total.
        """
        self.model, self.names, self.optimizers = model, names, optimizers
        self.rate, self.schedule, self.weights = options.learning_rate, schedule, weights
        self.progress = Progress()
        self.examples: dict[str, Any] = {}
        """For ``validation.json``, of the last :meth:`measure`."""
        self.device = next(model.parameters()).device
        self._clip = math.inf if options.clip is None else options.clip
        immediate = None if optimizer.skippable(optimizers) else True
        self._guard = Guard(self.device, immediate=immediate)
        self._meter = Meter(self.device)
        self._norm = torch.zeros(())
        self._settled = 0

    # -- what differs -----------------------------------------------------------------------------

    def draw(self) -> Drawn:
        """The next batch."""
        raise NotImplementedError

    def gradients(self, drawn: Drawn) -> dict[str, Tensor]:
        """Compute the gradients of a batch; gives its metrics as pairs [2] of sum and count."""
        raise NotImplementedError

    def measure(self) -> dict[str, float]:
        """Figures on what is held out. Draws nothing, so how often it is done changes nothing."""
        raise NotImplementedError

    def line(self, record: Mapping[str, Any]) -> str:
        """A report for people."""
        raise NotImplementedError

    def models(self) -> dict[str, Model]:
        """What a run leaves, by the name of the folder; ``model`` comes last."""
        return {"model": self.model}

    def state(self) -> State:
        """Everything that a resume to the last bit needs."""
        raise NotImplementedError

    def _load(self, saved: Saved) -> None:
        """Take what :meth:`state` gave; what the models are made with is in place by then."""
        raise NotImplementedError

    def agreed(self, stop: bool) -> bool:
        """Whether any process wants to stop: all must leave the loop at the same step."""
        return stop

    def close(self) -> None:
        """End what runs beside it."""

    # -- what is the same -------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Updates in all."""
        return self.schedule.steps

    @property
    def epoch_ended(self) -> bool:
        """Whether the last update ended an epoch that counts, and that was not measured yet."""
        return False

    @property
    def gradient_norm(self) -> float:
        """Of the last update, before clipping."""
        return float(self._norm)

    def learning_rate(self) -> float:
        """Of the last update."""
        return self.rate * self.schedule.share(self.progress.step - 1)

    def update(self) -> None:
        """Draw a batch and learn from it.

        Raises:
            DivergenceError: loss or gradient is not finite; the update is not made.
        """
        optimizer.set_learning_rate(self.optimizers, self.schedule.share(self.progress.step))
        drawn = self.draw()
        measured = self.gradients(drawn)
        self.apply(measured)
        self._meter.add(measured)
        self.progress.step += 1
        self.progress.tokens += drawn.tokens

    def apply(self, measured: Mapping[str, Tensor]) -> None:
        """Clip and apply the gradients, unless something is not finite."""
        self._norm = whole(nn.utils.clip_grad_norm_(self.names.values(), self._clip))
        losses = {name: pair[0] for name, pair in measured.items() if name.endswith("_loss")}
        if self._guard.watch(list(losses.values()), self._norm):
            self._diverged(self.progress.step + 1, {n: float(v) for n, v in losses.items()})
        self._guard.apply(self.optimizers)
        for each in self.optimizers:
            each.step()
            each.zero_grad(set_to_none=True)

    def settle(self) -> None:
        """Make sure that every update so far was good, before anything is shown or kept.

        Raises:
            DivergenceError: one was not, and none was made since.
        """
        good, broken = self._guard.settle()
        if broken:
            losses = {n: s[0] for n, s in self._meter.sums().items() if n.endswith("_loss")}
            self._diverged(self._settled + good + 1, losses)
        self._settled = self.progress.step

    def _diverged(self, step: int, losses: Mapping[str, float]) -> None:
        raise divergence(step, losses, rate=self.rate, warmup=self.schedule.warmup)

    def sums(self) -> dict[str, list[float]]:
        """Sum and count of each metric since :meth:`forget`."""
        return self._meter.sums()

    def forget(self) -> None:
        """Begin the sums anew."""
        self._meter = Meter(self.device)

    def restore(self, saved: Saved) -> None:
        """Continue a checkpoint; InputError where it belongs to something else."""
        self._load(saved)
        self.progress = saved.progress
        self._meter = Meter(self.device, saved.progress.sums)
        self._settled = saved.progress.step


def size(model: nn.Module) -> int:
    """How many numbers it has."""
    return sum(p.numel() for p in model.parameters())


@dataclass(frozen=True)
class Begun:
    """A run that is ready for its next update."""

    learning: Learning
    facts: dict[str, Any]
    """For ``status.json`` and ``evaluation.json``, beside what every run tells there."""
    conclude: Callable[[Callable[[], dict[str, float]], Callable[[], bool]], dict[str, Any] | None]
    """What is found out after the last update; None where it was stopped meanwhile. It is given
    what measures (and writes examples down), and what asks whether to stop."""
    warnings: Sequence[str] = ()
    """To be logged when the run begins."""
