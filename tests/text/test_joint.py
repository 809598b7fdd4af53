"""Several gaps together and words of several pieces, against sums made by hand."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import core_models as cm
from core_models.errors import InputError
from core_models.prediction import fill, fill_jointly, score, score_filling, score_words
from core_models.prediction.gaps import WAYS, Gaps
from core_models.tokenizer import Tokenizer

TEXT = "The river was very cold in the morning."
GAPS = [2, 4, 5]
LONG = "grandmothers"


def logs(model: cm.Model, ids: list[int], position: int) -> Tensor:
    """Log-probabilities [V] of one position of a BERT, from the parts of the model."""
    with torch.inference_mode():
        hidden = model.encoder(cm.Batch(input_ids=torch.tensor([ids]))).hidden
        return model.heads["masked_token"](hidden[0, position]).log_softmax(-1)


def seen(model: cm.Model, filled: dict[int, int], gaps: list[int] = GAPS) -> list[int]:
    ids = list(model.encode([TEXT])[0].ids)
    for position in gaps:
        ids[position] = filled.get(position, model.tokenizer.mask_id)
    return ids


def choosable(model: cm.Model, row: Tensor) -> Tensor:
    tokenizer = model.tokenizer
    row = row.clone()
    row[[*tokenizer.special_ids, tokenizer.mask_id, tokenizer.unknown_id]] = -math.inf
    return row


def chained(model: cm.Model, filled: dict[int, int], order: list[int]) -> float:
    """The chain rule in an order, one forward pass for each gap."""
    total, done = 0.0, {}
    for position in order:
        total += float(logs(model, seen(model, done), position)[filled[position]])
        done[position] = filled[position]
    return total


@pytest.fixture(scope="module")
def causal(tokenizer: Tokenizer) -> cm.Model:
    config = cm.size("bert-tiny").with_vocabulary(tokenizer.vocabulary)
    config = replace(config, attention=replace(config.attention, direction="left"))
    made = cm.Model.new(
        config, tokenizer, heads=["causal"], generator=torch.Generator().manual_seed(6)
    )
    with torch.no_grad():
        made.encoder.embeddings.pieces.weight.mul_(6.0)
    return made.eval()


def test_independent_takes_the_best_of_each(model: cm.Model) -> None:
    (filling,) = fill_jointly(model, TEXT, masks=GAPS, way="independent")
    rows = [choosable(model, logs(model, seen(model, {}), p)) for p in GAPS]
    assert [c.id for c in filling.choices] == [int(row.argmax()) for row in rows]
    assert filling.total == pytest.approx(sum(float(row.max()) for row in rows), rel=1e-4)
    assert filling.apart == filling.total
    ids = {c.position: c.id for c in filling.choices}
    assert filling.chained == pytest.approx(chained(model, ids, GAPS), rel=1e-4)
    assert abs(filling.chained - filling.apart) > 1e-3  # what independence does not know


def test_left_to_right_sees_what_it_put_in(model: cm.Model) -> None:
    (filling,) = fill_jointly(model, TEXT, masks=GAPS, way="left_to_right")
    done: dict[int, int] = {}
    for choice, position in zip(filling.choices, GAPS, strict=True):
        row = choosable(model, logs(model, seen(model, done), position))
        assert (choice.position, choice.id) == (position, int(row.argmax()))
        assert choice.log_probability == pytest.approx(float(row.max()), rel=1e-4)
        done[position] = choice.id
    assert filling.total == filling.chained


def test_most_confident_fills_the_surest_gap_first(model: cm.Model) -> None:
    (filling,) = fill_jointly(model, TEXT, masks=GAPS, way="most_confident")
    done: dict[int, int] = {}
    for choice in filling.choices:
        rows = {
            p: choosable(model, logs(model, seen(model, done), p)) for p in GAPS if p not in done
        }
        surest = max(rows, key=lambda p: float(rows[p].max()))
        assert (choice.position, choice.id) == (surest, int(rows[surest].argmax()))
        done[surest] = choice.id
    order = [c.position for c in filling.choices]
    assert filling.total == pytest.approx(chained(model, done, order), rel=1e-4)
    assert filling.chained == pytest.approx(chained(model, done, GAPS), rel=1e-4)


def test_beam_keeps_the_best_beginnings(model: cm.Model) -> None:
    width = 3
    beams: list[tuple[float, dict[int, int]]] = [(0.0, {})]
    for position in GAPS:
        longer = []
        for total, done in beams:
            row = choosable(model, logs(model, seen(model, done), position))
            best = row.topk(width)
            longer += [
                (total + value, {**done, position: index})
                for value, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            ]
        beams = sorted(longer, key=lambda beam: -beam[0])[:width]
    found = fill_jointly(model, TEXT, masks=GAPS, way="beam", width=width)
    assert [{c.position: c.id for c in f.choices} for f in found] == [done for _, done in beams]
    assert [f.total for f in found] == pytest.approx([total for total, _ in beams], rel=1e-4)


def test_a_wide_beam_is_never_worse_than_one_at_a_time(model: cm.Model) -> None:
    (greedy,) = fill_jointly(model, TEXT, masks=GAPS)
    best = fill_jointly(model, TEXT, masks=GAPS, way="beam", width=8)[0]
    assert best.total >= greedy.total - 1e-5


def test_a_given_filling_in_any_order(model: cm.Model) -> None:
    ids = model.encode([TEXT])[0].ids
    own = {p: ids[p] for p in GAPS}
    forward = score_filling(model, TEXT, own)
    backward = score_filling(model, TEXT, own, order=GAPS[::-1])
    assert forward.total == pytest.approx(chained(model, own, GAPS), rel=1e-4)
    assert backward.total == pytest.approx(chained(model, own, GAPS[::-1]), rel=1e-4)
    assert backward.chained == pytest.approx(forward.total, rel=1e-5)
    assert [c.position for c in backward.choices] == GAPS[::-1]


def test_gaps_that_stay_open_are_not_filled(model: cm.Model) -> None:
    (filling,) = fill_jointly(model, TEXT, masks=[2], hidden=[4])
    row = choosable(model, logs(model, seen(model, {}, [2, 4]), 2))
    assert [(c.position, c.id) for c in filling.choices] == [(2, int(row.argmax()))]


def test_a_causal_model_multiplies_up_to_its_likelihood(causal: cm.Model) -> None:
    """With every piece a gap, the chain rule from the left is the likelihood of the text."""
    encoding = causal.encode([TEXT])[0]
    pieces = {p: i for p, i in enumerate(encoding.ids) if not encoding.special[p]}
    filling = score_filling(causal, TEXT, pieces)
    assert filling.total == pytest.approx(score(causal, [TEXT])[0].total, rel=1e-4)
    # What stands to the right is never seen, so the order from the right is independence.
    backward = score_filling(causal, TEXT, pieces, order=sorted(pieces, reverse=True))
    assert backward.total == pytest.approx(backward.apart, rel=1e-4)


def test_a_word_of_several_pieces(model: cm.Model) -> None:
    pieces = model.tokenizer.pieces_of(LONG)
    assert len(pieces) > 1
    ids = model.encode([TEXT])[0].ids
    expected = []
    for done in range(len(pieces)):
        gap = pieces[:done] + [model.tokenizer.mask_id] * (len(pieces) - done)
        row = logs(model, ids[:2] + gap + ids[3:], 2 + done)
        expected.append(float(row[pieces[done]]))
    (found,) = score_words(model, TEXT, [LONG], gap=[2])
    assert found.steps == pytest.approx(expected, rel=1e-4)
    assert found.log_probability == pytest.approx(sum(expected), rel=1e-4)


def test_words_of_one_piece_agree_with_fill(model: cm.Model) -> None:
    """Also beside a longer one in the same pass, and where the gap shrinks to one piece."""
    long, short = score_words(model, TEXT, [LONG, "lake"], gap=[2], hidden=[5])
    watched = fill(model, TEXT, masks=[2, 5], watch=["lake"]).predictions[0].watched[0]
    assert watched.probability is not None
    assert short.log_probability == pytest.approx(math.log(watched.probability), rel=1e-4)
    assert long.log_probability is not None
    (shrunk,) = score_words(model, TEXT, ["lake"], gap=[2, 3])
    shorter = TEXT.replace("river was", "river")
    other = fill(model, shorter, masks=[2], watch=["lake"]).predictions[0].watched[0]
    assert other.probability is not None
    assert shrunk.log_probability == pytest.approx(math.log(other.probability), rel=1e-4)


def test_words_that_cannot_be_scored_say_why(model: cm.Model) -> None:
    found = score_words(model, TEXT, ["lake", "🦜", "a" * 60], gap=[2])
    assert [f.note is None for f in found] == [True, False, False]
    assert [f.log_probability is None for f in found] == [False, True, True]


@pytest.mark.parametrize("way", WAYS)
def test_a_gap_written_in_the_text(model: cm.Model, way: str) -> None:
    text = "The [MASK] was [MASK]."
    for filling in fill_jointly(model, text, way=way, width=2):
        assert sorted(c.position for c in filling.choices) == [2, 4]
        assert model.tokenizer.mask_id not in [c.id for c in filling.choices]


def test_bad_input_is_refused(model: cm.Model) -> None:
    for call in (
        lambda: fill_jointly(model, TEXT),
        lambda: fill_jointly(model, TEXT, masks=[0]),
        lambda: fill_jointly(model, TEXT, masks=[2], way="best"),
        lambda: fill_jointly(model, TEXT, masks=[2], way="beam", width=0),
        lambda: fill_jointly(model, "a " * 30, masks=range(1, 20)),
        lambda: score_filling(model, TEXT, {2: 10**9}),
        lambda: score_filling(model, TEXT, {2: 7, 4: 7}, order=[2]),
        lambda: score_words(model, TEXT, ["lake"], gap=[2, 4]),
        lambda: score_words(model, TEXT, ["lake"], gap=[]),
        lambda: score_words(model, TEXT, ["lake"] * 17, gap=[2]),
    ):
        with pytest.raises(InputError):
            call()


def test_as_much_as_is_allowed_is_taken(model: cm.Model) -> None:
    text = "a " * 30
    (filling,) = fill_jointly(model, text, masks=range(1, 17), way="independent")
    assert len(filling.choices) == 16
    assert len(fill_jointly(model, TEXT, masks=[2], way="beam", width=16)) == 16
    assert len(score_words(model, TEXT, ["lake"] * 16, gap=[2])) == 16
    for call in (
        lambda: fill_jointly(model, text, masks=range(1, 18)),
        lambda: fill_jointly(model, TEXT, masks=[2], way="beam", width=17),
    ):
        with pytest.raises(InputError, match="16"):
            call()


def test_all_ways_together_take_one_pass_for_each_gap(model: cm.Model, monkeypatch) -> None:
    asked: list[tuple[frozenset[tuple[int, int]], int]] = []
    passes: list[int] = []
    computed = Gaps._computed

    def watched(self, states, places):
        passes.append(len(states))
        asked.extend((frozenset(states[row].items()), place) for row, place in places)
        return computed(self, states, places)

    monkeypatch.setattr(Gaps, "_computed", watched)
    gaps = Gaps(model, TEXT, GAPS)
    given = {position: model.encode([TEXT])[0].ids[position] for position in GAPS}
    *turns, found = gaps.rounds(width=3, given=given)
    assert turns == [None] * len(GAPS)
    assert len(passes) <= len(GAPS) + 1  # the last one: what only the sums from left to right need
    assert len(asked) == len(set(asked))
    assert gaps.score(given).total == found["given"][0].total
    assert len(passes) <= len(GAPS) + 1
    (own,) = found["given"]
    for way in WAYS:
        alone = fill_jointly(model, TEXT, masks=GAPS, way=way, width=3)
        for mine, other in zip(found[way], alone, strict=True):
            assert [c.id for c in mine.choices] == [c.id for c in other.choices]
            assert mine.total == pytest.approx(other.total, abs=1e-5)
            assert mine.apart == pytest.approx(other.apart, abs=1e-5)
            assert mine.chained == pytest.approx(other.chained, abs=1e-5)
    ids = {choice.position: choice.id for choice in own.choices}
    assert own.total == pytest.approx(score_filling(model, TEXT, ids).total, abs=1e-5)
    with pytest.raises(InputError, match="exactly once"):
        gaps.score({GAPS[0]: 7})
