"""XLNet: Yang et al. 2019, arXiv 1906.08237.

Nothing is masked: tokens are predicted in a random order of factorisation, each from those before
it in that order (section 2.2), and only the last sixth of an order is predicted (section 2.3). A
token's place must be known before its contents are, so a second stream of queries carries places
only and reads keys and values of the content stream (section 2.3). Positions are relative
distances, as sinusoids inside every block, segments are "same or other" inside every block
(sections 2.4, 2.5), and the inputs of every step for the previous segment are remembered.

Other differences from BERT (released code): no bias in the attention projections, one learned
vector per head beside the query for content, position and segment each, no norm at the input,
dropout also inside the feed-forward network and at the end, [CLS] at the end of the text.
"""

from dataclasses import replace

from core_models.config import Config, Masking, TransformerXL
from core_models.families.bert import BERT_BASE, resized
from core_models.families.family import Family

XLNET_BASE: Config = replace(
    BERT_BASE,
    family="xlnet",
    embeddings=replace(
        BERT_BASE.embeddings,
        vocabulary=32000,
        positions=None,
        segments=0,
        pad_id=5,
        normed=False,
    ),
    attention=replace(
        BERT_BASE.attention,
        query_bias=False,
        key_bias=False,
        value_bias=False,
        output_bias=False,
        terms=TransformerXL(),
    ),
    feed_forward=replace(BERT_BASE.feed_forward, inner_dropout=True),
    objectives=("permutation",),
    masking=Masking(
        kind="permutation", rate=85 / 512, split=(0.0, 0.0, 1.0), longest=5, dynamic=False
    ),
    query_stream=True,
    output_dropout=True,
)
"""xlnet-base-cased."""

FAMILY = Family(
    name="xlnet",
    title="XLNet",
    paper="XLNet: Generalized Autoregressive Pretraining for Language Understanding "
    "(Yang et al., arXiv 1906.08237)",
    sizes={
        "xlnet-base-cased": XLNET_BASE,
        "xlnet-large-cased": resized(XLNET_BASE, 24, 1024),
    },
    aliases={"xlnet-base": "xlnet-base-cased", "xlnet-large": "xlnet-large-cased"},
    tokenizer="unigram",
    lowercase=False,
    template="trailing",
)
