"""EuroBERT: Boizard et al. 2025, arXiv 2503.05500.

A decoder's block (Llama's) that looks both ways, over 15 languages, code and mathematics: RMSNorm
before each branch and at the end, rotary positions, SwiGLU, no biases, no dropout. In the two
larger sizes groups of three heads share keys and values. Nothing is tied: a layer of its own scores
the vocabulary of Llama 3 straight from the last norm. Pretrained on 2,048 tokens with theta 10,000
and half of the tokens hidden, then on up to 8,192 with theta 250,000 and a tenth hidden (sections 2
and 3); the released values are those of the end.
"""

from dataclasses import replace

from core_models.config import Attention, Config, Embeddings, FeedForward, Masking, Rotary
from core_models.families.bert import BERT_BASE
from core_models.families.family import Family

EUROBERT_210M = replace(
    BERT_BASE,
    family="eurobert",
    embeddings=Embeddings(
        vocabulary=128_256,
        width=768,
        positions=None,
        segments=0,
        pad_id=128_001,
        normed=False,
    ),
    attention=Attention(
        heads=12,
        head_width=64,
        query_bias=False,
        key_bias=False,
        value_bias=False,
        output_bias=False,
        dropout=0.0,
        rotary=Rotary(theta=250_000.0, local_theta=250_000.0, positions=8_192),
    ),
    feed_forward=FeedForward(width=3072, activation="silu", gated=True, bias=False),
    norm_place="before",
    norm_kind="rms",
    norm_bias=False,
    norm_epsilon=1e-5,
    dropout=0.0,
    objectives=("masked_token",),
    masking=Masking(rate=0.5, dynamic=True),
    masked_token_style="linear",
    score_bias=False,
)
"""EuroBERT-210m."""


def _grouped(layers: int, width: int, inner: int) -> Config:
    """A larger size: 18 heads of queries, 6 of keys and values."""
    return replace(
        EUROBERT_210M,
        width=width,
        embeddings=replace(EUROBERT_210M.embeddings, width=width),
        attention=replace(EUROBERT_210M.attention, heads=18, head_width=width // 18, key_heads=6),
        feed_forward=replace(EUROBERT_210M.feed_forward, width=inner),
        schedule=tuple(range(layers)),
    )


FAMILY = Family(
    name="eurobert",
    title="EuroBERT",
    paper="EuroBERT: Scaling Multilingual Encoders for European Languages (Boizard et al., arXiv "
    "2503.05500)",
    sizes={
        "eurobert-210m": EUROBERT_210M,
        "eurobert-610m": _grouped(26, 1152, 4096),
        "eurobert-2.1b": _grouped(32, 2304, 6144),
    },
    tokenizer="byte_bpe",
    signs={"cls": "<|begin_of_text|>", "sep": "<|end_of_text|>", "mask": "<|mask|>"},
    lowercase=False,
)
