import functools
import operator
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from core_models.data import Corpus, Example, next_sentence, segments
from core_models.data.pairs import IS_NEXT, IS_RANDOM, NO_PAIR
from core_models.errors import InputError

Documents = list[list[list[int]]]


def numbered(shape: list[list[int]]) -> Documents:
    """Documents of sentences of these lengths; every piece of the corpus is a different number."""
    counter = iter(range(10**6))
    return [[[next(counter) for _ in range(n)] for n in lengths] for lengths in shape]


def random_shape(seed: int, *, documents: int = 30) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randint(1, 12) for _ in range(rng.randint(1, 9))] for _ in range(documents)]


def ids_of(corpus: Corpus, example: Example) -> tuple[list[int], list[int]]:
    a, b, c, d = example[:4]
    return corpus.tokens[a:b].tolist(), corpus.tokens[c:d].tolist()


def reference(
    documents: Documents, most: int, rng: random.Random, short: float
) -> Iterator[tuple[list[int], list[int], int]]:
    """The published procedure on lists, word for word (MODELS of BERT, section data)."""
    for number, document in enumerate(documents):
        target = rng.randint(2, most) if rng.random() < short else most
        chunk: list[list[int]] = []
        i = 0
        while i < len(document):
            chunk.append(document[i])
            if i == len(document) - 1 or sum(map(len, chunk)) >= target:
                a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
                first = functools.reduce(operator.iadd, chunk[:a_end], [])
                second: list[int] = []
                if len(chunk) == 1 or rng.random() < 0.5:
                    label = 1
                    for _ in range(10):
                        other = rng.randint(0, len(documents) - 1)
                        if other != number:
                            break
                    start = rng.randint(0, len(documents[other]) - 1)
                    for sentence in documents[other][start:]:
                        second += sentence
                        if len(second) >= target - len(first):
                            break
                    i -= len(chunk) - a_end
                else:
                    label = 0
                    second = functools.reduce(operator.iadd, chunk[a_end:], [])
                while len(first) + len(second) > most:
                    longer = first if len(first) > len(second) else second
                    if rng.random() < 0.5:
                        del longer[0]
                    else:
                        longer.pop()
                yield first, second, label
                chunk = []
            i += 1


@pytest.mark.parametrize("seed", range(12))
def test_pairs_equal_the_published_procedure(seed: int) -> None:
    documents = numbered(random_shape(seed))
    corpus = Corpus.from_ids(documents)
    length = (8, 16, 32)[seed % 3]
    short = (0.1, 0.9)[seed % 2]
    found = [
        (*ids_of(corpus, example), example.label)
        for example in next_sentence(
            corpus, max_length=length, generator=random.Random(seed), short_probability=short
        )
    ]
    assert found == list(reference(documents, length - 3, random.Random(seed), short))


def test_label_0_is_the_true_continuation_and_1_is_another_document() -> None:
    corpus = Corpus.from_ids(numbered(random_shape(1, documents=200)))
    ends = corpus.sentences[corpus.documents]

    def document_of(piece: int) -> int:
        return int((ends <= piece).sum()) - 1

    seen = Counter()
    for example in next_sentence(corpus, max_length=128, generator=random.Random(1)):
        same = document_of(example.first_start) == document_of(example.second_start)
        seen[example.label, same] += 1
        if example.label == IS_NEXT:
            assert example.first_stop == example.second_start  # nothing is cut at this length
    assert set(seen) == {(IS_NEXT, True), (IS_RANDOM, False)}


def test_chunks_of_one_sentence_are_always_random() -> None:
    corpus = Corpus.from_ids(numbered([[5]] * 300))
    found = list(next_sentence(corpus, max_length=64, generator=random.Random(0)))
    assert len(found) == 300
    assert {example.label for example in found} == {IS_RANDOM}


@pytest.mark.parametrize("seed", range(5))
def test_every_sentence_is_used_exactly_once(seed: int) -> None:
    corpus = Corpus.from_ids(numbered(random_shape(seed, documents=80)))
    used = Counter[int]()
    # At this length nothing is trimmed, so whole sentences can be counted piece by piece.
    for example in next_sentence(
        corpus, max_length=1000, generator=random.Random(seed), short_probability=0.0
    ):
        used.update(range(example.first_start, example.first_stop))
        if example.label == IS_NEXT:
            used.update(range(example.second_start, example.second_stop))
    assert used == Counter(range(len(corpus.tokens)))


def test_half_of_the_pairs_are_random_where_chunks_are_long() -> None:
    corpus = Corpus.from_ids(numbered([[4] * 40] * 400))
    labels = [
        e.label
        for e in next_sentence(
            corpus, max_length=43, generator=random.Random(0), short_probability=0.0
        )
    ]
    # A chunk whose rest is put back always counts as one random pair: half, but for document ends.
    assert 0.5 < sum(labels) / len(labels) < 0.54


def test_pairs_fit_and_neither_part_is_empty() -> None:
    corpus = Corpus.from_ids(numbered([[90, 1, 50], [1], [200, 3], [2, 2, 2]] * 20))
    for length in (5, 6, 17, 64):
        for example in next_sentence(corpus, max_length=length, generator=random.Random(length)):
            a, b, c, d = example[:4]
            assert b > a
            assert d > c
            assert (b - a) + (d - c) <= length - 3


def test_random_parts_come_from_the_documents_given() -> None:
    corpus = Corpus.from_ids(numbered([[3, 3, 3]] * 20))
    allowed = set(range(0, 9 * 4)) | set(range(9 * 10, 9 * 12))
    chosen = [0, 1, 2, 3, 10, 11]
    for example in next_sentence(corpus, chosen, max_length=12, generator=random.Random(0)):
        assert set(range(example.first_start, example.first_stop)) <= allowed
        assert set(range(example.second_start, example.second_stop)) <= allowed


def test_short_pairs_occur_in_their_share_of_documents() -> None:
    corpus = Corpus.from_ids(numbered([[1] * 500] * 400))
    lengths = Counter()
    for example in next_sentence(corpus, max_length=103, generator=random.Random(0)):
        size = example.first_stop - example.first_start + example.second_stop - example.second_start
        lengths[example.first_start // 500, size] += 1
    short = {document for (document, size), count in lengths.items() if size < 100 and count > 4}
    assert 0.05 < len(short) / 400 < 0.15


def test_impossible_pairs_are_refused() -> None:
    corpus = Corpus.from_ids(numbered([[3, 3], [3]]))
    with pytest.raises(InputError, match="at least 2 documents"):
        list(next_sentence(corpus, [0], max_length=16, generator=random.Random(0)))
    with pytest.raises(InputError, match="at least 5"):
        list(next_sentence(corpus, max_length=4, generator=random.Random(0)))


# --- single segments --------------------------------------------------------------------------


def test_segments_by_hand() -> None:
    corpus = Corpus.from_ids(numbered([[3, 4, 2], [9], [1, 12, 1]]))
    found = [example[:2] for example in segments(corpus, max_length=10)]
    # 8 pieces fit: 3+4, then 2; the sentence of 9 and that of 12 are cut.
    assert found == [(0, 7), (7, 9), (9, 17), (17, 18), (18, 19), (19, 27), (27, 32)]


@pytest.mark.parametrize("seed", range(4))
def test_segments_cover_every_piece_once_and_fit(seed: int) -> None:
    corpus = Corpus.from_ids(numbered(random_shape(seed)))
    starts = set(corpus.sentences[corpus.documents].tolist())
    used: list[int] = []
    for example in segments(corpus, max_length=9):
        assert 0 < example.first_stop - example.first_start <= 7
        assert (example.second_start, example.second_stop, example.label) == (0, 0, NO_PAIR)
        assert not starts & set(range(example.first_start + 1, example.first_stop))
        used += range(example.first_start, example.first_stop)
    assert used == list(range(len(corpus.tokens)))
