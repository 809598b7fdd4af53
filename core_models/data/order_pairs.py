"""Documents to examples: ALBERT's pairs of neighbouring segments in or out of order."""

import random
from collections.abc import Iterator, Sequence

from core_models.data.corpus import Corpus
from core_models.data.pairs import PAIR_SPECIALS, Example, pair_room, random_segment, trim
from core_models.errors import InputError

IN_ORDER, SWAPPED = 0, 1
"""Values of `Example.label`."""


def sentence_order(
    corpus: Corpus,
    documents: Sequence[int] | None = None,
    *,
    max_length: int,
    generator: random.Random,
    short_probability: float = 0.1,
    random_for_lone: bool = True,
    sentences: int | None = None,
    specials: int = PAIR_SPECIALS,
) -> Iterator[Example]:
    """Sentence pairs for sentence-order prediction, one pass over the documents.

    The procedure of google-research/albert, create_pretraining_data.py (arXiv 1909.11942, section
    3.1): a chunk of sentences is filled up to the target length and cut at a random sentence; with
    probability 0.5 the parts change places (label 1). A chunk of one sentence has no order: the
    released code pairs it with text from another document and calls that swapped, which is noise
    in the labels.

    Args:
        corpus: The pieces.
        documents: Numbers of the documents to use, random segments included; None = all.
        max_length: Pieces of an example, special ones included.
        generator: Source of all draws.
        short_probability: Share of documents cut into chunks of a random shorter length.
        random_for_lone: What to do with chunks of one sentence: True = as the released code,
            False = leave them out.
        sentences: Chunks are chosen by their number of sentences instead: both parts have the same
            number, drawn from 1 to this, so that length tells nothing of their order. A chunk that
            is filled up ends with the sentence that crosses its length, which is a long one more
            often. None = as the released code.
        specials: Special pieces of a pair, those of the tokenizer's template (RoBERTa has 4).

    Yields:
        Examples in the order of the documents; shuffle them before training.

    Raises:
        InputError: No room for two pieces, or fewer than two documents to draw random text from.
    """
    chosen = range(corpus.num_documents) if documents is None else documents
    if sentences is not None:
        yield from _halves(corpus, chosen, pair_room(max_length, specials), sentences, generator)
        return
    if random_for_lone and len(chosen) < 2:
        raise InputError(
            f"Sentence-order pairs need at least 2 documents, not {len(chosen)}, as a single "
            "sentence is paired with another document; separate documents by a blank line."
        )
    most = pair_room(max_length, specials)
    for document in chosen:
        target = most
        if generator.random() < short_probability:
            target = generator.randint(2, most)
        for bounds in _chunks(corpus.bounds(document), target):
            if len(bounds) > 2:
                middle = bounds[generator.randint(1, len(bounds) - 2)]
                pair = (bounds[0], middle), (middle, bounds[-1])
                label = SWAPPED if generator.random() < 0.5 else IN_ORDER
                first, second = pair[::-1] if label == SWAPPED else pair
            elif random_for_lone:
                first = bounds[0], bounds[1]
                wanted = target - (first[1] - first[0])
                second = random_segment(corpus, document, chosen, wanted, generator)
                label = SWAPPED
            else:
                continue
            yield Example(*trim(first, second, most, generator), label)


def _halves(
    corpus: Corpus, chosen: Sequence[int], most: int, sentences: int, generator: random.Random
) -> Iterator[Example]:
    """Chunks of an even number of sentences, cut in their middle."""
    for document in chosen:
        bounds = corpus.bounds(document)
        begin = 0
        while begin + 2 < len(bounds):
            each = min(generator.randint(1, sentences), (len(bounds) - 1 - begin) // 2)
            parts = [(bounds[begin + n], bounds[begin + n + each]) for n in (0, each)]
            label = SWAPPED if generator.random() < 0.5 else IN_ORDER
            first, second = parts[::-1] if label == SWAPPED else parts
            yield Example(*trim(first, second, most, generator), label)
            begin += 2 * each


def _chunks(bounds: Sequence[int], target: int) -> Iterator[Sequence[int]]:
    """Bounds of runs of sentences that reach ``target`` pieces, the last one perhaps not."""
    last = len(bounds) - 1
    begin = 0
    while begin < last:
        end = begin + 1
        while end < last and bounds[end] - bounds[begin] < target:
            end += 1
        yield bounds[begin : end + 1]
        begin = end
