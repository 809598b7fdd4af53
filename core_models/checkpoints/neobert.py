"""NeoBERT's files: NeoBERT, NeoBERTLMHead and NeoBERTForSequenceClassification.

transformers has none of these classes: the authors' Python files stand beside the weights, and are
not run here. In the files

* queries, keys and values are one tensor, head by head: the rows of head 0 are its queries, its
  keys, its values, then come those of head 1;
* neighbours ``2n`` and ``2n + 1`` of a head are turned together, as the paper of rotary positions
  has it; ours turns ``n`` and ``n + d/2``, so rows of queries and keys change their places;
* ``intermediate_size`` is the width of a network without a gate: two thirds of it, rounded up to a
  multiple of 8, are the inner width.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from core_models.checkpoints.fields import Fields, names, rotary_of, shape_of, unwritable
from core_models.checkpoints.table import Format, Packed, Row, Stacked
from core_models.checkpoints.tasks import POOLED, TaskFiles
from core_models.config import Config, Rotary
from core_models.errors import InputError
from core_models.families.neobert import NEOBERT


class _ByHeads:
    """[H 3 d, D], head by head, to queries, keys and values [H d, D]."""

    def split(self, theirs: Tensor, config: Config) -> Sequence[Tensor]:
        heads, width = config.attention.heads, config.attention.head_width
        if theirs.dim() == 0 or theirs.shape[0] != 3 * heads * width:
            raise InputError(
                f"A tensor of queries, keys and values has shape {list(theirs.shape)}; its first "
                f"size must be {3 * heads * width}."
            )
        q, k, v = theirs.unflatten(0, (heads, 3, width)).unbind(1)  # each [H, d, D]
        halves = [x.unflatten(1, (width // 2, 2)).transpose(1, 2).flatten(1, 2) for x in (q, k)]
        return [x.flatten(0, 1) for x in (*halves, v)]

    def join(self, parts: Sequence[Tensor], config: Config) -> Tensor:
        heads, width = config.attention.heads, config.attention.head_width
        q, k, v = (part.unflatten(0, (heads, width)) for part in parts)
        pairs = [x.unflatten(1, (2, width // 2)).transpose(1, 2).flatten(1, 2) for x in (q, k)]
        return torch.stack([*pairs, v], 1).flatten(0, 2)


def read_config(values: Mapping[str, Any]) -> Config:
    """NeoBERTConfig's fields; absent ones take the released file's values."""
    fields = Fields(values)
    width, heads = fields.width_and_heads(NEOBERT.width, NEOBERT.attention.heads)
    released = {"rope": True, "rms_norm": True, "ngpt": False, "tie_word_embeddings": False}
    for key, only in released.items():
        fields.fixed(key, only)
    if str(values.get("hidden_act", "swiglu")).lower() != "swiglu":
        raise InputError(
            f"config.json: hidden_act is {values['hidden_act']!r}; only 'SwiGLU' is supported."
        )
    inner = int(2 * fields.integer("intermediate_size", 1, 65_536, 3072) / 3)
    positions = fields.integer("max_length", 1, 1_000_000, 4_096)
    vocabulary, pad_id = fields.pieces(NEOBERT.embeddings.vocabulary, 0)
    return replace(
        NEOBERT,
        width=width,
        embeddings=replace(
            NEOBERT.embeddings,
            vocabulary=vocabulary,
            pad_id=pad_id,
            width=width,
        ),
        attention=replace(
            NEOBERT.attention,
            heads=heads,
            head_width=width // heads,
            rotary=Rotary(theta=10_000.0, local_theta=10_000.0, positions=positions),
        ),
        feed_forward=replace(NEOBERT.feed_forward, width=8 * max(1, -(-inner // 8))),
        schedule=fields.schedule(NEOBERT.steps),
        norm_epsilon=fields.number("norm_eps", 0, 1, 1e-5),
        dropout=fields.number("dropout", 0, 1, 0.0),
        initial_std=fields.number("decoder_init_range", 0, 10, 0.02),
    )


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_config`; values that it has no field for are found out later."""
    rotary = rotary_of(config)
    if config.feed_forward.width % 8:
        inner = config.feed_forward.width
        raise unwritable("feed_forward.width", inner, config.family, "a multiple of 8")
    return {
        **shape_of(config),
        "dim_head": config.attention.head_width,
        "intermediate_size": config.feed_forward.width * 3 // 2,
        "dropout": config.dropout,
        "max_length": rotary.positions,
        "norm_eps": config.norm_epsilon,
        "embedding_init_range": config.initial_std,
        "decoder_init_range": config.initial_std,
        "tie_word_embeddings": False,
    }


_THEIRS, _OURS = "model.transformer_encoder.{n}.", "encoder.blocks.{n}."
_QKV = Packed(
    _THEIRS + "qkv.*",
    tuple(f"{_OURS}attention.{part}.*" for part in ("query", "key", "value")),
    _ByHeads(),
)
_INNER = Packed(
    _THEIRS + "ffn.w12.*",
    (_OURS + "feed_forward.up.*", _OURS + "feed_forward.gate.*"),
    Stacked(2),
)

FORMAT = Format(
    model_type="neobert",
    architectures={("masked_token",): "NeoBERTLMHead", (): "NeoBERT"},
    rows=(
        Row("model.encoder.weight", "encoder.embeddings.pieces.weight"),
        *_QKV.rows,
        Row(_THEIRS + "wo.*", _OURS + "attention.output.*"),
        Row(_THEIRS + "attention_norm.*", _OURS + "attention_norm.*"),
        *_INNER.rows,
        Row(_THEIRS + "ffn.w3.*", _OURS + "feed_forward.down.*"),
        Row(_THEIRS + "ffn_norm.*", _OURS + "feed_forward_norm.*"),
        Row("model.layer_norm.*", "encoder.final_norm.*"),
        Row("decoder.*", "heads.masked_token.scores.*"),
    ),
    packed=(_QKV, _INNER),
    ignored=(),
    read_config=read_config,
    write_config=write_config,
    tasks=TaskFiles(
        stem="NeoBERT",
        dense="dense.*",
        classifier="classifier.*",
        style=replace(POOLED, dropout_before=True),
        text_dropout=("classifier_dropout", 0.1),
        tag_dropout=(None, None),
        tagging=None,
        answering=None,
    ),
    fields=names(
        """
        base_scale classifier_dropout classifier_init_range decoder_init_range dim_head dropout
        embedding_init_range flash_attention hidden_act hidden_size intermediate_size kwargs
        max_length max_position_embeddings ngpt norm_eps num_attention_heads num_hidden_layers
        pretrained_model_name_or_path rms_norm rope trust_remote_code
        """
    ),
    prefix="model.",
    brought_code=True,
    in_transformers=False,
)
