"""Links that restore a view, the window that gives them, and the guided tour."""

import json
import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from app.serving import locales
from app.serving.examples import DEFAULT
from tests.app.one_page import renewed, start_over
from tests.app.visitors import COUNT, rest

TOUR = (
    *("mask", "attention", "timeline", "unmasking", "forge", "permutation", "terms", "budget"),
    "train",
)
OPEN = "[...document.querySelectorAll('#tabs [role=tabpanel]')].find(p => p.offsetParent)?.id"

# What the tour marks is in view beside its panel, which lies over nothing.
APART = """() => {
  const mark = document.querySelector('.tour-mark')?.getBoundingClientRect();
  const panel = document.querySelector('.tour-panel').getBoundingClientRect();
  const [one, two] = [panel, mark ?? panel].sort((a, b) => a.top - b.top);
  return Boolean(mark) && mark.height > 0 && one.top >= 0 && two.top < innerHeight
    && one.bottom <= two.top;
}"""


def wait_open(page, tab: str) -> None:
    page.wait_for_function(f"() => ({OPEN}) === 'tab-{tab}'")


def fragment(page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


@pytest.fixture
def cloze(module_page):
    """The same page for the tests that are not about opening it."""
    module_page.page.evaluate("Cloze.openTab('Mask')")
    wait_open(module_page.page, "mask")
    yield from renewed(module_page)


def test_the_link_restores_sentence_marks_tab_and_settings_elsewhere(cloze, visit):
    page = cloze.page
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
    expect(page.locator(".share-link")).to_have_value(re.compile("plain=1"))
    page.keyboard.press("Escape")
    expect(page.locator(".share-panel")).to_have_count(0)

    there = visit(link="#" + urlsplit(link).fragment).page
    wait_open(there, "budget")
    there.wait_for_function("() => Cloze.sentence.marks.size === 1")
    assert there.evaluate("[...Cloze.sentence.marks.keys()]") == [4]
    assert there.evaluate("Cloze.kept('budget').chosen") == "albert-base"


def test_a_text_that_no_link_can_hold_stays_in_its_tab_and_its_lab_in_the_link(visit):
    page = visit().page
    page.click('.chip[data-position="4"]')
    page.wait_for_function("location.hash.includes('marks=4')")
    text = "Москва - столица России, а Париж - столица Франции. " * 40
    page.fill("#sentence-text textarea", text)
    page.wait_for_function("text => Cloze.sentence.text === text", arg=text)
    assert "text" not in fragment(page), "no older sentence stands for it"
    page.evaluate("Cloze.openTab('Budget')")
    wait_open(page, "budget")
    assert fragment(page) == {"model": "bert-mini", "tab": "budget"}
    page.click("#share")
    link = page.locator(".share-link").input_value()
    assert parse_qs(urlsplit(link).fragment)["text"] == [text]
    expect(page.get_by_text("This link is long: some programs will cut it.")).to_be_visible()
    page.reload()
    wait_open(page, "budget")
    page.wait_for_function("text => Cloze.sentence.text === text", arg=text)
    # A text that cannot be read is none, and the lab still stands in the link.
    page.evaluate("Cloze.openTab('Mask')")
    page.fill("#sentence-text textarea", "")
    page.wait_for_function("Cloze.sentence.error")
    page.evaluate("Cloze.openTab('Budget')")
    wait_open(page, "budget")
    assert fragment(page) == {"model": "bert-mini", "tab": "budget"}
    page.evaluate("Cloze.openTab('Mask')")
    page.fill("#sentence-text textarea", "A cat sleeps.")
    page.wait_for_function("location.hash.includes('A+cat+sleeps.')")


def test_a_link_is_copied_where_the_browser_has_no_clipboard_for_the_page(visit):
    """A page of plain http, as in the network of a classroom."""
    page = visit().page
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.click("#share")
    link = page.locator(".share-link").input_value()
    page.get_by_role("button", name="Copy the link").click()
    page.get_by_role("button", name="Copied").wait_for()
    page.keyboard.press("Escape")
    page.locator("#sentence-text textarea").fill("")
    page.locator("#sentence-text textarea").press("Control+v")
    expect(page.locator("#sentence-text textarea")).to_have_value(link)


def test_the_button_that_has_copied_a_link_offers_another_one(cloze):
    page = cloze.page
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.click("#share")
    page.get_by_role("button", name="Copy the link").click()
    page.get_by_role("button", name="Copied").wait_for()
    heard = page.locator(".share-panel").get_by_role("status").last
    expect(heard).to_have_text("Copied")
    page.get_by_label("Without the controls, for a lesson or a projector").check()
    expect(page.locator(".share-panel").get_by_role("button")).to_have_text("Copy the link")
    page.keyboard.press("Escape")


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["lab-budget=%7B&tab=nowhere", "lab-budget=[1]&tab=%3Cb%3E"])
def test_a_broken_link_opens_the_page_as_it_is(visit, broken):
    whole = "lab-forge=%7B%22roll%22:9%7D"
    page = visit(link=f"#text=The+sky+is+blue&model=bert-mini&{broken}&{whole}").page
    page.wait_for_function("() => Cloze.sentence.text === 'The sky is blue'")
    assert page.evaluate("Cloze.kept('budget')") is None
    assert page.evaluate("Cloze.kept('forge')") == {"roll": 9}
    assert page.evaluate(OPEN) == "tab-mask"
    said = page.get_by_text(re.compile("The link names the lab “.+”, which is not here."))
    expect(said).to_be_visible()


@pytest.mark.slow
def test_a_link_says_what_it_hides_in_vain(visit):
    page = visit(link="#text=The+sky+is+blue&model=bert-mini&marks=4.9").page
    page.get_by_text("The link hides words that this sentence does not have.").wait_for()
    assert page.evaluate("[...Cloze.sentence.marks.keys()]") == [4]


def test_a_link_that_somebody_typed_names_a_lab_in_capitals(visit):
    page = visit(link="#text=The+sky+is+blue&model=bert-mini&tab=Budget").page
    page.wait_for_function(f"() => ({OPEN}) === 'tab-budget'")


def test_without_controls_the_lab_stays_and_the_header_goes(visit):
    page = visit(link="?plain=1#text=The+sky+is+blue&model=bert-mini&marks=3").page
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    for hidden in (
        "#cloze-header",
        "#cloze-examples",
        "#draw",
        "#tabs [role=tablist]",
        "#line-predict",
    ):
        expect(page.locator(hidden).first).to_be_hidden()
    expect(page.locator(".chip").nth(3)).to_be_attached()
    expect(page.locator(".view-predictions")).to_be_visible()


@pytest.mark.slow
def test_the_tour_brings_labs_into_view_walks_its_steps_and_gives_the_page_back(visit):
    page = visit(width=390, height=844).page
    page.click("#tour")
    page.click(".tour-next")
    wait_open(page, "attention")
    page.wait_for_function(APART)
    page.click(".tour-end")
    expect(page.locator(".tour-panel")).to_have_count(0)

    # Who ends the tour and writes at once keeps what they write, also while its text is on the way.
    page.click("#tour")
    page.wait_for_selector(".tour-next")
    page.evaluate(
        """text => {
            for (const each of ['next', 'next', 'end'])
                document.querySelector(`.tour-${each}`).click();
            const box = document.querySelector('#sentence-text textarea');
            box.value = text;
            box.dispatchEvent(new Event('input', { bubbles: true }));
        }""",
        "Bees make honey .",
    )
    page.wait_for_function("() => Cloze.sentence.text === 'Bees make honey .'")
    rest(page)  # the tour has looked whether its own text is there
    expect(page.locator("#sentence-text textarea")).to_have_value("Bees make honey .")

    page.set_viewport_size({"width": 1280, "height": 800})
    page.click("#tour")
    titles = set()
    for step, tab in enumerate(TOUR, start=1):
        page.wait_for_function(
            "count => document.querySelector('.tour-count')?.textContent === count",
            arg=f"Step {step} of {len(TOUR)}",
        )
        wait_open(page, tab)
        page.wait_for_function(APART)
        titles.add(page.locator(".tour-panel h2").inner_text())
        page.click(".tour-next")
    assert len(titles) == len(TOUR)
    expect(page.locator(".tour-panel")).to_have_count(0)
    expect(page.locator("#tour")).to_be_focused()


def test_the_tour_brings_its_sentence_where_none_can_be_read(cloze):
    page = cloze.page
    cloze.write("")
    page.get_by_role("button", name="Tour", exact=True).click()
    page.wait_for_function("text => Cloze.sentence.text === text", arg=DEFAULT)
    page.wait_for_function("Cloze.sentence.marks.size === 1")
    page.get_by_role("button", name="End the tour").click()


def test_the_tour_goes_back_by_one_key(cloze):
    page = cloze.page
    page.get_by_role("button", name="Tour", exact=True).click()
    panel = page.get_by_role("complementary", name="Guided tour")
    for step in (1, 2, 3):
        panel.get_by_text(f"Step {step} of 9").wait_for()
        page.keyboard.press("Enter")
    panel.get_by_text("Step 4 of 9").wait_for()
    page.keyboard.press("Shift+Tab")
    for step in (3, 2, 1):
        expect(panel.get_by_role("button", name="Back")).to_be_focused()
        page.keyboard.press("Enter")
        panel.get_by_text(f"Step {step} of 9").wait_for()
    expect(panel.get_by_role("button", name="Next")).to_be_focused()
    panel.get_by_role("button", name="End the tour").click()


@pytest.mark.slow
def test_the_tour_notices_when_its_task_is_done(visit):
    cloze = visit(link="?lesson=1")
    page = cloze.page
    page.get_by_text("Your turn: Hide a second word.").wait_for()
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    cloze.chip("France").click()
    page.get_by_text("Done: Hide a second word.").wait_for()
    page.click(".tour-next")
    wait_open(page, "attention")
    heads = page.get_by_role("gridcell")
    heads.and_(page.locator("[aria-selected=true]")).wait_for()
    page.get_by_text("Your turn: Choose another head.").wait_for()
    heads.last.click()
    page.get_by_text("Done: Choose another head.").wait_for()


@pytest.mark.slow
def test_a_lesson_opens_at_its_step_in_chinese(visit):
    page = visit(link="?lesson=4&lang=zh").page
    page.wait_for_selector(".tour-panel")
    wait_open(page, "forge")
    texts = locales.catalogue("zh")
    expect(page.locator(".tour-panel h2")).to_have_text(texts["A forger and a detective"])
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    hidden = page.evaluate(
        "[...Cloze.sentence.marks.keys()].map(k => Cloze.sentence.tokens[k].text)"
    )
    assert [word.lower() for word in hidden] == ["paris"]
    # The fourth lesson of links, the fifth step of the tour.
    expect(page.locator(".tour-count")).to_contain_text("第5步")


@pytest.mark.slow
def test_a_lesson_goes_on_at_its_step_in_another_language_and_ends_for_good(visit):
    page = visit(link="?lesson=2&lang=en").page
    wait_open(page, "attention")
    page.click(".tour-next")
    page.get_by_role("heading", name="What training hides").wait_for()
    wait_open(page, "timeline")
    page.click("#language-switch")
    texts = locales.catalogue("zh")
    page.get_by_role("heading", name=texts["What training hides"]).wait_for()
    wait_open(page, "timeline")
    # A link to what is seen is none to the lesson, which would put its own sentence there.
    page.click("#share")
    expect(page.locator(".share-link")).not_to_have_value(re.compile("lesson"))
    page.click("#share")
    page.click(".tour-end")
    cloze_text = "今天天气很好。"
    page.fill("#sentence-text textarea", cloze_text)
    page.wait_for_function("text => Cloze.sentence.text === text", arg=cloze_text)
    page.reload()
    page.wait_for_function("text => !!window.Cloze && Cloze.sentence.text === text", arg=cloze_text)
    rest(page)
    expect(page.locator("#sentence-text textarea")).to_have_value(cloze_text)
    expect(page.locator(".tour-panel")).to_have_count(0)


@pytest.mark.slow
def test_a_tour_goes_on_in_another_language(visit):
    page = visit().page
    page.click("#tour")
    page.get_by_text("Step 1 of 9").wait_for()
    page.click("#language-switch")
    page.get_by_role(
        "heading", name=locales.catalogue("zh")["A gap is filled from both sides"]
    ).wait_for()


@pytest.mark.slow
def test_the_tour_marks_the_picture_also_when_its_lab_is_left_for_a_moment(visit):
    visit()  # the second visitor has a profile, and so a clock, of their own
    page = visit(link="?lesson=3").page
    page.clock.install()
    page.reload()
    wait_open(page, "timeline")
    mark = page.locator("#tab-timeline .tour-mark[data-picture]")
    mark.wait_for()
    page.evaluate("Cloze.openTab('Budget')")
    wait_open(page, "budget")
    page.clock.run_for(500)  # longer than between two looks
    page.keyboard.press("Shift")  # whoever does something is not followed any more
    page.evaluate("Cloze.openTab('Timeline')")
    wait_open(page, "timeline")
    mark.wait_for()


def test_every_tab_is_a_step_of_the_history(cloze):
    page = cloze.page
    start_over(cloze, text="The sky is blue")
    page.evaluate("window.sameVisit = true")
    before = page.evaluate("history.length")
    for place, tab in (("Compare", "budget"), ("Look inside", "attention")):
        page.get_by_role("tab", name=place, exact=True).click()
        wait_open(page, tab)
    page.wait_for_function("length => history.length === length", arg=before + 2)
    page.click("#cloze-chips .chip >> nth=2")
    page.wait_for_function("() => location.hash.includes('marks=')")
    page.go_back()
    wait_open(page, "budget")
    page.wait_for_function("() => location.hash.includes('tab=budget')")
    assert fragment(page)["marks"], "the sentence stays as it is"
    page.go_back()
    wait_open(page, "mask")
    page.go_forward()
    wait_open(page, "budget")
    assert page.evaluate("[history.length, window.sameVisit]") == [before + 2, True]
    page.get_by_role("tab", name="Compare", exact=True).focus()
    for key, name in (("Left", "How they learn"), ("Right", "Compare"), ("Right", "Train")):
        page.keyboard.press(f"Arrow{key}")
        expect(page.get_by_role("tab", name=name, exact=True)).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait_open(page, "mask")


OFFLINE = "The server cannot be reached"


@pytest.mark.slow
def test_what_is_typed_while_the_server_is_away_is_read_when_it_is_back(visit):
    cloze = visit()
    page = cloze.page
    page.context.set_offline(True)
    page.fill("#sentence-text textarea", "The heart pumps blood .")
    hint = page.locator(".view-chips .offline")
    expect(hint).to_contain_text(OFFLINE)
    page.evaluate("Cloze.openTab('spans')")
    page.locator("#tab-spans .offline").wait_for()
    page.fill("#sentence-text textarea", "The heart pumps much blood .")
    page.context.set_offline(False)
    page.get_by_role("region", name="The span in its sentence").wait_for()
    page.wait_for_function("() => Cloze.sentence.text === 'The heart pumps much blood .'")
    expect(page.locator("#sentence-text textarea")).to_have_value("The heart pumps much blood .")
    expect(page.locator(".offline")).to_have_count(0)
    # The browser itself reports what could not be fetched.
    cloze.problems[:] = [each for each in cloze.problems if "ERR_INTERNET" not in each]


def test_a_lab_without_a_text_says_that_the_server_is_away(visit):
    cloze = visit(link="#tab=budget")
    page = cloze.page
    cloze.rest()  # what is answered tells that the server is there
    page.context.set_offline(True)
    hint = page.locator(".offline:visible")
    expect(hint).to_have_text(f"{OFFLINE}. The page goes on as soon as it answers.")
    page.evaluate("Cloze.away(false, 0)")  # an answer that was under way tells nothing
    expect(hint).to_have_count(1)
    page.evaluate("Cloze.openTab('mask')")
    wait_open(page, "mask")
    expect(hint).to_contain_text("What you type here is kept")
    page.context.set_offline(False)
    expect(hint).to_have_count(0)
    cloze.problems[:] = [each for each in cloze.problems if "ERR_INTERNET" not in each]


@pytest.mark.slow
def test_what_a_proxy_answers_for_a_server_that_starts_anew_is_asked_again(visit):
    """Both ways to ask: Gradio's events, of which one reads the text, and the views' own."""
    cloze = visit()
    page, away = cloze.page, [True]

    def answer(route):
        if away[0]:
            route.fulfill(status=502, body="<html>Bad Gateway</html>", content_type="text/html")
        else:
            route.continue_()

    page.route("**/run/predict*", answer)
    cloze.chip("Paris").click()
    hint = page.locator(".view-chips .offline")
    expect(hint).to_contain_text(OFFLINE)
    away[0] = False
    cloze.settle()
    page.locator("button.candidate").first.wait_for()
    hint.wait_for(state="hidden")
    away[0] = True
    page.fill("#sentence-text textarea", "The heart pumps blood.")
    hint.wait_for()
    away[0] = False
    page.wait_for_function("() => Cloze.sentence.text === 'The heart pumps blood.'")
    hint.wait_for(state="hidden")
    page.unroute("**/run/predict*")
    cloze.problems[:] = [each for each in cloze.problems if "502" not in each]


AHEAD = """() => {
  const names = performance.getEntriesByType('resource').map(({ name }) => name);
  const asked = (what) => names.filter((name) => name.includes(what)).length;
  const modules = gradio_config.components
    .map(({ props }) => /data-module="([^"]+)"/.exec(props?.html_template ?? '')?.[1]);
  return modules.every((name) => !name || asked(`cloze/app/${name}.js`))
    && [asked('cloze/plotly-look'), asked('cloze/plotly-')];
}"""


@pytest.mark.slow
def test_what_tabs_need_is_fetched_ahead_and_once(visit):
    found = visit(link="#tab=mask").page.wait_for_function(AHEAD)
    assert found.json_value() == [1, 2]  # the look, and it and the script


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


def test_what_is_written_while_the_page_opens_stays(profile, server):
    with profile.new_page() as page:
        page.add_init_script(COUNT)
        page.add_init_script(LATE)
        page.goto(server)
        page.wait_for_function("() => window.opened")
        page.wait_for_function("() => Cloze.sentence.text === 'The heart pumps blood .'")
        rest(page)
        assert page.evaluate("Cloze.sentence.text") == "The heart pumps blood ."
        expect(page.locator("#sentence-text textarea")).to_have_value("The heart pumps blood .")


@pytest.mark.slow
def test_a_link_with_the_text_of_the_page_and_a_model_that_is_nowhere(visit, server):
    """All that it asks for but the model is there already: no part of the page may fail of that."""
    cloze = visit(link="?")
    text = cloze.page.input_value("#sentence-text textarea")
    cloze.page.goto("about:blank")
    cloze.open(f"{server}/#{urlencode({'text': text, 'model': 'no-such-model'})}")
    note = cloze.page.get_by_text("The link names the model “no-such-model”, which is not here.")
    note.wait_for()
    cloze.rest()
    assert cloze.page.get_by_text("Error", exact=True).count() == 0  # at once
    expect(cloze.page.locator("#sentence-text textarea")).to_have_value(text)


@pytest.mark.slow
def test_a_link_with_a_model_that_is_nowhere_and_no_text_opens_as_without_one(visit):
    cloze = visit(link="#model=no-such-model")
    cloze.page.get_by_text(
        "The link names the model “no-such-model”, which is not here."
    ).wait_for()
    cloze.page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    cloze.settle()
    expect(cloze.page.locator("button.candidate").first).to_be_visible()
