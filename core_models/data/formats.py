"""How documents are cut into examples: every input format by its name.

=================  ================================================================================
``next_sentence``   pairs of runs of sentences, half of them random (BERT; RoBERTa's SEGMENT-PAIR)
``sentence_order``  neighbouring runs of sentences, half of them swapped (ALBERT)
``sentence_pair``   pairs of single sentences, half of them random (RoBERTa's SENTENCE-PAIR)
``full_sentences``  sentences on end, over the ends of documents (RoBERTa's FULL-SENTENCES)
``doc_sentences``   sentences on end within a document (RoBERTa's DOC-SENTENCES)
``single``          the same without sentences that are too long (SpanBERT)
``recurrent``       whole documents, from which `Recurrent` cuts aligned streams (XLNet)
=================  ================================================================================

RoBERTa's formats are those of arXiv 1907.11692, section 4.2.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from core_models.data.corpus import Corpus
from core_models.data.order_pairs import sentence_order
from core_models.data.pairs import (
    IS_NEXT,
    IS_RANDOM,
    NO_PAIR,
    PAIR_SPECIALS,
    Example,
    next_sentence,
    pair_room,
    segments,
    trim,
)
from core_models.errors import InputError

PAIRED = frozenset({"next_sentence", "sentence_order", "sentence_pair"})
"""Formats whose examples have two segments and a label."""
FIXED = frozenset({"full_sentences", "doc_sentences", "single", "recurrent"})
"""Formats without a draw: a second pass gives the same examples."""
FORMATS = (
    "next_sentence",
    "sentence_order",
    "sentence_pair",
    "full_sentences",
    "doc_sentences",
    "single",
    "recurrent",
)
_TRIES = 10


def examples(
    name: str,
    corpus: Corpus,
    documents: Sequence[int] | None = None,
    *,
    max_length: int,
    generator: random.Random,
    short_probability: float = 0.1,
    random_for_lone: bool = True,
    order_sentences: int | None = None,
    specials: int = PAIR_SPECIALS,
) -> Iterator[Example]:
    """One pass over the documents in a format.

    Args:
        name: One of `FORMATS`.
        corpus: The pieces.
        documents: Numbers of the documents to use; None = all.
        max_length: Pieces of an example, special ones included; unused by ``recurrent``.
        generator: Source of all draws; unused by the formats in `FIXED`.
        short_probability: Share of documents cut into shorter chunks, for ``next_sentence`` and
            ``sentence_order``.
        random_for_lone: What ``sentence_order`` does with chunks of one sentence, see there.
        order_sentences: Its ``sentences``, see there.
        specials: Special pieces of a pair, those of the tokenizer's template (RoBERTa has 4).

    Yields:
        Examples in the order of the documents.

    Raises:
        InputError: Unknown name, too few documents, or ``max_length`` too small.
    """
    pairs: dict[str, Callable[..., Iterator[Example]]] = {
        "next_sentence": next_sentence,
        "sentence_order": partial(
            sentence_order, random_for_lone=random_for_lone, sentences=order_sentences
        ),
    }
    runs = {"full_sentences": full_sentences, "doc_sentences": segments, "single": single}
    if name in pairs:
        return pairs[name](
            corpus,
            documents,
            max_length=max_length,
            generator=generator,
            short_probability=short_probability,
            specials=specials,
        )
    if name in runs:
        return runs[name](corpus, documents, max_length=max_length)
    if name == "sentence_pair":
        return sentence_pair(
            corpus, documents, max_length=max_length, generator=generator, specials=specials
        )
    if name == "recurrent":
        return whole_documents(corpus, documents)
    raise InputError(f"No input format {name!r}; allowed: {', '.join(FORMATS)}.")


def sentence_pair(
    corpus: Corpus,
    documents: Sequence[int] | None = None,
    *,
    max_length: int,
    generator: random.Random,
    specials: int = PAIR_SPECIALS,
) -> Iterator[Example]:
    """Pairs of single sentences for next-sentence prediction (RoBERTa's SENTENCE-PAIR).

    A sentence is paired with the one after it (label 0), or, with probability 0.5 and always at
    the end of a document, with a random sentence of another document (label 1). Every sentence is
    used once, random second ones not counted. RoBERTa's authors raise the batch size so that a
    batch holds as many pieces as one of longer examples.

    Args:
        corpus: The pieces.
        documents: Numbers of the documents to use, random sentences included; None = all.
        max_length: Pieces of an example, special ones included; longer pairs are trimmed.
        generator: Source of all draws.
        specials: Special pieces of a pair, those of the tokenizer's template (RoBERTa has 4).

    Yields:
        Examples in the order of the documents; shuffle them before training.

    Raises:
        InputError: Fewer than two documents, or no room for two pieces.
    """
    chosen = range(corpus.num_documents) if documents is None else documents
    if len(chosen) < 2:
        raise InputError(
            f"Sentence pairs need at least 2 documents, not {len(chosen)}; "
            "separate documents by a blank line."
        )
    most = pair_room(max_length, specials)
    for document in chosen:
        spans = list(itertools.pairwise(corpus.bounds(document)))
        at = 0
        while at < len(spans):
            first = spans[at]
            is_random = at == len(spans) - 1 or generator.random() < 0.5
            second = _other(corpus, document, chosen, generator) if is_random else spans[at + 1]
            at += 1 if is_random else 2
            label = IS_RANDOM if is_random else IS_NEXT
            yield Example(*trim(first, second, most, generator), label)


def _other(
    corpus: Corpus, document: int, others: Sequence[int], generator: random.Random
) -> tuple[int, int]:
    """A random sentence of another document."""
    for _ in range(_TRIES):
        other = others[generator.randint(0, len(others) - 1)]
        if other != document:
            break
    bounds = corpus.bounds(other)
    start = generator.randint(0, len(bounds) - 2)
    return bounds[start], bounds[start + 1]


def full_sentences(
    corpus: Corpus, documents: Sequence[int] | None = None, *, max_length: int
) -> Iterator[Example]:
    """Whole sentences on end, over the ends of documents (RoBERTa's FULL-SENTENCES).

    Where a document ends inside an example a further separator stands before the next one. The
    documents need not be neighbours in the corpus.

    Args:
        corpus: The pieces.
        documents: Numbers of the documents in the order of use; None = all.
        max_length: Pieces of an example, special ones included. A longer sentence is cut into
            several examples, so that no piece is lost.

    Yields:
        Examples without second segment.

    Raises:
        InputError: ``max_length`` is below 3.
    """
    _check_length(max_length)
    most = max_length - 2
    runs: list[tuple[int, int]] = []
    used = 0
    for document in range(corpus.num_documents) if documents is None else documents:
        inside = False  # whether the last run is of this document
        for start, stop in itertools.pairwise(corpus.bounds(document)):
            begin = start
            if runs and used + (not inside) + stop - begin > most:
                yield _joined(runs)
                runs, used, inside = [], 0, False
            while stop - begin > most:
                yield Example(begin, begin + most, 0, 0, NO_PAIR)
                begin += most
            used += stop - begin + (bool(runs) and not inside)
            if inside:
                runs[-1] = runs[-1][0], stop
            else:
                runs.append((begin, stop))
            inside = True
    if runs:
        yield _joined(runs)


def _joined(runs: Sequence[tuple[int, int]]) -> Example:
    return Example(*runs[0], 0, 0, NO_PAIR, tuple(runs[1:]))


def single(
    corpus: Corpus, documents: Sequence[int] | None = None, *, max_length: int
) -> Iterator[Example]:
    """One block of whole sentences, never across documents (SpanBERT, section 3.3).

    As DOC-SENTENCES, but a sentence that does not fit by itself is left out and ends the block
    before it, as in facebookresearch/SpanBERT (BlockDataset). The released code also loses the
    block before such a sentence where it is the last of its document; here it is kept.

    Args:
        corpus: The pieces.
        documents: Numbers of the documents to use; None = all.
        max_length: Pieces of an example, [CLS] and [SEP] included.

    Yields:
        Examples without second segment.

    Raises:
        InputError: ``max_length`` is below 3.
    """
    _check_length(max_length)
    most = max_length - 2
    for document in range(corpus.num_documents) if documents is None else documents:
        begin = end = corpus.bounds(document)[0]
        for start, stop in itertools.pairwise(corpus.bounds(document)):
            if stop - begin > most:
                if end > begin:
                    yield Example(begin, end, 0, 0, NO_PAIR)
                begin = stop if stop - start > most else start
            end = stop
        if end > begin:
            yield Example(begin, end, 0, 0, NO_PAIR)


def whole_documents(corpus: Corpus, documents: Sequence[int] | None = None) -> Iterator[Example]:
    """Every document as one example of any length, the source of `Recurrent`."""
    for document in range(corpus.num_documents) if documents is None else documents:
        bounds = corpus.bounds(document)
        yield Example(bounds[0], bounds[-1], 0, 0, NO_PAIR)


def _check_length(max_length: int) -> None:
    if max_length < 3:
        raise InputError(f"max_length {max_length} must be at least 3.")
