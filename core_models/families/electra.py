"""ELECTRA: Clark et al. 2020, arXiv 2003.10555.

Two encoders of BERT's kind (section 2): a small generator fills masked tokens and learns by maximum
likelihood, and the discriminator, which is the model that is kept, says of every token whether it
was replaced. Both share the whole embedding block, so the generator's tables have the
discriminator's width and each model projects where its own width differs (section 3.2; released
code). Of the tokens that the generator is trained on, 85 % are masked and 15 % left as they are;
none is replaced at random. The rate is 15 %, for large 25 %.

The released small checkpoints are the paper's "small++", whose generator is as wide as the
discriminator; ``electra-small-paper-generator`` is the generator of the paper's own small model.
"""

from dataclasses import replace

from core_models.config import Config, Masking
from core_models.families.bert import BERT_BASE, resized
from core_models.families.family import Family

_SPLIT = (0.85, 0.0, 0.15)

ELECTRA_BASE = replace(
    BERT_BASE,
    family="electra",
    objectives=("replaced_token",),
    masking=Masking(kind="with_replacement", split=_SPLIT, dynamic=True),
)
"""electra-base-discriminator."""


def _narrow(config: Config, embedding: int) -> Config:
    return replace(config, embeddings=replace(config.embeddings, width=embedding))


def _generator(discriminator: Config, width: int) -> Config:
    """As deep as the discriminator, over tables of its width."""
    narrow = resized(discriminator, discriminator.steps, width)
    return replace(narrow, embeddings=discriminator.embeddings, objectives=("masked_token",))


_SMALL = _narrow(resized(ELECTRA_BASE, 12, 256), 128)
_LARGE = replace(
    resized(ELECTRA_BASE, 24, 1024),
    masking=Masking(kind="with_replacement", rate=0.25, split=_SPLIT, dynamic=True),
)

FAMILY = Family(
    name="electra",
    title="ELECTRA",
    paper="ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators "
    "(Clark et al., arXiv 2003.10555)",
    sizes={
        "electra-small-discriminator": _SMALL,
        "electra-base-discriminator": ELECTRA_BASE,
        "electra-large-discriminator": _LARGE,
        "electra-small-generator": _generator(_SMALL, 256),
        "electra-small-paper-generator": _generator(_SMALL, 64),
        "electra-base-generator": _generator(ELECTRA_BASE, 256),
        "electra-large-generator": _generator(_LARGE, 256),
    },
    aliases={
        "electra-small": "electra-small-discriminator",
        "electra-base": "electra-base-discriminator",
        "electra-large": "electra-large-discriminator",
    },
)

PAIRS = {
    "electra-small-paper": ("electra-small-paper-generator", "electra-small-discriminator"),
    "electra-small": ("electra-small-generator", "electra-small-discriminator"),
    "electra-base": ("electra-base-generator", "electra-base-discriminator"),
    "electra-large": ("electra-large-generator", "electra-large-discriminator"),
}
"""Generator and discriminator that were trained together."""
