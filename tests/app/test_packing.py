"""A large model is packed for this processor where that is faster, and answers the same."""

import gc

import pytest
import torch

import core_models as cm
from app.serving import gpu, packing, session, shelf
from app.serving.ask import Ask, Mark
from app.serving.passes import fill
from tests.app.opening import opened
from tests.app.test_session import together

ASK = {"text": "red fox sees small dog", "marks": (Mark(position=2),)}


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch):
    monkeypatch.setattr(gpu, "LARGE", 1)
    monkeypatch.setattr(shelf, "LARGE", 1)


def test_a_packed_model_answers_and_the_labs_have_the_model_itself(folder, open_with, monkeypatch):
    monkeypatch.setattr(packing, "faster", lambda: True)
    asked = []
    monkeypatch.setattr(
        session, "fill", lambda model, asks: asked.append(model) or fill(model, asks)
    )
    here = open_with()
    name = opened(here, str(folder))
    model = here.model(name)
    assert cm.optimization(model) is None
    ask = Ask(model=name, **ASK)
    (found,) = together(here.fill(ask))
    (copy,) = asked
    assert cm.optimization(copy).packed
    assert cm.optimization(copy).dtype == torch.float32
    (plain,) = fill(model, [ask])
    for one, other in zip(found.predictions, plain.predictions, strict=True):
        assert [c.id for c in one.candidates] == [c.id for c in other.candidates]
        assert one.candidates[0].probability == pytest.approx(
            other.candidates[0].probability, rel=1e-4
        )
    (looks,) = together(here.attention(ask))
    assert looks.probabilities.shape[0] == model.config.steps


def test_it_counts_twice_in_memory_and_goes_with_its_model(folder, open_with, monkeypatch):
    monkeypatch.setattr(packing, "faster", lambda: True)
    here = open_with()
    opened(here, str(folder))
    assert here.opened.weigh(folder) == 8 * cm.inspect(folder).parameters
    assert len(here._packed) == 1
    here._of_others._models.clear()
    gc.collect()
    assert len(here._packed) == 0


def test_where_it_is_not_faster_the_model_itself_answers(folder, open_with, monkeypatch):
    monkeypatch.setattr(packing, "faster", lambda: False)
    here = open_with()
    name = opened(here, str(folder))
    assert len(here._packed) == 0
    (found,) = together(here.fill(Ask(model=name, **ASK)))
    assert len(found.predictions[0].candidates) == 5


@pytest.mark.parametrize("is_faster", [True, False])
def test_it_is_measured_once(monkeypatch, is_faster):
    measured, measure = [], packing._seconds

    def seconds(block, tokens):
        measured.append(block)
        assert measure(block, tokens) > 0
        is_packed = cm.optimization(block) is not None
        return 1.0 if is_packed is is_faster else 2.0

    monkeypatch.setattr(packing, "_seconds", seconds)
    packing.faster.cache_clear()
    try:
        state = torch.get_rng_state()
        assert packing.faster() is is_faster
        assert torch.equal(torch.get_rng_state(), state)
        rounds = len(measured)
        assert packing.faster() is is_faster
        assert len(measured) == rounds > 2
    finally:
        packing.faster.cache_clear()
