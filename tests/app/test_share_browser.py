"""Links that restore a view, the window that gives them, and the guided tour."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from app import locales

TOUR = ("mask", "attention", "timeline", "forge", "permutation", "terms", "budget", "train")
OPEN = "[...document.querySelectorAll('#tabs [role=tabpanel]')].find(p => p.offsetParent)?.id"


def wait_open(page, tab: str) -> None:
    page.wait_for_function(f"() => ({OPEN}) === 'tab-{tab}'")


def fragment(page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


def test_the_link_restores_sentence_marks_tab_and_settings_elsewhere(visit):
    here = visit()
    page = here.page
    page.click('.chip[data-position="4"]')
    page.evaluate("Cloze.openTab('Budget')")
    wait_open(page, "budget")
    page.evaluate("Cloze.keep('budget', {chosen: 'albert-base'}); Cloze.keep('forge', {roll: 9})")
    kept = fragment(page)
    assert kept["tab"] == "budget"
    assert kept["marks"] == "4"
    assert json.loads(kept["lab-budget"]) == {"chosen": "albert-base"}
    assert "lab-forge" not in kept, "only the open tab's settings belong to the link"

    page.click("#share")
    link = page.locator(".share-link").input_value()
    assert link == page.url
    page.check("#share-plain")
    assert "plain=1" in page.locator(".share-link").input_value()
    page.keyboard.press("Escape")
    assert page.locator(".share-panel").count() == 0

    there = visit(link="#" + urlsplit(link).fragment).page
    wait_open(there, "budget")
    there.wait_for_function("() => Cloze.sentence.marks.size === 1")
    assert there.evaluate("[...Cloze.sentence.marks.keys()]") == [4]
    assert there.evaluate("Cloze.kept('budget').chosen") == "albert-base"


@pytest.mark.parametrize(
    "broken", ["lab-budget=%7B", "lab-budget=[1]", "tab=nowhere", "tab=%3Cb%3E"]
)
def test_a_broken_link_opens_the_page_as_it_is(visit, broken):
    page = visit(link=f"#text=The+sky+is+blue&model=bert-mini&{broken}").page
    page.wait_for_function("() => Cloze.sentence.text === 'The sky is blue'")
    assert page.evaluate("Cloze.kept('budget')") is None
    assert page.evaluate(OPEN) == "tab-mask"


def test_without_controls_the_lab_stays_and_the_header_goes(visit):
    page = visit(link="?plain=1#text=The+sky+is+blue&model=bert-mini&marks=3").page
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    for hidden in ("#cloze-header", "#cloze-examples", "#draw", "#tabs [role=tablist]"):
        assert not page.locator(hidden).first.is_visible()
    assert page.locator(".chip").count() > 3
    assert page.locator(".view-predictions").is_visible()


def test_the_tour_walks_its_steps_and_gives_the_page_back(visit):
    page = visit().page
    page.click("#tour")
    titles = set()
    for step, tab in enumerate(TOUR, start=1):
        page.wait_for_function(
            "count => document.querySelector('.tour-count')?.textContent === count",
            arg=f"Step {step} of {len(TOUR)}",
        )
        wait_open(page, tab)
        titles.add(page.locator(".tour-panel h2").inner_text())
        page.click(".tour-next")
    assert len(titles) == len(TOUR)
    assert page.locator(".tour-panel").count() == 0
    assert page.evaluate("document.activeElement.id") == "tour"


def test_a_lesson_opens_at_its_step_in_chinese(visit):
    page = visit(link="?lesson=4&lang=zh").page
    page.wait_for_selector(".tour-panel")
    wait_open(page, "forge")
    texts = locales.catalogue("zh")
    assert page.locator(".tour-panel h2").inner_text() == texts["A forger and a detective"]
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    hidden = page.evaluate(
        "[...Cloze.sentence.marks.keys()].map(k => Cloze.sentence.tokens[k].text)"
    )
    assert hidden == ["blood"]
    assert re.search("第4步", page.locator(".tour-count").inner_text())


LATE = """
let cloze;
Object.defineProperty(window, 'Cloze', { configurable: true, get: () => cloze, set: (made) => {
  cloze = made;
  let opening;
  Object.defineProperty(cloze, 'opening', {
    get: () => async (...given) => {
      const answer = opening(...given);
      Cloze.write('sentence-text', 'The heart pumps blood .');
      await new Promise((done) => setTimeout(done, 300));
      window.opened = true;
      return answer;
    },
    set: (made) => { opening = made; },
  });
} });
"""


def test_what_is_written_while_the_page_opens_stays(browser, server):
    with browser.new_context() as context:
        context.add_init_script(LATE)
        page = context.new_page()
        page.goto(server)
        page.wait_for_function("() => window.opened")
        page.wait_for_function("() => Cloze.sentence.text === 'The heart pumps blood .'")
        page.wait_for_timeout(300)
        assert page.evaluate("Cloze.sentence.text") == "The heart pumps blood ."
        assert page.input_value("#sentence-text textarea") == "The heart pumps blood ."
