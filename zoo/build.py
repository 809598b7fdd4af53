"""Train, evaluate and export the models of the set, one after the other; resumable at any point."""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import core_models as cm
from core_models.checkpoints.half import round_to_half
from core_models.errors import InputError
from core_models.evaluation.minimal_pairs import Pair
from core_models.model import Model
from core_models.training.folder import RunFolder, read_json
from core_models.training.models import base_of, published_config
from core_models.training.plan import plan_for
from core_models.training.prepare import prepare
from core_models.training.settings import parse
from zoo import cards, ship, text, weights
from zoo.measure import Questions
from zoo.recipe import Zoo

RESULTS = "evaluation.json"
COMMIT = "commit"
"""File in a run's folder: of the code that began it."""
_LATER = ("-second", "-third", "-fourth")
"""End the folders' names of the runs after the first."""

Say = Callable[[str], None]


def train(
    zoo: Zoo, name: str, *, budget: str, work: Path, data: Path | None, say: Say
) -> RunFolder:
    """Train one model unless it is trained; a run that was interrupted goes on.

    The later runs that the recipe asks for follow; the last one is given back.

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
    texts = text.of(zoo.texts, zoo.models[name].text, work / "texts", data)
    run = RunFolder(work / "runs" / name)
    if not run.config_path.exists():
        settings = zoo.run_settings(name, budget)
        settings["data"] |= _read(texts.train, texts.held_out)
        _create(run, settings, zoo.tokens(name, budget))
    _finish(run, name, say)
    for ending, later in zip(_LATER, zoo.models[name].then, strict=False):
        before, run = run, RunFolder(work / "runs" / f"{name}{ending}")
        if not run.config_path.exists():
            settings = zoo.later_settings(name, budget, later)
            train, held_out = texts.train, texts.held_out
            if later.text is not None:
                train = text.of(zoo.texts, later.text, work / "texts", data).train
                held_out = texts.open
            settings["data"] |= _read(train, held_out)
            settings["model"]["checkpoint"] = str(before.model_path.resolve())
            _create(run, settings, later.tokens)
        _finish(run, name, say)
    return run


def _read(train: Path, held_out: Path) -> dict[str, list[str]]:
    return {"texts": [str(train.resolve())], "held_out_texts": [str(held_out.resolve())]}


def _finish(run: RunFolder, name: str, say: Say) -> None:
    """Train in a process of its own until the run's end."""
    say(f"{name}: {run.path}")
    if run.state() == "finished":
        return
    command = [sys.executable, "-m", "core_models.training", str(run.config_path)]
    status = subprocess.run(command, check=False).returncode
    if status or run.state() != "finished":
        raise InputError(f"{name}: the run is {run.state()}: {run.status().get('reason', '')}")


def _create(run: RunFolder, settings: dict[str, Any], tokens: int) -> None:
    """Make the run, with as many steps as the budget's tokens take.

    How many tokens a step has shows only when the text is cut into examples, so that is done
    first, in a folder beside the run's.
    """
    aside = RunFolder(run.path.with_name(f".{run.path.name}"))
    shutil.rmtree(aside.path, ignore_errors=True)
    aside.path.mkdir(parents=True)
    parsed = parse(settings | {"steps": 1_000_000})
    base = base_of(parsed, aside.path)
    plan = plan_for(parsed, published_config(parsed, base))
    prepared = prepare(aside, parsed, plan, None if base is None else base.model.tokenizer)
    mean = parsed.data.max_length if plan.recurrent else float(prepared.training.lengths.mean())
    each = parsed.batch_size * mean
    if parsed.first_steps:
        early = parsed.first_batch * float(prepared.early.lengths.mean())
        each += parsed.data.first_share * (early - each)
    steps = math.ceil(tokens / each)
    parse(settings | {"steps": steps})
    (aside.path / "config.json").write_text(
        json.dumps(settings | {"steps": steps}, indent=2) + "\n", encoding="utf-8"
    )
    if code := weights.commit():
        (aside.path / COMMIT).write_text(code, encoding="utf-8")
    aside.path.rename(run.path)


def evaluate(
    run: RunFolder,
    held_out: Path,
    *,
    words: int = 2000,
    pairs: Sequence[Pair] | None = None,
) -> dict[str, Any]:
    """Figures of a finished run, kept in its folder; its models answer as they are exported.

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
    questions = Questions.of(held_out, words=words, pairs=pairs)
    folder = _generator(run)
    generator = None if folder is None else _rounded(folder)
    results = {"model": questions.figures(_rounded(run.model_path), generator)}
    if generator is not None:
        results["generator"] = questions.figures(generator)
    noted = run.path / COMMIT
    found = {
        "run": _with_those_before(run),
        "environment": run.status().get("environment", {}),
        **({"commit": noted.read_text(encoding="utf-8")} if noted.exists() else {}),
        **results,
    }
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return found


def _with_those_before(run: RunFolder) -> dict[str, Any]:
    """What came out of a run, with the reading of all runs that led to it; no text counts twice."""
    evaluation = read_json(run.path / RESULTS)
    read: list[list[str]] = []
    for before in _before(run):
        results = read_json(before.path / RESULTS)
        read = read or [read_json(run.config_path)["data"]["texts"]]
        evaluation |= {
            key: results[key] + evaluation[key] for key in ("tokens", "steps", "seconds")
        }
        texts = read_json(before.config_path)["data"]["texts"]
        if texts not in read:
            read.append(texts)
            evaluation["data"] |= {
                key: results["data"][key] + evaluation["data"][key]
                for key in ("documents", "tokens")
            }
    return evaluation


def _before(run: RunFolder) -> list[RunFolder]:
    """The runs that led to one, the first one first."""
    for at, ending in enumerate(_LATER):
        if run.path.name.endswith(ending):
            first = run.path.name.removesuffix(ending)
            return [RunFolder(run.path.with_name(first + each)) for each in ("", *_LATER[:at])]
    return []


def _rounded(folder: Path) -> Model:
    """A run's model with the weights that its export will have."""
    model = cm.load(folder)
    round_to_half(model)
    return model


def export(zoo: Zoo, name: str, run: RunFolder, results: dict[str, Any], target: Path) -> None:
    """Write model and generator to ``target/NAME``, in half precision, with card and figures.

    Raises:
        InputError: a file is larger than 10 MB.
    """
    ship.export(run.model_path, target / name)
    cards.write(target / name, zoo, name, run, results)
    generator = _generator(run)
    if generator is not None:
        ship.export(generator, target / f"{name}{cards.GENERATOR}")
        cards.write_generator(target / f"{name}{cards.GENERATOR}", zoo, name, run, results)


def _generator(run: RunFolder) -> Path | None:
    path = run.path / "generator"
    return path if path.is_dir() else None
