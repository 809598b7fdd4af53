"""DeBERTa v3: He et al. 2021, arXiv 2111.09543.

The body of v2 without its convolution, pretrained as in ELECTRA (section 3.1): a generator of half
the depth fills masked pieces, and the discriminator, which is the model that is kept, says of every
token whether it was replaced. Its head sees each token beside the first one: norm of their sum,
dense, activation, one score (released code). Embeddings are shared with their gradients apart
(section 3.3): the discriminator adds a table of its own to a copy of the generator's, so only the
generator's loss moves the latter. The generator keeps the mask decoder; the released code masks
single pieces, always with the mask token.
"""

from dataclasses import replace

from core_models.config import Config, Masking
from core_models.families.bert import resized
from core_models.families.deberta_v2 import BUCKETED
from core_models.families.family import Family

DEBERTA_V3_BASE: Config = replace(
    BUCKETED,
    family="deberta_v3",
    objectives=("replaced_token",),
    replaced_token_style="token_and_first",
    masking=Masking(kind="windowed_ngram", split=(1.0, 0.0, 0.0), dynamic=True),
    mask_decoder=None,
)
"""deberta-v3-base, the discriminator."""


def _generator(discriminator: Config) -> Config:
    """Half as deep, with a mask decoder, over tables of the same shape."""
    return replace(
        discriminator,
        schedule=tuple(range(discriminator.steps // 2)),
        objectives=("masked_token",),
        mask_decoder=BUCKETED.mask_decoder,
    )


_DISCRIMINATORS = {
    "deberta-v3-xsmall": resized(DEBERTA_V3_BASE, 12, 384),
    "deberta-v3-small": resized(DEBERTA_V3_BASE, 6, 768),
    "deberta-v3-base": DEBERTA_V3_BASE,
    "deberta-v3-large": resized(DEBERTA_V3_BASE, 24, 1024),
}

FAMILY = Family(
    name="deberta_v3",
    title="DeBERTa v3",
    paper="DeBERTaV3: Improving DeBERTa using ELECTRA-Style Pre-Training with "
    "Gradient-Disentangled Embedding Sharing (He et al., arXiv 2111.09543)",
    sizes={
        **_DISCRIMINATORS,
        "mdeberta-v3-base": DEBERTA_V3_BASE.with_vocabulary(251000),
        **{f"{name}-generator": _generator(size) for name, size in _DISCRIMINATORS.items()},
    },
    tokenizer="unigram",
    lowercase=False,
    sharing="gradient_disentangled",
)

PAIRS = {name: (f"{name}-generator", name) for name in _DISCRIMINATORS}
"""Generator and discriminator that were trained together."""
