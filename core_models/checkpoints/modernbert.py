"""ModernBERT's files: ModernBertModel, ModernBertForMaskedLM and the fine-tuned classes.

Ettin and mmBERT are of the same class. Queries, keys and values are one tensor there, and so are
the two inner layers of the feed-forward network. Rates of dropout are zero in every released file;
where they are not, ours drop what a branch gives and theirs what is inside it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core_models.checkpoints.fields import Fields, names, rotary_of, shape_of, their_activation
from core_models.checkpoints.table import Format, Packed, Row, Scores, Stacked, tied
from core_models.checkpoints.tasks import TaskFiles
from core_models.config import Attention, Config, Embeddings, FeedForward, Rotary
from core_models.config.task import Task
from core_models.errors import InputError
from core_models.families.modernbert import MODERNBERT_BASE

_KINDS = {"full_attention": "global", "sliding_attention": "local"}
"""Their kinds of layers to ours."""
_THETAS = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}
"""The field of transformers 4 for each kind."""
_DEFAULT_THETA = {"full_attention": 160_000.0, "sliding_attention": 10_000.0}


def read_config(values: Mapping[str, Any]) -> Config:
    """ModernBertConfig's fields; absent ones take ModernBertConfig's defaults."""
    fields = Fields(values)
    base = MODERNBERT_BASE
    width, heads = fields.width_and_heads(base.width, base.attention.heads)
    schedule = fields.schedule(base.steps)
    kinds = _read_kinds(fields, len(schedule))
    bias = fields.boolean("attention_bias", False)
    activation = fields.activation("hidden_activation")
    head_activation = fields.activation("classifier_activation")
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
        ),
        attention=Attention(
            heads=heads,
            head_width=width // heads,
            query_bias=bias,
            key_bias=bias,
            value_bias=bias,
            output_bias=bias,
            dropout=fields.number("attention_dropout", 0, 1, 0.0),
            rotary=_read_rotary(fields),
            window=_read_window(fields) if "local" in kinds else None,
        ),
        feed_forward=FeedForward(
            width=fields.integer("intermediate_size", 1, 65_536, base.feed_forward.width),
            activation=activation,
            gated=True,
            bias=fields.boolean("mlp_bias", False),
        ),
        schedule=schedule,
        layer_kinds=kinds,
        norm_bias=fields.boolean("norm_bias", False),
        norm_epsilon=fields.number("norm_eps", 0, 1, 1e-5),
        dropout=_read_dropout(fields),
        initial_std=fields.number("initializer_range", 0, 10, 0.02),
        masked_token_style=fields.scores(),
        score_bias=fields.boolean("decoder_bias", True),
        head_activation=None if head_activation == activation else head_activation,
        head_bias=fields.boolean("classifier_bias", False),
    )


def _read_dropout(fields: Fields) -> float:
    rate, inner = (fields.number(key, 0, 1, 0.0) for key in ("embedding_dropout", "mlp_dropout"))
    if rate != inner:
        raise InputError(
            f"config.json: embedding_dropout is {rate} and mlp_dropout {inner}; only equal ones "
            "are supported."
        )
    return rate


def _read_window(fields: Fields) -> int:
    """Tokens on each side, half of theirs."""
    return fields.integer("local_attention", 2, 2_000_000, 128) // 2


def _read_kinds(fields: Fields, layers: int) -> tuple[str, ...]:
    """Kind of every layer."""
    written = fields.values.get("layer_types")
    if written is None:
        every = fields.integer("global_attn_every_n_layers", 1, 512, 3)
        written = ["sliding_attention" if n % every else "full_attention" for n in range(layers)]
    if not isinstance(written, list) or len(written) != layers:
        raise InputError(
            f"config.json: layer_types must be a list of {layers} names (num_hidden_layers)."
        )
    for name in written:
        if name not in _KINDS:
            raise InputError(
                f"config.json: layer_types has {name!r}; supported are {', '.join(_KINDS)}."
            )
    return tuple(_KINDS[name] for name in written)


def _read_rotary(fields: Fields) -> Rotary:
    """How fast each kind of layers turns, in the fields of transformers 5 or of 4."""
    written = fields.values.get("rope_parameters") or {}
    if not isinstance(written, Mapping) or not set(written) <= set(_KINDS):
        raise InputError(
            f"config.json: rope_parameters must be an object with {' and '.join(_KINDS)}, not "
            f"{written!r}."
        )
    thetas = {
        kind: fields.theta(
            written.get(kind), f"rope_parameters.{kind}", older, _DEFAULT_THETA[kind]
        )
        for kind, older in _THETAS.items()
    }
    return Rotary(
        theta=thetas["full_attention"],
        local_theta=thetas["sliding_attention"],
        positions=fields.integer("max_position_embeddings", 1, 1_000_000, 8_192),
    )


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_config`; values that it has no field for are found out later."""
    attention, rotary = config.attention, rotary_of(config)
    kinds = {ours: name for name, ours in _KINDS.items()}
    activation = config.feed_forward.activation
    values = {
        **shape_of(config),
        "hidden_activation": their_activation(activation),
        "embedding_dropout": config.dropout,
        "mlp_dropout": config.dropout,
        "attention_dropout": attention.dropout,
        "max_position_embeddings": rotary.positions,
        "initializer_range": config.initial_std,
        "norm_eps": config.norm_epsilon,
        "norm_bias": config.norm_bias,
        "attention_bias": attention.query_bias,
        "mlp_bias": config.feed_forward.bias,
        "classifier_bias": config.head_bias,
        "classifier_activation": their_activation(
            config.head_activation or config.feed_forward.activation
        ),
        "decoder_bias": config.score_bias,
        "layer_types": [kinds[kind] for kind in config.kinds],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": rotary.theta},
            "sliding_attention": {"rope_type": "default", "rope_theta": rotary.local_theta},
        },
    }
    return values | ({} if attention.window is None else {"local_attention": 2 * attention.window})


_THEIRS, _OURS = "model.layers.{n}.", "encoder.blocks.{n}."
_QKV = Packed(
    _THEIRS + "attn.Wqkv.*",
    tuple(f"{_OURS}attention.{part}.*" for part in ("query", "key", "value")),
    Stacked(3),
)
_INNER = Packed(
    _THEIRS + "mlp.Wi.*",
    (_OURS + "feed_forward.up.*", _OURS + "feed_forward.gate.*"),
    Stacked(2),
)

FORMAT = Format(
    model_type="modernbert",
    architectures={("masked_token",): "ModernBertForMaskedLM", (): "ModernBertModel"},
    rows=(
        Row("model.embeddings.tok_embeddings.weight", "encoder.embeddings.pieces.weight"),
        Row("model.embeddings.norm.*", "encoder.embeddings.norm.*"),
        *_QKV.rows,
        Row(_THEIRS + "attn.Wo.*", _OURS + "attention.output.*"),
        Row(_THEIRS + "attn_norm.*", _OURS + "attention_norm.*"),
        *_INNER.rows,
        Row(_THEIRS + "mlp.Wo.*", _OURS + "feed_forward.down.*"),
        Row(_THEIRS + "mlp_norm.*", _OURS + "feed_forward_norm.*"),
        Row("model.final_norm.*", "encoder.final_norm.*"),
        Row("head.dense.*", "heads.masked_token.dense.*"),
        Row("head.norm.*", "heads.masked_token.norm.*"),
        Row("decoder.bias", "heads.masked_token.decoder.bias"),
    ),
    packed=(_QKV, _INNER),
    ignored=(tied("decoder.weight", "model.embeddings.tok_embeddings.weight"),),
    read_config=read_config,
    write_config=write_config,
    tasks=TaskFiles(
        stem="ModernBert",
        dense="head.dense.*",
        norm="head.norm.*",
        classifier="classifier.*",
        answers="classifier.*",
        style=Task(head="regress", activation="gelu", as_masked_token=True),
        text_dropout=("classifier_dropout", 0.0),
        tag_dropout=("classifier_dropout", 0.0),
        activation_field="classifier_activation",
        pooling_fields=("classifier_pooling",),
    ),
    scores=Scores("decoder.*"),
    fields=names(
        """
        attention_bias attention_dropout classifier_activation classifier_bias classifier_dropout
        classifier_pooling cls_token_id decoder_bias deterministic_flash_attn embedding_dropout
        global_attn_every_n_layers global_rope_theta hidden_act hidden_activation hidden_size
        initializer_cutoff_factor initializer_range intermediate_size layer_norm_eps layer_types
        local_attention local_rope_theta max_position_embeddings mlp_bias mlp_dropout norm_bias
        norm_eps num_attention_heads num_hidden_layers position_embedding_type reference_compile
        repad_logits_with_grad rope_parameters rope_scaling sep_token_id sparse_pred_ignore_index
        sparse_prediction
        """
    ),
    prefix="model.",
)
