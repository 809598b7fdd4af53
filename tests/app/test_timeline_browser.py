"""The Timeline tab in Chromium: rows against the core, regimes, files, narrow and dark."""

import csv

import pytest

from app import timeline

ROOT = ".view-timeline"
SETTLED = """() => {
  const view = document.querySelector('.view-timeline').dataset;
  return view.state === 'ready' && view.rev === view.asked;
}"""
TEXT = "The capital of France is Paris ."


class Tab:
    """The Timeline tab of a page."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = cloze.page
        cloze.write(TEXT)
        self.page.evaluate(
            "[...document.querySelectorAll('#tabs [role=tab], #tabs .overflow-dropdown button')]"
            ".find((each) => each.textContent.trim() === 'Timeline').click()"
        )
        self.page.wait_for_selector(f'{ROOT}[data-state="ready"]')

    def settle(self):
        self.page.wait_for_function(SETTLED)

    def cases(self, regime):
        rows = self.page.locator(f'{ROOT} [data-regime="{regime}"] tbody tr')
        return rows.evaluate_all("rows => rows.map(row => row.dataset.cases)")


@pytest.fixture
def tab(cloze):
    return Tab(cloze)


def wanted(model, regime, **values):
    values = {"kind": "uniform", "epochs": 20, "copies": 10, "seed": 1, **values}
    found = timeline.describe(model.tokenizer, TEXT, timeline.Setting(**values))
    return [found["draws"][n]["cases"] for n in found["regimes"][regime]["visits"]]


def test_rows_are_the_draws_of_every_regime(tab, model):
    for regime in timeline.REGIMES:
        assert tab.cases(regime) == wanted(model, regime)
    tab.page.click(f'{ROOT} button[data-kind="whole_word"]')
    tab.settle()
    tab.page.click("#tl-next")
    tab.settle()
    for regime in timeline.REGIMES:
        assert tab.cases(regime) == wanted(model, regime, kind="whole_word", seed=2)
    cell = tab.page.locator(f"{ROOT} .tl-grid td.case-M").first
    assert cell.inner_text() == "M"


def test_span_lengths_and_formats_are_drawn(tab):
    assert not tab.page.locator(f"{ROOT} .tl-lengths").is_visible()
    tab.page.click(f'{ROOT} button[data-kind="span"]')
    tab.settle()
    rows = tab.page.locator(f"{ROOT} .tl-lengths tbody tr")
    assert rows.count() == 11
    first = rows.nth(0).locator("td").nth(0).get_attribute("data-share")
    assert float(first) == pytest.approx(0.2241, abs=1e-4)
    assert tab.page.locator(f"{ROOT} .tl-format").count() == 4
    documents = tab.page.locator('.tl-format[data-format="doc_sentences"] .tl-strip').evaluate_all(
        "all => all.map(s => new Set([...s.children].map(run => run.dataset.document)).size)"
    )
    assert set(documents) == {1}


def test_a_regime_alone_and_the_file(tab):
    tab.page.click(f'{ROOT} button[data-regime="static"]')
    assert tab.page.locator(f"{ROOT} .tl-grid").count() == 1
    assert len(set(tab.cases("static"))) == 1
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


def test_narrow_and_dark_nothing_sticks_out(visit):
    tab = Tab(visit(width=390, dark=True))
    tab.cloze.write("word " * 100)
    tab.settle()
    assert tab.cloze.overflow() <= 0
