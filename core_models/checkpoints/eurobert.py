"""EuroBERT's files: EuroBertModel, EuroBertForMaskedLM and the fine-tuned classes.

Names are Llama's: of the two inner layers ``gate_proj`` goes through the activation and ``up_proj``
is multiplied in. transformers has no class that finds answers, so such a model is saved as its
encoder with the layer beside it. Rates of dropout are zero in every released file;
``hidden_dropout`` stands in them, and their class reads it not.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core_models.checkpoints.fields import Fields, names, rotary_of, shape_of, their_activation
from core_models.checkpoints.table import Format, Row
from core_models.checkpoints.tasks import TaskFiles
from core_models.config import Attention, Config, Embeddings, FeedForward, Rotary
from core_models.config.task import Task
from core_models.errors import InputError
from core_models.families.eurobert import EUROBERT_210M

_DEFAULT_THETA = 10_000.0


def read_config(values: Mapping[str, Any]) -> Config:
    """EuroBertConfig's fields; absent ones take EuroBertConfig's defaults."""
    fields = Fields(values)
    base = EUROBERT_210M
    width, heads = fields.width_and_heads(base.width, base.attention.heads)
    key_heads = _optional(fields, "num_key_value_heads", heads)
    if heads % key_heads:
        raise InputError(
            f"config.json: num_attention_heads {heads} is not a multiple of num_key_value_heads "
            f"{key_heads}."
        )
    for key, only in (("tie_word_embeddings", False), ("mlp_bias", False)):
        fields.fixed(key, only)
    bias = fields.boolean("attention_bias", False)
    vocabulary, pad_id = fields.pieces(base.embeddings.vocabulary, base.embeddings.pad_id)
    return replace(
        base,
        width=width,
        embeddings=Embeddings(
            vocabulary=vocabulary,
            pad_id=pad_id,
            width=width,
            positions=None,
            segments=0,
            normed=False,
        ),
        attention=Attention(
            heads=heads,
            head_width=_optional(fields, "head_dim", width // heads),
            key_heads=key_heads,
            query_bias=bias,
            key_bias=bias,
            value_bias=bias,
            output_bias=bias,
            dropout=fields.number("attention_dropout", 0, 1, 0.0),
            rotary=_read_rotary(fields),
        ),
        feed_forward=FeedForward(
            width=fields.integer("intermediate_size", 1, 65_536, base.feed_forward.width),
            activation=fields.activation("hidden_act") if "hidden_act" in values else "silu",
            gated=True,
            bias=False,
        ),
        schedule=fields.schedule(base.steps),
        norm_epsilon=fields.number("rms_norm_eps", 0, 1, 1e-5),
        dropout=fields.number("hidden_dropout", 0, 1, 0.0),
        initial_std=fields.number("initializer_range", 0, 10, 0.02),
    )


def _optional(fields: Fields, key: str, default: int) -> int:
    """A number that may be null."""
    absent = fields.values.get(key) is None
    return default if absent else fields.integer(key, 1, 16_384)


def _read_rotary(fields: Fields) -> Rotary:
    """How fast queries and keys turn, in the fields of transformers 5 or of 4."""
    written = fields.values.get("rope_parameters")
    theta = fields.theta(written, "rope_parameters", "rope_theta", _DEFAULT_THETA)
    positions = fields.integer("max_position_embeddings", 1, 1_000_000, 8_192)
    return Rotary(theta=theta, local_theta=theta, positions=positions)


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_config`; values that it has no field for are found out later."""
    attention, rotary = config.attention, rotary_of(config)
    return {
        **shape_of(config),
        "num_key_value_heads": attention.heads // attention.group,
        "head_dim": attention.head_width,
        "hidden_act": their_activation(config.feed_forward.activation),
        "hidden_dropout": config.dropout,
        "attention_dropout": attention.dropout,
        "attention_bias": attention.query_bias,
        "mlp_bias": False,
        "max_position_embeddings": rotary.positions,
        "rope_parameters": {"rope_type": "default", "rope_theta": rotary.theta},
        "rms_norm_eps": config.norm_epsilon,
        "initializer_range": config.initial_std,
        "tie_word_embeddings": False,
    }


_THEIRS, _OURS = "model.layers.{n}.", "encoder.blocks.{n}."
_BLOCK = {
    "self_attn.q_proj.*": "attention.query.*",
    "self_attn.k_proj.*": "attention.key.*",
    "self_attn.v_proj.*": "attention.value.*",
    "self_attn.o_proj.*": "attention.output.*",
    "input_layernorm.*": "attention_norm.*",
    "mlp.gate_proj.*": "feed_forward.up.*",
    "mlp.up_proj.*": "feed_forward.gate.*",
    "mlp.down_proj.*": "feed_forward.down.*",
    "post_attention_layernorm.*": "feed_forward_norm.*",
}

FORMAT = Format(
    model_type="eurobert",
    architectures={("masked_token",): "EuroBertForMaskedLM", (): "EuroBertModel"},
    rows=(
        Row("model.embed_tokens.weight", "encoder.embeddings.pieces.weight"),
        *(Row(_THEIRS + theirs, _OURS + ours) for theirs, ours in _BLOCK.items()),
        Row("model.norm.*", "encoder.final_norm.*"),
        Row("lm_head.*", "heads.masked_token.scores.*"),
    ),
    ignored=(),
    read_config=read_config,
    write_config=write_config,
    tasks=TaskFiles(
        stem="EuroBert",
        dense="dense.*",
        classifier="classifier.*",
        style=Task(head="regress", activation="gelu"),
        text_dropout=(None, None),
        tag_dropout=(None, None),
        answering=None,
        pooling_fields=("classifier_pooling", "clf_pooling"),
        poolings={"late": "late", "bos": "token", "mean": "mean"},
    ),
    fields=names(
        """
        attention_bias attention_dropout classifier_pooling clf_pooling head_dim hidden_act
        hidden_dropout hidden_size initializer_range intermediate_size mask_token mask_token_id
        max_position_embeddings mlp_bias num_attention_heads num_hidden_layers num_key_value_heads
        pretraining_tp rms_norm_eps rope_parameters rope_scaling rope_theta
        """
    ),
    prefix="model.",
    brought_code=True,
)
