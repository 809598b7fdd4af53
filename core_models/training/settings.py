"""What a run's ``config.json`` may say: names, types, ranges and defaults.

Strict on purpose: an unknown or misspelt field is an error with a suggestion, never ignored. No
PyTorch here, so a page can check a form without loading it.
"""

import difflib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core_models.errors import InputError

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]

ASSETS = Path(__file__).resolve().parents[2] / "assets"


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class ModelOverrides(_Part):
    """Values of the size that are replaced."""

    layers: Annotated[int, Field(ge=1, le=48)] | None = None
    """Number of layers."""
    width: Annotated[int, Field(ge=8, le=2048)] | None = None
    """Hidden width D; must be divisible by the number of heads."""
    heads: Annotated[int, Field(ge=1, le=64)] | None = None
    """Number of attention heads."""
    inner: Annotated[int, Field(ge=8, le=8192)] | None = None
    """Inner width of the feed-forward network."""
    positions: Annotated[int, Field(ge=8, le=4096)] | None = None
    """Rows of the position table: the longest input the model can read, in tokens."""


class ModelSettings(_Part):
    """A fresh model of a named size, or a checkpoint to continue from."""

    size: str | None = None
    """A size that ``core_models.sizes()`` lists. The vocabulary follows the tokenizer."""
    overrides: ModelOverrides = ModelOverrides()
    """Replaced values of the size."""
    checkpoint: str | None = None
    """A shipped name or a model folder to start from; its tokenizer and config are used."""
    dropout: Rate | None = None
    """One rate for every dropout; null = the model's own. Short runs learn more with 0."""
    attention_dropout: Rate | None = None
    """Another rate for attention probabilities; null = as above. 0 keeps the fused attention."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.size is None) == (self.checkpoint is None):
            raise ValueError("give either model.size or model.checkpoint, not both and not neither")
        if self.checkpoint is not None and self.overrides != ModelOverrides():
            raise ValueError("model.overrides belongs to model.size; a checkpoint has its own size")
        return self


class TokenizerSettings(_Part):
    """A vocabulary learned from the training documents, or one that exists."""

    kind: Literal["wordpiece", "byte_bpe", "unigram"] = "wordpiece"
    """The algorithm that learns the vocabulary."""
    vocabulary: Annotated[int, Field(ge=64, le=250_000)] = 6000
    """Most pieces to learn, special pieces included."""
    lowercase: bool = True
    """Whether text is lower-cased (and accents removed) before it is cut."""
    folder: str | None = None
    """Folder of an existing tokenizer; the three values above are then not used."""


class DataSettings(_Part):
    """Documents and how they become examples."""

    texts: Annotated[list[str], Field(min_length=1)]
    """Text files or patterns, looked up beside config.json, then in the project's ``assets``."""
    held_out: Annotated[float, Field(ge=0.0, le=0.5)] = 0.05
    """Share of the documents of ``texts`` kept for validation. The choice depends on their number
    and the seed only, so a second phase over the same texts keeps the same ones out."""
    training_only: list[str] = []
    """More text files or patterns, of which nothing is held out."""
    max_length: Annotated[int, Field(ge=8, le=4096)] = 128
    """Longest example in tokens, [CLS] and [SEP] included."""
    short_probability: Share = 0.1
    """Share of examples with a random shorter target length (BERT: 0.1)."""
    duplicates: Annotated[int, Field(ge=1, le=1000)] = 10
    """How many times the documents are cut into pairs, each time differently (BERT: 10)."""
    singles: Share = 0.0
    """Share of examples that are one segment without a partner and without a pair label."""
    bucketing: Annotated[int, Field(ge=1, le=1000)] = 16
    """Batches whose examples are sorted by length together, to save padding; 1 = no sorting."""


class MaskingSettings(_Part):
    """How tokens are chosen for prediction."""

    kind: Literal["uniform", "whole_word"] = "uniform"
    """Single pieces, or all pieces of a word."""
    rate: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    """Share of an example's tokens that is predicted."""
    split: Annotated[list[Share], Field(min_length=3, max_length=3)] = [0.8, 0.1, 0.1]
    """Shares of the chosen that become [MASK], a random piece, or stay as they are."""
    dynamic: bool = True
    """Drawn afresh at each visit (RoBERTa), or once for each example (BERT)."""

    @model_validator(mode="after")
    def _split_sums_to_one(self) -> Self:
        if abs(sum(self.split) - 1.0) > 1e-6:
            raise ValueError(f"masking.split must sum to 1, not to {sum(self.split):g}")
        return self


class OptimizerSettings(_Part):
    """AdamW, or Muon for the matrices of the blocks; biases and LayerNorm are never decayed."""

    kind: Literal["adamw", "muon"] = "adamw"
    """AdamW (arXiv 1711.05101) for everything, or Muon (arXiv 2502.16982) where it is meant for."""
    learning_rate: Annotated[float, Field(gt=0.0, le=1e9)] = 5e-4
    """Peak learning rate."""
    betas: Annotated[list[Rate], Field(min_length=2, max_length=2)] = [0.9, 0.999]
    """Decay of the averages of gradient and squared gradient."""
    epsilon: Annotated[float, Field(gt=0.0, le=1.0)] = 1e-6
    """Added to the denominator."""
    matrix_learning_rate: Annotated[float, Field(gt=0.0, le=1e9)] = 2e-3
    """Muon only: peak rate of the matrices, on AdamW's scale."""
    momentum: Rate = 0.95
    """Muon only."""
    weight_decay: Annotated[float, Field(ge=0.0, le=10.0)] = 0.01
    """Decoupled weight decay of the matrices."""
    clip: Annotated[float, Field(gt=0.0)] | None = 1.0
    """Largest global gradient norm; null = no clipping."""


class ScheduleSettings(_Part):
    """Learning rate over steps: linear up, linear down to zero."""

    warmup: Annotated[int, Field(ge=0)] = 0
    """Steps of linear warm-up."""
    decay: Literal["linear", "none"] = "linear"
    """From the peak to zero at the last step, or constant after the warm-up."""


class CheckpointSettings(_Part):
    """When the run is saved."""

    every: Count = 500
    """Steps between checkpoints from which the run can resume."""
    keep: Count = 2
    """How many of them are kept."""
    snapshots: bool = False
    """Whether the model alone is also kept at steps 1, 2, 4, 8, ... (to look back later)."""


class Settings(_Part):
    """A whole ``config.json``."""

    name: str = ""
    """What people call the run."""
    description: str = ""
    """What it is for."""
    model: ModelSettings
    tokenizer: TokenizerSettings = TokenizerSettings()
    data: DataSettings
    objectives: Annotated[
        dict[Literal["masked_token", "next_sentence"], Annotated[float, Field(gt=0.0, le=1000.0)]],
        Field(min_length=1),
    ] = {"masked_token": 1.0, "next_sentence": 1.0}
    """Objectives and their weights in the total loss."""
    masking: MaskingSettings = MaskingSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 32
    """Examples for one update, over all processes and all accumulated parts together."""
    accumulation: Annotated[int, Field(ge=1, le=1024)] = 1
    """Parts into which the batch of one process is cut to save memory."""
    steps: Count
    """Updates in the whole run."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Arithmetic of the matrix products; weights, norms and losses stay in fp32."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Seed of initial weights, data order, masking and dropout."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """CPU threads; null = one for each core this process may use."""
    report_every: Count = 20
    """Steps between lines in metrics.jsonl."""
    validate_every: Count = 500
    """Steps between validations on the held-out documents."""
    checkpoints: CheckpointSettings = CheckpointSettings()

    @model_validator(mode="after")
    def _agreement(self) -> Self:
        if self.schedule.warmup >= self.steps:
            raise ValueError(
                f"schedule.warmup ({self.schedule.warmup}) must be below steps ({self.steps})"
            )
        positions = self.model.overrides.positions
        if positions is not None and positions < self.data.max_length:
            raise ValueError(
                f"data.max_length ({self.data.max_length}) does not fit into "
                f"model.overrides.positions ({positions})"
            )
        if self.data.singles == 1.0 and "next_sentence" in self.objectives:
            raise ValueError("next_sentence needs pairs: data.singles must be below 1")
        return self


# These may change between two parts of a run without changing what is computed.
HARMLESS = frozenset(
    {"name", "description", "threads", "report_every", "validate_every", "checkpoints"}
)


def parse(values: Any) -> Settings:
    """Check plain values as read from JSON; InputError lists everything that is wrong."""
    # Through JSON, because strict mode then still reads 1 as a float and a list as a list.
    try:
        return Settings.model_validate_json(json.dumps(values))
    except ValidationError as error:
        raise InputError(_explain(error)) from error


def read(path: Path) -> Settings:
    """Read ``config.json``; InputError when it is missing, not JSON or not valid."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        ) from error
    try:
        return parse(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Paths of the values that differ between two settings as JSON, the harmless ones left out."""
    left, right = dict(_leaves(before)), dict(_leaves(after))
    return [
        path
        for path in sorted(left.keys() | right.keys())
        if left.get(path) != right.get(path) and path.split(".")[0] not in HARMLESS
    ]


def resolve_texts(patterns: list[str], beside: Path) -> list[Path]:
    """Turn ``data.texts`` into files: beside ``config.json`` first, then in the assets.

    Raises:
        InputError: a pattern matches nothing.
    """
    found: list[Path] = []
    for pattern in patterns:
        matches: list[Path] = []
        for root in (beside, ASSETS):
            matches = _matches(pattern, root)
            if matches:
                break
        if not matches:
            raise InputError(
                f"data.texts: nothing matches {pattern!r}, neither beside config.json ({beside}) "
                f"nor in the project's assets."
            )
        found.extend(path for path in matches if path not in found)
    return found


def resolve_folder(name: str, beside: Path) -> str:
    """A folder beside ``config.json`` where there is one, else the name as it stands."""
    candidate = beside / name
    return str(candidate) if candidate.is_dir() else name


def _matches(pattern: str, root: Path) -> list[Path]:
    path = Path(pattern)
    if path.is_absolute():
        root, pattern = Path(path.anchor), str(path.relative_to(path.anchor))
    try:
        return sorted(root.glob(pattern))
    except (ValueError, NotImplementedError, IndexError) as error:
        raise InputError(f"data.texts: {pattern!r} is not a usable pattern: {error}") from error


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(path, value)]
    return [
        leaf
        for key, child in value.items()
        for leaf in _leaves(child, f"{path}.{key}" if path else str(key))
    ]


def _explain(error: ValidationError) -> str:
    lines = []
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"] if part != "[key]") or "config.json"
        if item["type"] == "extra_forbidden":
            lines.append(f"{where}: no such field.{_suggestion(item['loc'])}")
        elif item["type"] == "missing":
            lines.append(f"{where}: is missing.")
        elif item["type"] == "value_error":
            lines.append(str(item["ctx"]["error"]) + ".")
        else:
            lines.append(f"{where} = {json.dumps(item['input'], default=str)}: {item['msg']}.")
    return "\n".join(lines)


def _suggestion(location: tuple[int | str, ...]) -> str:
    part: type[BaseModel] = Settings
    for name in location[:-1]:
        field = part.model_fields.get(str(name))
        if not (field and isinstance(field.annotation, type)):
            return ""
        if not issubclass(field.annotation, BaseModel):
            return ""
        part = field.annotation
    near = difflib.get_close_matches(str(location[-1]), list(part.model_fields), n=1)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Allowed: {', '.join(part.model_fields)}."
