"""The Attention lab in Chromium: single heads against the model's own trace, keys, files."""

import csv
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import core_models as cm
import viz
from tests.app.attention_page import LINK, TEXT, AttentionLab
from tests.app.one_page import start_over

HIDE = "Hide [CLS] and [SEP]"
COLOURS = "A second sentence, and colours"
OWN = "Each map on its own colour scale"
# The colour of the first cell of the first map.
COLOUR = """() => {
  const canvas = document.querySelector('#tab-attention canvas');
  const at = document.querySelector('#tab-attention [role=gridcell]').getBoundingClientRect();
  const from = canvas.getBoundingClientRect();
  const ratio = canvas.width / from.width;
  const [x, y] = [at.left - from.left + 3, at.top - from.top + 3].map((each) => each * ratio);
  return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data];
}"""


@pytest.fixture
def lab(module_page):
    """The same page for the tests that are not about opening it, with the first head."""
    start_over(module_page)
    lab = AttentionLab(module_page)
    lab.open("Heads")
    lab.panel.get_by_role("checkbox", name=HIDE).uncheck()
    lab.select(0, 1)
    lab.select(0, 0)
    yield lab
    assert module_page.problems == []


@pytest.fixture
def trace_of(model):
    """The attention [steps, H, L, L] of the page's model over a text, computed here."""

    def compute(text=TEXT, masks=()):
        batch = model.batch([text])
        for position in masks:
            batch.input_ids[0, position] = model.tokenizer.mask_id
        trace = cm.Trace(sites=["probabilities"])
        with torch.no_grad():
            model.encoder(batch, trace=trace)
        return trace.stack("probabilities")[:, 0].numpy()

    return compute


@pytest.mark.parametrize(
    ("layer", "head"),
    [
        (1, 2),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [(0, 0), (2, None), (None, None)]
        ),
    ],
)
def test_numbers_are_those_of_the_trace(lab, trace_of, layer, head):
    lab.select(1, 1)
    lab.select(layer, head)
    lab.shows(viz.head_weights(trace_of(), layer, head))
    expect(lab.marked()).to_have_count(1)


@pytest.mark.slow
def test_layer_and_head_can_be_chosen_by_their_numbers(lab, trace_of):
    lab.choose("Layer", "3")
    lab.says("Layer 3 · Head 1: ")
    lab.choose("Head", "2")
    lab.says("Layer 3 · Head 2: ")
    lab.shows(trace_of()[2, 1])
    expect(lab.cell(2, 1)).to_have_attribute("aria-selected", "true")
    lab.choose("Layer", "⌀")
    lab.says("Mean over all heads: ")


def test_modes_have_the_choices_that_they_read_and_their_buttons_stand_together(lab):
    page, room = lab.page, lab.panel.locator(".choices")
    layer = room.get_by_role("combobox", name="Layer", exact=True)
    before = page.viewport_size
    page.set_viewport_size({"width": 1440, "height": 900})
    for mode, read in (
        ("Combined", False),
        ("Rollout & flow", False),
        ("Switch off", False),
        ("Compare", False),
        ("Norms", True),
    ):
        lab.open(mode)
        expect(layer).to_have_count(int(read))
        expect(room.get_by_role("combobox", name="Head", exact=True)).to_have_count(int(read))
        buttons = [each.bounding_box() for each in room.get_by_role("button").all()]
        rows = {}
        for box in filter(None, buttons):
            rows.setdefault(round(box["y"]), []).append(box["x"])
        assert len({min(row) for row in rows.values()}) == 1, mode
    lab.open("Compare")
    room.get_by_role("radio", name="one head of each").check()
    expect(layer).to_have_count(1)
    page.set_viewport_size(before)


def test_a_hidden_word_changes_labels_and_numbers(lab, trace_of):
    lab.cloze.at(2).click()
    lab.shows(trace_of(masks=[2])[0, 0])
    assert np.abs(trace_of(masks=[2])[0, 0] - trace_of()[0, 0]).max() > 1e-3
    expect(lab.token("from", "[MASK]")).to_have_count(1)


def test_arrow_keys_rove_and_enter_selects(lab):
    press = lab.page.keyboard.press
    stops = lab.heads.locator('[tabindex="0"]')
    expect(stops).to_have_count(1)
    stops.focus()
    press("ArrowDown")
    press("ArrowRight")
    press("ArrowRight")
    lab.says("Layer 1 · Head 1: ")
    lab.says(re.compile("^Layer 2 · Head 3. Strongest link: “"))
    press("Enter")
    lab.says("Layer 2 · Head 3: ")
    expect(lab.marked()).to_have_count(1)
    press("End")
    lab.says(re.compile("^Layer 2 · Mean. Strongest"))
    press("Home")
    press("ArrowUp")
    press("ArrowUp")
    lab.says(re.compile("^Layer 1 · Head 1. Strongest"))


def shares_in(sentence):
    return [float(number) / 100 for number in re.findall(r"” ([\d.]+)\xa0%", sentence)]


def test_pointing_at_a_token_tells_where_it_looks(lab, trace_of):
    lab.select(1, 0)
    weights = trace_of()[1, 0]
    for side, row, words in (
        ("from", weights[2], "“capital” looks at “"),
        ("to", weights[:, 2], "“capital” is looked at by “"),
    ):
        lab.token(side, "capital").hover()
        lab.says(words)
        said = lab.panel.get_by_text(words).inner_text()
        best = np.sort(row)[::-1]
        np.testing.assert_allclose(shares_in(said), best[: len(shares_in(said))], atol=6e-3)
    lab.panel.get_by_role("heading").first.hover()
    lab.says("Point at a token for its own numbers, click to hold it.")


def test_tokens_by_keyboard(lab):
    press = lab.page.keyboard.press
    away = lab.panel.get_by_role("checkbox", name=HIDE)
    lab.tokens.get_by_role("button").first.focus()
    press("Home")
    press("ArrowDown")
    lab.says("“The” looks at “")
    # It is told below the lines, and once.
    expect(lab.token("from", "The")).to_have_accessible_name("“The”, looking")
    lab.page.evaluate("document.body.classList.toggle('drawn-anew')")
    lab.page.evaluate("new Promise(requestAnimationFrame)")
    lab.says("“The” looks at “")
    press("ArrowRight")
    lab.says("“The” is looked at by “")
    press("Enter")
    away.focus()
    lab.says("“The” is looked at by “")
    held = lab.token("to", "The")
    expect(held).to_have_attribute("aria-pressed", "true")
    held.focus()
    press("Escape")
    away.focus()
    expect(lab.panel.get_by_text("“The” is looked at by “")).to_have_count(0)


def test_hiding_special_tokens_removes_them_and_changes_no_number(lab, trace_of):
    lab.select(1, 1)
    hide = lab.panel.get_by_role("checkbox", name=HIDE)
    hide.check()
    lab.shows(trace_of()[1, 1][1:-1, 1:-1])
    expect(lab.token("from", "[CLS]")).to_have_count(0)
    lab.says("of their attention goes to the hidden tokens.")
    hide.uncheck()
    lab.shows(trace_of()[1, 1])
    lab.says("Layer 2 · Head 2: ")


@pytest.mark.slow
def test_maps_on_scales_of_their_own_say_so(lab):
    lab.unfold(COLOURS)
    own = lab.panel.get_by_role("checkbox", name=OWN)
    own.check()
    lab.says("each map runs to its own strongest link")
    own.uncheck()
    lab.says("Square-root scale, the same for all maps.")


@pytest.mark.slow
def test_one_question_per_change_and_none_while_the_lab_is_hidden(cloze):
    asked = []
    page = cloze.page
    page.on(
        "request",
        lambda request: (
            '"products"' not in (request.post_data or "")
            and '"drawn"' not in (request.post_data or "")
            and "predict" in request.url
            and '"heads"' in (request.post_data or "")
            and asked.append(request)
        ),
    )
    cloze.at(2).click()
    cloze.at(3).click()
    cloze.settle()
    assert not asked
    lab = AttentionLab(cloze)
    lab.says(re.compile("^Layer . · Head .: "))
    assert len(asked) == 1
    lab.select(0, 0)
    lab.select(1, 1)
    assert len(asked) == 3
    cloze.at(4).click()
    expect(lab.token("from", "[MASK]")).to_have_count(3)
    assert len(asked) == 4


def save(lab, button, folder):
    with lab.page.expect_download() as event:
        button.click()
    path = folder / event.value.suggested_filename
    event.value.save_as(path)
    return path


@pytest.mark.slow
def test_files(lab, trace_of, tmp_path):
    lab.select(1, 2)
    lab.shows(trace_of()[1, 2])
    chart = lab.page.locator("#attention-map")
    numbers = save(lab, chart.get_by_role("button", name="Save as CSV"), tmp_path)
    with numbers.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    again = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    np.testing.assert_allclose(again, trace_of()[1, 2], rtol=1e-4, atol=1e-6)
    lab.token("from", "capital").hover()
    drawing = save(lab, lab.panel.get_by_role("button", name="Lines, SVG"), tmp_path)
    said = "".join(ElementTree.parse(drawing).getroot().itertext())
    assert "capital" in said
    assert "Layer 2 · Head 3" in said
    for name in ("Lines, PNG", "All heads, PNG"):
        button = lab.panel.get_by_role("button", name=name)
        assert save(lab, button, tmp_path).read_bytes().startswith(b"\x89PNG")
    heads = save(lab, lab.panel.get_by_role("button", name="All heads, SVG"), tmp_path)
    assert "bert-mini: all heads" in heads.read_text("utf-8")


def test_the_code_is_on_the_page(lab):
    lab.select(1, 2)
    lab.panel.get_by_text("The code that recomputes this").click()
    lab.says('trace["probabilities", 1][0, 2]')
    lab.says(repr(TEXT))
    lab.panel.get_by_text("The code that recomputes this").click()


def test_markup_stays_text(lab):
    text = "<img src=x onerror=alert(1)> ${alert(2)} {{value}} =1+1"
    lab.cloze.write(text)
    expect(lab.token("from", "<")).to_have_count(1)
    assert lab.panel.locator("img").count() == 0  # at once


def test_no_text_is_a_message_and_the_next_text_is_drawn(lab):
    message = lab.panel.get_by_text("There is no text yet.")
    lab.page.fill("#sentence-text textarea", "   ")
    expect(message).to_be_visible()
    lab.cloze.write("Bees make honey .")
    expect(lab.token("from", "honey")).to_have_count(1)
    expect(message).to_be_hidden()


@pytest.mark.slow
def test_long_sentences_are_shrunk_and_say_so(lab):
    lab.cloze.write("bees make honey " * 300)
    lab.says("shrunk to 48 × 48")
    lab.says("of the weaker ones are left out")
    lab.select(0, 1)
    lab.panel.get_by_role("checkbox", name=HIDE).check()
    expect(lab.token("from", "[CLS]")).to_have_count(0)


@pytest.mark.slow
def test_a_single_token(lab):
    lab.cloze.write(".")
    lab.panel.get_by_role("checkbox", name=HIDE).check()
    expect(lab.tokens.get_by_role("button")).to_have_count(1)


@pytest.mark.slow
def test_the_theme_repaints_the_canvases(lab):
    before = lab.page.evaluate(COLOUR)
    lab.page.locator("#theme-switch").click()
    lab.page.wait_for_function(f"before => String(({COLOUR})()) !== String(before)", arg=before)
    lab.page.locator("#theme-switch").click()
    lab.page.wait_for_function(f"before => String(({COLOUR})()) === String(before)", arg=before)


def test_a_phone_shows_it_without_scrolling_sideways(visit):
    lab = AttentionLab(visit(width=390, height=844, dark=True, link=LINK))
    for mode in ("Combined", "Heads"):
        lab.open(mode)
        label = lab.panel.get_by_text("Hide [CLS] and [SEP]").bounding_box()
        room = lab.panel.bounding_box()
        assert label["x"] + label["width"] <= room["x"] + room["width"], mode
    for dark, head in ((True, 1), (False, 2)):
        lab.page.emulate_media(color_scheme="dark" if dark else "light")
        lab.page.wait_for_function("dark => Cloze.dark() === dark", arg=dark)
        lab.select(1, head)
        assert lab.cloze.overflow() <= 0, dark
