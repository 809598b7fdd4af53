"""The Tokenizers tab in Chromium: pieces against the tokenizer, both languages, files."""

import csv

import pytest

import core_models as cm
from app.labs.tokenizers import answers as tokenizers
from tests.app.one_page import SENTENCE, start_over

ROOT = ".view-tokenizers"
SETTLED = """text => {
  const view = document.querySelector('.view-tokenizers').dataset;
  return Cloze.sentence.text === text && view.state === 'ready' && view.rev === view.asked;
}"""
SWITCH_ON = """() => {
  const off = '.view-tokenizers [role=switch][aria-checked=false]';
  for (const each of document.querySelectorAll(off)) each.click();
}"""
CHINESE = "北京是中国的首都，位于华北平原的北部。"


class Tab:
    """The Tokenizers tab of a page."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = cloze.page
        self.page.wait_for_function("!!Cloze.openTab")
        self.page.evaluate("Cloze.openTab('Tokenizers')")
        self.page.wait_for_selector(f'{ROOT}[data-state="ready"]')

    def write(self, text):
        self.cloze.write(text)
        self.page.wait_for_function(SETTLED, arg=text)

    def ids(self, kind):
        pieces = self.page.locator(f'.tok-row[data-kind="{kind}"]').last.locator(".tok-piece")
        return pieces.evaluate_all("pieces => pieces.map(piece => Number(piece.dataset.id))")

    def number(self, title, name):
        row = self.page.locator(f'.tok-row[data-title="{title}"]')
        return row.locator(f'[data-number="{name}"] dd').inner_text()


@pytest.fixture
def tab(module_page):
    """One page for most of these tests, with all switches on."""
    tab = Tab(module_page)
    start_over(module_page)
    tab.page.wait_for_function(SETTLED, arg=SENTENCE)
    tab.page.evaluate(SWITCH_ON)
    yield tab
    assert module_page.problems == []


def test_pieces_and_ids_are_those_of_the_tokenizers(tab):
    for text in ("Unbelievable! The café's re-built.", CHINESE):
        tab.write(text)
        for kind in tokenizers.KINDS:
            own = cm.Tokenizer.from_folder(tokenizers.FOLDER / kind)
            assert tab.ids(kind) == own.encode(text).ids


def test_an_example_in_chinese_shows_what_a_word_is(tab):
    tab.page.get_by_role("button", name="Chinese", exact=True).click()
    tab.page.wait_for_function(SETTLED, arg=CHINESE)
    assert tab.number("WordPiece", "words") == "19"
    assert tab.number("Byte-level BPE", "words") == "14"
    words = tab.page.locator('.tok-row[data-title="WordPiece"] .tok-word:not(.alone)')
    assert words.count() == 19
    # The shipped English model knows none of these characters.
    assert int(tab.number("bert-mini", "unknown")) > 10
    assert tab.page.locator('.tok-row[data-title="bert-mini"] .unknown').count() > 10


def test_text_is_shown_as_text(tab):
    tab.write("<img src=x onerror=alert(1)> ${alert(2)} {{value}}")
    assert tab.page.locator(f"{ROOT} img").count() == 0


def test_switches_hide_ids_and_bytes(tab):
    piece = tab.page.locator(".tok-id").nth(1)
    assert piece.is_visible()
    tab.page.click("#tok-ids")
    assert not piece.is_visible()
    assert tab.page.locator(".tok-bytes").nth(1).is_visible()
    tab.page.locator("#tok-bytes").focus()
    tab.page.keyboard.press("Enter")
    assert not tab.page.locator(".tok-bytes").nth(1).is_visible()


def test_every_family_has_its_template(tab):
    text = tab.page.inner_text(".tok-templates")
    for title in ("BERT", "RoBERTa", "ALBERT", "XLNet", "ELECTRA", "DeBERTa v3", "<cls>", "</s>"):
        assert title in text


def test_an_empty_text_is_explained_and_the_next_one_works(tab):
    tab.cloze.write("   ")
    tab.page.wait_for_selector(f'{ROOT}[data-state="error"]')
    assert tab.page.locator(f"{ROOT} .problem").is_visible()
    tab.write("Paris is here.")
    assert tab.page.locator(f"{ROOT} .problem").is_hidden()
    assert tab.page.locator(".tok-row").first.is_visible()
    # Not only blanks: nothing at all.
    tab.page.fill("#sentence-text textarea", "")
    tab.page.wait_for_selector(f'{ROOT}[data-state="error"]')
    for gone in (".tok-row", ".tok .summary", '.tok [data-save="csv"]'):
        assert tab.page.locator(gone).first.is_hidden()
    tab.write("Paris is here.")
    assert tab.page.locator(".tok-row").first.is_visible()


def test_the_table_and_the_file_hold_every_piece(tab):
    tab.page.locator(f"{ROOT} summary", has_text="The table").click()
    tab.page.wait_for_selector(".tok-scroll tbody tr")
    pieces = tab.page.locator(".tok-piece").count()
    assert tab.page.locator(".tok-scroll tbody tr").count() == pieces
    with tab.page.expect_download() as download:
        tab.page.click('.view-tokenizers [data-save="csv"]')
    with download.value.path().open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == pieces


def test_narrow_and_dark_nothing_sticks_out(visit):
    tab = Tab(visit(width=390, dark=True))
    tab.write("x" * 300)
    assert tab.cloze.overflow() <= 0


def test_a_link_restores_the_switches_in_chinese_and_saves_a_picture(visit):
    state = "%7B%22off%22%3A%5B%22bytes%22%2C%22x%22%5D%7D"  # {"off": ["bytes", "x"]}
    link = f"?lang=zh#text=Paris&model=bert-mini&tab=tokenizers&lab-tokenizers={state}"
    page = visit(link=link).page
    page.wait_for_selector(f'{ROOT}[data-state="ready"]')
    assert page.get_attribute("#tok-bytes", "aria-checked") == "false"
    assert page.get_attribute("#tok-ids", "aria-checked") == "true"
    assert not page.locator(".tok-bytes").nth(1).is_visible()
    with page.expect_download() as download:
        page.click(f'{ROOT} [data-save="png"]')
    assert download.value.path().read_bytes()[:4] == b"\x89PNG"
    assert [text for text in page.evaluate("[...ClozeLanguage.missing]") if text.isascii()] == []
