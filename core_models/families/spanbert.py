"""SpanBERT: Joshi et al. 2019, arXiv 1907.10529.

The encoder is BERT's, cased. What differs is the task (section 3): contiguous spans of whole words
are masked, their length geometric with p = 0.2 cut at 10 and renormalised (mean 3.8), the 80/10/10
draw made once per span and afresh at every visit; each token of a span is also predicted from the
two tokens around the span and its place in it; inputs are single segments without next sentence.
The segment table keeps BERT's two rows, of which pretraining uses one.
"""

from dataclasses import replace

from core_models.config import Masking
from core_models.families.bert import BERT_BASE, resized
from core_models.families.family import Family

SPANBERT_BASE = replace(
    BERT_BASE.with_vocabulary(28996),
    family="spanbert",
    objectives=("masked_token", "span_boundary"),
    masking=Masking(kind="span", longest=10, dynamic=True),
)
"""spanbert-base-cased."""

FAMILY = Family(
    name="spanbert",
    title="SpanBERT",
    paper="SpanBERT: Improving Pre-training by Representing and Predicting Spans "
    "(Joshi et al., arXiv 1907.10529)",
    sizes={
        "spanbert-base-cased": SPANBERT_BASE,
        "spanbert-large-cased": resized(SPANBERT_BASE, 24, 1024),
    },
    aliases={
        "spanbert-base": "spanbert-base-cased",
        "spanbert-large": "spanbert-large-cased",
    },
    lowercase=False,
)
