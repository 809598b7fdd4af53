"""What one sequence costs, from the config's values.

A multiply-add counts as two operations. Matrix products and convolutions count; sums, norms,
activations, softmax and table look-ups do not (together below 2 % in any published size). Letters:
L tokens, D width, E width of the tables, I = H d the heads' width together, F inner width, V
vocabulary, and per step of the schedule

    projections    4 L D (I + I / g)       queries and output; keys and values, which g heads
                                           share (1 in most families)
    attention      4 L^2 I                 scores and weighted values; where layers are local
                                           4 P I, P pairs of tokens within a window
    feed-forward   4 L D F                 6 L D F where it is gated

and where a family has them

    projection     2 L E D                 from the tables' width, once
    relative       2 L (2 L - 1) I         per term, every query with every distance;
                                           XLNet has one, and 4 L I for segments; DeBERTa mostly two
    relative rows  2 T D I                 per term: T rows of the relative table, projected. Kept
                                           from pass to pass at inference, one per batch in training
    convolution    2 L k D^2               k = kernel, once
    mask decoder   4 L D I for keys and values, and per run of the last layer the rest of a step
    heads          2 L in out              per linear layer, for every token; a pooler and what
                                           reads it 2 in out

A backward pass takes two products for each product of the forward pass, so a training step costs
three times as much. XLNet's query stream is left out: it costs per target what a token costs,
without keys and values.
"""

from dataclasses import asdict, dataclass, field
from numbers import Integral
from typing import Any

from torch import nn

from core_models.config import Config, Disentangled, Plain, check_ours
from core_models.errors import InputError
from core_models.families import FAMILIES
from core_models.heads.pretraining import build_head
from core_models.network.embeddings import Embeddings
from core_models.network.initialise import without_values


@dataclass(frozen=True)
class Flops:
    """Floating-point operations of one sequence, by part."""

    length: int
    """Tokens of the sequence, L."""
    projection: int
    attention_projections: int
    attention: int
    feed_forward: int
    relative: int
    """Relative terms of the scores."""
    relative_rows: int
    """Projecting the relative table, once per batch."""
    convolution: int
    mask_decoder: int
    heads: dict[str, int] = field(default_factory=dict)
    """Each pretraining head, applied to every token, or once where it reads the pooled [CLS]."""

    @property
    def encoder(self) -> int:
        """One sequence through the encoder, with relative rows, without mask decoder and heads."""
        steps = self.attention_projections + self.attention + self.feed_forward + self.relative
        return self.projection + steps + self.relative_rows + self.convolution

    @property
    def forward(self) -> int:
        """The encoder, the mask decoder and every pretraining head."""
        return self.encoder + self.mask_decoder + sum(self.heads.values())

    @property
    def training(self) -> int:
        """Forward and backward pass."""
        return 3 * self.forward

    @property
    def per_token(self) -> float:
        """:attr:`encoder` for each token."""
        return self.encoder / self.length

    def to_json(self) -> dict[str, Any]:
        """Parts and sums as plain values."""
        sums = ("encoder", "forward", "training", "per_token")
        return asdict(self) | {name: getattr(self, name) for name in sums}


def flops(config: Config, length: int, name: str = "") -> Flops:
    """Operations of one sequence of ``length`` tokens.

    DeBERTa's encoder takes any length. Beyond the positions of its mask decoder (512) only
    :attr:`Flops.encoder` tells what can be run; the decoder is counted as if it went on.

    Args:
        config: of a model.
        length: tokens.
        name: what an error calls the model; by itself its family.

    Raises:
        InputError: the encoder does not take as many tokens, or less than one was asked for.
    """
    check_ours(config)
    e = config.embeddings
    longest = None if e.positions is None else e.positions - e.first_position
    counts = isinstance(length, Integral) and not isinstance(length, bool)
    if not counts or length < 1 or (longest is not None and length > longest):
        called = name or f"this {FAMILIES[config.family].title}"
        most = "1 token or more" if longest is None else f"1 to {longest} tokens"
        raise InputError(f"length is {repr(length)[:40]}; {called} takes {most}.")
    step = _step(config, length)
    pairs = sum(_pairs(config, kind, length) for kind in config.kinds)
    whole = {name: config.steps * n for name, n in step.items()}
    whole["attention"] = 4 * pairs * _inner(config)
    keys_and_values = 4 * length * config.width * _inner(config) // config.attention.group
    decoder = 0
    if config.mask_decoder:
        relative_rows = step["relative_rows"]
        again = sum(step.values()) - keys_and_values - relative_rows
        decoder = keys_and_values + relative_rows + config.mask_decoder.steps * again
    kernel = config.convolution.kernel if config.convolution else 0
    return Flops(
        length=length,
        projection=2 * length * e.width * config.width if config.projected else 0,
        convolution=2 * length * kernel * config.width**2,
        mask_decoder=decoder,
        heads=_heads(config, length),
        **whole,
    )


def _inner(config: Config) -> int:
    return config.attention.heads * config.attention.head_width


def _pairs(config: Config, kind: str, length: int) -> int:
    """Pairs of a query and a key that it sees in a step of a kind."""
    window = config.attention.window
    if kind == "global" or window is None or window >= length:
        return length**2
    return length * (2 * window + 1) - window * (window + 1)


def _step(config: Config, length: int) -> dict[str, int]:
    """One global step's share of each part."""
    width, inner, terms = config.width, _inner(config), config.attention.terms
    products, segments = 0, 0
    rows = 2 * length - 1
    if isinstance(terms, Disentangled):
        products = len(terms.kinds)
        table = 2 * (terms.buckets or terms.span)
        exact = terms.buckets // 2 if terms.buckets else terms.span - 1
        rows = rows if length - 1 <= exact else table
    elif not isinstance(terms, Plain):
        products, segments = 1, 4 * length * inner if terms.segments else 0
    return {
        "attention_projections": 4 * length * width * (inner + inner // config.attention.group),
        "attention": 4 * length**2 * inner,
        "feed_forward": (6 if config.feed_forward.gated else 4)
        * length
        * width
        * config.feed_forward.width,
        "relative": products * 2 * length * (2 * length - 1) * inner + segments,
        "relative_rows": products * 2 * rows * width * inner,
    }


def _heads(config: Config, length: int) -> dict[str, int]:
    with without_values():
        embeddings = Embeddings(config)
        heads = {name: build_head(name, config, embeddings) for name in config.objectives}
    rows = {name: 1 if hasattr(head, "pooler") else length for name, head in heads.items()}
    return {name: rows[name] * _per_row(head) for name, head in heads.items()}


def _per_row(head: nn.Module) -> int:
    linear = [part for part in head.modules() if isinstance(part, nn.Linear)]
    return sum(2 * part.in_features * part.out_features for part in linear)
