"""The parts of a config: what an encoder is made of, as values."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """The sum at the input: pieces, and where the family has them positions and segments."""

    vocabulary: int
    """Rows of the piece table, V."""
    width: int
    """Width E of the tables. Where it differs from width D a projection E -> D follows."""
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
    square_projection: bool = False
    """Whether there is a projection where E equals D, too (ALBERT)."""
    projected_first: bool = False
    """Whether the projection, where there is one, has no bias and comes before the norm, which is
    at width D then (DeBERTa)."""
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
    kinds: tuple[str, ...] = ("c2p", "p2c")
    """Which of the two there are."""
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
    key_heads: int | None = None
    """Heads of keys and of values, G, each shared by a group of H / G heads of queries (arXiv
    2305.13245); None = one for each."""
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

    @property
    def group(self) -> int:
        """Heads of queries that share keys and values."""
        return 1 if self.key_heads is None else self.heads // self.key_heads

    def with_heads(self, heads: int, head_width: int) -> Self:
        """The same with other heads, in groups of the same size where that divides them."""
        shared = self.group > 1 and heads % self.group == 0
        keys = heads // self.group if shared else None
        return replace(self, heads=heads, head_width=head_width, key_heads=keys)


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
    """One of ``check.MASKINGS``; what each does is said in :mod:`core_models.masking.tokens`."""
    rate: float = 0.15
    """Share of tokens chosen."""
    split: tuple[float, float, float] = (0.8, 0.1, 0.1)
    """Shares of the chosen that become the mask token, a random piece, or stay."""
    longest: int = 1
    """Longest n-gram or span, in words."""
    dynamic: bool = False
    """Drawn afresh at each visit, instead of once when the data are written."""
