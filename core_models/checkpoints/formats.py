"""Every checkpoint format by the ``model_type`` of its config.json."""

from core_models.checkpoints import (
    albert,
    bert,
    bert_variants,
    deberta,
    deberta_v2,
    electra,
    roberta,
    xlnet,
)
from core_models.checkpoints.table import Format

_ALL = (
    bert.FORMAT,
    roberta.FORMAT,
    albert.FORMAT,
    electra.FORMAT,
    xlnet.FORMAT,
    deberta.FORMAT,
    deberta_v2.V2,
)

FORMATS: dict[str, Format] = {form.model_type: form for form in _ALL}

BY_FAMILY: dict[str, Format] = {
    "bert": bert.FORMAT,
    "roberta": roberta.FORMAT,
    "albert": albert.FORMAT,
    "electra": electra.FORMAT,
    "spanbert": bert_variants.SPANBERT,
    "macbert": bert_variants.MACBERT,
    "xlnet": xlnet.FORMAT,
    "deberta": deberta.FORMAT,
    "deberta_v2": deberta_v2.V2,
    "deberta_v3": deberta_v2.V3,
}
"""The format that a family is saved in."""
