"""The Train tab's runs where answers come late, twice, in another order or once not at all."""

import re

import pytest

from tests.app.held import BUSY, Held, finished_runs, shown
from tests.app.test_train_held_out_browser import MASKED
from tests.app.test_train_page_browser import ROW, answer, change
from tests.app.train_tab import legend, look_again, open_run, shared
from tests.app.visitors import rest

TASK = {"kind": "classify", "set": "mood", "main": "accuracy", "baselines": [], "labels": []}


@pytest.fixture
def make(runs):
    yield from finished_runs(runs)


@pytest.fixture
def cloze(module_page):
    """One page for the tests of the file."""
    yield from shared(module_page)


@pytest.fixture
def races(make, cloze):
    """Two races, of which the second has not reported yet; the names of both."""
    page = cloze.page
    first, second = make("Early"), make("Late")

    def race(run):
        if run["id"] in (first, second):
            run.update({"kind": "race", "model": {"race": 2}})

    change(page, r"/train/runs$", lambda values: [race(run) for run in values["runs"]])
    change(page, rf"/train/runs/({first}|{second})(\?|$)", lambda values: race(values["summary"]))
    report = {"step": 20, "tokens": 20, "seconds": 1.0, "masked_token_loss": 6.0}
    report["validation_masked_token_loss"] = 5.0
    rows = [ROW | {"name": name} for name in ("one", "two")]
    found = {"rows": rows, "baselines": {}, "models": [], "probe_baselines": {}}
    series = {"one": [report], "two": [report]}
    answer(page, rf"/train/runs/{first}/race", found | {"series": series})
    answer(page, rf"/train/runs/{second}/race", found | {"series": {}})
    answer(page, r"/examples\?", MASKED)
    return first, second


def test_a_race_shows_nothing_of_another_race_or_entrant(cloze, races):
    first, second = races
    page = open_run(cloze, first)
    cloze.numbers(".train-race .train-curves")
    page.wait_for_selector(".train-race .train-passage")
    # Examples of the entrant before would stand under the name of the one chosen now.
    held = Held(page, r"/examples\?entrant=two")
    page.select_option("#train-race-whose", "two")
    held.wait()
    assert not shown(page, ".train-race .train-passage")
    with page.expect_response(re.compile(r"/examples\?entrant=two")):
        held.end()
    page.wait_for_selector(".train-race .train-passage")
    rest(page)
    # Back before the other race has answered: the examples are still those of the first.
    held = Held(page, rf"/train/runs/{second}(\?|$)")
    page.click(f".train-card[data-run='{second}']")
    held.wait()
    page.click(f".train-card[data-run='{first}']")
    page.wait_for_selector(f".train-race[data-run='{first}']:not(.pending)")
    page.wait_for_selector(".train-race .train-passage")
    held.end()
    open_run(cloze, second)
    page.get_by_text("The curves start with the first reports.").wait_for()
    assert not shown(page, ".train-race .train-curves")


def test_a_run_that_is_gone_elsewhere_ends_the_comparison_and_is_told(cloze, make, runs):
    first, second = make("First"), make("Second")
    page = open_run(cloze, first)
    page.get_by_role("checkbox", name="Compare Second").check()
    assert legend(page, 2)[0].startswith("First")
    runs.delete(second)
    look_again(page)
    page.wait_for_selector(f".train-card[data-run='{second}']", state="detached")
    page.wait_for_selector(".train > .problem", state="hidden")
    page.locator(".legendtext", has_text="Second").wait_for(state="detached")
    runs.delete(first)
    look_again(page)
    told = page.get_by_text(f"There is no run “{first}” here any more.")
    told.wait_for()
    with page.expect_response(re.compile("/train/runs$")):
        look_again(page)
    rest(page)
    assert told.is_visible()
    page.click("#train-new")
    assert not told.is_visible()


def test_what_one_run_was_asked_is_not_answered_by_another(cloze, make):
    page = cloze.page
    first, second = make("First"), make("Second")

    def live(values):
        values.update({"task": TASK, "model": f"run/{values['summary']['id']}"})

    change(page, rf"/train/runs/({first}|{second})\?", live)
    open_run(cloze, first)
    held = Held(page, "/try$")
    page.click("#train-try-ask")
    held.wait()
    open_run(cloze, second)
    assert page.is_enabled("#train-try-ask")
    held.give(BUSY)
    assert not shown(page, ".train-try .problem")
    # Two answers of one run, the first of them last.
    for text in ("one", "two"):
        page.fill("#train-try-text", text)
        page.press("#train-try-text", "Enter")
    held.wait(2)
    found = {"kind": "classify", "scale": None}
    for text, which in (("two", 1), ("one", 0)):
        held.give(found | {"label": text, "probabilities": {text: 1.0}}, which)
    assert page.locator(".train-answer li").get_attribute("data-name") == "two"
    page.press("#train-try-text", "Enter")
    held.wait().give(BUSY)
    page.wait_for_selector(".train-try .problem:visible")
    open_run(cloze, first)
    assert not shown(page, ".train-try .problem")
    held.end()
    # A model that cannot be opened is told of where it was to be opened.
    held = Held(page, "/gradio_api/queue/join", lambda it: f"run/{first}" in (it.post_data or ""))
    page.click("#train-open-attention")
    held.wait()
    open_run(cloze, second)
    held.end()
    rest(page)
    assert not shown(page, ".train-head .problem[role=alert]")


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


def test_a_snapshot_is_asked_for_what_is_wanted_now(cloze, make):
    page = cloze.page
    first, second = make("First"), make("Second")
    change(
        page,
        rf"/train/runs/({first}|{second})\?",
        lambda values: values.update({"snapshots": [1, 2]}),
    )
    held = Held(page, "/guess$")
    open_run(cloze, first)
    held.wait()
    page.fill("#train-sentence", "A new [MASK] .")
    page.wait_for_function("underWay.timers.size === 0")  # no more typing is waited for
    held.give(BUSY)
    for _ in range(2):
        held.wait()
        assert held.routes[0].request.post_data_json["text"] == "A new [MASK] ."
        held.give(GUESS)
    page.wait_for_selector(".train-gaps li")
    assert not shown(page, ".train-scrub .problem")
    # The same for a run: the question of the one before fails late.
    page.fill("#train-sentence", "Another [MASK] .")
    held.wait()
    open_run(cloze, second)
    held.give(BUSY)
    held.wait()
    assert second in held.routes[0].request.url
    held.give(GUESS)
    held.wait().give(GUESS)
    assert not shown(page, ".train-scrub .problem")
    held.end()


RESULT = {"main": "f1", "best_epoch": 1, "confusion": [], "labels": {}, "worst": [], "best": []}
RESULTS = """() => {
  window.shownResult = import('/cloze/app/labs/train/result.js').then(({ makeResult }) => {
    const result = makeResult();
    const task = { kind: 'classify', labels: [], baselines: [], dev: { rows: 3 } };
    const live = { evaluated: true, summary: { updated: 1 }, task };
    const both = [result.fill('late-one', live), result.fill('late-two', live)];
    return Promise.all(both).then(() => result.root.hidden);
  });
}"""


def test_a_result_that_fails_late_hides_no_other(cloze):
    page = cloze.page
    held = Held(page, "/runs/late-(one|two)/result")
    page.evaluate(RESULTS)
    held.wait(2)
    held.give(BUSY)
    held.give(RESULT | {"metrics": {"f1": 0.5}})
    assert page.evaluate("window.shownResult") is False
