"""Whatever is typed: a clear message or the text itself, no markup, and a page that lives on."""

import pytest

SENTENCE = "The capital of France is Paris ."
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
    cloze.settle()
    assert cloze.page.locator(".guess").count() == 1
    assert cloze.page.locator(".view-chips .problem").is_hidden()


@pytest.mark.parametrize("text", ["", "    ", "\n\t "])
def test_no_text(cloze, text):
    cloze.chip("Paris").click()
    cloze.write(text)
    message = cloze.page.locator(".view-chips .problem")
    assert message.inner_text() == "There is no text yet. Type a sentence or pick an example."
    assert cloze.page.locator(".guess").count() == 0
    assert cloze.page.locator("#draw").is_disabled()
    still_alive(cloze)


def test_too_much_text(cloze):
    cloze.write("x" * 100_000)
    message = cloze.page.locator(".view-chips .problem").inner_text()
    assert message.startswith("This text has 100,000 characters and the page takes up to 20,000.")
    assert cloze.overflow() <= 0
    still_alive(cloze)


def test_more_text_than_the_model_reads(cloze, model):
    cloze.write("word " * 3_000)
    assert cloze.page.locator(".chip").count() == model.longest
    note = cloze.page.locator(".notes").inner_text()
    assert f"cut after {model.longest - 2} pieces. With 2 special ones" in note
    cloze.at(1).click()
    cloze.at(model.longest - 2).click(modifiers=["Shift"])
    cloze.settle()
    assert len(cloze.marked()) == model.longest - 2
    cloze.page.click("#more")
    assert cloze.page.locator(".guess").count() == model.longest - 2
    still_alive(cloze)


@pytest.mark.parametrize(
    "text",
    [
        "I like 😀 and 👩‍👩‍👧 very much .",
        "😀🎉",
        "עיר הבירה של צרפת היא פריז .",
        "عاصمة فرنسا هي باريس .",
        "法国的首都是巴黎。",
        "e\u0301" + "\u0301" * 60 + " \u202eabc\u202c x\u200by",
        "a\u0000b \ufeff c",
    ],
)
def test_letters_of_any_kind(cloze, text):
    cloze.write(text)
    assert cloze.page.locator(".chip:not(.special)").count() > 0
    cloze.page.locator(".chip:not(.special)").first.click()
    cloze.settle()
    assert cloze.page.locator(".guess").count() == 1
    assert cloze.overflow() <= 0
    still_alive(cloze)


def test_right_to_left_text_runs_from_the_right(cloze):
    cloze.write("عاصمة فرنسا هي باريس .")
    assert cloze.at(1).bounding_box()["x"] > cloze.at(2).bounding_box()["x"]
    cloze.at(1).click()
    cloze.page.keyboard.press("ArrowLeft")
    assert cloze.at(2).evaluate("chip => chip === document.activeElement")


def test_only_characters_that_cannot_be_shown(cloze):
    cloze.write("\u200b\u200b\u0000")
    assert cloze.page.locator(".view-chips .problem").is_visible()
    still_alive(cloze)


@pytest.mark.parametrize("text", MARKUP)
def test_markup_stays_text(cloze, text):
    cloze.page.evaluate("window.before = document.querySelectorAll('script, img, svg, b').length")
    cloze.write(text)
    shown = "".join(cloze.page.locator(".chip:not(.special) .face").all_text_contents())
    assert shown == text.replace(" ", "")
    for position in range(1, min(6, cloze.page.locator(".chip").count() - 1)):
        cloze.at(position).click()
    cloze.settle()
    own = cloze.page.locator(".mine-word").first
    own.fill(text[:60])
    cloze.page.wait_for_timeout(100)
    cloze.settle()
    assert cloze.page.locator(".view img[src=x], .view script, .view b b").count() == 0
    still_alive(cloze)


def test_every_token_hidden(cloze):
    cloze.at(1).click()
    cloze.at(7).click(modifiers=["Shift"])
    cloze.settle()
    assert cloze.marked() == [1, 2, 3, 4, 5, 6, 7]
    assert cloze.page.locator(".guess").count() == 7
    still_alive(cloze)


def test_gaps_written_in_the_text(cloze):
    cloze.write("The [MASK] of France is [MASK] .")
    cloze.settle()
    assert cloze.page.locator(".guess").count() == 2
    cloze.at(2).click()
    assert cloze.marked() == []
