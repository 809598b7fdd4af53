"""The Train tab's forms where answers come late, twice, in another order or once not at all."""

import json

import pytest

from tests.app.held import BUSY, Held, finished_runs, posts, refuse_once, shown
from tests.app.test_train_again_browser import PAIRED
from tests.app.test_train_page_browser import answer
from tests.app.train_tab import look_again, open_form, open_run, shared

FORMS = {
    "pretraining": ("train", ".train-form", "#train-seed"),
    "task": ("train-task", ".train-task", "#train-task-seed"),
    "race": ("train-race", ".train-race-form", "#train-race-seed"),
}


@pytest.fixture
def make(runs):
    yield from finished_runs(runs)


@pytest.fixture
def cloze(module_page):
    """One page for the tests of the file."""
    yield from shared(module_page)


@pytest.mark.parametrize("kind", FORMS)
def test_what_was_found_for_other_settings_is_not_shown(cloze, kind):
    prefix, form, number = FORMS[kind]
    page = open_form(cloze, kind)
    page.wait_for_selector(f"{form}[data-state=ready]")
    held = Held(page, "/train/(preview|estimate)$")
    page.click(f"#{prefix}-batch")
    page.click(f"#{prefix}-time")
    held.wait(2)
    with page.expect_response("**/train/check"):
        page.fill(number, "3")
    for route in list(held.routes):
        batch = route.request.url.endswith("preview")
        held.give({"rows": []} if batch else {"seconds": 5, "tokens_per_second": 1, "entrants": []})
    assert not shown(page, ".train-first")
    assert "bout" not in page.inner_text(f"{form} .train-end")
    held.end()
    # Why a run was not started stays, also when the settings turn out to be fine.
    held = Held(page, "/train/runs$", posts)
    with page.expect_response("**/train/check"):
        page.fill(number, "4")
        page.click(f"#{prefix}-start")
        held.wait()
        # While it is being started, nothing that comes meanwhile allows a second start.
        page.click(f"#train-kind-{kind}")
        page.wait_for_timeout(50)
        assert page.is_disabled(f"#{prefix}-start")
        held.give(BUSY)
        page.locator(f"{form} .train-end .problem", has_text="Not now.").wait_for()
    page.wait_for_selector(f"{form}[data-state=ready]")
    page.wait_for_timeout(50)
    assert page.inner_text(f"{form} .train-end .problem") == "Not now."
    page.fill(number, "5")
    page.wait_for_selector(f"{form} .train-end .problem", state="hidden")
    held.end()


def test_a_run_waits_for_the_text_that_is_being_sent(cloze, tmp_path):
    page = open_form(cloze)
    (tmp_path / "late.txt").write_text("A cat sat.\nIt ran away.\n" * 40)
    sent = Held(page, r"/train/texts\?")
    started = Held(page, "/train/runs$", posts)
    page.set_input_files("#train-file", tmp_path / "late.txt")
    sent.wait()
    answer(page, "/train/preview$", {"rows": []})
    page.click("#train-batch")
    page.click("#train-start")
    page.wait_for_timeout(100)
    sent.end()
    page.wait_for_selector(".train-first:visible")
    started.wait()
    assert started.routes[0].request.post_data_json["texts"]
    started.give(BUSY)
    started.end()


def test_settings_of_a_run_come_into_its_form_or_not_at_all(cloze, make, runs):
    page = cloze.page
    task = runs.create(PAIRED)
    first, second = make("First"), make("Second")
    open_form(cloze)
    open_run(cloze, task)
    refuse_once(page, f"/train/runs/{task}/config", json=BUSY)
    page.click("#train-again")
    page.wait_for_selector(".train-form .problem:visible")
    page.wait_for_timeout(500)
    assert page.inner_text(".train-form .problem:visible") == "Not now."
    assert not shown(page, ".train-form .train-note:has-text('These are the settings')")
    # Of two runs the one that was asked for last, whichever answers first.
    open_run(cloze, first)
    held = Held(page, f"/train/runs/{first}/config$")
    page.click("#train-again")
    held.wait()
    open_run(cloze, second)
    page.click("#train-again")
    page.get_by_text(f"These are the settings of {second}.").wait_for()
    held.end()
    page.wait_for_timeout(100)
    assert page.get_by_text(f"These are the settings of {second}.").is_visible()


OTHER_FORM = """name => import(`/cloze/app/labs/train/${name}.js`).then((made) => {
  const { makeForm, makeRaceForm } = made;
  window.lateForm = (makeForm ?? makeRaceForm)({ onStarted() {} });
  const host = document.createElement('div');
  host.id = 'late';
  host.append(window.lateForm.root);
  document.querySelector('.train').append(host);
  window.lateForm.refresh();
})"""


def test_a_form_that_comes_late_changes_nothing_that_was_chosen(cloze):
    page = open_form(cloze)
    held = Held(page, "/train/form$")
    page.evaluate(OTHER_FORM, "form")
    held.wait()
    # Before there is anything to choose from, a text can be pasted.
    page.fill("#late #train-paste", "A cat sat.")
    page.press("#late #train-paste", "Tab")
    page.evaluate("() => { window.lateForm.refresh(); }")
    held.wait(2)
    held.give(which=1)
    page.wait_for_selector("#late :is([data-state=ready], [data-state=error])")
    page.select_option("#late #train-family", "deberta")
    held.give()
    page.wait_for_timeout(300)
    assert page.input_value("#late #train-family") == "deberta"
    held.end()
    page.evaluate("document.querySelector('#late').remove()")


def test_a_race_has_no_settings_to_change_before_there_is_one(cloze):
    page = open_form(cloze)
    held = Held(page, "/train/form$")
    page.evaluate(OTHER_FORM, "race-form")
    held.wait()
    inert = "document.querySelector('#late #train-race-seed').closest('[inert]') !== null"
    assert page.evaluate(inert)
    held.give()
    page.wait_for_selector("#late [data-state=ready]")
    assert not page.evaluate(inert)
    held.end()
    page.evaluate("document.querySelector('#late').remove()")


@pytest.mark.parametrize("kind", ["pretraining", "race"])
def test_settings_that_are_being_written_are_not_replaced(cloze, kind):
    prefix, form, number = FORMS[kind]
    page = open_form(cloze, kind)
    page.wait_for_selector(f"{form}[data-state=ready]")
    held = Held(page, "/train/form$")
    page.click(f"#train-kind-{kind}")
    held.wait()
    page.click(f"{form} .train-all summary")
    settings = json.loads(page.input_value(f"{form} .train-json"))
    page.fill(f"{form} .train-json", json.dumps(settings | {"seed": 77}))
    with page.expect_response("**/train/check"):
        held.end()
    assert '"seed": 77' in page.input_value(f"{form} .train-json")
    page.click(f"#{prefix}-apply")
    assert page.input_value(number) == "77"
    # What is chosen altogether anew stands there again.
    page.fill(number, "3")
    assert '"seed": 3' in page.input_value(f"{form} .train-json")


def test_what_failed_once_is_asked_again(cloze):
    page = open_form(cloze)
    refuse_once(page, "/train/form$")
    page.click("#train-new")
    problem = page.locator(".train-main .problem[role=alert]")
    problem.wait_for()
    look_again(page)
    problem.wait_for(state="hidden")
    # A labelled set, when its form is opened again.
    with page.expect_response("**/train/check"), page.expect_response("**/train/form"):
        open_form(cloze, "task")
    page.wait_for_selector(".train-task[data-state=ready]")
    refuse_once(page, "/train/look$")
    page.select_option("#train-set", "similarity")
    page.wait_for_selector(".train-task .problem[role=alert]:visible")
    page.click("#train-kind-task")
    page.wait_for_selector(".train-task[data-state=ready]")
