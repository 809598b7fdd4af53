"""The Meaning lab in Chromium: paths, layers, edits, neighbours, links, languages."""

import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from app.labs.meaning.answers import EXAMPLES
from app.serving import locales
from core_models.prediction import meaning
from tests.app.one_lab import OneLab
from tests.app.visitors import take

LINK = "#text=The+old+bank+was+closed.&model=bert-mini&tab=meaning"
MARKS = """() => (document.querySelector('#meaning-paths .js-plotly-plot')?.data ?? [])
  .filter(({ mode }) => mode === 'markers+text').map(({ x, y }) => [x[0], y[0]])"""
AXES = """() => { const { xaxis, yaxis } = document.querySelector('#meaning-paths .js-plotly-plot')
  .layout; return [xaxis.range, yaxis.range]; }"""
SIZE = """() => document.querySelector('#meaning-paths .js-plotly-plot')._fullLayout._size"""
CELLS = """() => document.querySelector('#meaning-alike .js-plotly-plot')?.data[0].z"""
IDLE = """() => { const plot = document.querySelector('#meaning-near .js-plotly-plot');
  return plot && !document.querySelector('#meaning-near [data-state=waiting]'); }"""


class Lab(OneLab):
    """The Meaning lab of a page."""

    lab, heading = "meaning", "One word, many meanings"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        self.paths = self.page.get_by_role("group", name=re.compile("Paths of|穿过各层的路径"))
        self.layer = self.page.get_by_role("slider")

    def says(self, text):
        expect(self.panel.get_by_text(text).first).to_be_visible()

    def fill(self, word=None, sentences=None):
        self.unfold("The word and its sentences")
        self.cloze.rest()  # what is typed while the fold mounts its boxes may be lost
        named = ("Sentences, one in each line", sentences), ("Word", word)
        for name, text in named:
            if text is not None:
                box = self.page.get_by_role("textbox", name=self.named(name), exact=True)
                box.fill(text)

    def marks(self, count):
        self.page.wait_for_function(f"count => ({MARKS})().length === count", arg=count)
        return self.page.evaluate(MARKS)


@pytest.fixture
def lab(module_page):
    """One page for most of these tests, with the first example at its last layer."""
    lab = Lab(module_page)
    lab.paths.wait_for()
    lab.layer.focus()
    lab.page.keyboard.press("End")
    for word in ("spring", "bank"):  # each is shown before the next: what comes late would undo it
        lab.page.get_by_role("radio", name=word).check()
        lab.page.get_by_role("group", name=f"Paths of “{word}”").wait_for()
    module_page.rest()
    lab.says(re.compile("After layer 4: sentences"))
    yield lab
    assert module_page.problems == []


def test_layers_move_the_marks_and_not_the_axes(lab, session):
    page = lab.page
    axes, last = page.evaluate(AXES), lab.marks(4)
    cells = page.evaluate(CELLS)
    page.keyboard.press("Home")  # the slider has the focus no more
    lab.layer.focus()
    page.keyboard.press("Home")
    lab.says("Static embedding: one vector for all of them.")
    page.wait_for_function(f"() => new Set(({MARKS})().map(String)).size === 1")
    assert page.evaluate(AXES) == axes
    page.keyboard.press("End")
    page.wait_for_function(f"last => String(({MARKS})()) === String(last)", arg=last)
    model = session.model("bert-mini")
    texts = EXAMPLES["bank"].text.splitlines()
    encodings = model.encode(texts)
    places = [
        (row, meaning.pieces_at(encoding, *meaning.find_word(text, "bank")))
        for row, (text, encoding) in enumerate(zip(texts, encodings, strict=True))
    ]
    at = meaning.word_vectors(model, encodings, places)[:, -1]
    take(lab.page.get_by_role("combobox", name="Vectors"), "as they are")
    page.wait_for_function(f"old => String(({CELLS})()) !== String(old)", arg=cells)
    raw = page.evaluate(CELLS)
    table = meaning.cosines(at, at)
    assert [raw[0][1], raw[2][3]] == pytest.approx(
        [float(table[0, 1]), float(table[2, 3])], abs=1e-3
    )
    take(lab.page.get_by_role("combobox", name="Vectors"), "mean subtracted")
    page.wait_for_function(f"old => String(({CELLS})()) === String(old)", arg=cells)


@pytest.mark.slow
def test_it_plays_through_the_layers_and_stops(lab):
    play = lab.page.get_by_role("checkbox", name="Play")
    play.check()
    lab.says("Static embedding")
    lab.says("After layer 1")
    lab.says("After layer 4")
    expect(play).not_to_be_checked()
    expect(lab.layer).to_have_value("5")


def test_a_visitors_own_word(lab):
    lab.layer.focus()
    lab.page.keyboard.press("Home")
    lab.says("Static embedding")  # so whatever the fixture's two quick choices asked is answered
    lab.page.keyboard.press("End")
    lab.says("After layer 4")
    lab.fill(sentences=f"<img src=x onerror=alert(1)> ${{1}}\n{EXAMPLES['bank'].text}")
    lab.says("Without the word, and left out: sentence 1.")
    lab.marks(4)
    expect(lab.page.get_by_role("radio", name="bank")).not_to_be_checked()
    lab.page.get_by_role("button", name="Take the sentence of the page").click()
    box = lab.page.get_by_role("textbox", name="Sentences, one in each line")
    text = lab.page.evaluate("Cloze.sentence.text")
    expect(box).to_have_value(re.compile(f"{re.escape(text)}$"))
    assert lab.panel.locator("img").count() == 0  # at once
    lab.fill("zebra")
    lab.says("“zebra” stands in 0 of the sentences")
    lab.page.get_by_role("radio", name="light").check()
    expect(lab.panel.get_by_text("stands in 0")).to_be_hidden()
    lab.says("After layer 4: sentences 1 and 2 are most alike")
    expect(box).to_have_value(EXAMPLES["light"].text)


@pytest.mark.slow
def test_neighbours_in_the_primer(lab):
    lab.unfold("Its neighbours in the Primer")
    lab.page.wait_for_function(IDLE)
    chart = lab.page.locator("#meaning-near")
    lab.says(re.compile(r"looked up among [\d,]+ words of the Primer"))
    chart.get_by_text("The numbers").click()
    expect(chart.get_by_role("row")).to_have_count(13)
    lab.page.get_by_label("Other words only").check()
    lab.says("; 0 of them are the same word.")
    expect(chart.get_by_role("cell", name="bank", exact=True)).to_have_count(0)
    lab.page.get_by_label("Other words only").uncheck()
    expect(lab.panel.get_by_text("; 0 of them are the same word.")).to_be_hidden()


def test_files_are_plotlys_and_the_tables(lab):
    figure = lab.page.locator("#meaning-paths")
    lab.cloze.rest()  # the figure may still be that of the test before
    figure.get_by_text("The numbers").click()
    with lab.page.expect_download() as download:
        figure.get_by_role("button", name="Save as CSV").click()
    lines = download.value.path().read_text("utf-8").splitlines()
    assert len(lines) == 1 + 4 * 6
    lab.paths.hover()
    with lab.page.expect_download() as download:
        figure.locator("[data-title='Save as SVG']").click()
    assert "She sat on the bank" in download.value.path().read_text("utf-8")


@pytest.mark.slow
def test_an_old_link_restores_the_lab(visit):
    state = {"example": "light", "layer": 1, "way": "raw", "which": 2, "others": True}
    lab = Lab(visit(link=f"{LINK}&lab-meaning={quote(json.dumps(state))}"))
    lab.says(re.compile("^Input: sentences"))
    expect(lab.page.get_by_role("radio", name="light")).to_be_checked()
    expect(lab.page.get_by_role("combobox", name="Vectors")).to_have_value("as they are")
    lab.unfold("Its neighbours in the Primer")
    expect(lab.page.get_by_role("radio", name="3", exact=True)).to_be_checked()
    expect(lab.page.get_by_label("Other words only")).to_be_checked()
    lab.unfold("The word and its sentences")
    box = lab.page.get_by_role("textbox", name="Word", exact=True)
    expect(box).to_have_value("light")
    lab.layer.focus()
    lab.page.keyboard.press("ArrowRight")
    lab.says("After layer 1")
    lab.page.wait_for_function("() => Cloze.kept('meaning')?.layer === 2")
    kept = lab.page.evaluate("Cloze.kept('meaning')")
    assert kept == {**state, "layer": 2}


@pytest.mark.slow
def test_an_old_link_with_own_sentences_in_chinese(visit):
    state = {"word": "cat", "sentences": ["The cat sat.", "A cat is here.", "Cat & <b>dog</b>."]}
    words = locales.catalogue("zh")
    cloze = visit(link=f"?lang=zh{LINK}&lab-meaning={quote(json.dumps(state))}")
    lab = Lab(cloze, words)
    lab.says("第4层之后")
    assert len(lab.marks(3)) == 3
    for fold in ("The word and its sentences", "How alike are they, layer by layer?"):
        lab.unfold(fold)
    lab.unfold("Its neighbours in the Primer")
    lab.unfold("What this shows")
    cloze.page.wait_for_function(IDLE)
    box = cloze.page.get_by_role("textbox", name=words["Sentences, one in each line"])
    expect(box).to_have_value("\n".join(state["sentences"]))
    lab.fill("zebra")
    lab.says(re.compile("“zebra”作为独立的词"))
    missing = cloze.page.evaluate("[...ClozeLanguage.missing]")
    assert [text for text in missing if text.isascii()] == []


@pytest.mark.slow
def test_a_strange_link_opens_the_first_example_narrow_and_dark(visit):
    strange = {"word": 3, "sentences": [{}], "layer": 2000, "way": [], "which": -1}
    strange["example"] = "__proto__"
    cloze = visit(width=390, dark=True, link=f"{LINK}&lab-meaning={quote(json.dumps(strange))}")
    lab = Lab(cloze)
    lab.says("at least two sentences")
    lab.page.get_by_role("radio", name="bank").check()
    lab.page.get_by_role("radio", name="cold").check()
    lab.says("After layer 4")
    assert cloze.overflow() <= 0
    # The sentences stand below the paths and leave them the phone's width.
    lab.marks(4)
    size = cloze.page.evaluate(SIZE)
    assert size["w"] > 300
    assert size["l"] < 40
