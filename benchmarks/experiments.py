"""A/B runs of pretraining on the same number of tokens: one change each against one baseline.

    python -m benchmarks.experiments --data FOLDER --list
    python -m benchmarks.experiments --data FOLDER --work runs/experiments hidden-15 adamw-1e-3

``--data`` holds open texts, as for ``python -m zoo build``. Each arm is an ordinary run
in ``WORK/runs/ARM``, of as many steps as give it the baseline's tokens; what it cost in processor
time stands beside it in the table, because wall clocks of shared machines say little. An arm that
was interrupted goes on, and one that is finished is not done again. Arms are compared by held-out
text (:mod:`core_models.evaluation`), where whole words are hidden one by one, so the share that was
hidden in training, the length and the vocabulary do not matter.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core_models.training.folder import RunFolder
from core_models.training.settings import parse
from zoo import text
from zoo.recipe import TextRecipe

ROOT = Path(__file__).resolve().parents[1]
WORDS = 2000
SOURCES = {
    "standardebooks": 900_000,
    "usgov": 400_000,
    "health": 250_000,
    "guides": 250_000,
    "stories": 230_000,
    "speeches": 150_000,
}


def corpus(books: int = SOURCES["standardebooks"]) -> TextRecipe:
    """A sample of the open texts with the project's own; ``books``: words of novels."""
    sources = SOURCES | {"standardebooks": books}
    rest = sum(SOURCES.values()) - sum(sources.values())
    sources["usgov"] += rest // 2
    sources["health"] += rest - rest // 2
    return TextRecipe.model_validate(
        {
            "seed": 1,
            "apart_from": "english",
            "repeated": [
                {"pattern": "primer/english-*.txt", "times": 4},
                {"pattern": "atlas/english-atlas.txt", "times": 12},
            ],
            "sampled": [
                {"pattern": f"english/{name}-*.txt.xz", "words": words}
                for name, words in sources.items()
                if words
            ],
        }
    )


def _muon(rate: float, matrices: float) -> dict[str, Any]:
    return {"optimizer": {"kind": "muon", "learning_rate": rate, "matrix_learning_rate": matrices}}


def _adamw(rate: float) -> dict[str, Any]:
    return {"optimizer": {"kind": "adamw", "learning_rate": rate}}


@dataclass(frozen=True)
class Arm:
    """A change of the baseline, and the question that it answers."""

    question: str
    change: Mapping[str, Any] = field(default_factory=dict)
    books: int = SOURCES["standardebooks"]


BASELINE: dict[str, Any] = {
    "model": {
        "size": "deberta-base",
        "overrides": {"layers": 4, "width": 192, "heads": 4, "inner": 768, "positions": 128},
        "dropout": 0.0,
    },
    "tokenizer": {"vocabulary": 8000},
    "data": {"max_length": 64, "duplicates": 1, "singles": 0.5, "held_out": 0.0},
    "objectives": {"masked_token": 1.0},
    "masking": {"kind": "uniform", "dynamic": True, "rate": 0.3},
    "optimizer": {
        "kind": "muon",
        "learning_rate": 0.002,
        "matrix_learning_rate": 0.005,
        "betas": [0.9, 0.98],
        "weight_decay": 0.01,
    },
    "schedule": {"warmup": 50, "decay": "linear"},
    "batch_size": 64,
    "precision": "auto",
    "threads": 1,
    "seed": 3,
    "report_every": 50,
    "validate_every": 100_000,
    "checkpoints": {"every": 500, "keep": 1},
}
BERT = {
    "size": "bert-mini",
    "overrides": BASELINE["model"]["overrides"],
    "dropout": 0.0,
}
ARMS = {
    "baseline": Arm("30 % hidden, length 64, Muon 0.002 and 0.005, linear decay, DeBERTa 4 x 192"),
    "hidden-15": Arm("15 % hidden?", {"masking": {"rate": 0.15}}),
    "hidden-40": Arm("40 % hidden?", {"masking": {"rate": 0.4}}),
    "hidden-30-15": Arm("30 % falling to 15 %?", {"masking": {"rate": 0.3, "last_rate": 0.15}}),
    "adamw-1e-3": Arm("AdamW at 0.001?", _adamw(0.001)),
    "adamw-3e-3": Arm("AdamW at 0.003?", _adamw(0.003)),
    "muon-1e-2": Arm("Muon with matrices at 0.01?", _muon(0.002, 0.01)),
    "muon-25e-4": Arm("Muon with matrices at 0.0025?", _muon(0.002, 0.0025)),
    "muon-tables": Arm("Muon with tables at 0.005?", _muon(0.005, 0.005)),
    "length-128": Arm("Length 128?", {"data": {"max_length": 128}, "batch_size": 32}),
    "length-64-128": Arm(
        "Length 64, then 128?", {"data": {"max_length": 128, "first_length": 64}, "batch_size": 32}
    ),
    "batch-32": Arm("Half the batch, twice the steps?", {"batch_size": 32}),
    "batch-128": Arm("Twice the batch, half the steps?", {"batch_size": 128}),
    "batch-late": Arm(
        "Batches of 32 for two thirds of the steps, then of 128?",
        {"batch_size": 128, "data": {"first_batch": 32, "first_share": 2 / 3}},
    ),
    "stable": Arm("Stable, the last fifth falling?", {"schedule": {"decay": "stable"}}),
    "stable-half": Arm(
        "Stable, the last half falling?", {"schedule": {"decay": "stable", "cooldown": 0.5}}
    ),
    "vocabulary-6k": Arm("6,000 pieces?", {"tokenizer": {"vocabulary": 6000}}),
    "vocabulary-12k": Arm("12,000 pieces?", {"tokenizer": {"vocabulary": 12000}}),
    "no-books": Arm("No novels, more handbooks?", books=0),
    "learned-positions": Arm("BERT's learned positions?", {"model": BERT}),
    "sine-positions": Arm(
        "BERT's positions, begun as sine waves?", {"model": BERT | {"position_waves": 0.04}}
    ),
    "next-sentence": Arm(
        "Next sentence beside masked tokens (BERT, sine waves)?",
        {
            "model": BERT | {"position_waves": 0.04},
            "objectives": {"masked_token": 1.0, "next_sentence": 0.5},
        },
    ),
    "causal-share": Arm(
        "A share read from left to right beside hidden pieces (BERT, sine waves)?",
        {
            "model": BERT | {"position_waves": 0.04},
            "objectives": {"masked_next_token": 1.0},
        },
    ),
    "n-grams": Arm(
        "N-grams of words hidden, as DeBERTa does?", {"masking": {"kind": "windowed_ngram"}}
    ),
    "whole-words": Arm("Whole words hidden?", {"masking": {"kind": "whole_word"}}),
    "spans": Arm("Spans hidden?", {"masking": {"kind": "span", "split": [0.8, 0.1, 0.1]}}),
    "always-mask": Arm("Always [MASK], never another piece?", {"masking": {"split": [1, 0, 0]}}),
    "deeper": Arm(
        "Six layers instead of four?",
        {"model": {"overrides": BASELINE["model"]["overrides"] | {"layers": 6}}},
    ),
    "no-decay": Arm("No weight decay?", {"optimizer": {"weight_decay": 0.0}}),
}


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the values of ``change``; a model of another size replaces the whole."""
    found = dict(base)
    for key, value in change.items():
        old = found.get(key)
        whole = key == "model" and "size" in value
        both = isinstance(old, Mapping) and isinstance(value, Mapping) and not whole
        found[key] = merged(old, value) if both and key != "objectives" else value
    return found


def settings(arm: Arm, work: Path, data: Path) -> dict[str, Any]:
    """The arm's config.json, without its steps."""
    recipes = {
        name: TextRecipe.model_validate(value)
        for name, value in json.loads((ROOT / "assets/recipes/zoo.json").read_text())[
            "texts"
        ].items()
    }
    held = text.of(recipes, "english", work / "texts", data)
    name = f"sample-{arm.books}"
    found = text.of(recipes | {name: corpus(arm.books)}, name, work / "texts", data)
    places = {"texts": [str(found.train.resolve())], "held_out_texts": [str(held.open.resolve())]}
    return merged(merged(BASELINE, {"data": places}), arm.change)


def spend(config: Path, kept: Path) -> None:
    """Run a training process, and add its processor seconds to what an arm has cost already.

    Also where it is interrupted: the arm goes on later, and costs both.
    """
    before = json.loads(kept.read_text()).get("seconds", 0.0) if kept.exists() else 0.0
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "core_models.training", str(config)]
    try:
        with (config.parent / "out.txt").open("a", encoding="utf-8") as out:
            subprocess.run(command, check=True, cwd=ROOT, stdout=out, stderr=out)
    finally:
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
        kept.write_text(json.dumps({"seconds": round(before + seconds, 1)}))


def train(name: str, work: Path, data: Path, steps: int) -> RunFolder:
    """Train an arm unless it is trained."""
    run = RunFolder(work / "runs" / name)
    if not run.config_path.exists():
        values = settings(ARMS[name], work, data)
        tokens = parse(values | {"steps": steps}).most_tokens
        usual = BASELINE["batch_size"] * BASELINE["data"]["max_length"]
        run.path.mkdir(parents=True, exist_ok=True)
        run.config_path.write_text(
            json.dumps(values | {"steps": steps * steps * usual // tokens}, indent=2)
        )
    if run.state() != "finished":
        spend(run.config_path, run.path / "cost.json")
    return run


def measured(run: RunFolder, held_out: Path) -> dict[str, Any]:
    """The arm's figures, kept in its folder."""
    kept = run.path / "figures.json"  # evaluation.json is the run's own
    if not kept.exists():
        command = [sys.executable, "-m", "core_models", "evaluate", "--model", str(run.model_path)]
        command += ["--text", str(held_out), "--words", str(WORDS), "--json"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, check=True, cwd=ROOT, env=environment, capture_output=True, text=True
        )
        kept.write_text(done.stdout, encoding="utf-8")
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def row(name: str, tokens: int, steps: int, seconds: float, found: Mapping[str, Any]) -> str:
    """A line of the table; ``found``: ``words`` and ``minimal_pairs``."""
    words, pairs = found["words"], found["minimal_pairs"]
    return (
        f"| {name} | {tokens / 1e6:.2f} | {steps} | {seconds / 60:.1f} "
        f"| {100 * words['accuracy']:.1f} % | {words['perplexity']:.0f} "
        f"| {100 * pairs['accuracy']:.1f} % |"
    )


def main() -> None:
    """Train what is named and print the table of what there is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("arms", nargs="*", metavar="ARM")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "experiments")
    parser.add_argument("--steps", type=int, default=1000, help="of the baseline")
    parser.add_argument("--list", action="store_true")
    chosen = parser.parse_args()
    if chosen.list:
        for name, arm in ARMS.items():
            sys.stdout.write(f"{name:20} {arm.question}\n")
        return
    held_out = chosen.work / "texts" / "english" / text.OPEN
    sys.stdout.write(
        "| arm | tokens (millions) | steps | processor minutes | words | perplexity | pairs |\n"
    )
    sys.stdout.write("|---|---:|---:|---:|---:|---:|---:|\n")
    for name in chosen.arms or ARMS:
        run = train(name, chosen.work, chosen.data, chosen.steps)
        found, status = measured(run, held_out), run.status()
        seconds = json.loads((run.path / "cost.json").read_text()).get("seconds", 0)
        line = row(name, status["tokens"], status["steps"], seconds, found)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
