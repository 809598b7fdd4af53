"""Every lab at two sizes, over the shipped models: pictures come first, every name is reached.

The labs are those of the table of places.
"""

import re
from contextlib import contextmanager
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import expect

from app.page.places import LABS, PLACES
from app.serving.examples import DEFAULT
from benchmarks.page import server
from tests.app.test_walk_shipped_browser import ANSWERED
from tests.app.visitors import Cloze, new_page

DESKTOP, PHONE = (1440, 900), (390, 844)
FRAME = {"words": 250, "text": 250, "model": 130, "nothing": 130}
"""Most pixels above a lab at the first size, by what it reads."""
MOST_WORDS, MOST_CONTROLS = 150, 12
LATEST_TOP, LEAST_SEEN = 460, 0.6

OPEN = """name => Boolean(document.getElementById(`tab-${name}`)?.offsetParent)"""
PICTURE = """name => {
  const pictures = [...document.querySelectorAll(`#tab-${name} [data-picture]`)];
  const main = pictures.find((each) => each.checkVisibility());
  const { top, bottom, height } = main.getBoundingClientRect();
  const seen = (Math.min(bottom, innerHeight) - Math.max(top, 0)) / height;
  return { top: top + scrollY, height, seen };
}"""
PICTURES = """name => [...document.querySelectorAll(`#tab-${name} [data-picture]`)]
  .filter((each) => each.checkVisibility()).map((each) => each.className)"""
SAVES = "Object.defineProperty(navigator, 'connection', { value: { saveData: true } })"
FETCHED = "[...document.styleSheets].some(({ href }) => href?.includes('labs/train'))"
# Words and controls outside the picture itself: its labels are what it shows.
COUNTS = r"""name => {
  const panel = document.getElementById(`tab-${name}`);
  const shown = (each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && !each.closest('[data-picture]') && each.getBoundingClientRect().width > 1;
  const texts = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT);
  let words = 0;
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const found = node.data.match(/[\p{L}\p{N}][^\s]*/gu) ?? [];
    if (shown(node.parentElement)) words += found.length;
  }
  const controls = panel.querySelectorAll('button, input, select, textarea, [role=slider]');
  return { words, controls: [...controls].filter(shown).length };
}"""
WRAPPED = """name => [...document.querySelectorAll(`#tab-${name} .choices > button`)]
  .filter((each) => each.checkVisibility()).filter((each) => {
    const words = document.createRange();
    words.selectNodeContents(each);
    return words.getBoundingClientRect().height > 1.9 * parseFloat(getComputedStyle(each).fontSize);
  }).map((each) => each.textContent.trim())"""
WHOLE = "box => box.scrollHeight <= box.clientHeight + 2"
TOP = """name => document.getElementById(`tab-${name}`).getBoundingClientRect().top + scrollY"""
INSIDE = """id => {
  const name = document.getElementById(id);
  name.scrollIntoView({ inline: 'nearest', block: 'nearest' });
  const { left, right, top, width } = name.getBoundingClientRect();
  const under = document.elementFromPoint((left + right) / 2, top + 8);
  return width > 0 && left >= 0 && right <= innerWidth && name.contains(under);
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page of its own, with all that is shipped."""
    with server(tmp_path_factory.mktemp("runs")) as found:
        yield found


@pytest.fixture(scope="module", name="visitor")
def make_visitor(browser, address):
    """Opens one page for each size and language, in which all tests go from lab to lab."""
    opened: dict[tuple, Cloze] = {}

    @contextmanager
    def visitor(size: tuple[int, int], link: str = "?lang=en"):
        if (size, link) not in opened:
            profile = browser.new_context()
            opened[size, link] = new_page(profile, address, size, dark=False, link=link)
        yield opened[size, link]

    yield visitor
    for cloze in opened.values():
        cloze.page.context.close()
    assert [problem for cloze in opened.values() for problem in cloze.problems] == []


def open_lab(cloze: Cloze, name: str) -> None:
    """Open a lab and wait until its views have what they asked for."""
    page = cloze.page
    page.evaluate("name => Cloze.openTab(name)", name)
    page.wait_for_function(OPEN, arg=name)
    page.wait_for_function("name => Cloze.place.tab === name || !Cloze.place.tab", arg=name)
    page.wait_for_function(ANSWERED, arg=name)
    cloze.rest()
    page.evaluate("document.fonts.ready.then(() => scrollTo(0, 0))")


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_on_arrival_the_picture_is_seen_and_little_else(visitor, lab):
    with visitor(DESKTOP) as cloze:
        open_lab(cloze, lab.name)
        page = cloze.page
        page.wait_for_selector(f"#tab-{lab.name} [data-picture]")
        picture = page.evaluate(PICTURE, lab.name)
        assert picture["top"] < LATEST_TOP, picture
        assert picture["seen"] >= LEAST_SEEN, picture
        assert page.evaluate(WRAPPED, lab.name) == []
        before = page.evaluate(COUNTS, lab.name)
        assert before["words"] <= MOST_WORDS
        assert before["controls"] <= MOST_CONTROLS
        assert page.evaluate(TOP, lab.name) <= FRAME[lab.reads]
        words = page.get_by_role("toolbar", name="Words of the sentence")
        expect(words).to_be_visible(visible=lab.reads == "words")
        box = page.get_by_role("textbox", name="Sentence", exact=True)
        reads = lab.reads in ("words", "text")
        expect(box).to_be_visible(visible=reads)
        assert not reads or box.evaluate(WHOLE)
        expect(page.get_by_label("Model").first).to_be_visible(visible=lab.reads != "nothing")


@pytest.mark.slow
def test_no_picture_waits_for_what_is_fetched_ahead(visitor, browser, address):
    with visitor(DESKTOP) as ahead, browser.new_context() as profile:
        ahead.page.wait_for_function(FETCHED)
        profile.add_init_script(SAVES)
        alone = new_page(profile, address, DESKTOP, dark=False, link="?lang=en")
        for lab in LABS:
            open_lab(ahead, lab.name)
            open_lab(alone, lab.name)
            pictures = alone.page.evaluate(PICTURES, lab.name)
            assert pictures == ahead.page.evaluate(PICTURES, lab.name), lab.name
            assert pictures, lab.name
        assert alone.problems == []


@pytest.mark.slow
def test_every_place_and_lab_is_reached_by_its_name_on_a_phone(visitor):
    with visitor(PHONE) as cloze:
        page = cloze.page
        for place in PLACES:
            assert page.evaluate(INSIDE, f"place-{place.name}-button"), place.name
            page.get_by_role("tab", name=place.label, exact=True).click()
            expect(page.get_by_text(place.line)).to_be_visible()
            for lab in place.labs:
                name = page.get_by_role("tab", name=lab.label, exact=True)
                name.wait_for()
                assert page.evaluate(INSIDE, f"tab-{lab.name}-button"), lab.name
                name.click()
                page.wait_for_function(OPEN, arg=lab.name)
                page.wait_for_function(ANSWERED, arg=lab.name)
                assert cloze.overflow() <= 0, lab.name


def test_candidates_are_seen_on_a_phone_after_a_tap(visitor):
    with visitor(PHONE) as cloze:
        open_lab(cloze, "mask")
        cloze.page.evaluate("Cloze.change({ marks: new Map() })")
        cloze.chip("capital").click()
        cloze.settle()
        candidates = cloze.page.locator(".guess .candidates").first.bounding_box()
        assert candidates["y"] >= 0
        assert candidates["y"] + candidates["height"] <= PHONE[1]


def test_on_a_phone_the_legend_stands_below_its_chart(visitor):
    with visitor(PHONE) as cloze:
        open_lab(cloze, "budget")
        cloze.rest()
        chart = cloze.page.locator("#tab-budget .js-plotly-plot").first
        bars, legend = (chart.locator(part).bounding_box() for part in (".barlayer", ".legend"))
        assert legend["y"] > bars["y"] + bars["height"]
        assert legend["x"] + legend["width"] <= PHONE[0]


def test_the_first_visit_shows_paris_hidden_and_answered(visitor):
    with visitor(DESKTOP, "") as cloze:
        page = cloze.page
        page.get_by_role("button", name="[MASK] Paris hidden", pressed=True).wait_for()
        cloze.settle()
        expect(page.locator(".guess .candidate").nth(4)).to_be_attached()
        assert "#" not in page.url
        page.get_by_role("button", name="Share", exact=True).click()
        link = page.get_by_role("textbox", name="Link to this view")
        shown = f"#text={quote_plus(DEFAULT)}&model=bert-mini&marks=5"
        expect(link).to_have_value(re.compile(re.escape(shown) + "$"))
        page.keyboard.press("Escape")
        cloze.chip("France").click()
        page.wait_for_function("() => location.hash.includes('marks=5.10')")
        page.reload()
        page.wait_for_function("() => window.Cloze?.sentence?.marks.size === 2")
        assert cloze.marked() == [5, 10]


def test_a_chinese_page_opens_with_a_chinese_sentence_and_its_model(visitor):
    with visitor(DESKTOP, "?lang=zh") as cloze:
        page = cloze.page
        page.wait_for_function("() => Cloze.sentence.model === 'bert-mini-chinese'")
        page.wait_for_function("() => Cloze.sentence.marks.size === 2")
        cloze.settle()
        expect(page.get_by_role("textbox", name="句子")).to_have_value("法国的首都是巴黎。")
        assert page.evaluate("[...ClozeLanguage.missing]") == []


def test_a_lesson_of_a_chinese_page_shows_its_own_sentence(visitor):
    """The sentence that a Chinese page opens with came after that of the step."""
    with visitor(DESKTOP, "?lang=zh&lesson=4") as cloze:
        page = cloze.page
        page.wait_for_selector(".tour-panel")
        page.wait_for_function(
            "() => !Cloze.arriving() && Cloze.sentence.model === 'bert-mini'"
            " && Cloze.sentence.marks.size === 1"
        )
        hidden = "[...Cloze.sentence.marks.keys()].map(k => Cloze.sentence.tokens[k].text)"
        assert page.evaluate(hidden) == ["Paris"]
        page.wait_for_function("() => Cloze.place.tab === 'forge'")


def test_a_text_that_the_model_does_not_read_is_one_press_from_one_that_does(visitor):
    with visitor(DESKTOP, "?lang=en&other") as cloze:
        page = cloze.page
        cloze.write("法国的首都是巴黎。")
        page.get_by_role("button", name="Read it with bert-mini-chinese").click()
        page.wait_for_function("() => Cloze.sentence.model === 'bert-mini-chinese'")
        page.wait_for_function("() => !Cloze.sentence.advice")
        cloze.write("The capital of France is Paris.")
        page.get_by_role("button", name="Take a sentence that it reads").click()
        page.wait_for_function("() => Cloze.sentence.text === '法国的首都是巴黎。'")
        page.wait_for_function("() => Cloze.sentence.marks.size === 2")
        expect(page.locator(".advice")).to_have_count(0)
        page.wait_for_function("() => document.activeElement.matches('.chip')")


def test_the_model_that_answers_in_a_lab_is_named(visitor):
    with visitor(DESKTOP) as cloze:
        page = cloze.page
        open_lab(cloze, "permutation")
        page.get_by_text("xlnet-mini answers here", exact=True).wait_for()
        open_lab(cloze, "mask")
        page.get_by_text("answers here").wait_for(state="hidden")


def test_beside_the_names_of_labs_the_model_and_the_line_have_room(visitor):
    with visitor(DESKTOP) as cloze:
        page = cloze.page
        for lab in LABS:
            if lab.reads == "model":
                open_lab(cloze, lab.name)
                place = next(place for place in PLACES if lab in place.labs)
                opener = page.get_by_role("button", name="Open a model").bounding_box()
                line = page.get_by_text(place.line, exact=True).bounding_box()
                assert opener["x"] + opener["width"] < line["x"], lab.name
                assert line["height"] < 30, lab.name  # one line of text


@pytest.mark.parametrize("width", [390, 320])
def test_on_a_narrow_phone_no_sign_stands_alone_and_the_header_ends_in_the_page(visitor, width):
    with visitor((width, PHONE[1])) as cloze:
        page = cloze.page
        open_lab(cloze, "mask")
        cloze.write(DEFAULT)
        words = page.get_by_role("toolbar", name="Words of the sentence")
        for word, sign in ((re.compile("Paris"), ","), ("France", ".")):
            before, after = (
                words.get_by_role("button", name=name, exact=True).bounding_box()
                for name in (word, sign)
            )
            assert (before["y"], before["x"] < after["x"]) == (after["y"], True)
        theme = page.get_by_role("button", name="Use the dark theme").bounding_box()
        assert theme["x"] + theme["width"] <= width - 8


def test_at_twice_the_size_the_sentence_has_room(visitor):
    with visitor((720, 450)) as cloze:
        open_lab(cloze, "mask")
        box = cloze.page.get_by_role("textbox", name="Sentence", exact=True)
        assert box.bounding_box()["width"] >= 300
        assert cloze.overflow() <= 0


def test_the_keyboard_goes_on_in_a_lab_without_chips_where_advice_was_taken(visitor):
    with visitor(DESKTOP, "?lang=en&keyboard") as cloze:
        page = cloze.page
        cloze.write("法国的首都是巴黎。")
        open_lab(cloze, "timeline")
        page.get_by_role("button", name="Take a sentence that it reads").press("Enter")
        page.wait_for_function("() => !Cloze.sentence.advice")
        page.wait_for_function("() => document.activeElement.matches('#sentence-text textarea')")
        open_lab(cloze, "mask")


@pytest.mark.slow
def test_the_pieces_of_a_word_stay_on_one_line_and_long_texts_scroll(visitor):
    with visitor(PHONE, "?lang=en&long") as cloze:
        page = cloze.page
        cloze.write("Quizzifying is far away, and an unbelievable hippopotamus knows it. " * 12)
        tops = page.evaluate(
            """() => [...document.querySelectorAll('.chips .word')].map((word) => new Set(
                [...word.children].map((chip) => chip.getBoundingClientRect().top)).size)"""
        )
        assert len(tops) > 10
        assert set(tops) == {1}
        chips = page.get_by_role("toolbar", name="Words of the sentence")
        assert chips.bounding_box()["height"] <= 170
        assert chips.evaluate("each => each.scrollHeight > each.clientHeight")
        assert cloze.overflow() <= 0
