"""What a training process has of its machine: signals that end it, cores and an accelerator."""

import os
import signal
from types import FrameType

import torch

from core_models.model import Model
from core_models.training.folder import RunFolder


class Stop:
    """Whether to stop: the file ``stop``, SIGTERM or Ctrl-C."""

    def __init__(self, run: RunFolder) -> None:
        """Take both signals from now on."""
        self._run = run
        self._signal: int | None = None
        self.reason = ""
        signal.signal(signal.SIGTERM, self._note)
        signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._signal = number

    def requested(self) -> bool:
        """Whether anybody asked so far; :attr:`reason` then says who."""
        if self._signal is not None:
            self.reason = f"by signal {signal.Signals(self._signal).name}"
        elif self._run.stop_requested():
            self.reason = "by request"
        return bool(self.reason)


def threads(wanted: int | None, before: int | None) -> int:
    """CPU threads: as asked for, else as many as before a resume, else one for each core."""
    if wanted is not None or before is not None:
        return wanted or before or 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def on_accelerator(model: Model) -> Model:
    """The model on the accelerator, where there is one."""
    if not torch.accelerator.is_available():
        return model
    return model.to(torch.accelerator.current_accelerator())
