"""The numbers beside a chart: how large ones are written, and what their file says of the rest."""

import gradio as gr
import pytest
from playwright.sync_api import expect

from app.parts.figure import Figure
from app.parts.plain import Table, table
from tests.app.conftest import launched, show_loop
from viz.figure import MOST_TABLE_ROWS, Chart, finish

NUMBERS = {
    12345.67: "12,346",
    -1000.5: "-1,000",
    999.44: "999.4",
    0.123456: "0.1235",
    0.00001234: "1.23e-5",
    12345: "12,345",
}
CAPTION = "What stands in a table that is wider than a telephone, and in what unit its numbers are"


LONG = "只有一层权重被存下来，但是十二次前向都要计算。文件很小，工作量却一样大，所以并不会更快。"


@pytest.fixture
def page(browser):
    """A page with a chart whose table is longer than what travels with it."""
    figure = Chart().add_bar(x=[1], y=[1])
    rows = [*([each] for each in NUMBERS), *([n] for n in range(MOST_TABLE_ROWS))]
    finish(figure, "t", alt="a", columns=["n"], rows=rows)
    with gr.Blocks() as made:
        Figure(figure, elem_id="chart", main=True)
        Table(table(CAPTION, [*"abcdefghijkl"], [[1_000_000] * 12]), main=True)
        Table(table("Why", [*"abcdefgh"], [[*[1_000_000] * 7, LONG]]), main=True)
    address = launched(made)
    with browser.new_context(accept_downloads=True) as context:
        page = context.new_page()
        page.goto(address)
        page.get_by_text("The numbers").click()
        yield page
        show_loop()
    made.close()


def test_large_numbers_are_whole_and_a_file_says_that_it_is_not(page):
    heads = page.locator("#chart tbody th")
    for nth, text in enumerate(NUMBERS.values()):
        expect(heads.nth(nth)).to_have_text(text)
    expect(page.get_by_text("More rows are in no table.")).to_have_count(1)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    lines = saved.value.path().read_text("utf-8").splitlines()
    assert len(lines) == 1 + MOST_TABLE_ROWS + 1
    assert lines[:2] == ["n", "12345.67"]
    assert lines[-1] == "More rows are in no table."


def test_the_caption_of_a_wide_table_is_as_wide_as_what_is_seen_of_it(page):
    page.set_viewport_size({"width": 390, "height": 844})
    region = page.get_by_role("region", name=CAPTION)
    caption = region.get_by_text(CAPTION)
    seen = region.bounding_box()
    for left in (0, 150):
        assert (
            region.evaluate("(each, x) => { each.scrollLeft = x; return each.scrollLeft; }", left)
            == left
        )
        box = caption.bounding_box()
        assert (box["x"], box["width"]) == (seen["x"], seen["width"])
    # A sentence out of sight makes no tower of its row.
    row = page.get_by_role("region", name="Why").get_by_role("row").last
    assert row.bounding_box()["height"] < 120
