"""Vectors of words, the projection and the neighbours: against hidden states and by hand."""

import math

import pytest
import torch

import core_models as cm
from core_models import InputError
from core_models.prediction import meaning
from tests.core.tiny_models import new, tiny

TEXTS = ["the red fox sees the river", "birds sing in the old tree"]


@pytest.mark.parametrize(
    "size", ["bert-base-uncased", "albert-base-v2", "deberta-v2-xlarge", "xlnet-base-cased"]
)
def test_a_words_vectors_are_means_of_its_pieces_states_in_any_batch(size):
    model = new(tiny(size)).eval()
    encodings = model.encode(TEXTS)
    text, encoding = TEXTS[1], encodings[1]
    span = meaning.find_word(text, "sing")
    positions = meaning.pieces_at(encoding, *span)
    assert "".join(encoding.text[slice(*encoding.offsets[p])] for p in positions) == "sing"
    found = meaning.word_vectors(model, encodings, [(1, positions)])
    with torch.inference_mode():
        alone = model.encoder(model.collate([encoding]), every_step=True).states
        parts = model.encoder.embeddings
        rows = parts.pieces(torch.tensor([encoding.ids[p] for p in positions]))
        start = parts.projection(parts.norm(rows)).mean(0)
    assert found.shape == (1, model.config.steps + 2, model.config.width)
    assert torch.allclose(found[0, 0], start, atol=1e-6)
    for step, state in enumerate(alone):
        assert torch.allclose(found[0, step + 1], state[0, positions].mean(0), atol=1e-5)


def test_all_occurrences_start_at_one_vector_and_part():
    model = new(tiny("bert-base-uncased")).eval()
    texts = ["the fox sees the tree", "old birds and the red fox sing"]
    places = [
        (row, meaning.pieces_at(encoding, *meaning.find_word(text, "fox")))
        for row, (text, encoding) in enumerate(zip(texts, model.encode(texts), strict=True))
    ]
    found = meaning.word_vectors(model, model.encode(texts), places)
    assert torch.equal(found[0, 0], found[1, 0])
    assert not torch.allclose(found[0, 1], found[1, 1], atol=1e-3)


def test_words_are_found_whole_and_chinese_ones_anywhere():
    assert meaning.find_word("Banks lend; the BANK waits", "bank") == (16, 20)
    assert meaning.find_word("banking", "bank") is None
    assert meaning.find_word("a.b (c)", "(c)") == (4, 7)
    assert meaning.find_word("她花了钱", "花") == (1, 2)
    assert meaning.find_word("nothing", " ") is None
    text = "It's a well-known 3rd bird."
    assert [text[slice(*span)] for span in meaning.words_of(text)] == [
        "It's",
        "a",
        "well-known",
        "bird",
    ]
    assert meaning.words_of("花开。") == [(0, 1), (1, 2)]


def test_projection_by_hand():
    points = torch.tensor([[2.0, 0.0, 1.0], [-2.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, -1.0, 1.0]])
    found = meaning.fit_projection(points)
    assert torch.allclose(found.axes, torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), atol=1e-6)
    assert found.shares == pytest.approx((0.8, 0.2))
    assert torch.allclose(found(points), points[:, :2], atol=1e-6)
    assert torch.allclose(found(torch.tensor([5.0, 6.0, 9.0])), torch.tensor([5.0, 6.0]))


def test_projection_of_what_does_not_differ_is_flat():
    same = meaning.fit_projection(torch.ones(4, 3))
    assert same.shares == (0.0, 0.0)
    assert not same(torch.ones(4, 3)).any()
    line = meaning.fit_projection(torch.tensor([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]))
    assert line.shares == pytest.approx((1.0, 0.0))
    assert line(torch.tensor([6.0, 8.0])).tolist() == pytest.approx([5.0, 0.0])


def test_cosines_by_hand_with_and_without_a_mean():
    vectors = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    table = meaning.cosines(vectors, vectors)
    assert table[0, 1] == pytest.approx(1 / math.sqrt(2))
    assert table[2].tolist() == [0.0, 0.0, 0.0]
    centred = meaning.cosines(vectors, vectors, torch.tensor([1.0, 0.5]))
    assert centred[0, 1] == pytest.approx(-1.0)
    assert meaning.crowding(vectors) == pytest.approx(1 / math.sqrt(2) / 3)
    assert meaning.crowding(vectors[:1]) == 0.0


def test_a_common_shift_is_what_the_mean_takes_away():
    random = torch.Generator().manual_seed(2)
    vectors = torch.randn(400, 16, generator=random) + 3.0
    assert meaning.crowding(vectors) > 0.8
    assert abs(meaning.crowding(vectors, vectors.mean(0))) < 0.01


def test_samples_are_bounded_and_the_same_for_a_seed():
    sentences = ["the cat saw the dog", "the dog ran", "The cat and the bird"] * 5
    draw = lambda seed, **values: meaning.sample_occurrences(  # noqa: E731
        sentences, generator=torch.Generator().manual_seed(seed), **values
    )
    found = draw(1, most=9, per_word=2)
    assert found == draw(1, most=9, per_word=2)
    assert found != draw(2, most=9, per_word=2)
    assert len(found) == 9
    counts = [sum(each.word == word for each in found) for word in {f.word for f in found}]
    assert max(counts) <= 2
    for each in found:
        assert sentences[each.sentence][each.start : each.end].lower() == each.word
    assert len(draw(1, most=1000, per_word=2)) == 2 * len(
        {"the", "cat", "saw", "dog", "ran"} | {"and", "bird"}
    )
    with pytest.raises(InputError, match="most is 0"):
        draw(1, most=0, per_word=1)


def test_occurrences_without_a_piece_are_left_out():
    model = new(tiny("bert-base-uncased")).eval()
    sentences = ["the fox sees", "the 花 sees", "fox " * 600 + "river"]
    wanted = [
        meaning.Occurrence(0, 4, 7, "fox"),
        meaning.Occurrence(1, 4, 5, "花"),
        meaning.Occurrence(2, 2400, 2405, "river"),
    ]
    vectors, kept = meaning.occurrence_vectors(model, sentences[:2], wanted[:2])
    assert kept == [0]
    assert vectors.shape == (1, 4, 8)
    beyond = cm.Model.new(model.config, model.tokenizer).eval()
    _, kept = meaning.occurrence_vectors(beyond, sentences, [wanted[2]])
    assert kept == []


def test_nearest_comes_first():
    vectors = torch.tensor([[0.0, 1.0], [1.0, 0.1], [1.0, 1.0]])
    found = meaning.nearest(torch.tensor([1.0, 0.0]), vectors, 2)
    assert [n for n, _ in found] == [1, 2]
    assert found[1][1] == pytest.approx(1 / math.sqrt(2))
    assert len(meaning.nearest(torch.tensor([1.0, 0.0]), vectors, 9)) == 3
