"""DeBERTa v2: He et al. 2020, arXiv 2006.03654, appendix A.5, and the released v2 code.

What changed since the first version: a SentencePiece vocabulary of 128,000; distances fall into
256 log-spaced buckets per direction, exact up to 128; relative positions share the projections of
the contents and their table is normed; a convolution over the input joins after the first layer.
"""

from dataclasses import replace

from core_models.config import Config, Convolution, Disentangled
from core_models.families.bert import resized
from core_models.families.deberta import DEBERTA_BASE
from core_models.families.family import Family

BUCKETED: Config = replace(
    DEBERTA_BASE,
    family="deberta_v2",
    embeddings=replace(DEBERTA_BASE.embeddings, vocabulary=128100),
    attention=replace(
        DEBERTA_BASE.attention,
        key_bias=True,
        terms=Disentangled(span=512, buckets=256, shared_projections=True, normed=True),
    ),
)
"""What v2 and v3 have in common, at the size of v3's base."""

DEBERTA_V2_XLARGE = replace(resized(BUCKETED, 24, 1536), convolution=Convolution(kernel=3))
"""deberta-v2-xlarge."""

FAMILY = Family(
    name="deberta_v2",
    title="DeBERTa v2",
    paper="DeBERTa: Decoding-enhanced BERT with Disentangled Attention "
    "(He et al., arXiv 2006.03654)",
    sizes={
        "deberta-v2-xlarge": DEBERTA_V2_XLARGE,
        "deberta-v2-xxlarge": replace(DEBERTA_V2_XLARGE, schedule=tuple(range(48))),
    },
    tokenizer="unigram",
    lowercase=False,
)
