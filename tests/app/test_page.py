"""The page in a real browser: what a visitor does, and what must come of it."""

import csv
from collections import Counter

import httpx
import pytest
from playwright.sync_api import expect

from app.serving.examples import EXAMPLES
from core_models.prediction import fill
from tests.app.held import Held
from tests.app.one_page import SENTENCE, renewed

LONG = (
    "The moon goes round the earth , and the earth goes round the sun . In winter the lake is "
    "covered with ice and snow , and the children like to skate on it after school . "
)


# The buttons below the chips as at the start; another draw takes the seed 1 once more.
TOOLS = """() => {
  Cloze.change({ whole: false, pieces: false, drawn: false });
  const kind = document.querySelector('#draw-kind');
  kind.value = 'uniform';
  kind.dispatchEvent(new Event('change'));
  Cloze.write('sentence-seed', '1');
}"""


@pytest.fixture
def cloze(module_page):
    """One page for all tests that are not about opening it."""
    yield from renewed(module_page, TOOLS)


def same_share(shown: str, probability: float) -> bool:
    """Equal to the last digit shown; JavaScript and Python may round a tie differently."""
    if shown.startswith("<"):
        return probability < 1.01e-5
    digits = shown.split()[0].partition(".")[2]
    return abs(float(shown.split()[0]) - probability * 100) <= 0.51 * 10 ** -len(digits)


def test_no_event_has_two_answers(server):
    """Gradio repeats an event for all that listen to it: two answers would repeat each other."""
    found = httpx.get(f"{server}/config", timeout=60).json()["dependencies"]
    answers = [each for each in found if each["backend_fn"]]
    assert len(answers) > 80
    latest = [each for each in answers if each["trigger_mode"] == "always_last"]
    events = Counter(tuple(target) for each in latest for target in each["targets"] if target[0])
    assert [event for event, count in events.items() if count > 1] == []


def test_who_waits_does_not_describe_the_page(cloze):
    """As Playwright does at each look in vain (``driver.js``): tests take a fifth longer then."""
    with pytest.raises(AssertionError, match="not found") as told:
        expect(cloze.page.locator("#nowhere")).to_be_visible(timeout=1)
    assert "Aria snapshot" not in str(told.value)


def test_clicking_a_word_shows_the_models_own_predictions(cloze, model):
    cloze.write(SENTENCE)
    expect(cloze.page.locator(".guess")).to_have_count(0)
    cloze.chip("Paris").click()
    cloze.settle()
    (expected,) = fill(model, SENTENCE, masks=[6], top_k=5).predictions
    rows = cloze.rows(6)
    assert [piece for piece, _ in rows] == [found.piece for found in expected.candidates]
    for (_, share), found in zip(rows, expected.candidates, strict=True):
        assert same_share(share, found.probability), (share, found.probability)
    card = cloze.page.locator('.guess[data-position="6"]')
    if expected.original.rank > 5:
        expect(card.locator(".was .rank")).to_have_text(f"{expected.original.rank:,}")
        share = card.locator(".was .share").inner_text()
        assert same_share(share, expected.original.probability)
    else:
        expect(card.locator(".is-original .word")).to_have_text("paris")


def test_hiding_and_showing_by_keyboard_alone(cloze):
    first = cloze.at(1)
    first.focus()
    cloze.page.keyboard.press("Home")
    cloze.page.keyboard.press("ArrowRight")
    cloze.page.keyboard.press("Enter")
    assert cloze.marked() == [2]
    cloze.page.keyboard.press("ArrowRight")
    cloze.page.keyboard.press("Space")
    assert cloze.marked() == [2, 3]
    cloze.page.keyboard.press("Space")
    assert cloze.marked() == [2]
    cloze.page.keyboard.press("End")
    expect(cloze.at(7)).to_be_focused()
    cloze.page.keyboard.press("Home")
    cloze.page.keyboard.press("Space")
    cloze.page.keyboard.press("Shift+ArrowRight")
    cloze.page.keyboard.press("Shift+ArrowRight")
    assert cloze.marked() == [1, 2, 3]
    expect(first).to_have_attribute("aria-pressed", "true")
    hidden = cloze.page.get_by_role("button", name="[MASK] The hidden", pressed=True)
    expect(hidden).to_have_count(1)
    cloze.settle()


def test_only_one_chip_is_in_the_tab_order(cloze):
    expect(cloze.page.locator('.chip[tabindex="0"]')).to_have_count(1)
    cloze.chip("France").click()
    expect(cloze.page.locator('.chip[tabindex="0"]')).to_have_attribute("data-position", "4")


def test_shift_click_hides_a_range(cloze):
    cloze.chip("capital").click()
    cloze.chip("is").click(modifiers=["Shift"])
    assert cloze.marked() == [2, 3, 4, 5]
    cloze.settle()
    expect(cloze.page.locator(".guess")).to_have_count(4)


def test_dragging_hides_a_range_and_dragging_again_shows_it(cloze):
    def drag(start, end):
        for position, act in ((start, "down"), (end, "up")):
            box = cloze.at(position).bounding_box()
            cloze.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=6)
            getattr(cloze.page.mouse, act)()

    cloze.at(1).scroll_into_view_if_needed()
    drag(2, 4)
    assert cloze.marked() == [2, 3, 4]
    drag(4, 3)
    assert cloze.marked() == [2]
    cloze.settle()


def test_whole_words_hide_all_their_pieces(cloze, model):
    text = "Quizzifying is far away ."
    pieces = [n for n, word in enumerate(model.encode([text])[0].words) if word == 0]
    assert len(pieces) > 1
    cloze.write(text)
    cloze.at(pieces[-1]).click()
    assert cloze.marked() == [pieces[-1]]
    cloze.page.click("#clear")
    cloze.unfold("Options")
    cloze.page.click("#switch-whole")
    cloze.at(pieces[0]).click()
    assert cloze.marked() == pieces
    cloze.settle()


def test_pieces_read_as_words_until_they_are_asked_for(cloze):
    cloze.write("Quizzifying is far away .")
    chips = cloze.page.locator(".view-chips")
    for shown in ("##", "[CLS]"):
        expect(chips).not_to_contain_text(shown, use_inner_text=True)
    cloze.unfold("Options")
    cloze.page.click("#switch-pieces")
    for shown in ("##", "[CLS]"):
        expect(chips).to_contain_text(shown, use_inner_text=True)


def test_a_candidate_goes_into_the_sentence(cloze):
    cloze.chip("Paris").click()
    cloze.settle()
    button = cloze.page.locator('.guess[data-position="6"] button.candidate').nth(1)
    piece = button.get_attribute("data-piece")
    button.click()
    cloze.page.wait_for_function("old => Cloze.sentence.text !== old", arg=SENTENCE)
    text = cloze.page.input_value("#sentence-text textarea")
    assert text.lower() == SENTENCE.lower().replace("paris", piece.removeprefix("##"))
    assert cloze.marked() == []


def test_marks_stay_on_their_words_when_the_text_changes(cloze):
    cloze.chip("France").click()
    cloze.write("Today the capital of France is Paris.")
    (position,) = cloze.marked()
    expect(cloze.at(position).locator(".note")).to_have_text("France")
    cloze.write("Bees make honey .")
    assert cloze.marked() == []


def test_a_word_of_ones_own_gets_its_rank(cloze, model):
    cloze.chip("Paris").click()
    cloze.settle()
    own = cloze.page.locator('.guess[data-position="6"] .mine')
    own.locator("input").fill("London")
    (expected,) = fill(model, SENTENCE, masks=[6], watch=["London"]).predictions
    (found,) = expected.watched
    own.locator(".rank").get_by_text(f"{found.rank:,}", exact=True).wait_for()
    share = own.locator(".share").inner_text()  # it comes with the rank
    assert same_share(share, found.probability)
    own.locator("input").fill("Quizzifying")
    cloze.page.locator(".mine-note", has_text="pieces").wait_for()


def test_a_random_masking_shows_its_three_cases(cloze, model):
    cloze.write(LONG * 3)
    cloze.unfold("Options")
    for seed in range(1, 40):
        change = cloze.page.evaluate("Cloze.sentence.change")
        cloze.page.fill("#sentence-seed input", str(seed))
        cloze.page.click("#draw")
        cloze.page.wait_for_function("old => Cloze.sentence.change !== old", arg=change)
        if {"mask", "random", "kept"} == set(
            cloze.page.evaluate("[...Cloze.sentence.marks.values()].map(mark => mark.case)")
        ):
            break
    cloze.settle()
    for case in ("mask", "random", "kept"):
        chip = cloze.page.locator(f'.chip[data-case="{case}"]').first
        position = int(chip.get_attribute("data-position"))
        written = cloze.page.evaluate("p => Cloze.sentence.tokens[p].text", position)
        face, note = chip.locator(".face").inner_text(), chip.locator(".note").inner_text()
        mark = cloze.page.evaluate("p => Cloze.sentence.marks.get(p)", position)
        if case == "mask":
            assert (face, note) == ("[MASK]", written)
        elif case == "random":
            assert (face, note) == (model.tokenizer.display(mark["piece"]), written)
        else:
            assert (face, note) == (written, "kept")
    expect(cloze.page.locator(".legend")).to_be_visible()
    marks = cloze.page.evaluate("[...Cloze.sentence.marks.values()]")
    expected = fill(
        model,
        LONG * 3,
        masks=[m["position"] for m in marks if m["case"] == "mask"],
        replaced={m["position"]: m["piece"] for m in marks if m["case"] == "random"},
        kept=[m["position"] for m in marks if m["case"] == "kept"],
    )
    for prediction in expected.predictions[:6]:
        shown = [piece for piece, _ in cloze.rows(prediction.position)]
        assert shown == [found.piece for found in prediction.candidates]


def test_rolling_again_takes_the_next_seed(cloze):
    cloze.write(LONG)
    seeds = []
    for _ in range(3):
        change = cloze.page.evaluate("Cloze.sentence.change")
        cloze.page.click("#draw")
        cloze.page.wait_for_function("old => Cloze.sentence.change !== old", arg=change)
        seeds.append(cloze.page.input_value("#sentence-seed input"))
    assert seeds == ["1", "2", "3"]
    cloze.settle()


def test_an_example_hides_its_word(cloze):
    cloze.unfold("Examples")
    buttons = cloze.page.locator(".example")
    expect(buttons).to_have_count(len(EXAMPLES))
    for button, example in zip(buttons.all(), EXAMPLES, strict=True):
        button.click()
        cloze.page.wait_for_function(
            "text => Cloze.sentence.text === text && Cloze.sentence.marks.size > 0",
            arg=example["text"],
        )
        cloze.settle()
        hidden = cloze.page.evaluate(
            "[...Cloze.sentence.marks.keys()].map((at) => Cloze.sentence.tokens[at].text)"
        )
        assert "".join(hidden).lower() == "".join(example["hide"])


def test_rapid_clicks_end_with_the_answer_to_the_last(cloze, model):
    for position in (1, 2, 3, 4, 5, 6, 3, 2):
        cloze.at(position).click()
    cloze.settle()
    expected = fill(model, SENTENCE, masks=[1, 4, 5, 6]).predictions
    assert cloze.marked() == [1, 4, 5, 6]
    for prediction in expected:
        shown = [piece for piece, _ in cloze.rows(prediction.position)]
        assert shown == [found.piece for found in prediction.candidates]


def test_fast_typing_ends_with_the_chips_of_the_last_text(cloze):
    box = cloze.page.locator("#sentence-text textarea")
    box.fill("")
    box.press_sequentially("Bees make honey in the summer .", delay=5)
    cloze.page.wait_for_function("Cloze.sentence.text === 'Bees make honey in the summer .'")
    cloze.rest()
    assert cloze.page.evaluate("Cloze.sentence.text") == "Bees make honey in the summer ."


def test_predictions_can_be_saved(cloze):
    cloze.chip("Paris").click()
    cloze.settle()
    with cloze.page.expect_download() as download:
        cloze.page.get_by_text("Save as CSV").click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["piece"] for row in rows[:5]] == [piece for piece, _ in cloze.rows(6)]


def test_what_is_saved_while_an_answer_is_under_way_is_that_answer(cloze):
    """Not the one before it beside the words of the new text."""
    cloze.chip("Paris").click()
    cloze.settle()
    held = Held(cloze.page, "/run/predict", lambda it: '"top_k"' in (it.post_data or ""))
    cloze.chip("capital").click()
    held.wait()
    with cloze.page.expect_download() as download:
        cloze.page.get_by_text("Save as CSV").click()
        held.end()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(dict.fromkeys(row["in the text"] for row in rows)) == ["capital", "Paris"]


def test_the_code_shown_recomputes_the_predictions(cloze, capsys):
    cloze.chip("Paris").click()
    cloze.settle()
    cloze.page.get_by_text("The code that recomputes this").click()
    names = {}
    exec(cloze.page.locator(".view-predictions .code").inner_text(), names)
    found = names["result"].predictions[0].candidates
    assert [entry.piece for entry in found] == [piece for piece, _ in cloze.rows(6)]


def test_a_link_restores_the_sentence_and_its_marks(cloze, visit, model):
    cloze.write("Bees & <b> make honey 😀 + more = 5")
    cloze.chip("honey").click()
    cloze.page.evaluate(
        """Cloze.change({marks: new Map([...Cloze.sentence.marks,
            [1, {position: 1, case: 'random', piece: 99}], [2, {position: 2, case: 'kept'}]])})"""
    )
    cloze.settle()
    wanted = cloze.page.evaluate(
        "[...Cloze.sentence.marks.values()].map(m => [m.position, m.case])"
    )
    again = visit(link="#" + cloze.page.url.partition("#")[2])
    again.page.wait_for_function("window.Cloze?.sentence.marks.size === 3")
    again.settle()
    assert again.page.evaluate("Cloze.sentence.text") == "Bees & <b> make honey 😀 + more = 5"
    found = again.page.evaluate("[...Cloze.sentence.marks.values()].map(m => [m.position, m.case])")
    assert sorted(found) == sorted(wanted)
    expect(again.at(1).locator(".face")).to_have_text(model.tokenizer.display(99))
