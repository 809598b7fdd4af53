"""Pairs of texts: what a next-sentence or sentence-order head notices, topic or order."""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core_models.errors import InputError, listed_of
from core_models.model import Model
from core_models.prediction import judge_pairs
from core_models.prediction.fill import whole
from core_models.tasks.words import is_chinese

_ROWS = 32
"""Pairs of one pass."""


class TextPair(NamedTuple):
    """Two neighbouring texts of one document, and one from elsewhere."""

    first: str
    second: str
    other: str
    """Where another document goes on, as long as ``second`` in sentences."""


@dataclass(frozen=True)
class TextPairsResult:
    """What a head says of the same texts as they stand, swapped, and with a stranger."""

    head: str
    """``next_sentence`` or ``sentence_order``."""
    accuracy: float
    """Mean of ``followed`` and of what the head was trained to find: ``random`` (next sentence) or
    ``swapped`` (sentence order); half by chance."""
    followed: float
    """Share of the pairs as they stand that are taken for such, in 0..1."""
    random: float
    """Share of the pairs with a stranger that are found out."""
    swapped: float
    """Share of the swapped pairs that are found out."""
    pairs: int


def choose_text_pairs(
    documents: Sequence[Sequence[str]], *, most: int = 500, seed: int = 0
) -> list[TextPair]:
    """Two sentences and the next two, from every part of held-out documents; none is used twice.

    Args:
        documents: Sentences of each document.
        most: Of so many pairs, drawn evenly.
        seed: Of the drawing, and of the strangers.

    Raises:
        InputError: Fewer than two documents have four sentences, or ``most`` is below 0.
    """
    generator = random.Random(seed)
    gap = "" if is_chinese([sentence for document in documents for sentence in document]) else " "
    found = [
        (number, gap.join(document[start : start + 2]), gap.join(document[start + 2 : start + 4]))
        for number, document in enumerate(documents)
        for start in range(0, len(document) - 3, 4)
    ]
    if len({number for number, _, _ in found}) < 2:
        raise InputError("Pairs of texts need at least two documents of four sentences.")
    chosen = generator.sample(found, min(whole(most, "most", 0, sys.maxsize), len(found)))
    pairs = []
    for number, first, second in chosen:
        stranger = number
        while stranger == number:
            stranger, _, other = generator.choice(found)
        pairs.append(TextPair(first, second, other))
    return pairs


def evaluate_text_pairs(model: Model, pairs: Sequence[TextPair]) -> TextPairsResult:
    """Ask a model's next-sentence or sentence-order head about every pair in three forms.

    Raises:
        InputError: The model has neither head, or there is no pair.
    """
    pairs = listed_of(TextPair, pairs, "pairs")
    if not pairs:
        raise InputError("Pairs of texts are asked about; there is none.")
    doubted = [
        _doubted(model, asked)
        for asked in (
            [(pair.first, pair.second) for pair in pairs],
            [(pair.first, pair.other) for pair in pairs],
            [(pair.second, pair.first) for pair in pairs],
        )
    ]
    head = judge_pairs(model, [pairs[0][:2]])[0].head
    followed, stranger, swapped = 1 - doubted[0], doubted[1], doubted[2]
    wrong = stranger if head == "next_sentence" else swapped
    return TextPairsResult(head, (followed + wrong) / 2, followed, stranger, swapped, len(pairs))


def _doubted(model: Model, pairs: Sequence[tuple[str, str]]) -> float:
    """Share of the pairs that the head takes for random or swapped."""
    verdicts = [
        verdict.probabilities[1] > verdict.probabilities[0]
        for start in range(0, len(pairs), _ROWS)
        for verdict in judge_pairs(model, pairs[start : start + _ROWS])
    ]
    return sum(verdicts) / len(verdicts)
