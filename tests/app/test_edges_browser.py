"""The page at its edges: without a server, words that no model knows, letters from the right."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.app.one_page import SENTENCE, mark, renewed

ARABIC = "عاصمة"


@pytest.fixture
def cloze(module_page):
    """One page for the tests that are not about opening it."""
    module_page.page.evaluate("Cloze.openTab('Mask')")
    yield from renewed(module_page)


def marked(*positions: int) -> str:
    """A link that hides these positions of the sentence."""
    marks = ".".join(map(str, positions))
    return f"#text={SENTENCE.replace(' ', '+')}&model=bert-mini&marks={marks}"


@pytest.mark.slow
def test_what_the_page_loads_later_is_there_without_a_server(visit, static_folder):
    cloze = visit(link=marked(6))
    page = cloze.page
    shipped = [
        path.relative_to(static_folder).as_posix()
        for kind in ("*.js", "*.css")
        for path in static_folder.rglob(kind)
    ]
    page.wait_for_function(
        """shipped => {
          const fetched = new Set(performance.getEntriesByType('resource')
            .map(({ name }) => name.split('/cloze/app/').pop()));
          return shipped.every((name) => fetched.has(name));
        }""",
        arg=shipped,
    )
    page.context.set_offline(True)
    page.click("#share")
    page.wait_for_selector(".share-panel")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Several gaps together").click()
    page.get_by_text("A masked model answers for each gap as if").wait_for()
    page.click("#tour")
    page.wait_for_selector(".tour-panel h2")
    page.keyboard.press("Escape")
    page.context.set_offline(False)
    # The browser itself reports what could not be fetched.
    cloze.problems[:] = [each for each in cloze.problems if "ERR_INTERNET" not in each]


def test_a_word_without_a_piece_is_no_choice_of_the_model(cloze):
    cloze.write(f"I {ARABIC} Paris")
    cloze.at(2).click()
    cloze.settle()
    summary = cloze.page.locator(".view-predictions .summary")
    expect(summary).to_contain_text("no piece for the word of your sentence")
    expect(cloze.page.locator(".candidate.was")).to_be_hidden()
    cloze.at(3).click()
    cloze.settle()
    expect(summary).to_contain_text(" of 2 hidden pieces")


def test_the_visitors_own_word_survives_a_reload(cloze):
    mark(cloze, 2, 6)
    page = cloze.page
    cloze.settle()
    word = page.locator('.guess[data-position="6"] input.mine-word')
    word.fill("London")
    page.wait_for_function("() => location.hash.includes('London')")
    page.reload()
    page.wait_for_selector('.guess[data-position="6"] input.mine-word')
    page.wait_for_function("() => Cloze.mounted")
    cloze.settle()
    expect(word).to_have_value("London")
    expect(page.locator('.guess[data-position="2"] input.mine-word')).to_have_value("")
    expect(page.locator('.guess[data-position="6"] .candidate.mine .rank')).not_to_be_empty()
    kept = parse_qs(urlsplit(page.url).fragment)["lab-mask-words"]
    assert json.loads(kept[0]) == {"6": "London"}
    page.click("#clear")
    page.wait_for_function("() => !location.hash.includes('London')")


def test_a_text_of_one_letter_says_what_to_do(cloze):
    cloze.write("a")
    cloze.page.get_by_role("button", name="hide “a”").click()
    cloze.page.wait_for_function("() => Cloze.sentence.marks.size === 1")


def test_a_refused_seed_is_told_until_something_else_is_wanted(cloze):
    page = cloze.page
    cloze.unfold("Options")
    seed = page.get_by_role("spinbutton", name="Seed", exact=True)
    draw = page.get_by_role("button", name="Hide at random")
    refused = page.get_by_text("seed is -4; it must be a whole number")
    for other in (
        lambda: seed.fill("5"),
        lambda: cloze.at(2).click(),
        lambda: page.evaluate("Cloze.openTab('forge')"),
    ):
        seed.fill("-4")
        draw.click()
        expect(refused).to_be_visible()
        other()
        expect(refused).to_be_hidden()
    page.evaluate("Cloze.openTab('mask')")
    seed.fill("1")


@pytest.mark.slow
def test_letters_from_the_right_leave_the_signs_after_them_in_place(cloze):
    said = cloze.page.evaluate("word => ClozeLanguage.t`“${word}” (${3})`", ARABIC)
    assert said == f"“\u2068{ARABIC}\u2069” (3)"
    assert cloze.page.evaluate("ClozeLanguage.t`“${'Paris'}” (${3})`") == "“Paris” (3)"
    page = cloze.page
    cloze.write(" ".join([ARABIC, "Paris"] * 4))
    page.evaluate("Cloze.openTab('attention')")
    cloze.rest()
    page.locator("#tab-attention .lines-scroll").get_by_role("button", name=ARABIC).first.hover()
    said = page.locator("#tab-attention .lines-words")
    expect(said).to_contain_text(f"“\u2068{ARABIC}\u2069”")
    page.evaluate("Cloze.openTab('permutation')")
    sees = page.get_by_text(re.compile(f"the query may see .*[0-9] “\u2068{ARABIC}\u2069”"))
    expect(sees.first).to_be_visible()
    page.evaluate("Cloze.openTab('unmasking')")
    chances = page.locator("#tab-unmasking").get_by_text(re.compile(r"^[0-9.]+\s%$"))
    expect(chances.first).to_have_css("direction", "ltr")


def test_a_word_that_is_wider_than_the_page_stays_in_it(cloze):
    cloze.write("The " + "a" * 300)
    start = cloze.page.get_by_role("button", name=re.compile("^hide “a"))
    box = start.bounding_box()
    assert box
    assert box["x"] + box["width"] <= cloze.page.viewport_size["width"]


CONTRAST = """field => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3)
      .map((v) => (v / 255 <= 0.04 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = getComputedStyle(field);
  const [a, b] = [light(style.color), light(style.backgroundColor)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""


@pytest.mark.slow
def test_fields_can_be_read_in_the_dark(visit):
    page = visit(dark=True, link=f"{marked(6)}&tab=attention").page
    page.click("#share")
    assert page.locator(".share-link").evaluate(CONTRAST) > 7
    page.keyboard.press("Escape")
    page.get_by_role("button", name="A second sentence, and colours").click()
    assert page.get_by_role("textbox", name="Second sentence").evaluate(CONTRAST) > 7


@pytest.mark.slow
def test_the_keyboard_goes_on_where_what_it_pressed_is_gone(cloze):
    page = cloze.page
    cloze.chip("France").click()
    cloze.settle()
    page.locator("#sentence-text textarea").focus()
    ring = page.locator(":focus").evaluate("each => getComputedStyle(each).outlineStyle")
    assert ring == "solid", "the field that is written in is seen"
    page.locator(".candidate").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => !Cloze.sentence.text.includes('France')")
    focused = page.locator(":focus")
    expect(focused).to_have_class(re.compile("chip"))
    page.keyboard.press("Enter")
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    page.locator("#clear").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#draw")).to_be_focused()


def test_a_chinese_sentence_offers_a_first_word_to_hide(cloze):
    cloze.write("我们去公园。")
    cloze.page.locator("#start").click()
    cloze.page.locator("button.candidate").first.wait_for()
    assert cloze.marked() == [5]


PICTURE = """([width, height]) => import(`${ClozeRoot}cloze/app/parts/export.js`).then(
  ({ downloadPicture }) => downloadPicture('tall.png',
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"/>`))"""


@pytest.mark.parametrize(
    ("size", "saved"), [((300, 200), (600, 400)), ((400, 60_000), (218, 32_767))]
)
def test_a_picture_is_as_large_as_every_browser_can_hold(cloze, tmp_path, size, saved):
    with cloze.page.expect_download() as event:
        cloze.page.evaluate(PICTURE, size)
    event.value.save_as(tmp_path / "tall.png")
    head = (tmp_path / "tall.png").read_bytes()[:24]
    assert head[1:4] == b"PNG"
    assert (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) == saved


@pytest.mark.slow
def test_files_stand_alone(cloze, tmp_path):
    def save(button):
        with cloze.page.expect_download() as event:
            button.click()
        path = tmp_path / event.value.suggested_filename
        event.value.save_as(path)
        return path.read_text("utf-8")

    cloze.write(SENTENCE)
    cloze.at(6).click()
    cloze.settle()
    # English letters alone: any program reads them. Others get the mark that Excel looks for.
    table = cloze.page.locator(".guide-files button", has_text="CSV")
    assert save(table).startswith("position,")
    cloze.write(SENTENCE.replace("France", ARABIC))
    cloze.at(6).click()
    cloze.at(4).click()
    cloze.settle()
    assert save(table).startswith("\ufeffposition,")
    cloze.page.get_by_role("button", name="Layer by layer").click()
    cloze.numbers("#mask-layers")
    drawing = save(cloze.page.locator("#mask-layers [data-title='Save as SVG']"))
    assert "bert-mini: The capital of" in drawing, re.findall(r">([^<]*)</text", drawing)
    assert "best after the last layer" in drawing
    # The vocabulary has no piece for the word of the gap, so it has no line either.
    assert "the word of your sentence" not in drawing
