"""What the ``config.json`` of a pretraining may say: names, types, ranges and defaults.

Where null is allowed and nothing else is said, the value follows the model's family; what that
comes to is worked out by :mod:`core_models.training.plan`. Vocabulary, documents and masking are in
:mod:`~core_models.training.data_schema`, what other runs have too in
:mod:`~core_models.training.run_schema`.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from core_models.training.data_schema import DataSettings, MaskingSettings, TokenizerSettings
from core_models.training.run_schema import (
    PRECISIONS,
    Checkpoints,
    Count,
    Part,
    Precision,
    Rate,
    RunSettings,
    Steps,
    labelled,
)

MOST_TOKENS = 10**13
"""Five times what RoBERTa read."""
Layers = Annotated[int, Field(ge=1, le=48)]
Width = Annotated[int, Field(ge=8, le=4096)]
Heads = Annotated[int, Field(ge=1, le=64)]
Inner = Annotated[int, Field(ge=8, le=16_384)]
ObjectiveName = Literal[
    "masked_token",
    "masked_diffusion",
    "masked_next_token",
    "next_sentence",
    "sentence_order",
    "span_boundary",
    "permutation",
    "replaced_token",
    "causal",
    "distillation",
]
DECAYS = {"linear": "down to zero", "stable": "constant, then down", "none": "constant"}


class ModelOverrides(Part):
    """Values of the size that are replaced."""

    layers: Annotated[Layers | None, labelled("Layers", first=True, none="as its size")] = None
    """Number of passes through a layer. Where the size shares its layers, they stay shared."""
    width: Annotated[Width | None, labelled("Width", first=True, none="as its size")] = None
    """Hidden width D; must be divisible by the number of heads."""
    heads: Annotated[Heads | None, labelled("Heads")] = None
    """Number of attention heads; empty = heads as wide as the size's where D allows it."""
    inner: Inner | None = None
    """Inner width of the feed-forward network; null = the size's share of D."""
    embedding_width: Width | None = None
    """Width E of the piece table; null = the size's, or D where the size does not tell them
    apart."""
    positions: Annotated[int, Field(ge=8, le=4096)] | None = None
    """Longest input in tokens that the model is made for: rows of the position table, and the
    largest distance of relative positions. null = the size's table; relative distances then follow
    data.max_length."""


class ModelSettings(Part):
    """A fresh model of a named size, or a checkpoint to continue from."""

    size: str | None = None
    """A size that ``core_models.sizes()`` lists. The vocabulary follows the tokenizer."""
    overrides: Annotated[ModelOverrides, labelled("Shape")] = ModelOverrides()
    """Replaced values of the size."""
    checkpoint: str | None = None
    """A shipped name or a model folder to start from; its tokenizer and config are used."""
    dropout: Annotated[Rate | None, labelled("Dropout")] = None
    """One rate for every dropout; empty = the model's own. Short runs learn more with 0."""
    attention_dropout: Annotated[Rate | None, labelled("Dropout of attention")] = None
    """Another rate for attention probabilities; empty = as above. 0 keeps the fused attention."""
    position_waves: Annotated[float, Field(gt=0, le=1)] | None = None
    """Standard deviation of the sine waves that a fresh table of positions begins with; null =
    drawn as published. Families without such a table take no notice."""
    encoder_from: str | None = None
    """A shipped name or a model folder, of any family, whose encoder's weights a fresh model begins
    with; null = drawn. Layers must fit; of the vocabulary, pieces that read the same are taken."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.size is None) == (self.checkpoint is None):
            raise ValueError("give either model.size or model.checkpoint, not both and not neither")
        if self.checkpoint is not None and self.overrides != ModelOverrides():
            raise ValueError("model.overrides belongs to model.size; a checkpoint has its own size")
        if self.checkpoint is not None and self.position_waves is not None:
            raise ValueError("model.position_waves belongs to model.size; a checkpoint has a table")
        if self.checkpoint is not None and self.encoder_from is not None:
            raise ValueError("give either model.encoder_from or model.checkpoint, not both")
        return self


class GeneratorSettings(Part):
    """The small model that fills masks for replaced_token; null = the published proportions."""

    layers: Layers | None = None
    """Number of layers."""
    width: Width | None = None
    """Hidden width; the tables keep the discriminator's."""
    heads: Heads | None = None
    """Number of attention heads."""
    inner: Inner | None = None
    """Inner width of the feed-forward network."""
    sharing: Literal["tied", "gradient_disentangled", "none"] | None = None
    """Piece tables: one for both, the generator's plus a difference that only the discriminator's
    loss moves (DeBERTa v3), or two of their own."""
    encoder_from: str | None = None
    """As ``model.encoder_from``, for a generator as wide as the model named; null = fresh layers
    below the discriminator's tables."""
    temperature: Annotated[float, Field(gt=0.0, le=100.0)] = 1.0
    """Divides the generator's scores before a piece is drawn."""
    weight: Annotated[float, Field(gt=0.0, le=1000.0)] = 50.0
    """Weight of the discriminator's loss beside the generator's (ELECTRA: 50)."""


class DistillationSettings(Part):
    """A trained model whose answers are learnt."""

    teacher: str
    """A shipped name or a model folder with a masked-token head and the same vocabulary."""
    temperature: Annotated[float, Field(gt=0.0, le=100.0)] = 2.0
    """Divides both models' scores before they are compared."""


class OptimizerSettings(Part):
    """AdamW, or Muon for the matrices of the blocks; biases and LayerNorm are never decayed."""

    kind: Annotated[
        Literal["adamw", "muon"], labelled("Method", names={"adamw": "AdamW", "muon": "Muon"})
    ] = "adamw"
    """AdamW (arXiv 1711.05101) for everything, or Muon (arXiv 2502.16982) where it is meant for."""
    learning_rate: Annotated[
        float, Field(gt=0.0, le=1e9), labelled("Learning rate", first=True)
    ] = 5e-4
    """Peak learning rate."""
    betas: Annotated[list[Rate], Field(min_length=2, max_length=2)] = Field(default=[0.9, 0.999])
    """Decay of the averages of gradient and squared gradient."""
    epsilon: Annotated[float, Field(gt=0.0, le=1.0)] = 1e-6
    """Added to the denominator."""
    matrix_learning_rate: Annotated[float, Field(gt=0.0, le=1e9)] = 2e-3
    """Muon only: peak rate of the matrices, on AdamW's scale."""
    momentum: Rate = 0.95
    """Muon only."""
    weight_decay: Annotated[float, Field(ge=0.0, le=10.0), labelled("Weight decay")] = 0.01
    """Decoupled weight decay of the matrices."""
    clip: Annotated[Annotated[float, Field(gt=0.0)] | None, labelled("Largest gradient")] = 1.0
    """Largest global gradient norm; null = no clipping."""


class ScheduleSettings(Part):
    """Learning rate over steps: up, perhaps constant for a while, and down to zero."""

    warmup: Annotated[int, Field(ge=0), labelled("Warm-up steps", first=True)] = 0
    """Steps of linear warm-up."""
    decay: Annotated[Literal["linear", "stable", "none"], labelled("Then", names=DECAYS)] = "linear"
    """From the peak to zero at the last step; constant first and then down (warm-up, stable,
    decay: arXiv 2404.06395); or constant to the end."""
    cooldown: Annotated[float, Field(gt=0.0, le=1.0)] = 0.2
    """stable only: the last share of the steps, in which the rate falls."""


class CheckpointSettings(Checkpoints):
    """The same for a pretraining, whose epochs may be long."""

    every: Annotated[Count, labelled("Saved every (steps)")] = 500
    """Steps between checkpoints from which the run can resume."""
    keep: Annotated[Count, labelled("How many are kept")] = 2
    """How many of them are kept."""


class Settings(RunSettings):
    """A whole ``config.json`` of a pretraining."""

    model: Annotated[ModelSettings, labelled("Model")]
    tokenizer: Annotated[TokenizerSettings, labelled("Vocabulary")] = TokenizerSettings()
    data: Annotated[DataSettings, labelled("Data")]
    objectives: (
        Annotated[
            dict[ObjectiveName, Annotated[float, Field(gt=0.0, le=1000.0)]], Field(min_length=1)
        ]
        | None
    ) = None
    """Objectives and their weights in the total loss; null = the family's, each with weight 1."""
    masking: Annotated[MaskingSettings, labelled("Masking")] = MaskingSettings()
    generator: GeneratorSettings = GeneratorSettings()
    distillation: DistillationSettings | None = None
    optimizer: Annotated[OptimizerSettings, labelled("Optimizer")] = OptimizerSettings()
    schedule: Annotated[ScheduleSettings, labelled("Schedule")] = ScheduleSettings()
    batch_size: Annotated[int, Field(ge=1, le=65_536), labelled("Batch size", first=True)] = 32
    """Examples for one update, over all processes and all accumulated parts together."""
    accumulation: Annotated[int, Field(ge=1, le=1024), labelled("Parts of a batch")] = 1
    """Parts into which the batch of one process is cut to save memory."""
    steps: Annotated[Steps, labelled("Steps", first=True)]
    """Updates in the whole run."""
    precision: Annotated[Precision, labelled("Precision", first=True, names=PRECISIONS)] = "fp32"
    """Arithmetic of the matrix products; weights, norms and losses stay in fp32. auto: the
    faster of the two on the machine that the run begins on."""
    compile: bool = False
    """Whether the encoder is compiled (torch.compile): the first steps take minutes, the others
    less time than before on a GPU."""
    seed: Annotated[int, Field(ge=0, lt=2**63), labelled("Seed", first=True)] = 1
    """Seed of initial weights, data order, masking and dropout."""
    report_every: Annotated[Count, labelled("Reported every (steps)")] = 20
    """Steps between lines in metrics.jsonl."""
    validate_every: Annotated[Count, labelled("Measured every (steps)")] = 500
    """Steps between validations on the held-out documents."""
    checkpoints: Annotated[CheckpointSettings, labelled("Checkpoints")] = CheckpointSettings()

    @property
    def first_steps(self) -> int:
        """Updates of ``data.first_length`` or ``first_batch``, before the others; 0 = none."""
        if self.data.first_length is None and self.data.first_batch is None:
            return 0
        return min(max(1, round(self.data.first_share * self.steps)), self.steps - 1)

    @property
    def first_batch(self) -> int:
        """Examples of such an update; if not said, as many tokens as the others have."""
        if self.data.first_batch is not None:
            return self.data.first_batch
        shorter = self.data.first_length or self.data.max_length
        return self.batch_size * self.data.max_length // shorter

    @property
    def most_tokens(self) -> int:
        """Tokens that the run reads at most: as many as its batches have room for."""
        first = self.first_steps
        shorter = self.data.first_length or self.data.max_length
        later = (self.steps - first) * self.batch_size * self.data.max_length
        return first * self.first_batch * shorter + later

    @model_validator(mode="after")
    def _agreement(self) -> Self:
        if self.schedule.warmup >= self.steps:
            raise ValueError(
                f"schedule.warmup ({self.schedule.warmup}) must be below steps ({self.steps})"
            )
        largest, name = max(
            (self.batch_size, "batch_size"), (self.data.first_batch or 0, "data.first_batch")
        )
        tokens = self.steps * largest * self.data.max_length
        if tokens > MOST_TOKENS:
            raise ValueError(
                f"steps ({self.steps}), {name} ({largest}) and data.max_length "
                f"({self.data.max_length}) come to {tokens:.2g} tokens; at most {MOST_TOKENS:.0e} "
                "are allowed"
            )
        positions = self.model.overrides.positions
        if positions is not None and positions < self.data.max_length:
            raise ValueError(
                f"data.max_length ({self.data.max_length}) does not fit into "
                f"model.overrides.positions ({positions})"
            )
        return self
