"""The Train tab in Chromium: what is shown of a run, and when; the slider; export; tables."""

import asyncio
import re

import pytest
from playwright.sync_api import expect

from app.runs import owner as run_owner
from app.runs.data.texts import SHIPPED
from app.runs.reports import reached
from app.runs.reports import scrub as run_scrub
from app.runs.reports.reports import Reports
from core_models import InputError
from tests.app.held import Held, finished_race
from tests.app.test_train_browser import CONFIG
from tests.app.train_tab import Run, card, legend, look_again, open_run, shared
from tests.app.visitors import swipe
from tests.core.tiny_models import new, tiny

DATA = CONFIG["data"] | {"texts": list(SHIPPED)[:1]}
SENTENCE = "The capital of France is [MASK] ."


@pytest.fixture
def make(runs):
    """Makes finished runs that are only files: ``make(name, accuracy=..., **status)``."""
    made = []

    def make(name, *, accuracy="masked_token_accuracy", **status):
        run = runs.create(CONFIG | {"name": name, "data": DATA})
        folder = runs.folder(run)
        for step in (20, 40):
            report = {"step": step, "tokens": step, "seconds": 1.0, "loss": 6.0}
            folder.append_metrics(report | {"masked_token_loss": 6.0, accuracy: step / 100})
        folder.write_status({"state": "finished", "step": 40, "steps": 40} | status)
        made.append(run)
        return folder

    yield make
    for run in set(made) & set(runs.ids()):
        runs.delete(run)


@pytest.fixture
def cloze(module_page):
    """One page for these tests."""
    yield from shared(module_page)


def own(page, runs, *folders):
    page.wait_for_function("localStorage.getItem('cloze-owner')")
    for folder in folders:
        run_owner.note(folder.path, page.evaluate("localStorage.getItem('cloze-owner')"))


def open_own(cloze, runs, folder):
    """A run of the visitor's own, with all that its owner may do."""
    page = open_run(cloze, folder.path.name)
    own(page, runs, folder)
    look_again(page)
    return page, Run(cloze)


def test_a_click_shows_the_run_at_once_and_offers_only_what_is_about_it(runs, make, cloze):
    first = make("First")
    page = open_run(cloze, first.path.name)
    shown = Run(cloze)
    second = make("Second")  # whose report nobody has asked for yet
    own(page, runs, first, second)
    look_again(page)
    shown.button("Delete").click()
    shown.says("Delete “First” for good?")
    held = Held(page, "/train/shown$", lambda it: second.path.name in (it.post_data or ""))
    card(page, second.path.name).click()
    held.wait()  # asked for now, and not when the clock of an idle page comes round
    # Its report is not there yet: its name is, and nothing of the other run.
    shown.root.get_by_role("heading", name="Second", exact=True).wait_for()
    expect(shown.root.get_by_role("button").locator("visible=true")).to_have_count(0)
    held.end()
    shown.shows("Second")
    shown.button("Delete").wait_for()
    assert not shown.shown("for good?")
    shown.button("Delete").click()
    shown.says("Delete “Second” for good?")
    # What was asked of one run is not done to another.
    card(page, first.path.name).click()
    shown.shows("First")
    assert not shown.shown("for good?")
    card(page, second.path.name).click()
    shown.shows("Second")
    shown.delete()
    page.get_by_role("button", name="Start training").wait_for()
    assert second.path.name not in runs.ids()
    assert first.path.name in runs.ids()
    assert "run=" not in page.url


@pytest.mark.parametrize("before", ["Above", "Below"])
def test_the_run_that_was_pressed_is_shown_though_another_took_its_line(make, cloze, before):
    """Gradio names the lines of a radio anew where they stand, also beneath a finger."""
    runs = {name: make(name).path.name for name in ("Below", "Pressed", "Above")}
    page, shown = open_run(cloze, runs[before]), Run(cloze)
    shown.shows(before)
    card(page, runs["Pressed"]).hover()
    page.mouse.down()
    last = make("Last").path.name
    look_again(page)
    card(page, last).wait_for()
    page.mouse.up()
    shown.shows("Pressed")
    expect(card(page, runs["Pressed"]).get_by_role("radio")).to_be_checked()


def test_a_long_list_of_runs_scrolls_once(make, cloze):
    """Else a second bar beside it leads into nothing."""
    made = [make(f"Run {n}").path.name for n in range(12)]
    page = open_run(cloze, made[-1])
    assert page.locator("#train-runs").evaluate("e => e.scrollHeight - e.clientHeight") <= 1


def test_a_server_that_is_silent_is_told_until_it_answers(make, cloze, runs):
    """Nothing of what stands there is lost."""
    folder = make("Kept")
    page, shown = open_own(cloze, runs, folder)
    shown.button("Delete").wait_for()
    page.route("**/train/**", lambda route: route.abort())
    look_again(page)
    silent = shown.problem.get_by_text("The server does not answer.")
    silent.wait_for()
    shown.shows("Kept")
    expect(shown.root.locator("[data-picture] .js-plotly-plot")).to_be_visible()
    page.unroute("**/train/**")
    look_again(page)
    silent.wait_for(state="hidden")
    shown.shows("Kept")
    # What could not be done is told until something else is done.
    page.route("**/train/runs/*/delete", lambda route: route.abort())
    shown.delete()
    silent.wait_for()
    page.unroute("**/train/runs/*/delete")
    shown.delete()
    silent.wait_for(state="hidden")
    assert folder.path.name not in runs.ids()
    cloze.problems[:] = [each for each in cloze.problems if "ERR_FAILED" not in each]


@pytest.mark.slow
def test_the_keyboard_goes_on_beside_what_is_gone(make, cloze, runs):
    folder = make("Gone")
    page, shown = open_own(cloze, runs, folder)
    for button in ("Delete", "Keep it", "Delete", "Delete it for good"):
        shown.button(button).focus()
        page.keyboard.press("Enter")
        if button == "Keep it":
            expect(shown.button("Delete")).to_be_focused()
    page.wait_for_selector("#train-lab[data-shows=form]")
    new = page.get_by_role("button", name="New run", exact=True)
    expect(new).to_be_focused()


def test_a_run_says_why_it_failed_and_what_it_logged(make, cloze):
    folder = make("Broken", state="failed", reason="Training diverged at step 3.")
    folder.log("it ran away")
    open_run(cloze, folder.path.name)
    shown = Run(cloze)
    shown.state("failed")
    shown.says("Training diverged at step 3.")
    shown.fold("Log, settings and command")
    expect(shown.root.get_by_label("Log", exact=True)).to_have_value(re.compile("it ran away"))


SAID = """() => { window.said = 0;
  new MutationObserver(() => { said += 1; })
    .observe(document.querySelector('.train-gaps'), { childList: true }); }"""


@pytest.mark.slow
def test_the_slider_ends_at_the_trained_model_and_shows_where_words_look(make, cloze, session):
    folder = make("Slider")
    name = folder.path.name
    model = session.model("bert-mini")
    for step in (1, 2):
        folder.save(step, model.save, kind="snapshots")
    model.save(folder.model_path)
    page = open_run(cloze, name)
    shown = Run(cloze)
    shown.fold("The same sentence at every snapshot")
    page.wait_for_selector(".train-scrub[data-answered='40'][data-looked='40']")
    expect(shown.slider).to_have_attribute("max", "2")
    shown.says("step 40, the trained model")
    expect(shown.button("Fill gaps with this model")).to_be_visible()
    cells = len(model.encode([SENTENCE])[0].ids) ** 2
    expect(page.locator(".train-map .map-cell")).to_have_count(cells)
    # The numbers are the model's own, of the layer and head that are chosen.
    shown.root.get_by_label("Layer").select_option(label="1")
    shown.root.get_by_label("Head").select_option(label="2")
    page.wait_for_selector(".train-looks[data-layer='0'][data-head='1']")
    text = shown.root.get_by_label("Sentence with [MASK]").input_value()
    wanted = computed(session, lambda: run_scrub.attention(model, text, 0, 1))["weights"]
    shown.root.get_by_role("group", name="Attention map").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    shown.says(re.compile(re.escape(f"{wanted[1][1] * 100:.1f}")))
    # What the model would say is said once, however many snapshots answer.
    page.evaluate(SAID)
    shown.root.get_by_label("Sentence with [MASK]").fill(f"Now {text}")
    page.wait_for_function("said > 0")
    cloze.rest()
    assert page.evaluate("said") == 1
    # Every word gives a curve or a reason.
    assert [step for step, _ in cloze.numbers(".train-scrub")] == [1, 2, 40]
    shown.root.get_by_label("Word to follow").fill("zzzz qq")
    shown.says("pieces here")
    expect(page.locator(".train-scrub .figure:visible")).to_have_count(0)
    shown.slider.focus()
    page.keyboard.press("Home")
    page.wait_for_selector(".train-scrub[data-answered='1'][data-looked='1']")


def test_what_a_finger_pointed_at_in_the_map_is_still_to_be_read(make, phone, session):
    folder = make("Touched")
    folder.save(1, session.model("bert-mini").save, kind="snapshots")
    session.model("bert-mini").save(folder.model_path)
    cloze = phone()
    page = open_run(cloze, folder.path.name)
    Run(cloze).fold("The same sentence at every snapshot")
    page.locator(".train-scrub[data-looked='40']").wait_for()
    cloze.rest()
    swipe(page.locator(".train-map .map-cell").nth(2))
    expect(page.locator(".train-map-told")).to_contain_text("” looks at “")
    cloze.rest()


def computed(session, work):
    """Work on the model thread, from a thread in which Playwright's loop runs."""
    return session._batcher.submit(("work", work), work).result()


def test_what_a_snapshot_is_asked_is_checked(runs, make, session):
    folder = make("Checked")
    new(tiny("bert-base-uncased")).save(folder.model_path)
    values = {"step": "last", "text": "a [MASK] .", "attention": {"layer": None, "head": 0}}

    def guess(**more):
        return asyncio.run(run_scrub.guess(session, runs, folder.path.name, values | more))

    found = guess()
    looks = found["attention"]
    assert looks["layer"] == looks["layers"] - 1
    assert [sum(row) for row in looks["weights"]] == pytest.approx(
        [1.0] * len(looks["tokens"]), abs=1e-2
    )
    assert [token["masked"] for token in looks["tokens"]].count(True) == len(found["predictions"])
    long = guess(text="a " * 80 + "[MASK]")["attention"]
    assert len(long["weights"]) == len(long["tokens"]) <= run_scrub.MOST_POSITIONS
    assert "attention" not in guess(attention=None)
    for wrong in (
        {"attention": 3},
        {"attention": {"layer": 99}},
        {"attention": {"layer": 0, "head": -1}},
        {"step": "first"},
        {"step": 7},
    ):
        with pytest.raises(InputError):
            guess(**wrong)


@pytest.fixture
def waits(monkeypatch):
    """``waits(run, **more)``: what the server finds of a run, and what it does not."""
    changed = {}
    summary, live = Reports.summary, Reports.live

    def summary_of(self, run, *given, **more):
        return summary(self, run, *given, **more) | changed.get(run, {})

    def live_of(self, run, *given, **more):
        found = live(self, run, *given, **more)
        return found | {"export": changed[run].get("export")} if run in changed else found

    monkeypatch.setattr(Reports, "summary", summary_of)
    monkeypatch.setattr(Reports, "live", live_of)
    return lambda run, **more: changed.update({run: more})


def test_charts_and_heads_show_what_the_run_has(make, cloze, waits):
    known = {"uniform": 8.0, "unigram_entropy": 6.5}
    first = make("Permuted", accuracy="permutation_accuracy", baselines=known)
    second = make("Other", baselines=known | {"unigram_entropy": 6.1})
    name = first.path.name
    queued = {"state": "queued", "place": 1, "wait_seconds": 180.0, "step": 0, "steps": 0}
    waits(name, **queued, export={"step": 40, "bytes": 3 << 20})
    waits(second.path.name, state="running", silent_seconds=240.0)
    page = cloze.page
    shown = Run(cloze).open()
    look_again(page)
    card(page, name).get_by_text("place 1 in the queue · about 3 min until it starts").wait_for()
    card(page, second.path.name).get_by_text("no sign of life for 4 min").wait_for()
    card(page, name).click()
    shown.state("waiting")
    shown.fold("How it trains")
    small = cloze.numbers("#cloze-run-figures")
    assert {row[0] for row in small} == {"Permutation accuracy"}
    expect(shown.facts).to_contain_text("about 3 min until it starts")
    expect(shown.facts).not_to_contain_text("step 0")
    link = shown.root.get_by_role("link", name="Download the model (step 40, 3.0 MB)")
    expect(link).to_have_attribute("href", f"/train/runs/{name}/model.zip")
    shown.compare("Other")
    page.locator(".legendtext", has_text="(Other)").wait_for(state="attached")
    names = [name for name in legend(page) if name.startswith("knows")]
    assert sorted(names) == [
        "knows nothing: 8.00",
        "knows only how frequent pieces are (Other): 6.10",
        "knows only how frequent pieces are (Permuted): 6.50",
    ]
    card(page, second.path.name).click()
    shown.says("The process has given no sign of life for 4 min.")


MISTAKES = [
    {
        "text": "Anna saw Lake Como .",
        "said": "B-PER O O B-LOC O",
        "expected": "B-PER O B-LOC I-LOC O",
    },
    {"text": "Two words", "said": "O", "expected": "O O O"},
]
ANSWERS = [
    {"text": "Boats go.", "pair": "Who?", "said": "", "expected": "Boats"},
    {"text": "A dog.", "pair": "What?", "said": "a cat", "expected": "A dog"},
    {"text": "Boats go.", "pair": "What?", "said": "Who", "expected": "go"},
]
TASK = {"baselines": [], "labels": [], "dev": {"rows": 3}, "main": "f1"}


def test_mistakes_stand_beside_what_is_right():
    """Tags that fit the words stand at them, others as they are; no answer is an answer."""
    tagged = reached._rows(MISTAKES, TASK | {"kind": "tag"}, wrong=True)
    assert tagged["rows"] == [
        ["Anna saw Lake Como .", "Anna B-PER, Como B-LOC", "Anna B-PER, Lake B-LOC, Como I-LOC"],
        ["Two words", "O", "O O O"],
    ]
    answers = reached._rows(ANSWERS, TASK | {"kind": "answer"}, wrong=True)
    assert [row[2:] for row in answers["rows"]] == [
        ["no answer", "Boats"],
        ["a cat", "A dog"],
        ["Who", "go"],
    ]


def test_a_race_shows_every_column_on_a_narrow_page(cloze, runs):
    rows = [{"name": "masked"}, {"name": "a-long-name-of-a-model"}]
    race = finished_race(runs, "Race", rows)
    cloze.page.set_viewport_size({"width": 390, "height": 800})
    open_run(cloze, race.path.name)
    shown = Run(cloze)
    first, second = shown.rows("What each model reached")
    assert first[0] == "masked"
    assert second[0] == "a-long-name-of-a-model"
    assert len(first) == 9
    assert first[-1] == "Masked-token loss 3.400 · Replaced-token loss 0.500"
    assert cloze.overflow() <= 0
