"""The Tokenizers lab in Chromium: pieces against the tokenizer, both languages, files."""

import csv
import json
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

import core_models as cm
from app.labs.tokenizers import answers as tokenizers
from app.serving import locales
from tests.app.one_lab import OneLab
from tests.app.one_page import start_over

CHINESE = tokenizers.EXAMPLES["Chinese"]
CUT = """([name, ids]) => {
  const pieces = document.querySelectorAll(`ol[aria-label$="${name}"] [data-id]`);
  return [...pieces].map(({ dataset }) => dataset.id).join() === ids.join();
}"""


class Lab(OneLab):
    """The Tokenizers lab of a page."""

    lab, heading = "tokenizers", "One line, cut four ways"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        expect(self.row("Unigram")).to_be_visible()

    def row(self, title):
        title = self.named("Pieces, {0}", self.named(title))
        return self.panel.get_by_role("list", name=title, exact=True)

    def shows(self, kind, text):
        """Wait until the row of a shipped vocabulary is its cut of this text."""
        encoding = tokenizers.shipped(kind).encode(text, max_length=tokenizers.MOST_PIECES)
        name = self.named(str(tokenizers.KINDS[kind]))
        self.page.wait_for_function(CUT, arg=[name, encoding.ids])

    def table(self, name):
        return self.panel.get_by_role("region", name=self.named(name))


@pytest.fixture
def lab(module_page):
    """One page for most of these tests."""
    start_over(module_page)
    lab = Lab(module_page)
    lab.shows("wordpiece", "The capital of France is Paris.")
    yield lab
    assert module_page.problems == []


def test_pieces_and_ids_are_those_of_the_tokenizers(lab):
    for text in ("Unbelievable! The café's re-built.", CHINESE):
        lab.cloze.write(text)
        for kind in tokenizers.KINDS:
            lab.shows(kind, text)
            own = cm.Tokenizer.from_folder(tokenizers.FOLDER / kind)
            assert own.encode(text).ids == tokenizers.shipped(kind).encode(text).ids


def test_an_example_in_chinese_shows_what_a_word_is(lab):
    choice = lab.panel.get_by_role("radio", name="Chinese", exact=True)
    choice.check()
    lab.shows("wordpiece", CHINESE)
    expect(choice).to_be_checked()
    expect(lab.row("WordPiece").get_by_role("listitem")).to_have_count(19 + 2)
    lab.unfold("Pieces, words, characters")
    cells = lab.table("Pieces without the special ones").get_by_role("row", name="Byte-level BPE")
    expect(cells.get_by_role("cell").nth(2)).to_have_text("14")
    # The shipped English model knows none of these characters.
    expect(lab.row("bert-mini").get_by_text("unknown", exact=True).nth(10)).to_be_attached()
    # What is typed is no example.
    lab.cloze.write("Paris is here.")
    expect(choice).not_to_be_checked()


def test_text_is_shown_as_text(lab):
    text = "<img src=x onerror=alert(1)> ${alert(2)} {{value}}"
    lab.cloze.write(text)
    lab.shows("byte_bpe", text)
    assert lab.panel.get_by_role("img").count() == 0  # at once


def test_ids_bytes_and_special_pieces_can_be_hidden(lab):
    row = lab.row("WordPiece")
    number = row.get_by_text("2280", exact=True)
    under = row.get_by_text("63 61 70 69 74 61 6c", exact=True)
    special = row.get_by_text("[SEP]", exact=True)
    for name, part in (("Ids", number), ("Bytes", under), ("Special pieces", special)):
        expect(part).to_be_visible()
        box = lab.panel.get_by_role("checkbox", name=name)
        box.focus()
        lab.page.keyboard.press("Space")
        expect(part).to_be_hidden()
        box.uncheck()
        expect(part).to_be_visible()


def test_every_family_has_its_template(lab):
    lab.unfold("Where the special pieces go")
    frames = lab.table("A and B stand for the texts")
    for title, frame in (("RoBERTa", "<s> A </s>"), ("XLNet", "A <sep> <cls>")):
        expect(frames.get_by_role("row", name=title).first).to_contain_text(frame)
    expect(frames.get_by_role("rowheader", name="DeBERTa v3", exact=True)).to_be_visible()


def test_an_empty_text_is_explained_and_the_next_one_works(lab):
    for empty in ("   ", ""):
        lab.cloze.write(empty)
        problem = lab.panel.get_by_text("There is no text")
        expect(problem).to_be_visible()
        lab.cloze.write("Paris is here.")
        expect(problem).to_be_hidden()
        lab.shows("unigram", "Paris is here.")


def test_the_table_and_the_file_hold_every_piece(lab):
    lab.unfold("Every piece")
    pieces = lab.panel.get_by_role("list", name="Pieces, ").locator("[data-id]").count()
    expect(lab.table("Every piece").get_by_role("rowheader")).to_have_count(pieces)
    with lab.page.expect_download() as download:
        lab.page.locator("#tokenizers").get_by_role("button", name="Save as CSV").click()
    with download.value.path().open(encoding="utf-8-sig") as file:
        assert len(list(csv.DictReader(file))) == pieces


def test_the_picture_is_saved_as_often_as_it_is_wanted(lab):
    lab.unfold("Every piece")
    for name, start in (("SVG", b"<svg"), ("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with lab.page.expect_download() as download:
            lab.panel.get_by_role("button", name=f"Save as {name}").click()
        assert download.value.path().read_bytes().startswith(start)


@pytest.mark.slow
def test_narrow_and_dark_nothing_sticks_out(visit):
    lab = Lab(visit(width=390, dark=True))
    lab.cloze.write("x" * 300)
    lab.shows("byte_bpe", "x" * 300)
    assert lab.cloze.overflow() <= 0


@pytest.mark.slow
def test_an_old_link_restores_what_is_hidden_in_chinese(visit):
    state = quote(json.dumps({"off": ["bytes"]}))
    link = f"?lang=zh#text=Paris&model=bert-mini&tab=tokenizers&lab-tokenizers={state}"
    words = locales.catalogue("zh")
    lab = Lab(visit(link=link), words)
    hidden = lab.panel.get_by_role("checkbox", name=words["Bytes"])
    expect(hidden).to_be_checked()
    expect(lab.panel.get_by_role("checkbox", name=words["Ids"])).not_to_be_checked()
    expect(lab.row("WordPiece").get_by_text("50 61 72 69 73", exact=True)).to_be_hidden()
    hidden.uncheck()
    lab.page.wait_for_function("() => !location.hash.includes('lab-tokenizers')")
    for name in ("Pieces, words, characters", "Every piece", "What this shows"):
        lab.unfold(name)
    missing = lab.page.evaluate("[...ClozeLanguage.missing]")
    assert [text for text in missing if text.isascii()] == []
