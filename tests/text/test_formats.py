import itertools
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from core_models.data import Corpus, Example, TokenStore
from core_models.data.formats import (
    FIXED,
    FORMATS,
    PAIRED,
    examples,
    full_sentences,
    sentence_pair,
    single,
)
from core_models.data.layout import Layout
from core_models.data.pairs import IS_NEXT, IS_RANDOM, NO_PAIR
from core_models.errors import InputError
from core_models.tokenizer import Specials, Template, Tokenizer
from core_models.tokenizer.files import Slot


def numbered(*documents: tuple[int, ...]) -> Corpus:
    """A corpus of sentences of given lengths, whose pieces are 100, 101, ..."""
    at = iter(range(100, 10_000))
    return Corpus.from_ids([[[next(at) for _ in range(n)] for n in d] for d in documents])


def random_corpus(seed: int, count: int = 30, longest: int = 9) -> Corpus:
    draw = random.Random(seed)
    return numbered(
        *(tuple(draw.randint(1, longest) for _ in range(draw.randint(1, 7))) for _ in range(count))
    )


def texts(example: Example) -> list[tuple[int, int]]:
    return [example[:2], *example.further]


# --- SENTENCE-PAIR -------------------------------------------------------------------------------


def test_sentence_pairs_are_two_single_sentences() -> None:
    corpus = random_corpus(0, 200)
    bounds = corpus.sentences.tolist()
    ends = dict(itertools.pairwise(bounds))
    document_of = np.searchsorted(corpus.documents, np.arange(corpus.num_sentences), side="right")
    number = {start: n for n, start in enumerate(bounds[:-1])}
    found = list(sentence_pair(corpus, max_length=64, generator=random.Random(1)))
    for a, b, c, d, label, further in found:
        assert (ends[a], ends[c], further) == (b, d, ())
        same = document_of[number[a]] == document_of[number[c]]
        assert (label == IS_NEXT) == same
        if label == IS_NEXT:
            assert number[c] == number[a] + 1
    used = [e.first_start for e in found]
    used += [e.second_start for e in found if e.label == IS_NEXT]
    assert sorted(used) == bounds[:-1]


def test_half_of_the_sentences_before_another_one_get_a_random_partner() -> None:
    corpus = numbered(*((3,) * 400 for _ in range(5)))
    found = list(sentence_pair(corpus, max_length=64, generator=random.Random(2)))
    share = sum(e.label == IS_RANDOM for e in found) / len(found)
    # 1300 fair coins: standard deviation 0.014
    assert abs(share - 0.5) < 0.05


def test_long_sentence_pairs_are_trimmed_and_a_lone_document_is_refused() -> None:
    corpus = numbered((30, 30), (30,))
    for a, b, c, d, *_ in sentence_pair(corpus, max_length=23, generator=random.Random(0)):
        assert (b - a) + (d - c) == 20
    with pytest.raises(InputError, match="at least 2 documents"):
        list(sentence_pair(corpus, [1], max_length=23, generator=random.Random(0)))
    with pytest.raises(InputError, match="max_length 4"):
        list(sentence_pair(corpus, max_length=4, generator=random.Random(0)))


# --- FULL-SENTENCES and single blocks ------------------------------------------------------------


def test_full_sentences_by_hand() -> None:
    # Places:  d0: 0-3, 3-5   d1: 5-9   d2: 9-10, 10-22, 22-24
    corpus = numbered((3, 2), (4,), (1, 12, 2))
    found = list(full_sentences(corpus, max_length=12))  # ten pieces of text
    assert found == [
        Example(0, 5, 0, 0, NO_PAIR, ((5, 9),)),  # 3 + 2 + separator + 4; one more does not fit
        Example(9, 10, 0, 0, NO_PAIR),
        Example(10, 20, 0, 0, NO_PAIR),
        Example(20, 24, 0, 0, NO_PAIR),
    ]


def test_full_sentences_follow_the_order_of_the_documents_given() -> None:
    corpus = numbered((3, 2), (4,), (1, 2))
    assert list(full_sentences(corpus, [2, 0], max_length=32)) == [
        Example(9, 12, 0, 0, NO_PAIR, ((0, 5),))
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [3, 7, 30])
def test_full_sentences_lose_nothing_and_are_as_full_as_can_be(seed: int, most: int) -> None:
    corpus = random_corpus(seed, longest=12)
    chosen = random.Random(seed).sample(range(corpus.num_documents), 20)
    found = list(full_sentences(corpus, chosen, max_length=most + 2))
    pieces = [i for e in found for start, stop in texts(e) for i in range(start, stop)]
    wanted = [i for n in chosen for i in range(corpus.bounds(n)[0], corpus.bounds(n)[-1])]
    assert pieces == wanted
    sizes = [sum(b - a + 1 for a, b in texts(e)) - 1 for e in found]
    assert max(sizes) <= most
    ends = set(corpus.sentences.tolist())
    for size, example, after in zip(sizes, found, found[1:], strict=False):
        start = after.first_start
        if start in ends:  # the next example begins with a whole sentence, which had no room
            stop = min(e for e in ends if e > start)
            last = texts(example)[-1][1]
            starts_document = start in corpus.sentences[corpus.documents]
            joins = start == last and not starts_document
            assert size + (not joins) + min(stop - start, most + 1) > most


def test_a_single_block_leaves_long_sentences_out() -> None:
    corpus = numbered((3, 2, 12, 4), (11,), (5, 5, 1))
    assert list(single(corpus, max_length=12)) == [
        Example(0, 5, 0, 0, NO_PAIR),
        Example(17, 21, 0, 0, NO_PAIR),
        Example(32, 42, 0, 0, NO_PAIR),
        Example(42, 43, 0, 0, NO_PAIR),
    ]


# --- all formats ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_by_its_name(name: str) -> None:
    corpus = random_corpus(3)

    def cut(seed: int) -> list[Example]:
        made = examples(name, corpus, range(25), max_length=24, generator=random.Random(seed))
        return list(made)

    assert cut(0) == cut(0)
    assert (cut(0) == cut(1)) == (name in FIXED)
    assert all((e.label != NO_PAIR) == (name in PAIRED) for e in cut(0))
    last = corpus.sentences[corpus.documents[25]]
    assert all(max(e.first_stop, e.second_stop) <= last for e in cut(0))


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="'docs'; allowed: next_sentence"):
        list(examples("docs", random_corpus(0), max_length=24, generator=random.Random(0)))


# --- in a store ----------------------------------------------------------------------------------


def test_documents_are_parted_by_what_stands_between_two_texts(tokenizer: Tokenizer) -> None:
    """A decoder's template may put nothing behind a text."""
    first, second, start = Slot("$A", 0), Slot("$B", 1), Slot("[CLS]", 0)
    layout = Layout.of(tokenizer)
    open_ = Template(single=(start, first), pair=(start, first, Slot("[CLS]", 1), second))
    assert replace(layout, template=open_).separator == start
    bare = replace(layout, template=replace(open_, pair=(start, first, second)))
    with pytest.raises(InputError, match=r"no special piece behind a text .* doc_sentences"):
        _ = bare.separator


@pytest.mark.parametrize("left", [False, True])
def test_documents_in_one_row_are_parted_by_a_separator(
    left: bool, sentences: list[str], tmp_path: Path
) -> None:
    trailing = Template.trailing(Specials(pad="<pad>", unknown="<unk>"))
    tok = Tokenizer.train(
        sentences[:500], vocabulary=400, kind="unigram", template=trailing if left else None
    )
    corpus = numbered((3, 2), (4,), (6,), (2, 2))
    chosen = [3, 0, 2, 1]
    made = list(full_sentences(corpus, chosen, max_length=15))
    assert made[0] == Example(15, 19, 0, 0, NO_PAIR, ((0, 5),))
    assert [len(e.further) for e in made] == [1, 1]
    pairs = [Example(0, 3, 5, 9, IS_RANDOM), Example(5, 9, 0, 0, NO_PAIR)]
    TokenStore.build(tmp_path / "full", corpus, {"train": [*made, *pairs]}, tok)
    store = TokenStore.open(tmp_path / "full")
    assert [store.example(n) for n in range(4)] == [*made, *pairs]
    assert store.lengths.tolist() == [12, 13, 10, 6]
    assert store.longest == 13

    batch = store.batch([1, 0, 2, 1, 3], length=16)

    def texts_of(row: int) -> list[list[int]]:
        real = batch.input_ids[row][batch.attention_mask[row]].tolist()
        found: list[list[int]] = [[]]
        for piece in real:
            if piece == tok.sep_id:
                found.append([])
            elif piece != tok.cls_id:
                found[-1].append(piece)
        return [run for run in found if run]

    def pieces(start: int, stop: int) -> list[int]:
        return list(range(100 + start, 100 + stop))

    second = [pieces(9, 15), pieces(5, 9)]
    assert texts_of(0) == texts_of(3) == second
    assert texts_of(1) == [pieces(15, 19), pieces(0, 5)]
    assert texts_of(2) == [pieces(0, 3), pieces(5, 9)]
    assert texts_of(4) == [pieces(5, 9)]
    assert batch.lengths.tolist() == [13, 12, 10, 13, 6]
    assert torch.equal(batch.attention_mask.sum(1), batch.lengths)
    separators = (batch.input_ids == tok.sep_id).sum(1).tolist()
    assert separators == [2, 2, 2, 2, 1]
    words = batch.words
    assert ((words >= 0).sum(1) == torch.tensor([10, 9, 7, 10, 4])).all()
    assert words.amax(1).tolist() == [9, 8, 6, 9, 3]  # every piece is a word here
    segments = batch.segment_ids[0][batch.attention_mask[0]].tolist()
    assert Counter(segments) == ({0: 12, 2: 1} if left else {0: 13})


def test_stores_without_further_runs_have_no_file_for_them(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    TokenStore.build(
        tmp_path / "s", numbered((3,)), {"train": [Example(0, 3, 0, 0, -100)]}, tokenizer
    )
    assert not list((tmp_path / "s").glob("further*"))
