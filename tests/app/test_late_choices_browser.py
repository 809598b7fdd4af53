"""Choices in the Train lab's forms that are made while an answer is on its way."""

import re

import pytest
from playwright.sync_api import expect

from tests.app.held import Held
from tests.app.train_tab import open_form, shared
from tests.app.visitors import PAINTED

pytestmark = pytest.mark.slow


@pytest.fixture
def cloze(module_page):
    """One page for the tests of the file."""
    yield from shared(module_page)


def test_who_shows_the_first_batch_stays_chosen(cloze):
    """An answer to an older question once put its own choice back."""
    form = open_form(cloze, "race")
    cloze.rest()
    held = Held(cloze.page, "/run/predict")
    form.field("Seed").fill("41")
    held.wait()
    form.choose("Whose first batch", "causal")
    held.end()
    cloze.rest()
    expect(form.field("Whose first batch")).to_have_value(re.compile("causal"))


def test_a_family_that_is_chosen_after_a_recipe_counts(cloze):
    """Whichever answer comes first, and it takes over what the recipe has filled in."""
    form = open_form(cloze)
    cloze.rest()
    held = Held(cloze.page, "/run/predict")
    form.field("ELECTRA mini").check()
    held.wait()
    form.choose("Family", "RoBERTa")
    cloze.page.evaluate(PAINTED)
    while held.routes:
        with cloze.page.expect_response(re.compile("/run/predict")):
            held.give(which=-1)
    held.end()
    cloze.rest()
    expect(form.field("Family")).to_have_value(re.compile("RoBERTa"))
    assert form.config()["model"]["size"].startswith("roberta")


def test_what_is_typed_after_a_recipe_stays(cloze):
    """The recipe's answer once wrote over it."""
    form = open_form(cloze)
    recipe, other = form.field("ELECTRA mini"), form.field("BERT mini")
    other.check()
    cloze.rest()
    steps = form.field("Steps").input_value()
    held = Held(cloze.page, "/run/predict")
    recipe.check()
    held.wait()
    form.field("Steps").fill("321")
    held.end()
    expect(form.field("Family")).to_have_value(re.compile("ELECTRA"))
    cloze.rest()
    expect(form.field("Steps")).to_have_value("321")
    config = form.config()
    assert (config["steps"], config["model"]["size"][:7]) == (321, "electra")
    # The next recipe is taken whole, also where another one was still coming.
    held = Held(cloze.page, "/run/predict")
    form.field("RoBERTa mini").check()
    held.wait()
    other.check()
    cloze.page.evaluate(PAINTED)
    held.end()
    cloze.rest()
    expect(form.field("Steps")).to_have_value(steps)
    assert form.config()["steps"] == int(steps)


def test_a_column_of_a_table_stays_chosen(cloze, tmp_path):
    form = open_form(cloze, "task")
    form.choose("Labelled set", "my own table …")
    rows = "".join(f"A bird {n},a fish {n},{'ab'[n % 2]},{'cd'[n % 2]}\n" for n in range(40))
    (tmp_path / "rows.csv").write_text(f"one,two,label,other\n{rows}")
    form.send(tmp_path / "rows.csv", "Send a table (.csv, .tsv, .jsonl, .parquet)")
    form.says("rows to learn from")
    cloze.rest()
    held = Held(cloze.page, "/run/predict")
    form.choose("Column: text", "two")
    held.wait()
    form.choose("Column: label", "other")
    held.end()
    cloze.rest()
    expect(form.field("Column: text")).to_have_value("two")
    expect(form.field("Column: label")).to_have_value("other")


ASK = """([event, data]) => {
  const body = JSON.stringify({ data, fn_index: event, trigger_id: 1, session_hash: 'visitor' });
  return fetch('/gradio_api/run/predict', { method: 'POST', body }).then((found) => found.text());
}"""


def test_what_is_asked_twice_in_one_moment_is_asked_once(cloze):
    """The second answer would undo what a visitor did after the first; other questions wait."""
    cloze.rest()
    page = cloze.page
    event = page.evaluate(
        "() => gradio_config.dependencies.find((e) => e.trigger_mode === 'always_last').id"
    )
    bodies = []

    def reply(route):
        bodies.append(route.request.post_data_json["data"])
        route.fulfill(body=str(len(bodies)))

    page.route("**/run/predict*", reply)
    each = f"Promise.all([['a'], ['a'], ['b']].map((data) => ({ASK})([{event}, data])))"
    assert page.evaluate(each) == ["1", "1", "2"]
    assert bodies == [["a"], ["b"]]
