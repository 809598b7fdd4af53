"""The Budget tab in Chromium: what is shown against the core, keys, own size, times, files."""

import csv
import json
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

import core_models as cm

ROOT = ".view-budget"
LINK = "#text=Paris&model=bert-mini&tab=budget"
SETTLED = """() => {
  const view = document.querySelector('.view-budget').dataset;
  return ['ready', 'error'].includes(view.state) && view.rev === view.asked;
}"""

# The length of a new visitor; what was measured is forgotten with it.
START = """() => {
  const length = document.querySelector('#budget-length');
  length.value = 64;
  length.dispatchEvent(new Event('change'));
  delete document.querySelector('.view-budget').dataset.measured;
}"""


class Tab:
    """The Budget tab of a page."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = cloze.page
        self.page.wait_for_function("!!Cloze.openTab")
        self.page.evaluate("Cloze.openTab('Budget')")
        self.page.wait_for_selector(f'{ROOT}[data-state="ready"]')

    def settle(self):
        self.page.wait_for_function(SETTLED)

    def try_(self, name):
        self.page.get_by_role("button", name=name, exact=True).click()
        self.settle()

    def names(self):
        return self.page.locator(f"{ROOT} .budget-name").all_inner_texts()

    def parts(self):
        """The table twin: part -> numbers."""
        rows = self.page.locator(f'{ROOT} [aria-label="Parameters by part"] tbody tr')
        return rows.evaluate_all(
            """rows => Object.fromEntries(rows.map(({children: [name, ...cells]}) => [
                name.textContent,
                cells.map(cell => Number(cell.textContent.replaceAll(',', '')))]))"""
        )


@pytest.fixture
def tab(module_page):
    """One page for most of these tests, with the sizes that it opens with."""
    tab = Tab(module_page)
    tab.page.evaluate(START)
    tab.try_("Four ways to be base")
    yield tab
    assert module_page.problems == []


def test_the_numbers_are_those_of_the_core(tab):
    tab.try_("BERT against ALBERT")
    assert tab.names() == ["bert-base-uncased", "albert-base"]
    shown, found = tab.parts(), [cm.count(name) for name in tab.names()]
    assert shown["Pieces"] == [count.pieces for count in found]
    assert shown["Feed-forward"] == [count.feed_forward for count in found]
    assert shown["Encoder with pooler"] == [109_482_240, 11_683_584]
    assert shown["With pretraining heads"] == [count.pretraining for count in found]
    bars = tab.page.locator(".budget-bar").evaluate_all(
        """bars => bars.map(bar => {
            const filled = [...bar.children].reduce((sum, part) => sum + part.offsetWidth, 0);
            return filled / bar.offsetWidth;
        })"""
    )
    assert bars[0] == pytest.approx(1, abs=0.02)
    assert bars[1] == pytest.approx(found[1].pretraining / found[0].pretraining, abs=0.02)


def test_sizes_are_added_and_removed(tab):
    tab.page.select_option("#budget-add", "rbt3")
    tab.settle()
    assert tab.names()[-1] == "rbt3"
    for name in tab.names():
        tab.page.get_by_role("button", name=f"Remove {name}").click()
        tab.settle()
    assert tab.names() == []
    assert "Choose a model" in tab.page.inner_text(ROOT)


def test_an_own_size_is_counted_and_a_wrong_one_explained(tab):
    tab.try_("BERT against ALBERT")
    tab.page.click("#budget-own")
    tab.page.wait_for_function("document.querySelectorAll('.budget-name').length === 3")
    assert tab.parts()["With pretraining heads"][2] == 110_106_428
    tab.page.select_option("#budget-sharing", "all")
    tab.page.wait_for_function(
        "document.querySelectorAll('.budget-total')[2].textContent !== '110.1 M'"
    )
    assert tab.parts()["Feed-forward"][2] == 56_669_184 // 12
    tab.page.fill("#budget-heads", "7")
    tab.page.wait_for_selector(f"{ROOT} .problem:not([hidden])")
    assert "7 heads do not divide" in tab.page.inner_text(f"{ROOT} .problem")
    tab.page.fill("#budget-heads", "8")
    tab.page.wait_for_selector(f"{ROOT} .problem", state="hidden")


def test_arrow_keys_walk_through_the_parts(tab):
    tab.try_("BERT against ALBERT")
    tab.page.locator(".budget-bars").focus()
    tab.page.keyboard.press("ArrowRight")
    assert "bert-base-uncased: Pieces 23,440,896" in tab.page.inner_text(".budget-readout")
    tab.page.keyboard.press("ArrowDown")
    assert "albert-base: Pieces 3,840,000" in tab.page.inner_text(".budget-readout")


def test_a_pass_is_measured_on_request(tab):
    for name in tab.names():
        tab.page.get_by_role("button", name=f"Remove {name}").click()
    tab.page.select_option("#budget-add", "bert-2x128")
    tab.page.fill("#budget-length", "8")
    tab.page.locator("#budget-length").blur()
    tab.settle()
    assert tab.page.locator(".budget-costs td").last.inner_text() == "–"
    tab.page.click("#budget-measure")
    tab.page.wait_for_selector(f"{ROOT}[data-measured]")
    assert tab.page.locator(".budget-costs td").last.inner_text().endswith("ms")


def test_claims_are_shown_with_source_and_difference(tab):
    tab.page.wait_for_selector(f'{ROOT}[data-claims="ready"]')
    row = tab.page.locator(".budget-claims tr", has_text="Multilingual BERT")
    assert "177.9" in row.inner_text()
    assert "38\xa0% lower" in row.inner_text()
    assert row.get_attribute("data-off") == "much"


def test_files_open(tab):
    with tab.page.expect_download() as download:
        tab.page.click('.view-budget [data-save="csv"]')
    with download.value.path().open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == tab.names()
    with tab.page.expect_download() as download:
        tab.page.click('.view-budget [data-save="svg"]')
    assert ElementTree.parse(download.value.path()).getroot().tag.endswith("svg")


def test_a_link_restores_the_choice_in_chinese_and_saves_a_picture(visit):
    own = {"base": "bert-base-uncased", "vocabulary": 1000, "embedding": 64, "width": 64}
    own |= {"layers": 4, "heads": 2, "inner": 128, "sharing": "groups", "groups": 2}
    state = json.dumps({"sizes": ["bert-2x128"], "own": own, "length": 9, "shares": True})
    page = visit(link=f"?lang=zh{LINK}&lab-budget={quote(state)}").page
    page.wait_for_selector(f'{ROOT}[data-state="ready"][data-claims="ready"]')
    assert page.locator(f"{ROOT} .budget-name").all_inner_texts() == ["bert-2x128", "自设尺寸"]
    assert page.input_value("#budget-groups") == "2"
    assert page.input_value("#budget-length") == "9"
    assert page.get_attribute("#budget-shares", "aria-checked") == "true"
    with page.expect_download() as download:
        page.click(f'{ROOT} [data-save="png"]')
    assert download.value.path().read_bytes()[:4] == b"\x89PNG"
    page.locator(".budget-presets button").nth(1).click()
    page.wait_for_function(SETTLED)
    assert page.locator(f"{ROOT} .budget-name").count() == 4
    assert "代价" in page.inner_text(f"{ROOT} h2")
    assert [text for text in page.evaluate("[...ClozeLanguage.missing]") if text.isascii()] == []


def test_a_strange_link_is_explained_and_nothing_sticks_out_narrow_and_dark(visit):
    strange = json.dumps({"sizes": ["nothing", 5, "<b>"], "own": {"base": "x"}, "length": "9"})
    cloze = visit(width=390, dark=True, link=f"{LINK}&lab-budget={quote(strange)}")
    cloze.page.wait_for_selector(f'{ROOT}[data-state="error"]')
    assert cloze.overflow() <= 0
    cloze.page.evaluate("link => { location.hash = link; }", LINK)
    cloze.page.wait_for_selector(f'{ROOT}[data-state="ready"]')
    tab = Tab(cloze)
    tab.page.click("#budget-own")
    tab.page.wait_for_function("document.querySelectorAll('.budget-name').length === 5")
    tab.settle()
    assert cloze.overflow() <= 0
