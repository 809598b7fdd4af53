"""What the values of a config may be, and which of them agree with which."""

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

from core_models.errors import InputError

if TYPE_CHECKING:
    from core_models.config import Config, Convolution, Disentangled, TransformerXL

ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "silu", "tanh")
DIRECTIONS = ("both", "left")
DISENTANGLED = (("c2p", "p2c"), ("c2p",), ("p2c",))
"""Which terms disentangled attention may have."""
KINDS = ("global", "local")
NORM_PLACES = ("after", "before")
NORM_KINDS = ("layer", "rms")
MASKINGS = (
    "none",
    "uniform",
    "whole_word",
    "ngram",
    "windowed_ngram",
    "span",
    "with_replacement",
    "similar",
    "permutation",
)
OBJECTIVES = (
    "masked_token",
    "causal",
    "next_sentence",
    "sentence_order",
    "replaced_token",
    "span_boundary",
    "permutation",
)
"""Pretraining objectives by the head that each trains (the keys of ``heads.HEADS``)."""
MASKED_TOKEN_STYLES = ("tied", "untied", "linear")
REPLACED_TOKEN_STYLES = ("token", "token_and_first")
MOST_PIECES = 2_000_000
"""Most rows of a piece table."""
MOST_POSITIONS = 1_000_000
"""Most rows of a table of positions, and the largest relative distance."""
LARGEST_KERNEL = 1_023

_Range = tuple[str, float, float, float]


def check(config: "Config") -> None:
    """Check ranges, names and the agreements between parts.

    Raises:
        InputError: a value is outside what is allowed, or two values do not fit together.
    """
    check_ranges(config)
    for name, found, allowed in _names(config):
        if found not in allowed:
            listed = ", ".join("null" if option is None else option for option in allowed)
            raise InputError(f"{name} is {found!r}; allowed are {listed}.")
    if len(set(config.objectives)) < len(config.objectives):
        raise InputError(
            f"objectives is {list(config.objectives)}; each may be named once. Leave out the "
            "repeated ones."
        )
    if set(config.schedule) != set(range(config.blocks)):
        raise InputError(
            f"schedule {config.schedule} must use every block from 0 to its highest number."
        )
    if config.convolution is not None:
        _check_kernel(config.convolution)
    terms = config.attention.terms
    if terms.kind == "transformer_xl" and config.width % 2:
        raise InputError(
            f"width is {config.width}; the sine waves of relative positions need an even one "
            "(half of it for sines, half for cosines)."
        )
    if terms.kind == "disentangled":
        kinds = cast("Disentangled", terms).kinds
        if kinds not in DISENTANGLED:
            raise InputError(
                f"attention.terms.kinds is {list(kinds)}; allowed are c2p and p2c, c2p alone, and "
                "p2c alone."
            )
    _check_direction(config)
    _check_layers(config)


def check_ranges(config: "Config") -> None:
    """The part of :func:`check` that is about numbers."""
    for name, value, low, high in (*_ranges(config), *_ranges_of_parts(config)):
        if not _is_number(value) or not low <= value <= high:  # NaN is outside, too
            raise InputError(f"{name} is {value}; allowed is {low} to {high}.")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _ranges(config: "Config") -> Iterator[_Range]:
    e, a, f = config.embeddings, config.attention, config.feed_forward
    rows = MOST_POSITIONS if e.positions is None else e.positions
    yield "embeddings.vocabulary", e.vocabulary, 1, MOST_PIECES
    yield "embeddings.width", e.width, 1, 16_384
    if e.positions is not None:
        yield "embeddings.positions", e.positions, 1, MOST_POSITIONS
    yield "embeddings.first_position", e.first_position, 0, rows - 1
    yield "embeddings.segments", e.segments, 0, 64
    if isinstance(e.vocabulary, int):  # else it has been refused
        yield "embeddings.pad_id", e.pad_id, 0, e.vocabulary - 1
    yield "width", config.width, 1, 16_384
    yield "attention.heads", a.heads, 1, 256
    yield "attention.head_width", a.head_width, 1, 4_096
    if a.key_heads is not None:
        yield "attention.key_heads", a.key_heads, 1, a.heads
    yield "attention.dropout", a.dropout, 0, 1
    yield "feed_forward.width", f.width, 1, 65_536
    yield "schedule", len(config.schedule), 1, 512
    yield "norm_epsilon", config.norm_epsilon, 0, 1
    yield "dropout", config.dropout, 0, 1
    yield "initial_std", config.initial_std, 0, 10
    yield "the number of layer_kinds", len(config.layer_kinds), 1, 512


def _ranges_of_parts(config: "Config") -> Iterator[_Range]:
    terms, decoder, masking = config.attention.terms, config.mask_decoder, config.masking
    if terms.kind == "disentangled":
        relative = cast("Disentangled", terms)
        yield "attention.terms.span", relative.span, 1, MOST_POSITIONS
        if relative.buckets is not None:
            yield "attention.terms.buckets", relative.buckets, 2, MOST_POSITIONS
    if terms.kind == "transformer_xl":
        clamp = cast("TransformerXL", terms).clamp
        yield "attention.terms.clamp", 0 if clamp is None else clamp, 0, MOST_POSITIONS
    window, rotary = config.attention.window, config.attention.rotary
    if window is not None:
        yield "attention.window", window, 1, MOST_POSITIONS
    if rotary is not None:
        yield "attention.rotary.theta", rotary.theta, 1, 1e12
        yield "attention.rotary.local_theta", rotary.local_theta, 1, 1e12
        yield "attention.rotary.positions", rotary.positions, 1, MOST_POSITIONS
    if decoder is not None:
        yield "mask_decoder.steps", decoder.steps, 1, 64
        yield "mask_decoder.positions", decoder.positions, 1, MOST_POSITIONS
    yield "masking.rate", masking.rate, 0, 1
    yield "masking.longest", masking.longest, 1, 1_000
    yield "the sum of masking.split", sum(masking.split), 0, 1 + 1e-9
    for number, share in enumerate(masking.split):
        yield f"masking.split.{number}", share, 0, 1


def _names(config: "Config") -> Iterator[tuple[str, Any, Sequence[str | None]]]:
    terms = config.attention.terms
    yield "head_activation", config.head_activation, (None, *ACTIVATIONS)
    yield "masking.kind", config.masking.kind, MASKINGS
    yield "feed_forward.activation", config.feed_forward.activation, ACTIVATIONS
    if config.convolution is not None:
        yield "convolution.activation", config.convolution.activation, ACTIVATIONS
    yield "masked_token_style", config.masked_token_style, MASKED_TOKEN_STYLES
    yield "replaced_token_style", config.replaced_token_style, REPLACED_TOKEN_STYLES
    for name in config.objectives:
        yield "objectives", name, OBJECTIVES
    yield "attention.direction", config.attention.direction, DIRECTIONS
    yield "norm_place", config.norm_place, NORM_PLACES
    yield "norm_kind", config.norm_kind, NORM_KINDS
    for name in config.layer_kinds:
        yield "layer_kinds", name, KINDS
    if terms.kind == "transformer_xl":
        direction = cast("TransformerXL", terms).direction
        yield "attention.terms.direction", direction, DIRECTIONS


def _check_kernel(convolution: "Convolution") -> None:
    kernel = convolution.kernel
    if not 1 <= kernel <= LARGEST_KERNEL or kernel % 2 == 0:  # an even one would change the length
        raise InputError(
            f"convolution.kernel is {kernel}; allowed is an odd number from 1 to {LARGEST_KERNEL}."
        )


def _check_direction(config: "Config") -> None:
    terms = config.attention.terms
    if config.attention.direction == "left" and terms.kind != "plain":
        raise InputError(f"attention.direction left needs plain terms, not {terms.kind}.")
    if config.left_to_right and (config.convolution or config.mask_decoder):
        raise InputError(
            "A model that reads from left to right has neither convolution nor mask_decoder: "
            "both look to the right."
        )


def _check_layers(config: "Config") -> None:
    attention = config.attention
    if "local" in config.layer_kinds and attention.window is None:
        raise InputError("layer_kinds has local layers; attention.window must say what they see.")
    if attention.key_heads and attention.heads % attention.key_heads:
        raise InputError(
            f"attention.key_heads is {attention.key_heads}, which does not divide the "
            f"{attention.heads} heads of queries into groups."
        )
    if attention.rotary is not None and attention.head_width % 2:
        raise InputError(
            f"attention.head_width is {attention.head_width}; rotary positions turn pairs of "
            "values, so it must be even."
        )
    if config.norm_kind == "rms" and config.norm_bias:
        raise InputError("norm_kind rms has no bias; norm_bias must be false.")
    modern = {
        "attention.rotary": attention.rotary is not None,
        "attention.key_heads": attention.group > 1,
        "layer_kinds local": "local" in config.layer_kinds,
        "norm_place before": config.norm_place == "before",
    }
    parts = {
        f"attention.terms {attention.terms.kind}": attention.terms.kind != "plain",
        "convolution": config.convolution is not None,
        "mask_decoder": config.mask_decoder is not None,
        "query_stream": config.query_stream,
    }
    for name, wanted in modern.items():
        for other, there in parts.items():
            if wanted and there:
                raise InputError(
                    f"{name} does not go together with {other}; leave out one of them."
                )
