"""The Spans tab in Chromium: the picture, both heads, links, Chinese, what is missing."""

import csv
import os
from xml.etree import ElementTree

import pytest

from app.labs.spans import answers as spans
from core_models.prediction import fill_spans
from tests.app.one_page import renewed
from tests.app.test_spans import NAME, tiny

ROOT = ".view-spans"
# Names of tabs are translated before anything asks for them, so Chinese ones may be looked up, too.
MISSING = "[...ClozeLanguage.missing].filter((key) => /[a-z]/i.test(key))"
SETTLED = """() => {
  const view = document.querySelector('.view-spans').dataset;
  return view.state === 'ready' && view.rev === view.asked;
}"""
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory, session):
    """A tiny SpanBERT, known to the page while this module runs."""
    folder = tmp_path_factory.mktemp("with-spans")
    tiny(session.model("bert-mini").tokenizer).save(folder / NAME)
    before = os.environ.get("CLOZE_MODELS")
    os.environ["CLOZE_MODELS"] = os.pathsep.join(filter(None, [before, str(folder)]))
    session._infos = {}
    yield
    session._infos = {}
    session._loaded.pop(NAME, None)
    del os.environ["CLOZE_MODELS"]
    if before is not None:
        os.environ["CLOZE_MODELS"] = before


class Tab:
    """The Spans tab of a page."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = cloze.page
        self.page.wait_for_function("!!window.Cloze?.openTab")
        self.page.wait_for_selector("#tabs [role=tab]", state="attached")
        self.page.evaluate("Cloze.openTab('Spans')")
        self.page.wait_for_selector(f'{ROOT}[data-state="ready"]')
        self.settle()
        readers = self.page.get_by_role("button", name=NAME)
        if readers.count() and readers.first.get_attribute("aria-pressed") != "true":
            readers.first.click()  # a trained one is installed as well
            self.settle()

    def settle(self):
        self.page.wait_for_function(SETTLED)

    def losses(self):
        """Loss of each head at each shown place."""
        cards = self.page.locator(f"{ROOT} .sp-card").all()
        return [
            [float(p.get_attribute("data-loss")) for p in card.locator("[data-loss]").all()]
            for card in cards
        ]

    def wanted(self, session, span, **values):
        model = session.model(NAME)
        text = self.page.evaluate("Cloze.sentence.text")
        (told,) = fill_spans(model, text, [span], **values)
        return [
            [spans.loss_of(p.masked_token), spans.loss_of(p.span_boundary)] for p in told.pieces
        ]


@pytest.fixture
def cloze(module_page):
    """One page for these tests; nothing is hidden at first."""
    mask = "document.querySelector('.view-spans [data-inside=mask]')?.click()"
    yield from renewed(module_page, mask)


def test_a_span_from_the_bar_is_told_by_both_heads(cloze, session):
    for position in (3, 4):
        cloze.at(position).click()
    tab = Tab(cloze)
    hidden = tab.page.locator(f"{ROOT} .sp-column.hidden")
    assert hidden.locator(".sp-place").all_inner_texts() == ["0", "1"]
    edges = tab.page.locator(f"{ROOT} .sp-column.boundary")
    assert [each.get_attribute("data-position") for each in edges.all()] == ["2", "5"]
    assert tab.page.locator(f"{ROOT} .sp-lines path").count() == 4
    for found, wanted in zip(tab.losses(), tab.wanted(session, (3, 5)), strict=True):
        assert found == pytest.approx(wanted, rel=1e-5)
    tab.page.click('[data-inside="kept"]')
    tab.settle()
    kept = tab.wanted(session, (3, 5), kept=True)
    for found, wanted in zip(tab.losses(), kept, strict=True):
        assert found == pytest.approx(wanted, rel=1e-5)
    rows = tab.page.locator(f"{ROOT} .sp-table tbody tr")
    assert rows.count() == 2
    tab.page.locator(f"{ROOT} details:not(.fold) > summary").first.click()
    assert tab.page.locator(f"{ROOT} .sp-table").last.locator("tbody tr").count() == 2
    # The other way: choose words here, and the bar hides them.
    tab.page.select_option("#sp-first", "1")
    tab.page.select_option("#sp-length", "4")
    tab.page.click("#sp-hide")
    tab.settle()
    assert cloze.marked() == [2, 3, 4, 5]
    law = tab.cloze.numbers(ROOT)
    assert [row[3] for row in law] == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, None]
    with tab.page.expect_download() as download:
        tab.page.click(f'{ROOT} [data-save="csv"]')
    with download.value.path().open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 4
    with tab.page.expect_download() as download:
        tab.page.click(f'{ROOT} [data-save="svg"]')
    ElementTree.parse(download.value.path())
    with tab.page.expect_download() as download:
        tab.page.click(f'{ROOT} [data-save="png"]')
    assert download.value.path().read_bytes()[:8] == PNG
    assert download.value.suggested_filename == "cloze-spans.png"


def test_a_link_restores_the_view(cloze, visit, session):
    tab = Tab(cloze)
    tab.page.get_by_role("button", name="Other words inside").first.click()
    tab.page.wait_for_function(
        "Cloze.sentence.text.startsWith('The government') && Cloze.sentence.marks.size"
    )
    tab.settle()
    tab.page.click("#sp-roll")
    tab.settle()
    before = tab.losses(), tab.page.locator(f"{ROOT} .sp-token").all_inner_texts()
    link = tab.page.evaluate("location.hash")
    other = Tab(visit(link=link))
    other.page.wait_for_function(
        "Cloze.sentence.text.startsWith('The government') && Cloze.sentence.marks.size"
    )
    other.settle()
    assert (other.losses(), other.page.locator(f"{ROOT} .sp-token").all_inner_texts()) == before
    assert "lab-spans" in link


def test_words_that_were_chosen_and_not_yet_hidden_are_in_the_link(cloze, visit):
    tab = Tab(cloze)
    tab.page.select_option("#sp-first", "1")
    tab.page.select_option("#sp-length", "4")
    tab.page.locator("[data-inside=random]").click()
    tab.settle()
    lists = "['sp-first', 'sp-length'].map((id) => document.getElementById(id).value)"
    assert tab.page.evaluate(lists) == ["1", "4"]
    other = Tab(visit(link=tab.page.evaluate("location.hash")))
    assert other.page.evaluate(lists) == ["1", "4"]
    other.page.click("#sp-hide")
    other.page.wait_for_function(
        "document.querySelectorAll('.view-spans .sp-column.hidden').length >= 4"
    )
    # They are of what is hidden now: another run has words of its own.
    cloze.at(3).click()
    tab.page.wait_for_function(f"({lists}).join() !== '1,4'")


def test_a_draw_hides_spans_in_the_bar(cloze, session):
    tab = Tab(cloze)
    tab.page.click("#sp-draw")
    tab.page.wait_for_function("Cloze.sentence.marks.size > 0")
    tab.settle()
    text = tab.page.evaluate("Cloze.sentence.text")
    sentence = spans.cut(session.model(NAME), text)
    found = spans.hidden_runs(sentence, spans.draw(sentence, 1))
    assert cloze.marked() == [p for start, stop in found for p in range(start, stop)]


def test_narrow_dark_and_chinese_nothing_sticks_out_or_stays_english(visit):
    # Anything may stand in a link.
    broken = '#text=Bees+fly+far+away&tab=spans&lab-spans={"run":"x","inside":[],"roll":-1}'
    tab = Tab(visit(width=390, dark=True, link=f"?lang=zh{broken}"))
    assert tab.page.get_attribute('[data-inside="mask"]', "aria-pressed") == "true"
    tab.page.evaluate("Cloze.setHidden(Cloze.sentence.tokens.slice(1, 3), true)")
    tab.settle()
    tab.page.click('[data-inside="random"]')
    tab.settle()
    tab.page.locator(f"{ROOT} details:not(.fold) > summary").first.click()
    tab.cloze.write("word " * 600)
    tab.settle()
    assert tab.cloze.overflow() <= 0
    tab.cloze.write("   ")
    tab.page.wait_for_selector(f'{ROOT}[data-state="error"]')
    tab.cloze.write("<img src=x onerror=alert(1)> ${alert(2)} {{value}}")
    tab.settle()
    assert tab.page.locator(f"{ROOT} img").count() == 0
    assert tab.page.evaluate(MISSING) == []
    assert "片段" in tab.page.inner_text(f"{ROOT} h2")


def test_without_the_heads_the_tab_says_how_to_train_one(cloze, session, monkeypatch):
    tab = Tab(cloze)
    infos = [info for info in session.models() if "span_boundary" not in info.heads]
    monkeypatch.setattr(session, "models", lambda: infos)
    cloze.at(3).click()
    tab.settle()
    lacking = tab.page.locator(f"{ROOT} [data-lacking]")
    assert lacking.is_visible()
    assert "core_models.zoo build spanbert-mini" in lacking.inner_text()
    assert tab.page.locator(f"{ROOT} .sp-lines path").count() == 2
    assert tab.page.locator(f"{ROOT} .sp-card").first.is_hidden()
