"""Files of DeBERTa v2 and v3: DebertaV2Model, DebertaV2ForMaskedLM.

Both versions share one ``model_type``. A file is taken for v3's discriminator where it holds the
norm of v3's replaced-token head (``mask_predictions``, which transformers skips). Released v3 files
hold a masked-token head beside it that pretraining left behind; it is not offered as a trained
head.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from core_models.checkpoints import deberta
from core_models.checkpoints.fields import Fields, names, their_activation
from core_models.checkpoints.table import FAMILY_FIELD, Format, Ignored, Row
from core_models.config import Config, Convolution, Disentangled, Plain
from core_models.errors import InputError
from core_models.families.deberta_v2 import BUCKETED
from core_models.families.deberta_v3 import DEBERTA_V3_BASE

_MASKED = "DebertaV2ForMaskedLM"
_REPLACED = "mask_predictions."


def read_config(values: Mapping[str, Any]) -> Config:
    """DebertaV2Config's fields; absent ones take the values of the released v3 base."""
    fields = Fields({"position_buckets": -1, "share_att_key": False, **values})
    config = deberta.read_body(values, BUCKETED)
    buckets = fields.integer("position_buckets", -1, 1_000_000)
    shared = fields.values["share_att_key"]
    if not isinstance(shared, bool):
        raise InputError(f"config.json: share_att_key is {shared!r}; expected true or false.")
    norms = str(values.get("norm_rel_ebd", "none")).lower().split("|")
    fields.fixed("conv_groups", 1)
    kernel = fields.integer("conv_kernel_size", 0, 1_023, 0)
    convolution = None
    if kernel and kernel % 2 == 0:
        raise InputError(
            f"config.json: conv_kernel_size is {kernel}; only odd ones, and 0 for no convolution, "
            "are supported."
        )
    if kernel:
        acts = Fields({"conv_act": "tanh", **values})
        convolution = Convolution(kernel=kernel, activation=acts.activation("conv_act"))
    normed = "layer_norm" in [name.strip() for name in norms]
    kinds = deberta.read_kinds(values)
    if not kinds and normed:
        raise InputError(
            f"config.json: norm_rel_ebd is {values['norm_rel_ebd']!r}, but there is no relative "
            "table to be normed; only 'none' is supported without relative_attention."
        )
    relative = Disentangled(
        kinds=kinds or ("c2p", "p2c"),
        span=deberta.read_span(fields),
        buckets=buckets if buckets > 0 else None,
        shared_projections=shared,
        position_key_bias=not shared,
        normed=normed,
    )
    terms = relative if kinds else Plain()
    return replace(
        config,
        attention=replace(config.attention, terms=terms),
        convolution=convolution,
    )


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_config`."""
    values = deberta.write_body(config)
    terms = config.attention.terms
    if isinstance(terms, Disentangled):
        values |= {
            "position_buckets": terms.buckets or -1,
            "share_att_key": terms.shared_projections,
            "norm_rel_ebd": "layer_norm" if terms.normed else "none",
        }
    if config.convolution:
        values["conv_kernel_size"] = config.convolution.kernel
        values["conv_act"] = their_activation(config.convolution.activation)
    return values


def _version_3(config: Config, objectives: tuple[str, ...]) -> Config:
    return replace(
        config,
        family=DEBERTA_V3_BASE.family,
        objectives=objectives,
        masking=DEBERTA_V3_BASE.masking,
        replaced_token_style=DEBERTA_V3_BASE.replaced_token_style,
    )


def settle(config: Config, tensors: Mapping[str, Tensor]) -> Config:
    """Version 3 where the file holds its head; a mask decoder where it holds its table."""
    config = deberta.settle(config, tensors)
    if any(name.startswith(_REPLACED + "LayerNorm.") for name in tensors):
        return _version_3(config, DEBERTA_V3_BASE.objectives)
    return config


def _read_version_3(values: Mapping[str, Any]) -> Config:
    """Generators say in their class name that they fill masks."""
    classes = values.get("architectures")
    masked = isinstance(classes, list) and _MASKED in classes
    objectives = ("masked_token",) if masked else DEBERTA_V3_BASE.objectives
    return _version_3(read_config(values), objectives)


def _write_version_3(config: Config) -> dict[str, Any]:
    return write_config(config) | {FAMILY_FIELD: DEBERTA_V3_BASE.family}


_FIELDS = deberta.FIELDS | names(
    "conv_act conv_groups conv_kernel_size norm_rel_ebd position_buckets share_att_key"
)

V2 = Format(
    model_type="deberta-v2",
    architectures={("masked_token",): _MASKED, (): "DebertaV2Model"},
    rows=(
        *deberta.BODY_ROWS,
        Row("deberta.encoder.LayerNorm.*", "encoder.table.norm.*"),
        Row("deberta.encoder.conv.conv.*", "encoder.convolution.conv.*"),
        Row("deberta.encoder.conv.LayerNorm.*", "encoder.convolution.norm.*"),
        *deberta.block_rows(
            {f"{part}_proj.*": f"{part}.*" for part in ("query", "key", "value")}
            | {
                "pos_key_proj.*": "terms.position_key.*",
                "pos_query_proj.*": "terms.position_query.*",
            }
        ),
        Row(_REPLACED + "LayerNorm.*", "heads.replaced_token.norm.*"),
        Row(_REPLACED + "dense.*", "heads.replaced_token.dense.*"),
        Row(_REPLACED + "classifier.*", "heads.replaced_token.classifier.*"),
        # The name in the pretraining code.
        Row(_REPLACED + "classifer.*", "heads.replaced_token.classifier.*"),
    ),
    ignored=(
        *deberta.IGNORED,
        Ignored(
            "deberta.embeddings.word_embeddings._weight",
            "the summand that shared embeddings differ by; the sum is stored as well",
        ),
        Ignored(
            "deberta.embeddings.position_embeddings._weight",
            "the summand that shared embeddings differ by; the sum is stored as well",
        ),
    ),
    read_config=read_config,
    write_config=write_config,
    settle=settle,
    fields=_FIELDS,
    tasks=deberta.tasks("DebertaV2"),
    leftovers={"masked_token": "replaced_token"},
    older=deberta.OLDER_ROWS,
    needs_older=deberta.needs_older,
    scores=deberta.SCORES,
    more_rows=deberta.position_rows,
    prefix="deberta.",
)
"""Files without a field of ours."""

V3 = replace(V2, read_config=_read_version_3, write_config=_write_version_3)
