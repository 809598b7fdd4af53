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


def test_what_no_answer_can_hold_becomes_what_one_can(make):
    form = make("pretraining")
    assert form.check(used(form, '{"name": "half \\ud800"}'))[2]  # it names no text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [2**53, 2**53 + 1, 2**60, 2**70, -(2**53) - 1, 1e300])
def test_numbers_that_a_page_would_round_are_refused(make, kind, seed):
    """The page made 9007199254740992 of 9007199254740993, and said nothing."""
    form = make(kind)
    most = next(n for n in (2**31, 2**53 - 1) if n >= form.known["seed"].most)
    allowed = f"choose a whole number from 0 to {most:,}."
    with pytest.raises(InputError, match=allowed):  # written as JSON
        form.use(asked(form, text=json.dumps(form.first() | {"seed": seed})))
    question = asked(form) | {"seed": float(seed), "facts": {"good": True}}  # typed in its field
    assert form.check(question)[2].endswith(allowed)
    assert form.wrong.postprocess(form.check(question)[2])["names"] == {"seed": "Seed"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_seed_of_the_page_is_taken_as_it_is(make, kind):
    form = make(kind)
    most = int(form.known["seed"].most)
    assert used(form, json.dumps(form.first() | {"seed": most}))["kept"]["config"]["seed"] == most


def test_large_operations_are_no_seeds(make):
    form = make("race")
    question = used(form, json.dumps(form.first() | {"budget": {"flops": 10**16}}))
    assert question["budget.flops"] == 1e4
    assert form.check(question)[2] == ""


@pytest.mark.parametrize(
    ("kind", "path", "emptied", "ends"),
    [
        ("pretraining", "steps", {}, "a whole number from 1 to 10,000,000"),
        ("race", "budget.steps", {}, "a whole number from 1 to 10,000,000"),
        (
            "race",
            "budget.flops",
            {"budget": "flops"},
            "a number from 0.000001 to 1,000,000,000,000",
        ),
    ],
)
def test_an_empty_field_is_told_by_its_label(make, kind, path, emptied, ends):
    form = make(kind)
    question = asked(form) | {each: None for each in form.known if each.startswith("budget.")}
    question |= {path: None, **emptied}
    said = form.check(question)[2]
    assert said.endswith(f" is empty; write {ends} there.")
    (label,) = form.wrong.postprocess(said)["names"].values()
    assert label == form.known[path].label


def test_a_single_step_is_no_steps(make):
    form = make("race")
    said = form.check(asked(form) | {"budget.steps": 1, "schedule.warmup": 0})[0]
    assert said == "3 models, 1 step each, 3 in all."


def test_operations_beyond_their_ends_are_told_in_their_own_units(make):
    form = make("race")
    question = asked(form) | {"budget": "flops", "budget.steps": None, "budget.flops": 2e12}
    said = form.check(question)[2]
    assert said.endswith(
        " is 2,000,000,000,000; choose a number from 0.000001 to 1,000,000,000,000."
    )
    (label,) = form.wrong.postprocess(said)["names"].values()
    assert label == "Operations of each (trillions)"


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
