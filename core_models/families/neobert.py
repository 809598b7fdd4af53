"""NeoBERT: Le Breton et al. 2025, arXiv 2502.19587.

Depth before width: 28 layers of BERT base's width, in EuroBERT's block without groups, over BERT's
own vocabulary (section 3). A fifth of the tokens is hidden, always by [MASK]. The vocabulary is
scored by a layer of its own, with a bias. 2.1 trillion tokens of RefinedWeb, 1,024 at a time, then
4,096.
"""

from dataclasses import replace

from core_models.config import Masking, Rotary
from core_models.families.bert import BERT_BASE
from core_models.families.eurobert import EUROBERT_210M
from core_models.families.family import Family

NEOBERT = replace(
    EUROBERT_210M,
    family="neobert",
    embeddings=replace(BERT_BASE.embeddings, positions=None, segments=0, normed=False),
    attention=replace(
        EUROBERT_210M.attention,
        rotary=Rotary(theta=10_000.0, local_theta=10_000.0, positions=4_096),
    ),
    feed_forward=replace(EUROBERT_210M.feed_forward, width=2048),
    schedule=tuple(range(28)),
    masking=Masking(rate=0.2, split=(1.0, 0.0, 0.0), dynamic=True),
    score_bias=True,
)
"""The one released size."""

FAMILY = Family(
    name="neobert",
    title="NeoBERT",
    paper="NeoBERT: A Next-Generation BERT (Le Breton et al., arXiv 2502.19587)",
    sizes={"neobert": NEOBERT},
)
