"""Objective races from the page: what the form offers, and how a race stands. No Gradio in it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.runs import config as run_config
from app.runs.data import texts as run_texts
from app.runs.runs import Runs
from app.runs.unplaced import unplaced
from core_models import InputError
from core_models.families import FAMILIES
from core_models.tasks import sets
from core_models.training import race_schema, settings
from core_models.training.models import heads_of
from core_models.training.plan import plan_for
from core_models.training.race_cost import Cost, cost_of
from core_models.training.race_folder import RaceFolder
from core_models.training.race_schema import Entrant, Race
from core_models.training.shape import build_config

MOST_POINTS = 300
"""Reports of each entrant in one answer; of more, evenly spaced ones."""

ENTRANTS: tuple[dict[str, Any], ...] = (
    {"name": "masked", "title": "Masked tokens", "size": "bert-base-uncased"},
    {"name": "next-sentence", "title": "Masked tokens and next sentence"},
    {"name": "whole-words", "title": "Masked whole words", "masking": {"kind": "whole_word"}},
    {"name": "spans", "title": "Masked spans, and their boundary", "size": "spanbert-base-cased"},
    {"name": "sentence-order", "title": "Masked tokens and sentence order"},
    {"name": "replaced", "title": "Replaced tokens", "size": "electra-small-discriminator"},
    {"name": "permutation", "title": "Any order of tokens", "size": "xlnet-base-cased"},
    {"name": "disentangled", "title": "Disentangled attention", "size": "deberta-base"},
    {"name": "causal", "title": "Left to right", "objectives": {"causal": 1.0}},
)
"""What the form offers; where no size is named, a BERT."""
_OBJECTIVES: dict[str, dict[str, float]] = {
    "masked": {"masked_token": 1.0},
    "next-sentence": {"masked_token": 1.0, "next_sentence": 1.0},
    "whole-words": {"masked_token": 1.0},
    "sentence-order": {"masked_token": 1.0, "sentence_order": 1.0},
}
_ANY_STEPS = 1_000_000
"""Stands in for the steps of a budget of operations, until they are worked out."""
_KEPT = ("name", "size", "objectives", "masking")


def describe() -> dict[str, Any]:
    """What the form for a race is drawn from."""
    return {
        "entrants": [{"title": each["title"], "config": _entrant(each)} for each in ENTRANTS],
        "probes": [name for name in sets.shipped() if name in ("sentiment", "topic", "nli")],
        "config": {
            "name": "Objective race",
            "budget": {"steps": 400},
            "overrides": {"layers": 2, "width": 128},
            "dropout": 0.0,
            "tokenizer": {"vocabulary": 2000},
            "data": {"texts": ["primer/english-*.txt"], "max_length": 64, "held_out": 0.05},
            "optimizer": {"learning_rate": 0.002},
            "schedule": {"warmup": 40},
            "batch_size": 32,
            "seed": 1,
            "report_every": 10,
            "validate_every": 100,
            "measures": {"probes": ["sentiment", "topic"], "words": 200, "minimal_pairs": False},
        },
    }


def _entrant(each: dict[str, Any]) -> dict[str, Any]:
    values = {"size": "bert-base-uncased", **{key: each[key] for key in _KEPT if key in each}}
    if each["name"] in _OBJECTIVES:
        values["objectives"] = _OBJECTIVES[each["name"]]
    return values


def check(runs: Runs, config: Any, texts: Sequence[Any], source: str | None) -> dict[str, Any]:
    """What a form for a race comes to; InputError when it cannot be run.

    Operations are counted at the longest example that is allowed, as are the steps that a budget of
    operations is good for: a run whose examples are shorter makes more, and each takes less.
    """
    reads = [{"id": text} | runs.inbox.facts(text) for text in texts]
    values = runs.checked(config, texts=len(texts), source=source)
    race = race_schema.parse(run_config.with_texts(values, ["sent.csv"] * len(texts)))
    named = values["data"]["texts"]
    if not named and source is None:
        from core_models.training.prepare import check_documents  # noqa: PLC0415

        check_documents(sum(each["documents"] for each in reads), race.data.held_out)
    rows = [_row(race, entrant) for entrant in race.entrants]
    return {
        "entrants": len(rows),
        "steps": race.budget.steps,
        "flops": race.budget.flops,
        "rows": rows,
        "reads": reads,
        "own": [] if source is None else run_texts.own_texts(runs.folder(source).path, named),
    }


def _row(race: Race, entrant: Entrant) -> dict[str, Any]:
    options = settings.parse(run_values(race, entrant))
    cost = _cost(race, options)
    return {
        "name": entrant.name,
        "title": FAMILIES[cost.family].title,
        "parameters": cost.parameters,
        "generator": cost.generator_parameters or None,
        "steps": options.steps,
        "flops": options.steps * cost.flops_per_step,
    }


def run_values(race: Race, entrant: Entrant) -> dict[str, Any]:
    """The ``config.json`` of an entrant; with a budget of operations, about as many steps."""
    steps = race.budget.steps
    values = race_schema.run_values(race, entrant, steps or _ANY_STEPS)
    if steps is None:
        options = settings.parse(values)
        assert race.budget.flops is not None
        cost = _cost(race, options).flops_per_step
        values["steps"] = max(1, round(race.budget.flops / cost))
    return values


def _cost(race: Race, options: settings.Settings) -> Cost:
    """With examples as long as they may be: how long they are shows when the text is cut."""
    config = build_config(options, race.tokenizer.vocabulary, 0)
    plan = plan_for(options, config)
    config = replace(config, objectives=heads_of(plan))
    return cost_of(options, config, plan, options.data.max_length)


def live(
    runs: Runs, run: str, reports: Callable[[str, str], list[dict[str, Any]]]
) -> dict[str, Any]:
    """How a race stands: its table, and the curve of every entrant.

    Args:
        runs: The runs folder.
        run: The race.
        reports: Those of one of its entrants.

    Raises:
        InputError: there is no such race.
    """
    folder = runs.folder(run)
    if not isinstance(folder, RaceFolder):
        raise InputError(f"“{run}” is one run, not a race.")
    status = folder.status()
    rows = folder.table()
    return {
        "rows": [_told(row, runs.root) for row in rows],
        "series": {row["name"]: _thinned(reports(run, row["name"])) for row in rows},
        "baselines": next(
            (found for row in rows if (found := folder.run(row["name"]).status().get("baselines"))),
            {},
        ),
        "probe_baselines": status.get("probe_baselines") or {},
        "models": [name for name, _ in runs.models() if name.startswith(f"run/{run}/")],
    }


def _told(row: dict[str, Any], root: Path) -> dict[str, Any]:
    """The row of an entrant with the title of its family; why it failed, without folders."""
    why = {"reason": unplaced(str(row["reason"]), root)} if row.get("reason") else {}
    return row | {"title": FAMILIES[row["family"]].title} | why


def _thinned(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every n-th report, and all with held-out figures."""
    every = max(1, len(records) // MOST_POINTS)
    return [
        record
        for number, record in enumerate(records)
        if number % every == 0
        or number == len(records) - 1
        or any(name.startswith("validation_") for name in record)
    ]
