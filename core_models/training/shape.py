"""Configs of fresh models: a published size with its overrides."""

from dataclasses import replace

from core_models.config import Config, Disentangled
from core_models.errors import InputError
from core_models.families import size
from core_models.training.schema import ModelOverrides, Settings


def build_config(settings: Settings, vocabulary: int, pad_id: int) -> Config:
    """The config of a fresh model: a size with its overrides, over a vocabulary.

    Raises:
        InputError: the size is unknown, or the overrides do not fit together.
    """
    assert settings.model.size is not None
    wanted = settings.model.overrides
    config = _resized(size(settings.model.size), wanted)
    if "causal" in (settings.objectives or config.objectives):
        config = replace(config, attention=replace(config.attention, direction="left"))
    config = config.with_vocabulary(vocabulary, pad_id=pad_id)
    return _reaching(config, wanted.positions, settings.data.max_length)


def _resized(config: Config, wanted: ModelOverrides) -> Config:
    """Another depth and width; what is not asked for keeps its proportion to the width."""
    parts, old = config.embeddings, config.width
    width = wanted.width or old
    heads = wanted.heads
    if heads is None:
        per_head = config.attention.head_width
        heads = width // per_head if width % per_head == 0 else config.attention.heads
    if width % heads:
        fitting = heads if wanted.heads else config.attention.head_width
        raise InputError(
            f"model.overrides.width: {width} is not divisible by {heads} heads; choose a multiple "
            f"of {fitting}, or another number of heads."
        )
    embedding = wanted.embedding_width or (width if parts.width == old else parts.width)
    if embedding != width and config.query_stream:
        raise InputError(
            f"model.overrides.embedding_width: {config.family} needs tables as wide as the model "
            f"({width}), not {embedding}."
        )
    inner = config.feed_forward.width * width // old
    if config.feed_forward.gated and inner > 8:
        inner -= inner % 8  # what gated networks have in every released file, and some must have
    return replace(
        config,
        width=width,
        embeddings=replace(parts, width=embedding),
        attention=config.attention.with_heads(heads, width // heads),
        feed_forward=replace(config.feed_forward, width=wanted.inner or inner),
        schedule=_schedule(config, wanted.layers),
    )


def _schedule(config: Config, layers: int | None) -> tuple[int, ...]:
    """As many steps as asked for, over as many blocks as the size has where it repeats them."""
    if layers is None:
        return config.schedule
    if config.blocks == config.steps:
        return tuple(range(layers))
    blocks = min(config.blocks, layers)
    return tuple(step * blocks // layers for step in range(layers))


_UNTOLD = 512
"""Tokens that a model with rotary positions takes at least, as one without any table does."""


def _reaching(config: Config, positions: int | None, max_length: int) -> Config:
    """Tables of positions for the longest input; relative ones hold no more than can occur."""
    parts, terms, rotary = config.embeddings, config.attention.terms, config.attention.rotary
    if positions is not None and parts.positions is not None:
        parts = replace(parts, positions=positions + parts.first_position)
    if rotary is not None:
        rotary = replace(rotary, positions=positions or max(max_length, _UNTOLD))
    decoder = config.mask_decoder
    if isinstance(terms, Disentangled):
        reach = positions or min(terms.span, max_length)
        buckets = terms.buckets and max(2, min(terms.buckets, reach // 2 // 2 * 2))
        terms = replace(terms, span=reach, buckets=buckets)
        if decoder is not None:
            decoder = replace(decoder, positions=positions or min(decoder.positions, max_length))
    return replace(
        config,
        embeddings=parts,
        attention=replace(config.attention, terms=terms, rotary=rotary),
        mask_decoder=decoder,
    )
