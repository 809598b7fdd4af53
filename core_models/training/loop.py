"""The training loop: step, check, report, validate, save, obey.

What makes a resume bit-identical on the CPU: everything random comes from generators whose state
is in the checkpoint (data order, masking, and PyTorch's own generator for dropout), the sums of an
unfinished report and the memory of earlier segments are saved too, and the number of threads is
pinned, because sums over another number of threads round differently.

On a GPU the host never waits for the device inside a step: sums, norms and the flag for numbers
that are not finite stay there until the next report.
"""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.model import Model
from core_models.network.encoder import Encoder
from core_models.objectives import Losses, Objective
from core_models.training import checkpoint, optimizer
from core_models.training.checkpoint import Progress
from core_models.training.examples import rows
from core_models.training.extremes import Extremes
from core_models.training.feed import Feed, Stream
from core_models.training.folder import RunFolder
from core_models.training.guard import Guard, divergence
from core_models.training.memory import Memory, part_of_memory, whole_memory
from core_models.training.meter import Meter, add, line, means
from core_models.training.plan import Plan
from core_models.training.settings import Settings
from core_models.training.tracker import Tracker
from core_models.training.validation import Validation, measure


class Pretraining(nn.Module):
    """Encoder and objective as one module, so that Accelerate wraps one thing."""

    def __init__(self, encoder: Encoder, objective: Objective) -> None:
        """Hold both; they share the piece table."""
        super().__init__()
        self.encoder = encoder
        self.objective = objective

    def forward(self, batch: Batch) -> Losses:
        """Losses of one batch."""
        losses: Losses = self.objective(self.encoder, batch)
        return losses


class Trainer:
    """One run, from wherever it stands to its end or to a stop."""

    def __init__(
        self,
        *,
        run: RunFolder,
        settings: Settings,
        plan: Plan,
        accelerator: Accelerator,
        model: Model,
        objective: Objective,
        stream: Stream,
        validation: Validation | None,
        say: Callable[[str], None],
        tracker: Tracker,
    ) -> None:
        """Build optimizer and generators at step 0."""
        self.run, self.settings, self.plan = run, settings, plan
        self.accelerator, self.model, self.objective = accelerator, model, objective
        self.validation = validation
        self._extremes = Extremes(objective, model.tokenizer)
        self.say, self._tracker = say, tracker
        self.progress = Progress()
        self.status: dict[str, Any] = {}
        if settings.compile:
            for each in (model, *objective.companions().values()):
                each.encoder.compile(dynamic=True)
        self._module = accelerator.prepare(Pretraining(model.encoder, objective))
        bare = accelerator.unwrap_model(self._module)
        self._names = optimizer.parameters(bare)
        self._optimizers = optimizer.build(bare, self._names, settings)
        self._feed = Feed(stream)
        self._memory: Memory = ()
        skippable = optimizer.skippable(self._optimizers)
        self._guard = Guard(self._device, immediate=None if skippable else True)
        self._meter = Meter(self._device)
        torch.manual_seed(settings.seed + 3 + accelerator.process_index)
        self._saved_at: int | None = None
        self._settled = 0
        self._norm: Tensor | None = None
        self._speed = [0, 0.0]  # tokens and seconds since the last report

    @property
    def _device(self) -> torch.device:
        device: torch.device = self.accelerator.device
        return device

    @property
    def _rank(self) -> int:
        return int(self.accelerator.process_index)

    @property
    def _processes(self) -> int:
        return int(self.accelerator.num_processes)

    # -- saving -----------------------------------------------------------------------------------

    def restore(self, saved: checkpoint.Saved) -> None:
        """Continue a checkpoint; the models' weights are already in place."""
        self.objective.load_own_state(saved.own)
        optimizer.from_tensors(self._optimizers, self._names, saved.optimizer)
        self._feed.restore(saved.place)
        self._memory = part_of_memory(saved.memory, self.accelerator)
        if self._processes == 1:
            torch.set_rng_state(saved.random["dropout"])
            if "dropout_cuda" in saved.random and torch.cuda.is_available():
                torch.cuda.set_rng_state(saved.random["dropout_cuda"])
        else:
            torch.manual_seed(hash((self.settings.seed, saved.progress.step, self._rank)))
        self.progress = saved.progress
        self._meter = Meter(self._device, saved.progress.sums)
        self._saved_at = self._settled = saved.progress.step

    def save(self) -> None:
        """Write a checkpoint of the current step, unless it is there, and drop old ones."""
        if self._saved_at == self.progress.step:
            return
        self._settle()
        memory = whole_memory(self._memory, self.accelerator)
        self._saved_at = self.progress.step
        if not self.accelerator.is_main_process:
            return
        random = {"dropout": torch.get_rng_state()}
        if torch.cuda.is_available():
            random["dropout_cuda"] = torch.cuda.get_rng_state()
        self.progress.sums = self._meter.sums()

        def write(folder: Path) -> None:
            checkpoint.write(
                folder,
                model=self.model,
                companions=self.objective.companions(),
                own=self.objective.own_state(),
                optimizer=optimizer.to_tensors(self._optimizers, self._names),
                random=random,
                memory=memory,
                place=self._feed.place(),
                progress=self.progress,
                settings=self.settings.model_dump(mode="json"),
            )

        self.run.save(self.progress.step, write)
        self.run.prune(self.settings.checkpoints.keep)

    # -- the run ----------------------------------------------------------------------------------

    def train(self, stop: Callable[[], bool]) -> bool:
        """Train until the last step or until ``stop()``; whether the end was reached.

        Raises:
            DivergenceError: before an update with a loss or gradient that is not finite.
        """
        try:
            while self.progress.step < self.settings.steps:
                if self._agreed(stop()):
                    self.save()
                    return False
                began = time.perf_counter()
                tokens = self._step()
                elapsed = time.perf_counter() - began
                self.progress.step += 1
                self.progress.tokens += tokens
                self.progress.seconds += elapsed
                self._speed[0] += tokens
                self._speed[1] += elapsed
                self._after_step()
            self.save()
            return True
        finally:
            self._feed.close()

    def _agreed(self, stop: bool) -> bool:
        """Whether any process wants to stop: all must leave the loop at the same step."""
        if self._processes == 1:
            return stop
        wish = torch.tensor(float(stop), device=self._device)
        return bool(self.accelerator.reduce(wish, reduction="sum") > 0)

    def _after_step(self) -> None:
        step, settings = self.progress.step, self.settings
        last = step == settings.steps
        validate = self.validation is not None and (last or step % settings.validate_every == 0)
        if last or validate or step % settings.report_every == 0:
            self._settle()
            self._report(self.validate() if validate else {})
        if settings.checkpoints.snapshots and step & (step - 1) == 0:
            self._settle()
            self._snapshot()
        if step % settings.checkpoints.every == 0:
            self.save()

    def _step(self) -> int:
        """One update; gives the real tokens of the batch."""
        drawn = next(self._feed)
        if drawn.fresh:
            self._memory = ()
        counts = {
            name: count.to(self._device, non_blocking=True)
            for name, count in self.objective.counts(drawn.batch).items()
        }
        share = optimizer.share_of_peak(self.settings, self.progress.step)
        optimizer.set_learning_rate(self._optimizers, share)
        self._module.train()
        measured: dict[str, Tensor] = {}
        remembered: list[Memory] = []
        parts = self._parts(drawn.batch)
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            waiting = contextlib.nullcontext() if last else self.accelerator.no_sync(self._module)
            with waiting:
                losses = self._module(part)
                # Gradients are averaged over processes, the loss is meant to be summed over them.
                loss = losses.total_over(counts) * self._processes
                self.accelerator.backward(loss)
            measured = add(measured, self._meter.of(losses))
            remembered.append(losses.memory)
        self._memory = tuple(torch.cat(pieces) for pieces in zip(*remembered, strict=True))
        if self._processes > 1:
            measured = self.accelerator.reduce(measured, reduction="sum")
        self._update(measured)
        self._meter.add(measured)
        return drawn.tokens

    def _parts(self, batch: Batch) -> list[Batch]:
        """This process's share of the rows on the device, cut for accumulation."""
        count = batch.shape[0]
        cut = [batch]
        if self._processes > 1 or self.settings.accumulation > 1:
            own = torch.arange(count)[self._rank :: self._processes]
            shares = own.tensor_split(self.settings.accumulation)
            cut = [rows(batch, share.to(batch.device)) for share in shares if len(share)]
        moved = []
        begin = 0
        for part in cut:
            here = part.to(self._device, non_blocking=True)
            end = begin + here.shape[0]
            if self.plan.memory:
                memory = tuple(old[begin:end] for old in self._memory)
                here = replace(here, memory=memory, remember=self.plan.memory)
            begin = end
            moved.append(here)
        return moved

    def _update(self, measured: dict[str, Tensor]) -> None:
        """Clip and apply the gradients, unless something is not finite."""
        limit = self.settings.optimizer.clip
        self._norm = nn.utils.clip_grad_norm_(
            self._names.values(), math.inf if limit is None else limit
        )
        losses = {name: pair[0] for name, pair in measured.items() if name.endswith("_loss")}
        if self._guard.watch(list(losses.values()), self._norm):
            self._diverged(self.progress.step + 1, {n: float(v) for n, v in losses.items()})
        self._guard.apply(self._optimizers)
        for each in self._optimizers:
            each.step()
            each.zero_grad(set_to_none=True)

    def _settle(self) -> None:
        """Make sure that every update so far was good, before anything is shown or kept."""
        good, broken = self._guard.settle()
        if broken:
            sums = self._meter.sums()
            losses = {name: s[0] for name, s in sums.items() if name.endswith("_loss")}
            self._diverged(self._settled + good + 1, losses)
        self._settled = self.progress.step

    def _diverged(self, step: int, losses: dict[str, float]) -> None:
        kept = self.run.checkpoints()
        raise divergence(step, losses, kept[-1].step if kept else None, self.settings)

    # -- looking ----------------------------------------------------------------------------------

    def validate(self) -> dict[str, float]:
        """Means on the held-out documents, with the same hidden tokens each time.

        The hardest and the easiest examples are written to ``validation.json``.
        """
        assert self.validation is not None
        watched = self._extremes if self.accelerator.is_main_process else None
        found = measure(
            self._module,
            self.validation,
            weights=self.objective.loss_weights(),
            device=self._device,
            remember=self.plan.memory,
            extremes=watched,
        )
        if watched and (examples := watched.found()):
            self.run.write_validation({"step": self.progress.step} | examples)
        return found

    def _report(self, validation: dict[str, float]) -> None:
        tokens, seconds = self._speed
        assert self._norm is not None
        record: dict[str, Any] = {
            "step": self.progress.step,
            "tokens": self.progress.tokens,
            **means(self._meter.sums(), self.objective.loss_weights()),
            "learning_rate": self.settings.optimizer.learning_rate
            * optimizer.share_of_peak(self.settings, self.progress.step - 1),
            "gradient_norm": float(self._norm),
            "tokens_per_second": round(tokens / seconds, 1) if seconds else 0.0,
            "seconds": round(self.progress.seconds, 3),
            **{f"validation_{name}": value for name, value in validation.items()},
        }
        self._meter = Meter(self._device)
        self._speed = [0, 0.0]
        if not self.accelerator.is_main_process:
            return
        self.run.append_metrics(record)
        self._tracker.log(record)
        self.write_status()
        self.say(line(record, self.settings.steps))

    def write_status(self, **changes: Any) -> None:
        """Renew ``status.json``: what is constant, what changed, and how far the run is."""
        self.status |= changes
        if self.accelerator.is_main_process:
            place = {"step": self.progress.step, "steps": self.settings.steps}
            self.run.write_status(self.status | place | {"tokens": self.progress.tokens})

    def log(self, message: str) -> None:
        """Write to ``log.txt``, once for all processes."""
        if self.accelerator.is_main_process:
            self.run.log(message)

    def _snapshot(self) -> None:
        if self.accelerator.is_main_process:
            self.run.save(self.progress.step, self.model.save, kind="snapshots")
