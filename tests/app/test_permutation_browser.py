"""The Permutation tab in Chromium: masks, moved chips, what a model with two streams adds."""

import csv
import os
from xml.etree import ElementTree

import pytest
import torch

from app.labs.permutation import answers as permutation
from core_models.orderings import paper
from tests.app.one_page import lab
from tests.app.test_permutation_tab import NAME, TEXT, tiny

ROOT = ".view-permutation"
# Names of tabs are translated before anything asks for them, so Chinese ones may be looked up, too.
MISSING = "[...ClozeLanguage.missing].filter((key) => /[a-z]/i.test(key))"
SETTLED = """() => {
  const view = document.querySelector('.view-permutation').dataset;
  return view.state === 'ready' && view.rev === view.asked;
}"""

# All controls as at the start, and no order of the visitor's own.
START = """() => {
  const layer = document.querySelector('.view-permutation .pm-pick');
  if (layer.value !== '0') {
    layer.value = '0';
    layer.dispatchEvent(new Event('change'));
  }
  for (const on of document.querySelectorAll('#pm-leak, #pm-memory')) {
    if (on.getAttribute('aria-checked') === 'true') on.click();
  }
  const few = document.querySelector('#pm-k');
  few.value = 3;
  few.dispatchEvent(new Event('input'));
  document.querySelector('[data-variant=released]').click();
  document.querySelector('[data-variant=paper]').click();
}"""


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory, session):
    """A tiny model with two streams, known to the page while this module runs."""
    folder = tmp_path_factory.mktemp("two-streams")
    tiny().save(folder / NAME)
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
    """The Permutation tab of a page."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = cloze.page
        cloze.write(TEXT)
        self.page.evaluate("Cloze.openTab('Permutation')")
        self.page.wait_for_selector(f'{ROOT}[data-state="ready"]')

    def settle(self):
        self.page.wait_for_function(SETTLED)

    def order(self):
        chips = self.page.locator(f"{ROOT} .pm-chip")
        return chips.evaluate_all("chips => chips.map(chip => Number(chip.dataset.position))")

    def seen(self, stream):
        rows = self.page.locator(f"{ROOT} .pm-matrix.{stream}:not(.weights) tbody tr")
        return rows.evaluate_all(
            "rows => rows.map(row => [...row.querySelectorAll('td')]"
            ".map(cell => cell.classList.contains('seen')))"
        )

    def wanted(self, session, count):
        """Both masks of the order that is shown, by the core."""
        model = session.model(NAME)
        special = [n for n, flag in enumerate(model.tokenizer.encode(TEXT).special) if flag]
        seen = paper(torch.tensor([[*special, *self.order()]]), torch.tensor([count]))
        return seen.visibility[0].tolist(), seen.target_visibility[0].tolist()


@pytest.fixture
def tab(module_page):
    """One page for these tests."""
    yield from lab(module_page, Tab, TEXT, START)


def test_arrow_keys_and_dragging_move_a_piece_and_both_masks(tab, session):
    before = tab.order()
    count = permutation.goal(permutation.cut(session.model(NAME).tokenizer, TEXT), 3)
    assert (tab.seen("content"), tab.seen("query")) == tab.wanted(session, count)
    chip = tab.page.locator(f"{ROOT} .pm-chip").first
    chip.focus()
    tab.page.keyboard.press("End")
    tab.settle()
    assert tab.order() == [*before[1:], before[0]]
    assert (tab.seen("content"), tab.seen("query")) == tab.wanted(session, count)
    tab.page.keyboard.press("ArrowLeft")  # the piece keeps the focus
    tab.settle()
    assert tab.order() == [*before[1:-1], before[0], before[-1]]
    first, third = (tab.page.locator(f"{ROOT} .pm-chip").nth(n) for n in (0, 2))
    moved = tab.order()
    first.scroll_into_view_if_needed()
    first.hover()
    tab.page.mouse.down()
    third.hover()
    tab.page.mouse.up()
    tab.settle()
    assert tab.order() == [*moved[1:3], moved[0], *moved[3:]]
    assert (tab.seen("content"), tab.seen("query")) == tab.wanted(session, count)


def test_rows_read_as_sentences_and_a_leak_is_marked(tab):
    tab.page.click(f'{ROOT} [data-try="every"]')
    tab.settle()
    target = tab.order()[1]
    tab.page.locator(f'.pm-matrix.query:not(.weights) tr[data-position="{target}"] button').focus()
    said = tab.page.locator(f"{ROOT} .summary").first
    assert said.inner_text().startswith(f"To predict position {target}, the query may see only")
    tab.page.click("#pm-leak")
    tab.settle()
    assert "That is wrong" in said.inner_text()
    assert tab.page.locator(f"{ROOT} .pm-warning").is_visible()
    assert tab.page.locator(f"{ROOT} td.leak").count() >= len(tab.order())


def test_chances_and_attention_come_from_the_other_model(tab, session):
    rows = tab.page.locator(f"{ROOT} .pm-chances tbody tr")
    assert rows.count() == tab.page.locator(f"{ROOT} .pm-chip.target").count()
    assert NAME in " ".join(tab.page.locator(f"{ROOT} .pm-note").all_inner_texts())
    tab.page.get_by_label("Layer", exact=True).select_option("2")
    tab.settle()
    assert "layer 3, head 1" in tab.page.locator(f"{ROOT} figcaption").last.inner_text()
    tab.page.click("#pm-memory")
    tab.settle()
    assert tab.page.locator(f"{ROOT} .weights.content thead .remembered").count() > 3
    with tab.page.expect_download() as download:
        tab.page.click(f'{ROOT} [data-save="csv"]')
    with download.value.path().open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == rows.count()
    with tab.page.expect_download() as download:
        tab.page.click(f'{ROOT} [data-save="svg"]')
    ElementTree.parse(download.value.path())


def test_without_two_streams_masks_work_and_training_is_explained(tab, session, monkeypatch):
    infos = [info for info in session.models() if permutation.HEAD not in info.heads]
    monkeypatch.setattr(session, "models", lambda: infos)
    tab.page.click("#pm-shuffle")
    tab.settle()
    lacking = tab.page.locator(f"{ROOT} [data-lacking]")
    assert lacking.is_visible()
    assert "xlnet-mini" in lacking.inner_text()
    assert len(tab.seen("content")) == len(session.model("bert-mini").encode([TEXT])[0])
    assert not tab.page.locator(f"{ROOT} .pm-chances").is_visible()


def test_bad_text_is_explained_and_the_next_one_works(tab):
    tab.cloze.write("   ")
    tab.page.wait_for_selector(f'{ROOT}[data-state="error"]')
    tab.cloze.write("<img src=x onerror=alert(1)> ${alert(2)} {{value}}")
    tab.settle()
    assert tab.page.locator(f"{ROOT} img").count() == 0


def test_a_link_restores_order_and_settings_in_chinese(tab, visit):
    tab.page.locator(f"{ROOT} .pm-chip").first.focus()
    tab.page.keyboard.press("End")
    tab.settle()
    tab.page.click("#pm-memory")
    tab.settle()
    tab.page.get_by_label("Layer", exact=True).select_option("1")
    tab.settle()
    with tab.page.expect_download() as download:
        tab.page.click(f'{ROOT} [data-save="png"]')
    assert download.value.path().read_bytes()[:4] == b"\x89PNG"
    link = tab.page.evaluate("location.hash")
    other = visit(link=f"?lang=zh{link}").page
    other.wait_for_selector(f'{ROOT}[data-state="ready"]')
    other.wait_for_function("text => Cloze.sentence.text === text", arg=TEXT)
    other.wait_for_function(SETTLED)
    shown = f"{ROOT} .pm-chip"
    places = "chips => chips.map(chip => Number(chip.dataset.position))"
    assert other.locator(shown).evaluate_all(places) == tab.order()
    chances = f"{ROOT} .pm-chances td[data-chance]"
    values = "cells => cells.map(cell => cell.dataset.chance)"
    assert other.locator(chances).evaluate_all(values) == tab.page.locator(chances).evaluate_all(
        values
    )
    assert other.locator(f"{ROOT} td.forgotten").count() > 0
    for row in other.locator(".pm-matrix:not(.weights) button").all():
        row.focus()
        assert "位置" in other.locator(f"{ROOT} .summary").first.inner_text()
    assert other.evaluate(MISSING) == []


def test_an_order_that_does_not_fit_is_dropped_and_narrow_and_dark_nothing_sticks_out(
    visit, session
):
    link = f'#text={TEXT}&tab=permutation&lab-permutation={{"order":[0,0],"k":99}}'
    cloze = visit(width=390, dark=True, link=link)
    cloze.page.wait_for_selector(f'{ROOT}[data-state="ready"]')
    pieces = [n for n in session.model(NAME).tokenizer.encode(TEXT).special if not n]
    assert cloze.page.locator(f"{ROOT} .pm-chip").count() == len(pieces)
    tab = Tab(cloze)
    tab.cloze.write("word " * 600)
    tab.settle()
    assert tab.cloze.overflow() <= 0
    assert "first 32 pieces" in tab.page.inner_text(f"{ROOT} .pm-live")
