"""XLNet's files: XLNetModel, XLNetLMHeadModel.

Projections are [D, H, d] tensors without bias. How long the memory is and which sequences run
backwards are properties of a :class:`~core_models.batch.Batch` here, so the fields ``mem_len``,
``reuse_len``, ``bi_data`` and ``use_mems_*`` are read past.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from core_models.checkpoints import bert
from core_models.checkpoints.fields import (
    Fields,
    by_one_name,
    names,
    their_activation,
    untied,
    unwritable,
)
from core_models.checkpoints.table import Format, Row, Scores, tied
from core_models.checkpoints.tasks import POOLED, TaskFiles
from core_models.config import Config, FeedForward, TransformerXL
from core_models.errors import InputError
from core_models.families.xlnet import XLNET_BASE

_DIRECTIONS = {"bi": "both", "uni": "left"}
_OTHERS = {
    "n_token": "vocab_size",
    "hidden_size": "d_model",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
"""Names of other classes and of an older one, which XLNetConfig takes for its own."""


@dataclass(frozen=True)
class _Projection:
    """[D, H, d] to the weight of a linear layer: [H * d, D], or [D, H * d] for the output."""

    output: bool = False

    def forward(self, theirs: Tensor, config: Config) -> Tensor:
        flat = theirs.flatten(1)
        return flat if self.output else flat.t().contiguous()

    def inverse(self, ours: Tensor, config: Config) -> Tensor:
        flat = ours if self.output else ours.t()
        return flat.reshape(-1, config.attention.heads, config.attention.head_width)


class _Vector:
    """[1, 1, D] to [D]."""

    def forward(self, theirs: Tensor, config: Config) -> Tensor:
        return theirs.flatten()

    def inverse(self, ours: Tensor, config: Config) -> Tensor:
        return ours[None, None]


def read_config(values: Mapping[str, Any]) -> Config:
    """XLNetConfig's fields; absent ones take XLNetConfig's defaults."""
    values = by_one_name(values, _OTHERS)
    fields = Fields(values)
    width, heads = fields.width_and_heads(1024, 16, ("d_model", "n_head"))
    for key, expected in (
        ("d_head", width // heads),
        ("untie_r", True),
        ("same_length", False),
    ):
        fields.fixed(key, expected)
    direction = values.get("attn_type", "bi")
    if not isinstance(direction, str) or direction not in _DIRECTIONS:
        raise InputError(f"config.json: attn_type is {direction!r}; expected bi or uni.")
    clamp = fields.integer("clamp_len", -1, 1_000_000, -1)
    dropout = fields.number("dropout", 0, 1, 0.1)
    vocabulary, pad_id = fields.pieces(32000, 5)
    return replace(
        XLNET_BASE,
        width=width,
        embeddings=replace(
            XLNET_BASE.embeddings,
            vocabulary=vocabulary,
            pad_id=pad_id,
            width=width,
        ),
        attention=replace(
            XLNET_BASE.attention,
            heads=heads,
            head_width=width // heads,
            dropout=dropout,
            terms=TransformerXL(
                clamp=clamp if clamp > 0 else None, direction=_DIRECTIONS[direction]
            ),
        ),
        feed_forward=FeedForward(
            width=fields.integer("d_inner", 1, 65_536, 4096),
            activation=fields.activation("ff_activation"),
            inner_dropout=True,
        ),
        schedule=fields.schedule(24, "n_layer"),
        norm_epsilon=fields.number("layer_norm_eps", 0, 1, 1e-12),
        dropout=dropout,
        initial_std=fields.number("initializer_range", 0, 10, 0.02),
        masked_token_style=fields.scores(),
    )


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_config`."""
    terms = config.attention.terms
    if not isinstance(terms, TransformerXL):
        raise unwritable("attention.terms.kind", terms.kind, config.family, TransformerXL.kind)
    directions = {ours: theirs for theirs, ours in _DIRECTIONS.items()}
    return {
        "vocab_size": config.embeddings.vocabulary,
        "d_model": config.width,
        "n_layer": config.steps,
        "n_head": config.attention.heads,
        "d_head": config.attention.head_width,
        "d_inner": config.feed_forward.width,
        "ff_activation": their_activation(config.feed_forward.activation),
        "attn_type": directions[terms.direction],
        "untie_r": True,
        "clamp_len": terms.clamp or -1,
        "dropout": config.dropout,
        "layer_norm_eps": config.norm_epsilon,
        "initializer_range": config.initial_std,
        "pad_token_id": config.embeddings.pad_id,
        "mem_len": None,
        "reuse_len": None,
        "same_length": False,
        "bi_data": False,
        "tie_word_embeddings": not untied(config),
    }


_THEIRS = "transformer.layer.{n}."
_OURS = "encoder.blocks.{n}."

_FIELDS = names(
    """
    attn_type bi_data clamp_len d_head d_inner d_model dropout end_n_top ff_activation
    initializer_range layer_norm_eps mem_len n_head n_layer reuse_len same_length start_n_top
    untie_r use_mems_eval use_mems_train
    """
).union(bert.SUMMARY, _OTHERS)

FORMAT = Format(
    model_type="xlnet",
    architectures={("permutation",): "XLNetLMHeadModel", (): "XLNetModel"},
    rows=(
        Row("transformer.word_embedding.weight", "encoder.embeddings.pieces.weight"),
        Row("transformer.mask_emb", "encoder.query_start", _Vector()),
        *(
            Row(f"{_THEIRS}rel_attn.{theirs}", f"{_OURS}attention.{ours}.weight", _Projection())
            for theirs, ours in {
                "q": "query",
                "k": "key",
                "v": "value",
                "r": "terms.position_key",
            }.items()
        ),
        Row(_THEIRS + "rel_attn.o", _OURS + "attention.output.weight", _Projection(output=True)),
        Row(_THEIRS + "rel_attn.r_w_bias", _OURS + "attention.terms.content_bias"),
        Row(_THEIRS + "rel_attn.r_r_bias", _OURS + "attention.terms.position_bias"),
        Row(_THEIRS + "rel_attn.r_s_bias", _OURS + "attention.terms.segment_bias"),
        Row(_THEIRS + "rel_attn.seg_embed", _OURS + "attention.terms.segment_vectors"),
        Row(_THEIRS + "rel_attn.layer_norm.*", _OURS + "attention_norm.*"),
        Row(_THEIRS + "ff.layer_1.*", _OURS + "feed_forward.up.*"),
        Row(_THEIRS + "ff.layer_2.*", _OURS + "feed_forward.down.*"),
        Row(_THEIRS + "ff.layer_norm.*", _OURS + "feed_forward_norm.*"),
        Row("lm_loss.bias", "heads.permutation.decoder.bias"),
    ),
    ignored=(tied("lm_loss.weight", "transformer.word_embedding.weight"),),
    read_config=read_config,
    write_config=write_config,
    tasks=TaskFiles(
        stem="XLNet",
        dense="sequence_summary.summary.*",
        classifier="logits_proj.*",
        style=replace(POOLED, token="last"),
        text_dropout=("summary_last_dropout", 0.1),
        tag_dropout=(None, 0.0),
        activation_field="summary_activation",
        fixed={"summary_type": "last", "summary_use_proj": True},
        answering="ForQuestionAnsweringSimple",
    ),
    scores=Scores("lm_loss.*"),
    fields=_FIELDS,
    prefix="transformer.",
)
