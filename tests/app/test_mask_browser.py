"""The sections of the Mask tab in Chromium: closed and silent, opened, tried, chosen, saved."""

import json
import os
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from app.labs.mask.lab import LOOKS
from app.labs.mask.said import WAYS
from app.serving import draws
from core_models.prediction import fill
from tests.app.held import Held
from tests.app.one_lab import OneLab
from tests.app.one_page import renewed
from tests.app.test_mask_pictures import small
from tests.app.visitors import PAINTED, take

TITLES = {look.name: look.title for look in LOOKS}
CHARTS = {name: f"#mask-{name}" for name in TITLES}
LEFT = "from-the-left"
NAMED = """([root, word]) => document.querySelector(`${root} .js-plotly-plot`)
  ?.layout.meta.rows.some((row) => row[0] === word)"""


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory, session):
    """A tiny model that reads from the left, known to the page while this module runs."""
    folder = tmp_path_factory.mktemp("from-the-left")
    small("bert-tiny", "causal", "left").save(folder / LEFT)
    before = os.environ.get("CLOZE_MODELS")
    os.environ["CLOZE_MODELS"] = os.pathsep.join(filter(None, [before, str(folder)]))
    session._infos = {}
    yield
    session._infos = {}
    del os.environ["CLOZE_MODELS"]
    if before is not None:
        os.environ["CLOZE_MODELS"] = before


class Lab(OneLab):
    """The Mask lab of a page, with its folds by name."""

    lab, heading = "mask", "What fits the gap?"

    def fold(self, name):
        title = self.page.get_by_role("button", name=self.named(TITLES[name]))
        return self.panel.locator(".block").filter(has=title).last

    def opened(self, name):
        title = self.page.get_by_role("button", name=self.named(TITLES[name]))
        return title.evaluate("each => each.classList.contains('open')")

    def open(self, name, example=None):
        """Open a fold, and set an example of it up."""
        self.unfold(TITLES[name])
        self.cloze.rest()
        if example:
            self.fold(name).get_by_role("radio", name=example, exact=True).check()
            self.cloze.rest()
        return self.fold(name)

    def numbers(self, name):
        return self.cloze.numbers(CHARTS[name])

    def names(self, name, word):
        """Wait until a chart has a row of this word."""
        self.page.wait_for_function(NAMED, arg=[CHARTS[name], word])


@pytest.fixture
def lab(module_page):
    """The same page for the tests that are not about opening it; its folds are closed."""
    found = Lab(module_page)
    for name, title in TITLES.items():
        if found.opened(name):
            module_page.page.get_by_role("button", name=title).click()
    for cloze in renewed(module_page):
        cloze.settle()
        yield found


@pytest.fixture
def cloze(lab):
    """The page of the lab."""
    return lab.cloze


def open_all(lab):
    for look in LOOKS:
        fold = lab.open(look.name, next(iter(look.tries)))
        assert lab.numbers(look.name)
        assert lab.cloze.overflow() <= 0
        assert fold.locator(".problem:visible").count() == 0  # at once
        chart = lab.page.locator(CHARTS[look.name])
        chart.get_by_text("The numbers").click()
        with lab.page.expect_download() as download:
            chart.get_by_role("button", name="Save as CSV").click()
        assert "," in download.value.path().read_text("utf-8-sig")


@pytest.mark.slow
def test_each_fold_opens_tries_and_fits(lab):
    open_all(lab)


@pytest.mark.slow
def test_each_fold_opens_tries_and_fits_on_a_dark_phone(visit):
    open_all(Lab(visit(390, dark=True)))


@pytest.mark.slow
def test_nothing_is_asked_while_closed(visit):
    cloze = visit()
    cloze.rest()
    events = []
    cloze.hear("request", lambda request: events.append(request.url))
    cloze.at(6).click()
    cloze.settle()
    cloze.rest()
    assert sum("/gradio_api/run/" in url for url in events) == 1
    assert not [url for url in events if "/queue/" in url], "answers need no queue"


def test_an_example_stays_chosen_while_its_text_is_on_its_way(lab):
    """The sentence before it may change meanwhile: a word of it is shown, a model answers."""
    look = next(look for look in LOOKS if look.name == "together")
    name, text = next((name, each["text"]) for name, each in look.tries.items())
    lab.cloze.write("A cat sat on the mat.")
    held = Held(lab.page, "/run/predict", lambda request: text in (request.post_data or ""))
    example = lab.open("together").get_by_role("radio", name=name, exact=True)
    example.check()
    held.wait()
    lab.cloze.at(2).click()
    lab.page.evaluate(PAINTED)
    expect(example).to_be_checked()
    held.end()
    lab.cloze.rest()
    expect(example).to_be_checked()
    lab.cloze.at(2).click()
    expect(example).not_to_be_checked()


@pytest.mark.slow
def test_together_follows_the_sentence(lab, model):
    lab.open("together", "A capital and its country")
    found = fill(model, "The capital of France is Paris.", masks=[4, 6], top_k=1).predictions
    best = " … ".join(each.candidates[0].display for each in found)
    lab.page.get_by_text(f"Filled independently the gaps read “{best}”").wait_for()
    ways = list(map(str, WAYS.values()))
    assert [row[0] for row in lab.numbers("together")] == ways
    filled = [row[1] for row in lab.numbers("together")]
    assert filled[-1] == "france … paris"
    lab.cloze.at(2).click()
    lab.page.wait_for_function(
        """() => document.querySelector('#mask-together .js-plotly-plot')
          .layout.meta.rows.at(-1)[1].split('…').length === 3"""
    )


def test_words_and_gaps_are_chosen(lab):
    fold = lab.open("word", "Bulgarian")
    fold.get_by_role("textbox", name="Words").fill("lake, chrysanthemums")
    lab.names("word", "chrysanthemums")
    rows = lab.numbers("word")
    assert {row[0] for row in rows} == {"Bulgarian", "lake", "chrysanthemums"}
    assert len([row for row in rows if row[0] == "chrysanthemums"]) > 3
    lab.cloze.at(2).click()
    lab.cloze.rest()
    take(fold.get_by_label("Gap", exact=True), "language (2)", exact=True)
    lab.names("word", "language")


def test_the_chart_and_its_table_hold_the_same_lines(lab, cloze, model):
    lab.open("layers", "Paris")
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
    expect(cloze.page.locator("#mask-layers .legendtext")).to_have_count(len(lines))
    cloze.page.get_by_role("textbox", name="Rivals").fill("lake")
    expect(cloze.page.get_by_text("“lake”, a word of your own").first).to_be_visible()
    cloze.write("A lake.")
    problem = cloze.page.get_by_text("Nothing is hidden yet. Click a word").last
    expect(problem).to_be_visible()
    expect(cloze.page.locator("#mask-layers figure")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("at", [6, "#6"])
def test_a_link_opens_the_layers_with_its_words_and_its_gap(visit, at):
    state = quote(json.dumps({"open": True, "words": "london, cat", "at": at}))
    cloze = visit(link=f"#text=The+capital+of+France+is+Paris.&marks=4.6&lab-mask-layers={state}")
    expect(cloze.page.get_by_text("The capital of [MASK] is [?]")).to_be_visible()
    expect(cloze.page.get_by_text("“cat”, a word of your own").first).to_be_visible()
    expect(cloze.page.get_by_label("Gap", exact=True)).to_have_value("Paris (6)")
    cloze.page.get_by_role("button", name="Layer by layer").click()
    cloze.page.wait_for_function("Cloze.kept('mask-layers')?.open === undefined")


@pytest.mark.slow
def test_models_stand_side_by_side_and_are_chosen(lab, session):
    fold = lab.open("models", "The end tells")
    for name in ("bert-mini", LEFT):
        lab.page.get_by_role("group", name=f"{name}: its answers for the gap.").wait_for()
    fold.get_by_text("The same gap, but not the same question").wait_for()
    rows = lab.cloze.numbers("#mask-model-0")
    shown = [share.split()[0] for _, share in lab.cloze.rows(1)]
    said = [100 * row[1] for row in rows[:5]]
    assert said == pytest.approx(list(map(float, shown)), rel=0.06)
    chosen = fold.get_by_label("Models, up to 4")
    fold.locator(".token", has_text="bert-mini").get_by_role("button").click()
    lab.cloze.rest()
    lab.page.wait_for_function("Cloze.kept('mask-models').models?.length === 1")
    expect(lab.page.locator("#mask-model-1 .figure")).to_be_hidden()
    take(chosen, "bert-mini", exact=True)
    lab.cloze.rest()
    assert lab.cloze.numbers("#mask-model-1")[0] == rows[0]
    assert lab.cloze.numbers("#mask-models")[-1][0] == "Pseudo-perplexity"
    # As it was, for the next test.
    fold.locator(".token", has_text=LEFT).get_by_role("button").click()
    lab.cloze.rest()
    take(chosen, LEFT, exact=True)
    lab.cloze.rest()


def test_who_looks_at_whom_is_drawn(lab):
    lab.open("models", "The end tells")
    seen = [row[1:] for row in lab.cloze.numbers("#mask-sight-0")]
    assert seen == [["1"] * 7] * 7
    lab.panel.get_by_text("The prediction is read at the gap, which looks at “is”").wait_for()


@pytest.mark.slow
def test_an_error_is_said_and_passes(lab):
    fold = lab.open("together", "A capital and its country")
    lab.cloze.write("[MASK] " * 20)
    fold.get_by_text("at most 16").wait_for()
    expect(lab.page.locator("#mask-together .figure")).to_be_hidden()
    lab.cloze.write("The [MASK] is [MASK].")
    expect(fold.get_by_text("at most 16")).to_be_hidden()
    assert len(lab.numbers("together")) == 4
    lab.cloze.write("The lake is cold.")
    fold.get_by_text("There is no gap to fill").wait_for()


def test_the_keyboard_goes_on_at_the_word_that_it_has_hidden(cloze):
    cloze.page.get_by_role("button", name="hide “Paris”").press("Enter")
    expect(cloze.chip("[MASK] Paris hidden")).to_be_focused()
    cloze.settle()


SAID = """() => { window.said = 0;
  new MutationObserver(() => { said += 1; })
    .observe(document.querySelector('.view-predictions .summary'), { childList: true }); }"""


def test_what_has_been_said_of_the_gaps_is_not_said_again_while_a_word_is_written(cloze):
    cloze.at(6).click()
    cloze.settle()
    cloze.page.evaluate(SAID)
    cloze.page.get_by_role("textbox", name="Your word for Paris").press_sequentially("london")
    expect(cloze.page.locator(".candidate.mine .share")).to_contain_text("%")
    cloze.rest()
    assert cloze.page.evaluate("said") == 0


def test_the_code_is_there_to_copy(lab):
    fold = lab.open("together", "A capital and its country")
    fold.get_by_text("The code that recomputes this").click()
    code = fold.get_by_role("region", name="The code that recomputes this")
    expect(code).to_contain_text("fill_jointly(model, text, masks=[4, 6]")


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


@pytest.mark.slow
def test_a_link_restores_the_folds(lab, visit):
    fold = lab.open("word", "Bulgarian")
    fold.get_by_role("textbox", name="Words").fill("lake, desert")
    lab.cloze.at(2).click()
    lab.cloze.rest()
    take(fold.get_by_label("Gap", exact=True), "language (2)", exact=True)
    lab.names("word", "language")
    rows = lab.numbers("word")
    assert {row[0] for row in rows} == {"language", "lake", "desert"}
    other = Lab(visit(link=lab.page.evaluate("location.hash")))
    other.cloze.rest()
    assert other.numbers("word") == rows
    there = other.fold("word")
    expect(there.get_by_role("textbox", name="Words")).to_have_value("lake, desert")
    expect(there.get_by_label("Gap", exact=True)).to_have_value("language (2)")
    assert not other.opened("layers")


@pytest.mark.slow
def test_an_old_link_opens_several_models(visit):
    state = quote(json.dumps({"open": True, "at": 6, "models": ["bert-mini", "no-such"]}))
    link = f"#text=The+capital+of+France+is+Paris.&marks=4.6&lab-mask-models={state}"
    lab = Lab(visit(link=link))
    lab.cloze.rest()
    expect(lab.fold("models").get_by_label("Gap", exact=True)).to_have_value("Paris (6)")
    assert lab.cloze.numbers("#mask-model-0")[0][0].startswith("1 ")
    expect(lab.page.locator("#mask-model-1 .figure")).to_be_hidden()


STRANGE = (
    '{"open":true,"at":-3,"models":["bert-mini",7],"words":{"a":1}}',
    '{"open":true,"at":1e9,"models":"x","words":"' + "a," * 999 + '"}',
    '{"open":"yes","at":null}',
    "[1]",
    "{",
)


@pytest.mark.slow
@pytest.mark.parametrize("state", STRANGE, ids=range(len(STRANGE)))
def test_a_strange_link_leaves_the_page_usable(visit, state):
    text = quote("Madrid is the capital of Spain.")
    sections = ("word", "models", "layers", "draw")
    names = "".join(f"&lab-mask-{name}={quote(state)}" for name in sections)
    cloze = visit(link=f"#text={text}&marks=1{names}")
    cloze.page.wait_for_function("Cloze.sentence.marks.size === 1")
    cloze.settle()
    expect(cloze.page.locator("#draw-kind")).to_have_value("uniform")
    if "true" in state:
        lab = Lab(cloze)
        cloze.rest()
        assert lab.opened("word")
    cloze.at(6).click()
    cloze.settle()
    assert cloze.marked() == [1, 6]


LONG = "The moon goes round the earth, and the earth goes round the sun in a year. " * 3


def lengths(cloze) -> list[int]:
    """Runs of each length as drawn."""
    columns = cloze.page.locator("#draw-lengths .column").all()
    return [int(column.get_attribute("data-count")) for column in columns]


@pytest.mark.slow
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
    expect(other.page.locator("#sentence-seed input")).to_have_value("7")
    other.settle()
    cloze.at(1 if 1 not in cloze.marked() else 2).click()
    cloze.page.wait_for_selector("#draw-lengths", state="hidden")
    cloze.page.select_option("#draw-kind", "uniform")
    cloze.page.click("#draw")
    cloze.page.wait_for_function("Cloze.sentence.marks.size > 5")
    expect(cloze.page.locator("#draw-lengths")).to_be_hidden()
    cloze.settle()
