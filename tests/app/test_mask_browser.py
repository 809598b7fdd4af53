"""The sections of the Mask tab in Chromium: closed and silent, opened, tried, chosen, saved."""

import math

import pytest

READY = """name => {
  const view = document.querySelector(`.view-mask-${name}`).dataset;
  return view.state === 'ready' && view.rev === view.asked;
}"""
NAMES = ("together", "word", "layers", "models")


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


def saved(cloze, name, button):
    with cloze.page.expect_download() as download:
        lab(cloze, name).locator(button).click()
    return download.value.path().read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_each_section_opens_tries_and_fits(visit, width, dark):
    cloze = visit(width, dark=dark)
    for name in NAMES:
        open_lab(cloze, name)
        assert lab(cloze, name).locator(".lab-output").inner_text().strip()
        assert cloze.overflow() <= 0
        assert lab(cloze, name).locator(".problem").is_hidden()
    assert saved(cloze, "together", ".save-csv").startswith("way,filling")
    assert saved(cloze, "layers", ".save-svg").startswith("<svg")


def test_nothing_is_asked_while_closed(cloze):
    events = []
    cloze.page.on("request", lambda request: events.append(request.url))
    cloze.at(6).click()
    cloze.settle()
    assert sum("queue/join" in url for url in events) == 1
    assert not [url for url in events if "mask-sections" in url]
    for name in NAMES:
        assert cloze.page.locator(f".view-mask-{name}").get_attribute("data-asked") is None


def test_together_follows_the_sentence(cloze, model):
    open_lab(cloze, "together")
    rows = lab(cloze, "together").locator("tbody tr")
    assert rows.count() == 5
    assert "tehran" in lab(cloze, "together").locator(".summary[role=status]").inner_text()
    cloze.at(4).click()
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
    cloze.at(6).click()
    ready(cloze, "word")
    choose = lab(cloze, "word").locator("select")
    choose.select_option("6")
    lab(cloze, "word").locator("tr.own[data-word='mountain']").wait_for()


def test_the_chart_and_its_table_hold_the_same_lines(cloze, model):
    open_lab(cloze, "layers")
    section = lab(cloze, "layers")
    steps = len(model.config.schedule) + 1
    lines = section.locator("polyline")
    assert section.locator("tbody tr[data-piece]").count() == lines.count() >= 3
    assert len(lines.first.get_attribute("points").split()) == steps
    first = section.locator("tbody tr[data-piece]").first.locator("td")
    assert first.count() == steps
    assert first.last.inner_text() == "1"


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
    assert "fill_jointly(model, text, masks=[1, 6]" in code
