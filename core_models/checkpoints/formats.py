"""Every checkpoint format by the ``model_type`` of its config.json."""

from core_models.checkpoints import (
    albert,
    bert,
    bert_variants,
    deberta,
    deberta_v2,
    distilbert,
    electra,
    eurobert,
    modernbert,
    neobert,
    roberta,
    xlnet,
)
from core_models.checkpoints.own_fields import with_own_fields
from core_models.checkpoints.table import Format

_ALL = (
    bert.FORMAT,
    roberta.FORMAT,
    roberta.XLM_ROBERTA,
    roberta.CAMEMBERT,
    distilbert.FORMAT,
    albert.FORMAT,
    electra.FORMAT,
    xlnet.FORMAT,
    deberta.FORMAT,
    deberta_v2.V2,
    modernbert.FORMAT,
    eurobert.FORMAT,
    neobert.FORMAT,
)

FORMATS: dict[str, Format] = {form.model_type: with_own_fields(form) for form in _ALL}

BY_FAMILY: dict[str, Format] = {
    "bert": FORMATS["bert"],
    "roberta": FORMATS["roberta"],
    "distilbert": FORMATS["distilbert"],
    "albert": FORMATS["albert"],
    "electra": FORMATS["electra"],
    "spanbert": with_own_fields(bert_variants.SPANBERT),
    "macbert": with_own_fields(bert_variants.MACBERT),
    "xlnet": FORMATS["xlnet"],
    "deberta": FORMATS["deberta"],
    "deberta_v2": FORMATS["deberta-v2"],
    "deberta_v3": with_own_fields(deberta_v2.V3),
    "modernbert": FORMATS["modernbert"],
    "eurobert": FORMATS["eurobert"],
    "neobert": FORMATS["neobert"],
}
"""The format that a family is saved in."""
