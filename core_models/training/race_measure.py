"""What the entrants of a race are measured by, and what a step of theirs costs."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core_models.config import Config
from core_models.counts import count
from core_models.data import documents
from core_models.data.sources import Source, read_documents
from core_models.errors import InputError
from core_models.evaluation import evaluate_minimal_pairs, evaluate_words
from core_models.evaluation.minimal_pairs import read_pairs
from core_models.evaluation.words import Word, choose_words
from core_models.joint import generator_config
from core_models.model import Model
from core_models.prediction.passes import KINDS
from core_models.tasks import sets
from core_models.tasks.baselines import baselines
from core_models.tasks.probe import probe
from core_models.tasks.report import main_metric
from core_models.training import models
from core_models.training.folder import RunFolder
from core_models.training.plan import Plan, plan_for
from core_models.training.prepare import prepare
from core_models.training.race_schema import Measures, Race
from core_models.training.settings import Settings, resolve_texts

_SELECTED = ("masked_token", "span_boundary", "permutation")
"""Heads that are applied to the predicted tokens only."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Size of an entrant, and what a step of its training costs on average."""

    family: str
    objectives: dict[str, float]
    format: str
    parameters: int
    """Of the model with its pretraining heads."""
    generator_parameters: int
    length: int
    """Mean length of an example in tokens."""
    flops_per_step: float
    """Forward and backward pass of a batch, generator included."""


def cost(run: RunFolder, settings: Settings) -> Cost:
    """Prepare a run's data, and count what its training will take.

    Operations are those of :mod:`core_models.flops` at the mean length of the examples, three
    times the forward pass, with heads that read predicted tokens counted for these only. Left out,
    as there: XLNet's query stream and the memory that it attends to.

    Raises:
        InputError: as :func:`~core_models.training.prepare.prepare`, or no file of the family
            could hold the model.
    """
    plan = plan_for(settings, models.published_config(settings, None))
    data = prepare(run, settings, plan)
    words = data.tokenizer
    config = models.model_config(
        settings, plan, None, vocabulary=words.vocabulary, pad_id=words.pad_id
    )
    length = settings.data.max_length
    if not plan.recurrent:
        length = max(1, round(float(np.mean(data.training.lengths))))
    flops = _training(config, length, plan)
    generator = None
    if "replaced_token" in plan.objectives:
        wanted = settings.generator
        generator = generator_config(
            config,
            layers=wanted.layers,
            width=wanted.width,
            heads=wanted.heads,
            inner=wanted.inner,
        )
        flops += _training(generator, length, plan)
    return Cost(
        family=config.family,
        objectives=plan.objectives,
        format=plan.format,
        parameters=count(config).trained,
        generator_parameters=0 if generator is None else count(generator).trained,
        length=length,
        flops_per_step=flops * settings.batch_size,
    )


def _training(config: Config, length: int, plan: Plan) -> float:
    """Operations of one example, forward and backward."""
    parts = count(config).flops(length)
    heads = sum(
        value * (plan.masking.rate if name in _SELECTED else 1.0)
        for name, value in parts.heads.items()
    )
    return 3 * (parts.encoder + parts.mask_decoder + heads)


def held_out_words(race: Race, beside: Path) -> list[Word]:
    """The same words for every entrant, from documents that none of them trains on.

    Raises:
        InputError: the race holds no documents out, or they hold no words.
    """
    data = race.data
    found: list[list[str]] = []
    if data.held_out:
        texts = list(read_documents(_source(race, data.texts, beside)))
        _, held = documents.split_held_out(len(texts), data.held_out, race.seed)
        found += [texts[i] for i in held]
    if data.held_out_texts:
        found += read_documents(_source(race, data.held_out_texts, beside))
    if not found:
        raise InputError(
            "measures.words: nothing is held out; raise data.held_out, or set measures.words to 0."
        )
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
