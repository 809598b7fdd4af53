"""BERT: Devlin et al. 2018, arXiv 1810.04805.

The base that every other family is a difference from. Learned absolute positions and segments are
added to the pieces at the input; blocks are post-norm; the released checkpoints use the erf form
of gelu. Pretrained with masked tokens (15 %, 80/10/10, masks copied statically ten times) and next
sentence prediction (0 = next, 1 = random).
"""

from dataclasses import replace

from core_models.config import Attention, Config, Embeddings, FeedForward
from core_models.families.family import Family

BERT_BASE = Config(
    family="bert",
    embeddings=Embeddings(vocabulary=30522, width=768, positions=512, segments=2, pad_id=0),
    width=768,
    attention=Attention(heads=12, head_width=64),
    feed_forward=FeedForward(width=3072, activation="gelu"),
    schedule=tuple(range(12)),
)
"""bert-base-uncased."""


def resized(base: Config, layers: int, width: int) -> Config:
    """``base`` with other depth and width: heads of 64, inner width four times the width."""
    return replace(
        base,
        width=width,
        embeddings=replace(base.embeddings, width=width),
        attention=base.attention.with_heads(width // 64, 64),
        feed_forward=replace(base.feed_forward, width=4 * width),
        schedule=tuple(range(layers)),
    )


BERT_LARGE = resized(BERT_BASE, 24, 1024)
_WHOLE_WORD = replace(BERT_LARGE, masking=replace(BERT_LARGE.masking, kind="whole_word"))

MINIS = {
    f"bert-{layers}x{width}": resized(BERT_BASE, layers, width)
    for layers in (2, 4, 6, 8, 10, 12)
    for width in (128, 256, 512, 768)
}
"""Turc et al. 2019, arXiv 1908.08962: 24 sizes over the uncased vocabulary."""

FAMILY = Family(
    name="bert",
    title="BERT",
    paper="BERT: Pre-training of Deep Bidirectional Transformers (Devlin et al., arXiv 1810.04805)",
    sizes={
        "bert-base-uncased": BERT_BASE,
        "bert-base-cased": BERT_BASE.with_vocabulary(28996),
        "bert-large-uncased": BERT_LARGE,
        "bert-large-cased": BERT_LARGE.with_vocabulary(28996),
        "bert-large-uncased-whole-word-masking": _WHOLE_WORD,
        "bert-large-cased-whole-word-masking": _WHOLE_WORD.with_vocabulary(28996),
        "bert-base-chinese": BERT_BASE.with_vocabulary(21128),
        "bert-base-multilingual-cased": BERT_BASE.with_vocabulary(119547),
        "bert-base-multilingual-uncased": BERT_BASE.with_vocabulary(105879),
        **MINIS,
    },
    aliases={
        "bert-base": "bert-base-uncased",
        "bert-large": "bert-large-uncased",
        "bert-tiny": "bert-2x128",
        "bert-mini": "bert-4x256",
        "bert-small": "bert-4x512",
        "bert-medium": "bert-8x512",
    },
)
