"""The labs where answers come late, or to another question than the one asked last."""

import re

import pytest
from playwright.sync_api import expect

from tests.app.held import Held
from tests.app.one_page import mark, renewed
from tests.app.test_forge_browser import Lab as Forge


@pytest.fixture
def labs(module_page):
    """The same page for the tests of the other tabs."""
    yield from renewed(module_page)
    module_page.page.unroute_all(behavior="ignoreErrors")


PREDICT = "/gradio_api/run/predict"


def test_words_of_one_sentence_are_not_forged_into_another(labs, detective):
    mark(labs, 6)
    lab = Forge(labs)
    lab.fake("spain")
    assert "fakes" in labs.page.evaluate("Cloze.kept('forge')")
    held = Held(labs.page, PREDICT)
    labs.page.get_by_role("button", name="Roll again").click()
    held.wait()
    labs.page.evaluate("Cloze.openTab('Mask')")
    held.end()
    labs.write("A cat sat on the mat.")
    lab = Forge(labs)
    assert lab.table("Your words").count() == 0
    assert "fakes" not in labs.page.evaluate("Cloze.kept('forge')")


def draws(request):
    """Whether it asks for spans as in pretraining."""
    values = (request.post_data_json or {}).get("data") or []
    return len(values) == 6 and isinstance(values[0], dict)


def test_spans_are_drawn_in_the_text_they_were_asked_for(labs):
    page = labs.page
    page.evaluate("Cloze.openTab('Spans')")
    draw = page.get_by_role("button", name="Draw spans as in pretraining")
    picture = page.get_by_role("region", name="The span in its sentence")
    picture.get_by_text("France", exact=True).first.wait_for()
    held = Held(page, PREDICT, draws)
    draw.click()
    held.wait()
    labs.write("A cat sat on the mat.")
    picture.get_by_text("cat", exact=True).first.wait_for()
    page.evaluate(
        """() => { window.hidden = []; Cloze.onChange(() => {
            if (Cloze.sentence.marks.size) hidden.push(Cloze.sentence.text); }); }"""
    )
    with page.expect_response(re.compile(PREDICT)):
        held.end()
    # It waits for the late answer, and is the only one that hides something.
    draw.click()
    page.wait_for_function("hidden.length > 0")
    assert page.evaluate("hidden") == ["A cat sat on the mat."]


def test_an_example_that_comes_late_replaces_no_text_that_was_typed(labs):
    page = labs.page
    page.evaluate("Cloze.openTab('Pairs')")
    page.get_by_role("group", name="Next sentence").wait_for()
    held = Held(page, PREDICT, lambda request: "other" in (request.post_data_json or {})["data"])
    page.get_by_role("radio", name="Random", exact=True).check()
    held.wait()
    second = page.get_by_role("textbox", name="Second text")
    second.fill("My own text.")
    with page.expect_response(lambda found: "My own text." in (found.request.post_data or "")):
        held.end()
    labs.rest()
    expect(second).to_have_value("My own text.")
    expect(page.get_by_role("radio", name="Your own", exact=True)).to_be_checked()
    assert page.evaluate("Cloze.sentence.text") == "The capital of France is Paris."


def test_a_sweep_goes_on_where_it_was_left(labs):
    mark(labs, 6)
    page = labs.page
    page.evaluate("Cloze.openTab('Attention')")
    mode = lambda name: page.get_by_role("radio", name=name, exact=True)  # noqa: E731
    mode("Switch off").check()
    page.get_by_text("Switch a head off to see what changes.").wait_for()
    held = Held(page, PREDICT, lambda it: '"off"' in (it.post_data or ""))
    sweep = page.get_by_role("checkbox", name="Sweep: every head off in turn")
    sweep.check()
    held.wait()
    mode("Norms").check()
    held.end()
    page.get_by_text("[CLS] and [SEP] get").wait_for()
    mode("Switch off").check()
    page.get_by_text("matters most: without it “paris” loses").wait_for()
    sweep.uncheck()
    mode("Heads").check()


def test_a_time_is_that_of_the_length_it_stands_below(labs):
    page = labs.page
    page.evaluate("Cloze.openTab('Budget')")
    page.get_by_role("radio", name="BERT against ALBERT").check()
    page.get_by_text("9.3 times fewer parameters").wait_for()
    page.get_by_role("button", name="Parameters, bytes, operations, time").click()
    held = Held(page, "/gradio_api/queue/join")
    page.get_by_role("button", name="Measure on this machine").click()
    held.wait()
    page.get_by_label("Tokens in the sequence").fill("32")
    page.get_by_text("for a sequence of 32 tokens").wait_for()
    # What was measured with the old length is asked about again.
    with page.expect_response(re.compile(PREDICT)):
        held.end()
    page.get_by_text("for a sequence of 32 tokens").wait_for()
    assert page.locator("#budget-costs").get_by_text(" ms").count() == 0


def test_a_late_answer_to_an_order_does_not_move_the_pieces_back(labs):
    page = labs.page
    page.evaluate("Cloze.openTab('Permutation')")
    chips = page.get_by_role("list", name="Order of prediction").get_by_role("button")
    chips.first.wait_for()
    labs.rest()
    before = chips.all_inner_texts()
    names = [text.split()[2] for text in before]
    held = Held(page, PREDICT)
    chips.first.focus()
    page.keyboard.press("ArrowRight")
    held.wait()
    page.keyboard.press("ArrowRight")
    held.give()
    held.wait()
    moved = [*names[1:3], names[0], *names[3:]]
    assert [text.split()[2] for text in chips.all_inner_texts()] == moved
    held.end()
    labs.rest()
    assert [text.split()[2] for text in chips.all_inner_texts()] == moved
