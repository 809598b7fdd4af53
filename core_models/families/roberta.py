"""RoBERTa: Liu et al. 2019, arXiv 1907.11692.

BERT's encoder with another recipe (sections 4 and 5): masks drawn afresh at every visit, no next
sentence, full blocks of sentences, a byte-level vocabulary of 50265 pieces, larger batches, more
text. In the files three values differ from BERT's: positions are counted over real tokens from row
2 (padding takes row 1, hence 514 rows for 512 tokens), the segment table has a single row that is
still added, and norms use an epsilon of 1e-5.

Sizes under other names: XLM-R (Conneau et al. 2019, arXiv 1911.02116) over 100 languages and
CamemBERT (Martin et al. 2019, arXiv 1911.03894) over French, which hides whole words, both with
unigram vocabularies; DistilRoBERTa (Sanh et al. 2019, arXiv 1910.01108) at half the depth.
"""

from dataclasses import replace

from core_models.config import Masking
from core_models.families.bert import BERT_BASE, resized
from core_models.families.family import Family

ROBERTA_BASE = replace(
    BERT_BASE,
    family="roberta",
    embeddings=replace(
        BERT_BASE.embeddings,
        vocabulary=50265,
        positions=514,
        first_position=2,
        segments=1,
        pad_id=1,
    ),
    norm_epsilon=1e-5,
    objectives=("masked_token",),
    masking=Masking(dynamic=True),
)
"""roberta-base."""

_CAMEMBERT = replace(
    ROBERTA_BASE.with_vocabulary(32_005), masking=Masking(kind="whole_word", dynamic=True)
)

FAMILY = Family(
    name="roberta",
    title="RoBERTa",
    paper="RoBERTa: A Robustly Optimized BERT Pretraining Approach (Liu et al., arXiv 1907.11692)",
    sizes={
        "roberta-base": ROBERTA_BASE,
        "roberta-large": resized(ROBERTA_BASE, 24, 1024),
        "distilroberta-base": replace(ROBERTA_BASE, schedule=tuple(range(6))),
        "xlm-roberta-base": ROBERTA_BASE.with_vocabulary(250_002),
        "xlm-roberta-large": resized(ROBERTA_BASE, 24, 1024).with_vocabulary(250_002),
        "camembert-base": _CAMEMBERT,
        "camembert-large": resized(_CAMEMBERT, 24, 1024),
    },
    tokenizer="byte_bpe",
    lowercase=False,
    template="doubled",
)
