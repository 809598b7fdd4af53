"""The labs that need a family of their own, over the shipped models, in both languages.

The other tests of the page have one model (``conftest.py``); here ``app.py`` runs as visitors run
it. ``CLOZE_PICTURES=folder`` keeps a picture of each lab.
"""

import os
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import expect

from app.serving.examples import DEFAULT
from app.serving.locales import catalogue
from benchmarks.page import server
from tests.app.one_page import SENTENCE, start_over
from tests.app.test_walk_browser import DRAWN, ENGLISH, OPEN
from tests.app.visitors import leave, new_page

LABS = (
    ("Forge", "electra-mini"),
    ("Forge", "deberta-v3-mini"),
    ("Permutation", "xlnet-mini"),
    ("Terms", "deberta-mini"),
    ("Terms", "deberta-v3-mini"),
    ("Spans", "spanbert-mini"),
    ("Attention", "albert-mini"),
    ("Pairs", "albert-mini"),
    ("Mask", "causal-mini"),
    ("Mask", "roberta-mini"),
)
READY = """name => {
  const view = [...document.querySelectorAll(`#tab-${name} .view`)].find((v) => v.offsetParent);
  return view.dataset.state ?? 'ready';
}"""
# Nothing waits, and what is shown is the answer to what was asked last.
ANSWERED = """name => !document.querySelector('[data-state=waiting]')
  && [...document.querySelectorAll(`#tab-${name} .view`)].filter((v) => v.offsetParent)
    .every((v) => !v.ariaBusy && (!v.dataset.asked || v.dataset.rev === v.dataset.asked))"""
FOLDS = ("Several models side by side", "Several gaps together")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page of its own, with all that is shipped."""
    with server(tmp_path_factory.mktemp("runs")) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("language", "width", "dark"), [("en", 1280, False), ("zh", 390, True)])
def test_every_lab_with_the_model_it_is_made_for(profile, address, language, width, dark):
    pictures = os.environ.get("CLOZE_PICTURES")
    wrong = {}
    first = LABS[0][1]
    cloze = new_page(
        profile,
        address,
        (width, 900),
        dark=dark,
        link=f"?lang={language}#text={quote_plus(SENTENCE)}&model={first}&marks=6&tab=forge",
    )
    page = cloze.page
    page.wait_for_function("() => Cloze.sentence.model && Cloze.sentence.marks.size === 1")
    assert page.evaluate("Cloze.sentence.model") == first
    for label, model in LABS:
        name = label.lower()
        page.wait_for_function(OPEN, arg=[name, label], polling=250)
        if model != first:
            start_over(cloze, model=model, marks=[6])
        cloze.rest()
        for title in FOLDS if name == "mask" else ():
            title = catalogue("zh")[title] if language == "zh" else title
            page.get_by_role("button", name=title).click()
            cloze.rest()
        page.wait_for_function(DRAWN, arg=name)
        page.wait_for_function(ANSWERED, arg=name)
        if pictures:
            cloze.rest()
            shot = f"{name}-{model}-{language}-{width}-{'dark' if dark else 'light'}.png"
            page.screenshot(path=Path(pictures) / shot, full_page=True)
        found = {
            "model": page.evaluate("Cloze.sentence.model") != model,
            "state": page.evaluate(READY, name) != "ready",
            "wide": max(0, cloze.overflow()),
            "english": page.evaluate(ENGLISH, name) if language == "zh" else [],
            "untranslated": page.evaluate("[...ClozeLanguage.missing]"),
            "problems": [*cloze.problems],
        }
        page.evaluate("ClozeLanguage.missing.clear()")
        cloze.problems.clear()
        if any(found.values()):
            wrong[f"{label} {model}"] = found
    leave(cloze, profile)
    assert wrong == {}


@pytest.mark.slow
def test_who_answers_in_a_lab_and_does_not_read_the_sentence_is_said(profile, address):
    """A Chinese sentence before a detective that learnt English: one press away is its own."""
    link = f"?lang=zh#text={quote_plus('法国的首都是巴黎。')}&model=bert-mini-chinese&tab=forge"
    cloze = new_page(profile, address, (1280, 900), dark=False, link=link)
    page, words = cloze.page, catalogue("zh")
    said = words["{0} does not read this sentence: it learnt {1}."].format(
        "electra-mini", words["English"]
    )
    advice = page.get_by_role("status").filter(has_text=said)
    expect(advice).to_be_visible()
    advice.get_by_role("button", name=words["Take a sentence that it reads"]).click()
    page.wait_for_function("text => Cloze.sentence.text === text", arg=DEFAULT)
    page.wait_for_function("() => Cloze.sentence.model === 'electra-mini'")
    expect(advice).to_have_count(0)
    page.wait_for_function(ANSWERED, arg="forge")
    # Of a model that does not read it nothing is said where others answer that do.
    page.evaluate("Cloze.chooseModel('bert-mini-chinese')")
    page.evaluate("Cloze.openTab('terms')")
    page.locator("#tab-terms").get_by_role("radio", name=words["Without positions"]).check()
    page.get_by_text(words["{0} answers here"].format("deberta-mini"), exact=True).wait_for()
    expect(page.locator(".advice")).to_have_count(0)
    page.evaluate("Cloze.openTab('mask')")
    expect(page.locator(".advice")).to_have_count(1)
    assert cloze.problems == []
    leave(cloze, profile)


@pytest.mark.slow
def test_the_first_forgery_is_caught(profile, address):
    """Another round may end otherwise: the first one shows what a detective is for."""
    cloze = new_page(profile, address, (1280, 900), dark=False, link="?lang=en#tab=forge")
    said = "It catches 1 of 1 forged word. No real word is accused."
    expect(cloze.page.get_by_text(said)).to_be_visible()
    assert cloze.problems == []
    leave(cloze, profile)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("macbert-mini-chinese", "法国的首都是巴黎。"),
        ("causal-mini", "The president lives in the White House."),
        ("xlnet-mini", DEFAULT),
    ],
)
def test_a_link_that_names_a_model_alone_opens_with_what_it_reads(profile, address, model, text):
    cloze = new_page(profile, address, (1280, 900), dark=False, link=f"?lang=en#model={model}")
    page = cloze.page
    page.wait_for_function("text => Cloze.sentence.text === text", arg=text)
    page.wait_for_function("() => Cloze.sentence.marks.size")
    assert page.evaluate("Cloze.sentence.model") == model
    cloze.settle()
    expect(page.locator("button.candidate").first).to_be_visible()
    assert cloze.problems == []
    leave(cloze, profile)
