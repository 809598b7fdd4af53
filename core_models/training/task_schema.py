"""What the ``config.json`` of a fine-tuning may say: names, types, ranges and defaults.

A ``config.json`` with a part ``task`` is one of these, any other is a pretraining
(:mod:`core_models.training.schema`). As strict as there, and as free of PyTorch.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from core_models.tasks.settings import RANGES
from core_models.training.run_schema import (
    PRECISIONS,
    Checkpoints,
    Count,
    Part,
    Precision,
    RunSettings,
    labelled,
)

Kind = Literal["classify", "pair", "multilabel", "regress", "tag", "answer"]
Role = Literal[
    "text",
    "text_b",
    "label",
    "labels",
    "score",
    "tokens",
    "tags",
    "context",
    "question",
    "answers",
    "start",
]


def _within(name: str) -> Any:
    """The range of a value that the core checks, too."""
    low, high = RANGES[name]
    return Field(ge=low, le=high)


class StartingModel(Part):
    """The model that is fine-tuned."""

    checkpoint: str
    """A shipped name or a model folder, such as ``model`` of a pretraining run."""


class TaskPart(Part):
    """The labelled set, and what it asks."""

    set: Annotated[str, Field(min_length=1)]
    """Name of a shipped set, or a file (.jsonl, .csv, .tsv) beside config.json."""
    dev: str | None = None
    """File with the rows to measure on; null = 15 % of the rows are held out."""
    kind: Kind | None = None
    """A label of a text, a label of two, any number of labels, a score, a tag for each word, an
    answer in a text; null = as the columns suggest."""
    columns: dict[Role, str] = Field(default_factory=dict)
    """Which column holds what; roles that are left out are guessed."""
    apart: Annotated[
        bool, labelled("Encode the two texts apart and compare them (bi-encoder)", first=True)
    ] = False
    """Whether the texts of a scored pair are encoded apart and compared by cosine."""
    every_step: Annotated[
        bool, labelled("Read the tags from a learnt mix of all layers", first=True)
    ] = False
    """Whether tags are read from a learnt mix of all layers."""


class TaskSettings(RunSettings):
    """A whole ``config.json`` of a fine-tuning."""

    model: StartingModel
    task: Annotated[TaskPart, labelled("Labelled set")]
    learning_rate: Annotated[
        Annotated[float, _within("learning_rate")] | None, labelled("Learning rate", first=True)
    ] = None
    """Peak rate of the head; empty = 5e-4, 1e-4 or 3e-5 by the width of the model."""
    epochs: Annotated[int, _within("epochs"), labelled("Epochs", first=True)] = 5
    """Passes over the training rows."""
    batch_size: Annotated[int, _within("batch_size"), labelled("Batch size", first=True)] = 16
    """Rows (or windows of long texts) for one update."""
    seed: Annotated[int, _within("seed"), labelled("Seed", first=True)] = 1
    """Seed of the new head, the order of the rows and dropout."""
    layer_decay: Annotated[
        float, _within("layer_decay"), labelled("Layer-wise decay", first=True)
    ] = 1.0
    """Factor of the learning rate from each block to the one below; 1 = the same everywhere."""
    frozen_layers: Annotated[int, Field(ge=0, le=48), labelled("Frozen layers", first=True)] = 0
    """Lowest blocks that stay as they are, with the embeddings."""
    warmup: Annotated[float, _within("warmup"), labelled("Warm-up (share)", first=True)] = 0.1
    """Share of the steps in which the rate rises; then it falls to zero."""
    dropout: Annotated[Annotated[float, _within("dropout")] | None, labelled("Dropout")] = None
    """One rate for every dropout; empty = the model's own."""
    weight_decay: Annotated[float, _within("weight_decay"), labelled("Weight decay")] = 0.01
    """Decoupled weight decay of the matrices."""
    clip: Annotated[float, _within("clip"), labelled("Largest gradient")] = 1.0
    """Largest global gradient norm."""
    max_length: Annotated[int, Field(ge=8, le=4096), labelled("Longest input", first=True)] = 128
    """Longest input in tokens; the model's longest where that is less."""
    stride: Annotated[
        Annotated[int, Field(ge=1, le=4096)] | None, labelled("Step of the windows (tokens)")
    ] = None
    """By how many tokens the next window of a long context starts later; empty = a third of the
    longest input."""
    from_scratch: Annotated[bool, labelled("Begin with random weights")] = False
    """Whether the model begins with random weights instead of its own."""
    compare_from_scratch: Annotated[
        bool,
        labelled(
            "Compare with the same model without pretraining (takes as long again)", first=True
        ),
    ] = False
    """Whether the same fine-tuning is done once more from random weights at the end, as a mark to
    beat."""
    precision: Annotated[Precision, labelled("Precision", names=PRECISIONS)] = "fp32"
    """Arithmetic of the matrix products; weights, norms and losses stay in fp32. auto: the
    faster of the two on the machine that the run begins on."""
    report_every: Annotated[Count | None, labelled("Reported every (steps)")] = None
    """Steps between lines in metrics.jsonl; empty = so that a run has about a hundred."""
    validate_every: Annotated[Count | None, labelled("Measured every (steps)")] = None
    """Steps between measurements on the development rows, beside those after each epoch; empty =
    half an epoch."""
    checkpoints: Annotated[Checkpoints, labelled("Checkpoints")] = Checkpoints()


def is_task(values: Any) -> bool:
    """Whether plain values of a ``config.json`` ask for a fine-tuning."""
    return isinstance(values, dict) and "task" in values
