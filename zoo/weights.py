"""What figures belong to: scores to the weights they were measured with, weights to a commit."""

import hashlib
import subprocess
from pathlib import Path
from typing import Any

from core_models.training.folder import read_json

SCORES = "scores.json"
ROOT = Path(__file__).resolve().parents[1]


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


def commit(folder: Path = ROOT) -> str | None:
    """The commit of a repository, and whether files differ from it; None outside of one."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        code, changed = git("rev-parse", "--short=8", "HEAD"), git("status", "--porcelain")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{code}, changed" if changed else code
