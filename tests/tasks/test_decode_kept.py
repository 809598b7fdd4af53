"""How long an answer may be, and from which margin on none is given."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from core_models.tasks import decode
from core_models.tasks.decode import AnswerCandidate, Prediction


def test_an_answer_has_thirty_pieces_at_most() -> None:
    """One start, and the best end is one piece too far (released ``run_squad.py``)."""
    logits = torch.zeros(70, 2)
    logits[5, 0] = 9.0
    logits[35, 1], logits[34, 1], logits[4, 1] = 8.0, 7.0, 6.0
    feature: Any = SimpleNamespace(context=(3, 69))
    found = sorted(decode._spans(feature, logits), reverse=True)
    assert found[0] == (16.0, 5, 34)
    assert all(first <= last < first + 30 for _, first, last in found)


@pytest.mark.parametrize(("null", "expected"), [(2.0, "it"), (2.5, ""), (1.0, "it")])
def test_an_answer_is_given_up_to_the_threshold_itself(null: float, expected: str) -> None:
    """A margin of 0 is a tie, which the released script gives to the answer."""
    best = AnswerCandidate(text="it", start=0, end=2, score=2.0, probability=0.5)
    said = Prediction(answers=(best,), null_score=null)
    assert said.answer() == expected
    assert said.answer(threshold=1.0) == "it"
    assert Prediction(null_score=-5.0).answer(threshold=100.0) == ""


def test_a_score_is_told_in_the_scale_of_its_set() -> None:
    """From 1 to 5 the middle is 3."""
    coder: Any = SimpleNamespace(kind="regress", scale=(1.0, 5.0))
    rows = [decode._decoded(coder, None, [(None, torch.tensor(v))]) for v in (0.0, 0.5, 1.0)]  # type: ignore[arg-type]
    assert [row.score for row in rows] == [1.0, 3.0, 5.0]


def test_a_word_outside_ends_an_entity() -> None:
    """What goes on behind it is another one, as ``conlleval`` reads it."""
    places = [(0, 3), (4, 6), (7, 10)]
    found = decode.entities_of(["B-PER", "O", "I-PER"], [0.9, 0.8, 0.7], places, "Ann of Rye")
    assert [(entity.text, entity.probability) for entity in found] == [("Ann", 0.9), ("Rye", 0.7)]
