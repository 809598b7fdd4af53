"""What a model is, as a frozen tree of values.

Every family in scope is one encoder with named differences, so a model is described by one
:class:`Config` and nothing else. Parts that are more than a value (the score terms) are classes of
their own; the rest are numbers. Families spell their difference from BERT with
:func:`dataclasses.replace` (see :mod:`core_models.families`), which lets :func:`diff` compute the
"how does it differ" table from the very values that build the model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from core_models.config.check import check, check_ranges
from core_models.config.parts import (
    Attention,
    Convolution,
    Disentangled,
    Embeddings,
    FeedForward,
    MaskDecoder,
    Masking,
    Plain,
    Rotary,
    Terms,
    TransformerXL,
)
from core_models.config.task import Task
from core_models.config.values import from_json, leaves, to_json
from core_models.errors import InputError

__all__ = [
    "Attention",
    "Config",
    "Convolution",
    "Difference",
    "Disentangled",
    "Embeddings",
    "FeedForward",
    "ForeignConfig",
    "MaskDecoder",
    "Masking",
    "Plain",
    "Rotary",
    "Terms",
    "TransformerXL",
    "check_ours",
    "diff",
]


def _repeated(kinds: Sequence[str]) -> tuple[str, ...]:
    """The shortest list that gives ``kinds`` when it begins anew at its end."""
    return next(
        tuple(kinds[:size])
        for size in range(1, len(kinds) + 1)
        if all(kind == kinds[n % size] for n, kind in enumerate(kinds))
    )


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
    masked_token_style: str = "tied"
    """What scores pieces: ``tied``, a dense layer, activation, norm and the piece table; or
    ``untied``, the same with a matrix of its own in place of the table; or ``linear``, that matrix
    alone. XLNet's head has neither dense layer nor norm in any style."""
    score_bias: bool = True
    """Whether these scores have a bias for each piece."""
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

        So kinds are the shortest list that gives them, and neither a window that no layer has stays
        nor groups of one. What is said of a projection stays where there is none, so that a copy
        with tables of another width has its family's.
        """
        check(self)
        object.__setattr__(self, "layer_kinds", _repeated(self.kinds))
        attention = self.attention
        if "local" not in self.layer_kinds:
            attention = replace(attention, window=None)
        if attention.group == 1:
            attention = replace(attention, key_heads=None)
        object.__setattr__(self, "attention", attention)

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
    def projected(self) -> bool:
        """Whether a projection leads from the tables to the hidden width."""
        return self.embeddings.width != self.width or self.embeddings.square_projection

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
