"""The sections of the Mask tab in Chromium: closed and silent, opened, tried, chosen, saved."""

import json
import math
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from app.serving import draws
from tests.app.one_page import renewed

READY = """name => {
  const view = document.querySelector(`.view-mask-${name}`).dataset;
  return view.state === 'ready' && view.rev === view.asked;
}"""
NAMES = ("together", "word", "models")


@pytest.fixture
def cloze(module_page):
    """The same page for the tests that are not about opening it; its sections are closed."""
    fold = module_page.page.get_by_role("button", name="Layer by layer")
    if opened(fold):
        fold.click()
    yield from renewed(module_page)


def lab(cloze, name):
    return cloze.page.locator(f"#lab-{name}")


def ready(cloze, name):
    cloze.page.wait_for_function(READY, arg=name)


def open_lab(cloze, name, nth=0):
    """Open a section from the keyboard and set its example up."""
    lab(cloze, name).locator("summary").first.focus()
    cloze.page.keyboard.press("Enter")
    lab(cloze, name).locator(".lab-try").nth(nth).click()
    cloze.page.wait_for_function("Cloze.sentence.marks.size > 0")
    cloze.settle()
    ready(cloze, name)


def unfold(cloze, title):
    fold = cloze.page.get_by_role("button", name=title)
    if not opened(fold):
        fold.click()


def opened(fold) -> bool:
    return fold.evaluate("each => each.classList.contains('open')")


def saved(cloze, name, button):
    with cloze.page.expect_download() as download:
        lab(cloze, name).locator(button).click()
    return download.value.path().read_text(encoding="utf-8")


def open_all(cloze):
    for name in NAMES:
        open_lab(cloze, name)
        assert lab(cloze, name).locator(".lab-output").inner_text().strip()
        assert cloze.overflow() <= 0
        assert lab(cloze, name).locator(".problem").is_hidden()
        assert "," in saved(cloze, name, ".save-csv")
        assert saved(cloze, name, ".save-svg").startswith("<svg")
    with cloze.page.expect_download() as download:
        lab(cloze, "models").locator(".save-png").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    unfold(cloze, "Layer by layer")
    cloze.page.get_by_role("radio", name="Snow", exact=True).check()
    expect(cloze.page.get_by_text("the mountains are covered with [?]")).to_be_visible(
        timeout=30_000
    )
    cloze.settle()
    assert cloze.overflow() <= 0


def test_each_section_opens_tries_and_fits(cloze):
    open_all(cloze)


def test_each_section_opens_tries_and_fits_on_a_dark_phone(visit):
    open_all(visit(390, dark=True))


def test_nothing_is_asked_while_closed(visit):
    cloze = visit()
    events = []
    cloze.hear("request", lambda request: events.append(request.url))
    cloze.at(6).click()
    cloze.settle()
    assert sum("/gradio_api/run/" in url for url in events) == 1
    assert not [url for url in events if "/queue/" in url], "answers need no queue"
    assert not [url for url in events if "mask-sections" in url]
    for name in NAMES:
        assert cloze.page.locator(f".view-mask-{name}").get_attribute("data-asked") is None


def test_together_follows_the_sentence(cloze, model):
    open_lab(cloze, "together")
    rows = lab(cloze, "together").locator("tbody tr")
    assert rows.count() == 5
    assert "bangkok" in lab(cloze, "together").locator(".summary[role=status]").inner_text()
    cloze.at(2).click()
    cloze.settle()
    ready(cloze, "together")
    assert rows.first.locator(".lab-word").count() == 3


def test_words_and_gaps_are_chosen(cloze):
    open_lab(cloze, "word")
    lab(cloze, "word").locator(".lab-words").fill("lake, chrysanthemums")
    lab(cloze, "word").locator("tr[data-word='lake']").wait_for()
    assert lab(cloze, "word").locator("tbody tr").count() == 3
    pieces = lab(cloze, "word").locator("tr[data-word='chrysanthemums'] .lab-piece")
    assert pieces.count() > 3
    cloze.at(2).click()
    ready(cloze, "word")
    choose = lab(cloze, "word").locator("select")
    choose.select_option("2")
    lab(cloze, "word").locator("tr.own[data-word='language']").wait_for()


def test_the_chart_and_its_table_hold_the_same_lines(cloze, model):
    unfold(cloze, "Layer by layer")
    cloze.page.get_by_role("radio", name="Paris", exact=True).check()
    expect(cloze.page.get_by_text("The capital of France is [?]")).to_be_visible()
    cloze.settle()
    *rows, best = cloze.numbers("#mask-layers")
    lines, chances = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    steps = len(model.config.schedule) + 1
    assert len(lines) >= 3
    assert {len(line) for line in (*rows, best)} == {1 + steps}
    assert all(0 <= chance <= 1 for _, *line in chances for chance in line)
    first = next(line for line in lines if line[-1] == 1)
    assert first[0] == best[-1]
    names = cloze.page.locator("#mask-layers .legendtext").all_text_contents()
    assert len(names) == len(lines)
    cloze.page.get_by_role("textbox", name="Rivals").fill("lake")
    expect(cloze.page.get_by_text("“lake”, a word of your own").first).to_be_visible()
    cloze.write("A lake.")
    problem = cloze.page.get_by_text("Nothing is hidden yet. Click a word").last
    expect(problem).to_be_visible()
    expect(cloze.page.locator("#mask-layers figure")).to_be_hidden()


@pytest.mark.parametrize("at", [6, "#6"])
def test_a_link_opens_the_layers_with_its_words_and_its_gap(visit, at):
    state = quote(json.dumps({"open": True, "words": "london, cat", "at": at}))
    cloze = visit(link=f"#text=The+capital+of+France+is+Paris.&marks=4.6&lab-mask-layers={state}")
    expect(cloze.page.get_by_text("The capital of [MASK] is [?]")).to_be_visible()
    expect(cloze.page.get_by_text("“cat”, a word of your own").first).to_be_visible()
    assert cloze.page.get_by_label("Gap", exact=True).input_value() == "Paris (6)"
    cloze.page.get_by_role("button", name="Layer by layer").click()
    cloze.page.wait_for_function("Cloze.kept('mask-layers')?.open === undefined")


def test_a_model_can_be_left_out_and_taken_again(cloze, session):
    open_lab(cloze, "models")
    section = lab(cloze, "models")
    card = section.locator("[data-model='bert-mini']")
    shares = card.locator(".share").all_inner_texts()
    rows = cloze.rows(1)
    assert shares[:5] == [share for _, share in rows]
    assert all(math.isfinite(float(share.split()[0])) for share in shares if "×" not in share)
    section.locator("[data-name='bert-mini']").click()
    card.wait_for(state="detached")
    section.locator("[data-name='bert-mini']").click()
    card.wait_for()


def test_an_error_is_said_and_passes(cloze):
    open_lab(cloze, "together")
    cloze.write("[MASK] " * 20)
    problem = lab(cloze, "together").locator(".problem")
    problem.wait_for()
    assert "at most 16" in problem.inner_text()
    cloze.write("The [MASK] is [MASK].")
    ready(cloze, "together")
    assert problem.is_hidden()
    cloze.write("The lake is cold.")
    lab(cloze, "together").locator(".lab-empty").wait_for()


def test_the_code_is_there_to_copy(cloze):
    open_lab(cloze, "together")
    section = lab(cloze, "together")
    section.locator(".lab-foot summary").click()
    code = section.locator(".lab-foot .code").inner_text()
    assert "fill_jointly(model, text, masks=[4, 6]" in code


def test_the_predictions_are_saved_as_a_picture(cloze):
    cloze.at(6).click()
    cloze.settle()
    rows = cloze.rows(6)
    with cloze.page.expect_download() as download:
        cloze.page.click("#save-svg")
    text = download.value.path().read_text("utf-8")
    assert text.startswith("<svg")
    assert f"1  {rows[0][0]}" in text
    with cloze.page.expect_download() as download:
        cloze.page.click("#save-png")
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    cloze.settle()


def test_who_looks_at_whom_is_drawn(cloze):
    open_lab(cloze, "models")
    grid = lab(cloze, "models").locator("[data-model='bert-mini'] .lab-sight")
    assert grid.locator(".seen").count() == 49
    assert grid.locator(".read").count() == 1
    assert "“capital”" in grid.get_attribute("aria-label")


def test_a_link_restores_the_sections(cloze, visit):
    open_lab(cloze, "word")
    lab(cloze, "word").locator(".lab-words").fill("lake, desert")
    lab(cloze, "word").locator("tr[data-word='lake']").wait_for()
    cloze.at(2).click()
    ready(cloze, "word")
    lab(cloze, "word").locator("select").select_option("2")
    lab(cloze, "word").locator("tr.own[data-word='language']").wait_for()
    link = cloze.page.evaluate("location.hash")
    other = visit(link=link)
    lab(other, "word").locator("tr.own[data-word='language']").wait_for()
    assert other.page.input_value("#lab-word .lab-words") == "lake, desert"
    assert other.page.input_value("#lab-word select") == "2"
    assert not opened(other.page.get_by_role("button", name="Layer by layer"))


STRANGE = (
    '{"open":true,"at":-3,"models":["bert-mini",7],"words":{"a":1}}',
    '{"open":true,"at":1e9,"models":"x","words":"' + "a," * 999 + '"}',
    '{"open":"yes","at":null}',
    "[1]",
    "{",
)


@pytest.mark.parametrize("state", STRANGE, ids=range(len(STRANGE)))
def test_a_strange_link_leaves_the_page_usable(visit, state):
    text = quote("Madrid is the capital of Spain.")
    sections = ("word", "models", "layers", "draw")
    names = "".join(f"&lab-mask-{name}={quote(state)}" for name in sections)
    cloze = visit(link=f"#text={text}&marks=1{names}")
    cloze.page.wait_for_function("Cloze.sentence.marks.size === 1")
    cloze.settle()
    assert cloze.page.input_value("#draw-kind") == "uniform"
    if "true" in state:
        ready(cloze, "models")
    cloze.at(6).click()
    cloze.settle()
    assert cloze.marked() == [1, 6]


LONG = "The moon goes round the earth, and the earth goes round the sun in a year. " * 3


def lengths(cloze) -> list[int]:
    """Runs of each length as drawn."""
    columns = cloze.page.locator("#draw-lengths .column").all()
    return [int(column.get_attribute("data-count")) for column in columns]


def test_spans_are_drawn_with_their_lengths(cloze, session, visit):
    cloze.write(LONG)
    cloze.unfold("Options")
    cloze.page.select_option("#draw-kind", "span")
    cloze.page.select_option("#draw-rate", "30")
    cloze.page.fill("#sentence-seed input", "7")
    cloze.page.click("#draw")
    cloze.page.wait_for_selector("#draw-lengths")
    cloze.settle()
    sentence = session.sentence(LONG, "bert-mini")
    model = session.model("bert-mini")
    expected = draws.draw(model, sentence, seed=7, rate=0.3, kind="span")
    assert cloze.marked() == [mark.position for mark in expected.marks]
    counts = [expected.lengths.count(n) for n in range(1, 11)]
    assert lengths(cloze) == counts
    law = cloze.page.locator("#draw-lengths .law").first.evaluate("bar => bar.offsetHeight")
    second = cloze.page.locator("#draw-lengths .law").nth(1).evaluate("bar => bar.offsetHeight")
    assert second / law == pytest.approx(0.8, abs=0.1)
    other = visit(link=cloze.page.evaluate("location.hash"))
    other.page.wait_for_selector("#draw-lengths")
    assert lengths(other) == counts
    assert other.marked() == cloze.marked()
    assert other.page.input_value("#sentence-seed input") == "7"
    other.settle()
    cloze.at(1 if 1 not in cloze.marked() else 2).click()
    cloze.page.wait_for_selector("#draw-lengths", state="hidden")
    cloze.page.select_option("#draw-kind", "uniform")
    cloze.page.click("#draw")
    cloze.page.wait_for_function("Cloze.sentence.marks.size > 5")
    assert cloze.page.locator("#draw-lengths").is_hidden()
    cloze.settle()
