"""The training loop: step, check, report, validate, save, obey.

What makes a resume bit-identical on the CPU: everything random comes from generators whose state
is in the checkpoint (data order, masking, and PyTorch's own generator for dropout), the sums of an
unfinished report are saved too, and the number of threads is pinned, because sums over another
number of threads round differently.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.encoder import Encoder
from core_models.model import Model
from core_models.objectives import Losses, Weighted
from core_models.training import checkpoint, optimizer
from core_models.training.checkpoint import Progress
from core_models.training.examples import Examples, rows
from core_models.training.folder import RunFolder
from core_models.training.order import Order
from core_models.training.settings import Settings

# Constant, so that every validation of every run hides the same tokens of the same text.
_VALIDATION_SEED = 20181011
_VALIDATION_EXAMPLES = 2000


class DivergenceError(Exception):
    """Loss or gradient are no longer finite; the message is for people."""


class Pretraining(nn.Module):
    """Encoder and objective as one module, so that Accelerate wraps one thing."""

    def __init__(self, encoder: Encoder, objective: Weighted) -> None:
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
        accelerator: Accelerator,
        model: Model,
        objective: Weighted,
        training: Examples,
        validation: Examples | None,
        say: Callable[[str], None],
    ) -> None:
        """Build optimizer, data order and generators at step 0."""
        self.run, self.settings, self.accelerator = run, settings, accelerator
        self.model, self.objective = model, objective
        self.training, self.validation = training, validation
        self.say = say
        self.progress = Progress()
        self.status: dict[str, Any] = {}
        self._module = accelerator.prepare(Pretraining(model.encoder, objective))
        bare = accelerator.unwrap_model(self._module)
        self._names = optimizer.parameters(bare)
        self._optimizers = optimizer.build(bare, self._names, settings)
        self._masking = torch.Generator().manual_seed(settings.seed + 1)
        self._order = Order(
            training.lengths,
            batch_size=settings.batch_size,
            bucketing=settings.data.bucketing,
            generator=torch.Generator().manual_seed(settings.seed + 2),
        )
        torch.manual_seed(settings.seed + 3 + accelerator.process_index)
        self._saved_at: int | None = None
        self._speed = [0, 0.0]  # tokens and seconds since the last report

    # -- saving -----------------------------------------------------------------------------------

    def restore(self, saved: checkpoint.Saved) -> None:
        """Continue a checkpoint; the model's weights are already in place."""
        optimizer.from_tensors(self._optimizers, self._names, saved.optimizer)
        self._order.restore(saved.position)
        self._masking.set_state(saved.random["masking"])
        if self.accelerator.num_processes == 1:
            torch.set_rng_state(saved.random["dropout"])
            if "dropout_cuda" in saved.random and torch.cuda.is_available():
                torch.cuda.set_rng_state(saved.random["dropout_cuda"])
        else:
            torch.manual_seed(hash((self.settings.seed, saved.progress.step, self._rank)))
        self.progress = saved.progress
        self._saved_at = saved.progress.step

    def save(self) -> None:
        """Write a checkpoint of the current step, unless it is there, and drop old ones."""
        if self._saved_at == self.progress.step or not self.accelerator.is_main_process:
            return
        random = {"masking": self._masking.get_state(), "dropout": torch.get_rng_state()}
        if torch.cuda.is_available():
            random["dropout_cuda"] = torch.cuda.get_rng_state()

        def write(folder: Path) -> None:
            checkpoint.write(
                folder,
                model=self.model,
                optimizer=optimizer.to_tensors(self._optimizers, self._names),
                random=random,
                position=self._order.position(),
                progress=self.progress,
                settings=self.settings.model_dump(mode="json"),
            )

        self.run.save(self.progress.step, write)
        self._saved_at = self.progress.step
        self.run.prune(self.settings.checkpoints.keep)

    # -- the run ----------------------------------------------------------------------------------

    def train(self, stop: Callable[[], bool]) -> bool:
        """Train until the last step or until ``stop()``; whether the end was reached.

        Raises:
            DivergenceError: before an update with a loss or gradient that is not finite.
        """
        while self.progress.step < self.settings.steps:
            if self._agreed(stop()):
                self.save()
                return False
            began = time.perf_counter()
            tokens, norm = self._step()
            elapsed = time.perf_counter() - began
            self.progress.step += 1
            self.progress.tokens += tokens
            self.progress.seconds += elapsed
            self._speed[0] += tokens
            self._speed[1] += elapsed
            self._after_step(norm)
        self.save()
        return True

    def _agreed(self, stop: bool) -> bool:
        """Whether any process wants to stop: all must leave the loop at the same step."""
        if self.accelerator.num_processes == 1:
            return stop
        wish = torch.tensor(float(stop), device=self.accelerator.device)
        return bool(self.accelerator.reduce(wish, reduction="sum") > 0)

    def _after_step(self, norm: float) -> None:
        step, settings = self.progress.step, self.settings
        last = step == settings.steps
        validate = self.validation is not None and (last or step % settings.validate_every == 0)
        if last or validate or step % settings.report_every == 0:
            self._report(norm, self.validate() if validate else {})
        if settings.checkpoints.snapshots and step & (step - 1) == 0:
            self._snapshot()
        if step % settings.checkpoints.every == 0:
            self.save()

    @property
    def _rank(self) -> int:
        return int(self.accelerator.process_index)

    def _step(self) -> tuple[int, float]:
        """One update; gives the real tokens of the batch and the gradient norm before clipping."""
        settings = self.settings
        batch = self.training.masked(next(self._order), self._masking)
        counts = {k: v.to(self.accelerator.device) for k, v in self.objective.counts(batch).items()}
        share = optimizer.share_of_peak(settings, self.progress.step)
        optimizer.set_learning_rate(self._optimizers, share)
        self._module.train()
        parts = list(self._parts(batch))
        measured: dict[str, Tensor] = {}
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            waiting = contextlib.nullcontext() if last else self.accelerator.no_sync(self._module)
            with waiting:
                losses = self._module(part.to(self.accelerator.device))
                # Gradients are averaged over processes, the loss is meant to be summed over them.
                loss = losses.total_over(counts) * self.accelerator.num_processes
                self.accelerator.backward(loss)
            for name, pair in losses.metrics.items():
                value = torch.stack([p.double() for p in pair])
                measured[name] = measured[name] + value if name in measured else value
        if self.accelerator.num_processes > 1:
            measured = self.accelerator.reduce(measured, reduction="sum")
        norm = self._clip()
        self._check_finite(measured, norm)
        for each in self._optimizers:
            each.step()
            each.zero_grad(set_to_none=True)
        for name, value in measured.items():
            kept = self.progress.sums.setdefault(name, [0.0, 0.0])
            kept[:] = [a + b for a, b in zip(kept, value.tolist(), strict=True)]
        mask = batch.attention_mask
        tokens = batch.shape[0] * batch.shape[1] if mask is None else int(mask.sum())
        return tokens, norm

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """This process's share of the rows, cut for accumulation."""
        own = torch.arange(batch.shape[0])[self._rank :: self.accelerator.num_processes]
        for part in own.tensor_split(self.settings.accumulation):
            if len(part):
                yield rows(batch, part)

    def _clip(self) -> float:
        limit = self.settings.optimizer.clip
        norm = torch.nn.utils.clip_grad_norm_(
            self._names.values(), math.inf if limit is None else limit
        )
        return float(norm)

    def _check_finite(self, measured: dict[str, Tensor], norm: float) -> None:
        losses = {n: float(v[0]) for n, v in measured.items() if n.endswith("_loss")}
        odd = [name.removesuffix("_loss") for name, v in losses.items() if not math.isfinite(v)]
        if not odd and math.isfinite(norm):
            return
        what = f"the loss of {odd[0]} is not a number" if odd else "the gradient is not finite"
        kept = self.run.checkpoints()
        last = f"step {kept[-1].step}" if kept else "none: no checkpoint had been written"
        raise DivergenceError(
            f"Training diverged at step {self.progress.step + 1}: {what}. The update was not made. "
            f"Last good checkpoint: {last}. Usual cures: a lower learning rate "
            f"(now {self.settings.optimizer.learning_rate:g}), a longer warm-up "
            f"(now {self.settings.schedule.warmup} steps), or fp32 precision."
        )

    # -- looking ----------------------------------------------------------------------------------

    def validate(self) -> dict[str, float]:
        """Means on the held-out documents, with the same hidden tokens each time."""
        assert self.validation is not None
        self._module.eval()
        generator = torch.Generator().manual_seed(_VALIDATION_SEED)
        sums: dict[str, list[float]] = {}
        indices = torch.arange(min(len(self.validation), _VALIDATION_EXAMPLES))
        for some in indices.split(self.settings.batch_size):
            batch = self.validation.masked(some, generator).to(self.accelerator.device)
            with torch.no_grad():
                losses = self._module(batch)
            for name, (total, count) in losses.metrics.items():
                kept = sums.setdefault(name, [0.0, 0.0])
                kept[:] = [kept[0] + float(total), kept[1] + float(count)]
        return self._means(sums)

    def _means(self, sums: dict[str, list[float]]) -> dict[str, float]:
        """Mean of each metric that has a count, and the weighted total as ``loss``."""
        means = {name: total / count for name, (total, count) in sums.items() if count}
        weights = self.settings.objectives
        total = sum(weight * means.get(f"{name}_loss", 0.0) for name, weight in weights.items())
        return {"loss": total} | means

    def _report(self, norm: float, validation: dict[str, float]) -> None:
        tokens, seconds = self._speed
        record: dict[str, Any] = {
            "step": self.progress.step,
            "tokens": self.progress.tokens,
            **self._means(self.progress.sums),
            "learning_rate": self.settings.optimizer.learning_rate
            * optimizer.share_of_peak(self.settings, self.progress.step - 1),
            "gradient_norm": norm,
            "tokens_per_second": round(tokens / seconds, 1) if seconds else 0.0,
            "seconds": round(self.progress.seconds, 3),
            **{f"validation_{name}": value for name, value in validation.items()},
        }
        self.progress.sums = {}
        self._speed = [0, 0.0]
        if not self.accelerator.is_main_process:
            return
        self.run.append_metrics(record)
        self.write_status()
        self.say(_line(record, self.settings.steps))

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


def _line(record: dict[str, Any], steps: int) -> str:
    words = [f"step {record['step']}/{steps}", f"loss {record['loss']:.3f}"]
    for name, label in (
        ("masked_token_accuracy", "masked accuracy"),
        ("validation_masked_token_loss", "held-out masked loss"),
        ("validation_masked_token_accuracy", "held-out masked accuracy"),
        ("validation_next_sentence_accuracy", "held-out next-sentence accuracy"),
    ):
        if name in record:
            words.append(f"{label} {record[name]:.3f}")
    return ", ".join([*words, f"{record['tokens_per_second']:.0f} tokens/s"])
