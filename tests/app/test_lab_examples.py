"""What the buttons of Why, Spans and Permutation promise, checked with the shipped weights.

A test names the one to choose anew.
"""

from pathlib import Path

import pytest
import torch

import core_models as cm
from app.labs.permutation import answers as permutation
from app.labs.permutation import chances as permutation_chances
from app.labs.permutation import lab as permutation_lab
from app.labs.spans import answers as spans
from app.labs.why.service import Explainer
from app.labs.why.tries import TRIES
from app.serving.session import Session
from core_models.prediction import fill_spans
from tests.app.why_questions import ask

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "assets" / "models"


@pytest.fixture(scope="module")
def explainer():
    session = Session(threads=1)
    yield Explainer(session)
    session.close()


def why(explainer, name, **values):
    """What Why answers to one of its buttons, asked of the default model."""
    text, hide, given = TRIES[name]
    tokens = explainer.session.sentence(text, "bert-mini").tokens
    marks = [
        {"position": token.position, "case": "mask"}
        for token in tokens
        if token.text.lower() in hide
    ]
    answer = ask(explainer, text=text, marks=marks, **{**given, **values})
    assert answer["error"] is None, (name, answer["error"])
    return answer


def chosen(answer):
    """The choice that is explained, and whether it is the likeliest one."""
    choices = answer["scene"]["choices"]
    (mine,) = [each for each in choices if each["index"] == answer["scene"]["answer"]]
    return mine, mine["probability"] >= max(each["probability"] for each in choices)


def test_too_few_steps_miss_the_sum_and_the_usual_number_does_not(explainer):
    few = why(explainer, "Too few steps")["answer"]["error_share"]
    usual = why(explainer, "Too few steps", steps=30)["answer"]["error_share"]
    assert few > 0.08, f"the check of Too few steps stays green ({few:.2%}): another sentence"
    assert usual < 0.01


@pytest.mark.parametrize("name", ["Too few steps", "Three words at a time", "Two sentences"])
def test_what_is_explained_is_the_first_choice(explainer, name):
    mine, first = chosen(why(explainer, name))
    assert first, f"{name} explains an answer that is not the likeliest: another sentence"
    assert mine["probability"] > 0.5, (name, mine)


def test_two_sentences_explain_a_right_answer(explainer):
    mine, _ = chosen(why(explainer, "Two sentences"))
    assert mine["name"] == "next"


def test_against_another_word_the_word_of_the_text_wins(explainer):
    for name in ("Why Paris, not London?", "One or many?"):
        assert why(explainer, name)["answer"]["value"] > 0, name


@pytest.mark.parametrize("name", [name for name in spans.EXAMPLES if name != "At the edge"])
def test_a_hidden_span_is_told_by_its_own_states(name):
    model = cm.load(MODELS / "spanbert-mini")
    example = spans.EXAMPLES[name]
    sentence = spans.cut(model, example.text)
    runs = spans.hidden_runs(sentence, [example.characters])
    with torch.inference_mode():
        (found,) = fill_spans(model, example.text, runs)
    wrong = [
        piece.masked_token.original.display
        for piece in found.pieces
        if piece.masked_token.original.rank > 1
    ]
    assert wrong == [], f"{name}: choose another span"
    if name == "A name":
        assert example.hide.istitle()


def test_the_last_word_that_sees_all_is_the_first_choice():
    name = "The last word sees all"
    model = cm.load(MODELS / "xlnet-mini")
    sentence = permutation.cut(model.tokenizer, permutation_lab.EXAMPLES[name]["text"])
    order = permutation.ORDERS["last"](sentence)
    last, pieces = order[-1], sentence.encoding.pieces
    setting = permutation.Setting(
        order=order, seed=1, variant="paper", k=12, leak=False, memory=None
    )
    with torch.inference_mode():
        (row,) = permutation_chances.judge(model, sentence, setting)["rows"]
    assert row["position"] == last
    assert row["guesses"][0]["text"] == pieces[last].strip("\u2581"), "another sentence"
