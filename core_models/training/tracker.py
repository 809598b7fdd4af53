"""Reports of a run for TensorBoard, trackio or W&B, through Accelerate's trackers.

A run's own reports lie in its folder whatever a tracker does. Nothing is sent unless the tracker
itself is told to: TensorBoard's files lie in the run's folder, trackio keeps its own here, and W&B
stays offline unless ``WANDB_MODE`` says otherwise.
"""

import os
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from core_models.errors import InputError
from core_models.training.folder import RunFolder
from core_models.training.run_schema import TrackerName

PROJECT = "cloze"


class Tracker:
    """Where the reports of a run go beside its folder; nowhere where no tracker is named.

    Args:
        name: the tracker; None = none.
        run: folder of the run, whose name it bears there.
        values: its settings as plain values, noted when the run begins.

    Raises:
        InputError: the package of the tracker is missing.
    """

    def __init__(
        self, name: TrackerName | None, run: RunFolder, values: Mapping[str, Any] | None = None
    ) -> None:
        self._tracker = None if name is None else _opened(name, run)
        if self._tracker is not None and values is not None:
            self._tracker.store_init_configuration(_flat(values))

    def log(self, record: Mapping[str, Any]) -> None:
        """Pass a report on: its numbers, at its step."""
        if self._tracker is not None:
            numbers = {k: v for k, v in record.items() if isinstance(v, int | float)}
            self._tracker.log(numbers, step=record["step"])

    def close(self) -> None:
        """Finish what was begun."""
        if self._tracker is not None:
            self._tracker.finish()


def _opened(name: TrackerName, run: RunFolder) -> Any:
    from accelerate.state import PartialState  # noqa: PLC0415
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS  # noqa: PLC0415

    PartialState()
    os.environ.setdefault("WANDB_MODE", "offline")
    kind = LOGGER_TYPE_TO_CLASS[name]
    if name == "tensorboard":
        # Its files are named by the second: a run that goes on within it would empty the first.
        found = kind("tensorboard", run.path, filename_suffix=f".{uuid4().hex[:8]}")
    else:
        # The name is that of the run, so that a run that goes on goes on there.
        resumed = {"id": run.path.name} if name == "wandb" else {}
        found = kind(PROJECT, name=run.path.name, resume="allow", **resumed)
    try:
        found.start()
    except ImportError as error:
        raise InputError(
            f"The tracker {name!r} needs the package {error.name or name}, which is not installed: "
            f"pip install {name}."
        ) from None
    return found


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings as one level: ``optimizer.kind``; lists as text."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{above}{name}.")
        elif value is not None:
            plain = isinstance(value, bool | int | float | str)
            flat[above + name] = value if plain else str(value)
    return flat
