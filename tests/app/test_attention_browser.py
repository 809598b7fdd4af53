"""The Attention tab in Chromium: its numbers against the model's own trace, keys, files."""

import csv
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import core_models as cm
import viz

TEXT = "The capital of France is Paris."
ROOT = ".view-attention"
LET_GO = """name => {
  const root = document.querySelector(name);
  for (const each of root.querySelectorAll('[role=switch][aria-checked=true]')) each.click();
  for (const each of root.querySelectorAll('details')) each.open = false;
  // The table keeps its rows while it is closed: who opens it has to wait for new ones.
  for (const each of root.querySelectorAll('[data-role=table-box] tbody tr')) each.remove();
  root.querySelector('.attn-token[aria-pressed=true]')?.dispatchEvent(
    new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  document.activeElement?.blur();
}"""
# Drawn without a mark, a token or a message, and nothing more is asked.
PUT_BACK = """([name, text]) => {
  const root = document.querySelector(name);
  return Cloze.sentence.text === text && !Cloze.sentence.marks.size && !root.ariaBusy
    && root.querySelector('[data-role=error]').hidden
    && !root.querySelector('.attn-masked, .attn-token[aria-pressed=true], details[open]')
    && !root.querySelector('[role=switch][aria-checked=true]');
}"""


class Tab:
    """The Attention tab of a page; every action waits until its answer is drawn."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = page = cloze.page
        page.wait_for_function("!!Cloze.openTab")
        page.evaluate("Cloze.openTab('Attention')")
        page.wait_for_selector(f"{ROOT}[data-rev]")

    def start_over(self):
        """Put back what an earlier test has left: switches, table, token, sentence, marks."""
        self.page.mouse.move(0, 0)
        self.page.evaluate(LET_GO, ROOT)
        self.cloze.write(TEXT)
        if self.page.locator("#clear").is_enabled():
            self.page.click("#clear")
        self.page.wait_for_function(PUT_BACK, arg=[ROOT, TEXT])

    def drawn(self, action):
        """Do something that asks Python and wait for the answer on the screen."""
        before = self.page.get_attribute(ROOT, "data-rev")
        action()
        self.page.wait_for_function(
            "([root, before]) => document.querySelector(root).dataset.rev !== before",
            arg=[ROOT, before],
        )

    def select(self, layer, head):
        """Click a thumbnail; numbers from 0, None for a mean."""
        words = "" if layer is None else layer, "" if head is None else head
        cell = self.page.locator('.attn-cells [data-layer="{}"][data-head="{}"]'.format(*words))
        self.drawn(cell.click)

    def read(self, role):
        text = self.page.inner_text(f'{ROOT} [data-role="{role}"]')
        return text.replace("\N{NO-BREAK SPACE}", " ")

    def switch(self, name):
        self.page.locator(ROOT).get_by_role("switch", name=name).click()

    def table(self):
        """The labels and numbers of the table twin."""
        box = self.page.locator(f'{ROOT} [data-role="table-box"]')
        if box.get_attribute("open") is None:
            box.locator("summary").click()
        box.locator("tbody tr").first.wait_for()
        return box.evaluate(
            """box => ({
                labels: [...box.querySelectorAll('tbody th')].map(cell => cell.textContent),
                values: [...box.querySelectorAll('tbody tr')].map(
                    row => [...row.querySelectorAll('td')].map(cell => Number(cell.textContent))),
            })"""
        )

    def token(self, side, position):
        return self.page.locator(f'.attn-token[data-side="{side}"][data-position="{position}"]')


@pytest.fixture
def tab(module_page):
    """The same page for the tests that are not about opening it."""
    tab = Tab(module_page)
    tab.start_over()
    yield tab
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


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (1, 2), (2, None), (None, None)])
def test_numbers_are_those_of_the_trace(tab, trace_of, layer, head):
    tab.select(1, 1)
    tab.select(layer, head)
    expected = viz.head_weights(trace_of(), layer, head)
    shown = np.array(tab.table()["values"])
    np.testing.assert_allclose(shown / 100, expected, atol=6e-5)


def test_a_hidden_word_changes_labels_and_numbers(tab, trace_of):
    tab.select(0, 1)
    tab.drawn(tab.page.locator('.chip[data-position="2"]').click)
    table = tab.table()
    assert table["labels"][2] == "[MASK]"
    shown = np.array(table["values"]) / 100
    np.testing.assert_allclose(shown, trace_of(masks=[2])[0, 1], atol=6e-5)
    assert np.abs(shown - trace_of()[0, 1]).max() > 1e-3
    assert "attn-masked" in tab.token("from", 2).get_attribute("class")


def test_arrow_keys_rove_and_enter_selects(tab):
    tab.select(0, 0)
    press = tab.page.keyboard.press
    assert tab.page.locator('.attn-cells [tabindex="0"]').count() == 1
    tab.page.locator('.attn-cells [tabindex="0"]').focus()
    press("ArrowDown")
    press("ArrowRight")
    press("ArrowRight")
    assert tab.read("title") == "Layer 1 · Head 1"
    assert tab.read("preview").startswith("Layer 2 · Head 3. Strongest link: “")
    tab.drawn(lambda: press("Enter"))
    assert tab.read("title") == "Layer 2 · Head 3"
    assert tab.page.locator('.attn-cells [aria-selected="true"]').count() == 1
    press("End")
    assert tab.read("preview").startswith("Layer 2 · Mean")
    press("Home")
    press("ArrowUp")
    press("ArrowUp")
    assert tab.read("preview").startswith("Layer 1 · Head 1")


def test_the_arrows_beside_the_title_step_through_all_heads(tab):
    tab.select(0, 0)
    tab.drawn(tab.page.locator("[data-action=previous]").click)
    assert tab.read("title") == "Mean over all heads"
    tab.drawn(tab.page.locator("[data-action=next]").click)
    tab.drawn(tab.page.locator("[data-action=next]").click)
    assert tab.read("title") == "Layer 1 · Head 2"


def shares_in(sentence):
    return [float(number) / 100 for number in re.findall(r"([\d.]+)\xa0%", sentence)]


def test_pointing_at_a_token_tells_where_it_looks(tab, trace_of):
    tab.select(1, 0)
    weights = trace_of()[1, 0]
    rest = tab.read("sentence")
    tab.token("from", 2).hover()
    said = tab.read("sentence")
    assert said.startswith("“capital” looks at ")
    best = np.sort(weights[2])[::-1]
    np.testing.assert_allclose(shares_in(said), best[: len(shares_in(said))], atol=6e-3)
    tab.token("to", 2).hover()
    said = tab.read("sentence")
    assert said.startswith("“capital” is looked at by ")
    best = np.sort(weights[:, 2])[::-1]
    np.testing.assert_allclose(shares_in(said), best[: len(shares_in(said))], atol=6e-3)
    tab.page.locator('[data-role="title"]').hover()
    assert tab.read("sentence") == rest


def test_tokens_by_keyboard(tab):
    press = tab.page.keyboard.press
    tab.page.locator('.attn-token[tabindex="0"]').focus()
    press("Home")
    press("ArrowDown")
    assert tab.read("sentence").startswith("“The” looks at ")
    press("ArrowRight")
    assert tab.read("sentence").startswith("“The” is looked at by ")
    press("Enter")
    tab.page.locator("[data-action=next]").focus()
    assert tab.read("sentence").startswith("“The” is looked at by ")
    assert tab.token("to", 1).get_attribute("aria-pressed") == "true"
    tab.token("to", 1).focus()
    press("Escape")
    tab.page.locator("[data-action=next]").focus()
    assert not tab.read("sentence").startswith("“The” is looked at by ")


def test_hiding_special_tokens_removes_them_and_changes_no_number(tab, trace_of):
    tab.select(1, 1)
    tab.switch("Hide [CLS] and [SEP]")
    table = tab.table()
    assert "[CLS]" not in table["labels"]
    assert "[SEP]" not in table["labels"]
    expected = trace_of()[1, 1][1:-1, 1:-1]
    np.testing.assert_allclose(np.array(table["values"]) / 100, expected, atol=6e-5)
    assert "Nothing is re-normalised" in tab.read("hidden-note")
    assert tab.page.locator('.attn-token[data-position="0"]').count() == 0
    tab.switch("Hide [CLS] and [SEP]")
    assert tab.table()["labels"][0] == "[CLS]"


def test_the_heat_map_tells_its_numbers_by_keyboard(tab, trace_of):
    tab.select(0, 3)
    tab.page.locator(f'{ROOT} [data-role="heat"] canvas').focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("ArrowRight")
    weight = viz.percent(float(trace_of()[0, 3][1, 2])).replace("\N{NO-BREAK SPACE}", " ")
    assert tab.read("cell") == f"“The” looks at “capital”: {weight}"


def test_one_question_per_change_and_none_while_the_tab_is_hidden(cloze):
    asked = []
    page = cloze.page
    page.on(
        "request",
        lambda request: '"whole":true' in (request.post_data or "") and asked.append(request),
    )
    page.locator('.chip[data-position="2"]').click()
    page.locator('.chip[data-position="3"]').click()
    cloze.settle()
    assert not asked
    tab = Tab(cloze)
    assert len(asked) == 1
    tab.select(1, 1)
    tab.switch("Each map on its own")
    tab.switch("Hide [CLS]")
    assert len(asked) == 1
    tab.drawn(page.locator('.chip[data-position="4"]').click)
    assert len(asked) == 2


def save(tab, action, folder):
    with tab.page.expect_download() as event:
        tab.page.locator(f'[data-action="{action}"]').click()
    path = folder / event.value.suggested_filename
    event.value.save_as(path)
    return path


def test_files(tab, trace_of, tmp_path):
    tab.select(1, 2)
    numbers = save(tab, "csv", tmp_path)
    assert numbers.name == "attention-layer-2-head-3.csv"
    with numbers.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    again = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    np.testing.assert_allclose(again, trace_of()[1, 2], rtol=1e-4, atol=1e-6)
    drawing = save(tab, "svg", tmp_path)
    assert "capital" in "".join(ElementTree.parse(drawing).getroot().itertext())
    for action in ("png-heat", "png-overview"):
        assert save(tab, action, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_the_code_is_on_the_page(tab):
    tab.select(1, 2)
    code = tab.page.text_content(f'{ROOT} [data-role="code"]')
    assert repr(TEXT) in code
    assert 'trace["probabilities", 1][0, 2]' in code


def test_markup_stays_text(tab):
    text = "<img src=x onerror=alert(1)> ${alert(2)} {{value}} =1+1"
    tab.drawn(lambda: tab.page.fill("#sentence-text textarea", text))
    tab.table()
    assert tab.page.locator(f"{ROOT} img").count() == 0
    shown = tab.page.locator(".attn-column-from .attn-token > text").all_text_contents()
    assert "<" in shown


def test_no_text_is_a_message_and_the_next_text_is_drawn(tab):
    tab.page.fill("#sentence-text textarea", "   ")
    tab.page.wait_for_selector(f'{ROOT} [data-role="error"]:visible')
    assert tab.page.locator(".attn-body").is_hidden()
    tab.drawn(lambda: tab.page.fill("#sentence-text textarea", "Bees make honey ."))
    assert tab.page.locator(".attn-body").is_visible()
    assert tab.page.locator(f'{ROOT} [data-role="error"]').is_hidden()


def test_long_sentences_are_shrunk_and_say_so(tab):
    tab.drawn(lambda: tab.page.fill("#sentence-text textarea", "bees make honey " * 300))
    assert "shrunk to 48 × 48" in tab.read("shape")
    lines = tab.page.locator(".attn-links path").count()
    assert lines <= 601
    tab.select(0, 1)
    assert tab.read("title") == "Layer 1 · Head 2"
    tab.drawn(lambda: tab.switch("Hide [CLS]"))
    assert tab.page.locator('.attn-token[data-position="0"]').count() == 0


def test_a_single_token(tab):
    tab.drawn(lambda: tab.page.fill("#sentence-text textarea", "."))
    tab.switch("Hide [CLS]")
    assert tab.page.locator(".attn-column-from .attn-token").count() == 1


def test_the_theme_repaints_the_canvases(tab):
    colour = """() => {
        const canvas = document.querySelector('.attn-thumbs canvas');
        const at = document.querySelector('.attn-cells [data-layer="0"][data-head="0"]');
        const ratio = canvas.width / parseFloat(canvas.style.width);
        const [x, y] = [at.style.left, at.style.top].map(v => (parseFloat(v) + 2) * ratio);
        return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data];
    }"""
    before = tab.page.evaluate(colour)
    tab.page.locator("#theme-switch").click()
    tab.page.wait_for_function(f"before => String(({colour})()) !== String(before)", arg=before)
    tab.page.locator("#theme-switch").click()
    tab.page.wait_for_function(f"before => String(({colour})()) === String(before)", arg=before)


def test_a_phone_shows_it_without_scrolling_sideways(visit):
    tab = Tab(visit(width=390, height=844, dark=True))
    for dark, head in ((True, 1), (False, 2)):
        tab.page.emulate_media(color_scheme="dark" if dark else "light")
        tab.page.wait_for_function("dark => Cloze.dark() === dark", arg=dark)
        assert tab.cloze.overflow() <= 0, dark
        tab.select(1, head)
        assert tab.read("title") == f"Layer 2 · Head {head + 1}"
        assert tab.cloze.overflow() <= 0, dark
