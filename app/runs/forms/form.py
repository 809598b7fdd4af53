"""What the form for a new run offers, and what its settings come to. No Gradio in it.

Ranges, choices and explanations are read from the schema of ``config.json``, so the form knows
every field that the trainer knows.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch

from app.runs import models as run_models
from app.runs.config import kind_of
from app.runs.data import texts as run_texts
from app.runs.forms import races as run_races
from app.runs.forms import tasks as run_tasks
from app.runs.names import beside
from app.runs.runs import Runs
from app.serving.session import Session
from app.serving.settings import Settings
from core_models import InputError
from core_models.checkpoints.files import CONFIG
from core_models.config import Config
from core_models.counting.counts import count
from core_models.families import FAMILIES
from core_models.inspection import inspect
from core_models.training import settings
from core_models.training.models import fresh_generator_config, heads_of
from core_models.training.plan import Plan, plan_for
from core_models.training.precision import emulated
from core_models.training.shape import build_config
from viz.svg import Wording

_BASES = {"bert": "bert-base-uncased", "modernbert": "ettin-encoder-17m"}
"""Published size of a family that fresh models are cut from, where it is not its first one."""
_TITLES = {
    "gpu-five-minutes": "Five minutes on a GPU",
    "overnight": "Overnight on a CPU",
    "bert-chinese-words": "BERT for Chinese, whole words",
}
"""Titles of recipes that their file names do not give."""
_CHINESE = "bert-mini-chinese"
"""The model that a Chinese set begins with; other sets begin with the page's."""
_FIRST = ("classroom", "gpu-five-minutes", "overnight")
"""What a visitor should begin with."""


def readers(runs: Runs, session: Session) -> list[dict[str, Any]]:
    """The models of the moment, what they read, and in which direction."""
    return [
        {"name": name, "title": title, **_reading(runs, session, name)}
        for title, name in session.choices()
    ]


def task_models() -> list[str]:
    """Models that sets begin with: the page's, and one for Chinese."""
    return [Settings.from_environment().model, _CHINESE]


def _reading(runs: Runs, session: Session, name: str) -> dict[str, Any]:
    """What a model reads and in which direction, for the choice of one that suits a set."""
    found: dict[str, Any] = {"language": None, "left_to_right": False}
    with contextlib.suppress(InputError, OSError):  # a run that was deleted since it was listed
        folder = runs.model_path(name) if name.startswith("run/") else session.folder(name)
        found["language"] = run_models.language(folder)
        found["left_to_right"] = _left_to_right(folder, (folder / CONFIG).stat().st_mtime_ns)
    return found


@lru_cache(maxsize=1_000)
def _left_to_right(folder: Path, changed: int) -> bool:
    config = inspect(folder).config
    return config is not None and config.attention.direction == "left"


def has_gpu() -> bool:
    """Whether a run would train on an accelerator."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return found is not None and found.type != "cpu"


def slow(runs: Runs | None, config: Mapping[str, Any]) -> str:
    """A word where this machine's processor would emulate the arithmetic that is asked for."""
    elsewhere = runs is not None and runs.command is not None
    if config.get("precision") != "bf16" or elsewhere or has_gpu() or not emulated():
        return ""
    return Wording(
        "The processor of this machine has no bfloat16 products and emulates them: bf16 takes "
        "many times as long as fp32 here."
    )


@cache
def presets() -> list[dict[str, Any]]:
    """The shipped recipes that a page can run: those that name no file of another run."""
    found = []
    for path in sorted((settings.ASSETS / "recipes").glob("*.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        try:
            run_texts.check_names(config, run_texts.SHIPPED)
            settings.parse(config)
        except InputError:
            continue
        found.append(
            {
                "name": path.stem,
                "title": _TITLES.get(path.stem) or title(path.stem),
                "config": config,
                "gpu": bool(config.get("compile")),
            }
        )

    def place(preset: dict[str, Any]) -> tuple[int, int, str]:
        name = preset["name"]
        first = _FIRST.index(name) if name in _FIRST else len(_FIRST)
        return first, preset["config"]["steps"], name

    return sorted(found, key=place)


def title(stem: str) -> str:
    """A file name as a title: "deberta-v3-mini" as "DeBERTa v3 mini"."""
    for name, family in sorted(FAMILIES.items(), key=lambda pair: -len(pair[0])):
        if stem.startswith(name.replace("_", "-")):
            return family.title + stem[len(name) :].replace("-", " ")
    words = stem.replace("-", " ").replace("_", " ")
    return words[:1].upper() + words[1:]


@cache
def families() -> list[dict[str, Any]]:
    """Families with the published size that a fresh model of another shape is cut from."""
    found = []
    for name, family in FAMILIES.items():
        bases = [size for size in family.sizes if "base" in size or "small" in size]
        base = _BASES.get(name) or next(iter(bases or family.sizes))
        config = family.sizes[base]
        found.append(
            {
                "name": name,
                "title": family.title,
                "size": base,
                "layers": config.steps,
                "width": config.width,
                "objectives": list(config.objectives),
            }
        )
    return found


def weigh(
    runs: Runs, session: Session, config: Any, texts: Sequence[Any], source: str | None
) -> dict[str, Any]:
    """What a form of any kind comes to; InputError when it cannot be used."""
    kind = kind_of(config)
    if kind == "race":
        return run_races.check(runs, config, texts, source)
    return (run_tasks.check if kind == "task" else check)(runs, session, config, texts, source)


def still_there(runs: Runs, config: Any, source: str | None) -> str | None:
    """The run that a form was copied from; one that was deleted since is forgotten.

    Raises:
        InputError: it is gone, and a text of it is named.
    """
    try:
        return None if source is None else runs.folder(source).path.name
    except InputError:
        if beside(config):
            raise
        return None


def check(
    runs: Runs, session: Session, config: Any, texts: Sequence[Any], source: str | None
) -> dict[str, Any]:
    """What a form comes to before it is sent: parameters, what the family fills in, time.

    Raises:
        InputError: the settings cannot be used.
    """
    reads = [{"id": text} | runs.inbox.facts(text) for text in texts]
    values = runs.checked(config, texts=len(texts), source=source)
    sent = values | {"data": values["data"] | {"texts": [*values["data"]["texts"], "sent"]}}
    options = settings.parse(sent if texts else values)
    if not values["data"]["texts"] and source is None:
        from core_models.training.prepare import check_documents  # noqa: PLC0415

        check_documents(sum(each["documents"] for each in reads), options.data.held_out)
    named = config.get("model", {}).get("checkpoint")
    if named is None:
        model = build_config(options, options.tokenizer.vocabulary, 0)
    else:
        model = session.model(str(named)).config
    plan = plan_for(options, model)
    trained = replace(model, objectives=heads_of(plan))
    return {
        "parameters": count(trained).trained,
        "generator": _generator(options, trained, plan),
        "family": model.family,
        "layers": model.steps,
        "width": model.width,
        "heads": model.attention.heads,
        "objectives": plan.objectives,
        "format": plan.format,
        "tokenizer": plan.tokenizer if named is None else None,
        "masking": {
            "kind": plan.masking.kind,
            "rate": plan.masking.rate,
            "split": list(plan.masking.split),
            "longest": plan.masking.longest,
            "dynamic": plan.masking.dynamic,
        },
        "tokens": options.most_tokens,
        "reads": reads,
        "own": own(runs, values, source),
    }


def own(runs: Runs, values: Mapping[str, Any], source: str | None) -> list[dict[str, Any]]:
    """The texts of the run that a form was copied from, as far as it still names them."""
    if source is None:
        return []
    data = values["data"]
    named = [*data["texts"], *(data.get("training_only") or ())]
    return run_texts.own_texts(runs.folder(source).path, named)


def _generator(options: settings.Settings, model: Config, plan: Plan) -> int | None:
    """Parameters of the model that fills masks, where one does; shared tables are counted, too."""
    if "replaced_token" not in plan.objectives:
        return None
    return count(fresh_generator_config(options, model)).trained
