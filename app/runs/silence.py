"""A process that is alive and says nothing: paused, swapped out, or waiting for a disk that hangs.

Every report is a sign of life, and so is everything else that a run writes. How long a run may be
silent follows from how long its reports take; before the first one, while a vocabulary is learnt or
a model compiled, and while it is measured on what is held out, it may take its time.
"""

import contextlib
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from core_models.training.folder import RunFolder
from core_models.training.race_folder import RaceFolder

LEAST = 60.0
"""Seconds of silence of which nothing is said."""
MANY = 10.0
"""Silence as long as so many reports."""
UNMEASURED = 600.0
"""Seconds that preparing and measuring may take."""
_SIGNS = ("metrics.jsonl", "log.txt", "output.txt", "validation.json", "evaluation.json")
_FOLDERS = (".", "data", "checkpoints", "snapshots")
"""Where files and folders appear and go while a run saves or prepares."""


def seconds(
    folder: RunFolder, status: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> float | None:
    """Seconds since the last sign of life, where that is far longer than usual; else None.

    Args:
        folder: of a run whose process is at work.
        status: its ``status.json``.
        records: its reports.
    """
    last = max(_sign(folder.path), float(status.get("updated") or 0.0))
    if isinstance(folder, RaceFolder):
        rows = [row for row in status.get("table") or [] if row.get("state") == "running"]
        last = max([last, *(_sign(folder.path / str(row["name"])) for row in rows)])
    silent = time.time() - last
    return silent if silent > _patience(folder, status, records) else None


def _patience(
    folder: RunFolder, status: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> float:
    """Seconds that the phase at hand may take between two signs."""
    taken = [b["seconds"] - a["seconds"] for a, b in pairwise(records)]
    usual = [value for value in taken[-10:] if value > 0]
    # A process that has begun its steps has written what machine it is on.
    preparing = "environment" not in status or not usual
    if isinstance(folder, RaceFolder) or preparing or status.get("measuring") is True:
        return UNMEASURED
    if int(status.get("step") or 0) >= int(status.get("steps") or 0):
        # It is measured, and perhaps trained once more from random weights to compare.
        return max(UNMEASURED, 2.0 * float(records[-1]["seconds"]))
    return max(LEAST, MANY * float(median(usual)))


def _sign(path: Path) -> float:
    """When anything of a run was written last, seconds since 1970; 0 where nothing is."""
    last = 0.0
    for name in (*_SIGNS, *_FOLDERS):
        with contextlib.suppress(OSError):
            last = max(last, (path / name).stat().st_mtime)
    return last
