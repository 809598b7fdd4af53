"""What a run's ``config.json`` may say: names, types, ranges and defaults.

Strict on purpose: an unknown or misspelt field is an error with a suggestion, never ignored. Where
null is allowed and nothing else is said, the value follows the model's family; what that comes to
is worked out by :mod:`core_models.training.plan`. No PyTorch here: a page can check a form.

A field that is :func:`labelled` stands in the page's forms, too: with that label, the text below it
as its help, and the bounds of its type. Nothing else says them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


def labelled(
    label: str,
    *,
    first: bool = False,
    scale: float = 1.0,
    names: Mapping[str, str] | None = None,
    none: str = "as its family",
) -> Any:
    """A setting, or a part of them, that forms show, with the text below it as its help.

    There an empty field is null, and so it is called in these texts.

    Args:
        label: What people read beside it, with its unit; the title of a part.
        first: Whether it is seen before anything is unfolded.
        scale: How many of its own units the unit of the label is.
        names: What values are called that would say nothing as they are.
        none: What null is called.
    """
    told: dict[str, Any] = {"label": label, "first": first, "scale": scale, "none": none}
    return Field(json_schema_extra={**told, "names": dict(names or {})})


Share = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]
MOST_STEPS = 10_000_000
"""Ten times the steps of BERT; more is a slip of the hand."""
MOST_TOKENS = 10**13
"""Five times what RoBERTa read."""
Steps = Annotated[int, Field(ge=1, le=MOST_STEPS)]
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
FormatName = Literal[
    "next_sentence",
    "sentence_order",
    "sentence_pair",
    "full_sentences",
    "doc_sentences",
    "single",
    "recurrent",
]
MaskingKind = Literal[
    "uniform",
    "whole_word",
    "ngram",
    "windowed_ngram",
    "span",
    "with_replacement",
    "similar_word",
    "ordering",
    "diffusion",
]
Precision = Literal["fp32", "bf16", "auto"]
TrackerName = Literal["tensorboard", "trackio", "wandb"]
FORMATS = {
    "next_sentence": "pairs of segments, half of them neighbours",
    "sentence_order": "two segments, half of them swapped",
    "sentence_pair": "pairs of sentences",
    "full_sentences": "full sentences up to the longest length",
    "doc_sentences": "full sentences of one document",
    "single": "single segments",
    "recurrent": "a stream that goes on from batch to batch",
}
MASKINGS = {
    "uniform": "single pieces",
    "whole_word": "whole words",
    "ngram": "runs of words",
    "windowed_ngram": "runs of words in windows",
    "span": "spans",
    "with_replacement": "single pieces, drawn with replacement",
    "similar_word": "words, replaced by similar ones",
    "ordering": "an order of prediction",
    "diffusion": "another share of each example",
}
PRECISIONS = {"auto": "the faster one here"}
DECAYS = {"linear": "down to zero", "stable": "constant, then down", "none": "constant"}


class Part(BaseModel):
    """A part of ``config.json``."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


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


class TokenizerSettings(Part):
    """A vocabulary learned from the training documents, or one that exists."""

    kind: Annotated[Literal["wordpiece", "byte_bpe", "unigram"] | None, labelled("Algorithm")] = (
        None
    )
    """The algorithm that learns the vocabulary; empty = the family's."""
    vocabulary: Annotated[int, Field(ge=64, le=250_000), labelled("Vocabulary", first=True)] = 6000
    """Most pieces to learn, special pieces included."""
    lowercase: Annotated[bool | None, labelled("Lower case")] = None
    """Whether text is lower-cased (and accents removed) before it is cut; empty = as the family's
    released vocabularies. A byte_bpe vocabulary keeps the text as it is."""
    folder: str | None = None
    """Folder of an existing tokenizer; the three values above are then not used."""


class DataSettings(Part):
    """Documents and how they become examples."""

    texts: Annotated[list[str], labelled("What it reads", first=True)] = []
    """Files or patterns (.txt, .csv, .tsv, .jsonl, .parquet), looked up beside config.json, then in
    the project's assets."""
    dataset: str | None = None
    """Name of a `datasets` data set, instead of ``texts``; needs network."""
    configuration: str | None = None
    """Its configuration, where it has several."""
    split: str = "train"
    """Its split."""
    column: str | None = None
    """Column with the text, where there are columns; null = "text", or the only one."""
    paragraphs: bool | None = None
    """Whether a line, or a cell, is a paragraph that is split into sentences here; null = cells
    are, lines of .txt are sentences."""
    held_out: Annotated[float, Field(ge=0.0, le=0.5), labelled("Held out")] = 0.05
    """Share of the documents kept for validation. The choice depends on their number
    and the seed only, so a second phase over the same texts keeps the same ones out."""
    training_only: Annotated[list[str], labelled("Read, and nothing of it held out")] = []
    """More text files or patterns, of which nothing is held out."""
    held_out_texts: list[str] = []
    """More text files or patterns, of which everything is held out."""
    chinese_words: Annotated[bool, labelled("Chinese words")] = False
    """Whether characters of one Chinese word belong together when whole words, n-grams or spans are
    hidden; needs the library jieba. false = every character is a word."""
    format: Annotated[FormatName | None, labelled("Examples", names=FORMATS)] = None
    """How documents become examples; empty = as the objectives need it, else full_sentences."""
    max_length: Annotated[int, Field(ge=8, le=4096), labelled("Longest example", first=True)] = 128
    """Longest example in tokens, [CLS] and [SEP] included."""
    short_probability: Share = 0.1
    """Share of documents cut into pairs of a random shorter length (BERT: 0.1)."""
    random_for_lone: bool = False
    """sentence_order only: whether a lone sentence is paired with another document's text, called
    swapped, as in ALBERT's released code; false = left out, as topic gives such pairs away."""
    order_sentences: Annotated[int, Field(ge=1, le=100)] | None = None
    """sentence_order only: both parts of a pair have the same number of sentences, from 1 to this,
    so that their lengths do not tell the order; null = chunks that fill the length (ALBERT)."""
    duplicates: Annotated[int, Field(ge=1, le=1000)] = 10
    """How many times the documents are cut into examples, where the cuts are drawn (BERT: 10)."""
    singles: Share = 0.0
    """Share of documents cut into single segments of a few sentences, without pair label."""
    bucketing: Annotated[int, Field(ge=1, le=1000)] = 16
    """Batches whose examples are sorted by length together, to save padding; 1 = no sorting."""
    reuse: Annotated[int, Field(ge=0, le=4096)] | None = None
    """recurrent only: tokens of a segment that come from the stream, and may be remembered; the
    others belong to the second text. null = half of max_length."""
    memory: Annotated[int, Field(ge=0, le=4096)] | None = None
    """recurrent only: tokens of earlier segments that the model sees; 0 = none. null = three
    quarters of max_length (XLNet)."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.texts) == (self.dataset is not None):
            raise ValueError("give either data.texts or data.dataset, not both and not neither")
        return self


class MaskingSettings(Part):
    """How tokens are chosen for prediction."""

    kind: Annotated[MaskingKind | None, labelled("Chosen are", names=MASKINGS)] = None
    """Single pieces, whole words, n-grams (ALBERT; windowed: DeBERTa), spans (SpanBERT), draws
    with replacement (ELECTRA), similar words (MacBERT), an order of prediction (XLNet) or another
    share of each example (masked diffusion)."""
    rate: Annotated[Annotated[float, Field(gt=0.0, lt=1.0)] | None, labelled("Share predicted")] = (
        None
    )
    """Share of an example's tokens that is predicted."""
    last_rate: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """The share at the last step, towards which it moves from ``rate`` by the same amount each
    step (arXiv 2202.08005 asks for more than 15 % hidden; mmBERT, arXiv 2509.06888, lets it fall).
    Held-out text is measured with it. null = as ``rate``."""
    split: Annotated[list[Share], Field(min_length=3, max_length=3)] | None = None
    """Shares of the chosen that become [MASK], a random piece, or stay as they are."""
    longest: Annotated[
        Annotated[int, Field(ge=1, le=20)] | None, labelled("Longest run (words)")
    ] = None
    """Longest n-gram or span, in words."""
    dynamic: Annotated[bool | None, labelled("Drawn anew each time")] = None
    """Drawn afresh at each visit (RoBERTa), or once for each example (BERT)."""
    counting: Literal["bert", "fairseq"] = "bert"
    """``round(rate * n)``, at least 1, or ``int(rate * n + u)`` with a random u in 0..1
    (RoBERTa's code; uniform and whole_word only)."""
    ordering: Literal["released", "paper"] = "released"
    """ordering only: spans in an order drawn inside blocks, or one permutation of the whole."""

    leftward: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """masked_next_token only: share of the examples that are read from left to right, every piece
    told from those before it; null = 1/16 (GPT-BERT)."""

    @model_validator(mode="after")
    def _split_sums_to_one(self) -> Self:
        if self.split is not None and abs(sum(self.split) - 1.0) > 1e-6:
            raise ValueError(f"masking.split must sum to 1, not to {sum(self.split):g}")
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
    betas: Annotated[list[Rate], Field(min_length=2, max_length=2)] = [0.9, 0.999]
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


class Checkpoints(Part):
    """When a run is saved."""

    every: Annotated[Count | None, labelled("Saved every (steps)", none="after each epoch")] = None
    """Steps between checkpoints from which the run can resume; empty = after each epoch."""
    keep: Annotated[Count, labelled("How many are kept")] = 1
    """How many of them are kept."""
    snapshots: Annotated[bool, labelled("Keep snapshots")] = False
    """Whether the model alone is also kept at steps 1, 2, 4, 8, ... (to look back later)."""


class CheckpointSettings(Checkpoints):
    """The same for a pretraining, whose epochs may be long."""

    every: Annotated[Count, labelled("Saved every (steps)")] = 500
    """Steps between checkpoints from which the run can resume."""
    keep: Annotated[Count, labelled("How many are kept")] = 2
    """How many of them are kept."""


class Named(Part):
    """What every file says, be it of a run or of a race."""

    name: Annotated[str, labelled("Name", first=True)] = ""
    """What people call it."""
    description: str = ""
    """What it is for."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """CPU threads; null = one for each core this process may use."""


class RunSettings(Named):
    """What every ``config.json`` says, whatever is trained."""

    tracker: TrackerName | None = None
    """Where reports go beside the run's folder."""

    if TYPE_CHECKING:  # each kind has its own place in the form, and its own default, for these
        precision: str
        report_every: int | None
        validate_every: int | None
        checkpoints: Checkpoints


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

    @model_validator(mode="after")
    def _agreement(self) -> Self:
        if self.schedule.warmup >= self.steps:
            raise ValueError(
                f"schedule.warmup ({self.schedule.warmup}) must be below steps ({self.steps})"
            )
        tokens = self.steps * self.batch_size * self.data.max_length
        if tokens > MOST_TOKENS:
            raise ValueError(
                f"steps ({self.steps}), batch_size ({self.batch_size}) and data.max_length "
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
