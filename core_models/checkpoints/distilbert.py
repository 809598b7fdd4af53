"""DistilBERT's files: DistilBertModel, DistilBertForMaskedLM and the fine-tuned classes.

The block is BERT's under other names. Norms have an epsilon of 1e-12 that no field tells, and
there is no pooler: a text is classified from its first token by a dense layer and relu. Before
answers (``qa_outputs``) their class drops out, in training alone, what ours does not.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core_models.checkpoints.fields import (
    Fields,
    by_one_name,
    names,
    their_activation,
    untied,
    unwritable,
)
from core_models.checkpoints.table import Format, Row, Scores, counter, tied
from core_models.checkpoints.tasks import TaskFiles
from core_models.config import Attention, Config, Embeddings, FeedForward
from core_models.config.task import Task
from core_models.families.distilbert import DISTILBERT_BASE

_OTHERS = {"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
"""Names of other classes, which DistilBertConfig takes for its own."""


def read_config(values: Mapping[str, Any]) -> Config:
    """DistilBertConfig's fields; absent ones take DistilBertConfig's defaults."""
    fields = Fields(by_one_name(values, _OTHERS))
    width, heads = fields.width_and_heads(768, 12, ("dim", "n_heads"))
    fields.fixed("tie_weights_", True)
    vocabulary, pad_id = fields.pieces(30522, 0)
    return replace(
        DISTILBERT_BASE,
        width=width,
        embeddings=Embeddings(
            vocabulary=vocabulary,
            pad_id=pad_id,
            width=width,
            positions=fields.integer("max_position_embeddings", 1, 1_000_000, 512),
            segments=0,
        ),
        attention=Attention(
            heads=heads,
            head_width=width // heads,
            dropout=fields.number("attention_dropout", 0, 1, 0.1),
        ),
        feed_forward=FeedForward(
            width=fields.integer("hidden_dim", 1, 65_536, 3072),
            activation=fields.activation("activation"),
        ),
        schedule=fields.schedule(6, "n_layers"),
        dropout=fields.number("dropout", 0, 1, 0.1),
        initial_std=fields.number("initializer_range", 0, 10, 0.02),
        masked_token_style=fields.scores(),
    )


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_config`; values that it has no field for are found out later."""
    parts = config.embeddings
    if parts.positions is None:
        raise unwritable("embeddings.positions", None, config.family, "a number of rows")
    return {
        "vocab_size": parts.vocabulary,
        "dim": config.width,
        "n_layers": config.steps,
        "n_heads": config.attention.heads,
        "hidden_dim": config.feed_forward.width,
        "activation": their_activation(config.feed_forward.activation),
        "dropout": config.dropout,
        "attention_dropout": config.attention.dropout,
        "max_position_embeddings": parts.positions,
        "initializer_range": config.initial_std,
        "pad_token_id": parts.pad_id,
        "tie_word_embeddings": not untied(config),
    }


_THEIRS, _OURS = "distilbert.transformer.layer.{n}.", "encoder.blocks.{n}."
_BLOCK = {
    "attention.q_lin.*": "attention.query.*",
    "attention.k_lin.*": "attention.key.*",
    "attention.v_lin.*": "attention.value.*",
    "attention.out_lin.*": "attention.output.*",
    "sa_layer_norm.*": "attention_norm.*",
    "ffn.lin1.*": "feed_forward.up.*",
    "ffn.lin2.*": "feed_forward.down.*",
    "output_layer_norm.*": "feed_forward_norm.*",
}
_TABLES = "distilbert.embeddings."

FORMAT = Format(
    model_type="distilbert",
    architectures={("masked_token",): "DistilBertForMaskedLM", (): "DistilBertModel"},
    rows=(
        Row(_TABLES + "word_embeddings.weight", "encoder.embeddings.pieces.weight"),
        Row(_TABLES + "position_embeddings.weight", "encoder.embeddings.positions.weight"),
        Row(_TABLES + "LayerNorm.*", "encoder.embeddings.norm.*"),
        *(Row(_THEIRS + theirs, _OURS + ours) for theirs, ours in _BLOCK.items()),
        Row("vocab_transform.*", "heads.masked_token.dense.*"),
        Row("vocab_layer_norm.*", "heads.masked_token.norm.*"),
        Row("vocab_projector.bias", "heads.masked_token.decoder.bias"),
    ),
    ignored=(
        tied("vocab_projector.weight", _TABLES + "word_embeddings.weight"),
        counter(_TABLES + "position_ids"),
    ),
    read_config=read_config,
    write_config=write_config,
    tasks=TaskFiles(
        stem="DistilBert",
        dense="pre_classifier.*",
        classifier="classifier.*",
        style=Task(head="regress", activation="relu"),
        text_dropout=("seq_classif_dropout", 0.2),
        tag_dropout=(None, None),
    ),
    scores=Scores("vocab_projector.*"),
    fields=names(
        """
        activation attention_dropout dim dropout hidden_dim initializer_range
        max_position_embeddings n_heads n_layers qa_dropout seq_classif_dropout sinusoidal_pos_embds
        tie_weights_
        """
    ).union(_OTHERS),
    prefix="distilbert.",
)
