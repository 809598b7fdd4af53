"""What the entrants of a race are measured by, and what a step of theirs costs."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from core_models.data import documents
from core_models.data.sources import Source, read_documents
from core_models.data.store import TokenStore
from core_models.errors import InputError
from core_models.evaluation import evaluate_minimal_pairs, evaluate_words
from core_models.evaluation.minimal_pairs import read_pairs
from core_models.evaluation.words import Word, choose_words
from core_models.model import Model
from core_models.prediction.passes import KINDS
from core_models.tasks import sets
from core_models.tasks.baselines import baselines
from core_models.tasks.probe import probe
from core_models.tasks.report import main_metric
from core_models.training.folder import RunFolder
from core_models.training.race_cost import Cost, cost_of
from core_models.training.race_schema import NOTHING_HELD_OUT, Measures, Race
from core_models.training.settings import Settings, resolve_texts
from core_models.training.streams import open_data


def cost(run: RunFolder, settings: Settings) -> Cost:
    """Prepare a run's data, and count what its training will take at their mean length.

    Raises:
        InputError: as :func:`~core_models.training.streams.open_data`, or no file of the family
            could hold the model.
    """
    data, masker, config = open_data(run, settings, None)
    length = settings.data.max_length
    if not masker.plan.recurrent:
        length = _mean_length(data.training)
    found = cost_of(settings, config, masker.plan, length)
    if not settings.first_steps:
        return found
    early = settings.model_copy(update={"batch_size": settings.first_batch})
    first = cost_of(early, config, masker.plan, _mean_length(data.early))
    share = settings.first_steps / settings.steps
    mixed = share * first.flops_per_step + (1 - share) * found.flops_per_step
    return replace(found, flops_per_step=mixed)


def _mean_length(store: TokenStore) -> int:
    """Tokens of an example."""
    return max(1, round(float(np.mean(store.lengths))))


def held_out_words(race: Race, beside: Path) -> list[Word]:
    """The same words for every entrant, from documents that none of them trains on.

    Raises:
        InputError: the race holds no documents out, or they hold no words.
    """
    data = race.data
    found: list[list[str]] = []
    if data.held_out:
        texts = list(read_documents(_source(race, data.texts, beside)))
        _, held = documents.split_texts(texts, data.held_out, race.seed)
        found += [texts[i] for i in held]
    if data.held_out_texts:
        found += read_documents(_source(race, data.held_out_texts, beside))
    if not found:
        raise InputError(NOTHING_HELD_OUT)
    sentences = [sentence for document in found for sentence in document]
    return choose_words(sentences, most=race.measures.words, seed=race.seed)


def _source(race: Race, texts: Sequence[str], beside: Path) -> Source:
    data = race.data
    return Source(
        paths=tuple(resolve_texts(list(texts), beside)),
        dataset=None if texts else data.dataset,
        configuration=data.configuration,
        split=data.split,
        column=data.column,
        paragraphs=data.paragraphs,
    )


def measurements(
    model: Model, wanted: Measures, words: Sequence[Word]
) -> dict[str, Callable[[], dict[str, Any]]]:
    """What can be measured on a model, by ``group.name``; nothing is computed before the call."""

    def probed(name: str) -> dict[str, Any]:
        found = probe(model, sets.load(name))
        return {"main": found.main, "value": found.metrics[found.main], "metrics": found.metrics}

    def pairs() -> dict[str, Any]:
        return asdict(evaluate_minimal_pairs(model, read_pairs()))

    calls: dict[str, Callable[[], dict[str, Any]]] = {}
    for name in wanted.probes:
        calls[f"probes.{name}"] = lambda name=name: probed(name)  # type: ignore[misc]
    if set(KINDS) & set(model.heads):
        if words:
            calls["words"] = lambda: asdict(evaluate_words(model, words))
        if wanted.minimal_pairs:
            calls["minimal_pairs"] = pairs
    return calls


def probe_baselines(names: Sequence[str]) -> dict[str, dict[str, float]]:
    """What the probed sets give without any model: main metric by set and baseline."""
    found = {}
    for name in names:
        task = sets.load(name)
        main = main_metric(task)
        found[name] = {b.name: b.metrics[main] for b in baselines(task) if main in b.metrics}
    return found
