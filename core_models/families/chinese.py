"""Chinese checkpoints with BERT's classes and BERT's per-character vocabulary of 21128 pieces.

Cui et al. 2019, arXiv 1906.08101: whole words, found by a segmenter, are masked character by
character. ``bert-wwm`` keeps next sentence, ``roberta-wwm-ext`` drops it; despite its name it is a
BERT in every value, and must never be read as a RoBERTa. RBT3, RBT4, RBT6 and RBTL3 are the first
layers of ``roberta-wwm-ext`` and its large form, trained further.

Cui et al. 2020, arXiv 2004.13922 (MacBERT): n-grams of up to four words (40, 30, 20 and 10 %);
80 % of them become similar words instead of the mask token; sentence order instead of next
sentence. Its own family, because objective and masking differ from BERT's.
"""

from dataclasses import replace

from core_models.config import Masking
from core_models.families.bert import BERT_BASE, BERT_LARGE
from core_models.families.family import Family

_WORDS = Masking(kind="whole_word")
_WWM = replace(BERT_BASE.with_vocabulary(21128), masking=_WORDS)
_EXT = replace(_WWM, objectives=("masked_token",))
_EXT_LARGE = replace(BERT_LARGE.with_vocabulary(21128), masking=_WORDS, objectives=_EXT.objectives)

SIZES = {
    "chinese-bert-wwm": _WWM,
    "chinese-bert-wwm-ext": _WWM,
    "chinese-roberta-wwm-ext": _EXT,
    "chinese-roberta-wwm-ext-large": _EXT_LARGE,
    "rbt3": replace(_EXT, schedule=tuple(range(3))),
    "rbt4": replace(_EXT, schedule=tuple(range(4))),
    "rbt6": replace(_EXT, schedule=tuple(range(6))),
    "rbtl3": replace(_EXT_LARGE, schedule=tuple(range(3))),
}
"""Sizes of the BERT family."""

MACBERT_BASE = replace(
    _WWM,
    family="macbert",
    objectives=("masked_token", "sentence_order"),
    masking=Masking(kind="similar", longest=4),
)
"""chinese-macbert-base. The first share of its masking's split becomes a similar word."""

FAMILY = Family(
    name="macbert",
    title="MacBERT",
    paper="Revisiting Pre-Trained Models for Chinese Natural Language Processing "
    "(Cui et al., arXiv 2004.13922)",
    sizes={
        "chinese-macbert-base": MACBERT_BASE,
        "chinese-macbert-large": replace(
            BERT_LARGE.with_vocabulary(21128),
            family=MACBERT_BASE.family,
            objectives=MACBERT_BASE.objectives,
            masking=MACBERT_BASE.masking,
        ),
    },
    aliases={
        "macbert-base": "chinese-macbert-base",
        "macbert-large": "chinese-macbert-large",
    },
)
