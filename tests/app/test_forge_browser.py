"""The Forge lab in Chromium, over small random models or none."""

import json
import re
from urllib.parse import quote

import pytest
import torch
from playwright.sync_api import expect

from app.serving import locales
from core_models.prediction import detect, forge
from tests.app.one_lab import OneLab
from tests.app.one_page import choose, renewed

# Names of tabs are translated before anything asks for them, so Chinese ones may be looked up, too.
MISSING = "[...ClozeLanguage.missing].filter((key) => /[a-z]/i.test(key))"
SHOWN = """([name, expected]) => {
  const row = [...document.querySelectorAll('#tab-forge ol')].find((one) => one.ariaLabel === name);
  const found = [...row?.querySelectorAll('[data-chance]') ?? []].map((one) => one.dataset.chance);
  return found.length === expected.length
    && found.every((chance, n) => Math.abs(chance - expected[n]) < 1e-6);
}"""
CHANCES = "all => all.map(token => Number(token.dataset.chance))"
SPAIN = 4
"""The visitor changes the piece at this position."""


class Lab(OneLab):
    """The Forge lab of a page."""

    lab, heading = "forge", "Who wrote this word?"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        cloze.rest()

    def row(self, name):
        return self.panel.get_by_role("list", name=self.named(name))

    def chances(self, name="The forged sentence"):
        self.cloze.rest()
        return self.row(name).locator("[data-chance]").evaluate_all(CHANCES)

    def shows(self, expected, name="The forged sentence"):
        self.page.wait_for_function(SHOWN, arg=[self.named(name), expected])

    def fake(self, word):
        """Write a word in the place of "France"."""
        self.unfold("Your turn: fool it yourself")
        self.row("Your sentence: choose a word").get_by_role("button", name="France").click()
        box = self.page.get_by_role("textbox", name=self.named("Another word"))
        expect(box).to_be_focused()
        box.fill(word)
        box.press("Enter")
        expect(self.table("Your words")).to_contain_text(word)

    def table(self, name):
        return self.panel.get_by_role("table", name=self.named(name))


def forged(discriminator, session, text, roll, temperature=1.0):
    """What the discriminator says when the generator has filled position 6."""
    generator = session.model("zz-detective-generator")
    random = torch.Generator().manual_seed(roll)
    samples = forge(generator, text, [6], random=random, temperature=temperature).samples
    found = detect(discriminator, text, replaced={each.position: each.id for each in samples})
    return [verdict.probability for verdict in found.verdicts]


@pytest.fixture
def cloze(module_page):
    """One page for the tests that choose no other model."""
    yield from renewed(module_page)


def test_without_a_detective_the_tab_says_how_to_train_one(cloze, session):
    if any("replaced_token" in info.heads for info in session.models()):
        pytest.skip("a detective is installed")
    cloze.at(6).click()
    lab = Lab(cloze)
    expect(lab.panel.get_by_text("zoo build electra-mini")).to_be_visible()
    assert lab.chances() == []


def test_a_round_of_forging_and_judging(cloze, detective, session):
    cloze.at(6).click()
    lab = Lab(cloze)
    page = lab.page
    if (radio := page.get_by_role("radio", name="zz-detective")).is_visible():
        radio.check()
    text = page.evaluate("Cloze.sentence.text")
    lab.shows(forged(detective, session, text, 0))
    page.get_by_role("button", name="Roll again").click()
    lab.shows(forged(detective, session, text, 1))
    page.get_by_role("spinbutton", name="Temperature").fill("2.5")
    page.keyboard.press("Tab")
    lab.shows(forged(detective, session, text, 1, 2.5))

    lab.fake("spain")
    (spain,) = detective.tokenizer.pieces_of("spain")
    mine = detect(detective, text, replaced={SPAIN: spain}).verdicts
    lab.shows([v.probability for v in mine], "Your sentence: choose a word")
    fooled = mine[SPAIN].probability < 0.5
    said = lab.table("Your words").get_by_role("row", name="spain")
    expect(said).to_contain_text("fools it" if fooled else "is noticed")
    you = lab.table("Score").get_by_role("row", name="You")
    share = f"{int(fooled)} ({100 * fooled:.0f} %)"
    expect(you).to_have_text(re.compile(f"You1{re.escape(share)}"))
    # Without a word there is nothing to try: the button leads to its place.
    box = page.get_by_role("textbox", name="Another word")
    box.fill("")
    page.get_by_role("button", name="Try to fool it").click()
    expect(box).to_be_focused()
    box.fill("spain")
    # Asking for the same thing again is no new attempt.
    go = page.get_by_role("button", name="Try to fool it")
    page.get_by_role("button", name="Undo").click()
    expect(lab.table("Your words")).to_be_hidden()
    go.click()
    expect(lab.table("Your words")).to_be_visible()
    expect(you.get_by_role("cell").first).to_have_text("1")
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(you.get_by_role("cell").first).to_have_text("0")

    cloze.write("The capital is 天 .")
    page.locator(".view-notes .notes", has_text="has no piece for “天” and reads [UNK]").wait_for()
    cloze.rest()
    # The sentence block says it already.
    assert lab.panel.get_by_text("has no piece").count() == 0  # at once
    expect(lab.table("Your words")).to_be_hidden()  # they belong to another sentence


def test_an_example_hides_its_word_and_offers_one(cloze, detective):
    lab = Lab(cloze)
    lab.page.get_by_role("button", name="Fool it", exact=True).click()
    cloze.rest()
    assert cloze.marked() == [6]
    box = lab.page.get_by_role("textbox", name="Another word")
    expect(box).to_have_value("london")
    chosen = lab.row("Your sentence: choose a word").get_by_role("button", pressed=True)
    expect(chosen).to_contain_text("Paris")
    lab.page.get_by_role("button", name="A hot generator").click()
    expect(lab.page.get_by_role("spinbutton", name="Temperature")).to_have_value("2.5")
    lab.page.wait_for_function("Cloze.sentence.text.startsWith('The heart')")


@pytest.mark.slow
def test_a_detective_in_the_bar_leaves_no_old_guesses(visit, detective):
    cloze = visit(link="#text=The+capital+of+France+is+Paris.&model=bert-mini&marks=6")
    cloze.settle()
    expect(cloze.page.locator(".guess").first).to_be_visible()
    cloze.page.click("#sentence-model input")
    cloze.page.get_by_role("option").filter(has_text="zz-detective · judges").click()
    cloze.page.wait_for_selector('.view-predictions[data-state="error"]')
    problem = cloze.page.locator(".view-predictions .problem")
    expect(problem).to_contain_text("zz-detective judges words and fills no gaps")
    expect(cloze.page.locator(".guess:visible")).to_have_count(0)
    cloze.unfold("Options")
    cloze.page.click("#switch-pieces")
    cloze.page.click("#clear")
    cloze.rest()
    expect(problem).to_be_visible()
    expect(cloze.page.locator(".guess:visible")).to_have_count(0)
    cloze.page.click("#open-generator")
    cloze.page.wait_for_function("Cloze.sentence.model === 'zz-detective-generator'")
    cloze.at(6).click()
    cloze.settle()
    expect(problem).to_be_hidden()


@pytest.mark.slow
def test_a_link_restores_its_round_in_chinese(visit, detective):
    cloze = visit(link="#text=The+capital+of+France+is+Paris.&model=bert-mini&marks=6")
    choose(cloze, "zz-detective")
    lab = Lab(cloze)
    page = lab.page
    page.get_by_role("spinbutton", name="Temperature").fill("2.5")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Roll again").click()
    lab.fake("spain")
    lab.unfold("The draw, and all numbers")
    with page.expect_download() as download:
        lab.panel.get_by_role("button", name="Save as PNG").last.click()
    assert download.value.path().read_bytes()[:4] == b"\x89PNG"
    kept = page.evaluate("Cloze.kept('forge')")
    assert (kept["roll"], kept["temperature"], kept["fakes"]) == (1, 2.5, [[SPAIN, "spain"]])
    words = locales.catalogue("zh")
    cloze = visit(link=f"?lang=zh{page.evaluate('location.hash')}")
    other = Lab(cloze, words)
    other.unfold("Your turn: fool it yourself")
    for name in ("The forged sentence", "Your sentence: choose a word"):
        other.shows(lab.chances(name), name)
    temperature = other.page.get_by_role("spinbutton", name=words["Temperature"])
    expect(temperature).to_have_value("2.5")
    for fold in ("How many positions teach", "What this shows"):
        other.unfold(fold)
    other.unfold("The draw, and all numbers")
    cloze.rest()
    assert other.page.evaluate(MISSING) == []


@pytest.mark.slow
def test_a_strange_link_opens_the_lab_narrow_and_dark(visit, detective):
    strange = {"roll": "x", "seed": None, "temperature": 40, "detective": "no", "fakes": {}}
    link = f"#text=The+capital+of+France+is+Paris.&tab=forge&lab-forge={quote(json.dumps(strange))}"
    cloze = visit(width=390, dark=True, link=link)
    lab = Lab(cloze)
    assert len(lab.chances()) > 5
    cloze.write("x" * 200)
    assert len(lab.chances()) == 3
    assert cloze.overflow() <= 0
