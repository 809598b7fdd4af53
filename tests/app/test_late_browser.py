"""A slow server in every lab: what is shown last is the answer to what was asked last.

Every other answer comes half a second late, so that answers overtake each other. Afterwards a lab
shows what it shows a visitor who asked only once, on a quick server.
``pytest --late`` does the same to all tests of the page.
"""

from contextlib import ExitStack

import pytest

from app.page.places import LABS
from benchmarks.page import server
from tests.app.one_page import mark
from tests.app.test_places_browser import DESKTOP, open_lab
from tests.app.visitors import new_page

FIRST, LAST = "A cat sat on the mat.", "The sun rises in the east."
HIDDEN = 6
MODEL, OTHER = "bert-mini", "roberta-mini"
# Every other answer: also one that was asked for before may come after the next one.
LATE = """(() => {
  const { fetch } = window;
  window.fetch = async (path, ...more) => {
    const number = window.late ? window.asked += 1 : 0;
    const answer = await fetch(path, ...more);
    if (number % 2) await new Promise((done) => setTimeout(done, 500));
    return answer;
  };
})()"""
# Between two looks at a long computation, which can be given up, a page rests, too.
COMPUTED = """name => ![...document.querySelectorAll(`#tab-${name} button`)]
  .some((each) => each.checkVisibility() && each.textContent.trim() === 'Cancel')"""
# What a reader of the lab sees; times differ from one answer to the next.
SHOWN = r"""name => document.getElementById(`tab-${name}`).innerText
  .replace(/[\d.,]+\s*(ms|s|µs|seconds)\b/g, '')
  .split('\n').map((line) => line.trim()).filter(Boolean)"""


@pytest.fixture(scope="module")
def pages(browser, tmp_path_factory):
    """The same page for two visitors: one whose answers come late, one whose do not."""
    with ExitStack() as stack:
        address = stack.enter_context(server(tmp_path_factory.mktemp("runs")))
        opened = []
        for script in (LATE, ""):
            profile = stack.enter_context(browser.new_context())
            profile.add_init_script(script)
            opened.append(new_page(profile, address, DESKTOP, dark=False, link="?lang=en"))
        yield opened


def ask(cloze, text: str, model: str) -> None:
    """Change the sentence and the model, and wait for nothing."""
    cloze.page.evaluate(
        "([text, model]) => { Cloze.write('sentence-text', text); Cloze.chooseModel(model); }",
        [text, model],
    )


def end(cloze, lab: str) -> list[str]:
    """What stands in a lab, when all has come, of the last sentence with one hidden piece."""
    page = cloze.page
    page.wait_for_function(
        "([text, model]) => Cloze.sentence.text === text && Cloze.sentence.model === model",
        arg=[LAST, MODEL],
    )
    cloze.rest()
    mark(cloze, HIDDEN)
    cloze.rest()
    page.wait_for_function(COMPUTED, arg=lab)
    cloze.rest()
    return page.evaluate(SHOWN, lab)


@pytest.mark.parametrize(
    "lab", [lab for lab in LABS if lab.reads != "nothing"], ids=lambda lab: lab.name
)
def test_the_answer_to_the_last_question_stays(pages, lab):
    late, plain = pages
    for cloze in pages:
        open_lab(cloze, lab.name)
        cloze.rest()
    ask(plain, LAST, MODEL)
    expected = end(plain, lab.name)
    late.page.evaluate("window.asked = 0, window.late = true")
    ask(late, FIRST, MODEL)
    ask(late, LAST, OTHER)
    ask(late, FIRST, OTHER)
    ask(late, LAST, MODEL)
    found = end(late, lab.name)
    assert late.page.evaluate("window.late = false, window.asked") > 0
    assert found == expected
    assert [*late.problems, *plain.problems] == []


@pytest.mark.slow
def test_a_script_that_comes_after_the_page_is_drawn(visit, server):
    """The chips are drawn with their script, and the link hides a word at once."""
    cloze = visit()
    held = []
    cloze.page.route("**/page/chips.js*", lambda route: held.append(route))
    cloze.page.goto(f"{server}/", wait_until="commit")
    cloze.page.wait_for_selector("#cloze-chips", state="attached")
    cloze.page.wait_for_function("window.Cloze?.tokensOf === undefined")
    held.pop().continue_()
    cloze.page.wait_for_selector(".view-chips[data-mounted]", state="attached")
    cloze.page.wait_for_function("[...window.Cloze.sentence.marks].length === 1")
    cloze.page.unroute("**/page/chips.js*")
