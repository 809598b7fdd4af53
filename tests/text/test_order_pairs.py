import functools
import operator
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import pytest

from core_models.data import Corpus
from core_models.data.order_pairs import IN_ORDER, SWAPPED, sentence_order
from core_models.errors import InputError

Documents = list[list[list[int]]]


def numbered(seed: int, *, documents: int = 30, longest: int = 9) -> Documents:
    """Documents of random sentences; every piece of the corpus is a different number."""
    rng = random.Random(seed)
    counter = iter(range(10**6))
    return [
        [[next(counter) for _ in range(rng.randint(1, 12))] for _ in range(rng.randint(1, longest))]
        for _ in range(documents)
    ]


def reference(
    documents: Documents, most: int, rng: random.Random, short: float
) -> Iterator[tuple[list[int], list[int], int]]:
    """The published procedure on lists."""
    for number, document in enumerate(documents):
        target = rng.randint(2, most) if rng.random() < short else most
        chunk: list[list[int]] = []
        for i, sentence in enumerate(document):
            chunk.append(sentence)
            if i < len(document) - 1 and sum(map(len, chunk)) < target:
                continue
            a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            first = functools.reduce(operator.iadd, chunk[:a_end], [])
            second: list[int] = []
            if len(chunk) == 1:
                label = 1
                for _ in range(10):
                    other = rng.randint(0, len(documents) - 1)
                    if other != number:
                        break
                start = rng.randint(0, len(documents[other]) - 1)
                for extra in documents[other][start:]:
                    second += extra
                    if len(second) >= target - len(first):
                        break
            else:
                second = functools.reduce(operator.iadd, chunk[a_end:], [])
                label = 1 if rng.random() < 0.5 else 0
                if label:
                    first, second = second, first
            while len(first) + len(second) > most:
                longer = first if len(first) > len(second) else second
                if rng.random() < 0.5:
                    del longer[0]
                else:
                    longer.pop()
            yield first, second, label
            chunk = []


@pytest.mark.parametrize("seed", range(6))
def test_pairs_equal_the_published_procedure(seed: int) -> None:
    documents = numbered(seed)
    corpus = Corpus.from_ids(documents)
    length, short = (8, 16, 32)[seed % 3], (0.1, 0.9)[seed % 2]
    found = [
        (corpus.tokens[a:b].tolist(), corpus.tokens[c:d].tolist(), label)
        for a, b, c, d, label, _ in sentence_order(
            corpus, max_length=length, generator=random.Random(seed), short_probability=short
        )
    ]
    assert found == list(reference(documents, length - 3, random.Random(seed), short))


def test_label_0_is_in_order_and_1_swapped() -> None:
    corpus = Corpus.from_ids([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    seen = {
        (*corpus.tokens[a:b].tolist(), *corpus.tokens[c:d].tolist(), label)
        for seed in range(20)
        for a, b, c, d, label, _ in sentence_order(
            corpus, max_length=8, generator=random.Random(seed), short_probability=0.0
        )
    }
    expected = {(1, 2, 3, 4, IN_ORDER), (3, 4, 1, 2, SWAPPED)}
    assert seen == expected | {(5, 6, 7, 8, IN_ORDER), (7, 8, 5, 6, SWAPPED)}


def test_half_of_the_pairs_are_swapped_and_lone_sentences_can_be_left_out() -> None:
    corpus = Corpus.from_ids(numbered(7, documents=2000))
    pairs = list(
        sentence_order(corpus, max_length=40, generator=random.Random(1), random_for_lone=False)
    )
    for a, b, c, d, label, _ in pairs:
        assert (b <= c) if label == IN_ORDER else (d <= a)
        assert b > a
        assert d > c
    share = sum(example.label for example in pairs) / len(pairs)
    assert abs(share - 0.5) < 0.04


def test_short_chunks_give_their_order_away_by_length() -> None:
    """A chunk ends with the sentence that crosses its length, which is a long one more often.

    A property of the released procedure: a head can be right without a look at the order.
    """
    rng = random.Random(0)
    lengths = [[1 + int(rng.expovariate(1 / 20)) for _ in range(40)] for _ in range(400)]
    corpus = Corpus.from_ids([[[5] * length for length in document] for document in lengths])
    told = {}
    for short in (0.0, 1.0):
        pairs = sentence_order(
            corpus,
            max_length=128,
            generator=random.Random(1),
            short_probability=short,
            random_for_lone=False,
        )
        right = [(b - a > d - c) == (label == SWAPPED) for a, b, c, d, label, _ in pairs]
        assert len(right) > 2000
        told[short] = sum(right) / len(right)
    assert 0.52 < told[0.0] < told[1.0] - 0.05


def test_parts_of_as_many_sentences_do_not_give_their_order_away() -> None:
    rng = random.Random(0)
    lengths = [[1 + int(rng.expovariate(1 / 20)) for _ in range(40)] for _ in range(400)]
    corpus = Corpus.from_ids([[[5] * length for length in document] for document in lengths])
    pairs = list(sentence_order(corpus, max_length=512, generator=random.Random(1), sentences=3))
    ends = (corpus.bounds(document) for document in range(corpus.num_documents))
    bounds = sorted(set().union(*ends))
    known = set(bounds)
    numbers = set()
    for a, b, c, d, label, _ in pairs:
        assert (b == c) if label == IN_ORDER else (d == a), "the parts are neighbours"
        assert {a, b, c, d} <= known
        inside = [
            bisect_left(bounds, stop) - bisect_right(bounds, begin)
            for begin, stop in ((a, b), (c, d))
        ]
        assert inside[0] == inside[1]
        numbers.add(1 + inside[0])
    assert numbers == {1, 2, 3}
    right = [(b - a > d - c) == (label == SWAPPED) for a, b, c, d, label, _ in pairs]
    assert abs(sum(right) / len(right) - 0.5) < 0.03
    lone = Corpus.from_ids([[[1, 2]], [[3], [4], [5]]])
    found = list(sentence_order(lone, max_length=8, generator=random.Random(0), sentences=2))
    assert len(found) == 1, "a lone sentence has no order, and the third one no neighbour left"


def test_a_lone_sentence_is_called_swapped_as_in_the_released_code() -> None:
    corpus = Corpus.from_ids([[[1, 2]], [[3, 4]], [[5]]])
    pairs = list(sentence_order(corpus, max_length=8, generator=random.Random(0)))
    assert [example.label for example in pairs] == [SWAPPED] * 3
    assert not list(
        sentence_order(corpus, max_length=8, generator=random.Random(0), random_for_lone=False)
    )


def test_wrong_arguments_are_refused() -> None:
    corpus = Corpus.from_ids([[[1, 2], [3]]])
    with pytest.raises(InputError, match="at least 2 documents"):
        list(sentence_order(corpus, max_length=8, generator=random.Random(0)))
    with pytest.raises(InputError, match="at least 5"):
        list(
            sentence_order(corpus, max_length=4, generator=random.Random(0), random_for_lone=False)
        )
