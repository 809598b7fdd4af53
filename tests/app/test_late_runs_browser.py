"""The Train tab's runs where answers come late, twice, in another order or once not at all."""

import pytest
from playwright.sync_api import expect

from app.runs.reports.reports import Reports
from tests.app.held import BUSY, Held, finished_race, finished_runs, posts
from tests.app.test_train_held_out_browser import MASKED
from tests.app.train_tab import Run, card, legend, look_again, open_run, shared
from tests.app.visitors import rest

pytestmark = pytest.mark.slow

TASK = {"kind": "classify", "set": "mood", "main": "accuracy", "baselines": [], "labels": []}


@pytest.fixture
def make(runs):
    yield from finished_runs(runs)


@pytest.fixture
def cloze(module_page):
    """One page for the tests of the file."""
    yield from shared(module_page)


@pytest.fixture
def live(monkeypatch):
    """``live(run, **more)``: what the server finds of a run beside what is there."""
    changed, real = {}, Reports.live

    def live_of(self, run, *given, **more):
        return real(self, run, *given, **more) | changed.get(run, {})

    monkeypatch.setattr(Reports, "live", live_of)
    return lambda run, **more: changed.update({run: more})


def wants(run):
    """Whether a question is about a run."""
    return lambda request: f'"run":"{run}"' in (request.post_data or "")


@pytest.fixture
def races(runs):
    """Two races, of which the second has not reported yet; the names of both."""
    rows = [{"name": "one"}, {"name": "two"}]
    first, second = (finished_race(runs, name, rows) for name in ("Early", "Late"))
    report = {"step": 20, "tokens": 20, "seconds": 1.0, "masked_token_loss": 6.0}
    for name in ("one", "two"):
        entrant = first.run(name)
        entrant.append_metrics(report | {"validation_masked_token_loss": 5.0})
        entrant.write_validation(MASKED)
    yield first.path.name, second.path.name
    for race in (first, second):
        runs.delete(race.path.name)


def test_a_race_shows_nothing_of_another_race_or_entrant(cloze, races, runs):
    first, second = races
    page, shown = open_run(cloze, first), Run(cloze)
    cloze.numbers("#train-run [data-picture]")
    shown.fold("Held-out examples")
    shown.says("After step 40, of 30 examples")
    # Of two entrants the one that was chosen last, whichever is answered first.
    runs.folder(first).run("two").write_validation(MASKED | {"step": 70})
    held = Held(page, "/train/shown$", lambda it: '"entrant":"two"' in (it.post_data or ""))
    shown.choose("Model of the race", "two")
    held.wait()
    shown.choose("Model of the race", "one")
    held.end()
    rest(page)
    assert shown.shown("After step 40")
    shown.choose("Model of the race", "two")
    shown.says("After step 70, of 30 examples")
    # Back before the other race has answered: what stands there is of the first.
    held = Held(page, "/train/shown$", wants(second))
    card(page, second).click()
    held.wait()
    card(page, first).click()
    shown.shows("Early")
    shown.says("After step 40, of 30 examples")
    held.end()
    open_run(cloze, second)
    shown.shows("Late")
    expect(shown.root.locator("[data-picture]")).to_be_hidden()
    assert not shown.shown("After step 40")


def test_a_run_that_is_gone_elsewhere_ends_the_comparison_and_is_told(cloze, make, runs):
    first, second = make("First"), make("Second")
    page, shown = open_run(cloze, first), Run(cloze)
    shown.compare("Second")
    assert legend(page, 2)[0].startswith("First")
    runs.delete(second)
    look_again(page)
    card(page, second).wait_for(state="detached")
    assert not shown.problem.is_visible()  # at once
    page.locator(".legendtext", has_text="Second").wait_for(state="detached")
    # What stands in the form that is shown instead is as it was.
    runs.delete(first)
    look_again(page)
    told = page.get_by_text(f"There is no run “{first}” here any more.")
    told.wait_for()
    with page.expect_response("**/train/shown"):
        look_again(page)
    rest(page)
    expect(told).to_be_visible()
    page.get_by_role("button", name="New run", exact=True).click()
    told.wait_for(state="hidden")


def test_what_one_run_was_asked_is_not_answered_by_another(cloze, make, live):
    page, shown = cloze.page, Run(cloze)
    first, second = make("First"), make("Second")
    for run in (first, second):
        live(run, task=TASK, model=f"run/{run}")
    open_run(cloze, first)
    held = Held(page, "/try$")
    shown.ask("zero")
    held.wait()
    open_run(cloze, second)
    held.give(BUSY)
    rest(page)
    assert not shown.shown("Not now.")
    # Two answers of one run, the first of them last.
    for text in ("one", "two"):
        shown.ask(text)
    held.wait(2)
    for text, which in (("two", 1), ("one", 0)):
        shares = {"label": text, "confidences": [{"label": text, "confidence": 1.0}]}
        held.give({"parts": {"shares": {"visible": True, "value": shares}}}, which)
    shown.says("two")
    rest(page)
    assert shown.root.get_by_text("one", exact=True).count() == 0  # at once
    shown.ask("three")
    held.wait().give(BUSY)
    shown.says("Not now.")
    open_run(cloze, first)
    assert not shown.shown("Not now.")
    held.end()
    # A model that cannot be opened is told of where it was to be opened.
    held = Held(page, "/gradio_api/", opens(f"run/{first}"))
    shown.button("See its attention").click()
    held.wait()
    open_run(cloze, second)
    held.end()
    rest(page)
    assert not shown.problem.is_visible()  # at once


OPENED = "zz-detective-generator"


def opens(model):
    """Whether it asks for a run's model."""
    return lambda it: posts(it) and f'"name":"{model}"' in (it.post_data or "")


def test_a_model_that_comes_late_calls_nobody_back(cloze, make, live, detective):
    """Who has gone to another lab or run stays there, with the model that is chosen."""
    page, shown = cloze.page, Run(cloze)
    first, second = make("First"), make("Second")
    live(first, model=OPENED)
    open_run(cloze, first)
    look_again(page)
    before = page.evaluate("Cloze.sentence.model")
    assert before != OPENED
    held = Held(page, "/gradio_api/", opens(OPENED))
    attend = shown.button("See its attention")
    attend.click()
    held.wait()
    page.evaluate("Cloze.openTab('Budget')")
    page.wait_for_function("Cloze.place.tab === 'budget'")
    held.give()
    rest(page)
    assert page.evaluate("[Cloze.place.tab, Cloze.sentence.model]") == ["budget", before]
    open_run(cloze, first)
    attend.click()
    held.wait()
    open_run(cloze, second)
    held.give()
    rest(page)
    assert page.evaluate("[Cloze.place.tab, Cloze.sentence.model]") == ["train", before]
    open_run(cloze, first)
    attend.click()
    held.wait().end()
    page.wait_for_function("Cloze.place.tab === 'attention'")
    page.wait_for_function("Cloze.sentence.model === 'zz-detective-generator'")
    page.evaluate("model => Cloze.chooseModel(model)", before)
    page.wait_for_function("model => Cloze.sentence.model === model", arg=before)


def test_a_model_that_is_chosen_before_the_link_has_its_snapshot_stays(
    visit, server, make, runs, session, detective
):
    """What the link names once took the place of what a visitor had chosen since."""
    run = make("Late snapshot")
    runs.folder(run).save(4, session.model("bert-mini").save, kind="snapshots")
    cloze, link = visit(), f"#text=A+cat+sleeps.&model=run/{run}/step-4&marks=2"
    page = cloze.page
    held = Held(page, "/gradio_api/", opens(f"run/{run}/step-4"))
    page.goto("about:blank")
    cloze.open(f"{server}/{link}")
    held.wait()
    page.evaluate("model => Cloze.chooseModel(model)", OPENED)
    page.wait_for_function("model => Cloze.sentence.model === model", arg=OPENED)
    held.end()
    cloze.rest()
    assert page.evaluate("[Cloze.sentence.text, Cloze.sentence.model]") == ["A cat sleeps.", OPENED]
    assert f"model={OPENED}" in page.url


GUESS = {
    "predictions": [
        {"candidates": [{"rank": 1, "display": "word", "piece": "word", "probability": 0.5}]}
    ],
    "attention": {
        "tokens": [{"text": "a"}],
        "weights": [[1.0]],
        "layers": 2,
        "heads": 2,
        "layer": 1,
        "head": None,
    },
}


def test_a_snapshot_is_asked_for_what_is_wanted_now(cloze, make, live):
    page, shown = cloze.page, Run(cloze)
    first, second = make("First"), make("Second")
    for run in (first, second):
        live(run, snapshots=[1, 2])
    held = Held(page, "/guess$")
    open_run(cloze, first)
    shown.fold("The same sentence at every snapshot")
    held.wait()
    sentence = shown.root.get_by_label("Sentence with [MASK]")
    sentence.fill("A new [MASK] .")
    page.wait_for_function("underWay.timers.size === 0")  # no more typing is waited for
    held.give(BUSY)
    for _ in range(2):
        held.wait()
        assert held.routes[0].request.post_data_json["text"] == "A new [MASK] ."
        held.give(GUESS)
    page.wait_for_selector(".train-gaps li")
    assert not shown.shown("Not now.")
    # The same for a run: the question of the one before fails late.
    sentence.fill("Another [MASK] .")
    held.wait()
    open_run(cloze, second)
    held.give(BUSY)
    held.wait()
    assert second in held.routes[0].request.url
    held.give(GUESS)
    held.wait().give(GUESS)
    assert not shown.shown("Not now.")
    held.end()
