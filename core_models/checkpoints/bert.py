"""BERT's files: BertModel, BertForMaskedLM, BertForPreTraining, BertLMHeadModel."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core_models.checkpoints.fields import Fields, names, shape_of, their_activation, unwritable
from core_models.checkpoints.table import Format, Row, Scores, counter, tied, twin
from core_models.checkpoints.tasks import POOLED, TaskFiles
from core_models.config import Attention, Config, Embeddings, FeedForward
from core_models.families.bert import BERT_BASE

LAYER_ROWS = (
    Row("attention.self.query.*", "attention.query.*"),
    Row("attention.self.key.*", "attention.key.*"),
    Row("attention.self.value.*", "attention.value.*"),
    Row("attention.output.dense.*", "attention.output.*"),
    Row("attention.output.LayerNorm.*", "attention_norm.*"),
    Row("intermediate.dense.*", "feed_forward.up.*"),
    Row("output.dense.*", "feed_forward.down.*"),
    Row("output.LayerNorm.*", "feed_forward_norm.*"),
)
"""Names inside one block, shared by every family that keeps BERT's block."""


def block_rows(theirs: str, ours: str = "encoder.blocks.{n}.") -> tuple[Row, ...]:
    """:data:`LAYER_ROWS` under the two prefixes."""
    return tuple(Row(theirs + r.theirs, ours + r.ours, r.transform) for r in LAYER_ROWS)


def embedding_rows(theirs: str) -> tuple[Row, ...]:
    """The input tables under their prefix, e.g. ``bert.embeddings.``."""
    return (
        Row(theirs + "word_embeddings.weight", "encoder.embeddings.pieces.weight"),
        Row(theirs + "position_embeddings.weight", "encoder.embeddings.positions.weight"),
        Row(theirs + "token_type_embeddings.weight", "encoder.embeddings.segments.weight"),
        Row(theirs + "LayerNorm.*", "encoder.embeddings.norm.*"),
    )


def read_config(values: Mapping[str, Any]) -> Config:
    """BertConfig's fields; absent ones take BertConfig's defaults."""
    fields = Fields(values)
    width, heads = fields.width_and_heads(768, 12)
    fields.fixed("position_embedding_type", "absolute")
    decoder = fields.boolean("is_decoder", False)
    vocabulary, pad_id = fields.pieces(30522, 0)
    return replace(
        BERT_BASE,
        width=width,
        embeddings=Embeddings(
            vocabulary=vocabulary,
            pad_id=pad_id,
            width=width,
            positions=fields.integer("max_position_embeddings", 1, 1_000_000, 512),
            segments=fields.integer("type_vocab_size", 1, 64, 2),
        ),
        attention=Attention(
            heads=heads,
            head_width=width // heads,
            dropout=fields.number("attention_probs_dropout_prob", 0, 1, 0.1),
            direction="left" if decoder else "both",
        ),
        feed_forward=FeedForward(
            width=fields.integer("intermediate_size", 1, 65_536, 3072),
            activation=fields.activation("hidden_act"),
        ),
        schedule=fields.schedule(12),
        norm_epsilon=fields.number("layer_norm_eps", 0, 1, 1e-12),
        dropout=fields.number("hidden_dropout_prob", 0, 1, 0.1),
        initial_std=fields.number("initializer_range", 0, 10, 0.02),
        masked_token_style=fields.scores(),
    )


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_config`."""
    parts = config.embeddings
    if parts.positions is None:
        raise unwritable("embeddings.positions", None, config.family, "a number of rows")
    if parts.segments == 0:
        raise unwritable("embeddings.segments", 0, config.family, "1 to 64")
    return {
        **shape_of(config),
        "hidden_act": their_activation(config.feed_forward.activation),
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention.dropout,
        "max_position_embeddings": config.embeddings.positions,
        "type_vocab_size": config.embeddings.segments,
        "initializer_range": config.initial_std,
        "layer_norm_eps": config.norm_epsilon,
    } | ({"is_decoder": True} if config.attention.direction == "left" else {})


FIELDS = names(
    """
    attention_probs_dropout_prob classifier_dropout hidden_act hidden_dropout_prob hidden_size
    initializer_range intermediate_size layer_norm_eps max_position_embeddings num_attention_heads
    num_hidden_layers position_embedding_type type_vocab_size
    """
)
"""Fields of config.json that BERT's class, and those made after it, share."""
SUMMARY = names("summary_activation summary_last_dropout summary_type summary_use_proj")
"""Fields of some classes' classification heads."""

FORMAT = Format(
    model_type="bert",
    architectures={
        ("masked_token", "next_sentence"): "BertForPreTraining",
        ("masked_token",): "BertForMaskedLM",
        ("next_sentence",): "BertForNextSentencePrediction",
        (): "BertModel",
    },
    rows=(
        *embedding_rows("bert.embeddings."),
        *block_rows("bert.encoder.layer.{n}."),
        Row("cls.predictions.transform.dense.*", "heads.masked_token.dense.*"),
        Row("cls.predictions.transform.LayerNorm.*", "heads.masked_token.norm.*"),
        Row("cls.predictions.bias", "heads.masked_token.decoder.bias"),
        Row("bert.pooler.dense.*", "heads.next_sentence.pooler.dense.*"),
        Row("cls.seq_relationship.*", "heads.next_sentence.classifier.*"),
    ),
    ignored=(
        tied("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        twin("cls.predictions.decoder.bias", "cls.predictions.bias"),
        counter("bert.embeddings.position_ids"),
    ),
    read_config=read_config,
    write_config=write_config,
    tasks=TaskFiles(
        stem="Bert", dense="bert.pooler.dense.*", classifier="classifier.*", style=POOLED
    ),
    scores=Scores("cls.predictions.decoder.*", "cls.predictions.bias"),
    causal="BertLMHeadModel",
    fields=FIELDS,
    alone=("bert.pooler.dense.*",),
    prefix="bert.",
)
