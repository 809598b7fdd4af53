"""ALBERT's files: AlbertModel, AlbertForMaskedLM, AlbertForPreTraining.

Their layers stand in ``num_hidden_groups`` groups of ``inner_group_num`` layers. Group g serves the
steps i with int(i / (steps / groups)) = g, and one step runs all its inner layers in turn. Inner
layer j of group g is our block ``g * inner + j``; the order in which blocks run is the schedule.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core_models.checkpoints import bert
from core_models.checkpoints.fields import Fields, names
from core_models.checkpoints.table import Format, Row, Scores, counter, tied, twin
from core_models.checkpoints.tasks import POOLED, TaskFiles
from core_models.config import Config
from core_models.errors import InputError
from core_models.families.albert import ALBERT_BASE

_DEFAULTS = {
    "vocab_size": 30000,
    "hidden_size": 4096,
    "num_attention_heads": 64,
    "intermediate_size": 16384,
    "hidden_act": "gelu_new",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
"""Where AlbertConfig's defaults are not BertConfig's."""

_LAYER_ROWS = (
    Row("attention.query.*", "attention.query.*"),
    Row("attention.key.*", "attention.key.*"),
    Row("attention.value.*", "attention.value.*"),
    Row("attention.dense.*", "attention.output.*"),
    Row("attention.LayerNorm.*", "attention_norm.*"),
    Row("ffn.*", "feed_forward.up.*"),
    Row("ffn_output.*", "feed_forward.down.*"),
    Row("full_layer_layer_norm.*", "feed_forward_norm.*"),
)


def schedule_of(layers: int, groups: int, inner: int) -> tuple[int, ...]:
    """Which block runs at each step."""
    return tuple(
        int(i / (layers / groups)) * inner + j for i in range(layers) for j in range(inner)
    )


def layers_of(config: Config) -> tuple[int, int, int]:
    """The inverse of :func:`schedule_of`: layers, groups and inner layers.

    Raises:
        InputError: no such grouping gives the config's schedule.
    """
    for inner in range(1, config.blocks + 1):
        if config.blocks % inner == 0 and config.steps % inner == 0:
            found = config.steps // inner, config.blocks // inner, inner
            if schedule_of(*found) == config.schedule:
                return found
    raise InputError(
        f"The schedule {config.schedule} is not made of groups of layers, so it cannot be written "
        "in this format."
    )


def block_rows(config: Config) -> tuple[Row, ...]:
    """Names of every block's tensors."""
    _, _, inner = layers_of(config)
    return tuple(
        Row(
            f"albert.encoder.albert_layer_groups.{n // inner}.albert_layers.{n % inner}."
            + row.theirs,
            f"encoder.blocks.{n}." + row.ours,
        )
        for n in range(config.blocks)
        for row in _LAYER_ROWS
    )


def read_config(values: Mapping[str, Any]) -> Config:
    """AlbertConfig's fields; absent ones take AlbertConfig's defaults."""
    fields = Fields(values)
    fields.fixed("is_decoder", False)
    config = bert.read_config({**_DEFAULTS, **values})
    layers = fields.integer("num_hidden_layers", 1, 512, 12)
    groups = fields.integer("num_hidden_groups", 1, layers, 1)
    inner = fields.integer("inner_group_num", 1, 512, 1)
    if inner > 1 and groups == layers:  # the same schedule as inner 1, under other names
        raise InputError(
            f"config.json: inner_group_num is {inner} although each of the {layers} layers has a "
            f"group of its own; expected inner_group_num 1 with {layers * inner} layers and groups."
        )
    width = fields.integer("embedding_size", 1, 16_384, 128)
    return replace(
        config,
        family=ALBERT_BASE.family,
        embeddings=replace(
            config.embeddings,
            width=width,
            square_projection=ALBERT_BASE.embeddings.square_projection,
        ),
        schedule=schedule_of(layers, groups, inner),
        objectives=ALBERT_BASE.objectives,
        masking=ALBERT_BASE.masking,
    )


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_config`."""
    layers, groups, inner = layers_of(config)
    return bert.write_config(config) | {
        "embedding_size": config.embeddings.width,
        "num_hidden_layers": layers,
        "num_hidden_groups": groups,
        "inner_group_num": inner,
    }


_FIELDS = bert.FIELDS | names(
    "classifier_dropout_prob embedding_size inner_group_num num_hidden_groups"
)

FORMAT = Format(
    model_type="albert",
    architectures={
        ("masked_token", "sentence_order"): "AlbertForPreTraining",
        ("masked_token",): "AlbertForMaskedLM",
        (): "AlbertModel",
    },
    rows=(
        *bert.embedding_rows("albert.embeddings."),
        Row("albert.encoder.embedding_hidden_mapping_in.*", "encoder.embeddings.projection.*"),
        Row("predictions.dense.*", "heads.masked_token.dense.*"),
        Row("predictions.LayerNorm.*", "heads.masked_token.norm.*"),
        Row("predictions.bias", "heads.masked_token.decoder.bias"),
        Row("albert.pooler.*", "heads.sentence_order.pooler.dense.*"),
        Row("sop_classifier.classifier.*", "heads.sentence_order.classifier.*"),
    ),
    more_rows=block_rows,
    ignored=(
        tied("predictions.decoder.weight", "albert.embeddings.word_embeddings.weight"),
        twin("predictions.decoder.bias", "predictions.bias"),
        counter("albert.embeddings.position_ids"),
    ),
    read_config=read_config,
    write_config=write_config,
    tasks=TaskFiles(
        stem="Albert",
        dense="albert.pooler.*",
        classifier="classifier.*",
        style=POOLED,
        text_dropout=("classifier_dropout_prob", 0.1),
        tag_dropout=("classifier_dropout_prob", 0.1),
    ),
    scores=Scores("predictions.decoder.*", "predictions.bias"),
    alone=("albert.pooler.*",),
    fields=_FIELDS,
    prefix="albert.",
)
