"""What the page says about a model: its heads, its size, what it read and how well it answers."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import core_models as cm
from app.serving.examples import examples_of
from core_models.config import Config
from core_models.evaluation.language import language_of
from core_models.prediction.passes import kind_of
from core_models.prediction.visibility_view import WAYS, learnt_ways, ways_of
from core_models.training.badges import badges

FIGURES = "evaluation.json"


def card(model: cm.Model, folder: Path, description: str) -> dict[str, Any]:
    """The card of a model as plain values.

    Args:
        model: Loaded from ``folder``.
        folder: Model folder; ``evaluation.json`` in it (of the shipped set) gives the figures.
        description: A sentence about it, ``""`` for none.
    """
    config = model.config
    return {
        "family": config.family,
        "layers": config.steps,
        "width": config.width,
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": model.tokenizer.vocabulary,
        "longest": model.longest,
        "description": description,
        "language": language_of(model.tokenizer),
        "examples": examples_of(model),
        **_sight(config),
        "fills": kind_of(model.heads, leftward=config.left_to_right),
        "judges": "replaced_token" in model.heads,
        "heads": [asdict(badge) for badge in badges(folder)],
        **_figures(folder),
    }


def _sight(config: Config) -> dict[str, list[str]]:
    """What the tokens see: ``sees`` in some layer, ``learnt`` in pretraining alone."""
    own = ways_of(config)
    sees = set[str]() if own is None else set[str]().union(*own)
    return {
        "sees": [way for way in WAYS if way in sees],
        "learnt": [way for way in WAYS if own is not None and way in learnt_ways(config)],
    }


def _figures(folder: Path) -> dict[str, Any]:
    """Tokens read, what sets the training apart, and held-out figures, where they are known."""
    try:
        found = json.loads((folder / FIGURES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"tokens": None, "note": "", "figures": [], "text_pairs": None}
    run = found.get("run", {})
    plain = found.get("plain_sentences", {})
    figures = [
        ("hidden words right", found.get("words", {}).get("accuracy")),
        ("minimal pairs right", found.get("minimal_pairs", {}).get("accuracy")),
        ("plain sentences: a word that fits comes first", _share(plain, "first")),
        ("plain sentences: it is in the first five", _share(plain, "in_first_five")),
        ("pairs of texts told right", found.get("text_pairs", {}).get("accuracy")),
        ("replaced tokens found", found.get("forgeries", {}).get("found")),
    ]
    return {
        "tokens": run.get("tokens"),
        "note": run.get("note", ""),
        "figures": [[what, share] for what, share in figures if isinstance(share, float)],
        "text_pairs": found.get("text_pairs"),
    }


def _share(found: dict[str, Any], key: str) -> float | None:
    return found[key] / found["asked"] if found.get("asked") else None
