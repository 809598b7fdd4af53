"""The training loop: update, count, report, measure, keep, save, obey.

What is trained, and how, is a :class:`~core_models.training.learning.Learning`; here it is only
driven and written down.
"""

import time
from collections.abc import Callable
from typing import Any

from core_models.training import checkpoint
from core_models.training.checkpoint import Progress, Saved
from core_models.training.folder import RunFolder
from core_models.training.guard import DivergenceError
from core_models.training.learning import Learning
from core_models.training.meter import HELD_OUT, finite, means
from core_models.training.run_schema import RunSettings
from core_models.training.tracker import Tracker

_REPORTS = 100
"""Of a run whose settings do not say how often it reports."""


class Trainer:
    """One run, from wherever it stands to its end or to a stop."""

    def __init__(
        self,
        *,
        run: RunFolder,
        settings: RunSettings,
        learning: Learning,
        say: Callable[[str], None],
        tracker: Tracker,
    ) -> None:
        """At step 0."""
        self.run, self.settings, self.learning = run, settings, learning
        self._say, self._tracker = say, tracker
        self.status: dict[str, Any] = {}
        self._report_every = settings.report_every or max(1, learning.steps // _REPORTS)
        self._measure_every = settings.validate_every or max(1, learning.epoch // 2)
        self._saved_at: int | None = None
        self._speed = [0, 0.0]  # tokens and seconds since the last report

    @property
    def progress(self) -> Progress:
        """How far the run is."""
        return self.learning.progress

    # -- saving -----------------------------------------------------------------------------------

    def restore(self, saved: Saved) -> None:
        """Continue a checkpoint."""
        self.learning.restore(saved)
        self._saved_at = self.progress.step

    def save(self) -> None:
        """Write a checkpoint of the current step, unless it is there, and drop old ones."""
        if self._saved_at == self.progress.step:
            return
        self._settle()
        state = self.learning.state()
        self._saved_at = self.progress.step
        if not self.learning.main:
            return
        self.progress.sums = self.learning.sums()
        plain = self.settings.model_dump(mode="json")
        self.run.save(
            self.progress.step,
            lambda folder: checkpoint.write(folder, state, self.progress, plain),
        )
        self.run.prune(self.settings.checkpoints.keep, self.progress.step)

    # -- the run ----------------------------------------------------------------------------------

    def train(self, stop: Callable[[], bool]) -> bool:
        """Train until the last step or until ``stop()``; whether the end was reached.

        Raises:
            DivergenceError: before an update with a loss or gradient that is not finite.
        """
        try:
            while self.progress.step < self.learning.steps:
                if self.learning.agreed(stop()):
                    self.save()
                    return False
                began, tokens = time.perf_counter(), self.progress.tokens
                self._told(self.learning.update)
                elapsed = time.perf_counter() - began
                self.progress.seconds += elapsed
                self._speed[0] += self.progress.tokens - tokens
                self._speed[1] += elapsed
                self._after_update()
            self.save()
            return True
        finally:
            self.learning.close()

    def _after_update(self) -> None:
        step, keeping = self.progress.step, self.settings.checkpoints
        last = step == self.learning.steps
        ended = self.learning.epoch_ended
        measured = self.learning.validates and (last or ended or step % self._measure_every == 0)
        if last or measured or step % self._report_every == 0:
            self._settle()
            self._report(self.measure() if measured else {})
        if keeping.snapshots and step & (step - 1) == 0:
            self._settle()
            model = self.learning.models()["model"]
            if self.learning.main:
                self.run.save(step, model.save, kind="snapshots")
        if ended if keeping.every is None else step % keeping.every == 0:
            self.save()

    def _settle(self) -> None:
        self._told(self.learning.settle)

    def _told(self, call: Callable[[], None]) -> None:
        """Add to what diverged where the run can go on from."""
        try:
            call()
        except DivergenceError as error:
            kept = self.run.checkpoints()
            last = f"step {kept[-1].step}" if kept else "none: no checkpoint had been written"
            raise DivergenceError(f"{error} Last good checkpoint: {last}.") from None

    # -- telling ----------------------------------------------------------------------------------

    def measure(self) -> dict[str, float]:
        """Figures on what is held out; examples of it go into ``validation.json``."""
        self.write_status(measuring=True)  # it may take long, and tells nothing meanwhile
        found = self.learning.measure()
        self.status["measuring"] = False
        if self.learning.main and self.learning.examples:
            self.run.write_validation({"step": self.progress.step} | self.learning.examples)
        return found

    def _report(self, measured: dict[str, float]) -> None:
        learning, (tokens, seconds) = self.learning, self._speed
        epoch = {"epoch": round(self.progress.step / learning.epoch, 4)} if learning.epoch else {}
        record: dict[str, Any] = {
            "step": self.progress.step,
            **epoch,
            "tokens": self.progress.tokens,
            **means(learning.sums(), learning.weights),
            "learning_rate": learning.learning_rate(),
            "gradient_norm": learning.gradient_norm,
            "tokens_per_second": round(tokens / seconds, 1) if seconds else 0.0,
            "seconds": round(self.progress.seconds, 3),
            **{f"{HELD_OUT}{name}": value for name, value in measured.items()},
        }
        learning.forget()
        self._speed = [0, 0.0]
        if not learning.main:
            return
        self.run.append_metrics(finite(record))
        self._tracker.log(record)
        self.write_status()
        self._say(learning.line(record))

    def write_status(self, **changes: Any) -> None:
        """Renew ``status.json``: what is constant, what changed, and how far the run is."""
        self.status |= changes
        if self.learning.main:
            place = {"step": self.progress.step, "steps": self.learning.steps}
            self.run.write_status(self.status | place | {"tokens": self.progress.tokens})

    def log(self, message: str) -> None:
        """Write to ``log.txt``, once for all processes."""
        if self.learning.main:
            self.run.log(message)
