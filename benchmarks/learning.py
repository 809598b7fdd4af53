"""What a change of the classroom recipe does to learning: held-out figures of short runs.

``python -m benchmarks.learning`` trains a very small BERT on the shipped texts, once for each
beginning of its table of positions, and the classroom's own DeBERTa beside it. A run takes a minute
or two on an idle core. The figures depend on the seed, not on how busy the machine is.
"""

import argparse
import copy
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import Report, Table, environment, run_main
from core_models.training.folder import RunFolder
from core_models.training.process import new_run, train

ROOT = Path(__file__).resolve().parent.parent
RECIPE = ROOT / "assets" / "recipes" / "classroom.json"
BERT = {"size": "bert-2x128", "overrides": {"positions": 64}, "dropout": 0.0}
VARIANTS: dict[str, Mapping[str, Any] | None] = {
    "DeBERTa, as shipped": None,
    "BERT: a draw, std 0.02, as published": BERT,
    **{
        f"BERT: waves, std {std}": {**BERT, "position_waves": std}
        for std in (0.02, 0.04, 0.06, 0.1, 0.2)
    },
}
"""What is compared -> the part ``model`` of the recipe; None = the shipped one."""


def measure(arguments: argparse.Namespace) -> Report:
    """Train each variant from the beginning, one thread each."""
    chosen = {n: v for n, v in VARIANTS.items() if arguments.only in n}
    if not chosen:
        raise SystemExit(f"No variant has {arguments.only!r} in its name: {', '.join(VARIANTS)}.")
    steps = tuple(s for s in (400, 800) if s < arguments.steps)
    rows, figures = [], []
    for name, model in chosen.items():
        found = _learn(model, arguments.steps, arguments.seed)
        cells = [
            f"{found[step]['validation_masked_token_loss']:.2f} / "
            f"{100 * found[step]['validation_masked_token_accuracy']:.1f} %"
            for step in (*steps, arguments.steps)
        ]
        rows.append((name, *cells))
        figures.append({"name": name, **found[arguments.steps]})
    table = Table(
        "Held-out loss and accuracy of the classroom recipe",
        ("model", *(f"step {step:,}" for step in (*steps, arguments.steps))),
        rows,
        f"One run each, seed {arguments.seed}, {figures[0]['tokens']:,} tokens.",
    )
    return Report([table], environment("torch", threads=1), figures)


def _learn(model: Mapping[str, Any] | None, steps: int, seed: int) -> dict[int, dict[str, Any]]:
    """The figures of each report of one run that has held-out ones, by step."""
    recipe = json.loads(RECIPE.read_text("utf-8"))
    values = copy.deepcopy(recipe) | {"steps": steps, "seed": seed, "threads": 1}
    if model is not None:
        values["model"] = dict(model)
    with tempfile.TemporaryDirectory(prefix="cloze-learning-") as place:
        path = Path(place) / "recipe.json"
        # Texts are named relative to the shipped recipe.
        names = [str((RECIPE.parent.parent / n).resolve()) for n in values["data"]["texts"]]
        others = [
            str((RECIPE.parent.parent / n).resolve()) for n in values["data"]["training_only"]
        ]
        values["data"] |= {"texts": names, "training_only": others}
        path.write_text(json.dumps(values), "utf-8")
        config = new_run(path, Path(place) / "run")
        train(config, lambda line: None)
        records = RunFolder(config.parent).metrics()
    return {r["step"]: r for r in records if "validation_masked_token_loss" in r}


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="variants with this in their name")
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
