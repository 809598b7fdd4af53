import random
from collections import Counter
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from core_models.data import Corpus
from core_models.data.similar import (
    Similar,
    lexicon,
    similar_table,
    similar_words,
    word_vectors,
)
from core_models.errors import InputError
from core_models.masking.spans import SpanMasked
from core_models.masking.tokens import (
    IGNORED,
    KEPT,
    RANDOM,
    SIMILAR,
    UNTOUCHED,
    generator_for,
    quota,
)

V = 400
PAIRS = {(2 * n, 2 * n + 1): ((n + 200, n + 300),) for n in range(5, 60)}


def rows(count: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, maskable and words of rows ``[CLS] ... [SEP]`` of words of two pieces."""
    draw = torch.randint(5, 60, (count, length // 2 - 1), generator=generator_for(7))
    ids = torch.full((count, length), 2)
    ids[:, -1] = 3
    ids[:, 1:-1:2], ids[:, 2:-1:2] = 2 * draw, 2 * draw + 1
    words = ((torch.arange(length) - 1) // 2).expand(count, -1).masked_fill(ids < 5, -1)
    return ids, ids > 4, words


def masked(count: int, **options: object) -> tuple[Tensor, SpanMasked]:
    ids, maskable, words = rows(count, 64)
    values = {"table": Similar(PAIRS), "generator": generator_for(1), "vocabulary": V}
    return ids, similar_words(ids, maskable, words, **values | options)  # type: ignore[arg-type]


def test_whole_words_become_similar_words() -> None:
    ids, found = masked(300)
    chosen = found.cases != UNTOUCHED
    assert torch.equal(found.labels, torch.where(chosen, ids, IGNORED))
    assert torch.equal(found.inputs[~chosen], ids[~chosen])
    assert (chosen.sum(1) <= quota(64, 0.15)).all()
    assert (chosen.sum(1) >= quota(64, 0.15) - 1).all()  # words of two pieces
    first, second = slice(1, -1, 2), slice(2, -1, 2)
    assert torch.equal(found.cases[:, first], found.cases[:, second])
    alike = found.cases[:, first] == SIMILAR
    assert torch.equal(found.inputs[:, first][alike], ids[:, first][alike] // 2 + 200)
    assert torch.equal(found.inputs[:, second][alike], ids[:, first][alike] // 2 + 300)
    kept = found.cases == KEPT
    assert torch.equal(found.inputs[kept], ids[kept])


def test_words_come_80_10_10() -> None:
    _, found = masked(4000)
    words = found.cases[:, 1:-1:2]
    cases = Counter(words[words != UNTOUCHED].tolist())
    total = sum(cases.values())
    expected = {SIMILAR: 0.8, RANDOM: 0.1, KEPT: 0.1}
    assert set(cases) == set(expected)
    # chi-square with two degrees of freedom, 99.9 % below 13.8
    assert sum((cases[c] - total * e) ** 2 / (total * e) for c, e in expected.items()) < 13.8


def test_a_word_without_a_similar_one_becomes_random() -> None:
    _, found = masked(2000, table=Similar({}), random_ids=torch.arange(10, 20))
    assert SIMILAR not in found.cases
    share = (found.cases == RANDOM).sum() / (found.cases != UNTOUCHED).sum()
    assert abs(share.item() - 0.9) < 0.02
    drawn = found.inputs[found.cases == RANDOM]
    counts = torch.bincount(drawn)[10:20].double()
    assert int(drawn.min()) >= 10
    # chi-square with nine degrees of freedom, 99.9 % below 27.9
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 27.9


def test_several_similar_words_are_equally_likely() -> None:
    three = dict.fromkeys(PAIRS, ((1, 1), (2, 2), (3, 3)))
    _, found = masked(2000, table=Similar(three), split=(1.0, 0.0, 0.0))
    counts = torch.bincount(found.inputs[found.cases == SIMILAR], minlength=4)[1:4].double()
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 2 * 13.8  # pieces come in pairs


def test_rows_follow_their_own_generator() -> None:
    ids, maskable, words = rows(4, 64)
    options = {"table": Similar(PAIRS), "vocabulary": V}
    whole = similar_words(
        ids, maskable, words, generator=[generator_for(n) for n in range(4)], **options
    )
    part = similar_words(ids[2], maskable[2], words[2], generator=[generator_for(2)], **options)
    assert torch.equal(part.inputs, whole.inputs[2])


# --- the table -----------------------------------------------------------------------------------


def test_words_are_counted() -> None:
    corpus = Corpus.from_ids([[[5, 6, 5, 6, 7], [7, 5]]])
    assert lexicon(corpus) == [(5,), (6,), (7,)]
    starts = corpus.starts.copy()
    starts[[1, 3]] = False  # "5 6" is a word; the last "5" one of its own
    whole = Corpus(corpus.tokens, starts, corpus.sentences, corpus.documents)
    assert lexicon(whole) == [(5, 6), (7,), (5,)]
    assert lexicon(whole, 1) == [(5, 6)]


def test_neighbours_have_equally_many_pieces_by_hand() -> None:
    words = [(1,), (2,), (3,), (4, 5), (6, 7), (8,), (9, 9, 9)]
    vectors = torch.tensor([[1.0, 0], [0.9, 0.1], [0, 99], [1, 0.01], [-1, 0], [0, 0], [1, 0]])
    table = similar_table(words, vectors, neighbours=2)
    assert table.neighbours == {
        (1,): ((2,), (3,)),
        (2,): ((1,), (3,)),
        (3,): ((2,), (1,)),
        (4, 5): ((6, 7),),
        (6, 7): ((4, 5),),
    }  # (8,) is unknown, (9, 9, 9) alone of its length
    with pytest.raises(ValueError, match="7 vectors for 1 words"):
        similar_table(words[:1], vectors)


def test_tables_are_saved(tmp_path: Path) -> None:
    table = Similar({(1,): ((2,), (3,)), (2,): ((1,),), (4, 5): ((6, 7),)})
    table.save(tmp_path / "a.safetensors")
    assert Similar.load(tmp_path / "a.safetensors").neighbours == table.neighbours
    (tmp_path / "b.safetensors").write_bytes(b"none")
    for name in ("b", "c"):
        with pytest.raises(InputError, match=f"{name}.safetensors is no table"):
            Similar.load(tmp_path / f"{name}.safetensors")


@pytest.mark.parametrize(
    "tensors",
    [
        {"words.1": [[1], [2]]},
        {"words.1": [[1], [2]], "neighbours.1": [[9], [0]]},
        {"words.1": [[1], [2]], "neighbours.1": [[1]]},
        {"words.1": [1, 2], "neighbours.1": [[1], [0]]},
    ],
)
def test_tables_that_do_not_agree_are_refused(
    tensors: dict[str, list[object]], tmp_path: Path
) -> None:
    save_file({name: torch.tensor(value) for name, value in tensors.items()}, tmp_path / "a")
    with pytest.raises(InputError, match="no table of similar words: tensors and numbers"):
        Similar.load(tmp_path / "a")


def test_words_of_one_use_are_alike() -> None:
    # Ten nouns and ten verbs in "a NOUN VERB the NOUN", in no relation but their place.
    draw = random.Random(0)
    nouns, verbs = range(10, 20), range(30, 40)
    sentences = [
        [5, draw.choice(nouns), draw.choice(verbs), 6, draw.choice(nouns)] for _ in range(3000)
    ]
    corpus = Corpus.from_ids([sentences, [[50]]])
    words = lexicon(corpus)
    vectors = word_vectors(corpus, words, generator=generator_for(0), width=8)
    assert vectors.shape == (len(words), 8)
    assert not vectors[words.index((50,))].any()  # alone in its sentence
    table = similar_table(words, vectors, neighbours=3)
    for group in (nouns, verbs):
        hits = [w[0] in group for n in group for w in table.neighbours[(n,)]]
        assert sum(hits) / len(hits) > 0.95
    again = word_vectors(corpus, words, generator=generator_for(0), width=8)
    assert torch.equal(vectors, again)
    other = word_vectors(corpus, words, generator=generator_for(1), width=8)
    assert torch.allclose(vectors @ vectors.T, other @ other.T, atol=1e-2)


def test_vectors_by_hand() -> None:
    """All directions of the positive information of pairs at most two words apart."""
    source = random.Random(1)
    sentences = [[source.randint(5, 12) for _ in range(source.randint(2, 6))] for _ in range(40)]
    corpus = Corpus.from_ids([sentences, [[50]]])
    words = lexicon(corpus)
    pairs = torch.zeros(len(words), len(words), dtype=torch.float64)
    for sentence in sentences:
        for at, word in enumerate(sentence):
            for after in sentence[at + 1 : at + 3]:
                pairs[words.index((word,)), words.index((after,))] += 1
    chance = pairs.sum(1, keepdim=True) * pairs.sum(0, keepdim=True) / pairs.sum()
    follows = (pairs / chance).log().nan_to_num(0.0, neginf=0.0).clamp(min=0)
    left, values, _ = torch.linalg.svd(torch.cat([follows, follows.T], 1), full_matrices=False)
    vectors = word_vectors(corpus, words, generator=generator_for(2), width=20).double()
    assert torch.allclose(vectors @ vectors.T, left * values @ left.T, atol=2e-3)
    assert not vectors[words.index((50,))].any()


@pytest.mark.parametrize("words", [[-1, 0, 0, 0, -1], [-1, -1, -1, -1, -1]])
def test_nothing_is_masked_where_no_word_fits_the_budget(words: list[int]) -> None:
    ids = torch.tensor([[2, 10, 11, 12, 3]])
    maskable = torch.tensor([[False, True, True, True, False]])
    found = similar_words(
        ids,
        maskable,
        torch.tensor([words]),
        table=Similar({}),
        generator=generator_for(0),
        vocabulary=50,
    )
    assert torch.equal(found.inputs, ids)
    assert (found.labels == IGNORED).all()
