"""ELECTRA's files: ElectraModel, ElectraForPreTraining, ElectraForMaskedLM.

Generator and discriminator are separate folders of the same ``model_type``; the class name in
config.json says which one a folder holds.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core_models.checkpoints import bert
from core_models.checkpoints.fields import Fields
from core_models.checkpoints.table import Format, Row, Scores, counter, tied
from core_models.checkpoints.tasks import POOLED, TaskFiles
from core_models.config import Config
from core_models.families.electra import ELECTRA_BASE

_DEFAULTS = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
"""Where ElectraConfig's defaults are not BertConfig's."""

_GENERATOR = "ElectraForMaskedLM"


def read_config(values: Mapping[str, Any]) -> Config:
    """ElectraConfig's fields; absent ones take ElectraConfig's defaults."""
    fields = Fields(values)
    config = bert.read_config({**_DEFAULTS, **values})
    classes = values.get("architectures")
    generates = isinstance(classes, list) and _GENERATOR in classes
    return replace(
        config,
        family=ELECTRA_BASE.family,
        embeddings=replace(
            config.embeddings, width=fields.integer("embedding_size", 1, 16_384, 128)
        ),
        objectives=("masked_token",) if generates else ELECTRA_BASE.objectives,
        masking=ELECTRA_BASE.masking,
        # their head uses gelu whatever hidden_act says
        head_activation=None if config.feed_forward.activation == "gelu" else "gelu",
    )


def write_config(config: Config) -> dict[str, Any]:
    """The inverse of :func:`read_config`."""
    return bert.write_config(config) | {"embedding_size": config.embeddings.width}


FORMAT = Format(
    model_type="electra",
    architectures={
        ("replaced_token",): "ElectraForPreTraining",
        ("masked_token",): _GENERATOR,
        (): "ElectraModel",
    },
    rows=(
        *bert.embedding_rows("electra.embeddings."),
        Row("electra.embeddings_project.*", "encoder.embeddings.projection.*"),
        *bert.block_rows("electra.encoder.layer.{n}."),
        Row("discriminator_predictions.dense.*", "heads.replaced_token.dense.*"),
        Row("discriminator_predictions.dense_prediction.*", "heads.replaced_token.classifier.*"),
        Row("generator_predictions.dense.*", "heads.masked_token.dense.*"),
        Row("generator_predictions.LayerNorm.*", "heads.masked_token.norm.*"),
        Row("generator_lm_head.bias", "heads.masked_token.decoder.bias"),
    ),
    ignored=(
        tied("generator_lm_head.weight", "electra.embeddings.word_embeddings.weight"),
        counter("electra.embeddings.position_ids"),
    ),
    read_config=read_config,
    write_config=write_config,
    tasks=TaskFiles(
        stem="Electra",
        dense="classifier.dense.*",
        classifier="classifier.out_proj.*",
        style=replace(POOLED, activation="gelu", dropout_before=True),
    ),
    scores=Scores("generator_lm_head.*"),
    causal="ElectraForCausalLM",
    fields=bert.FIELDS | bert.SUMMARY | {"embedding_size"},
    prefix="electra.",
)
