"""Documents to examples: BERT's sentence pairs, and plain segments.

Examples are places in a `Corpus`, not copies of it.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core_models.data.corpus import Corpus
from core_models.errors import InputError

IS_NEXT, IS_RANDOM, NO_PAIR = 0, 1, -100
"""Values of `Example.label`."""
PAIR_SPECIALS = 3
"""Special pieces of a pair in most vocabularies: [CLS] and two [SEP]."""
_TRIES = 10
"""Draws for a document other than the first segment's."""


class Example(NamedTuple):
    """One input: pieces start:stop of a corpus, and of a second segment (empty = none)."""

    first_start: int
    first_stop: int
    second_start: int
    second_stop: int
    label: int
    """0 = the second segment follows the first, 1 = it is random, -100 = there is none."""
    further: tuple[tuple[int, int], ...] = ()
    """More runs of pieces, start and stop, that belong to the first segment, each behind a
    separator of its own (another document in RoBERTa's FULL-SENTENCES)."""


def next_sentence(
    corpus: Corpus,
    documents: Sequence[int] | None = None,
    *,
    max_length: int,
    generator: random.Random,
    short_probability: float = 0.1,
    specials: int = PAIR_SPECIALS,
) -> Iterator[Example]:
    """Sentence pairs for next-sentence prediction, one pass over the documents.

    The procedure of google-research/bert, create_pretraining_data.py: a chunk of sentences is
    filled up to the target length; with probability 0.5, and always when it holds one sentence,
    its second part is put back and replaced by text from another document (label 1). So more than
    half of the pairs are random where chunks of one sentence occur. Every sentence is used once,
    random second segments not counted.

    Args:
        corpus: The pieces.
        documents: Numbers of the documents to use, random segments included; None = all.
        max_length: Pieces of an example, special ones included.
        generator: Source of all draws.
        short_probability: Share of documents cut into chunks of a random shorter length.
        specials: Special pieces of a pair, those of the tokenizer's template (RoBERTa has 4).

    Yields:
        Examples in the order of the documents; shuffle them before training.

    Raises:
        InputError: Fewer than two documents, or no room for two pieces.
    """
    chosen = range(corpus.num_documents) if documents is None else documents
    if len(chosen) < 2:
        raise InputError(
            f"Next-sentence pairs need at least 2 documents, not {len(chosen)}; "
            "separate documents by a blank line."
        )
    most = pair_room(max_length, specials)
    for document in chosen:
        yield from _pairs_of(corpus, document, chosen, most, generator, short_probability)


def pair_room(max_length: int, specials: int) -> int:
    """Pieces of both texts of a pair together.

    Raises:
        InputError: No pair fits: there is room for less than a piece of each.
    """
    if max_length < specials + 2:
        raise InputError(
            f"max_length {max_length} must be at least {specials + 2}: {specials} special pieces "
            "and two texts."
        )
    return max_length - specials


def _pairs_of(
    corpus: Corpus,
    document: int,
    others: Sequence[int],
    most: int,
    generator: random.Random,
    short_probability: float,
) -> Iterator[Example]:
    """The pairs of one document, of at most ``most`` pieces each."""
    target = most
    if generator.random() < short_probability:
        target = generator.randint(2, most)
    bounds = corpus.bounds(document)
    last = len(bounds) - 1
    begin = 0
    while begin < last:
        end = begin + 1
        while end < last and bounds[end] - bounds[begin] < target:
            end += 1
        # Sentences begin..end-1 are the chunk; its first part ends before sentence `middle`.
        middle = begin + (generator.randint(1, end - begin - 1) if end - begin >= 2 else 1)
        first = bounds[begin], bounds[middle]
        if end - begin == 1 or generator.random() < 0.5:
            wanted = target - (first[1] - first[0])
            second = random_segment(corpus, document, others, wanted, generator)
            label = IS_RANDOM
            begin = middle  # the rest of the chunk is put back
        else:
            second = bounds[middle], bounds[end]
            label = IS_NEXT
            begin = end
        yield Example(*trim(first, second, most, generator), label)


def random_segment(
    corpus: Corpus,
    document: int,
    others: Sequence[int],
    wanted: int,
    generator: random.Random,
) -> tuple[int, int]:
    """Whole sentences from a random place of another document, ``wanted`` pieces or more."""
    for _ in range(_TRIES):
        other = others[generator.randint(0, len(others) - 1)]
        if other != document:
            break
    bounds = corpus.bounds(other)
    start = generator.randint(0, len(bounds) - 2)
    stop = start + 1
    while stop < len(bounds) - 1 and bounds[stop] - bounds[start] < wanted:
        stop += 1
    return bounds[start], bounds[stop]


def trim(
    first: tuple[int, int], second: tuple[int, int], most: int, generator: random.Random
) -> tuple[int, int, int, int]:
    """Drop pieces one by one from the longer segment, at a random end, until both fit."""
    (a, b), (c, d) = first, second
    while (b - a) + (d - c) > most:
        front = generator.random() < 0.5
        if b - a > d - c:
            a, b = (a + 1, b) if front else (a, b - 1)
        else:
            c, d = (c + 1, d) if front else (c, d - 1)
    return a, b, c, d


def segments(
    corpus: Corpus, documents: Sequence[int] | None = None, *, max_length: int
) -> Iterator[Example]:
    """Single segments of whole sentences, never across documents (RoBERTa's DOC-SENTENCES).

    Args:
        corpus: The pieces.
        documents: Numbers of the documents to use; None = all.
        max_length: Pieces of an example, [CLS] and [SEP] included. A longer sentence is cut into
            several examples, so that no piece is lost.

    Yields:
        Examples without second segment.

    Raises:
        InputError: ``max_length`` is below 3.
    """
    if max_length < 3:
        raise InputError(f"max_length {max_length} must be at least 3.")
    most = max_length - 2
    for document in range(corpus.num_documents) if documents is None else documents:
        bounds = corpus.bounds(document)
        start = bounds[0]
        for sentence, stop in itertools.pairwise(bounds):
            if stop - start > most and sentence > start:
                yield Example(start, sentence, 0, 0, NO_PAIR)
                start = sentence
            while stop - start > most:
                yield Example(start, start + most, 0, 0, NO_PAIR)
                start += most
        if bounds[-1] > start:
            yield Example(start, bounds[-1], 0, 0, NO_PAIR)
