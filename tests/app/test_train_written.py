"""Settings that somebody writes as JSON into a form: whatever they are, an answer is a sentence."""

import copy
import json

import gradio as gr
import orjson
import pytest

from app.labs.train.form import OTHER_KIND, Form
from app.labs.train.parts import packed
from app.labs.train.pretraining import Pretraining
from app.labs.train.racing import Racing
from app.labs.train.tuning import Tuning
from app.parts import fields
from core_models import InputError

KINDS: dict[str, type[Form]] = {"pretraining": Pretraining, "task": Tuning, "race": Racing}


@pytest.fixture
def make(make_runs, session):
    """``make(kind)``: a form as it is when the page opens."""

    def make(kind):
        with gr.Blocks():
            form = KINDS[kind]()
        form.runs, form.session = make_runs(), session
        return form

    return make


def asked(form, config=None, text=""):
    """What the page sends of a form with these settings and this text in its box."""
    config = form.first() if config is None else config
    shown = {path: fields.shown(field, config) for path, field in form.known.items()}
    own = {name: part.preprocess(part.value) for name, part in form.own.items()}
    rest = dict.fromkeys(("measured", "batched", "shown", "act"))
    kept = {"config": config, "source": None}
    return {**own, **{path: shown[path] for path in form.controls}, **rest} | {
        "kept": kept,
        "json": text,
    }


def used(form, text):
    """The form after *Use these settings*, as the page can be told of it."""
    values = form.use(asked(form, text=text))
    orjson.dumps(packed(form.filled(), values))
    question = asked(form, values[0]["config"], text)
    for part, value in zip(form.filled(), values, strict=True):
        name = next((name for name, own in form.own.items() if own is part), None)
        if name:
            question[name] = value["value"] if isinstance(value, dict) else value
    return question


@pytest.mark.parametrize("text", ["", None, "[" * 100_000, '{"steps": ', "[]", "1" * 5000])
def test_what_is_no_settings_is_refused_in_words(make, text):
    form = make("pretraining")
    with pytest.raises(InputError, match=r"not JSON|must be an object"):
        form.use(asked(form, text=text))
    assert form.check(asked(form, text=text))[2] == ""  # nor does it keep the form from answering


@pytest.mark.parametrize("text", ['{"name": "half \\ud800"}', f'{{"steps": {2**70}}}'])
def test_what_no_answer_can_hold_becomes_what_one_can(make, text):
    form = make("pretraining")
    assert form.check(used(form, text))[2]  # it names no text


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("pretraining", "model.size"),
        ("pretraining", "model.overrides"),
        ("pretraining", "data"),
        ("pretraining", "data.texts"),
        ("pretraining", "tokenizer"),
        ("race", "entrants"),
        ("race", "data.texts"),
    ],
)
@pytest.mark.parametrize("odd", [7, "x", [["x"]]])
def test_settings_of_a_wrong_kind_are_told_by_the_check(make, kind, path, odd):
    form = make(kind)
    config = copy.deepcopy(form.first())
    *above, last = path.split(".")
    (fields.read(config, above[0]) if above else config)[last] = odd
    question = used(form, json.dumps(config))
    assert form.check(question)[2]
    if kind == "pretraining":
        form.turn(question | {"family": "electra"})


@pytest.mark.parametrize(("kind", "other"), [("pretraining", "race"), ("pretraining", "task")])
def test_settings_of_another_kind_of_run_are_told_where_they_belong(make, kind, other):
    form = make(kind)
    question = used(form, json.dumps(make(other).first()))
    assert form.check(question)[2] == OTHER_KIND
    with pytest.raises(InputError, match="another kind of run"):
        form.asked(question)
