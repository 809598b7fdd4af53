"""The Timeline tab in Chromium: rows against the core, regimes, files, narrow and dark."""

import csv
import json
from urllib.parse import quote

import pytest

from app.labs.timeline import answers as timeline
from tests.app.one_page import lab

ROOT = ".view-timeline"
SETTLED = """() => {
  const view = document.querySelector('.view-timeline').dataset;
  return view.state === 'ready' && view.rev === view.asked;
}"""
START = """() => {
  const find = (selector) => document.querySelector(`.view-timeline ${selector}`);
  const seed = find('#tl-seed');
  seed.value = 1;
  seed.dispatchEvent(new Event('change'));
  find('button[data-kind=uniform]').click();
  find('button[data-regime=all]').click();
}"""
TEXT = "The capital of France is Paris."
LINK = f"#text={quote(TEXT)}&model=bert-mini&tab=timeline"


class Tab:
    """The Timeline tab of a page."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = cloze.page
        cloze.write(TEXT)
        self.page.evaluate("Cloze.openTab('Timeline')")
        self.page.wait_for_selector(f'{ROOT}[data-state="ready"]')

    def settle(self):
        self.page.wait_for_function(SETTLED)

    def cases(self, regime):
        rows = self.page.locator(f'{ROOT} [data-regime="{regime}"] tbody tr')
        return rows.evaluate_all("rows => rows.map(row => row.dataset.cases)")


@pytest.fixture
def tab(module_page):
    """One page for most of these tests, with the setting that it opens with."""
    yield from lab(module_page, Tab, TEXT, START)


def wanted(model, regime, **values):
    values = {"kind": "uniform", "epochs": 20, "copies": 10, "seed": 1, **values}
    found = timeline.describe(model.tokenizer, TEXT, timeline.Setting(**values))
    return [found["draws"][n]["cases"] for n in found["regimes"][regime]["visits"]]


def test_rows_are_the_draws_of_every_regime(tab, model):
    for regime in timeline.REGIMES:
        assert tab.cases(regime) == wanted(model, regime)
        kept = "".join(tab.cases(regime)).count("K")
        counted = tab.page.inner_text(f'{ROOT} [data-regime="{regime}"] .tl-legend')
        assert f"kept: {kept} of " in counted
    tab.page.click(f'{ROOT} button[data-kind="whole_word"]')
    tab.settle()
    tab.page.click("#tl-next")
    tab.settle()
    for regime in timeline.REGIMES:
        assert tab.cases(regime) == wanted(model, regime, kind="whole_word", seed=2)
    cell = tab.page.locator(f"{ROOT} .tl-grid td.case-M").first
    assert cell.inner_text() == "M"
    # Headings are turned, but for Chinese characters, which would stand on their heads.
    tab.cloze.write("Hello 天 .")
    tab.settle()
    turned = tab.page.locator(f"{ROOT} [data-regime=static] thead span").evaluate_all(
        "all => all.map(e => [e.textContent, getComputedStyle(e).transform !== 'none'])"
    )
    assert ["天", False] in turned
    assert [".", True] in turned


def test_span_lengths_and_formats_are_drawn(tab):
    lengths = tab.page.get_by_role("group", name="Shares of spans by their length")
    assert not lengths.is_visible()
    tab.page.click(f'{ROOT} button[data-kind="span"]')
    tab.settle()
    lengths.wait_for()
    words, published, *_ = zip(
        *tab.cloze.numbers(f"{ROOT} .card:has(.js-plotly-plot[aria-label^=Shares])"), strict=True
    )
    assert words == (*map(str, range(1, 11)), "longer", "mean")
    assert published[0] == pytest.approx(0.2241, abs=1e-4)
    assert tab.page.locator(f"{ROOT} .tl-format").count() == 4
    documents = tab.page.locator('.tl-format[data-format="doc_sentences"] .tl-strip').evaluate_all(
        "all => all.map(s => new Set([...s.children].map(run => run.dataset.document)).size)"
    )
    assert set(documents) == {1}


def test_a_regime_alone_and_the_file(tab):
    tab.page.click(f'{ROOT} button[data-regime="static"]')
    assert tab.page.locator(f"{ROOT} .tl-grid").count() == 1
    assert len(set(tab.cases("static"))) == 1
    letters = "".join(tab.cases("static"))
    total = sum(letters.count(letter) for letter in "MRK")
    legend = tab.page.locator(f"{ROOT} .tl-legend:visible").inner_text()
    assert f"[MASK]: {letters.count('M')} of {total} " in legend
    with tab.page.expect_download() as download:
        tab.page.click(f'{ROOT} [data-save="csv"]')
    with download.value.path().open(encoding="utf-8") as file:
        assert {row["regime"] for row in csv.DictReader(file)} == set(timeline.REGIMES)


def test_an_empty_text_is_explained_and_the_next_one_works(tab):
    tab.cloze.write("   ")
    tab.page.wait_for_selector(f'{ROOT}[data-state="error"]')
    assert tab.page.locator(f"{ROOT} > .tl > .problem").is_visible()
    tab.cloze.write("<img src=x onerror=alert(1)> ${alert(2)} {{value}}")
    tab.settle()
    assert tab.page.locator(f"{ROOT} img").count() == 0


def test_a_link_restores_the_setting_in_chinese_and_saves_a_picture(visit):
    state = json.dumps({"kind": "span", "epochs": 7, "copies": 3, "seed": 5, "regime": "copies"})
    page = visit(link=f"?lang=zh{LINK}&lab-timeline={quote(state)}").page
    page.wait_for_selector(f'{ROOT}[data-state="ready"][data-cut]')
    assert page.locator(f"{ROOT} .tl-grid").count() == 1
    assert page.locator(f"{ROOT} .tl-grid tbody tr").count() == 7
    assert page.locator(f'{ROOT} [data-kind="span"]').get_attribute("aria-pressed") == "true"
    with page.expect_download() as download:
        page.click(f'{ROOT} [data-save="png"]')
    assert download.value.path().read_bytes()[:4] == b"\x89PNG"
    page.click(f'{ROOT} button[data-kind="uniform"]')
    page.click(f'{ROOT} button[data-regime="all"]')
    page.wait_for_function(SETTLED)
    assert "一轮又一轮" in page.inner_text(f"{ROOT} h2")
    assert [text for text in page.evaluate("[...ClozeLanguage.missing]") if text.isascii()] == []


def test_a_strange_link_is_read_and_nothing_sticks_out_narrow_and_dark(visit):
    strange = json.dumps({"kind": ["x"], "epochs": 1e9, "seed": "1", "regime": "toString"})
    cloze = visit(width=390, dark=True, link=f"{LINK}&lab-timeline={quote(strange)}")
    cloze.page.wait_for_selector(f'{ROOT}[data-state="ready"]')
    assert cloze.page.locator(f"{ROOT} .tl-grid").first.locator("tbody tr").count() == 20
    cloze.write("word " * 100)
    cloze.page.wait_for_function(SETTLED)
    assert cloze.overflow() <= 0
