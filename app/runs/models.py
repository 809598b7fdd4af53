"""Models of training runs, as the model picker names them. No Gradio, no PyTorch in it."""

import contextlib
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from app.runs.names import ELSEWHERE
from app.serving.names import HUB_PREFIX
from core_models import InputError, plain_files
from core_models.hub import fetch as hub
from core_models.tokenizer.checks import TOKENIZER_FILE, is_byte_level
from core_models.tokenizer.chinese import chinese_share
from core_models.training.folder import RunFolder
from core_models.training.race_folder import RaceFolder


def model_path(folder: RunFolder, part: str) -> Path:
    """The model folder of a run.

    Args:
        folder: of a run or a race.
        part: "" for the newest model, ``step-<n>`` for a snapshot or a checkpoint that is still
            there; in a race, an entrant.

    Raises:
        InputError: there is none yet, or no such part.
    """
    run = folder.path.name
    if isinstance(folder, RaceFolder):
        if part not in [row["name"] for row in folder.table()]:
            raise InputError(f"The race “{run}” has no run “{part[:40]}”.")
        folder, part = folder.run(part), ""
    if not part:
        if folder.model_path.is_dir():
            return folder.model_path
        kept = folder.checkpoints()
        if not kept:
            raise InputError(f"The run “{run}” has not saved a model yet. Wait a little.")
        return kept[-1].path / "model"
    for checkpoint in folder.checkpoints("snapshots"):
        if part == f"step-{checkpoint.step}":
            return checkpoint.path
    for checkpoint in folder.checkpoints():
        if part == f"step-{checkpoint.step}":
            return checkpoint.path / "model"
    raise InputError(f"The run “{run}” has no snapshot “{part[:20]}”.")


def name_of(text: str, root: Path) -> str:
    """Name of a model by its path; a text that is none stays as it is.

    ``run/<id>`` and so on below the runs folder, also where a run names its neighbour by
    ``../<id>/model`` (as shipped ones do), ``hub/...`` for one in the hub's cache. Where
    else on this machine something lies is nobody's business: of such a path the end is told, with
    "…/" before it, so that it is taken for nothing that the page offers.
    """
    if found := hub.pinned(text):
        return HUB_PREFIX + found.partition("@")[0]
    neighbour = text.startswith("../")
    path = Path(os.path.normpath(root / "run" / text)) if neighbour else Path(text)
    if not path.is_absolute():
        return text
    if not path.is_relative_to(root):
        return f"{ELSEWHERE}{path.name}"
    run, *rest = path.relative_to(root).parts
    inner = [part for part in rest if part not in ("model", "snapshots", "checkpoints")]
    return "/".join(["run", run, *inner[:1]])


def models(folders: Iterable[RunFolder]) -> list[tuple[str, str]]:
    """Name and title of every model that was saved."""
    found = []
    for folder in folders:
        with contextlib.suppress(OSError):  # another user's, or of a disk that is broken
            found += _models(folder)
    return found


def _models(folder: RunFolder) -> list[tuple[str, str]]:
    run = folder.path.name
    if isinstance(folder, RaceFolder):
        names = [row["name"] for row in folder.table()]
        done = [name for name in names if folder.run(name).model_path.is_dir()]
        return [(f"run/{run}/{name}", f"{name} (of {run})") for name in done]
    if folder.model_path.is_dir():
        return [(f"run/{run}", f"{run} (run)")]
    kept = folder.checkpoints()
    return [(f"run/{run}", f"{run}, step {kept[-1].step:,}")] if kept else []


_CHINESE = 0.5
"""Share of pieces with Chinese characters from which on a vocabulary is Chinese: our own have 89 %.
Of English and Chinese together they have 27 to 49 %, Gemma 3's 8 %, Llama 3's (EuroBERT's) 3.5 %.
"""
_HARDLY = 0.025
"""The share below which a vocabulary has hardly any Chinese: bert-base-uncased has 1.6 %, single
characters all of them, GPT-NeoX's (ModernBERT's) 0.6 %, GPT-2's (RoBERTa's) 0.1 %."""
_MOST = 50_000_000
"""Bytes of a vocabulary that is looked at."""
_MOST_LINES = 2_000_000
_VOCABULARIES = ("vocab.txt", TOKENIZER_FILE, "vocab.json")


def language(folder: Path) -> str | None:
    """``zh`` or ``en``, as the vocabulary of a model folder tells.

    A model that reads Chinese alone has mostly pieces with its characters, one that does not has
    hardly any. None for what lies between, such as a vocabulary of many languages, of which its
    model may have read any; and where there is no vocabulary to read.
    """
    for name in _VOCABULARIES:
        path = folder / name
        if path.is_file():
            return _language(path, path.stat().st_mtime_ns)
    return None


@cache
def _language(path: Path, changed: int) -> str | None:
    try:
        raw = plain_files.read(path, _MOST)
        if raw.count(b"\n") > _MOST_LINES:
            return None
        pieces, byte_level = _pieces(path, raw.decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not pieces:
        return None
    share = chinese_share(pieces, byte_level=byte_level)
    if share >= _CHINESE:
        return "zh"
    return "en" if share < _HARDLY else None


def _pieces(path: Path, text: str) -> tuple[list[str], bool]:
    """The pieces of a vocabulary, and whether they are signs for bytes."""
    if path.suffix == ".txt":
        return text.splitlines(), False
    values = json.loads(text)
    if not isinstance(values, dict):
        return [], False
    # A vocab.json is one of bytes, as GPT-2's, and a table itself, with a piece "model" in it.
    if path.name != TOKENIZER_FILE:
        return [*values], True
    return _listed(values.get("model")), is_byte_level(values)


def _listed(model: object) -> list[str]:
    """The pieces of a tokenizer.json's model, whose vocabulary is a table or a list of pairs."""
    found = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(found, dict):
        return [*found]
    pairs = found if isinstance(found, list) else []
    return [str(pair[0]) for pair in pairs if isinstance(pair, list) and pair]
