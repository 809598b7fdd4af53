"""Whatever is typed: a clear message or the text itself, no markup, and a page that lives on."""

import pytest
from playwright.sync_api import expect

from tests.app.one_page import SENTENCE, mark

MARKUP = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "${alert(1)}",
    "{{7*7}}",
    "{{constructor.constructor('alert(1)')()}}",
    "`${alert(1)}`",
    "</textarea><b>bold</b>",
    "\\u0041 \\x41 \\",
    "@children",
    "__proto__ constructor",
    "&lt;img src=x onerror=alert(1)&gt;",
    '" autofocus onfocus=alert(1) x="',
    "[x](javascript:alert(1)) $\\href{javascript:alert(1)}{x}$",
]
LETTERS = [
    "I like 😀 and 👩‍👩‍👧 very much .",
    "😀🎉",
    "עיר הבירה של צרפת היא פריז .",
    "عاصمة فرنسا هي باريس .",
    "法国的首都是巴黎。",
    "e\u0301" + "\u0301" * 60 + " \u202eabc\u202c x\u200by",
    "a\u0000b \ufeff c",
]
# A word of the visitor's own has been asked for.
ASKED = "word => Object.values(Cloze.kept('mask-words') ?? {}).includes(word)"


@pytest.fixture
def cloze(module_page):
    """The same page for all of these tests: it has to live on."""
    module_page.write(SENTENCE)
    show_all(module_page)
    yield module_page
    assert module_page.problems == []


def show_all(cloze):
    if cloze.page.locator("#clear").is_enabled():
        cloze.page.click("#clear")


def still_alive(cloze):
    cloze.write(SENTENCE)
    show_all(cloze)
    cloze.chip("Paris").click()
    expect(cloze.page.locator(".guess")).to_have_count(1)  # nothing hidden is settled, too
    cloze.settle()
    expect(cloze.page.locator(".view-chips .problem")).to_be_hidden()


def test_no_text(cloze):
    for text in ("", "    ", "\n\t "):
        still_alive(cloze)
        cloze.chip("France").click()
        cloze.write(text)
        message = cloze.page.locator(".view-chips .problem")
        expect(message).to_have_text("There is no text yet. Type a sentence or pick an example.")
        expect(cloze.page.locator(".guess"), repr(text)).to_have_count(0)
        expect(cloze.page.locator("#draw"), repr(text)).to_be_disabled()
    still_alive(cloze)


def test_too_much_text(cloze):
    cloze.write("x" * 100_000)
    expect(cloze.page.locator(".view-chips .problem")).to_contain_text(
        "This text has 100,000 characters and the page takes up to 20,000."
    )
    assert cloze.overflow() <= 0
    still_alive(cloze)


def test_more_text_than_the_model_reads(cloze, model):
    cloze.write("word " * 3_000)
    expect(cloze.page.locator(".chip")).to_have_count(model.longest)
    note = f"cut after {model.longest - 2} pieces. With 2 special ones"
    expect(cloze.page.locator(".notes")).to_contain_text(note)
    cloze.at(1).click()
    cloze.at(model.longest - 2).click(modifiers=["Shift"])
    cloze.settle()
    assert len(cloze.marked()) == model.longest - 2
    cloze.page.click("#more")
    expect(cloze.page.locator(".guess")).to_have_count(model.longest - 2)
    still_alive(cloze)


def test_letters_of_any_kind(cloze):
    for text in LETTERS:
        mark(cloze)
        cloze.write(text)
        expect(cloze.page.locator(".chip:not(.special)"), text).not_to_have_count(0)
        cloze.page.locator(".chip:not(.special)").first.click()
        cloze.settle()
        expect(cloze.page.locator(".guess"), text).to_have_count(1)
        expect(cloze.page.locator(".view-chips .problem"), text).to_be_hidden()
        assert cloze.overflow() <= 0, text
    still_alive(cloze)


def test_right_to_left_text_runs_from_the_right(cloze):
    cloze.write("عاصمة فرنسا هي باريس .")
    assert cloze.at(1).bounding_box()["x"] > cloze.at(2).bounding_box()["x"]
    cloze.at(1).click()
    cloze.page.keyboard.press("ArrowLeft")
    expect(cloze.at(2)).to_be_focused()


def test_only_characters_that_cannot_be_shown(cloze):
    cloze.write("\u200b\u200b\u0000")
    expect(cloze.page.locator(".view-chips .problem")).to_be_visible()
    still_alive(cloze)


@pytest.mark.slow
def test_markup_stays_text(cloze):
    for text in MARKUP:
        mark(cloze)
        cloze.write(text)
        shown = "".join(cloze.page.locator(".chip:not(.special) .face").all_text_contents())
        assert shown == text.replace(" ", "")
        last = min(5, cloze.page.locator(".chip").count() - 2)
        cloze.at(1).click()
        cloze.at(last).click(modifiers=["Shift"])
        assert cloze.marked() == list(range(1, last + 1)), text
        cloze.settle()
        cloze.page.locator(".mine-word").first.fill(text[:60])
        cloze.page.wait_for_function(ASKED, arg=text[:60].strip())
        cloze.settle()
        expect(cloze.page.locator(".guess"), text).to_have_count(last)
        expect(cloze.page.locator(".view-chips .problem"), text).to_be_hidden()
        made = cloze.page.locator(".view img[src=x], .view script, .view b b")
        assert made.count() == 0, text  # at once
    still_alive(cloze)


def test_every_token_hidden(cloze):
    cloze.at(1).click()
    cloze.at(7).click(modifiers=["Shift"])
    cloze.settle()
    assert cloze.marked() == [1, 2, 3, 4, 5, 6, 7]
    expect(cloze.page.locator(".guess")).to_have_count(7)
    still_alive(cloze)


def test_gaps_written_in_the_text(cloze):
    cloze.write("The [MASK] of France is [MASK] .")
    cloze.settle()
    expect(cloze.page.locator(".guess")).to_have_count(2)
    cloze.at(2).click()
    assert cloze.marked() == []


def test_too_many_questions(cloze, session, monkeypatch):
    """The refusal says when to try again, and the page does."""
    cloze.write("A class asks about another sentence.")
    monkeypatch.setattr(session._batcher, "waiting", 0)
    cloze.chip("sentence").click()
    refusal = cloze.page.get_by_text("other questions wait for an answer. Try again in 2 seconds.")
    refusal.first.wait_for()
    monkeypatch.setattr(session._batcher, "waiting", 256)
    expect(refusal.first).to_be_hidden()
    expect(cloze.page.locator(".view-predictions")).to_have_attribute("data-state", "ready")
