"""Text out of [MASK]s against a model whose answers are known, and laws for any model."""

import functools
import math

import pytest
import torch

import core_models as cm
from core_models.prediction import Unmasking, unmasking
from tests.core.tiny_models import new, tiny, tokenizer

ALL = " ".join(["[MASK]"] * 4)


@functools.cache
def model() -> cm.Model:
    return new(tiny("bert-mini")).eval()


class Fixed(torch.nn.Module):
    """Gives "red" 0.4 at place 1, "fox" 0.7 at 2, "dog" 0.9 at 3 and "tree" 0.5 at 4."""

    CHANCES = ((1, "red", 0.4), (2, "fox", 0.7), (3, "dog", 0.9), (4, "tree", 0.5))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        words = tokenizer()
        logits = torch.full((len(hidden), words.vocabulary), -math.inf)
        for row, place in enumerate(hidden[:, 0].long().tolist()):
            _, word, chance = self.CHANCES[place - 1]
            logits[row, words.pieces_of(word)[0]] = math.log(chance)
            for other in ("sees", "likes"):
                logits[row, words.pieces_of(other)[0]] = math.log((1 - chance) / 2)
            logits[row, words.mask_id] = 9.0  # never put in, and no part of the chances
        return logits


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> cm.Model:
    """The answers of `Fixed`, whatever has been put in so far."""

    def hidden_at(_: cm.Model, seen: object, places: list[tuple[int, int]]) -> torch.Tensor:
        return torch.tensor([[float(place)] for _, place in places])

    monkeypatch.setattr(unmasking, "hidden_at", hidden_at)
    monkeypatch.setattr(unmasking, "head_of", lambda _: Fixed())
    return model()


def places(found: Unmasking) -> list[list[int]]:
    return [[each.position for each in step.revealed] for step in found.steps]


def test_the_surest_comes_first_by_hand(fixed: cm.Model) -> None:
    found = cm.unmask(fixed, ALL, steps=3, order="surest")
    # ceil(4 / 3), ceil(8 / 3) and 4 of 4 stand there.
    assert places(found) == [[2, 3], [4], [1]]
    assert found.text == "red fox dog tree"
    assert found.probabilities == pytest.approx({1: 0.4, 2: 0.7, 3: 0.9, 4: 0.5}, rel=1e-5)
    mask = fixed.tokenizer.mask_id
    assert [place for place, index in enumerate(found.steps[0].ids) if index == mask] == [1, 4]
    assert list(found.start).count(mask) == 4


def test_left_to_right_and_random_orders(fixed: cm.Model) -> None:
    assert places(cm.unmask(fixed, ALL, steps=2, order="left_to_right")) == [[1, 2], [3, 4]]
    drawn = torch.randperm(4, generator=torch.Generator().manual_seed(7)).tolist()
    found = cm.unmask(fixed, ALL, steps=4, order="random", seed=7)
    assert places(found) == [[1 + drawn.index(turn)] for turn in range(4)]
    assert found == cm.unmask(fixed, ALL, steps=4, order="random", seed=7)
    others = [cm.unmask(fixed, ALL, steps=4, order="random", seed=n) for n in range(5)]
    assert any(places(other) != places(found) for other in others)


def test_the_least_sure_goes_back_to_the_mask_by_hand(fixed: cm.Model) -> None:
    found = cm.unmask(fixed, ALL, steps=4, order="left_to_right", remask=0.5)
    # Half of 1, of 2 and of 3, rounded down: none, then place 1 (0.4), then place 1 again.
    assert [step.hidden_again for step in found.steps] == [(), (), (1,), (1,)]
    assert places(found) == [[1], [2], [1, 3], [1, 4]]
    assert found.text == "red fox dog tree"


def test_pieces_are_drawn_with_the_temperature_and_the_seed(fixed: cm.Model) -> None:
    texts = {cm.unmask(fixed, ALL, seed=n, temperature=1.0).text for n in range(12)}
    assert len(texts) > 3
    assert cm.unmask(fixed, ALL, seed=3, temperature=1.0).text in texts
    assert {cm.unmask(fixed, ALL, seed=n, temperature=0.01).text for n in range(12)} == {
        "red fox dog tree"
    }


def test_a_step_that_puts_nothing_in_draws_nothing(fixed: cm.Model) -> None:
    four, many = (cm.unmask(fixed, ALL, seed=3, temperature=1.0, steps=n) for n in (4, 16))
    assert many.text == four.text
    assert [step.revealed for step in many.steps if step.revealed] == [
        step.revealed for step in four.steps
    ]


@pytest.mark.parametrize("least", [1e-39, 1e-300])
def test_the_least_temperature_draws_the_best(least: float) -> None:
    """Scores that are divided by it have no number in float32."""
    best = cm.unmask(model(), ALL, steps=2)
    assert cm.unmask(model(), ALL, steps=2, temperature=least).steps == best.steps


def test_what_is_given_stays_and_each_step_reads_the_one_before() -> None:
    text = "red fox [MASK] small [MASK]"
    found = cm.unmask(model(), text, masks=[1], steps=3, order="left_to_right")
    assert found.hidden == (1, 3, 5)
    words, last = model().tokenizer, found.steps[-1].ids
    given = model().encode([text])[0].ids
    assert [last[place] for place in (0, 2, 4, 6)] == [given[place] for place in (0, 2, 4, 6)]
    barred = {*words.special_ids, words.mask_id, words.unknown_id}
    assert not barred & {last[place] for place in found.hidden}
    # The second piece is what `fill` gives with the first one in place.
    first, second = found.steps[0].revealed[0], found.steps[1].revealed[0]
    after = cm.fill(model(), text, replaced={1: first.id}, top_k=20)
    best = next(c for c in after.predictions[1].candidates if c.id not in barred)
    assert (after.predictions[1].position, best.id) == (second.position, second.id)


@pytest.mark.parametrize("name", ["deberta-base", "xlnet-base", "roberta-base"])
@pytest.mark.parametrize("order", unmasking.ORDERS)
def test_every_family_writes(name: str, order: str) -> None:
    writer = new(tiny(name)).eval()
    found = cm.unmask(writer, ALL, steps=2, order=order, remask=0.5)
    assert len(found.hidden) == 4
    assert writer.tokenizer.mask_id not in found.steps[-1].ids
    assert found == cm.unmask(writer, ALL, steps=2, order=order, remask=0.5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"text": "red fox"}, "no \\[MASK\\] to fill"),
        ({"order": "best"}, "order is 'best'; it must be one of left_to_right, random, surest"),
        ({"steps": 0}, "steps is 0; it must be a whole number from 1"),
        ({"seed": -1}, "seed is -1"),
        ({"remask": 1.0}, "remask is 1.0; it must be a number from 0 to 0.9"),
        ({"temperature": float("nan")}, "temperature is nan"),
    ],
)
def test_values_out_of_range(values: dict[str, object], message: str) -> None:
    with pytest.raises(cm.InputError, match=message):
        cm.unmask(model(), **{"text": ALL, **values})


def test_a_text_that_is_cut_says_so() -> None:
    long = "the cat " * model().longest
    assert not unmasking.unmask(model(), ALL).truncated
    assert unmasking.unmask(model(), f"[MASK] {long}").truncated
    assert not cm.prediction.fill_jointly(model(), ALL)[0].truncated
    assert cm.prediction.fill_jointly(model(), f"[MASK] {long}")[0].truncated
