"""ALBERT: Lan et al. 2019, arXiv 1909.11942.

Section 3.1 names three differences from BERT: piece, position and segment tables are 128 wide and
one projection leads to the hidden width; every step runs the same block; sentence order (0 = in
order, 1 = swapped) replaces next sentence. Masked are n-grams of up to three words with
p(n) ~ 1/n (section 4.1), and the released checkpoints use the tanh form of gelu.

The v2 checkpoints, and xxlarge from the start, were trained without dropout; v1 base, large and
xlarge with 0.1. A plain name means v2.
"""

from dataclasses import replace

from core_models.config import Config, Masking
from core_models.families.bert import BERT_BASE
from core_models.families.family import Family

ALBERT_BASE = replace(
    BERT_BASE,
    family="albert",
    embeddings=replace(BERT_BASE.embeddings, vocabulary=30000, width=128, square_projection=True),
    feed_forward=replace(BERT_BASE.feed_forward, activation="gelu_tanh"),
    schedule=(0,) * 12,
    objectives=("masked_token", "sentence_order"),
    masking=Masking(kind="ngram", longest=3),
).with_dropout(0.0)
"""albert-base-v2."""


def _sized(steps: int, width: int, heads: int) -> Config:
    return replace(
        ALBERT_BASE,
        width=width,
        attention=ALBERT_BASE.attention.with_heads(heads, width // heads),
        feed_forward=replace(ALBERT_BASE.feed_forward, width=4 * width),
        schedule=(0,) * steps,
    )


_V2 = {
    "albert-base": ALBERT_BASE,
    "albert-large": _sized(24, 1024, 16),
    "albert-xlarge": _sized(24, 2048, 16),
    "albert-xxlarge": _sized(12, 4096, 64),
}

FAMILY = Family(
    name="albert",
    title="ALBERT",
    paper="ALBERT: A Lite BERT for Self-supervised Learning (Lan et al., arXiv 1909.11942)",
    sizes={
        **_V2,
        "albert-base-v1": _V2["albert-base"].with_dropout(0.1),
        "albert-large-v1": _V2["albert-large"].with_dropout(0.1),
        "albert-xlarge-v1": _V2["albert-xlarge"].with_dropout(0.1),
    },
    aliases={f"{name}-v2": name for name in _V2} | {"albert-xxlarge-v1": "albert-xxlarge"},
    tokenizer="unigram",
)
