"""What a model is, as a frozen tree of values.

Every family in scope is one encoder with named differences, so a model is described by one
:class:`Config` and nothing else. Parts that are more than a value (the score terms) are classes of
their own; the rest are numbers. Families spell their difference from BERT with
:func:`dataclasses.replace` (see :mod:`core_models.families`), which lets :func:`diff` compute the
"how does it differ" table from the very values that build the model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from core_models.config_check import check, check_ranges
from core_models.config_json import from_json, leaves, to_json
from core_models.config_task import Task
from core_models.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """The sum at the input: pieces, and where the family has them positions and segments."""

    vocabulary: int
    """Rows of the piece table, V."""
    width: int
    """Width E of the tables; a projection E -> D exists exactly where E differs from width D."""
    positions: int | None = 512
    """Rows of the learned absolute-position table added at the input; None = no such table."""
    first_position: int = 0
    """Row of the first token. Above 0 (RoBERTa: 2) rows are counted over real tokens only and
    padding takes row ``first_position - 1``."""
    segments: int = 2
    """Rows of the segment table; 0 = no table."""
    pad_id: int = 0
    """Piece id of padding; its row starts at zero and gets no gradient from the input side."""
    normed: bool = True
    """Whether a LayerNorm follows the sum (at width E)."""
    blank_padding: bool = False
    """Whether the rows of padding are set to zero after the norm (DeBERTa)."""


@dataclass(frozen=True, kw_only=True)
class Plain:
    """No extra score terms: ``softmax(q.k / sqrt(d))`` (arXiv 1706.03762, section 3.2.1)."""

    kind: ClassVar[str] = "plain"


@dataclass(frozen=True, kw_only=True)
class Disentangled:
    """DeBERTa's ``c2p`` and ``p2c`` terms (arXiv 2006.03654, section 3.1)."""

    kind: ClassVar[str] = "disentangled"
    span: int = 512
    """Largest relative distance, k; without buckets the relative table has 2k rows."""
    buckets: int | None = None
    """Log-spaced buckets per direction (v2, v3); the relative table then has 2 * buckets rows."""
    shared_projections: bool = False
    """Whether relative positions reuse the content's query and key projections (v2, v3)."""
    position_key_bias: bool = False
    """Whether an own projection of relative keys has a bias (v2 without shared projections)."""
    normed: bool = False
    """Whether a LayerNorm is applied to the relative table (v2, v3)."""


@dataclass(frozen=True, kw_only=True)
class TransformerXL:
    """XLNet's ``position`` and ``segment`` terms (arXiv 1906.08237, section 2.4; 1901.02860)."""

    kind: ClassVar[str] = "transformer_xl"
    clamp: int | None = None
    """Distances beyond this are treated as this; None = unlimited."""
    direction: str = "both"
    """``both``: all distances; ``left``: only earlier tokens (``attn_type`` "uni")."""
    segments: bool = True
    """Whether the relative segment term exists."""


def _repeated(kinds: Sequence[str]) -> tuple[str, ...]:
    """The shortest list that gives ``kinds`` when it begins anew at its end."""
    return next(
        tuple(kinds[:size])
        for size in range(1, len(kinds) + 1)
        if all(kind == kinds[n % size] for n, kind in enumerate(kinds))
    )


Terms = Plain | Disentangled | TransformerXL


@dataclass(frozen=True, kw_only=True)
class Rotary:
    """Queries and keys turned by angles that grow with the position (arXiv 2104.09864).

    So a score depends on the distance of two tokens. No table of positions is learned.
    """

    theta: float = 10_000.0
    """Base of the wavelengths in global layers: the slowest pair of values turns once in nearly
    ``2 pi theta`` tokens."""
    local_theta: float = 10_000.0
    """The same in local layers."""
    positions: int = 8_192
    """Most tokens that the model was trained on; longer inputs are computed all the same."""


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Multi-head attention."""

    heads: int
    """Number of heads, H."""
    head_width: int
    """Width d of one head."""
    query_bias: bool = True
    key_bias: bool = True
    value_bias: bool = True
    output_bias: bool = True
    dropout: float = 0.1
    """Dropout on the attention probabilities, in 0..1."""
    direction: str = "both"
    """``both``, or ``left``: plain attention to each token and those before it (causal)."""
    terms: Terms = field(default_factory=Plain)
    """Named summands of the score beside the content score."""
    rotary: Rotary | None = None
    """How queries and keys are turned before they meet, or None."""
    window: int | None = None
    """How many tokens on each side local layers see; None = there are no local layers."""


@dataclass(frozen=True, kw_only=True)
class FeedForward:
    """The position-wise two-layer network, ``down(activation(up(x)))``.

    Gated it is ``down(activation(up(x)) * gate(x))``: GeGLU with gelu, SwiGLU with silu (arXiv
    2002.05202).
    """

    width: int
    """Inner width, F."""
    activation: str = "gelu"
    """``gelu`` (erf form), ``gelu_tanh``, ``relu``, ``silu`` or ``tanh``."""
    inner_dropout: bool = False
    """Whether dropout is also applied between the two layers (XLNet)."""
    gated: bool = False
    """Whether a third layer's output is multiplied in."""
    bias: bool = True


@dataclass(frozen=True, kw_only=True)
class Convolution:
    """DeBERTa-v2's convolution beside the first layer (arXiv 2006.03654, released v2 code)."""

    kernel: int = 3
    activation: str = "gelu"


@dataclass(frozen=True, kw_only=True)
class MaskDecoder:
    """DeBERTa's enhanced mask decoder (arXiv 2006.03654, section 3.2; released code)."""

    steps: int = 2
    """How many times the last layer is applied with the decoder's own queries."""
    positions: int = 512
    """Rows of the absolute-position table that the queries start from."""


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How a family chooses what to predict."""

    kind: str = "uniform"
    """One of ``config_check.MASKINGS``; what each does is said in :mod:`core_models.masking`."""
    rate: float = 0.15
    """Share of tokens chosen."""
    split: tuple[float, float, float] = (0.8, 0.1, 0.1)
    """Shares of the chosen that become the mask token, a random piece, or stay."""
    longest: int = 1
    """Longest n-gram or span, in words."""
    dynamic: bool = False
    """Drawn afresh at each visit, instead of once when the data are written."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """One encoder and what it was pretrained with."""

    family: str
    """Family name, as listed by ``core_models.family_names()``."""
    embeddings: Embeddings
    width: int
    """Hidden width, D."""
    attention: Attention
    feed_forward: FeedForward
    schedule: tuple[int, ...]
    """Block index of each step: BERT is (0, 1, ..., n-1), ALBERT is (0,) * n."""
    layer_kinds: tuple[str, ...] = ("global",)
    """Kind of each step, ``global`` or ``local``; begins anew where there are more steps."""
    norm_place: str = "after"
    """``after`` each sum (post-norm), or ``before`` each branch (pre-norm), with a last norm after
    the last step; where the embeddings are normed already, the first attention has none then."""
    norm_kind: str = "layer"
    """``layer``, or ``rms``: without mean and bias (arXiv 1910.07467)."""
    norm_bias: bool = True
    norm_epsilon: float = 1e-12
    dropout: float = 0.1
    """Dropout on embeddings and on both residual branches, in 0..1."""
    initial_std: float = 0.02
    """Standard deviation of the normal initialisation."""
    initial_by_depth: bool = False
    """Whether layers that end a branch start smaller, by sqrt(2 * steps) (GPT-2)."""
    objectives: tuple[str, ...] = ("masked_token", "next_sentence")
    """Pretraining objectives; each names the head that it trains."""
    masking: Masking = field(default_factory=Masking)
    head_activation: str | None = None
    """Activation of the masked-token head; None = as in the feed-forward network."""
    head_bias: bool = True
    """Whether the dense layer of the masked-token head has a bias."""
    replaced_token_style: str = "token"
    """What the replaced-token head looks at: ``token``, or ``token_and_first`` (DeBERTa v3)."""
    convolution: Convolution | None = None
    """The part beside the first layer, or None."""
    mask_decoder: MaskDecoder | None = None
    """The part that answers for masked tokens, or None."""
    query_stream: bool = False
    """Whether a second stream of queries knows positions but not contents (XLNet)."""
    output_dropout: bool = False
    """Whether dropout follows the last step (XLNet)."""
    task: Task | None = None
    """What the model was fine-tuned for; None = it was not."""

    def __post_init__(self) -> None:
        """Check ranges and the agreements between parts; one model has one config.

        So kinds are the shortest list that gives them, and no window stays that no layer has.
        """
        check(self)
        object.__setattr__(self, "layer_kinds", _repeated(self.kinds))
        if "local" not in self.layer_kinds and self.attention.window is not None:
            object.__setattr__(self, "attention", replace(self.attention, window=None))

    @property
    def steps(self) -> int:
        """Number of passes through a block."""
        return len(self.schedule)

    @property
    def blocks(self) -> int:
        """Number of distinct blocks (sets of layer weights)."""
        return max(self.schedule) + 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kind of every step."""
        return tuple(self.layer_kinds[n % len(self.layer_kinds)] for n in range(self.steps))

    @property
    def left_to_right(self) -> bool:
        """Whether each token sees itself and those before it only."""
        terms = self.attention.terms
        uni = isinstance(terms, TransformerXL) and terms.direction == "left"
        return uni or self.attention.direction == "left"

    def with_vocabulary(self, vocabulary: int, *, pad_id: int | None = None) -> Self:
        """The same model over another vocabulary size.

        Args:
            vocabulary: rows of the piece table.
            pad_id: piece id of padding; None = as before. Where positions count real tokens only,
                their first row follows it, as in the files (RoBERTa: padding is piece 1, the first
                token takes row 2), and the table keeps its room.
        """
        parts = self.embeddings
        pad = parts.pad_id if pad_id is None else pad_id
        if parts.first_position == parts.pad_id + 1:
            positions = parts.positions and parts.positions + pad - parts.pad_id
            parts = replace(parts, first_position=pad + 1, positions=positions)
        return replace(self, embeddings=replace(parts, vocabulary=vocabulary, pad_id=pad))

    def with_dropout(self, rate: float) -> Self:
        """The same model with one rate for every dropout."""
        return replace(
            self,
            dropout=rate,
            attention=replace(self.attention, dropout=rate),
            task=None if self.task is None else replace(self.task, dropout=None),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values that :meth:`from_json` reads back to an equal config."""
        result = to_json(self)
        assert isinstance(result, dict)
        return result

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read :meth:`to_json` output; unknown, missing or ill-typed fields raise InputError."""
        from core_models.families import family  # noqa: PLC0415 - families are made of configs

        result = from_json(cls, values, "config")
        assert isinstance(result, cls)
        family(result.family)
        return result


@dataclass(frozen=True, kw_only=True)
class ForeignConfig(Config):
    """What can be said of another's model in our words.

    Nothing can be built of it or counted by it, and values that its file does not tell are those of
    BERT (:mod:`core_models.foreign`).
    """

    def __post_init__(self) -> None:
        """Check ranges; names may be another's."""
        check_ranges(self)


def check_ours(config: Config) -> None:
    """InputError where a model of another library would have to be built from its config."""
    if isinstance(config, ForeignConfig):
        raise InputError(
            f"A {config.family} is run by transformers: it cannot be built, counted by part or "
            "trained here. Choose a model of one of our own families for that."
        )


@dataclass(frozen=True)
class Difference:
    """One value that two configs do not share; ``left`` or ``right`` is None where it is absent."""

    path: str
    left: Any
    right: Any


def diff(left: Config, right: Config) -> list[Difference]:
    """Every value in which two configs differ, in the order of the tree's fields."""
    a, b = dict(leaves(to_json(left))), dict(leaves(to_json(right)))
    paths = list(dict.fromkeys([*a, *b]))
    return [
        Difference(path, a.get(path), b.get(path))
        for path in paths
        if path != "family" and a.get(path) != b.get(path)
    ]
