"""Shipping finished runs: their curves and models, so that a fresh page has some to look at."""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core_models.checkpoints.half import write_half
from core_models.errors import InputError
from core_models.training import durable
from core_models.training.folder import RunFolder, read_json
from core_models.training.settings import ASSETS
from zoo.ship import check_files, size

RUNS = ASSETS / "runs"
_FILES = ("config.json", "metrics.jsonl", "log.txt", "evaluation.json", "validation.json")
LARGEST_RUNS = 20_000_000
"""Bytes that all shipped runs may take together, beside the models."""
_FEW = 8
"""Steps below which only the first snapshot is kept: the model has hardly moved."""

Say = Callable[[str], None]


def ship_run(run: RunFolder, target: Path, say: Say) -> None:
    """Copy what the page shows of a finished run, its models in half precision.

    Checkpoints and packed data stay behind: they are for going on, which a finished run does not.

    Args:
        run: Of a recipe whose texts are the project's own.
        target: Folder of the shipped runs.
        say: Takes lines for people.

    Raises:
        InputError: the run has not finished, is a pretraining without snapshots, names files of
            this machine, or is too large beside the other shipped runs.
    """
    if run.state() != "finished":
        raise InputError(f"{run.path} is {run.state()}; only a finished run is shipped.")
    snapshots = run.checkpoints("snapshots")
    if not snapshots and "task" not in read_json(run.config_path):
        raise InputError(f"{run.path} has no snapshots; train it with checkpoints.snapshots.")
    kept = [each for n, each in enumerate(snapshots) if each.step >= _FEW or not n]
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / run.path.name
        made.mkdir()
        for name in _FILES:
            if (run.path / name).exists():
                shutil.copyfile(run.path / name, made / name)
        (made / "status.json").write_text(json.dumps(_status(run), indent=2) + "\n")
        for source in (run.model_path, *(each.path for each in kept)):
            folder = made / source.relative_to(run.path)
            durable.write_folder(folder, lambda new, source=source: _half(source, new))  # type: ignore[misc]
            check_files(folder)
        _check_texts(made)
        others = [path for path in target.glob("*") if path.name != made.name]
        total = sum(map(size, [made, *others]))
        if total > LARGEST_RUNS:
            raise InputError(
                f"With {made.name} the runs take {total:,} bytes; at most {LARGEST_RUNS:,} are "
                "allowed."
            )
        shutil.rmtree(target / made.name, ignore_errors=True)
        shutil.copytree(made, target / made.name, copy_function=shutil.copyfile)
    say(f"{made.name}: {size(target / made.name):,} bytes; {total:,} in all")


def _half(source: Path, target: Path) -> None:
    write_half(source, target)
    (target / durable.MANIFEST).unlink(missing_ok=True)  # of the folder that was copied


def _status(run: RunFolder) -> dict[str, Any]:
    """The status without the process, which is of another machine."""
    return {name: value for name, value in run.status().items() if name != "process"}


def _check_texts(folder: Path) -> None:
    """Refuse files that speak of this machine's folders."""
    here = (str(Path.home()), str(ASSETS.parent))
    for name in (*_FILES, "status.json"):
        path = folder / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if found := next((root for root in here if root in text), None):
            raise InputError(f"{name} names {found}, which is nowhere else; use a shipped recipe.")
