"""The Pairs lab in Chromium: verdicts against the core, examples, own texts, links, languages."""

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from app.labs.pairs import answers as pairs
from app.labs.pairs import words
from app.serving import locales
from core_models.prediction import judge_pair
from tests.app.held import Held
from tests.app.one_lab import OneLab
from tests.app.one_page import SENTENCE, renewed

LINK = f"#text={quote(SENTENCE)}&model=bert-mini&tab=pairs"
SHOWN = """texts => {
  const rows = document.querySelector('#pairs-verdicts .js-plotly-plot')?.layout?.meta?.rows;
  return rows?.[0][4] === texts[0] && rows[0][5] === texts[1];
}"""


class Lab(OneLab):
    """The Pairs lab of a page."""

    lab, heading = "pairs", "Do these two belong together?"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        said = self.named("Second text (the first one is the sentence above)")
        self.second = self.panel.get_by_role("textbox", name=said)

    def radio(self, name):
        return self.panel.get_by_role("radio", name=self.named(name), exact=True)

    def shows(self, *texts):
        """Wait until these texts stand in both boxes and were judged; the chance of "next"."""
        self.page.wait_for_function(SHOWN, arg=texts)
        self.page.wait_for_function("text => Cloze.sentence.text === text", arg=texts[0])
        expect(self.second).to_have_value(texts[1])
        return self.cloze.numbers("#pairs-verdicts")[0][3]


@pytest.fixture
def lab(module_page, model):
    """One page for most of these tests, with a text of one's own."""
    if "next_sentence" not in model.heads:
        pytest.skip("the shipped model has no next-sentence head")
    (cloze,) = (each for each in renewed(module_page))
    lab = Lab(cloze)
    lab.second.fill("Snow fell all night.")
    lab.shows(SENTENCE, "Snow fell all night.")
    yield lab
    assert cloze.problems == []


def test_examples_and_own_texts_are_judged(lab, model):
    found = pairs.shown_example(0)
    for kind, name in words.KINDS.items():
        lab.radio(name).check()
        texts = found.pair(kind)
        expected = judge_pair(model, *texts).probabilities[0]
        assert lab.shows(*texts) == pytest.approx(expected, abs=1e-6)
        expect(lab.panel.get_by_text(words.EXPECTED[kind])).to_be_visible()
        expect(lab.radio(name)).to_be_checked()
    own = "<b>${alert(1)}</b>"
    lab.second.fill(own)
    expected = judge_pair(model, found.first, own).probabilities[0]
    assert lab.shows(found.first, own) == pytest.approx(expected, abs=1e-6)
    expect(lab.radio("Your own")).to_be_checked()
    lab.unfold("What the model reads")
    pieces = lab.panel.get_by_role("list", name="The input").get_by_role("listitem")
    expect(pieces).to_have_count(len(model.encode([(found.first, own)])[0].ids))
    lab.second.fill(" ")
    expect(lab.panel.get_by_text("The second text is empty")).to_be_visible()
    expect(lab.panel.get_by_role("group", name="Next sentence")).to_be_hidden()


def test_an_example_under_way_does_not_come_over_what_is_typed(lab):
    held = Held(lab.page, "/run/predict", lambda it: '"next"' in (it.post_data or ""))
    lab.radio("Real next").check()
    held.wait()
    own = "Bees make honey."
    lab.cloze.write(own)
    expect(lab.radio("Your own")).to_be_checked()
    held.end()
    lab.shows(own, "Snow fell all night.")


@pytest.mark.slow
def test_a_sentence_of_ones_own_is_no_example_any_more(lab):
    lab.radio("Real next").check()
    _, second = pairs.shown_example(0).pair("next")
    lab.shows(*pairs.shown_example(0).pair("next"))
    lab.cloze.write("Bees make honey.")
    lab.shows("Bees make honey.", second)
    expect(lab.radio("Your own")).to_be_checked()
    lab.cloze.write("")
    expect(lab.panel.get_by_text("There is no text yet")).to_be_visible()
    lab.cloze.write("Bees make honey.")
    expect(lab.panel.get_by_text("There is no text yet")).to_be_hidden()


def test_topic_order_and_many_examples_are_told(lab):
    lab.radio("Real next").check()
    lab.shows(*pairs.shown_example(0).pair("next"))
    lab.unfold("Topic or order?")
    said = lab.panel.get_by_text("it goes by the topic, and it hardly minds the order")
    expect(said).to_be_visible()
    expect(lab.panel.get_by_text("points less probable").first).to_be_visible()
    assert len(lab.cloze.numbers("#pairs-next_sentence")) == 4


@pytest.mark.slow
def test_a_link_restores_an_example_in_chinese_and_the_next_one_follows(visit, monkeypatch):
    monkeypatch.setattr(pairs, "MEASURED", 3)
    found = pairs.shown_example(2).pair("swapped")
    state = quote(json.dumps({"example": 2, "kind": "swapped"}))
    link = f"?lang=zh#text={quote(found[0])}&model=bert-mini&tab=pairs&lab-pairs={state}"
    lab = Lab(visit(link=link), locales.catalogue("zh"))
    lab.shows(*found)
    expect(lab.radio("Swapped")).to_be_checked()
    lab.panel.get_by_role("button", name=lab.named("Another example")).click()
    lab.shows(*pairs.shown_example(3).pair("swapped"))
    lab.page.wait_for_function("Cloze.kept('pairs')?.example === 3")
    for fold in ("How alike, each read alone?", "What the model reads", "What this shows"):
        lab.unfold(fold)
    lab.unfold("Topic or order?")
    lab.panel.get_by_role("button", name=lab.named("Ask about 24 examples")).click()
    assert lab.cloze.numbers("#pairs-wins")[-1][2] == 1.5
    missing = lab.page.evaluate("[...ClozeLanguage.missing]")
    assert [text for text in missing if text.isascii()] == []


@pytest.mark.slow
def test_narrow_and_dark_a_link_restores_a_text_of_ones_own(visit):
    state = quote(json.dumps({"second": "Snow fell all night ."}))
    lab = Lab(visit(width=390, dark=True, link=f"{LINK}&lab-pairs={state}"))
    lab.shows(SENTENCE, "Snow fell all night .")
    lab.cloze.write("x" * 300)
    lab.second.fill("y" * 300)
    lab.shows("x" * 300, "y" * 300)
    lab.unfold("What the model reads")
    assert lab.cloze.overflow() <= 0
