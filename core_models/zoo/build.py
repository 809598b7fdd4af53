"""Train, evaluate and export the models of the set, one after the other; resumable at any point."""

import contextlib
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import core_models as cm
from core_models.data import documents
from core_models.errors import InputError
from core_models.evaluation import (
    evaluate_capitals,
    evaluate_forgeries,
    evaluate_minimal_pairs,
    evaluate_words,
)
from core_models.evaluation.minimal_pairs import Pair, read_pairs
from core_models.evaluation.words import Word, choose_words
from core_models.model import Model
from core_models.prediction.passes import KINDS
from core_models.tasks.words import is_chinese
from core_models.training import durable
from core_models.training.folder import RunFolder
from core_models.training.plan import plan_for
from core_models.training.prepare import prepare
from core_models.training.settings import parse
from core_models.zoo import cards, text
from core_models.zoo.recipe import Zoo
from core_models.zoo.weights import SCORES, kept_scores

RESULTS = "evaluation.json"
_FORGERY_SENTENCES = 400
_LARGEST_FILE = 10_000_000

Say = Callable[[str], None]


def train(
    zoo: Zoo, name: str, *, budget: str, work: Path, data: Path | None, say: Say
) -> RunFolder:
    """Train one model unless it is trained; a run that was interrupted goes on.

    Args:
        zoo: The recipe under the budget (:meth:`Zoo.at`).
        name: Of the model.
        budget: Name of the budget.
        work: Folder for texts and runs.
        data: Folder of the sampled text.
        say: Takes lines for people.

    Raises:
        InputError: the recipe does not fit, or the run failed; its reason is given.
    """
    chosen = zoo.models[name].text
    texts = text.build(work / "texts" / chosen, zoo.texts[chosen], data)
    run = RunFolder(work / "runs" / name)
    if not run.config_path.exists():
        settings = zoo.run_settings(name, budget)
        settings["data"] = settings.get("data", {}) | {
            "texts": [str(texts.train.resolve())],
            "held_out_texts": [str(texts.held_out.resolve())],
        }
        _create(run, settings, zoo.tokens(name, budget))
    say(f"{name}: {run.path}")
    if run.state() == "finished":
        return run
    command = [sys.executable, "-m", "core_models.training", str(run.config_path)]
    status = subprocess.run(command, check=False).returncode
    if status or run.state() != "finished":
        raise InputError(f"{name}: the run is {run.state()}: {run.status().get('reason', '')}")
    return run


def _create(run: RunFolder, settings: dict[str, Any], tokens: int) -> None:
    """Make the run, with as many steps as the budget's tokens take.

    How many tokens a step has shows only when the text is cut into examples, so that is done
    first, in a folder beside the run's.
    """
    aside = RunFolder(run.path.with_name(f".{run.path.name}"))
    shutil.rmtree(aside.path, ignore_errors=True)
    aside.path.mkdir(parents=True)
    parsed = parse(settings | {"steps": 1_000_000})
    assert parsed.model.size is not None
    plan = plan_for(parsed, cm.size(parsed.model.size))
    prepared = prepare(aside, parsed, plan)
    mean = parsed.data.max_length if plan.recurrent else float(prepared.training.lengths.mean())
    steps = math.ceil(tokens / (parsed.batch_size * mean))
    parse(settings | {"steps": steps})
    (aside.path / "config.json").write_text(
        json.dumps(settings | {"steps": steps}, indent=2) + "\n", encoding="utf-8"
    )
    aside.path.rename(run.path)


def evaluate(
    run: RunFolder, held_out: Path, *, words: int = 2000, pairs: Sequence[Pair] | None = None
) -> dict[str, Any]:
    """Figures of a finished run, kept in its folder.

    Args:
        run: With ``model``, and ``generator`` where one was trained beside it.
        held_out: Text that no model has read.
        words: Hidden words.
        pairs: Minimal pairs; None = the shipped ones.
    """
    path = run.path / "zoo.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    sentences = [s for document in documents.read([held_out]) for s in document]
    model = cm.load(run.model_path)
    asked = choose_words(sentences, most=words)
    chosen = read_pairs() if pairs is None else pairs
    english = not is_chinese(sentences)
    results = {"model": _figures(model, asked, chosen, english=english)}
    generator = _generator(run)
    if generator is not None:
        forger = cm.load(generator)
        results["generator"] = _figures(forger, asked, chosen, english=english)
        some = sentences[:: max(1, len(sentences) // _FORGERY_SENTENCES)]
        results["model"]["forgeries"] = asdict(evaluate_forgeries(forger, model, some))
    evaluation = json.loads((run.path / RESULTS).read_text(encoding="utf-8"))
    found = {"run": evaluation, "environment": run.status().get("environment", {}), **results}
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return found


def _figures(
    model: Model, words: Sequence[Word], pairs: Sequence[Pair], *, english: bool
) -> dict[str, Any]:
    """Minimal pairs and capitals are English sentences; other models are not asked."""
    if not set(KINDS) & set(model.heads):
        return {}
    found: dict[str, Any] = {"words": asdict(evaluate_words(model, words))}
    if not english:
        return found
    found["minimal_pairs"] = asdict(evaluate_minimal_pairs(model, pairs))
    # A small vocabulary may hold no capital as one piece.
    with contextlib.suppress(InputError):
        found["capitals"] = asdict(evaluate_capitals(model))
    return found


def export(zoo: Zoo, name: str, run: RunFolder, results: dict[str, Any], target: Path) -> None:
    """Copy model and generator to ``target/NAME`` with card, title and figures.

    Raises:
        InputError: a file is larger than 10 MB.
    """
    _copy(run.model_path, target / name)
    cards.write(target / name, zoo, name, run, results)
    generator = _generator(run)
    if generator is not None:
        _copy(generator, target / f"{name}{cards.GENERATOR}")
        cards.write_generator(target / f"{name}{cards.GENERATOR}", zoo, name, run, results)


def _generator(run: RunFolder) -> Path | None:
    path = run.path / "generator"
    return path if path.is_dir() else None


def _copy(source: Path, target: Path) -> None:
    """Replace a folder; the scores of the same weights stay."""
    scores = kept_scores(target, like=source)
    files = [path for path in source.iterdir() if path.name != "manifest.json"]
    large = [path.name for path in files if path.stat().st_size > _LARGEST_FILE]
    if large:
        raise InputError(f"{source}: {', '.join(large)} is larger than 10 MB.")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in files:
        shutil.copyfile(path, target / path.name)
    if scores:
        durable.write_text(target / SCORES, json.dumps(scores, indent=2) + "\n")
