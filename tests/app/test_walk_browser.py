"""Every tab in Chinese, on a desktop and on a phone, in the light and in the dark, and what is left
of a sentence and a seed. In English: ``test_accessibility.py``.

``CLOZE_PICTURES=folder`` keeps a picture of each for people to look at.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from app.page.places import LABS
from tests.app.one_page import mark, renewed

SENTENCE = "#text=The+capital+of+France+is+Paris.&model=bert-mini&marks=6"
OPEN = """([name, label]) => Boolean(document.getElementById(`tab-${name}`)?.offsetParent)
  || void Cloze.openTab(label)"""
DRAWN = """name => {
  const views = [...document.querySelectorAll(`#tab-${name} .view`)].filter((v) => v.offsetParent);
  return views.some((view) => view.textContent.trim().length > 6)
    && !views.some((view) => ['waiting', 'loading'].includes(view.dataset.state));
}"""
# English prose left on a Chinese page: long texts of views without a single Chinese character.
ENGLISH = """name => [...document.querySelectorAll(
  `#tab-${name} :is(h2, h3, h4, p, button, label, summary, figcaption, th, option)`)]
  .filter((node) => node.offsetParent && !node.closest('[lang=en], .code, pre, bdi, svg'))
  .map((node) => node.textContent.trim())
  .filter((text) => /[a-z]{3,} [a-z]{2,} [a-z]{2,}/i.test(text))
  .filter((text) => !/[\\u4e00-\\u9fff]/.test(text))"""


FRAMES = "new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r())))"


@pytest.fixture
def cloze(module_page):
    """The same page for the tests of the sentence bar."""
    yield from renewed(module_page)


def test_a_refused_seed_is_forgiven_with_the_next_draw(cloze):
    page = cloze.page
    page.evaluate("Cloze.openTab('mask')")  # the lab of the test before has no tools
    page.locator("#draw").wait_for(state="attached")
    cloze.unfold("Options")
    page.fill("#sentence-seed input", "99999999999")
    page.click("#draw")
    notes = page.locator(".view-notes .notes")
    notes.get_by_text("it must be a whole number").wait_for()
    assert page.evaluate("Cloze.sentence.marks.size") == 0
    page.fill("#sentence-seed input", "3")
    page.click("#draw")
    page.wait_for_function("Cloze.sentence.marks.size > 0")
    notes.wait_for(state="hidden")


def test_the_seed_that_stands_there_is_the_one_that_is_drawn_with(cloze):
    page = cloze.page
    page.evaluate("Cloze.openTab('mask')")
    page.locator("#draw").wait_for(state="attached")
    cloze.unfold("Options")
    for typed, seed in (("6.7", "6"), ("", "0"), ("1e2", "100")):
        page.fill("#sentence-seed input", typed)
        page.click("#draw")
        expect(page.locator("#sentence-seed input")).to_have_value(seed)
    page.click("#draw")
    expect(page.locator("#sentence-seed input")).to_have_value("101")
    cloze.rest()


def test_filled_areas_stay_where_the_system_chooses_the_colours(cloze):
    page = cloze.page
    page.evaluate("Cloze.openTab('mask')")
    mark(cloze, 6)
    page.wait_for_selector(".candidate .bar > *")
    cloze.settle()
    page.emulate_media(forced_colors="active")
    colour = "each => getComputedStyle(each).backgroundColor"
    bar = page.locator(".candidate .bar").first
    assert bar.evaluate(colour) != bar.locator("*").first.evaluate(colour)
    kept = "() => getComputedStyle(document.querySelector('input[type=range]')).forcedColorAdjust"
    page.evaluate("Cloze.openTab('unmasking')")
    page.wait_for_selector("#tab-unmasking input[type=range]")
    assert page.evaluate(kept) == "none"
    page.emulate_media(forced_colors="none")


def look(page, width, dark):
    """Change the window and the system's colours, and wait until all is drawn anew."""
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.wait_for_function(
        "([width, dark]) => innerWidth === width && Cloze.dark() === dark", arg=[width, dark]
    )
    page.evaluate(FRAMES)


def walk(cloze, language, looks):
    """Open every tab, in turn with the one and the other look, and show it with both."""
    page = cloze.page
    pictures = os.environ.get("CLOZE_PICTURES")
    for name in [lab.name for lab in LABS]:
        page.wait_for_function(OPEN, arg=[name, name], polling=250)
        page.wait_for_function(DRAWN, arg=name)
        for width, dark in looks:
            look(page, width, dark)
            page.wait_for_function(DRAWN, arg=name)
            if pictures:
                cloze.rest()
                shot = f"{name}-{language}-{width}-{'dark' if dark else 'light'}.png"
                page.screenshot(path=Path(pictures) / shot, full_page=True)
            yield name, width, dark
        looks = looks[::-1]


@pytest.mark.slow
def test_every_tab_opens_and_fits_in_chinese(visit):
    cloze = visit(width=390, link=f"?lang=zh{SENTENCE}")
    page = cloze.page
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    wrong = {}
    for name, width, dark in walk(cloze, "zh", [(390, False), (1280, True)]):
        wide = cloze.overflow()
        english = page.evaluate(ENGLISH, name)
        if wide > 0 or english:
            wrong[f"{name} {width} {'dark' if dark else 'light'}"] = (wide, english[:5])
    assert wrong == {}
    assert page.evaluate("[...ClozeLanguage.missing]") == []
