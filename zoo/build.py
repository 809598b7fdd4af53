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
from core_models.training import durable
from core_models.training.folder import RunFolder, read_json
from core_models.training.models import GENERATOR, base_of, published_config
from core_models.training.plan import plan_for
from core_models.training.prepare import prepare
from core_models.training.settings import parse
from zoo import cards, ship, text, weights
from zoo.measure import Questions
from zoo.recipe import Zoo

RESULTS = "evaluation.json"
COMMIT = "commit"
"""File in a run's folder: of the code that began it."""
_ENDINGS = ("", "-second", "-third", "-fourth", "-fifth")
"""Of the names of the folders of a model's runs, in their order."""

Say = Callable[[str], None]


def train(
    zoo: Zoo,
    name: str,
    *,
    budget: str,
    work: Path,
    data: Path | None,
    say: Say,
    shipped: Path | None = None,
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
        shipped: A folder of models: the last run alone is trained and begins with the model of
            this name in there, which stands for the runs before it, unless these are there.

    Raises:
        InputError: the recipe does not fit, or the run failed; its reason is given.
    """
    count = len(zoo.models[name].then) + 1
    runs = [RunFolder(work / "runs" / f"{name}{ending}") for ending in _ENDINGS[:count]]
    if shipped is not None:
        if count == 1:
            raise InputError(
                f"The recipe has one run of {name}: one more that can go on with the shipped model "
                "stands under 'then'."
            )
        if not runs[-2].path.exists():
            _stand_in(
                runs[-2],
                shipped,
                name,
                lambda read: str(text.of(zoo.texts, read, work / "texts", data).train.resolve()),
            )
    for at, run in enumerate(runs):
        if shipped is not None and at < count - 1:
            continue
        if not run.config_path.exists():
            if at == 0:
                settings, tokens = zoo.run_settings(name, budget), zoo.tokens(name, budget)
            else:
                later = zoo.models[name].then[at - 1]
                settings, tokens = zoo.later_settings(name, budget, later), later.tokens
                settings["model"]["checkpoint"] = str(runs[at - 1].model_path.resolve())
            settings["data"] |= _texts(zoo, name, at, work, data)
            _create(run, settings, tokens)
        _finish(run, name, say)
    return runs[-1]


def _texts(zoo: Zoo, name: str, at: int, work: Path, data: Path | None) -> dict[str, list[str]]:
    """What a model's run reads and is validated on; the first one has number 0."""
    model = zoo.models[name]
    first = text.of(zoo.texts, model.text, work / "texts", data)
    train, held_out = first.train, first.held_out
    if at and (other := model.then[at - 1].text) is not None:
        train, held_out = text.of(zoo.texts, other, work / "texts", data).train, first.open
    return {"texts": [str(train.resolve())], "held_out_texts": [str(held_out.resolve())]}


def _stand_in(run: RunFolder, shipped: Path, name: str, file: Callable[[str], str]) -> None:
    """Put a shipped model, and its generator, where the run that left it would be.

    Args:
        run: Which is not there.
        shipped: Folder of models.
        name: Of the model.
        file: Of a text.
    """
    figures = read_json(shipped / name / cards.FIGURES).get("run")
    if not figures:
        raise InputError(
            f"{shipped / name} is no model whose training is known: its {cards.FIGURES} must tell "
            "it under 'run', as those of `python -m zoo build` do."
        )
    aside = RunFolder(run.path.with_name(f".{run.path.name}"))
    shutil.rmtree(aside.path, ignore_errors=True)
    shutil.copytree(shipped / name, aside.model_path)
    if (generator := shipped / f"{name}{cards.GENERATOR}").is_dir():
        shutil.copytree(generator, aside.path / GENERATOR)
    known = {key: figures[key] for key in ("tokens", "steps", "seconds")} | {
        "data": {"documents": figures["documents"], "tokens": figures["text_tokens"]}
    }
    read = {"data": {"texts": [file(each) for each in figures["texts"]]}}
    durable.write_text(aside.config_path, json.dumps(read))
    durable.write_text(aside.path / RESULTS, json.dumps(known))
    aside.path.rename(run.path)


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
    if not (before := _before(run)):
        return read_json(run.path / RESULTS)
    sums = dict.fromkeys(("tokens", "steps", "seconds"), 0)
    texts = dict.fromkeys(("documents", "tokens"), 0)
    read: set[str] = set()
    for each in [*before, run]:
        results = read_json(each.path / RESULTS)
        names = read_json(each.config_path)["data"]["texts"]
        sums = {key: sums[key] + results[key] for key in sums}
        if not read.issuperset(names):
            texts = {key: texts[key] + results["data"][key] for key in texts}
        read.update(names)
    return results | sums | {"data": results["data"] | texts}


def _before(run: RunFolder) -> list[RunFolder]:
    """The runs that led to one, the first one first; a shipped model may stand for the earlier."""
    for at, ending in enumerate(_ENDINGS[1:]):
        if run.path.name.endswith(ending):
            first = run.path.name.removesuffix(ending)
            led = [RunFolder(run.path.with_name(f"{first}{each}")) for each in _ENDINGS[: at + 1]]
            return [each for each in led if each.path.exists()]
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
    path = run.path / GENERATOR
    return path if path.is_dir() else None
