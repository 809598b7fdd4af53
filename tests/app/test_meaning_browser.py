"""The Meaning tab in Chromium: paths, layers, edits, neighbours, files, languages."""

import json
from urllib.parse import quote

import pytest

from core_models import meaning
from tests.app.one_page import start_over

ROOT = ".view-meaning"
READY = """() => {
  const view = document.querySelector('.view-meaning').dataset;
  return view.state === 'ready' && view.rev === view.asked;
}"""
NEAR = """() => {
  const near = document.querySelector('#mn-near [data-asked]')?.dataset ?? {};
  return near.rev && near.rev === near.asked;
}"""
MARKS = """() => document.querySelector('#mn-path .js-plotly-plot').data
  .filter(({ mode }) => mode === 'markers+text').map(({ x, y }) => [x[0], y[0]])"""
RANGES = """() => {
  const { xaxis, yaxis } = document.querySelector('#mn-path .js-plotly-plot')._fullLayout;
  return [xaxis.range, yaxis.range];
}"""
START = """() => {
  const find = (selector) => document.querySelector(`.view-meaning ${selector}`);
  const layer = find('#mn-layer');
  layer.value = layer.max;
  layer.dispatchEvent(new Event('input'));
  find('[data-value=centred]').click();
  if (find('#mn-others').getAttribute('aria-checked') === 'true') find('#mn-others').click();
  find('[data-try=bank]').click();
}"""
TEXT = "#text=The+old+bank+was+closed.&model=bert-mini&tab=meaning"


def settle(page):
    page.wait_for_function(READY)


@pytest.fixture
def tab(module_page):
    """One page for most of these tests, with the first example at its last layer."""
    page = module_page.page
    page.evaluate("Cloze.openTab('Meaning')")
    page.wait_for_selector(f"{ROOT}[data-asked]")
    start_over(module_page, text="The old bank was closed.")
    settle(page)
    page.evaluate(START)
    settle(page)
    yield module_page
    assert module_page.problems == []


def marks(cloze):
    cloze.numbers("#mn-path")
    return [tuple(point) for point in cloze.page.evaluate(MARKS)]


def wait_for_marks(page, count):
    page.wait_for_function(f"count => ({MARKS})().length === count", arg=count)


def test_an_example_follows_the_language_of_the_model(tab):
    page = tab.page
    first = f"{ROOT} .mn-rows textarea >> nth=0"
    page.evaluate(
        "Cloze.change({ model: 'elsewhere', card: { ...Cloze.sentence.card, language: 'zh' } })"
    )
    assert "花" in page.input_value(first)
    assert page.input_value("#mn-word") == "花"
    page.fill("#mn-word", "束")
    page.evaluate(
        "Cloze.change({ model: 'another', card: { ...Cloze.sentence.card, language: 'en' } })"
    )
    assert "花" in page.input_value(first), "what the visitor wrote stays"
    page.fill("#mn-word", "花")
    page.evaluate(
        "Cloze.change({ model: 'bert-mini', card: { ...Cloze.sentence.card, language: 'en' } })"
    )
    settle(page)
    assert "bank" in page.input_value(first)


def test_layers_move_the_marks_and_not_the_axes(tab, session):
    page = tab.page
    last = marks(tab)
    whole = page.evaluate(RANGES)
    assert len(set(last)) == 4
    page.locator("#mn-layer").focus()
    page.keyboard.press("Home")
    assert page.inner_text(f"{ROOT} .mn-layer") == "Static embedding"
    assert len(set(marks(tab))) == 1  # the common start
    assert "one vector for all" in page.inner_text("#mn-alike .summary")
    assert page.evaluate(RANGES) == [pytest.approx(ends, abs=1e-6) for ends in whole]
    page.keyboard.press("End")
    assert marks(tab) == last
    model = session.model("bert-mini")
    texts = page.locator(f"{ROOT} .mn-rows textarea").evaluate_all("all => all.map(e => e.value)")
    encodings = model.encode(texts)
    places = [
        (row, meaning.pieces_at(encoding, *meaning.find_word(text, "bank")))
        for row, (text, encoding) in enumerate(zip(texts, encodings, strict=True))
    ]
    at = meaning.word_vectors(model, encodings, places)[:, -1]
    table = meaning.cosines(at, at)
    cells = page.locator("#mn-alike .mn-cosines tbody td")
    assert cells.count() == 16
    shown = cells.evaluate_all("cells => cells.map(cell => Number(cell.dataset.raw))")
    assert shown == pytest.approx(table.flatten().tolist(), abs=1e-3)


def test_edits_neighbours_and_files(tab):
    page = tab.page
    page.wait_for_function(NEAR, timeout=60_000)
    assert len(tab.numbers("#mn-near")) == 12
    page.click("#mn-others")
    page.wait_for_function(NEAR)
    assert "bank" not in [word for _, word, *_ in tab.numbers("#mn-near")]
    page.click("#mn-take")
    wait_for_marks(page, 5)
    page.locator(f"{ROOT} .mn-rows textarea").nth(0).fill("<img src=x onerror=alert(1)> ${1}")
    wait_for_marks(page, 4)
    assert "does not hold" in page.locator(f"{ROOT} .mn-missing").nth(0).inner_text()
    assert page.locator(f"{ROOT} img").count() == 0
    assert len(tab.numbers("#mn-path")) == 4 * 6
    assert len(tab.numbers("#mn-alike")) == 6
    page.fill("#mn-word", "zebra")
    page.wait_for_selector(f'{ROOT}[data-state="error"]')
    assert "“zebra” stands in 0" in page.inner_text(f"{ROOT} .problem")
    page.click(f'{ROOT} [data-try="spring"]')
    settle(page)
    assert page.locator(f"{ROOT} .problem").is_hidden()


def test_a_link_restores_the_lab(tab, visit):
    page = tab.page
    page.click(f'{ROOT} [data-try="light"]')
    settle(page)
    page.click('[data-value="raw"]')
    page.locator("#mn-layer").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.click(f'{ROOT} .mn-row [data-value="2"]')
    address = page.evaluate("location.hash")
    visited = visit(link=address)
    other = visited.page
    settle(other)
    assert other.input_value("#mn-word") == "light"
    assert other.input_value("#mn-layer") == "1"
    assert other.get_attribute('[data-value="raw"]', "aria-checked") == "true"
    assert other.get_attribute(f'{ROOT} .mn-row [data-value="2"]', "aria-checked") == "true"
    assert marks(visited) == marks(tab)


def test_narrow_in_chinese_nothing_sticks_out_or_stays_english(visit):
    # Anything may stand in a link.
    state = {
        "word": 3,
        "sentences": [{}],
        "layer": "x",
        "way": [],
        "which": -1,
        "example": "__proto__",
    }
    link = f"?lang=zh{TEXT}&lab-meaning={quote(json.dumps(state))}"
    cloze = visit(width=390, dark=True, link=link)
    page = cloze.page
    settle(page)
    assert page.input_value("#mn-word") == "bank"
    page.wait_for_function(NEAR, timeout=60_000)
    page.evaluate("document.querySelectorAll('.view-meaning details').forEach(d => d.open = true)")
    page.fill("#mn-word", "zebra")
    page.wait_for_selector(f'{ROOT}[data-state="error"]')
    for theme in ("dark", "light"):
        page.evaluate("theme => Cloze.setTheme(theme)", theme)
        assert cloze.overflow() <= 0, theme
    missing = set(page.evaluate("[...ClozeLanguage.missing]"))
    assert {text for text in missing if text.isascii()} == set()
