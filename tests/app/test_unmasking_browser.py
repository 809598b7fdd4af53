"""The Unmasking lab in Chromium: rows, the slider, words that stay, links, Chinese."""

import json
import re

import pytest
from playwright.sync_api import expect

from app.serving import locales
from tests.app.held import Held, posts
from tests.app.one_lab import OneLab
from tests.app.visitors import take

TELL = """() => {
  window.told = [];
  const steps = document.querySelector('#unmasking-steps');
  new MutationObserver(() => { told.push(steps.querySelector('output').textContent); })
    .observe(steps, { subtree: true, childList: true, characterData: true });
}"""
"""What plays is over before a busy machine looks: every step is written down."""


class Lab(OneLab):
    """The Unmasking lab of a page."""

    lab, heading = "unmasking", "How does a text come out of [MASK]s?"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        self.picture = self.panel.get_by_role("table", name=self.named("The text, step by step"))
        self.picture.first.wait_for()

    @property
    def chosen(self):
        """The pieces of the row that is looked at."""
        return self.panel.locator("#unmasking-steps .chosen td bdi")

    def word(self, text):
        return self.picture.first.get_by_role("columnheader").get_by_role("button", name=text)


@pytest.fixture(name="lab")
def make_lab(module_page):
    return Lab(module_page)


def test_a_text_comes_out_and_its_steps_are_looked_at(lab):
    lab.panel.get_by_role("radio", name="A word stays").check()
    expect(lab.word("capital")).to_have_attribute("aria-pressed", "true")
    expect(lab.chosen.nth(1)).to_have_text("capital")
    rows = lab.picture.first.get_by_role("rowheader").get_by_role("button")
    expect(rows).to_have_count(7)
    expect(rows.first).to_have_accessible_name("Step 0")
    rows.first.click()
    expect(lab.chosen.first).to_have_text("[MASK]")
    slider = lab.panel.get_by_role("slider", name="Step", exact=True)
    slider.fill("6")
    expect(lab.panel.locator("#unmasking-steps output")).to_have_text("Step 6 of 6")
    expect(slider).to_have_attribute("aria-valuetext", "Step 6 of 6")
    lab.page.evaluate(TELL)
    lab.panel.get_by_role("button", name="Play").click()
    lab.page.wait_for_function("() => told.includes('all hidden') && told.at(-1) === 'Step 6 of 6'")
    told = lab.page.evaluate("told")  # the last step may be drawn once more before it plays
    played = list(dict.fromkeys(told[told.index("all hidden") :]))
    assert played == ["all hidden", *(f"Step {n} of 6" for n in range(1, 7))]
    assert not lab.cloze.problems


def test_a_click_lets_a_word_stay_and_a_link_keeps_it(lab):
    lab.panel.get_by_role("radio", name="A word stays").check()
    lab.word("France").click()
    expect(lab.word("France")).to_have_attribute("aria-pressed", "true")
    expect(lab.chosen.nth(3)).to_have_text("france")
    take(lab.panel.get_by_label("Order", exact=True), "Left to right")
    lab.page.wait_for_function("() => Cloze.kept('unmasking')?.order === 'left_to_right'")
    lab.cloze.rest()
    state = lab.page.evaluate("Cloze.kept('unmasking')")
    assert state["stays"][1:] == [1, 3], json.dumps(state)
    assert not lab.cloze.problems


def test_numbers_that_cannot_be_are_told_and_put_right(lab):
    lab.unfold("How pieces are put in")
    seed = lab.panel.get_by_label("Seed", exact=True)
    for typed, told in (("-5", "seed is -5"), ("1.5", "seed is 1.5"), ("", "seed is empty")):
        seed.fill(typed)
        expect(lab.panel.get_by_text(told)).to_be_visible()
    lab.panel.get_by_role("button", name="Next seed").click()
    expect(seed).to_have_value("1")
    expect(lab.panel.get_by_text("seed is")).to_be_hidden()
    steps = lab.panel.get_by_role("spinbutton", name=re.compile("Steps"))
    steps.fill("99")
    expect(lab.panel.get_by_text("steps is 99")).to_be_visible()
    steps.fill("8")
    expect(lab.panel.get_by_text("steps is")).to_be_hidden()


def test_words_are_chosen_while_an_answer_is_under_way(lab):
    example = lab.panel.get_by_role("radio", name="A word stays")
    example.check()
    expect(lab.word("capital")).to_have_attribute("aria-pressed", "true")
    lab.cloze.rest()
    answers = Held(lab.page, "/run/predict", posts)
    lab.word("France").click()
    answers.wait()
    lab.word("Paris").click()
    answers.end()
    lab.cloze.rest()
    for word in ("capital", "France", "Paris"):
        expect(lab.word(word)).to_have_attribute("aria-pressed", "true")
    expect(example).not_to_be_checked()
    lab.panel.get_by_role("slider", name="Step", exact=True).fill("2")
    lab.cloze.write("She looked at him.")
    expect(lab.word("him")).to_be_visible()
    expect(lab.chosen.filter(has_text="[MASK]")).to_have_count(0)
    lab.page.wait_for_function("() => !('at' in (Cloze.kept('unmasking') ?? {}))")
    lab.cloze.write("The capital of France is Paris.")
    assert not lab.cloze.problems


@pytest.mark.slow
def test_in_chinese(visit):
    words = locales.catalogue("zh")
    cloze = visit(
        link="?lang=zh#text=The+capital+of+France+is+Paris.&model=bert-mini&tab=unmasking"
    )
    lab = Lab(cloze, words)
    expect(lab.panel.get_by_role("button", name=words["Play"])).to_be_visible()
    expect(lab.panel.locator("#unmasking-steps output")).to_contain_text("第6步")
    steps = lab.panel.get_by_role("slider", name=words["Steps"], exact=True)
    expect(steps).to_be_visible()  # Gradio says "range slider for" before it


def test_steps_are_saved_and_copied(lab):
    lab.panel.get_by_role("radio", name="A word stays").check()
    expect(lab.chosen.nth(1)).to_have_text("capital")
    lab.unfold("Every step")
    fold = lab.panel.locator("#unmasking-table")
    with lab.page.expect_download() as saved:
        lab.panel.get_by_role("button", name="Save as SVG", exact=True).click()
    assert saved.value.suggested_filename == "cloze-unmasking.svg"
    assert "bert-mini: the text, step by step" in saved.value.path().read_text("utf-8")
    lab.page.evaluate(
        """() => Object.defineProperty(navigator, 'clipboard', { configurable: true,
          value: { writeText: async (text) => { window.copied = text; } } })"""
    )
    fold.get_by_role("button", name="Copy", exact=True).click()
    expect(fold.get_by_role("button", name="Copied", exact=True)).to_be_visible()
    lines = lab.page.evaluate("copied").split("\n")
    assert lines[0].split("\t") == ["Step", "Text", "Put in", "Went back to [MASK]"]
    shown = fold.locator("tbody tr")
    expect(shown).to_have_count(len(lines) - 1)
    first, text = lines[1].split("\t")[:2]
    assert first == "1"
    expect(shown.first.locator("td").first).to_have_text(text)
    assert not lab.cloze.problems
