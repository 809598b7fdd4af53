"""DistilBERT: Sanh et al. 2019, arXiv 1910.01108.

BERT with every second layer left out, without segments and pooler (section 3). It begins as those
layers of its teacher and learns to give the teacher's probabilities, beside hidden tokens and the
direction of hidden states (:mod:`core_models.objectives.distillation`). Masks are drawn afresh at
each visit and there is no next sentence, as RoBERTa does it; the released code prefers rare pieces
when it draws them, by their frequency to the power -0.7.

DistilRoBERTa is RoBERTa's class at half its depth, so a size of RoBERTa.
"""

from dataclasses import replace

from core_models.config import Masking
from core_models.families.bert import BERT_BASE
from core_models.families.family import Family

DISTILBERT_BASE = replace(
    BERT_BASE,
    family="distilbert",
    embeddings=replace(BERT_BASE.embeddings, segments=0),
    schedule=tuple(range(6)),
    objectives=("masked_token",),
    masking=Masking(dynamic=True),
)
"""distilbert-base-uncased."""

FAMILY = Family(
    name="distilbert",
    title="DistilBERT",
    paper="DistilBERT, a distilled version of BERT: smaller, faster, cheaper and lighter (Sanh et "
    "al., arXiv 1910.01108)",
    sizes={
        "distilbert-base-uncased": DISTILBERT_BASE,
        "distilbert-base-cased": DISTILBERT_BASE.with_vocabulary(28996),
        "distilbert-base-multilingual-cased": DISTILBERT_BASE.with_vocabulary(119547),
    },
    aliases={"distilbert-base": "distilbert-base-uncased"},
)
