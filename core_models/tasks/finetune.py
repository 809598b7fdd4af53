"""Fine-tuning in this process: from a checkpoint and a labelled set to a measured model."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core_models.data.order import Order, Position
from core_models.errors import InputError
from core_models.model import Model
from core_models.network.initialise import initialise
from core_models.tasks import objectives, rates
from core_models.tasks.baselines import Baseline, baselines
from core_models.tasks.decode import Prediction, predict
from core_models.tasks.encode import Coder, Feature
from core_models.tasks.heads import check_direction, choices, head_for
from core_models.tasks.report import Report, main_metric, report
from core_models.tasks.sets import TaskSet
from core_models.tasks.settings import Settings, usual_rate

_BUCKETING = 8
"""Batches that are sorted by length together."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What is told after every step, and with metrics after every epoch."""

    step: int
    steps: int
    epoch: int
    """Epochs finished."""
    loss: float
    """Mean over the labels since the epoch began, in nats (or squared error)."""
    learning_rate: float
    metrics: dict[str, float] = field(default_factory=dict)
    """On the development rows; after an epoch only."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Result:
    """A fine-tuned model and how good it is."""

    model: Model
    """With the weights of the best epoch."""
    report: Report
    """Of that epoch, on the development rows."""
    predictions: tuple[Prediction, ...]
    """For the development rows."""
    baselines: tuple[Baseline, ...]
    history: tuple[Progress, ...]
    """One for each epoch."""
    best_epoch: int
    stopped: bool
    """Whether it ended before its last epoch."""
    seconds: float


def ready(model: Model, task: TaskSet, settings: Settings) -> Model:
    """A copy of the model with a fresh head for the set; the given model is not changed."""
    with torch.random.fork_rng(devices=[]):  # modules draw values at once, which are replaced
        return _ready(model, task, settings)


def _ready(model: Model, task: TaskSet, settings: Settings) -> Model:
    head = head_for(task, settings)
    check_direction(model.config, head)
    generator = torch.Generator().manual_seed(settings.seed)
    tuned = model.with_head(head, **choices(task, settings), generator=generator)
    if settings.dropout is None and settings.pretrained:
        return tuned
    config = (
        tuned.config if settings.dropout is None else tuned.config.with_dropout(settings.dropout)
    )
    made = Model(config, tuned.tokenizer, [head])
    made.name = tuned.name
    if settings.pretrained:
        made.load_state_dict(tuned.state_dict())
    else:
        initialise(made, config.initial_std, generator)
    return made.to(tuned.encoder.embeddings.pieces.weight.device)


class FineTuning:
    """One fine-tuning, step by step; everything that decides its future is in its state."""

    def __init__(self, model: Model, task: TaskSet, settings: Settings) -> None:
        """At step 0, with a copy of the model."""
        self.task, self.settings = task, settings
        self.rate = settings.learning_rate or usual_rate(model.config.width)
        self.model = ready(model, task, settings)
        head = head_for(task, settings)
        self.objective = objectives.build(head, self.model.heads[head])
        self.coder = Coder.of(
            self.model,
            task,
            max_length=settings.max_length,
            stride=settings.stride,
            apart=settings.apart,
        )
        self.features = self.coder.features(task.train)
        self._order = Order(
            np.array([feature.length for feature in self.features]),
            batch_size=settings.batch_size,
            bucketing=_BUCKETING,
            generator=torch.Generator().manual_seed(settings.seed + 1),
        )
        self.steps = settings.epochs * self._order.batches_per_epoch
        self._names = rates.freeze(self.model, settings.frozen)
        self._optimizer = rates.build(
            self._names,
            self.model.config.blocks,
            rate=self.rate,
            decay=settings.layer_decay,
            weight_decay=settings.weight_decay,
        )
        self._device = self.model.encoder.embeddings.pieces.weight.device
        self._dropout = torch.Generator(self._device).manual_seed(settings.seed + 2).get_state()
        self.step_count = 0
        self.history: list[Progress] = []
        self.best_epoch = 0
        self._best: dict[str, Tensor] = {}
        self._sums = [0.0, 0.0]
        self.last: rates.Update | None = None

    @property
    def finished(self) -> bool:
        """Whether the last epoch was measured."""
        return len(self.history) == self.settings.epochs

    @property
    def epoch_ended(self) -> bool:
        """Whether :meth:`end_epoch` is due before the next step."""
        return self.step_count == (len(self.history) + 1) * self._order.batches_per_epoch

    def step(self) -> Progress:
        """One update.

        Raises:
            InputError: loss or gradient is not finite; the update is not made.
        """
        share = rates.share_of_peak(self.step_count, self.steps, self.settings.warmup)
        rates.set_share(self._optimizer, share)
        features = self.draw()
        batch = self.coder.batch(features)
        self.model.train()
        with self._randomness(), self.precision():
            losses = self.objective(self.model.encoder, batch)
        losses.total.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self._names.values(), self.settings.clip))
        total, count = (float(v) for v in losses.metrics[f"{self.objective.name}_loss"])
        if not math.isfinite(norm) or not math.isfinite(total):
            self._optimizer.zero_grad(set_to_none=True)
            raise InputError(
                f"Fine-tuning diverged at step {self.step_count + 1}: the loss or its gradient is "
                f"not finite. Try a lower learning rate (now {self.rate:g})."
            )
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._sums = [self._sums[0] + total, self._sums[1] + count]
        self.last = rates.Update(
            sums={k: (float(v), float(n)) for k, (v, n) in losses.metrics.items()},
            norm=norm,
            tokens=sum(feature.length for feature in features),
        )
        self.step_count += 1
        return self._progress(share)

    def draw(self) -> list[Feature]:
        """The inputs of the next batch; each call goes on by one batch."""
        return [self.features[i] for i in next(self._order).tolist()]

    def end_epoch(self) -> Progress:
        """Measure on the development rows, and keep the weights if they are the best so far."""
        found = report(self.task, self.task.dev, self.predict())
        share = rates.share_of_peak(self.step_count - 1, self.steps, self.settings.warmup)
        record = self._progress(share, found.metrics)
        name = main_metric(self.task)
        earlier = [past.metrics[name] for past in self.history]
        self.history.append(record)
        if not earlier or found.metrics[name] > max(earlier):
            self.best_epoch = len(self.history)
            self._best = _copies(self.model.state_dict())
        self._sums = [0.0, 0.0]
        return record

    def predict(self) -> list[Prediction]:
        """Predictions for the development rows with the present weights."""
        self.model.eval()
        with self.precision():
            return predict(self.objective, self.coder, self.task.dev)

    def use_best(self) -> None:
        """Put the weights of the best epoch into the model, where one was measured."""
        if self._best:
            self.model.load_state_dict(self._best)
        self.model.eval()

    # -- state ------------------------------------------------------------------------------------

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that a resume to the last bit needs: tensors, and plain values for JSON."""
        position = self._order.position()
        tensors = {f"model.{k}": v for k, v in _copies(self.model.state_dict()).items()}
        tensors |= {f"best.{k}": v for k, v in self._best.items()}
        states = rates.to_tensors(self._optimizer, self._names)
        tensors |= {f"optimizer.{k}": v for k, v in states.items()}
        tensors |= {"order": position.generator.clone(), "dropout": self._dropout.clone()}
        values = {
            "step": self.step_count,
            "epoch": position.epoch,
            "batch": position.batch,
            "sums": list(self._sums),
            "best_epoch": self.best_epoch,
            "history": [record.to_json() for record in self.history],
            "settings": asdict(self.settings),
        }
        return tensors, values

    def load_state_dict(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Continue where :meth:`state_dict` was taken; InputError for other settings."""
        if values["settings"] != asdict(self.settings):
            raise InputError("The saved state belongs to other settings; use those, or start anew.")
        self.model.load_state_dict(_under("model.", tensors))
        self._best = _copies(_under("best.", tensors))
        rates.from_tensors(self._optimizer, self._names, _under("optimizer.", tensors))
        self._order.restore(Position(values["epoch"], values["batch"], tensors["order"].clone()))
        self._dropout = tensors["dropout"].clone()
        self.step_count = values["step"]
        self.best_epoch = values["best_epoch"]
        self._sums = list(values["sums"])
        self.history = [Progress(**record) for record in values["history"]]

    def _progress(self, share: float, metrics: dict[str, float] | None = None) -> Progress:
        total, count = self._sums
        return Progress(
            step=self.step_count,
            steps=self.steps,
            epoch=self.step_count // self._order.batches_per_epoch,
            loss=total / max(count, 1.0),
            learning_rate=self.rate * share,
            metrics=metrics or {},
        )

    @contextlib.contextmanager
    def _randomness(self) -> Iterator[None]:
        """Dropout draws from this object's own state, and leaves PyTorch's as it was."""
        cuda = self._device.type == "cuda"
        with torch.random.fork_rng(devices=[self._device] if cuda else []):
            if cuda:
                torch.cuda.set_rng_state(self._dropout, self._device)
            else:
                torch.set_rng_state(self._dropout)
            yield
            cuda_state = torch.cuda.get_rng_state(self._device) if cuda else None
            self._dropout = torch.get_rng_state() if cuda_state is None else cuda_state

    def precision(self) -> torch.autocast:
        """The arithmetic that was asked for, as a context."""
        enabled = self.settings.precision == "bf16"
        return torch.autocast(self._device.type, torch.bfloat16, enabled=enabled)


def finetune(
    model: Model,
    task: TaskSet,
    settings: Settings | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Result:
    """Fine-tune a copy of a model.

    Args:
        model: the checkpoint to start from; stays as it is.
        task: rows to learn from and to measure on.
        settings: None = the defaults.
        progress: called after every step, and after every epoch with metrics.
        stop: asked before every step; when it says True the best epoch so far is the result.

    Raises:
        InputError: settings or rows do not fit the model, or the loss is not finite.
    """
    began = time.perf_counter()
    tuning = FineTuning(model, task, settings or Settings())
    tell = progress or (lambda _: None)
    stopped = False
    while not tuning.finished and not stopped:
        if stop is not None and stop():
            stopped = True
        elif tuning.epoch_ended:
            tell(tuning.end_epoch())
        else:
            tell(tuning.step())
    return conclude(tuning, stopped=stopped, seconds=time.perf_counter() - began)


def conclude(tuning: FineTuning, *, stopped: bool = False, seconds: float = 0.0) -> Result:
    """The result of a fine-tuning as it stands."""
    tuning.use_best()
    predictions = tuning.predict()
    return Result(
        model=tuning.model,
        report=report(tuning.task, tuning.task.dev, predictions),
        predictions=tuple(predictions),
        baselines=tuple(baselines(tuning.task)),
        history=tuple(tuning.history),
        best_epoch=tuning.best_epoch,
        stopped=stopped,
        seconds=seconds,
    )


def _copies(state: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
