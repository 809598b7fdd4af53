"""The Claims lab in Chromium: guesses, verdicts, topics, files, links, Chinese."""

import csv
import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from app.claims.bench import Bench
from app.claims.desk import CLAIMS, measure
from app.labs.claims.answers import TRY
from app.serving import locales
from tests.app.held import Held
from tests.app.one_lab import OneLab

LINK = "#text=" + quote("The capital of France is Paris.") + "&model=bert-mini&tab=claims"
FAST, BOTH = "electra-fifteen", "bert-always-mask"
SLOW = 60_000
STATEMENTS = """async (heading) => {
  const [found, box] = [new Set(), heading.closest('[role=tabpanel]')];
  for (let turn = 0; turn < 60; turn += 1) {
    found.add(box.querySelector('article h3').textContent);
    await new Promise((done) => setTimeout(done, 50));
  }
  return [...found];
}"""
"""All that stand in the card within three seconds."""


class Lab(OneLab):
    """The Claims lab of a page."""

    lab, heading = "claims", "True or false?"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        self.card = self.panel.get_by_role("article")

    def choose(self, label, name):
        """Take a choice of a dropdown, which is found by what is typed."""
        box = self.panel.get_by_label(self.named(label), exact=True)
        box.fill(self.named(name))
        self.page.get_by_role("option", name=self.named(name), exact=True).click()

    def open(self, name):
        statement = str(CLAIMS[name].statement)
        self.choose("Statement", statement)
        expect(self.card.get_by_role("heading", name=self.named(statement))).to_be_visible()

    def guess(self, name):
        self.panel.get_by_role("radio", name=self.named(name)).check()

    def judged(self, verdict):
        said = self.card.get_by_role("status")
        expect(said).to_contain_text(self.named(verdict), timeout=SLOW)

    def verdicts(self):
        self.unfold("All verdicts")
        return self.panel.get_by_role("region", name=self.named("Verdicts and numbers so far"))


@pytest.fixture
def lab(module_page):
    """One page for most of these tests."""
    lab = Lab(module_page)
    yield lab
    assert module_page.problems == []


def kept(**state):
    return f"{LINK}&lab-claims={quote(json.dumps(state))}"


def test_guess_measure_and_save(lab, session):
    # A guess starts the measurement; numbers and verdict are those of the core.
    lab.open(BOTH)
    lab.guess("Wrong")
    lab.judged("Half right")
    found = measure(CLAIMS[BOTH], Bench(session, "bert-mini", 0))
    assert found.verdict == "half"
    rows = lab.cloze.numbers("#claims-numbers")
    assert [row[:2] for row in rows] == [[n.label, n.value] for n in found.numbers]
    expect(lab.panel.get_by_text("Your guesses: 0 of 1 right.")).to_be_visible()
    lab.open(FAST)
    expect(lab.card.get_by_role("status")).to_be_hidden()
    expect(lab.panel.get_by_role("radio", checked=True)).to_have_count(0)
    lab.guess("Partly")
    lab.judged("")
    expect(lab.panel.get_by_text("Your guesses: 1 of 2 right.")).to_be_visible(timeout=SLOW)
    # Another seed draws again, and whoever has seen the answer guesses no more.
    lab.panel.get_by_role("button", name="Measure again").click()
    expect(lab.card.get_by_text("seed 1")).to_be_visible(timeout=SLOW)
    expect(lab.panel.get_by_text("Your guesses: 0 of 1 right.")).to_be_visible()
    expect(lab.panel.get_by_role("radio", name="Right")).to_be_disabled()
    lab.unfold("All verdicts")
    with lab.page.expect_download() as download:
        lab.page.locator("#claims").get_by_role("button", name="Save as CSV").click()
    text = download.value.path().read_text("utf-8-sig")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["Seed"]]
    assert {(row["Statement"], row["Seed"]) for row in rows} == {
        (str(CLAIMS[BOTH].statement), "0"),
        (str(CLAIMS[FAST].statement), "1"),
    }
    assert {row["Unit"] for row in rows} == {"%"}
    # What was measured stands in the address.
    lab.page.wait_for_function(f"() => location.hash.includes('{FAST}.1')")


def test_the_keyboard_passes_the_lists_and_goes_on_at_the_verdict(lab):
    lab.open(FAST)
    page, lists = lab.page, lab.panel.get_by_role("listbox")
    following = lab.panel.get_by_role("button", name="Next statement")
    lab.panel.get_by_label("What to try", exact=True).focus()
    for stop in (lab.panel.get_by_label("Statement", exact=True), following):
        page.keyboard.press("Tab")
        expect(stop).to_be_focused()
    lab.cloze.rest()
    expect(lists).to_have_count(0)
    if not lab.panel.get_by_role("radio", name="Right").is_enabled():  # the tests before guessed
        lab.unfold("All verdicts")
        lab.panel.get_by_role("button", name="Forget my guesses").click()
    following.click()
    guess = lab.panel.get_by_role("radio", name="Wrong")
    expect(guess).to_be_enabled()
    guess.press("Space")
    expect(guess).to_be_disabled(timeout=SLOW)
    expect(lab.card).to_be_focused()


def test_a_topic_is_gone_through_and_measured(lab):
    topic = "What does a mask hide?"
    lab.choose("What to try", topic)
    names = [str(CLAIMS[name].statement) for name in TRY[topic]]
    heading = lab.card.get_by_role("heading")
    lab.open(TRY[topic][0])
    for name in [*names[1:], names[0]]:
        lab.panel.get_by_role("button", name="Next statement").click()
        expect(heading).to_have_text(name)
    cells = lab.verdicts()
    every = lab.panel.get_by_role("checkbox", name="Measure all of these statements")
    every.check()
    expect(every).not_to_be_checked(timeout=SLOW)
    for name in names:
        row = cells.get_by_role("row", name=name).first
        expect(row.get_by_role("cell").nth(1)).to_have_text(
            re.compile("Right|Wrong|Half|It depends")
        )


def test_the_first_statement_is_open_to_who_has_forgotten_the_guesses(lab):
    lab.choose("What to try", "How many parameters?")
    lab.open("roberta-340")
    lab.guess("Just measure")
    lab.judged("")
    lab.unfold("All verdicts")
    lab.panel.get_by_role("button", name="Forget my guesses").click()
    lab.choose("What to try", "Small, so fast?")
    first = str(CLAIMS[TRY["Small, so fast?"][0]].statement)
    expect(lab.card.get_by_role("heading")).to_have_text(first)
    shown = lab.card.get_by_role("heading").evaluate(STATEMENTS)
    assert shown == [first]


def test_what_is_measured_is_said_of_its_own_statement(lab):
    lab.choose("What to try", "Small, so fast?")
    lab.open("deberta-v3-86")  # of another topic
    expect(lab.panel.get_by_label("What to try")).to_have_value("All statements")
    held = Held(lab.page, "/run/predict")
    lab.guess("Just measure")
    measuring = lab.panel.get_by_text("Measuring …", exact=True)
    expect(measuring).to_be_visible()
    held.wait()
    lab.choose("Statement", str(CLAIMS["albert-sixth"].statement))
    expect(measuring).to_be_hidden()
    held.end()


def test_a_late_answer_does_not_undo_a_choice(lab):
    """That of a topic, which opens its first statement, while another one is chosen."""
    lab.choose("What to try", "Small, so fast?")
    lab.open(TRY["Small, so fast?"][0])
    held = Held(lab.page, "/run/predict")
    lab.choose("What to try", "How many parameters?")
    held.wait()
    lab.choose("Statement", str(CLAIMS["roberta-340"].statement))
    held.end()
    expect(lab.card.get_by_role("heading")).to_have_text(str(CLAIMS["roberta-340"].statement))
    box = lab.panel.get_by_label("Statement", exact=True)
    expect(box).to_have_value(str(CLAIMS["roberta-340"].statement))
    expect(lab.panel.get_by_label("What to try")).to_have_value("How many parameters?")


@pytest.mark.slow
def test_an_old_link_shows_what_was_measured(visit):
    lab = Lab(visit(width=390, link="?lang=en" + kept(ran=[f"{BOTH}.0", f"{FAST}.1"])))
    heading = lab.card.get_by_role("heading", name=str(CLAIMS[FAST].statement))
    expect(heading).to_be_visible(timeout=SLOW)
    expect(lab.card.get_by_text("seed 1")).to_be_visible(timeout=SLOW)
    row = lab.verdicts().get_by_role("row", name=str(CLAIMS[BOTH].statement)).first
    expect(row).to_contain_text("Half right", timeout=SLOW)
    assert row.get_by_role("rowheader").bounding_box()["width"] > 180, "lines of some words each"
    assert lab.cloze.overflow() <= 0


@pytest.mark.slow
def test_a_link_of_a_stranger_opens_the_lab(visit):
    state = {
        "family": {"x": 1},
        "state": "__proto__",
        "search": 7,
        "only": ["../../x", 5, None],
        "ran": ["no-such-card.1", "bert-always-mask.99999x", {"a": 1}, "<b>"],
    }
    lab = Lab(visit(link="?lang=en" + kept(**state)))
    expect(lab.card.get_by_role("heading")).to_be_visible()
    assert lab.cloze.problems == []


@pytest.mark.slow
def test_an_old_link_keeps_its_family(visit):
    lab = Lab(visit(link="?lang=en" + kept(family="SpanBERT", search="x")))
    expect(lab.card.get_by_text("SpanBERT").first).to_be_visible()
    expect(lab.panel.get_by_label("What to try", exact=True)).to_have_value("SpanBERT")


@pytest.mark.slow
def test_chinese_dark_narrow_and_a_missing_model(visit, session):
    cloze = visit(width=390, dark=True, link="?lang=zh" + LINK)
    words = locales.catalogue("zh")
    lab = Lab(cloze, words)
    for name in (BOTH, "deberta-four-terms"):
        lab.open(name)
        lab.guess("Just measure")
        lab.judged("")
        expect(lab.panel.get_by_role("button", name=words["Measure again"])).to_be_enabled(
            timeout=SLOW
        )
    lab.open(BOTH)
    lab.judged("Half right")
    assert cloze.overflow() <= 0
    for name in ("All verdicts", "What this shows"):
        lab.unfold(name)
    expect(lab.verdicts()).to_be_visible()
    missing = cloze.page.evaluate("[...ClozeLanguage.missing]")
    assert [text for text in missing if text.isascii() or "“" in text] == []
    if not any("sentence_order" in info.heads for info in session.models()):
        lab.open("sop-order")
        expect(lab.card.get_by_text("模型文件夹")).to_be_visible()
        expect(lab.panel.get_by_role("radio").first).to_be_disabled()
