"""DeBERTa's files: DebertaModel, DebertaForMaskedLM.

Released files hold two things that transformers skips: the trained masked-token head
(``lm_predictions``, read by transformers only under ``legacy`` false) and the position table of the
mask decoder. What transformers itself saves has no such table, so the tensors decide whether the
model has a mask decoder. The head that transformers adds by default (``cls``) starts at random; it
is taken for a trained one where config.json says that the model is one for masked tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from core_models.checkpoints import bert
from core_models.checkpoints.fields import (
    Fields,
    names,
    shape_of,
    their_activation,
    untied,
    unwritable,
)
from core_models.checkpoints.table import Format, Ignored, Packed, Row, Scores, counter
from core_models.checkpoints.tasks import POOLED, TaskFiles
from core_models.config import Config, Disentangled, FeedForward, MaskDecoder, Plain
from core_models.errors import InputError
from core_models.families.deberta import DEBERTA_BASE

DECODER = "deberta.embeddings.position_embeddings.weight"
"""Their name of the mask decoder's position table."""

_STEPS = "cloze_mask_decoder_steps"
"""A field of ours in config.json; released files have none and mean two steps."""

_DEFAULTS = {
    "relative_attention": False,
    "position_biased_input": True,
    "pos_att_type": None,
}
"""Fields whose default in transformers is not what any released DeBERTa has."""


_KINDS: tuple[list[str], ...] = ([], ["c2p"], ["p2c"], ["c2p", "p2c"])


class _Interleaved:
    """[3 H d, D], where each head's queries, keys and values follow each other, to three parts."""

    def split(self, theirs: Tensor, config: Config) -> Sequence[Tensor]:
        heads, width = config.attention.heads, config.attention.head_width
        expected = (3 * heads * width, config.width)
        if theirs.shape != expected:
            raise InputError(
                f"An in_proj.weight has shape {list(theirs.shape)}; "
                f"config.json asks for {list(expected)}."
            )
        parts = theirs.view(heads, 3, width, -1).unbind(1)  # [H, 3, d, D]
        return [part.reshape(heads * width, -1) for part in parts]

    def join(self, parts: Sequence[Tensor], config: Config) -> Tensor:
        heads, width = config.attention.heads, config.attention.head_width
        stacked = torch.stack([part.reshape(heads, width, -1) for part in parts], 1)
        return stacked.flatten(0, 2)


def read_body(values: Mapping[str, Any], base: Config) -> Config:
    """The fields that all versions share; ``terms`` is left to the caller.

    Args:
        values: config.json; absent fields take ``base``'s value.
        base: the family's base config.
    """
    fields = Fields({**_DEFAULTS, **values})
    width, heads = fields.width_and_heads(base.width, base.attention.heads)
    _check_supported(fields, width, width // heads)
    table = fields.integer("embedding_size", 1, 16_384, width)
    positions = None
    if fields.boolean("position_biased_input", True):
        positions = fields.integer("max_position_embeddings", 1, 1_000_000, 512)
    vocabulary, pad_id = fields.pieces(base.embeddings.vocabulary, 0)
    decoder = None
    if _STEPS in values:
        if positions is not None:
            raise InputError(
                f"config.json: {_STEPS} needs position_biased_input false: the one table of "
                "positions is the mask decoder's or the input's."
            )
        decoder = MaskDecoder(
            steps=fields.integer(_STEPS, 1, 64),
            positions=fields.integer("max_position_embeddings", 1, 1_000_000, 512),
        )
    return replace(
        base,
        width=width,
        embeddings=replace(
            base.embeddings,
            vocabulary=vocabulary,
            pad_id=pad_id,
            width=table,
            positions=positions,
            segments=fields.integer("type_vocab_size", 0, 64, 0),
        ),
        attention=replace(
            base.attention,
            heads=heads,
            head_width=width // heads,
            dropout=fields.number("attention_probs_dropout_prob", 0, 1, 0.1),
        ),
        feed_forward=FeedForward(
            width=fields.integer("intermediate_size", 1, 65_536, base.feed_forward.width),
            activation=fields.activation("hidden_act"),
        ),
        schedule=fields.schedule(base.steps),
        norm_epsilon=fields.number("layer_norm_eps", 0, 1, 1e-7),
        dropout=fields.number("hidden_dropout_prob", 0, 1, 0.1),
        initial_std=fields.number("initializer_range", 0, 10, 0.02),
        # the newer class scores with the piece table whatever the field says
        masked_token_style="tied" if fields.values.get("legacy") is False else fields.scores(),
        mask_decoder=decoder,
    )


def _check_supported(fields: Fields, width: int, head_width: int) -> None:
    for key, expected in (
        ("talking_head", False),
        ("attention_head_size", head_width),
        ("pooler_hidden_size", width),
    ):
        fields.fixed(key, expected)


def read_kinds(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the relative terms; none where attention is plain.

    Raises:
        InputError: other terms, one of them twice, or terms without relative attention and the
            other way round: each would change what scores are divided by.
    """
    fields = Fields({**_DEFAULTS, **values})
    written = fields.values["pos_att_type"]
    text = isinstance(written, str)
    names = [n.strip() for n in written.lower().split("|")] if text else written or []
    if not isinstance(names, list) or sorted(map(str, names)) not in _KINDS:
        raise InputError(
            f"config.json: pos_att_type is {written!r}; supported are c2p|p2c, c2p and p2c, or "
            "null without relative_attention."
        )
    relative = fields.boolean("relative_attention", False)
    if relative != bool(names):
        raise InputError(
            f"config.json: relative_attention is {relative} and pos_att_type {written!r}; either "
            "both say that there are relative terms, or neither does."
        )
    return tuple(sorted(names))


def read_span(fields: Fields) -> int:
    """Largest relative distance."""
    span = fields.integer("max_relative_positions", -1, 1_000_000, -1)
    return span if span > 0 else fields.integer("max_position_embeddings", 1, 1_000_000, 512)


def write_body(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_body` and :func:`read_span`."""
    terms, decoder, parts = config.attention.terms, config.mask_decoder, config.embeddings
    if not isinstance(terms, Disentangled | Plain):
        raise unwritable("attention.terms.kind", terms.kind, config.family, Disentangled.kind)
    relative = isinstance(terms, Disentangled)
    span = terms.span if isinstance(terms, Disentangled) else -1
    positions = decoder.positions if decoder else parts.positions
    return {
        **shape_of(config),
        "hidden_act": their_activation(config.feed_forward.activation),
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention.dropout,
        "max_position_embeddings": positions or abs(span) if relative else positions or 512,
        "max_relative_positions": span,
        "type_vocab_size": config.embeddings.segments,
        "initializer_range": config.initial_std,
        "layer_norm_eps": config.norm_epsilon,
        "relative_attention": relative,
        "position_biased_input": parts.positions is not None,
        "pos_att_type": list(reversed(terms.kinds)) if isinstance(terms, Disentangled) else None,
        "legacy": needs_older(config),
        **({} if parts.width == config.width else {"embedding_size": parts.width}),
        **({_STEPS: decoder.steps} if decoder else {}),
    }


def needs_older(config: Config) -> bool:
    """Whether the head can only be one of transformers' default class (``legacy``).

    The released one scores with the piece table and its width, whatever the config says.
    """
    return untied(config) or config.embeddings.width != config.width


def settle(config: Config, tensors: Mapping[str, Tensor]) -> Config:
    """A mask decoder where the file holds its table, and the input has none."""
    known = config.mask_decoder is not None or config.embeddings.positions is not None
    if known or DECODER not in tensors:
        return config
    return replace(config, mask_decoder=MaskDecoder(positions=tensors[DECODER].shape[0]))


def read_config(values: Mapping[str, Any]) -> Config:
    """DebertaConfig's fields; absent ones take the values of the released base."""
    config = read_body(values, DEBERTA_BASE)
    kinds = read_kinds(values)
    terms = Disentangled(kinds=kinds, span=read_span(Fields(values))) if kinds else Plain()
    return replace(config, attention=replace(config.attention, terms=terms))


BODY_ROWS = (
    Row("deberta.embeddings.word_embeddings.weight", "encoder.embeddings.pieces.weight"),
    Row("deberta.embeddings.token_type_embeddings.weight", "encoder.embeddings.segments.weight"),
    Row("deberta.embeddings.LayerNorm.*", "encoder.embeddings.norm.*"),
    Row("deberta.embeddings.embed_proj.weight", "encoder.embeddings.projection.weight"),
    Row("deberta.encoder.rel_embeddings.weight", "encoder.table.relative.weight"),
    Row("lm_predictions.lm_head.dense.*", "heads.masked_token.dense.*"),
    Row("lm_predictions.lm_head.LayerNorm.*", "heads.masked_token.norm.*"),
    Row("lm_predictions.lm_head.bias", "heads.masked_token.decoder.bias"),
)
"""Names outside the blocks that all versions share."""


def position_rows(config: Config) -> tuple[Row, ...]:
    """The one table of absolute positions, which is the input's or the mask decoder's."""
    biased = config.embeddings.positions is not None
    return (Row(DECODER, f"encoder.{'embeddings.positions' if biased else 'mask_decoder'}.weight"),)


SCORES = Scores("cls.predictions.decoder.*", "cls.predictions.bias")
_REASON = "transformers adds this head at random unless legacy is false"
OLDER_ROWS = (
    Row("cls.predictions.transform.dense.*", "heads.masked_token.dense.*"),
    Row("cls.predictions.transform.LayerNorm.*", "heads.masked_token.norm.*"),
    Row("cls.predictions.bias", "heads.masked_token.decoder.bias"),
)
"""The head of transformers' default class (``legacy``), which a model that was trained with it has
in place of the released one."""


def tasks(stem: str) -> TaskFiles:
    """Names of fine-tuned models."""
    return TaskFiles(
        stem=stem,
        dense="pooler.dense.*",
        classifier="classifier.*",
        style=replace(POOLED, activation="gelu"),
        text_dropout=("cls_dropout", None),
        tag_dropout=(None, None),
        activation_field="pooler_hidden_act",
        fixed={"pooler_dropout": 0},
    )


IGNORED = (
    Ignored("cls.predictions.transform.dense.*", _REASON, kept=True),
    Ignored("cls.predictions.transform.LayerNorm.*", _REASON, kept=True),
    Ignored("cls.predictions.decoder.*", "tied with the piece table, and the same bias twice"),
    Ignored("cls.predictions.bias", _REASON, kept=True),
    counter("deberta.embeddings.position_ids"),
)


def block_rows(attention: Mapping[str, str]) -> tuple[Row, ...]:
    """Names inside a block.

    Args:
        attention: their name inside ``attention.self`` -> ours inside ``attention``.
    """
    theirs, ours = "deberta.encoder.layer.{n}.", "encoder.blocks.{n}."
    rest = {
        "attention.output.dense.*": "attention.output.*",
        "attention.output.LayerNorm.*": "attention_norm.*",
        "intermediate.dense.*": "feed_forward.up.*",
        "output.dense.*": "feed_forward.down.*",
        "output.LayerNorm.*": "feed_forward_norm.*",
    }
    return tuple(
        Row(f"{theirs}attention.self.{a}", f"{ours}attention.{b}") for a, b in attention.items()
    ) + tuple(Row(theirs + a, ours + b) for a, b in rest.items())


_PACKED = Packed(
    "deberta.encoder.layer.{n}.attention.self.in_proj.weight",
    tuple(f"encoder.blocks.{{n}}.attention.{part}.weight" for part in ("query", "key", "value")),
    _Interleaved(),
)

FIELDS = bert.FIELDS | names(
    """
    attention_head_size cls_dropout embedding_size legacy max_relative_positions pooler_dropout
    pooler_hidden_act pooler_hidden_size pos_att_type position_biased_input relative_attention
    talking_head
    """
)
"""Fields of config.json that all versions share."""

FORMAT = Format(
    model_type="deberta",
    architectures={("masked_token",): "DebertaForMaskedLM", (): "DebertaModel"},
    rows=(
        *BODY_ROWS,
        *_PACKED.rows,
        *block_rows(
            {
                "q_bias": "query.bias",
                "v_bias": "value.bias",
                "pos_proj.weight": "terms.position_key.weight",
                "pos_q_proj.*": "terms.position_query.*",
            }
        ),
    ),
    packed=(_PACKED,),
    ignored=IGNORED,
    tasks=tasks("Deberta"),
    read_config=read_config,
    write_config=write_body,
    settle=settle,
    fields=FIELDS,
    older=OLDER_ROWS,
    needs_older=needs_older,
    scores=SCORES,
    more_rows=position_rows,
    prefix="deberta.",
)
