"""Opening the page: themes, widths, late scripts, damaged links, and its rest afterwards."""

import re

import pytest
from playwright.sync_api import expect

from app.labs.budget.lab import PRESETS
from app.serving.locales import catalogue
from tests.app.one_page import SENTENCE
from tests.app.visitors import Cloze

LONG = (
    "The moon goes round the earth , and the earth goes round the sun . In winter the lake is "
    "covered with ice and snow , and the children like to skate on it after school . "
)
ALL_DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.mark.slow
def test_the_theme_can_be_chosen_and_is_kept(visit):
    cloze = visit(dark=True)
    body, dark = cloze.page.locator("body"), re.compile(r"\bdark\b")
    expect(body).to_have_class(dark)
    cloze.page.click("#theme-switch")
    expect(body).not_to_have_class(dark)
    cloze.page.reload()
    cloze.page.wait_for_selector(".chip:not([hidden])")
    expect(body).not_to_have_class(dark)


PRESSED = """() => [...document.querySelectorAll('button, summary, [type=range]')]
  .filter((each) => each.offsetParent)
  .filter((each) => !each.matches('.chip, .candidate, [role=tab], [open] > summary'))
  .map((each) => each.textContent || each.title)"""
CUT = """() => [...document.querySelectorAll('[class*="-scroll"]')]
  .filter((each) => each.offsetParent && getComputedStyle(each).maxHeight !== 'none')
  .map((each) => each.className)"""
WIDTHS = "() => [document.querySelector('#why-bars svg').clientWidth, document.body.clientWidth]"


@pytest.mark.slow
def test_on_paper_all_is_light_and_whole_and_nothing_is_to_be_pressed(visit):
    """A teacher prints what is on the projector."""
    page = visit(dark=True).page
    page.click(".chip >> text=Paris")
    page.evaluate("Cloze.openTab('Why')")
    title = page.locator("#why-bars .gtitle")
    title.wait_for()
    ink = "each => getComputedStyle(each).fill"
    pale, drawn = title.evaluate(ink), page.evaluate(WIDTHS)
    page.locator("#why-bars").get_by_text("The numbers").click()
    page.locator("#why-bars .figure-scroll").wait_for()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 1000, "height": 700})
    expect(page.locator("body")).not_to_have_class(re.compile("dark"))
    page.wait_for_function(
        "pale => getComputedStyle(document.querySelector('#why-bars .gtitle')).fill !== pale",
        arg=pale,
    )
    assert page.evaluate(PRESSED) == []
    assert page.evaluate(CUT) == [], "no paper has the rest of what scrolls"
    assert page.evaluate(WIDTHS) == drawn, "pictures have the room that they were drawn for"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen", color_scheme="dark")
    expect(page.locator("body")).to_have_class(re.compile("dark"))
    page.wait_for_function(
        "pale => getComputedStyle(document.querySelector('#why-bars .gtitle')).fill === pale",
        arg=pale,
    )


def test_nothing_is_wider_than_the_window_and_touch_targets_are_large(visit):
    cloze = visit(width=390, link="?")
    assert "#" not in cloze.page.url, "a bare address stays bare"
    for chip in cloze.page.locator(".chip:not([hidden])").all():
        assert chip.bounding_box()["height"] >= 44
    cloze.write(LONG + "Quizzifying " + "x" * 90)
    cloze.unfold("Options")
    cloze.page.click("#switch-pieces")
    cloze.page.click("#draw")
    cloze.page.wait_for_function("Cloze.sentence.marks.size > 0")
    cloze.settle()
    for width in (390, 768, 1280):
        cloze.page.set_viewport_size({"width": width, "height": 800})
        cloze.page.evaluate(ALL_DRAWN)
        assert cloze.overflow() <= 0, width
    cloze.page.evaluate("Cloze.openTab('Attention')")
    cloze.page.locator("#attention-map").get_by_text("The numbers").wait_for()
    for width in (1280, 768, 390):
        cloze.page.set_viewport_size({"width": width, "height": 800})
        cloze.page.evaluate(ALL_DRAWN)
        assert cloze.overflow() <= 0, f"Attention, {width}"


SMALL = """() => {
  const seen = (part) => part.offsetParent && part.getBoundingClientRect().width > 1;
  const letters = (part) => parseFloat(getComputedStyle(part).fontSize);
  const fields = [...document.querySelectorAll('textarea, select, input')].filter(seen)
    .filter(({ type }) => !['range', 'checkbox', 'radio'].includes(type));
  const targets = [...document.querySelectorAll(
    'button, input:is([type=range], [type=number]), .token-remove')].filter(seen);
  const size = (part) => part.getBoundingClientRect();
  return [...fields.filter((field) => letters(field) < 16),
    ...targets.filter((part) => Math.min(size(part).width, size(part).height) < 24)]
    .map((part) => part.outerHTML);
}"""


def test_fingers_find_fields_that_do_not_zoom_and_targets_that_are_large_enough(phone):
    page = phone("#text=Paris&model=bert-mini").page
    for lab in ("mask", "budget", "unmasking"):
        page.evaluate("lab => Cloze.openTab(lab)", lab)
        page.locator(f"#tab-{lab}").get_by_role("heading").first.wait_for()
        page.wait_for_function("() => !document.querySelector('.figure[data-state=waiting]')")
        page.evaluate(ALL_DRAWN)
        assert page.evaluate(SMALL) == [], lab


def test_a_link_is_read_although_our_scripts_come_after_gradio(profile, server):
    with profile.new_page() as page:
        held = []
        page.route("**/cloze/app/page/link.js", lambda route: held.append(route))
        page.goto(f"{server}/#text=Hello+world&marks=1", wait_until="commit")
        page.wait_for_selector("#tabs [role=tab]")
        held[0].continue_()
        page.wait_for_function("Cloze.sentence.marks.size === 1")
        expect(page.locator("#sentence-text textarea")).to_have_value("Hello world")


REFUSES = """for (const name of ['localStorage', 'sessionStorage']) {
  Object.defineProperty(window, name, { get() { throw new DOMException('', 'SecurityError'); } });
}"""


def test_a_browser_that_keeps_nothing_shows_every_lab(profile, server):
    """Cookies are blocked, or the page stands in a frame that has no origin."""
    with profile.new_page() as page:
        page.add_init_script(REFUSES)
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        cloze = Cloze(page, problems)
        cloze.open(server)
        for lab in ("forge", "train", "mask"):  # the first one keeps a score, the second a secret
            page.evaluate("name => Cloze.openTab(name)", lab)
            page.wait_for_function(
                "name => document.getElementById(name)?.offsetParent", arg=f"tab-{lab}"
            )
        assert problems == []


def test_the_theme_outlives_a_change_of_language_where_nothing_is_kept(profile, server):
    with profile.new_page() as page:
        page.add_init_script(REFUSES)
        cloze = Cloze(page, [])
        cloze.open(f"{server}/?lang=en")
        page.get_by_role("button", name="Use the dark theme").click()
        page.get_by_role("button", name="简体中文").click()
        page.get_by_role("button", name=catalogue("zh")["Use the light theme"]).wait_for()
        page.wait_for_function("() => Cloze.mounted && Cloze.dark()")


def test_the_theme_chosen_last_goes_before_that_of_the_link(profile, server):
    with profile.new_page() as page:
        cloze = Cloze(page, [])
        cloze.open(f"{server}/?lang=en&__theme=dark")
        page.get_by_role("button", name="Use the light theme").click()
        page.reload()
        page.wait_for_function("() => window.Cloze?.mounted && !Cloze.dark()")


COUNT_FRAMES = """(() => {
  const give = window.requestAnimationFrame;
  window.framesGiven = 0;
  window.requestAnimationFrame = (then) => { window.framesGiven += 1; return give(then); };
})()"""


NO_FRAMES = """() => {
  const [now, given] = [performance.now(), window.framesGiven];
  if (window.framesSeen?.given !== given) window.framesSeen = { given, since: now };
  return now - window.framesSeen.since > 500;
}"""


@pytest.mark.slow
def test_a_page_at_rest_draws_no_frames(profile, server):
    """A student's battery, and thirty pages on one small machine."""
    with profile.new_page() as page:
        page.add_init_script(COUNT_FRAMES)
        cloze = Cloze(page, [])
        cloze.open(server)
        cloze.settle()
        assert cloze.page.evaluate("window.framesGiven") > 0
        cloze.page.wait_for_function(NO_FRAMES)  # the last movement takes some seconds to end


COUNT_MARKS = """(() => {
  const { entries } = Object;
  window.marked = 0;
  Object.entries = (value) => {
    const found = entries(value);
    window.marked += found.filter(([, each]) => each && Object.hasOwn(each, 'eta_total')).length;
    return found;
  };
})()"""
TOLD = """() => {
  let told = 0;
  for (const event of gradio_config.dependencies) event.inputs.forEach(() => { told += 1; });
  return told;
}"""


@pytest.mark.slow
def test_gradio_marks_no_components_that_show_no_progress(profile, server):
    """It would go on telling all of them at each event, by a walk over the whole page for each."""
    with profile.new_page() as page:
        page.add_init_script(COUNT_MARKS)
        cloze = Cloze(page, [])
        cloze.open(f"{server}/#tab=budget")
        for preset in ("Relative positions", "BERT against ALBERT"):
            page.get_by_label(preset).check()
            page.wait_for_function(
                "name => document.querySelector('#budget-bars .js-plotly-plot')"
                "?.data[0].y.at(-1) === name",
                arg=PRESETS[preset][-1],
            )
        assert page.evaluate("window.marked") == 0
        assert page.evaluate(TOLD) == 0


COUNT_SEARCHES = """(() => {
  const { filter } = Array.prototype;
  window.searched = 0;
  Array.prototype.filter = function (...given) {
    if (/\\.targets\\.find\\(/.test(given[0])) window.searched += this.length;
    return filter.apply(this, given);
  };
})()"""
EVENTS = """() => {
  const { components, dependencies } = gradio_config;
  const has = (event, id) => event.targets.some((target) => target[0] === id);
  let asked = [...dependencies.filter(() => true)].length === dependencies.length;
  const page = dependencies.filter(() => true); // as Gradio takes those of the page that is shown
  for (const { id } of [...components].reverse()) { // not in the order of the layout
    const found = page.filter((event) => event.targets.find((target) => target[0] === id));
    asked = asked && found.length === [...dependencies].reduce((n, event) => n + has(event, id), 0);
  }
  return asked;
}"""


@pytest.mark.slow
def test_gradio_finds_the_events_of_a_component_without_a_search(profile, server):
    """It would look through all of them for each component, twice, before the page is there."""
    with profile.new_page() as page:
        page.add_init_script(COUNT_SEARCHES)
        Cloze(page, []).open(server)
        assert page.evaluate("window.searched") == 0
        assert page.evaluate(EVENTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "link", ["#text=Hello+world&model=nope&marks=1.999.x.-1", "#text=%20", "#marks=1", "#text=a%ff"]
)
def test_a_damaged_link_does_no_harm(visit, link):
    cloze = visit(link=link)
    cloze.rest()
    cloze.write(SENTENCE)
    cloze.page.evaluate("Cloze.change({marks: new Map()})")
    cloze.chip("Paris").click()
    cloze.settle()
    assert cloze.marked() == [6]
