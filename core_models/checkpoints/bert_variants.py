"""Families whose files are BERT's: ``model_type`` "bert" and BERT's classes.

transformers cannot tell them apart, so config.json carries the family's name in a field of ours,
which transformers keeps and ignores. A folder without it is read as BERT.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core_models.checkpoints.bert import FORMAT as BERT
from core_models.checkpoints.table import FAMILY_FIELD, Format, Ignored, Row
from core_models.config import Config
from core_models.families.chinese import MACBERT_BASE
from core_models.families.spanbert import SPANBERT_BASE


def _variant(base: Config, rows: Sequence[Row], architectures: Mapping[str, str]) -> Format:
    """BERT's format with other heads beside the masked-token head.

    Args:
        base: gives family, objectives and masking.
        rows: names of the tensors of those other heads.
        architectures: class name to write for such a head beside the masked-token head.
    """

    def read_config(values: Mapping[str, Any]) -> Config:
        return replace(
            BERT.read_config(values),
            family=base.family,
            objectives=base.objectives,
            masking=base.masking,
        )

    def write_config(config: Config) -> dict[str, Any]:
        return BERT.write_config(config) | {FAMILY_FIELD: base.family}

    shared = [row for row in BERT.rows if not row.ours.startswith("heads.next_sentence.")]
    covered = {row.theirs for row in (*shared, *rows)}
    idle = [
        Ignored(row.theirs, f"no objective of {base.family} trains it", kept=True)
        for row in BERT.rows
        if row.theirs not in covered
    ]
    return replace(
        BERT,
        architectures={
            **{("masked_token", head): name for head, name in architectures.items()},
            ("masked_token",): "BertForMaskedLM",
            (): "BertModel",
        },
        rows=(*shared, *rows),
        ignored=(*BERT.ignored, *idle),
        read_config=read_config,
        write_config=write_config,
    )


_SPAN = "cls.pair_target_predictions."
"""The name in the released pretraining code; transformers has no such head and skips it."""

SPANBERT = _variant(
    SPANBERT_BASE,
    (
        Row(_SPAN + "position_embeddings.weight", "heads.span_boundary.place.weight"),
        Row(_SPAN + "mlp_layer_norm.linear1.*", "heads.span_boundary.boundary_dense.*"),
        Row(_SPAN + "mlp_layer_norm.layer_norm1.*", "heads.span_boundary.boundary_norm.*"),
        Row(_SPAN + "mlp_layer_norm.linear2.*", "heads.span_boundary.dense.*"),
        Row(_SPAN + "mlp_layer_norm.layer_norm2.*", "heads.span_boundary.norm.*"),
        Row(_SPAN + "bias", "heads.span_boundary.decoder.bias"),
    ),
    {},
)

MACBERT = _variant(
    MACBERT_BASE,
    (
        Row("bert.pooler.dense.*", "heads.sentence_order.pooler.dense.*"),
        Row("cls.seq_relationship.*", "heads.sentence_order.classifier.*"),
    ),
    {"sentence_order": "BertForPreTraining"},
)
