"""The Why tab: odd texts, labels and heads, on random models and without a session."""

import math

import pytest

from app.labs.why import answers as why
from app.labs.why import replies, words
from app.labs.why import scene as why_scene
from app.labs.why.tries import FIRST
from core_models import InputError
from core_models.prediction.targets import frozen_copy
from tests.core.tiny_models import new, tiny
from viz.why import Attributed, attributions

TEXT = "red fox sees small dog"
SECOND = "birds sing in the tree"


def model(*task, size="bert-base-uncased"):
    """A model without pretraining, with a fine-tuning head."""
    made = new(tiny(size)).eval()
    return made.with_head(*task).eval() if task else made


def explained(asked, **values):
    """The scene, what was found, and what is shown."""
    sentence = {"text": TEXT, "model": "m", "marks": [], "language": "en"}
    sentence |= {name: values.pop(name) for name in tuple(values) if name in sentence}
    wanted = why.read({"sentence": sentence, **FIRST, "steps": 60, **values})
    question, scene = why_scene.plan(asked, wanted)

    def keep(_, compute):
        return compute()

    found = why.explain(frozen_copy(asked), question, (), lambda _: None, keep)
    return scene, found, replies.pictures(scene, found)


def texts(scene, number):
    return [
        token["text"]
        for token in scene["tokens"]
        if token["number"] == number and not token["special"]
    ]


@pytest.mark.parametrize("size", ["bert-base-uncased", "roberta-base", "xlnet-base-cased"])
def test_the_line_between_two_texts_stands_between_them(size):
    scene, _, shown = explained(model("classify", ("a", "b"), size=size), second=SECOND)
    first = [token["number"] for token in scene["tokens"]].index(1)
    (line,) = shown["chart"].layout.shapes
    assert line.x0 == line.x1 == first - 0.5
    assert scene["tokens"][first]["text"] == "birds"


def test_special_pieces_that_are_typed_begin_no_second_text():
    scene, _, shown = explained(model("tag", ("O", "X")), text="red [SEP] fox sees")
    assert texts(scene, 0) == ["red", "fox", "sees"]
    assert not any(token["number"] for token in scene["tokens"])
    assert len(shown["chart"].layout.shapes) == 1  # the place that is asked about, and no line
    reader = model("span")
    scene, *_ = explained(reader, text="red [SEP] fox sees", second="what [SEP] is it")
    assert texts(scene, 1) == ["red", "fox", "sees"]
    places = [scene["tokens"][place]["text"] for place in scene["places"]]
    assert places == ["[CLS]", "red", "fox", "sees"]
    scene, *_ = explained(model("classify", ("a", "b")), text="[SEP]", second="Birds sing")
    assert texts(scene, 1) == ["Birds", "sing"]


def test_a_text_of_special_pieces_alone_is_told():
    with pytest.raises(InputError, match="no word that can be asked about"):
        explained(model("tag", ("O", "X")), text="[SEP]")


def test_each_of_several_labels_is_explained_by_itself():
    asked = model("multilabel", ("new", "old", "red"))
    scene, found, shown = explained(asked, word="old")
    chances = {choice["name"]: choice["probability"] for choice in scene["choices"]}
    (encoding,) = asked.encode([TEXT])
    head = asked.heads["multilabel"]
    expected = head.answer(asked.encoder, asked.collate([encoding]))[0].sigmoid().tolist()
    assert [chances[name] for name in ("new", "old", "red")] == pytest.approx(expected)
    assert found["value"] == pytest.approx(math.log(expected[1]))
    assert words.percent(expected[1]) in shown["said"]
    assert found["error_share"] < 0.05
    # No label is instead of another one.
    scene, *_ = explained(asked, word="old", against="new")
    assert scene["against"] is None


def test_labels_are_no_markup_in_a_title():
    label = "<b>loud</b> %{x}"
    asked = model("classify", (label, "<i>calm</i>"))
    shown = explained(asked, word="#0", against="#1")[2]
    title = shown["chart"].layout.title.text
    assert "&lt;b&gt;loud&lt;/b&gt;" in title
    assert "<" not in title
    assert label in shown["said"]  # a line is no chart


@pytest.mark.parametrize(("value", "times"), [(4.602, "100"), (4.58, "98"), (0.7, "2")])
def test_how_many_times_as_likely(value, times):
    scene = {
        "choices": [{"index": 0, "name": "a"}, {"index": 1, "name": "b"}],
        **{"answer": 0, "against": 1, "head": "classify", "kind": "class"},
    }
    assert f"is {times} times as likely" in words.headline(scene, value)


def test_the_picture_says_that_nothing_speaks_for_an_answer():
    tokens = [Attributed(text=text, read=text) for text in ("a", "b")]
    told = attributions(tokens, {"m": [-1.0, 0.0]}, title="t").layout.meta["alt"]
    assert told == "m: nothing speaks for it."
    told = attributions(tokens, {"m": [-1.0, 0.5]}, title="t").layout.meta["alt"]
    assert told == "m: most for it speaks “b”."


@pytest.mark.parametrize(("steps", "advice"), [(10, "Take more steps."), (300, "No more steps")])
def test_a_sum_that_misses_says_what_helps(steps: int, advice: str) -> None:
    answer = {"value": 1.0, "start": 0.0, "sum": 0.5, "error_share": 0.5, "steps": steps}
    assert advice in str(words.total(answer))
