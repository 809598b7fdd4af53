"""ModernBERT: Warner et al. 2024, arXiv 2412.13663; Ettin and mmBERT are sizes of it.

BERT's task in the block of 2024 (section 2.1). Positions are turns of queries and keys instead of a
learned table; two layers of three see 64 tokens on each side, so that 8,192 tokens are affordable;
norms come before each branch, with one behind the embeddings (the first attention then needs none)
and one at the end; the feed-forward network is gated; nothing has a bias but the scores of the
vocabulary. Pretrained with 30 % hidden, without next sentence, no dropout.

Ettin (Weller et al. 2025, arXiv 2507.11412) is the same class over open data in six sizes, with a
decoder beside each; mmBERT (Marone et al. 2025, arXiv 2509.06888) reads 1,800 languages with a
vocabulary of 256,000, its hidden share falling from 30 to 5 %. Both turn local layers as slowly as
global ones.
"""

from dataclasses import replace

from core_models.config import Attention, Config, Embeddings, FeedForward, Masking, Rotary
from core_models.families.bert import BERT_BASE
from core_models.families.family import Family

MODERNBERT_BASE = replace(
    BERT_BASE,
    family="modernbert",
    embeddings=Embeddings(
        vocabulary=50368, width=768, positions=None, segments=0, pad_id=50283, normed=True
    ),
    attention=Attention(
        heads=12,
        head_width=64,
        query_bias=False,
        key_bias=False,
        value_bias=False,
        output_bias=False,
        dropout=0.0,
        rotary=Rotary(theta=160_000.0, local_theta=10_000.0, positions=8_192),
        window=64,
    ),
    feed_forward=FeedForward(width=1152, gated=True, bias=False),
    schedule=tuple(range(22)),
    layer_kinds=("global", "local", "local"),
    norm_place="before",
    norm_bias=False,
    norm_epsilon=1e-5,
    dropout=0.0,
    initial_by_depth=True,
    objectives=("masked_token",),
    masking=Masking(rate=0.3, dynamic=True),
    head_bias=False,
)
"""ModernBERT-base."""


def _resized(base: Config, layers: int, width: int, inner: int) -> Config:
    return replace(
        base,
        width=width,
        embeddings=replace(base.embeddings, width=width),
        attention=base.attention.with_heads(width // 64, 64),
        feed_forward=replace(base.feed_forward, width=inner),
        schedule=tuple(range(layers)),
    )


def _turning(base: Config, positions: int) -> Config:
    """Local layers turned as slowly as global ones, trained on other lengths."""
    rotary = Rotary(theta=160_000.0, local_theta=160_000.0, positions=positions)
    return replace(base, attention=replace(base.attention, rotary=rotary))


_ETTIN_SIZES = ("17m", "32m", "68m", "150m", "400m", "1b")
_ETTIN = _turning(MODERNBERT_BASE, 7_999)
_MMBERT = _turning(MODERNBERT_BASE, 8_192).with_vocabulary(256_000, pad_id=0)

FAMILY = Family(
    name="modernbert",
    title="ModernBERT",
    paper="Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast, Memory "
    "Efficient, and Long Context Finetuning and Inference (Warner et al., arXiv 2412.13663)",
    sizes={
        "modernbert-base": MODERNBERT_BASE,
        "modernbert-large": _resized(MODERNBERT_BASE, 28, 1024, 2624),
        "ettin-encoder-17m": _resized(_ETTIN, 7, 256, 384),
        "ettin-encoder-32m": _resized(_ETTIN, 10, 384, 576),
        "ettin-encoder-68m": _resized(_ETTIN, 19, 512, 768),
        "ettin-encoder-150m": _ETTIN,
        "ettin-encoder-400m": _resized(_ETTIN, 28, 1024, 2624),
        "ettin-encoder-1b": _resized(_ETTIN, 28, 1792, 3840),
        "mmbert-small": _resized(_MMBERT, 22, 384, 1152),
        "mmbert-base": _MMBERT,
    },
    aliases={f"ettin-{size}": f"ettin-encoder-{size}" for size in _ETTIN_SIZES},
    tokenizer="byte_bpe",
    lowercase=False,
)
