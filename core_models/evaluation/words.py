"""Hidden words of running text: a measure that does not depend on the vocabulary.

Losses per piece cannot be compared between tokenizers, as each cuts words differently. Here whole
words of the text are hidden, the same words for every model, and the pieces of a word are asked
for from left to right, so that their probabilities multiply to that of the word
(arXiv 2305.10588, section 3). Masked models and XLNet see the rest of the sentence on both sides, a
causal model the left side only.

A piece may hold several words, as Chinese ones of byte-level and unigram vocabularies do, where
each character is a word. It is hidden and asked for as a whole, and each of its words has an equal
part of its log-probability: in every piece it counts once.
"""

import math
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from core_models.errors import InputError, listed_of
from core_models.model import Model
from core_models.prediction.fill import whole
from core_models.prediction.passes import HEAD_ROWS, first_told, head_of, hidden_at, seen_with
from core_models.tasks.words import MARKS
from core_models.tokenizer import Encoding

_LETTERS = rf"(?:[^\W\d_\u4e00-\u9fff][{MARKS}]*)+"
_WORD = re.compile(rf"[\u4e00-\u9fff]|{_LETTERS}(?:['\u2019]{_LETTERS})?")
_LONGEST = 400
"""Characters of a sentence; a longer one might be cut off by a model with few positions."""

_MOST_NATS = 709.0
"""Of a word, in a mean: no number is larger than exp of a little more."""


class Word(NamedTuple):
    """A word of a sentence: characters start:stop."""

    sentence: str
    start: int
    stop: int


@dataclass(frozen=True)
class WordsResult:
    """Figures over hidden words."""

    words: int
    accuracy: float
    """Share of words of which every piece was the model's first choice, in 0..1."""
    perplexity: float
    """exp of the mean of -log p(word | the rest of its sentence)."""
    pieces_per_word: float
    unknown: float
    """Share of words with an unknown piece, with one beyond the last that the model reads of their
    sentence, or, for a causal head, with no piece before them; they count as wrong and are left out
    of the perplexity, as the probability of "unknown", or of a part, says nothing about the
    word."""


class _Question(NamedTuple):
    """One piece of one word, hidden with the pieces of the word to its right."""

    word: int
    seen: Encoding
    position: int
    wanted: int
    share: float
    """Of the piece, as its other words have the rest."""


_BLANK = ("\N{LOWER ONE EIGHTH BLOCK}", "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}")


def choose_words(sentences: Sequence[str], *, most: int = 2000, seed: int = 0) -> list[Word]:
    """At most ``most`` words (Chinese: characters), drawn uniformly from all of a text.

    Raises:
        InputError: There is no word at all.
    """
    found = [
        Word(sentence, *match.span())
        for sentence in sentences
        if len(sentence) <= _LONGEST
        for match in _WORD.finditer(sentence)
        if len(_WORD.findall(sentence)) > 1
    ]
    if not found:
        raise InputError("The text holds no sentence with two words or more.")
    least = whole(most, "most", 0, sys.maxsize)
    drawn = random.Random(seed).sample(found, min(least, len(found)))
    return sorted(drawn)


def evaluate_words(model: Model, words: Sequence[Word], *, batch_size: int = 64) -> WordsResult:
    """Hide each word by itself and ask for it.

    Args:
        model: In eval mode, with a head that predicts pieces.
        words: As `choose_words` gives them; the same for every model that is compared.
        batch_size: Hidden copies per forward pass.

    Raises:
        InputError: The model predicts no pieces, knows no piece of any word, or there is no word.
    """
    words = listed_of(Word, words, "words")
    if not words:
        raise InputError("Words are hidden and asked for; there is none.")
    if type(batch_size) is not int or batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be a whole number from 1.")
    head = head_of(model)
    questions, unknown, pieces = _questions(model, words)
    if not questions:
        raise InputError("Every word is unknown to the model; is this text in its language?")
    questions.sort(key=lambda question: len(question.seen))
    sums: dict[int, float] = {}
    wrong: set[int] = set()
    for start in range(0, len(questions), min(batch_size, HEAD_ROWS)):
        chunk = questions[start : start + min(batch_size, HEAD_ROWS)]
        places = [(row, question.position) for row, question in enumerate(chunk)]
        with torch.inference_mode():
            logits = head(hidden_at(model, [q.seen for q in chunk], places)).float()
            wanted = torch.tensor([q.wanted for q in chunk], device=logits.device)
            logs = logits.gather(1, wanted[:, None])[:, 0] - logits.logsumexp(1)
            right = (logits.argmax(1) == wanted).tolist()
        for question, value, hit in zip(chunk, logs.tolist(), right, strict=True):
            sums[question.word] = sums.get(question.word, 0.0) + value * question.share
            if not hit:
                wrong.add(question.word)
    return WordsResult(
        words=len(words),
        accuracy=(len(sums) - len(wrong)) / len(words),
        perplexity=math.exp(min(_MOST_NATS, -math.fsum(sums.values()) / len(sums))),
        pieces_per_word=pieces / len(sums),
        unknown=unknown / len(words),
    )


def _questions(model: Model, words: Sequence[Word]) -> tuple[list[_Question], int, float]:
    """All questions, the number of unknown words, and the pieces of the known ones."""
    tokenizer = model.tokenizer
    encodings: dict[str, Encoding] = {}
    found: list[_Question] = []
    unknown, pieces = 0, 0.0
    first = first_told(model)
    for number, word in enumerate(words):
        if word.sentence not in encodings:
            encodings[word.sentence] = model.encode([word.sentence])[0]
        encoding = encodings[word.sentence]
        positions = [
            position
            for position, (start, stop) in enumerate(encoding.offsets)
            if not encoding.special[position]
            and start < stop
            and start < word.stop
            and stop > word.start
        ]
        # Unigram and byte-level vocabularies cut a rare word's blank off as a piece of its own: in
        # sight it would tell that such a word follows, and its probability is a part of the word's.
        if positions and encoding.pieces[positions[0] - 1] in _BLANK:
            positions.insert(0, positions[0] - 1)
        ids = [encoding.ids[position] for position in positions]
        cut = encoding.truncated and max(stop for _, stop in encoding.offsets) < word.stop
        if not ids or cut or tokenizer.unknown_id in ids or positions[0] < first:
            unknown += 1
            continue
        for nth, (position, index) in enumerate(zip(positions, ids, strict=True)):
            seen = seen_with(encoding, dict.fromkeys(positions[nth:], tokenizer.mask_id))
            share = 1 / _words_in(word.sentence, *encoding.offsets[position])
            found.append(_Question(number, seen, position, index, share))
            pieces += share
    return found, unknown, pieces


def _words_in(sentence: str, start: int, stop: int) -> int:
    """How many words have characters of start:stop; of a blank alone 1."""
    spans = (match.span() for match in _WORD.finditer(sentence))
    return max(1, sum(begin < stop and end > start for begin, end in spans))
