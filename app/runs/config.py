"""Configs from the page: pretraining, fine-tuning or a race; checked, with their texts put in."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from app.runs.data.texts import check_names
from core_models import InputError
from core_models.families import size
from core_models.tasks import sets
from core_models.training import race_schema, settings, task_settings
from core_models.training.plan import plan_for
from core_models.training.task_schema import is_task

Kind = Literal["pretraining", "task", "race"]

MOST_LETTERS = {"name": 200, "description": 2_000}
"""Every page that shows the list of runs is told what they are called."""

MOST_TEXTS = 100


def kind_of(values: Any) -> Kind:
    """What a config asks for."""
    if isinstance(values, Mapping) and "entrants" in values:
        return "race"
    return "task" if is_task(values) else "pretraining"


def checked(
    config: Any, *, sent: int, allowed: set[str], resolve: Callable[[str], str]
) -> dict[str, Any]:
    """A config from the page as plain values of its own; InputError when it is not good.

    Args:
        config: plain values.
        sent: how many texts or labelled files come from the inbox.
        allowed: names that may stand in it; ``resolve`` may add some.
        resolve: of a string, the one to write in its place.
    """
    kind = kind_of(config)
    part = "task" if kind == "task" else "data"
    if not isinstance(config, Mapping) or not isinstance(config.get(part, {}), Mapping):
        raise InputError(f"The settings of a run must be an object with a field {part}.")
    values: dict[str, Any] = json.loads(json.dumps(config))
    if kind == "task":
        allowed |= {*sets.shipped()}
        if not sent and not values["task"].get("set"):
            raise InputError("There is nothing to learn: choose a labelled set or send one.")
    else:
        _check_texts(values, sent)
    replace_strings(values, resolve)
    check_names(values, allowed)
    for field, most in MOST_LETTERS.items():
        if len(said := str(values.get(field, ""))) > most:
            raise InputError(
                f"{field} has {len(said):,} characters; the page takes up to {most:,}."
            )
    parse(with_texts(values, ["sent.csv"] * sent))
    return values


def _check_texts(values: dict[str, Any], sent: int) -> None:
    for field in ("texts", "training_only", "held_out_texts"):
        listed = values.get("data", {}).get(field)
        if isinstance(listed, list) and len(listed) > MOST_TEXTS:
            raise InputError(
                f"data.{field} names {len(listed):,} texts; the page takes up to {MOST_TEXTS}."
            )
    named = values.setdefault("data", {}).setdefault("texts", [])
    if not isinstance(named, list):
        raise InputError("data.texts must be a list.")
    if not named and not sent:
        raise InputError("There is nothing to read: choose a text, paste one or send a file.")


def parse(values: Mapping[str, Any]) -> None:
    """InputError lists everything that is wrong with a config."""
    readers: dict[Kind, Callable[[Any], object]] = {
        "pretraining": settings.parse,
        "task": task_settings.parse,
        "race": race_schema.parse,
    }
    readers[kind_of(values)](values)


def with_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting of a config, so that two can be compared; as it stands where it is not good.

    What a fresh model's family decides (objectives, format, masking, vocabulary) is filled in, too.
    """
    try:
        kind = kind_of(values)
        if kind == "task":
            return task_settings.parse(values).model_dump(mode="json")
        if kind == "race":
            return race_schema.parse(values).model_dump(mode="json")
        options = settings.parse(values)
        found: dict[str, Any] = options.model_dump(mode="json")
        if options.model.size is None:
            return found
        plan = plan_for(options, size(options.model.size))
    except InputError:
        return dict(values)
    masking = {name: _plain(getattr(plan.masking, name)) for name in found["masking"]}
    return found | {
        "objectives": dict(plan.objectives),
        "masking": masking if plan.masks else {},
        "data": found["data"] | {"format": plan.format},
        "tokenizer": found["tokenizer"] | {"kind": plan.tokenizer, "lowercase": plan.lowercase},
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def with_texts(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The config with sent files in it: texts to read, or a labelled set and its other part."""
    if not names:
        return values
    if kind_of(values) != "task":
        data = values["data"]
        return values | {"data": data | {"texts": [*data["texts"], *names]}}
    placed = dict(zip(("set", "dev"), names, strict=False))
    return values | {"task": values["task"] | placed}


def spare_a_core(values: dict[str, Any]) -> None:
    """Leave a core to the page, and to whoever else works on this machine."""
    if values.get("threads") is None:
        affinity = getattr(os, "sched_getaffinity", None)  # a container may have fewer than all
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        values["threads"] = max(1, cores - 1)


def replace_strings(value: Any, change: Callable[[str], str]) -> None:
    """Change every string of plain values in place, names for people and of columns left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in list(items):
        if key in ("name", "description", "column", "columns"):
            continue
        if isinstance(child, str):
            value[key] = change(child)
        elif isinstance(child, dict | list):
            replace_strings(child, change)
