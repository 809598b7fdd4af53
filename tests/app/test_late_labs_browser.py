"""The labs where answers come late, or to another question than the one asked last."""

import re

import pytest
from playwright.sync_api import expect

from app.claims.desk import CLAIMS
from app.labs.claims.answers import TOPICS
from tests.app.held import Held
from tests.app.one_page import mark, renewed
from tests.app.test_claims_browser import BOTH, FAST
from tests.app.test_claims_browser import Lab as Claims
from tests.app.test_forge_browser import Lab as Forge
from tests.app.visitors import PAINTED, take

pytestmark = pytest.mark.slow


@pytest.fixture
def labs(module_page):
    """The same page for the tests of the other tabs."""
    yield from renewed(module_page)
    module_page.page.unroute_all(behavior="ignoreErrors")


GUESSED = "roberta-340"
PREDICT = "/gradio_api/run/predict"


def test_words_of_one_sentence_are_not_forged_into_another(labs, detective):
    mark(labs, 6)
    lab = Forge(labs)
    lab.fake("spain")
    labs.page.wait_for_function("Cloze.kept('forge')?.fakes")
    held = Held(labs.page, PREDICT)
    labs.page.get_by_role("button", name="Roll again").click()
    held.wait()
    labs.page.evaluate("Cloze.openTab('Mask')")
    held.end()
    labs.write("A cat sat on the mat.")
    lab = Forge(labs)
    assert lab.table("Your words").count() == 0  # at once
    assert "fakes" not in labs.page.evaluate("Cloze.kept('forge')")


def draws(request):
    """Whether it asks for spans as in pretraining."""
    values = (request.post_data_json or {}).get("data") or []
    return any(isinstance(each, dict) and each.get("draw") for each in values)


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


def test_of_a_pick_and_a_draw_of_spans_the_later_one_counts(labs):
    page = labs.page
    page.evaluate("Cloze.openTab('Spans')")
    picture = page.get_by_role("region", name="The span in its sentence")
    picture.get_by_text("France", exact=True).first.wait_for()
    labs.rest()
    held = Held(page, PREDICT)
    page.get_by_role("button", name="Draw spans as in pretraining").click()
    held.wait()
    take(page.get_by_label("First word"), "2. capital", exact=True)
    last_first(page, held)
    labs.rest()
    assert page.evaluate("[...Cloze.sentence.marks.keys()]") == [2, 3, 4]


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
    page.get_by_text("The special tokens get").wait_for()
    mode("Switch off").check()
    page.get_by_text("matters most: without it “paris” loses").wait_for()
    sweep.uncheck()
    mode("Heads").check()


def test_a_layer_found_in_another_model_is_one_of_this(visit, detective):
    """The first answer finds a layer of four while a model of one layer is asked for."""
    cloze = visit()
    page = cloze.page
    held = Held(page, PREDICT, lambda it: '"heads"' in (it.post_data or ""))
    page.evaluate("Cloze.openTab('Attention')")
    held.wait()
    page.evaluate("Cloze.chooseModel('zz-detective-generator')")
    page.wait_for_function("Cloze.sentence.model === 'zz-detective-generator'")
    held.end()
    cloze.rest()
    for name, choices in (("Layer", "1"), ("Head", "[1-4]")):
        expect(page.get_by_label(name, exact=True)).to_have_value(re.compile(choices))


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
    labs.rest()
    page.get_by_text("for a sequence of 32 tokens").wait_for()
    times = page.locator("#budget-costs").get_by_text(re.compile(r"\d\s?ms"))
    expect(times).to_have_count(0)
    page.get_by_role("button", name="Measure on this machine").click()
    times.first.wait_for()


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
    moved = [
        re.compile(rf"^\S+\s+\S+\s+{re.escape(name)}(\s|$)")
        for name in (*names[1:3], names[0], *names[3:])
    ]
    expect(chips).to_have_text(moved, use_inner_text=True)
    held.end()
    labs.rest()
    expect(chips).to_have_text(moved, use_inner_text=True)


def test_a_link_keeps_a_choice_that_is_not_answered_yet(labs):
    """What needs no server does not wait for the answer to the same event."""
    page = labs.page
    page.evaluate("Cloze.openTab('Ladder')")
    title = page.locator("#ladder-rungs .xtitle")
    title.wait_for()
    labs.rest()
    held = Held(page, PREDICT)
    page.get_by_role("radio", name="Perplexity").check()
    held.wait()
    page.wait_for_function("Cloze.kept('ladder')?.measure === 'perplexity'")
    expect(title).not_to_have_text("Perplexity")
    held.end()
    expect(title).to_have_text("Perplexity")


def test_a_guess_stays_whenever_its_statement_is_shown(labs):
    """Another statement takes the guess of the one before away at once, not when it is shown."""
    page = labs.page
    lab = Claims(labs)
    lab.open(FAST)
    labs.rest()
    held = Held(page, PREDICT, lambda it: f'"{BOTH}"' in (it.post_data or ""))
    lab.choose("Statement", str(CLAIMS[BOTH].statement))
    held.wait()
    lab.guess("Wrong")
    held.wait(2)
    held.give()
    lab.card.get_by_role("heading", name=str(CLAIMS[BOTH].statement)).wait_for()
    expect(page.get_by_role("radio", name="Wrong", exact=True)).to_be_checked()
    held.end()
    lab.judged("Half right")
    labs.rest()
    assert page.evaluate("Cloze.kept('claims')?.ran?.length") == 1


def test_a_guess_is_not_taken_along_to_another_statement(labs):
    page = labs.page
    lab = Claims(labs)
    lab.open(GUESSED)
    labs.rest()
    held = Held(page, PREDICT)
    lab.guess("Partly")
    held.wait().give()  # what is measured
    held.wait()  # what is shown of it
    lab.choose("Statement", str(CLAIMS[FAST].statement))
    held.give()
    held.wait().end()
    lab.card.get_by_role("heading", name=str(CLAIMS[FAST].statement)).wait_for()
    labs.rest()
    expect(lab.panel.get_by_role("radio", checked=True)).to_have_count(0)
    lab.open(GUESSED)
    expect(lab.panel.get_by_role("radio", name="Partly")).to_be_checked()


def test_a_guess_that_waits_measures_no_other_statement(labs):
    page = labs.page
    lab = Claims(labs)
    first, second, third = [name for name in TOPICS["RoBERTa"] if name != GUESSED][:3]
    lab.open(first)
    labs.rest()
    held = Held(page, PREDICT)
    lab.guess("Wrong")
    held.wait()
    lab.choose("Statement", str(CLAIMS[second].statement))
    expect(lab.panel.get_by_role("radio", checked=True)).to_have_count(0)
    lab.guess("Right")
    lab.choose("Statement", str(CLAIMS[third].statement))
    expect(lab.panel.get_by_role("radio", checked=True)).to_have_count(0)
    held.end()
    lab.card.get_by_role("heading", name=str(CLAIMS[third].statement)).wait_for()
    labs.rest()
    expect(lab.panel.get_by_role("radio", checked=True)).to_have_count(0)
    expect(lab.card.get_by_role("status")).to_be_hidden()


def test_a_model_that_a_lab_opens_waits_for_no_answer(visit, detective):
    """The answer of a server could take the place of a model that is chosen since."""
    cloze = visit(link="#text=A%20cat.&model=zz-detective")
    page = cloze.page
    page.locator("#open-generator").wait_for()
    held = Held(page, PREDICT)
    page.locator("#open-generator").click()
    expect(page.locator("#sentence-model input")).to_have_value(re.compile("generator"))
    held.end()
    cloze.rest()


def last_first(page, held):
    """Give the answers that are held back, the last of them first."""
    held.wait()
    page.evaluate(PAINTED)
    while held.routes:
        with page.expect_response(re.compile(PREDICT)):
            held.give(which=-1)
    held.end()


def test_what_a_lab_begins_with_does_not_take_the_place_of_a_choice(visit):
    cloze = visit()
    held = Held(cloze.page, PREDICT)
    cloze.page.evaluate("Cloze.openTab('Ladder')")
    held.wait()
    cloze.page.get_by_role("radio", name="Perplexity").check()
    last_first(cloze.page, held)
    cloze.rest()
    expect(cloze.page.locator("#ladder-rungs .xtitle")).to_have_text("Perplexity")


def test_a_preset_is_shown_whatever_was_asked_before(labs):
    page = labs.page
    page.evaluate("Cloze.openTab('Budget')")
    page.get_by_role("radio", name="The vocabulary grows").check()
    page.get_by_text("mdeberta-v3-base").first.wait_for()
    labs.rest()
    held = Held(page, PREDICT)
    page.get_by_role("checkbox", name="Each bar to full length").check()
    held.wait()
    page.get_by_role("radio", name="BERT against ALBERT").check()
    last_first(page, held)
    page.get_by_text("9.3 times fewer parameters").wait_for()
    labs.rest()
    expect(page.get_by_text("9.3 times fewer parameters")).to_be_visible()
    rows = labs.numbers("#budget-bars")
    assert len(rows[0]) == 3, "both models and nothing else"
    page.get_by_role("checkbox", name="Each bar to full length").uncheck()


def test_a_size_to_start_from_leaves_what_is_typed(labs):
    page = labs.page
    page.evaluate("Cloze.openTab('Budget')")
    page.get_by_role("button", name="A size of your own").click()
    labs.rest()
    held = Held(page, PREDICT)
    take(page.locator("#budget-base input"), "albert-base", exact=True)
    held.wait()
    page.locator("#budget-layers input").fill("7")
    last_first(page, held)
    labs.rest()
    expect(page.locator("#budget-layers input")).to_have_value("7")
    expect(page.locator("#budget-embedding input")).to_have_value("128")
    page.locator("#budget-own input").uncheck()
