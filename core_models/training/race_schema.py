"""What the file of an objective race may say: names, types, ranges and defaults.

A race trains several models on the same texts with the same seed, size and budget, and measures
them alike. Each of its runs is an ordinary pretraining; :func:`run_values` makes its
``config.json``. No PyTorch here.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from core_models.errors import InputError
from core_models.families import size
from core_models.tasks import sets
from core_models.training import settings
from core_models.training.data_schema import DataSettings, FormatName, MaskingSettings
from core_models.training.run_schema import (
    PRECISIONS,
    Count,
    Named,
    Part,
    Precision,
    Rate,
    Steps,
    labelled,
)
from core_models.training.schema import (
    CheckpointSettings,
    GeneratorSettings,
    ModelOverrides,
    ObjectiveName,
    OptimizerSettings,
    ScheduleSettings,
)
from core_models.training.shape import build_config

ANY_STEPS = 1_000_000
"""Stands in for the steps of a budget of operations, as long as they are not worked out."""


NOTHING_HELD_OUT = (
    "measures.words: nothing is held out; raise data.held_out, or set measures.words to 0."
)

_TAKEN = frozenset(
    ("lock", "stop", "queue", "owner", "texts", "data", "model", "checkpoints", "snapshots")
)
"""What a run folder may hold, the page's files among them, beside the folders of entrants."""


class Entrant(Part):
    """One of the models that are compared, and how it learns."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")]
    """Name of its run folder: letters, digits, - and _."""
    size: str
    """A size that ``core_models.sizes()`` lists; its family decides what is left open here."""
    objectives: (
        Annotated[
            dict[ObjectiveName, Annotated[float, Field(gt=0.0, le=1000.0)]], Field(min_length=1)
        ]
        | None
    ) = None
    """Objectives and their weights; null = the family's."""
    format: FormatName | None = None
    """How documents become examples; null = as the objectives need it."""
    masking: MaskingSettings = MaskingSettings()
    generator: GeneratorSettings | None = None
    learning_rate: Annotated[float, Field(gt=0.0, le=1e9)] | None = None
    """Peak rate in place of the race's."""


class Budget(Part):
    """What every entrant may spend: one of the two."""

    steps: Annotated[Steps | None, labelled("Steps of each", first=True)] = None
    """Updates."""
    flops: Annotated[
        Annotated[float, Field(ge=1e6, le=1e24)] | None,
        labelled("Operations of each (trillions)", first=True, scale=1e12),
    ] = None
    """Floating-point operations of training, a generator's included."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.steps is None) == (self.flops is None):
            raise ValueError("give either budget.steps or budget.flops, not both and not neither")
        return self


class SharedTokenizer(Part):
    """A vocabulary of the same kind and size, learned from the same texts, for every entrant."""

    kind: Annotated[Literal["wordpiece", "byte_bpe", "unigram"], labelled("Algorithm")] = (
        "wordpiece"
    )
    """The algorithm that learns it."""
    vocabulary: Annotated[int, Field(ge=64, le=250_000), labelled("Vocabulary", first=True)] = 6000
    """Most pieces to learn, special pieces included."""
    lowercase: Annotated[bool, labelled("Lower case")] = True
    """Whether text is lower-cased (and accents removed) before it is cut."""


class Measures(Part):
    """What is measured once a run has finished."""

    probes: Annotated[list[str], labelled("Linear probes")] = Field(
        default_factory=lambda: ["sentiment", "topic"]
    )
    """Shipped labelled sets on which a linear model reads the frozen states."""
    words: Annotated[int, Field(ge=0, le=20_000), labelled("Hidden words to guess")] = 500
    """Words of held-out documents that are hidden one by one; 0 = none."""
    minimal_pairs: Annotated[bool, labelled("Minimal pairs")] = True
    """Whether the shipped minimal pairs are compared."""


class Race(Named):
    """A whole file of a race."""

    entrants: Annotated[list[Entrant], Field(max_length=24)]
    budget: Annotated[Budget, labelled("Budget")]
    overrides: Annotated[ModelOverrides, labelled("Shape")] = ModelOverrides()
    """Layers, width and so on that every entrant gets in place of its size's own."""
    dropout: Annotated[Rate | None, labelled("Dropout")] = None
    """One rate for every dropout; empty = the models' own."""
    attention_dropout: Annotated[Rate | None, labelled("Dropout of attention")] = None
    """Another rate for attention probabilities; empty = as above."""
    tokenizer: Annotated[SharedTokenizer, labelled("Vocabulary")] = SharedTokenizer()
    data: Annotated[DataSettings, labelled("Data")]
    """Texts and how they are cut. Recurrent segments have no ``singles``; there they count as 0."""
    optimizer: Annotated[OptimizerSettings, labelled("Optimizer")] = OptimizerSettings()
    schedule: Annotated[ScheduleSettings, labelled("Schedule")] = ScheduleSettings()
    batch_size: Annotated[int, Field(ge=1, le=65_536), labelled("Batch size", first=True)] = 32
    """Examples for one update."""
    precision: Annotated[Precision, labelled("Precision", names=PRECISIONS)] = "fp32"
    """Arithmetic of the matrix products; auto: the faster of the two, the same for all runs."""
    seed: Annotated[int, Field(ge=0, lt=2**63), labelled("Seed", first=True)] = 1
    """Seed of every run."""
    report_every: Annotated[Count, labelled("Reported every (steps)")] = 20
    """Steps between lines in a run's metrics.jsonl."""
    validate_every: Annotated[Count, labelled("Measured every (steps)")] = 500
    """Steps between validations on the held-out documents."""
    checkpoints: Annotated[CheckpointSettings, labelled("Checkpoints")] = CheckpointSettings()
    measures: Annotated[Measures, labelled("What is measured at the end")] = Measures()

    @model_validator(mode="after")
    def _agreement(self) -> Self:
        names = [entrant.name.lower() for entrant in self.entrants]
        if len(names) < 2:
            raise ValueError(
                f"entrants: a race compares 2 to 24 models, not {len(names)}; add more"
            )
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise ValueError(f"entrants: two are called {double!r}; give each a name of its own")
        if taken := sorted(_TAKEN.intersection(names)):
            raise ValueError(f"entrants: the race has a file {taken[0]!r}; choose another name")
        if self.data.format is not None:
            raise ValueError("data.format: say format in an entrant; it follows its objectives")
        return self


def parse(values: Any) -> Race:
    """Check plain values as read from JSON, and every run that they ask for.

    Raises:
        InputError: lists what is wrong, or names the entrant whose run cannot be made.
    """
    race = settings.validated(Race, values)
    unknown = [name for name in race.measures.probes if name not in sets.shipped()]
    if unknown:
        there = ", ".join(sets.shipped())
        raise InputError(f"measures.probes: no shipped set {unknown[0]!r}; there are {there}.")
    if race.measures.words and not (race.data.held_out or race.data.held_out_texts):
        raise InputError(NOTHING_HELD_OUT)
    for entrant in race.entrants:
        try:
            run = settings.parse(run_values(race, entrant, race.budget.steps or ANY_STEPS))
            build_config(run, race.tokenizer.vocabulary, 0)
        except InputError as error:
            raise InputError(f"entrants, {entrant.name}: {error}") from None
    return race


def run_values(race: Race, entrant: Entrant, steps: int) -> dict[str, Any]:
    """The ``config.json`` of an entrant's run, as plain values."""
    shared = race.model_dump(mode="json", exclude_unset=True)
    own = entrant.model_dump(mode="json", exclude_unset=True)
    data = shared["data"] | ({"format": own["format"]} if own.get("format") else {})
    if _recurrent(entrant):
        data = {name: value for name, value in data.items() if name != "singles"}
    model: dict[str, Any] = {"size": entrant.size, "overrides": shared.get("overrides", {})}
    for name in ("dropout", "attention_dropout"):
        model[name] = shared.get(name)
    values = {
        "name": f"{race.name}: {entrant.name}" if race.name else entrant.name,
        "model": model,
        "tokenizer": race.tokenizer.model_dump(mode="json"),
        "data": data,
        "optimizer": shared.get("optimizer", {})
        | ({} if entrant.learning_rate is None else {"learning_rate": entrant.learning_rate}),
        "steps": steps,
    }
    for name in ("objectives", "masking", "generator"):
        if own.get(name):
            values[name] = own[name]
    for name in _SAME:
        if name in shared:
            values[name] = shared[name]
    return values


_SAME = (
    "schedule",
    "batch_size",
    "precision",
    "seed",
    "threads",
    "report_every",
    "validate_every",
    "checkpoints",
)


def _recurrent(entrant: Entrant) -> bool:
    """Whether an entrant reads recurrent segments, which are never single."""
    if entrant.format is not None:
        return entrant.format == "recurrent"
    return "permutation" in (entrant.objectives or size(entrant.size).objectives)
