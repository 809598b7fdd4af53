"""Every tab, in both languages, on a desktop and on a phone, in the light and in the dark.

``CLOZE_PICTURES=folder`` keeps a picture of each for people to look at.
"""

import os
from pathlib import Path

import pytest

from app.main import TABS

VISITS = [("en", 1280, False), ("en", 390, True), ("zh", 1280, True), ("zh", 390, False)]
SENTENCE = "#text=The+capital+of+France+is+Paris+.&model=bert-mini&marks=6"
OPEN = """([name, label]) => Boolean(document.getElementById(`tab-${name}`)?.offsetParent)
  || void (Cloze.openTab(label) || Cloze.openTab(Cloze.message(label)))"""
DRAWN = """name => {
  const views = [...document.querySelectorAll(`#tab-${name} .view`)].filter((v) => v.offsetParent);
  return views.length > 0 && views.every((view) => view.textContent.trim().length > 6
    && !['waiting', 'loading'].includes(view.dataset.state));
}"""
# English prose left on a Chinese page: long texts of views without a single Chinese character.
ENGLISH = """name => [...document.querySelectorAll(
  `#tab-${name} :is(h2, h3, h4, p, button, label, summary, figcaption, th, option)`)]
  .filter((node) => node.offsetParent && !node.closest('[lang=en], .code, pre, bdi, svg'))
  .map((node) => node.textContent.trim())
  .filter((text) => /[a-z]{3,} [a-z]{2,} [a-z]{2,}/i.test(text))
  .filter((text) => !/[\\u4e00-\\u9fff]/.test(text))"""


LABS = ("Why", "Permutation", "Spans", "Timeline", "Terms")


def test_an_emptied_sentence_leaves_no_old_results(visit):
    page = visit(link=SENTENCE).page
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    for label in LABS:
        page.wait_for_function(OPEN, arg=[label.lower(), label], polling=250)
        view = page.locator(f".view-{label.lower()}")
        page.wait_for_selector(f'.view-{label.lower()}[data-state="ready"]', timeout=60_000)
        page.fill("#sentence-text textarea", "")
        problem = view.locator(".problem:visible")
        problem.wait_for()
        assert problem.inner_text().startswith("There is no text yet")
        assert not view.locator(".summary:visible").count()
        page.fill("#sentence-text textarea", "The capital of France is Paris .")
        problem.wait_for(state="hidden" if label != "Why" else "visible")
        page.wait_for_function("() => Cloze.sentence.tokens.length > 8")
        page.evaluate("Cloze.setHidden([Cloze.sentence.tokens[6]], true)")


def test_a_refused_seed_is_forgiven_with_the_next_draw(visit):
    page = visit().page
    page.fill("#sentence-seed input", "99999999999")
    page.click("#draw")
    notes = page.locator(".view-tools .notes")
    notes.get_by_text("it must be a whole number").wait_for()
    page.fill("#sentence-seed input", "3")
    page.click("#draw")
    notes.wait_for(state="hidden")
    assert page.evaluate("Cloze.sentence.marks.size") > 0


@pytest.mark.slow
@pytest.mark.parametrize(("language", "width", "dark"), VISITS)
def test_every_tab_opens_and_fits(visit, language, width, dark):
    cloze = visit(width=width, dark=dark, link=f"?lang={language}{SENTENCE}")
    page = cloze.page
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    pictures = os.environ.get("CLOZE_PICTURES")
    wrong = {}
    for label, _ in TABS:
        name = label.lower()
        page.wait_for_function(OPEN, arg=[name, label], polling=250)
        page.wait_for_function(DRAWN, arg=name)
        if pictures:
            page.wait_for_timeout(800)
            shot = Path(pictures) / f"{name}-{language}-{width}-{'dark' if dark else 'light'}.png"
            page.screenshot(path=shot, full_page=True)
        wide = cloze.overflow()
        english = page.evaluate(ENGLISH, name) if language == "zh" else []
        if wide > 0 or english:
            wrong[name] = (wide, english[:5])
    assert wrong == {}
    if language == "zh":
        assert page.evaluate("[...ClozeLanguage.missing]") == []
