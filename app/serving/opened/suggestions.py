"""Published checkpoints to begin with: one or two of every family."""

from collections.abc import Sequence
from typing import NamedTuple

import core_models as cm
from app.serving.opened.library import Opened
from core_models.hub import fetch as hub
from core_models.prediction.passes import KINDS


class Suggestion(NamedTuple):
    """A checkpoint of the hub."""

    name: str
    family: str
    """For people."""
    size: str
    """Published size in the catalogue (:func:`core_models.count` counts it)."""
    millions: float
    """Parameters with the pretraining heads; the exact number is told by the hub."""
    language: str = "en"

    @property
    def megabytes(self) -> int:
        """Of float32 weights."""
        return round(4 * self.millions)


SUGGESTIONS = (
    Suggestion("google-bert/bert-base-uncased", "BERT", "bert-base-uncased", 110.1),
    Suggestion("google-bert/bert-base-chinese", "BERT", "bert-base-chinese", 102.9, "zh"),
    Suggestion("FacebookAI/roberta-base", "RoBERTa", "roberta-base", 124.7),
    Suggestion("FacebookAI/xlm-roberta-base", "XLM-R", "xlm-roberta-base", 278.3),
    Suggestion("almanach/camembert-base", "CamemBERT", "camembert-base", 110.7, "fr"),
    Suggestion("distilbert/distilbert-base-uncased", "DistilBERT", "distilbert-base-uncased", 67.0),
    Suggestion("distilbert/distilroberta-base", "DistilRoBERTa", "distilroberta-base", 82.2),
    Suggestion("albert/albert-base-v2", "ALBERT", "albert-base", 11.8),
    Suggestion("SpanBERT/spanbert-base-cased", "SpanBERT", "spanbert-base-cased", 110.3),
    Suggestion("xlnet/xlnet-base-cased", "XLNet", "xlnet-base-cased", 116.8),
    Suggestion(
        "google/electra-small-discriminator", "ELECTRA", "electra-small-discriminator", 13.5
    ),
    Suggestion("google/electra-small-generator", "ELECTRA", "electra-small-generator", 13.5),
    Suggestion("hfl/chinese-macbert-base", "MacBERT", "chinese-macbert-base", 102.9, "zh"),
    Suggestion("microsoft/deberta-base", "DeBERTa", "deberta-base", 139.2),
    Suggestion("microsoft/deberta-v3-small", "DeBERTa v3", "deberta-v3-small", 141.9),
    Suggestion("answerdotai/ModernBERT-base", "ModernBERT", "modernbert-base", 149.7),
    Suggestion("EuroBERT/EuroBERT-210m", "EuroBERT", "eurobert-210m", 310.3),
    Suggestion("chandar-lab/NeoBERT", "NeoBERT", "neobert", 245.1),
)


def choices(opened: Opened) -> list[tuple[str, str]]:
    """Titles and hub ids: what is on this machine, the server's list, published checkpoints."""
    known = {each.name: each for each in SUGGESTIONS}
    here = [name for name in hub.fetched() if opened.policy.allows(name)]
    listed = list(opened.policy.ids)
    others = list(known) if opened.policy.mode == "any" else []
    return [
        (_title(name, known.get(name), name in here), name)
        for name in dict.fromkeys([*here, *listed, *others])
    ]


def parent_of(family: str, heads: Sequence[str], language: str) -> Suggestion | None:
    """The published checkpoint that fills gaps as a model of this kind does; None = none is known.

    Args:
        family: Of the model.
        heads: That it has.
        language: That it reads.
    """
    return next(
        (
            each
            for each in SUGGESTIONS
            if cm.size(each.size).family == family
            and each.language == language
            and set(heads) & set(KINDS) & set(cm.size(each.size).objectives)
        ),
        None,
    )


def _title(name: str, known: Suggestion | None, here: bool) -> str:
    """Every part of it is the same in all languages."""
    parts = [name]
    if known:
        parts += [known.family, f"{known.millions:g} M", f"{known.megabytes:,} MB"]
    return " · ".join([*parts, *(["✓"] if here else [])])
