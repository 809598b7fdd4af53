"""What each token may see, in the Attention lab: four grids, and which of them a model has."""

from dataclasses import replace

import numpy as np
import pytest

from app.labs.attention import fold
from app.labs.attention.visible import ORDERS, WINDOWS, look, marks_of, say_ways
from core_models import InputError
from core_models.prediction.visibility_view import WAYS, look_at_visibility
from tests.app.attention_lab import HIDDEN, TEXT, maps
from tests.app.test_attention_code import run
from tests.core.tiny_models import tiny
from viz.figure import colour

QUESTION = {"second": "", "hide": False, "row": -1, "window": -1, "order": "drawn"}
"""As the fold begins."""


def ask(lab, model="t-bert", *, text=TEXT, marks=(), **values):
    sentence = {"text": text, "model": model, "marks": list(marks)}
    return look(lab.session, {**QUESTION, "sentence": sentence, **values})


def grid(found, way, tone="heat_3"):
    """Which cells have a colour."""
    for trace in found["grids"][WAYS.index(way)].data:
        if trace.colorscale[0][1] == colour(tone):
            return np.array(trace.z, dtype=float) == 1
    return None


def marked(found):
    """What stands under the grids."""
    figures = zip(WAYS, found["grids"], strict=True)
    return {way: str(figure.layout.title.subtitle.text) for way, figure in figures}


def column(found, name):
    table = found["table"]
    at = [str(each) for each in table["columns"]].index(name)
    return [row[at] for row in table["rows"]]


@pytest.mark.parametrize("model", ["t-bert", "t-albert", "t-deberta", "t-judge"])
def test_a_model_that_reads_both_ways_attends_to_its_grid(lab, model):
    found = ask(lab, model)
    assert (grid(found, "full") == (maps(lab, model=model).max((0, 1)) > 0)).all()
    assert (grid(found, "causal") == np.tril(np.ones_like(grid(found, "full")))).all()
    marks = marked(found)
    assert marks.pop("full") == "this model, in every layer"
    assert set(marks.values()) == {"not this model"}
    assert str(found["said"]) == (
        f"{model} has full attention in every layer: every token sees every token."
    )


def test_a_permutation_shows_both_streams_and_belongs_to_pretraining(lab):
    found = ask(lab, "t-xlnet")
    loaded = lab.session.model("t-xlnet")
    view = look_at_visibility(loaded, loaded.encode([TEXT])[0])
    assert (grid(found, "permuted") == (view.masks["permuted"] & view.queries)).all()
    own = grid(found, "permuted", "heat_2")
    assert (own == (view.masks["permuted"] & ~view.queries)).all()
    assert own.sum() == len(TEXT.split())
    marks = marked(found)
    assert marks["full"] == "this model, in every layer"
    assert marks["permuted"] == "this model, in pretraining"
    assert "In pretraining it was permuted" in found["said"]


def test_a_row_is_read(lab):
    found = ask(lab, row=2, window=1)
    words = ["[CLS]", *TEXT.split(), "[SEP]"]
    assert column(found, "Tokens seen")[:3] == [len(words), 3, 3]
    assert column(found, "Which")[:3] == [
        " ".join(words),
        " ".join(words[:3]),
        " ".join(words[1:4]),
    ]
    assert column(found, "Tokens seen")[4] == column(found, "Tokens seen")[3] - 1
    shapes = found["grids"][0].layout.shapes
    assert (shapes[-1].y0, shapes[-1].y1) == (1.5, 2.5)
    assert [value for _, value in found["row"]] == list(range(len(words)))
    # Where none is chosen a hidden word looks; what a choice holds stands for what is shown.
    hidden = ask(lab, marks=HIDDEN)
    assert str(hidden["table"]["caption"]) == "What “[MASK]” sees"
    assert [value for _, value in hidden["row"]] == [0, 1, 2, 3, -1, 5, 6]
    assert [value for _, value in ask(lab, row=77)["row"]].index(77) == 3


def test_window_and_order(lab):
    found = ask(lab, window=1)
    assert (grid(found, "local").sum(1) <= 3).all()
    assert found["grids"][2].layout.title.text == "Local: 1 on each side"
    assert dict(found["window"]) == {str(n): n for n in WINDOWS}
    assert dict(ask(lab, window=999)["window"])["2"] == 999
    assert dict(ask(lab)["window"])["2"] == -1
    plain = slice(1, -1)
    text = ask(lab, order="text")
    seen = grid(text, "permuted") | grid(text, "permuted", "heat_2")
    assert (seen[plain, plain] == grid(text, "causal")[plain, plain]).all()
    end = ask(lab, order="end")
    seen = grid(end, "permuted") | grid(end, "permuted", "heat_2")
    assert (seen[plain, plain] == grid(text, "causal")[plain, plain].T).all()
    draws = [grid(ask(lab, order=name), "permuted") for name in ("drawn", "again")]
    assert (draws[0] != draws[1]).any()
    assert "is causal" in text["note"]
    assert "is causal" not in end["note"]
    with pytest.raises(InputError, match="order is 'x'"):
        ask(lab, order="x")


def test_an_answer_fills_what_the_fold_has(lab):
    closed = fold.show(lab.session, {**QUESTION, "sentence": None})
    assert len(closed) == fold.SHOWN
    sentence = {"text": TEXT, "model": "t-bert", "marks": []}
    for hide, drawn in ((False, True), (True, True)):
        shown = fold.show(lab.session, {**QUESTION, "sentence": sentence, "hide": hide})
        assert len(shown) == fold.SHOWN
        assert all(figure is not None for figure in shown[3:7]) is drawn
    assert set(ORDERS) == {"drawn", "again", "text", "end"}


def test_special_pieces_are_left_out_and_a_pair_is_one_text(lab):
    found = ask(lab, hide=True)
    assert grid(found, "full").shape == (len(TEXT.split()),) * 2
    assert set(ask(lab, text="[SEP]", hide=True)["grids"]) == {None}
    pair = ask(lab, second="birds sing")
    assert len(grid(pair, "full")) == len(TEXT.split()) + 2 + 3


def test_the_code_shown_recomputes_the_grids(lab):
    found = ask(lab, "t-xlnet", window=1, order="end")
    names, values = run(found["code"])
    view = names["view"]
    for way in ("full", "causal", "local"):
        assert (view.masks[way] == grid(found, way)).all()
    assert (view.masks["permuted"] & view.queries == grid(found, "permuted")).all()
    assert values[-1] == (frozenset({"full"}),) * 3


@pytest.mark.parametrize(
    ("size", "attention", "values", "said", "marks"),
    [
        (
            "modernbert-base",
            {"window": 2},
            {},
            "x has full attention in layers 1, 4: every token sees every token. x has local "
            "attention in layers 2–3: a token sees 2 tokens on each side.",
            {"full": "this model, in layers 1, 4", "local": "this model, in layers 2–3"},
        ),
        (
            "modernbert-base",
            {"window": 64},
            {},
            "sees 64 tokens on each side. This whole text fits into the window.",
            {"full": "this model, in layers 1, 4", "local": "this model, in layers 2–3"},
        ),
        (
            "modernbert-base",
            {"window": 2, "direction": "left"},
            {},
            "x has local and causal attention in layers 2–3: a token sees itself and the 2 tokens "
            "before it.",
            {"causal": "this model, in every layer", "local": "this model, in layers 2–3"},
        ),
        (
            "bert-base",
            {"direction": "left"},
            {"objectives": ("causal",)},
            "x has causal attention in every layer: a token sees itself and those before it.",
            {"causal": "this model, in every layer"},
        ),
        (
            "bert-base",
            {},
            {"objectives": ("causal",)},
            "every token sees every token. In pretraining a share of the texts was causal;",
            {"full": "this model, in every layer", "causal": "this model, in pretraining"},
        ),
    ],
)
def test_what_is_said_of_layers(size, attention, values, said, marks):
    config = tiny(size, layers=4)
    config = replace(config, attention=replace(config.attention, **attention), **values)
    assert said in say_ways("x", config, 12)
    found = {way: str(mark) for way, mark in marks_of(config).items() if mark is not None}
    assert found == marks
