"""Putting finished models among the shipped ones: in half precision, checked, with figures."""

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core_models.checkpoints.files import CONFIG
from core_models.checkpoints.half import write_half
from core_models.errors import InputError
from core_models.training import durable
from core_models.training.folder import read_json
from zoo.cards import CARD, FIGURES, GENERATOR
from zoo.weights import SCORES, kept_scores

LARGEST_FILE = 10_000_000
LARGEST_SET = 160_000_000
"""Bytes that all shipped models may take together."""
_README = "README.md"
_ASIDE = "manifest.json"
"""Of a run's folder; says nothing about the copy."""

Say = Callable[[str], None]


def ship(names: Sequence[str], source: Path, target: Path, say: Say) -> None:
    """Copy models, and the generators beside them, to ``target`` in half precision.

    Nothing is copied unless all of them can be.

    Args:
        names: Folders below ``source``.
        source: Folder of models with cards and figures; may be ``target`` itself, whose models are
            then written anew.
        target: Folder of the shipped models.
        say: Takes lines for people.

    Raises:
        InputError: a model is missing, has no card or no figures, or is too large; or the whole
            set would be.
    """
    both = [n for name in names for n in (name, f"{name}{GENERATOR}")]
    chosen = [n for n in both if n in names or (source / n / CONFIG).exists()]
    with tempfile.TemporaryDirectory() as place:
        made = {name: Path(place) / name for name in dict.fromkeys(chosen)}
        for name, folder in made.items():
            _check(source / name)
            write_half(source / name, folder)
            check_files(folder)
        others = {
            path.parent for path in target.glob(f"*/{CONFIG}") if path.parent.name not in made
        }
        total = sum(map(size, [*made.values(), *others]))
        if total > LARGEST_SET:
            raise InputError(
                f"With {', '.join(made)} the models take {total:,} bytes; at most "
                f"{LARGEST_SET:,} are allowed."
            )
        for name, folder in made.items():
            place_folder(folder, target / name)
            say(f"{name}: {size(target / name):,} bytes; {total:,} in all")


def export(source: Path, target: Path) -> None:
    """Replace ``target`` by a copy of a run's model in half precision.

    Raises:
        InputError: a file is larger than 10 MB.
    """
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / target.name
        write_half(source, made)
        (made / _ASIDE).unlink(missing_ok=True)
        check_files(made)
        place_folder(made, target)


def place_folder(source: Path, target: Path) -> None:
    """Copy a folder over another; scores stay where they are of the same weights."""
    scores = kept_scores(target, like=source) or kept_scores(source)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(
        source, target, ignore=shutil.ignore_patterns(SCORES), copy_function=shutil.copyfile
    )
    if scores:
        durable.write_text(target / SCORES, json.dumps(scores, indent=2) + "\n")


def check_files(folder: Path) -> None:
    """Refuse files that plain git should not hold."""
    large = [path.name for path in folder.iterdir() if path.stat().st_size > LARGEST_FILE]
    if large:
        raise InputError(f"{folder.name}: {', '.join(large)} is larger than 10 MB.")


def size(folder: Path) -> int:
    """Bytes of the files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _check(folder: Path) -> None:
    """Refuse what is no model, or is not measured."""
    if not (folder / CONFIG).exists():
        raise InputError(f"There is no model {folder.name!r} in {folder.parent}.")
    figures: dict[str, Any] = read_json(folder / FIGURES)
    if not {"words", "forgeries"} & figures.keys() or "run" not in figures:
        raise InputError(
            f"{folder.name} is not evaluated: its {FIGURES} must hold its training and what came "
            f"out on held-out text; `python -m zoo measure {folder.name}` measures it."
        )
    lacking = [name for name in (CARD, _README) if not (folder / name).exists()]
    if lacking:
        raise InputError(f"{folder.name} has no {' and no '.join(lacking)}.")
