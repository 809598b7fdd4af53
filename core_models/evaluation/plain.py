"""Plain sentences that a teacher would type: is a fitting word first, or in the first five?

Each sentence hides one word and has a written list of words that may stand there. The gap holds
one piece, so only the listed words that are whole pieces of a vocabulary can be found; a sentence
none of whose words is one counts as missed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from core_models.errors import InputError, listed_of
from core_models.model import Model
from core_models.prediction import FillRequest, fill_many
from core_models.tasks import tables

SHIPPED = (
    Path(__file__).resolve().parents[2] / "assets" / "plain_sentences" / "plain-sentences.jsonl"
)
MASK = "[MASK]"
FIRST = 5


class PlainSentence(NamedTuple):
    """A sentence with one gap."""

    language: str
    """``en`` or ``zh``."""
    topic: str
    text: str
    """With ``[MASK]`` once."""
    words: tuple[str, ...]
    """What may stand there."""


@dataclass(frozen=True)
class PlainResult:
    """How many sentences have a fitting word first, and in the first five."""

    asked: int
    first: int
    in_first_five: int
    unsayable: int
    """Sentences none of whose words is one piece of the vocabulary, or whose gap is beyond the last
    piece that the model reads; they count as missed."""


def read_plain_sentences(
    language: str | None = None, path: str | Path = SHIPPED
) -> list[PlainSentence]:
    """Sentences of a JSONL file, of one language or of all; InputError names the line."""
    table = tables.read(path)
    found = []
    for number, record in zip(table.numbers, table.records, strict=True):
        if (sentence := _sentence(record)) is None:
            raise InputError(
                f"{table.name}, line {number}: needs a JSON object with language, topic, a text "
                f"with {MASK} once, and a list of words."
            )
        found.append(sentence)
    return [each for each in found if language in (None, each.language)]


def _sentence(values: Mapping[str, Any]) -> PlainSentence | None:
    """None where something is missing or is no text."""
    words = values.get("words")
    said = [values.get(name) for name in ("language", "topic", "text")]
    if not isinstance(words, list) or not all(isinstance(each, str) for each in (*said, *words)):
        return None
    language, topic, text = map(str, said)
    if not words or text.count(MASK) != 1:
        return None
    return PlainSentence(language, topic, text, tuple(words))


def evaluate_plain_sentences(model: Model, sentences: Sequence[PlainSentence]) -> PlainResult:
    """Ask for the hidden word of every sentence.

    Args:
        model: In eval mode. A causal model sees only the words on the left of the gap.
        sentences: In the model's language.

    Raises:
        InputError: The model predicts no pieces, or a sentence has more than 32 words to look up.
    """
    sentences = listed_of(PlainSentence, sentences, "sentences")
    requests = [FillRequest(text=each.text, top_k=1, watch=each.words) for each in sentences]
    best = []
    for found in fill_many(model, requests):
        if isinstance(found, InputError):
            raise found
        # There is no prediction where a model reads fewer pieces than stand before the gap.
        watched = [word for each in found.predictions for word in each.watched]
        best.append(min((word.rank for word in watched if word.rank is not None), default=None))
    known = [rank for rank in best if rank is not None]
    return PlainResult(
        asked=len(sentences),
        first=sum(rank == 1 for rank in known),
        in_first_five=sum(rank <= FIRST for rank in known),
        unsayable=len(best) - len(known),
    )
