"""Scores belong to weights: a file beside a model that names the weights it was measured with."""

import hashlib
from pathlib import Path
from typing import Any

from core_models.training.folder import read_json

SCORES = "scores.json"


def fingerprint(folder: Path, *, weights: bool = True) -> str:
    """Of a model's weights, vocabulary and config; without weights, of what random ones fill."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        held = weights and path.suffix == ".safetensors"
        if held or path.name in ("config.json", "tokenizer.json"):
            digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def kept_scores(folder: Path, *, like: Path | None = None) -> dict[str, Any]:
    """``scores.json`` of a model; empty where there is none, or other weights had the scores.

    Args:
        folder: Of the model.
        like: Folder with the weights that the scores must belong to; None = the same folder.
    """
    found = read_json(folder / SCORES)
    return found if found and found.get("weights") == fingerprint(like or folder) else {}
