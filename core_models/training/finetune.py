"""Fine-tuning in this process: from a checkpoint and a labelled set to a measured model."""

import contextlib
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
from core_models.objectives import Losses
from core_models.tasks import objectives
from core_models.tasks.baselines import Baseline, baselines
from core_models.tasks.decode import Prediction, predict
from core_models.tasks.encode import MEASURED, Coder, Feature
from core_models.tasks.heads import head_for, ready
from core_models.tasks.report import Report, main_metric, report, said
from core_models.tasks.report import measure as figures
from core_models.tasks.sets import TaskSet
from core_models.tasks.settings import Settings, usual_rate
from core_models.training import optimizer
from core_models.training.checkpoint import Saved, State
from core_models.training.feed import Drawn
from core_models.training.host import put_back
from core_models.training.learning import EncoderWithLoss, Learning
from core_models.training.meter import HELD_OUT
from core_models.training.schema import OptimizerSettings
from core_models.training.validation import measure

_ROWS = 32
"""Rows of the development set in one pass for their losses."""
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


class FineTuning(Learning):
    """One fine-tuning, step by step."""

    def __init__(self, model: Model, task: TaskSet, settings: Settings) -> None:
        """At step 0, with a copy of the model; InputError for a row that it cannot read."""
        self.task, self.settings = task, settings
        tuned = ready(model, task, settings)
        head = head_for(task, settings)
        self.objective = objectives.build(head, tuned.heads[head])
        self.coder = Coder.of(
            tuned,
            task,
            max_length=settings.max_length,
            stride=settings.stride,
            apart=settings.apart,
        )
        self.features = self.coder.features(task.train)
        self.coder.count(task.dev, of=MEASURED)  # else a bad row is told after an epoch
        self._order = Order(
            np.array([feature.length for feature in self.features]),
            batch_size=settings.batch_size,
            bucketing=_BUCKETING,
            generator=torch.Generator().manual_seed(settings.seed + 1),
        )
        self.epoch = self._order.batches_per_epoch
        steps = settings.epochs * self.epoch
        options = OptimizerSettings(
            learning_rate=float(settings.learning_rate or usual_rate(model.config.width)),
            weight_decay=float(settings.weight_decay),
            clip=float(settings.clip),
        )
        names = optimizer.freeze(tuned, settings.frozen)
        rates = optimizer.by_depth(tuned.config.blocks, options.learning_rate, settings.layer_decay)
        super().__init__(
            tuned,
            names=names,
            optimizers=[optimizer.adamw(names, options, rates)],
            options=options,
            schedule=optimizer.Schedule(steps=steps, warmup=round(settings.warmup * steps)),
            weights={self.objective.name: 1.0},
        )
        low = settings.precision == "bf16"
        self.module = EncoderWithLoss(tuned.encoder, self.objective, low=low)
        self._dropout = torch.Generator(self.device).manual_seed(settings.seed + 2).get_state()
        self.history: list[Progress] = []
        self.best_epoch = 0
        self._best: dict[str, Tensor] = {}
        self._sums = [0.0, 0.0]

    @property
    def finished(self) -> bool:
        """Whether the last epoch was measured."""
        return len(self.history) == self.settings.epochs

    @property
    def epoch_ended(self) -> bool:
        """Whether :meth:`end_epoch` is due before the next step."""
        return self.progress.step == (len(self.history) + 1) * self.epoch

    # -- an update --------------------------------------------------------------------------------

    def step(self) -> Progress:
        """One update.

        Raises:
            DivergenceError: loss or gradient is not finite; the update is not made.
        """
        self.update()
        return self._progress()

    def draw(self) -> Drawn:
        """The next batch."""
        features = self.inputs()
        tokens = sum(feature.length for feature in features)
        return Drawn(self.coder.batch(features), tokens)

    def inputs(self) -> list[Feature]:
        """The inputs of the next batch; each call goes on by one batch."""
        return [self.features[i] for i in next(self._order).tolist()]

    def gradients(self, drawn: Drawn) -> dict[str, Tensor]:
        """Those of the whole batch."""
        self.model.train()
        with self._randomness():
            losses: Losses = self.module(drawn.batch)
        losses.total.backward()
        total, count = (float(v) for v in losses.metrics[f"{self.objective.name}_loss"])
        self._sums = [self._sums[0] + total, self._sums[1] + count]
        return self._meter.of(losses)

    # -- looking ----------------------------------------------------------------------------------

    def end_epoch(self) -> Progress:
        """Measure on the development rows, and keep the weights if they are the best so far."""
        found = report(self.task, self.task.dev, self.predict())
        record = self._progress(found.metrics)
        name = main_metric(self.task)
        earlier = [past.metrics[name] for past in self.history]
        self.history.append(record)
        if not earlier or found.metrics[name] > max(earlier):
            self.best_epoch = len(self.history)
            self._best = _copies(self.model.state_dict())
        self._sums = [0.0, 0.0]
        return record

    def measure(self) -> dict[str, float]:
        """Metrics and losses on the development rows; after an epoch this ends it."""
        if self.epoch_ended:
            found = self.end_epoch().metrics
        else:
            found = figures(self.task, self.task.dev, said(self.task, self.predict()))
        features = self.coder.features(self.task.dev)
        parts = (features[begin : begin + _ROWS] for begin in range(0, len(features), _ROWS))
        drawn = (Drawn(self.coder.batch(part), 0) for part in parts)
        measured = measure(self.module, drawn, weights=self.weights, device=self.device)
        return {name: value for name, value in measured.items() if "loss" in name} | found

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

    def line(self, record: Mapping[str, Any]) -> str:
        """With the metric by which models are compared."""
        words = [f"step {record['step']}/{self.steps}", f"loss {record['loss']:.3f}"]
        if f"{HELD_OUT}loss" in record:
            main = main_metric(self.task)
            words.append(f"development loss {record[HELD_OUT + 'loss']:.3f}")
            words.append(f"{main.replace('_', ' ')} {record[HELD_OUT + main]:.3f}")
        return ", ".join([*words, f"{record['tokens_per_second']:.0f} tokens/s"])

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> State:
        """All in one file of tensors, and its place among the values."""
        tensors, position = self.state_dict()
        return State(
            models=self.models(), tensors={"state": tensors}, values={"position": position}
        )

    def _load(self, saved: Saved) -> None:
        self.load_state_dict(saved.tensors["state"], saved.values["position"])

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that a resume to the last bit needs: tensors, and plain values for JSON."""
        position = self._order.position()
        states = optimizer.to_tensors(self.optimizers, self.names)
        tensors = {f"model.{k}": v for k, v in _copies(self.model.state_dict()).items()}
        tensors |= {f"best.{k}": v for k, v in self._best.items()}
        tensors |= {f"optimizer.{k}": v for k, v in _copies(states).items()}
        tensors |= {"order": position.generator.clone(), "dropout": self._dropout.clone()}
        values = {
            "step": self.progress.step,
            "epoch": position.epoch,
            "batch": position.batch,
            "sums": list(self._sums),
            "best_epoch": self.best_epoch,
            "history": [record.to_json() for record in self.history],
            "settings": asdict(self.settings),
        }
        return tensors, values

    def load_state_dict(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Continue where :meth:`state_dict` was taken.

        Raises:
            InputError: it was taken with other settings, or measured otherwise.
        """
        if values["settings"] != asdict(self.settings):
            raise InputError("The saved state belongs to other settings; use those, or start anew.")
        self.history = [Progress(**record) for record in values["history"]]
        main = main_metric(self.task)
        if not all(main in past.metrics for past in self.history):
            raise InputError(
                f"The saved epochs were not measured by {main}, as this set is now; "
                "start a new run."
            )
        self.model.load_state_dict(_under("model.", tensors))
        self._best = _copies(_under("best.", tensors))
        states = _copies(_under("optimizer.", tensors))
        optimizer.from_tensors(self.optimizers, self.names, states)
        self._order.restore(Position(values["epoch"], values["batch"], tensors["order"].clone()))
        dropout = torch.Generator(self.device)
        put_back(dropout, tensors["dropout"], anew=(self.settings.seed, values["step"]))
        self._dropout = dropout.get_state()
        self.progress.step = values["step"]
        self.best_epoch = values["best_epoch"]
        self._sums = list(values["sums"])

    def _progress(self, metrics: dict[str, float] | None = None) -> Progress:
        total, count = self._sums
        return Progress(
            step=self.progress.step,
            steps=self.steps,
            epoch=self.progress.step // self.epoch,
            loss=total / max(count, 1.0),
            learning_rate=self.learning_rate(),
            metrics=metrics or {},
        )

    @contextlib.contextmanager
    def _randomness(self) -> Iterator[None]:
        """Dropout draws from this object's own state, and leaves PyTorch's as it was."""
        kind = self.device.type
        source = torch if kind == "cpu" else getattr(torch, kind)
        which = (self.device,) if kind in ("cuda", "xpu") else ()  # Metal has one device
        outer = source.get_rng_state(*which)
        source.set_rng_state(self._dropout, *which)
        try:
            yield
            self._dropout = source.get_rng_state(*which)
        finally:
            source.set_rng_state(outer, *which)

    def precision(self) -> torch.autocast:
        """The arithmetic that was asked for, as a context."""
        enabled = self.settings.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)


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
