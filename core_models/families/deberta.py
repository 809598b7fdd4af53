"""DeBERTa: He et al. 2020, arXiv 2006.03654.

Content and position stay apart: nothing is added to the pieces at the input, and every score is
content to content, content to position and position to content over relative distances up to 512
(section 3.1), divided by sqrt(3 d). Absolute positions enter only at the end, in the enhanced mask
decoder (section 3.2): the last layer runs twice more from queries that start as position plus the
input of that layer. Pretrained with masked tokens alone, whole words in n-grams up to three.

Other differences from BERT (released code): no segments, no bias in the key projections, norms
with epsilon 1e-7, padding blanked at the input, a byte-level BPE of GPT-2.
"""

from dataclasses import replace

from core_models.config import Config, Disentangled, MaskDecoder, Masking
from core_models.families.bert import BERT_BASE, resized
from core_models.families.family import Family

DEBERTA_BASE: Config = replace(
    BERT_BASE,
    family="deberta",
    embeddings=replace(
        BERT_BASE.embeddings,
        vocabulary=50265,
        positions=None,
        segments=0,
        projected_first=True,
        blank_padding=True,
    ),
    attention=replace(BERT_BASE.attention, key_bias=False, terms=Disentangled(span=512)),
    norm_epsilon=1e-7,
    objectives=("masked_token",),
    masking=Masking(kind="windowed_ngram", longest=3, dynamic=True),
    mask_decoder=MaskDecoder(steps=2, positions=512),
)
"""deberta-base."""

FAMILY = Family(
    name="deberta",
    title="DeBERTa",
    paper="DeBERTa: Decoding-enhanced BERT with Disentangled Attention "
    "(He et al., arXiv 2006.03654)",
    sizes={
        "deberta-base": DEBERTA_BASE,
        "deberta-large": resized(DEBERTA_BASE, 24, 1024),
        "deberta-xlarge": resized(DEBERTA_BASE, 48, 1024),
    },
    tokenizer="byte_bpe",
    lowercase=False,
)
