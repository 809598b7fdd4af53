"""Acceptability: does a model find the right sentence of a pair likelier?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from core_models.errors import InputError, listed_of
from core_models.model import Model
from core_models.prediction import score
from core_models.tasks import tables

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "minimal_pairs" / "minimal-pairs.jsonl"


class Pair(NamedTuple):
    """Two sentences, of which only the first is acceptable."""

    phenomenon: str
    good: str
    bad: str


@dataclass(frozen=True)
class PairsResult:
    """Shares of pairs of which the good sentence has the higher score."""

    accuracy: float
    """Mean over the phenomena, in 0..1."""
    phenomena: dict[str, float]
    """Of each phenomenon."""
    pairs: int


def read_pairs(path: str | Path = SHIPPED) -> list[Pair]:
    """Pairs of a JSONL file with the fields phenomenon, good and bad; InputError names the line."""
    table = tables.read(path)
    found = []
    for number, record in zip(table.numbers, table.records, strict=True):
        values = [record.get(name) for name in Pair._fields]
        if not all(isinstance(value, str) for value in values):
            raise InputError(
                f"{table.name}, line {number}: needs a JSON object with the fields "
                f"{', '.join(Pair._fields)}, each of them text."
            )
        found.append(Pair(*map(str, values)))
    return found


def evaluate_minimal_pairs(model: Model, pairs: Sequence[Pair]) -> PairsResult:
    """Compare the (pseudo-)log-likelihoods of both sentences; a tie counts as wrong.

    Sums over tokens, not means (as in arXiv 1910.14659, section 4.2).

    Raises:
        InputError: The model predicts no pieces, or there is no pair.
    """
    pairs = listed_of(Pair, pairs, "pairs")
    if not pairs:
        raise InputError("Minimal pairs are compared; there is none.")
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.good, pair.bad)))
    totals = dict(zip(texts, (s.total for s in score(model, texts)), strict=True))
    hits: dict[str, list[float]] = {}
    for pair in pairs:
        good, bad = totals[pair.good], totals[pair.bad]
        hits.setdefault(pair.phenomenon, []).append(float(good > bad))
    phenomena = {name: sum(found) / len(found) for name, found in hits.items()}
    return PairsResult(sum(phenomena.values()) / len(phenomena), phenomena, len(pairs))
