"""The part that shows figures, in an application of its own."""

import json
import re

import gradio as gr
import plotly.graph_objects as go
import pytest
from playwright.sync_api import expect

from app.parts.figure import LOOK, SCRIPT, Figure, drawn
from tests.app.conftest import launched, show_loop
from viz import timeline
from viz.figure import DARK, finish, plain
from viz.svg import Wording

VISITOR = "<b>a</b>&amp;"


LONG = 5
"""Height of the chart with a long title."""
TITLE = "Save as PNG, save as SVG and reset both axes"


HAN = 6
"""Height of the chart with a Chinese title, which has no blanks."""
CHINESE = "平均长度：按分布为3.80个词；在这段文本上按15 %抽取200次，平均1.63个词。"


def chart(height: float) -> go.Figure:
    figure = go.Figure(go.Bar(x=[plain(VISITOR), "c"], y=[height, 2]))
    return finish(
        figure,
        plain({LONG: TITLE, HAN: CHINESE}[height])
        if height in (LONG, HAN)
        else Wording("Reset axes"),
        alt="Two bars.",
        columns=["name", "v"],
        rows=[[VISITOR, height], ["=c", 2]],
    )


MANY = 40
"""Pieces of a picture of masks, and the height that shows it."""


def masks() -> go.Figure:
    pieces = [f"word{n}" for n in range(MANY)]
    visit = timeline.Visit(draw=0, marks=["M"] * MANY, seen=pieces)
    counts = {"asked": [10] * MANY, "contexts": [12] * MANY}
    return timeline.masks([visit], pieces, title="masks", **counts)


WORDS = {37: "word", 38: "longer word", 39: "word that is as long as a sentence is"}
"""The label of a bar that is so long."""


def labelled(length: int) -> go.Figure:
    figure = go.Figure(go.Bar(x=[length], y=[WORDS[length]], orientation="h"))
    return finish(figure, "words", alt="A bar.", columns=["word"], rows=[[WORDS[length]]])


NAMED = 36
"""Height of the chart with a legend."""
LEGEND = ["other words", "drawn: a forgery", "the word of the text"]


CROWDED = 35
"""Height of the chart with a title and a legend of many rows."""
RACERS = [f"a model of the race, number {n}" for n in range(9)]


def legend(names: list[str], title: str = "") -> go.Figure:
    figure = go.Figure([go.Bar(x=["a"], y=[n], name=name) for n, name in enumerate(names)])
    return finish(figure, title, alt="Bars.", columns=["v"], rows=[[len(names)]])


def shown(height: int) -> go.Figure:
    if height == MANY:
        return masks()
    if height in (NAMED, CROWDED):
        return legend(LEGEND) if height == NAMED else legend(RACERS, "Loss")
    return labelled(height) if height in WORDS else chart(height)


def tell(event: gr.EventData) -> str:
    return json.dumps(event._data)


@pytest.fixture(scope="module")
def address():
    with gr.Blocks() as page:
        slider = gr.Slider(1, MANY, value=1, label="Height")
        figure = Figure(chart(1), elem_id="chart", main=True, events=["pick"])
        picked = gr.Textbox(label="Picked")
        slider.input(shown, slider, figure, queue=False)
        figure.pick(tell, None, picked, queue=False)
        seen = gr.Textbox(label="Seen")
        figure.pick(None, figure, seen, js="({ picked }) => String(picked.y)")
        picks = gr.Textbox(label="Picks")
        figure.pick(None, picks, picks, js="(before) => `${before}|`")
    yield launched(page)
    page.close()


@pytest.fixture(scope="module")
def tab(browser):
    """One tab for all tests, what its pages report, and the hosts that they ask."""
    with browser.new_context(accept_downloads=True) as context:
        tab = context.new_page()
        problems, hosts = [], set()
        tab.on("console", lambda said: problems.append(said.text))
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("request", lambda request: hosts.add(request.url.split("/")[2]))
        yield tab, problems, hosts
        show_loop()


@pytest.fixture
def page(tab, address):
    """The application, opened anew; fails where the browser reports anything."""
    page, problems, hosts = tab
    problems.clear()
    page.emulate_media(color_scheme="light")
    page.goto(address)
    page.locator("#chart .bars .point").first.wait_for()
    yield page
    assert [each for each in problems if "manifest" not in each] == []
    assert hosts <= {address.split("/")[2]}


def bar(page):
    return page.locator("#chart .bars .point path").first


def test_a_visitors_text_is_no_markup(page):
    expect(page.locator("#chart .xtick text").first).to_have_text(VISITOR)
    page.get_by_text("The numbers").click()
    row = page.get_by_role("row").nth(1)
    expect(row.get_by_role("rowheader")).to_have_text(VISITOR)
    expect(page.get_by_role("group", name="Two bars.")).to_have_count(1)


def test_a_drawing_is_heard_as_what_it_shows_and_not_as_its_texts(page):
    chart = page.get_by_role("group", name="Two bars.")
    expect(chart.get_by_role("button", name="Save as SVG")).to_have_count(1)
    expect(chart).to_match_aria_snapshot(
        """
        - group "Two bars.":
          - /children: equal
          - toolbar
        """
    )


@pytest.fixture
def touched(browser, address):
    """The application on a phone."""
    with browser.new_context(has_touch=True, accept_downloads=True) as context:
        page = context.new_page()
        page.goto(address)
        page.locator("#chart .bars .point").first.wait_for()
        yield page
        show_loop()


def test_a_finger_presses_no_button_that_it_does_not_see(touched):
    saved = []
    touched.on("download", lambda file: saved.append(file.suggested_filename))
    button = touched.get_by_role("button", name="Save as SVG").first
    expect(touched.locator("#chart .modebar")).to_have_css("opacity", "0")
    button.tap()
    expect(touched.locator("#chart .modebar")).to_have_css("opacity", "1")
    with touched.expect_download():
        button.tap()
    assert len(saved) == 1


CLICKS = """() => { window.clicks = 0;
  document.querySelector('.js-plotly-plot').on('plotly_click', () => { clicks += 1; }); }"""


def test_a_tap_picks_a_mark_once(touched):
    touched.evaluate(CLICKS)
    bar(touched).tap(force=True)  # Plotly's own layer lies over it
    touched.wait_for_function("clicks === 2")  # of the finger, and of the mouse after it
    expect(touched.get_by_label("Picks")).to_have_value("|")


RANGE = "document.querySelector('.js-plotly-plot')._fullLayout.xaxis.range"


def test_an_update_keeps_the_zoom(page):
    area = page.locator("#chart .nsewdrag").first.bounding_box()
    middle = area["y"] + area["height"] / 2
    page.mouse.move(area["x"] + 10, middle)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] / 2, middle)
    page.mouse.up()
    page.wait_for_function(f"{RANGE}[1] < 1")
    zoomed = page.evaluate(RANGE)
    tall = bar(page).bounding_box()["height"]
    page.get_by_label("Height").first.fill("8")
    page.get_by_label("Height").first.press("Tab")
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot').data[0].y[0] === 8"
        " && Number(document.querySelector('#chart .figure').dataset.drawn) > 1"
    )
    assert bar(page).bounding_box()["height"] > tall
    assert page.evaluate(RANGE) == pytest.approx(zoomed)


def test_gradio_gets_a_figure_as_one_text():
    """It walks over each value within an object, in the server and on the page."""
    (text,) = Figure().postprocess(chart(3)).values()
    assert json.loads(text) == drawn(chart(3))


COUNT_MEASURES = """() => {
  const { getComputedStyle } = window;
  window.measured = 0;
  window.getComputedStyle = (part, ...more) => {
    window.measured += part.matches('.js-plotly-plot');
    return getComputedStyle(part, ...more);
  };
}"""
WIDE = "wide => document.querySelector('#chart .main-svg').getBoundingClientRect().width === wide"


def test_a_chart_is_as_wide_as_its_place_and_does_not_measure_it(page):
    page.evaluate(COUNT_MEASURES)
    page.get_by_label("Height").first.fill("8")
    page.get_by_label("Height").first.press("Tab")
    page.wait_for_function("document.querySelector('.js-plotly-plot').data[0].y[0] === 8")
    for width in (700, 450, 640):
        page.locator("#chart").evaluate(
            "(part, wide) => { part.style.width = wide; }", f"{width}px"
        )
        page.wait_for_function(
            WIDE, arg=page.locator("#chart .figure-plot").bounding_box()["width"]
        )
    assert page.evaluate("window.measured") == 0


def test_bars_stay_where_they_are_while_their_labels_change_a_little(page):
    lefts = {}
    for height in (39, 38, 37, 39, 37):
        page.get_by_label("Height").first.fill(str(height))
        page.get_by_label("Height").first.press("Tab")
        page.locator("#chart .ytick").get_by_text(WORDS[height], exact=True).wait_for()
        page.locator("#chart .figure[data-state=ready]").wait_for()
        lefts.setdefault(height, []).append(page.locator("#chart .nsewdrag").bounding_box()["x"])
    longest, again = lefts[39]
    longer, shorter, alone = *lefts[38], *lefts[37]
    assert longest == again
    assert longer == shorter < longest - 48  # no more room is left empty than that
    assert alone < shorter


def legend_boxes(page, width, height, names):
    """Where each name of a chart's legend stands, in a chart that is so wide."""
    page.locator("#chart").evaluate("(part, wide) => { part.style.width = wide; }", f"{width}px")
    page.get_by_label("Height").first.fill(str(height))
    page.get_by_label("Height").first.press("Tab")
    texts = page.locator("#chart .legendtext")
    expect(texts).to_have_text(names)
    page.wait_for_function(WIDE, arg=page.locator("#chart .figure-plot").bounding_box()["width"])
    return [text.bounding_box() for text in texts.all()]


@pytest.mark.parametrize(("width", "rows"), [(450, 1), (350, 2), (200, 3)])
def test_a_legend_below_a_narrow_chart_leaves_no_room_empty(page, width, rows):
    boxes = legend_boxes(page, width, NAMED, LEGEND)
    assert len({round(box["y"]) for box in boxes}) == rows
    ticks = page.locator("#chart .xtick text").first.bounding_box()
    assert 0 < boxes[0]["y"] - (ticks["y"] + ticks["height"]) < 25
    plot = page.locator("#chart .figure-plot").bounding_box()
    assert 0 < plot["y"] + plot["height"] - (boxes[-1]["y"] + boxes[-1]["height"]) < 25


def test_a_legend_of_many_rows_does_not_cover_the_title(page):
    boxes = legend_boxes(page, 760, CROWDED, RACERS)
    assert len({round(box["y"]) for box in boxes}) > 2
    title = page.locator("#chart .gtitle").bounding_box()
    ticks = page.locator("#chart .xtick text").first.bounding_box()
    assert title["y"] + title["height"] < ticks["y"] < boxes[0]["y"]


OVERLAPS = """selector => {
  const boxes = [...document.querySelectorAll(`#chart ${selector}`)]
    .map((each) => each.getBoundingClientRect());
  return [boxes.length, boxes.filter(({ left }, n) => n && left < boxes[n - 1].right).length];
}"""


def test_texts_beside_a_narrow_chart_do_not_overlap(page):
    page.get_by_label("Height").first.fill(str(MANY))
    page.get_by_label("Height").first.press("Tab")
    page.locator("#chart .annotation").first.wait_for()
    for width, each in ((340, 3), (900, 1)):
        page.locator("#chart").evaluate(
            "(part, wide) => { part.style.width = wide; }", f"{width}px"
        )
        shown = len(range(0, MANY, each))
        expect(page.locator("#chart .annotation")).to_have_count(shown)
        for selector in (".annotation text", ".x2tick text"):
            page.wait_for_function(
                f"([selector, wanted]) => String(({OVERLAPS})(selector)) === String(wanted)",
                arg=[selector, [shown, 0]],
            )


OUTSIDE = """() => {
  const title = document.querySelector('#chart .gtitle').getBoundingClientRect();
  const chart = document.querySelector('#chart .main-svg').getBoundingClientRect();
  const plot = document.querySelector('#chart .bars').getBoundingClientRect();
  return title.left < chart.left || title.right > chart.right || title.top < chart.top
    || title.bottom > plot.top;
}"""


@pytest.mark.parametrize(("width", "several"), [(150, True), (260, True), (700, False)])
def test_a_title_that_is_wider_than_its_chart_goes_on_in_another_line(page, width, several):
    page.locator("#chart").evaluate("(part, wide) => { part.style.width = wide; }", f"{width}px")
    page.get_by_label("Height").first.fill(str(LONG))
    page.get_by_label("Height").first.press("Tab")
    expect(page.locator("#chart .gtitle")).to_have_text(re.compile("^Save as PNG"))
    page.wait_for_function(WIDE, arg=page.locator("#chart .figure-plot").bounding_box()["width"])
    expect(page.locator("#chart .gtitle .line").nth(1)).to_be_attached(attached=several)
    page.wait_for_function(f"!({OUTSIDE})()")
    expect(page.locator("#chart .figure-plot")).to_have_attribute("aria-label", "Two bars.")


def test_a_chinese_title_is_broken_between_characters(page):
    page.locator("#chart").evaluate("part => { part.style.width = '260px'; }")
    page.get_by_label("Height").first.fill(str(HAN))
    page.get_by_label("Height").first.press("Tab")
    expect(page.locator("#chart .gtitle")).to_have_text(re.compile("^平均"))
    page.wait_for_function(WIDE, arg=page.locator("#chart .figure-plot").bounding_box()["width"])
    lines = page.locator("#chart .gtitle .line").all_text_contents()
    assert "".join(lines).replace(" ", "") == CHINESE.replace(" ", "")
    assert not any(line[0] in "，；：。" for line in lines)
    page.wait_for_function(f"!({OUTSIDE})()")


def test_what_came_while_it_was_hidden_is_drawn_when_it_is_seen(page):
    chart = page.locator("#chart")
    # An answer may be quicker than the frame in which observers tell that it is hidden.
    chart.evaluate("""part => {
      part.style.display = 'none';
      return new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)));
    }""")
    page.get_by_label("Height").first.fill("8")
    page.get_by_label("Height").first.press("Tab")
    unseen = page.locator("#chart .figure[data-state=unseen]")
    unseen.wait_for(state="attached")
    chart.evaluate("part => { part.style.display = ''; }")
    page.locator("#chart .figure[data-state=ready]").wait_for()
    page.wait_for_function("document.querySelector('.js-plotly-plot').data[0].y[0] === 8")


def test_the_theme_is_followed_without_a_request(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("Cloze.setTheme('dark')")
    page.wait_for_function(
        "colour => getComputedStyle(document.querySelector('#chart .main-svg'))"
        ".backgroundColor.replaceAll(' ', '') === colour",
        arg="rgb" + str(tuple(bytes.fromhex(DARK["paper"][1:]))).replace(" ", ""),
    )
    assert asked == []


def test_a_mark_is_picked(page):
    box = bar(page).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("() => document.querySelector('textarea').value")
    told = json.loads(page.get_by_label("Picked").input_value())
    assert (told["curve"], told["point"], told["y"]) == (0, 0, 1)
    expect(page.get_by_label("Seen")).to_have_value("1")  # the page's own event has it, too


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_picture_is_saved_without_another_host(page, kind):
    page.locator("#chart .figure-plot").hover()
    with page.expect_download() as saved:
        page.locator(f'#chart .modebar-btn[data-title="Save as {kind.upper()}"]').click()
    assert saved.value.suggested_filename == f"chart.{kind}"
    if kind == "svg":  # a file has no fonts of the page: what is measured in them is cut in it
        assert "Plex" not in saved.value.path().read_text()


def test_the_bar_of_buttons_sends_nothing_away(page):
    titles = page.locator("#chart .modebar-btn").evaluate_all(
        "buttons => buttons.map((button) => button.dataset.title)"
    )
    assert titles == [
        "Zoom",
        "Pan",
        "Zoom in",
        "Zoom out",
        "Reset axes",
        "Save as PNG",
        "Save as SVG",
    ]


def test_the_table_is_a_file_that_no_spreadsheet_runs(page):
    page.get_by_text("The numbers").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    assert saved.value.path().read_text("utf-8").splitlines()[2] == "'=c,2"


def test_plotly_is_compressed_and_kept(page, address):
    answer = page.request.get(address.rstrip("/") + SCRIPT)
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert json.loads(page.request.get(address.rstrip("/") + LOOK).text())[
        "script"
    ] == SCRIPT.removeprefix("/")
