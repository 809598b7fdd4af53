"""Published figures beside exact counts.

Claims are told in our own words; every figure of ours is counted when the table is asked for.
"""

# ruff: noqa: RUF001 (a multiplication sign is meant)

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import core_models as cm
from core_models import Count
from core_models.counting.counts import joint
from core_models.families.electra import PAIRS
from viz.svg import Wording

MILLION = "million parameters"
PERCENT = "%"
TIMES = "times"
PIECES = "pieces"
SIGNS = {PERCENT: "%", TIMES: "×", PIECES: Wording("pieces")}
DIGITS = {TIMES: 2, PIECES: 0}
"""Behind the point of a counted figure; one where nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A figure that somebody printed, and how the same thing is counted here."""

    claim: str
    printed: float
    unit: str
    source: str
    exact: Callable[[], float]
    counts: str
    """What :attr:`exact` counts."""
    reason: str
    """Why the two differ, or that they agree."""


def _base(name: str) -> Callable[[], float]:
    return lambda: cm.count(name).base / 1e6


def _encoder(name: str) -> Callable[[], float]:
    return lambda: cm.count(name).encoder / 1e6


def _backbone(name: str) -> Callable[[], float]:
    return lambda: _without_pieces(cm.count(name)) / 1e6


def _without_pieces(found: Count) -> int:
    return found.base - found.pieces


def _joint(name: str) -> Callable[[], float]:
    generator, discriminator = PAIRS[name]
    return lambda: joint(cm.size(generator), cm.size(discriminator)).total / 1e6


def _share(name: str) -> Callable[[], float]:
    return lambda: 100 * cm.count(name).embedding_block / cm.count(name).base


BERT = "arXiv 1810.04805"
ROBERTA = "fairseq, RoBERTa's table of models"
ALBERT = "arXiv 1909.11942"
ELECTRA = "arXiv 2003.10555"
DEBERTA = "README of the DeBERTa repository"
DISTILBERT = "arXiv 1910.01108, table 3"
EUROBERT = "arXiv 2503.05500"
NEOBERT = "arXiv 2502.19587"
HFL = "README of the Chinese BERT-wwm repository"
ALBERT_V = 30_000
POPULAR = "found in popular articles"
BASE = "encoder with pooler"
BACKBONE = "everything but the piece table"

CLAIMS = (
    Claim(
        claim="BERT base has 110 million parameters",
        printed=110,
        unit=MILLION,
        source=BERT,
        exact=_base("bert-base-uncased"),
        counts=BASE,
        reason="Rounded. With both pretraining heads it is 110.1 million.",
    ),
    Claim(
        claim="BERT large has 340 million",
        printed=340,
        unit=MILLION,
        source=BERT,
        exact=_base("bert-large-uncased"),
        counts=BASE,
        reason="Rounded to tens; later papers print 334 or 335 for the same model.",
    ),
    Claim(
        claim="BERT base has 108 million",
        printed=108,
        unit=MILLION,
        source=ALBERT + ", table 1",
        exact=_encoder("bert-base-uncased"),
        counts="encoder without pooler",
        reason="Counted without the pooler, and cut off instead of rounded.",
    ),
    Claim(
        claim="Multilingual BERT has 110 million, too",
        printed=110,
        unit=MILLION,
        source="README of the BERT repository",
        exact=_base("bert-base-multilingual-cased"),
        counts=BASE,
        reason="The figure of the English model: with 119,547 pieces the table alone has 91.8 "
        "million.",
    ),
    Claim(
        claim="The embeddings are more than half of BERT base",
        printed=50,
        unit=PERCENT,
        source=POPULAR,
        exact=_share("bert-base-uncased"),
        counts="embedding block, share of the encoder with pooler",
        reason="About a fifth. In a small BERT (2 layers of 128) it is true.",
    ),
    Claim(
        claim="RoBERTa base has 125 million",
        printed=125,
        unit=MILLION,
        source=ROBERTA,
        exact=_base("roberta-base"),
        counts=BASE,
        reason="Rounded.",
    ),
    Claim(
        claim="RoBERTa large has 340 million",
        printed=340,
        unit=MILLION,
        source=POPULAR,
        exact=_base("roberta-large"),
        counts=BASE,
        reason="BERT large's figure. The larger vocabulary adds 20.2 million; the authors print "
        "355.",
    ),
    Claim(
        claim="Byte-level BPE gives RoBERTa a smaller vocabulary than BERT's 30,522",
        printed=30_522,
        unit=PIECES,
        source=POPULAR,
        exact=lambda: float(cm.size("roberta-base").embeddings.vocabulary),
        counts="rows of the piece table",
        reason="It needs no unknown piece, but here it has two thirds more pieces.",
    ),
    Claim(
        claim="ALBERT base has 12 million",
        printed=12,
        unit=MILLION,
        source=ALBERT + ", table 1",
        exact=_base("albert-base"),
        counts=BASE,
        reason="Rounded. One block serves all twelve layers, so a pass costs what BERT's costs.",
    ),
    Claim(
        claim="ALBERT large has 18 times fewer parameters than BERT large",
        printed=18,
        unit=TIMES,
        source=ALBERT + ", introduction",
        exact=lambda: cm.count("bert-large-uncased").base / cm.count("albert-large").base,
        counts="ratio of encoders with pooler",
        reason="Nearly 19 by exact counts.",
    ),
    Claim(
        claim="V × 128 + 128 × 768 is 5.85 times smaller than V × 768",
        printed=5.85,
        unit=TIMES,
        source=POPULAR + ", for V = 30,000",
        exact=lambda: ALBERT_V * 768 / (ALBERT_V * 128 + 128 * 768),
        counts="V × H over V × E + E × H for V = 30,000, no bias",
        reason="Right: 23.0 against 3.9 million.",
    ),
    Claim(
        claim="ALBERT xxlarge has 235 million (233 in the text)",
        printed=235,
        unit=MILLION,
        source=ALBERT + ", table 1",
        exact=_base("albert-xxlarge"),
        counts=BASE,
        reason="Does not follow from the published values: even an untied output table (3.8 "
        "million) leaves 9 million unexplained.",
    ),
    Claim(
        claim="DistilBERT has 66 million",
        printed=66,
        unit=MILLION,
        source=DISTILBERT,
        exact=_base("distilbert-base-uncased"),
        counts="encoder",
        reason="Cut off. Its masked-token head would add 0.6 million.",
    ),
    Claim(
        claim="EuroBERT-610m has 610 million",
        printed=610,
        unit=MILLION,
        source=EUROBERT,
        exact=_base("eurobert-610m"),
        counts="encoder",
        reason="Rounded. Its file holds 755.6: the scores of the vocabulary are a layer of its "
        "own.",
    ),
    Claim(
        claim="NeoBERT has 250 million",
        printed=250,
        unit=MILLION,
        source=NEOBERT,
        exact=lambda: cm.count("neobert").pretraining / 1e6,
        counts="encoder with head",
        reason="Rounded up, and with the scores of the vocabulary; the encoder has 221.7.",
    ),
    Claim(
        claim="ELECTRA small has 14 million",
        printed=14,
        unit=MILLION,
        source=ELECTRA + ", table 1",
        exact=_base("electra-small-discriminator"),
        counts="discriminator only",
        reason="Rounded up. The generator is left out, because it is thrown away.",
    ),
    *(
        Claim(
            claim=f"ELECTRA {size} has {printed} million when its two networks are added",
            printed=printed,
            unit=MILLION,
            source=POPULAR,
            exact=_joint(f"electra-{size}"),
            counts="generator and discriminator with heads, shared tables once",
            reason=reason,
        )
        for size, printed, reason in (
            (
                "base",
                220,
                "Twice the discriminator: but the generator is smaller and shares its tables.",
            ),
            ("large", 660, "Twice the discriminator, as for base."),
        )
    ),
    Claim(
        claim="DeBERTa base has a backbone of 100 million",
        printed=100,
        unit=MILLION,
        source=DEBERTA,
        exact=_backbone("deberta-base"),
        counts=BACKBONE,
        reason="Agrees.",
    ),
    Claim(
        claim="DeBERTa v2 xlarge has a backbone of 710 million",
        printed=710,
        unit=MILLION,
        source=DEBERTA,
        exact=_backbone("deberta-v2-xlarge"),
        counts=BACKBONE,
        reason="Cannot be counted from the released values; the printed total, 900, fits.",
    ),
    Claim(
        claim="DeBERTa v2 xxlarge has 1.5 billion",
        printed=1500,
        unit=MILLION,
        source=DEBERTA,
        exact=_base("deberta-v2-xxlarge"),
        counts="encoder",
        reason="Cut off; its printed backbone of 1,320 is 48 million too low.",
    ),
    Claim(
        claim="DeBERTa v3 base has a backbone of 86 million",
        printed=86,
        unit=MILLION,
        source=DEBERTA,
        exact=_backbone("deberta-v3-base"),
        counts=BACKBONE,
        reason="Rounded up, or counted with the head's dense layer. The piece table adds 98.4 "
        "million, more than the backbone.",
    ),
    Claim(
        claim="mDeBERTa v3 base has 190 million in its embeddings",
        printed=190,
        unit=MILLION,
        source=DEBERTA,
        exact=lambda: cm.count("mdeberta-v3-base").pieces / 1e6,
        counts="piece table",
        reason="Of 251,000 pieces; 193 would be the rounded figure.",
    ),
    Claim(
        claim="RBT3 has 38 million",
        printed=38,
        unit=MILLION,
        source=HFL,
        exact=_base("rbt3"),
        counts=BASE,
        reason="Three of twelve layers, yet over a third of the parameters: the table stays whole.",
    ),
)


@cache
def table() -> list[dict[str, Any]]:
    """Every claim with its exact figure and the difference in percent of it."""
    rows = []
    for claim in CLAIMS:
        exact = claim.exact()
        rows.append(
            {
                "claim": claim.claim,
                "printed": claim.printed,
                "exact": exact,
                "sign": SIGNS.get(claim.unit, ""),
                "digits": DIGITS.get(claim.unit, 1),
                "difference": 100 * (claim.printed / exact - 1),
                "source": claim.source,
                "reason": claim.reason,
            }
        )
    return rows
