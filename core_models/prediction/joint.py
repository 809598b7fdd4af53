"""Several gaps at once, and words of several pieces in one gap.

====================  ============================================================================
way                   how the gaps are filled
====================  ============================================================================
independent           each by the best piece while all others are still open, in one pass
left_to_right         the leftmost first; what was put in is seen by those after it
most_confident        the gap with the most probable best piece first, then again with that in place
beam                  left to right with the best few beginnings kept at every gap
====================  ============================================================================

A masked model learns p(piece | the pieces that are seen), nothing about several gaps together. The
chain rule makes a probability of the whole from these, one for every order, and the orders need not
agree (arXiv 1902.04094).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import torch

from core_models.errors import InputError, by_position, listed
from core_models.model import Model
from core_models.prediction.fill import Question, whole
from core_models.prediction.gaps import PADDED_TOKENS, Filled, Gaps
from core_models.prediction.passes import head_of, hidden_at
from core_models.prediction.results import Filling, FillRequest, WordScore
from core_models.tokenizer import Encoding, Tokenizer

MAX_WORDS = 16
MAX_PIECES = 24
"""Most pieces of a word."""


def fill_jointly(
    model: Model,
    text: str,
    *,
    masks: Sequence[int] = (),
    way: str = "left_to_right",
    width: int = 4,
    hidden: Sequence[int] = (),
) -> list[Filling]:
    """Put one piece into each of several gaps.

    [MASK], [UNK] and the special pieces are never put in; they keep their share of the probability.

    Args:
        model: In eval mode, with a head that predicts pieces.
        text: Every [MASK] in it is a gap, too.
        masks: Positions of further gaps (piece numbers, [CLS] is 0).
        way: One of `WAYS`.
        width: Beginnings that ``beam`` keeps, and fillings that it returns at most.
        hidden: Positions that the model does not see either, but that stay open.

    Returns:
        One filling; for ``beam`` up to ``width`` of them, the most probable first.

    Raises:
        InputError: A value is out of range, there is no gap, or the model predicts no pieces.
    """
    return Gaps(model, text, masks, hidden).fill(way, width=width)


def score_filling(
    model: Model,
    text: str,
    pieces: Filled,
    *,
    order: Sequence[int] | None = None,
    hidden: Sequence[int] = (),
) -> Filling:
    """How likely a given filling of several gaps is.

    Args:
        model: In eval mode, with a head that predicts pieces.
        text: A [MASK] in it that ``pieces`` does not fill stays open.
        pieces: Piece id of each gap by position.
        order: Positions in the order of the chain rule; None = from left to right.
        hidden: Further positions that stay open.

    Raises:
        InputError: As `fill_jointly`; also an order that does not name each gap once.
    """
    pieces = by_position(pieces, "pieces")
    return Gaps(model, text, list(pieces), hidden, every=False).score(pieces, order=order)


def score_words(
    model: Model,
    text: str,
    words: Sequence[str],
    *,
    gap: Sequence[int],
    hidden: Sequence[int] = (),
) -> list[WordScore]:
    """How likely words of any number of pieces are in one gap, their pieces from left to right.

    The gap is stretched or shrunk to as many pieces as the word has, so a masked model and XLNet
    know that number: words of unlike numbers of pieces are not quite comparable. A causal model
    sees none of the gap.

    Args:
        model: In eval mode, with a head that predicts pieces.
        text: The sentence.
        words: One score each, in order.
        gap: Neighbouring positions, which the word stands in place of.
        hidden: Further positions that the model does not see.

    Raises:
        InputError: A value is out of range, or the model predicts no pieces.
    """
    head = head_of(model)
    words = listed(words, "words")
    if len(words) > MAX_WORDS or not all(isinstance(word, str) for word in words):
        raise InputError(f"words must be a list of at most {MAX_WORDS} words.")
    places = [whole(p, "A position", 0, model.longest) for p in listed(gap, "gap")]
    places.sort()
    if not places or places != list(range(places[0], places[0] + len(places))):
        raise InputError(f"gap is {places}; it must be neighbouring positions, at least one.")
    question = Question(model, FillRequest(text, [*places, *listed(hidden, "hidden")]))
    ids = [model.tokenizer.pieces_of(word) for word in words]
    most = model.longest - len(question.seen) + len(places)
    notes = [
        _refusal(model.tokenizer, word, own, min(most, MAX_PIECES))
        for word, own in zip(words, ids, strict=True)
    ]
    asked = [
        (_stretched(question.seen, places, own[:done], len(own), model.tokenizer), places[0] + done)
        for own, note in zip(ids, notes, strict=True)
        if note is None
        for done in range(len(own))
    ]
    wanted = chain.from_iterable(own for own, note in zip(ids, notes, strict=True) if note is None)
    values: list[float] = []
    with torch.inference_mode():
        for chunk in _chunks(asked):
            states = hidden_at(
                model, [e for e, _ in chunk], [(r, p) for r, (_, p) in enumerate(chunk)]
            )
            logs = head(states).float().log_softmax(-1)
            values += [float(row[next(wanted)]) for row in logs]
    found = iter(values)
    return [
        _word_score(model.tokenizer, word, own, note, [next(found) for _ in own if note is None])
        for word, own, note in zip(words, ids, notes, strict=True)
    ]


def _stretched(
    seen: Encoding, gap: Sequence[int], done: Sequence[int], pieces: int, tokenizer: Tokenizer
) -> Encoding:
    """The encoding with a word of so many pieces in the gap, the first of them in place."""
    ids = [*done, *[tokenizer.mask_id] * (pieces - len(done))]
    first, after = gap[0], gap[-1] + 1
    segment = seen.segment_ids[first]
    # Only ids and segments are read from here on; the other lists would need places in the text.
    return replace(
        seen,
        ids=seen.ids[:first] + ids + seen.ids[after:],
        segment_ids=seen.segment_ids[:first] + [segment] * pieces + seen.segment_ids[after:],
    )


def _refusal(tokenizer: Tokenizer, word: str, ids: Sequence[int], most: int) -> str | None:
    """Why a word cannot be scored."""
    if not ids:
        return f"“{word}” holds no character that the model knows."
    if tokenizer.unknown_id in ids:
        return f"“{word}” is not in the model's vocabulary, not even in pieces."
    if len(ids) > most:
        return f"“{word}” is {len(ids)} pieces here; at most {most} fit."
    return None


def _word_score(
    tokenizer: Tokenizer, word: str, ids: Sequence[int], note: str | None, steps: list[float]
) -> WordScore:
    pieces = tuple(tokenizer.display(index) for index in ids)
    if note is not None:
        return WordScore(word, pieces, note=note)
    return WordScore(word, pieces, tuple(steps), math.fsum(steps))


def _chunks(asked: Sequence[tuple[Encoding, int]]) -> list[list[tuple[Encoding, int]]]:
    """Parts small enough for one padded pass, in order."""
    chunks: list[list[tuple[Encoding, int]]] = [[]]
    longest = 0
    for entry in asked:
        longest = max(longest, len(entry[0]))
        if chunks[-1] and (len(chunks[-1]) + 1) * longest > PADDED_TOKENS:
            chunks.append([])
            longest = len(entry[0])
        chunks[-1].append(entry)
    return chunks if asked else []
