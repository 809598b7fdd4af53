"""The Timeline lab in Chromium: masks against the core, regimes, presets, files, links."""

import csv
import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from app.labs.timeline import answers as timeline
from app.serving import locales
from tests.app.one_lab import OneLab
from tests.app.one_page import renewed
from tests.app.visitors import take

TEXT = "The capital of France is Paris."
LINK = f"#text={quote(TEXT)}&model=bert-mini&tab=timeline"
NAMES = {"static": "Static", "copies": "Copies", "dynamic": "Dynamic"}
SETTING = {"kind": "uniform", "epochs": 20, "copies": 10, "seed": 1}
MARKS = """regime => { const plot = document.querySelector(`#timeline-${regime} .js-plotly-plot`);
  const maps = (plot?.data ?? []).filter(({ type }) => type === 'heatmap');
  return (maps[0]?.z ?? []).map((_, row) => maps.map(({ z, text }) => (
    z[row][0] === null ? '' : text[row].map((mark) => mark || '.').join(''))).join(''));
}"""


class Lab(OneLab):
    """The Timeline lab of a page."""

    lab, heading = "timeline", "What is hidden, epoch by epoch?"

    def picture(self, regime):
        """A regime's picture, by what is read out of it."""
        said = re.compile(f"^{self.named(NAMES[regime])}[:：]")
        return self.panel.get_by_role("group", name=said)

    def shows(self, model, regime, text=TEXT, **values):
        """Wait until a picture shows the draws of the core."""
        setting = timeline.Setting(**{**SETTING, **values})
        found = timeline.describe(model.tokenizer, text, setting)
        wanted = [
            "".join(mark or "." for mark in visit.marks)
            for visit in found.regimes[regime]["visits"]
        ]
        self.page.wait_for_function(
            f"([regime, wanted]) => String(({MARKS})(regime)) === wanted",
            arg=[regime, ",".join(wanted)],
        )
        return wanted

    def choose(self, name):
        self.panel.get_by_role("radio", name=self.named(name), exact=True).check()

    def mask(self, name):
        take(self.panel.get_by_role("combobox", name=self.named("Masking")), self.named(name))

    def number(self, name):
        return self.panel.get_by_role("spinbutton", name=re.compile(self.named(name))).first


@pytest.fixture
def lab(module_page, model):
    """One page for most of these tests, with the setting that it opens with."""
    (cloze,) = (each for each in renewed(module_page))
    lab = Lab(cloze)
    lab.unfold("Regime, copies and seed")
    lab.choose("SpanBERT's spans")
    expect(lab.picture("static")).to_be_hidden()
    lab.choose("Side by side")
    lab.number("Copies").fill("10")
    lab.number("Seed").fill("1")
    lab.mask("Pieces (BERT, RoBERTa)")
    lab.shows(model, "static")
    yield lab
    assert cloze.problems == []


def test_rows_are_the_draws_of_every_regime(lab, model):
    for regime in timeline.REGIMES:
        kept = "".join(lab.shows(model, regime)).count("K")
        expect(lab.picture(regime).get_by_text(f"kept: {kept} of ")).to_be_visible()
    lab.mask("Whole words (BERT)")
    lab.panel.get_by_role("button", name="Next seed").click()
    for regime in timeline.REGIMES:
        lab.shows(model, regime, kind="whole_word", seed=2)
    lab.panel.get_by_role("slider", name=re.compile("Epochs")).focus()
    lab.page.keyboard.press("ArrowRight")
    lab.shows(model, "dynamic", kind="whole_word", seed=2, epochs=21)


@pytest.mark.slow
def test_a_regime_alone_and_what_changed_while_the_others_were_away(lab, model):
    lab.choose("Static")
    for regime in ("copies", "dynamic"):
        expect(lab.picture(regime)).to_be_hidden()
    assert len(set(lab.shows(model, "static"))) == 1
    lab.number("Epochs").fill("7")
    lab.shows(model, "static", epochs=7)
    lab.choose("Side by side")
    for regime in timeline.REGIMES:
        expect(lab.picture(regime)).to_be_visible()
        lab.shows(model, regime, epochs=7)


def test_presets_set_the_controls_and_are_left_with_them(lab, model):
    lab.choose("BERT: ten copies, 40 epochs")
    lab.shows(model, "copies", epochs=40)
    expect(lab.number("Epochs")).to_have_value("40")
    expect(lab.panel.get_by_role("radio", name="Copies", exact=True)).to_be_checked()
    expect(lab.picture("dynamic")).to_be_hidden()
    lab.choose("Dynamic")
    expect(lab.panel.get_by_role("radio", name="RoBERTa: afresh")).to_be_checked()
    lab.number("Epochs").fill("12")
    lab.shows(model, "dynamic", epochs=12)
    expect(lab.panel.get_by_role("radio", name="RoBERTa: afresh")).not_to_be_checked()


@pytest.mark.slow
def test_span_lengths_and_formats_are_drawn(lab):
    lab.unfold("How long are the spans?")
    lengths = lab.panel.get_by_role("group", name="Shares of spans by their length")
    expect(lengths).to_be_hidden()
    expect(lab.panel.get_by_text("This masking has no law of lengths")).to_be_visible()
    lab.mask("Spans (SpanBERT)")
    lengths.wait_for()
    words, published, *_ = zip(*lab.cloze.numbers("#timeline-lengths"), strict=True)
    assert words == (*map(str, range(1, 11)), "longer", "mean")
    assert published[0] == pytest.approx(0.2241, abs=1e-4)
    lab.unfold("Four ways to cut documents")
    expect(lab.panel.get_by_role("row", name=re.compile("^SEGMENT-PAIR"))).to_be_visible()
    rows = lab.cloze.numbers("#timeline-doc_sentences")
    assert len({number for number, *_ in rows}) == len({tuple(row[:2]) for row in rows})


def test_files_are_plotlys_and_the_tables(lab):
    figure = lab.page.locator("#timeline-static")
    figure.get_by_text("The numbers").click()
    with lab.page.expect_download() as download:
        figure.get_by_role("button", name="Save as CSV").click()
    with download.value.path().open(encoding="utf-8-sig") as file:
        found = list(csv.DictReader(file))
    assert {row["Epoch"] for row in found} == {str(n) for n in range(1, 21)}
    assert {row["Mask"] for row in found} == {"1"}
    figure.get_by_text("The numbers").click()
    lab.picture("static").hover()
    with lab.page.expect_download() as download:
        figure.locator("[data-title='Save as SVG']").click()
    assert "asked, and in how many contexts" in download.value.path().read_text("utf-8")


@pytest.mark.slow
def test_an_empty_text_is_explained_and_the_next_one_works(lab, model):
    lab.cloze.write("   ")
    problem = lab.panel.get_by_text("There is no text yet")
    expect(problem).to_be_visible()
    expect(lab.picture("static")).to_be_hidden()
    text = "<img src=x onerror=alert(1)> ${alert(2)} {{value}}"
    lab.cloze.write(text)
    expect(problem).to_be_hidden()
    lab.shows(model, "dynamic", text)
    assert lab.panel.locator("img").count() == 0  # at once


@pytest.mark.slow
def test_an_old_link_restores_the_setting_in_chinese(visit, model):
    state = {"kind": "span", "epochs": 7, "copies": 3, "seed": 5, "length": 64, "regime": "copies"}
    words = locales.catalogue("zh")
    lab = Lab(visit(link=f"?lang=zh{LINK}&lab-timeline={quote(json.dumps(state))}"), words)
    lab.shows(model, "copies", kind="span", epochs=7, copies=3, seed=5)
    expect(lab.picture("static")).to_be_hidden()
    lab.unfold("Regime, copies and seed")
    expect(lab.panel.get_by_role("radio", name=words["Copies"], exact=True)).to_be_checked()
    for fold in (
        "How many contexts does a piece get?",
        "How long are the spans?",
        "Four ways to cut documents",
        "What this shows",
    ):
        lab.unfold(fold)
    expect(lab.panel.get_by_role("spinbutton", name="样本最大长度")).to_have_value("64")
    lab.cloze.numbers("#timeline-doc_sentences")
    lab.choose("Side by side")
    expect(lab.picture("dynamic")).to_be_visible()
    lab.page.wait_for_function("() => !Cloze.kept('timeline')?.regime")
    kept = lab.page.evaluate("Cloze.kept('timeline')")
    assert kept == {name: value for name, value in state.items() if name != "regime"}
    missing = lab.page.evaluate("[...ClozeLanguage.missing]")
    assert [text for text in missing if text.isascii()] == []


@pytest.mark.slow
def test_a_strange_link_is_read_and_nothing_sticks_out_narrow_and_dark(visit, model):
    strange = json.dumps({"kind": ["x"], "epochs": 1e9, "seed": "1", "regime": "toString"})
    lab = Lab(visit(width=390, dark=True, link=f"{LINK}&lab-timeline={quote(strange)}"))
    lab.shows(model, "static")
    text = "word " * 100
    lab.cloze.write(text)
    lab.shows(model, "static", text.strip())
    assert lab.cloze.overflow() <= 0
