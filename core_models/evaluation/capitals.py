"""Which capitals a model knows: facts of the Atlas, completed.

Asks "The capital of X is [MASK]." for every country whose capital is one piece, and counts apart
the countries for which that very wording is not in the Atlas.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

from core_models.errors import InputError
from core_models.model import Model
from core_models.prediction import FillRequest, fill_many

ATLAS = Path(__file__).resolve().parents[2] / "assets" / "atlas" / "english-atlas.txt"
QUESTION = "The capital of {} is [MASK]."
_WORDINGS = (
    r"The capital of (?P<country>.+) is (?P<capital>.+)\.",
    r"(?P<capital>.+) is the capital of (?P<country>.+)\.",
    r"(?P<country>.+) has its capital in (?P<capital>.+)\.",
    r"The capital city of (?P<country>.+) is called (?P<capital>.+)\.",
)


@dataclass(frozen=True)
class CapitalsResult:
    """How many capitals come first, and in the first five."""

    asked: int
    first: int
    in_first_five: int
    asked_new: int
    """Countries for which the question's wording is not in the Atlas."""
    first_new: int
    in_first_five_new: int


def capitals(text: str) -> dict[str, str]:
    """Countries and their capitals, as the Atlas says them."""
    found = {}
    for line in text.splitlines():
        for wording in _WORDINGS:
            match = re.fullmatch(wording, line)
            if match:
                found[match["country"]] = match["capital"]
    return dict(sorted(found.items()))


def evaluate_capitals(model: Model) -> CapitalsResult:
    """Ask for every capital that is one piece of the model's vocabulary.

    Raises:
        InputError: The model predicts no pieces, or knows no capital as one piece.
    """
    text = ATLAS.read_text("utf-8")
    asked = {c: k for c, k in capitals(text).items() if _is_one_piece(model, k)}
    if not asked:
        raise InputError("No capital is one piece of this vocabulary.")
    requests = [
        FillRequest(text=QUESTION.format(country), top_k=1, watch=[capital])
        for country, capital in asked.items()
    ]
    ranks: dict[str, float] = {}
    for country, result in zip(asked, fill_many(model, requests), strict=True):
        if isinstance(result, InputError):
            raise result
        # There is no prediction where a model reads fewer pieces than stand before the gap.
        watched = [word.rank for each in result.predictions for word in each.watched]
        ranks[country] = next((rank for rank in watched if rank is not None), math.inf)
    new = [rank for country, rank in ranks.items() if f"The capital of {country} is" not in text]
    return CapitalsResult(
        asked=len(ranks),
        first=sum(rank == 1 for rank in ranks.values()),
        in_first_five=sum(rank <= 5 for rank in ranks.values()),
        asked_new=len(new),
        first_new=sum(rank == 1 for rank in new),
        in_first_five_new=sum(rank <= 5 for rank in new),
    )


def _is_one_piece(model: Model, word: str) -> bool:
    pieces = model.tokenizer.pieces_of(word)
    return len(pieces) == 1 and pieces[0] != model.tokenizer.unknown_id
