"""The loop of a fine-tuning run: step, measure, report, save, obey.

What decides the result is in :class:`~core_models.tasks.finetune.FineTuning` and its state; here
it is only driven and written down. Measuring draws nothing, so how often it is done does not
change the result. A checkpoint holds

    model/             the model with its head; opens like any other
    state.safetensors  weights of now and of the best epoch, optimizer, generators
    progress.json      position, history, open sums of the next report, settings, environment
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from core_models.errors import InputError
from core_models.tasks.finetune import FineTuning
from core_models.tasks.report import measure, said
from core_models.training.checkpoint import Progress, environment
from core_models.training.folder import RunFolder
from core_models.training.guard import DivergenceError
from core_models.training.meter import HELD_OUT, Sums, means
from core_models.training.task_report import finite
from core_models.training.task_schema import TaskSettings
from core_models.training.tracker import Tracker

_REPORTS = 100
_STATE, _PROGRESS = "state.safetensors", "progress.json"
_ROWS = 32
"""Rows of the development set in one pass."""


class Saved:
    """A checkpoint as read back."""

    def __init__(self, folder: Path) -> None:
        """Read a folder; InputError when it is not a checkpoint of a fine-tuning."""
        try:
            values = json.loads((folder / _PROGRESS).read_text(encoding="utf-8"))
            self.tensors: dict[str, Tensor] = load_file(folder / _STATE)
            self.position: dict[str, Any] = values["position"]
            self.progress = Progress(**values["progress"])
            self.settings: dict[str, Any] = values["settings"]
            self.environment: dict[str, Any] = values["environment"]
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise InputError(f"{folder} is not a checkpoint of a fine-tuning: {error}") from error


class TaskTrainer:
    """One fine-tuning run, from wherever it stands to its end or to a stop."""

    def __init__(
        self,
        run: RunFolder,
        settings: TaskSettings,
        tuning: FineTuning,
        say: Callable[[str], None],
        tracker: Tracker,
    ) -> None:
        """At step 0."""
        self.run, self.settings, self.tuning, self._say = run, settings, tuning, say
        self._tracker = tracker
        self.progress = Progress()
        self.status: dict[str, Any] = {}
        epoch = tuning.steps // settings.epochs
        self._report_every = settings.report_every or max(1, tuning.steps // _REPORTS)
        self._validate_every = settings.validate_every or max(1, epoch // 2)
        self._saved_at: int | None = None
        self._speed = [0, 0.0]  # tokens and seconds since the last report

    # -- saving -----------------------------------------------------------------------------------

    def restore(self, saved: Saved) -> None:
        """Continue a checkpoint."""
        self.tuning.load_state_dict(saved.tensors, saved.position)
        self.progress = saved.progress
        self._saved_at = saved.progress.step

    def save(self) -> None:
        """Write a checkpoint of the current step, unless it is there, and drop old ones."""
        if self._saved_at == self.progress.step:
            return

        def write(folder: Path) -> None:
            self.tuning.model.save(folder / "model")
            tensors, position = self.tuning.state_dict()
            save_file(tensors, folder / _STATE)
            values = {
                "progress": asdict(self.progress),
                "position": position,
                "settings": self.settings.model_dump(mode="json"),
                "environment": environment(),
            }
            text = json.dumps(values, indent=2) + "\n"
            (folder / _PROGRESS).write_text(text, encoding="utf-8")

        self.run.save(self.progress.step, write)
        self._saved_at = self.progress.step
        self.run.prune(self.settings.checkpoints.keep)

    # -- the run ----------------------------------------------------------------------------------

    def train(self, stop: Callable[[], bool]) -> bool:
        """Train until the last epoch or until ``stop()``; whether the end was reached.

        Raises:
            DivergenceError: before an update with a loss or gradient that is not finite.
        """
        while not self.tuning.finished:
            if stop():
                self.save()
                return False
            began = time.perf_counter()
            rate = self._step()
            elapsed = time.perf_counter() - began
            self.progress.seconds += elapsed
            self._speed[1] += elapsed
            self._after_step(rate)
        self.save()
        return True

    def _step(self) -> float:
        """One update; gives its learning rate."""
        try:
            rate = self.tuning.step().learning_rate
        except InputError as error:
            kept = self.run.checkpoints()
            last = f"step {kept[-1].step}" if kept else "none: no checkpoint had been written"
            raise DivergenceError(f"{error} Last good checkpoint: {last}.") from None
        update = self.tuning.last
        assert update is not None
        self.progress.step += 1
        self.progress.tokens += update.tokens
        self._speed[0] += update.tokens
        self.progress.sums = _added(self.progress.sums, update.sums)
        return rate

    def _after_step(self, rate: float) -> None:
        step, settings = self.progress.step, self.settings
        ended = self.tuning.epoch_ended
        found: dict[str, float] = {}
        if ended:
            found = dict(self.tuning.end_epoch().metrics)
        elif step % self._validate_every == 0:
            predictions = self.tuning.predict()
            task = self.tuning.task
            found = measure(task, task.dev, said(task, predictions))
        if found or step % self._report_every == 0:
            self._report(self._losses() | found if found else {}, rate)
        if settings.checkpoints.snapshots and step & (step - 1) == 0:
            self.run.save(step, self.tuning.model.save, kind="snapshots")
        every = settings.checkpoints.every
        if ended if every is None else step % every == 0:
            self.save()

    @torch.no_grad()
    def _losses(self) -> dict[str, float]:
        """Losses on the development rows."""
        tuning = self.tuning
        tuning.model.eval()
        features = tuning.coder.features(tuning.task.dev)
        sums: Sums = {}
        for begin in range(0, len(features), _ROWS):
            batch = tuning.coder.batch(features[begin : begin + _ROWS])
            with tuning.precision():
                losses = tuning.objective(tuning.model.encoder, batch)
            pairs = losses.metrics.items()
            sums = _added(sums, {k: (float(v), float(n)) for k, (v, n) in pairs if "_loss" in k})
        return means(sums, {tuning.objective.name: 1.0})

    # -- telling ----------------------------------------------------------------------------------

    def _report(self, found: Mapping[str, float], rate: float) -> None:
        tokens, seconds = self._speed
        update = self.tuning.last
        assert update is not None
        record: dict[str, Any] = {
            "step": self.progress.step,
            "epoch": round(self.progress.step * self.settings.epochs / self.tuning.steps, 4),
            "tokens": self.progress.tokens,
            **means(self.progress.sums, {self.tuning.objective.name: 1.0}),
            "learning_rate": rate,
            "gradient_norm": update.norm,
            "tokens_per_second": round(tokens / seconds, 1) if seconds else 0.0,
            "seconds": round(self.progress.seconds, 3),
            **{f"{HELD_OUT}{name}": value for name, value in found.items()},
        }
        self.progress.sums = {}
        self._speed = [0, 0.0]
        self.run.append_metrics(finite(record))
        self._tracker.log(record)
        self.write_status()
        self._say(_line(record, self.tuning.steps, self.status.get("main", "")))

    def write_status(self, **changes: Any) -> None:
        """Renew ``status.json``: what is constant, what changed, and how far the run is."""
        self.status |= changes
        place = {"step": self.progress.step, "steps": self.tuning.steps}
        self.run.write_status(self.status | place | {"tokens": self.progress.tokens})


def _added(sums: Sums, more: Mapping[str, tuple[float, float]]) -> Sums:
    first = {name: sums.get(name, [0.0, 0.0]) for name in more}
    return sums | {k: [first[k][0] + v, first[k][1] + n] for k, (v, n) in more.items()}


def _line(record: Mapping[str, Any], steps: int, main: str) -> str:
    """A report for people."""
    words = [f"step {record['step']}/{steps}", f"loss {record['loss']:.3f}"]
    if f"{HELD_OUT}loss" in record:
        words.append(f"development loss {record[HELD_OUT + 'loss']:.3f}")
    if f"{HELD_OUT}{main}" in record:
        words.append(f"{main.replace('_', ' ')} {record[HELD_OUT + main]:.3f}")
    return ", ".join([*words, f"{record['tokens_per_second']:.0f} tokens/s"])
