"""The Train lab's forms where answers come late, twice, in another order or once not at all."""

import json
import re
from threading import Event

import pytest
from playwright.sync_api import expect

from app.labs.train.pretraining import Pretraining
from app.runs.data import sources as run_sources
from app.runs.forms import command
from app.runs.forms import preview as run_preview
from core_models import InputError
from tests.app.held import Held, finished_runs
from tests.app.test_train_again_browser import PAIRED
from tests.app.train_tab import KINDS, Form, Run, copy_run, open_form, open_run, shared
from tests.app.visitors import PAINTED

pytestmark = pytest.mark.slow

ESTIMATE = {"seconds": 5.0, "tokens_per_second": 1.0, "memory": 1.0e8, "entrants": []}

TOGETHER = """([first, second, one, two]) => {
  for (const [box, text] of [[first, one], [second, two]]) {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(box, text);
    box.dispatchEvent(new Event('input', { bubbles: true }));
  }
}"""

SLOWLY = """() => {
  const { fetch } = window;
  window.quickly = fetch;
  window.fetch = async (...asked) => {
    const answer = await fetch(...asked);
    await new Promise((done) => setTimeout(done, 300));
    return answer;
  };
}"""


@pytest.fixture
def make(runs):
    yield from finished_runs(runs)


@pytest.fixture
def cloze(module_page):
    """One page for the tests of the file."""
    yield from shared(module_page)


class Slow:
    """A function of the server that answers when a test says so."""

    def __init__(self, answer):
        self.answer, self.asked, self.go = answer, Event(), Event()

    def __call__(self, *arguments):
        self.asked.set()
        self.go.wait(30)
        return self.answer

    def wait(self):
        """Until it was asked."""
        assert self.asked.wait(30)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_found_for_other_settings_is_not_shown(cloze, kind, monkeypatch):
    form = open_form(cloze, kind)
    slow = Slow(ESTIMATE)
    monkeypatch.setattr(run_preview, "estimate", slow)
    form.button("How long will it take?").click()
    slow.wait()
    form.field("Seed").fill("3")
    slow.go.set()
    cloze.rest()
    assert not form.shown("on this machine as busy")
    # Of these settings it is shown, also when the run is called otherwise by now (the page proposes
    # a name as soon as it knows the texts), and goes with the next change.
    slow.asked.clear()
    slow.go.clear()
    form.button("How long will it take?").click()
    slow.wait()
    form.field("Name").fill("Another")
    slow.go.set()
    form.says("on this machine as busy")
    form.field("Seed").fill("4")
    form.root.get_by_text("on this machine as busy").wait_for(state="hidden")
    rows = [{"pieces": ["a"], "ids": [1], "segments": [0], "labels": [None], "case": [""]}]
    slow = Slow({"rows": rows})
    monkeypatch.setattr(run_preview, "first_batch", slow)
    form.button("Show the first batch").click()
    slow.wait()
    form.field("Seed").fill("5")
    slow.go.set()
    cloze.rest()
    assert not form.batch.is_visible()  # at once
    form.button("Show the first batch").click()
    form.batch.wait_for()


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_starts_once_and_says_why_it_does_not(cloze, kind, runs, monkeypatch):
    form = open_form(cloze, kind)
    made, go = [], Event()

    def create(config, **more):
        made.append(config)
        go.wait(30)
        raise InputError("Not now.")

    monkeypatch.setattr(runs, "create", create)
    form.start.dblclick()
    go.set()
    form.refuses("Not now.")
    cloze.rest()
    expect(form.problem.filter(has_text="Not now.")).not_to_have_count(0)
    assert len(made) == 1
    form.field("Seed").fill("6")
    form.root.get_by_text("Not now.").wait_for(state="hidden")


def test_a_run_does_not_start_without_the_text_that_is_being_sent(cloze, tmp_path):
    form = open_form(cloze)
    form.fold("Texts of your own")
    (tmp_path / "late.txt").write_text("A cat sat.\nIt ran away.\n" * 40)
    sent = Held(cloze.page, r"/train/texts\?")
    form.send(tmp_path / "late.txt")
    sent.wait()
    form.start.click()
    form.refuses("A text is still on its way.")
    sent.end()
    form.button("Remove late.txt").wait_for()
    form.root.get_by_text("A text is still on its way.").first.wait_for(state="hidden")


def test_what_is_equal_in_a_race_has_its_field_while_a_text_is_being_sent(cloze, tmp_path):
    form = open_form(cloze, "race")
    (tmp_path / "late.txt").write_text("It rains.\nIt pours.\n")
    sent = Held(cloze.page, r"/train/texts\?")
    form.send(tmp_path / "late.txt", re.compile("^Send a file"))
    sent.wait()
    form.field("the same number of operations").check()
    expect(form.field("Operations of each (trillions)")).to_be_visible()
    expect(form.field("Steps of each")).to_be_hidden()
    sent.end()
    form.field("the same number of steps").check()  # as the tests that follow find it
    expect(form.field("Steps of each")).to_be_visible()


def test_a_run_does_not_start_without_the_text_that_was_just_pasted(cloze, runs, monkeypatch):
    form = open_form(cloze)
    form.fold("Texts of your own")
    go, save = Event(), runs.inbox.save

    def slowly(*text):
        go.wait(300)
        return save(*text)

    monkeypatch.setattr(runs.inbox, "save", slowly)
    form.field("Paste a text").fill("A cat sat.\nIt ran away.\n" * 40)
    form.start.click()
    form.refuses("A text is still on its way.")
    go.set()
    form.button("Remove pasted.txt").wait_for()
    form.root.get_by_text("A text is still on its way.").first.wait_for(state="hidden")


def test_a_run_does_not_start_without_the_text_that_is_being_read(cloze, monkeypatch):
    form = open_form(cloze)
    form.fold("Texts of your own")
    form.fold("Read from elsewhere")
    asked, go = Event(), Event()

    def slowly(inbox, wanted):
        asked.set()
        go.wait(300)
        if wanted["dataset"] == "none/such":
            raise InputError("Not now.")
        return inbox.save("found.txt", b"A cat sat.\nIt ran away.\n" * 40)

    monkeypatch.setattr(run_sources, "fetch", slowly)
    read = form.button("Read the data set")
    for name in ("none/such", "owner/name"):
        asked.clear()
        go.clear()
        form.field("Name of a data set").fill(name)
        read.click()
        assert asked.wait(120)
        expect(read).to_be_disabled()
        form.start.click()
        form.refuses("A text is still on its way.")
        go.set()
        expect(read).to_be_enabled()
        form.root.get_by_text("A text is still on its way.").first.wait_for(state="hidden")
    form.button("Remove found.txt").wait_for()


def test_settings_of_a_run_come_into_its_form_or_not_at_all(cloze, make, runs, monkeypatch):
    page, shown = cloze.page, Run(cloze)
    task = runs.create(PAIRED)
    first, second = make("First"), make("Second")
    open_form(cloze)
    open_run(cloze, task)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "as_form", refuse)
        shown.button("New run from this one").click()
        page.locator("#train-forms").get_by_text("Not now.").wait_for()
    told = page.get_by_text("These are the settings").locator("visible=true")
    assert told.count() == 0  # at once
    # Of two runs the one that was asked for last, whichever answers first.
    fill = Pretraining.fill
    go, asked = Event(), Event()

    def slowly(form, config, **more):
        if more.get("source") == first:
            asked.set()
            go.wait(30)
        return fill(form, config, **more)

    monkeypatch.setattr(Pretraining, "fill", slowly)
    open_run(cloze, first)
    shown.button("New run from this one").click()
    assert asked.wait(30)
    open_run(cloze, second)
    shown.button("New run from this one").click()
    go.set()
    form = Form(cloze, "pretraining")
    form.says(f"These are the settings of {second}.")
    cloze.rest()
    assert form.shown(f"These are the settings of {second}.")
    expect(form.field("Name")).to_have_value("Second")


def refuse(*_):
    raise InputError("Not now.")


@pytest.mark.parametrize("kind", KINDS)
def test_settings_that_are_being_written_are_not_replaced(cloze, kind):
    form = open_form(cloze, kind)
    settings = form.config()
    form.field("Settings").fill(json.dumps(settings | {"seed": 77}))
    form.field("Name").fill("Another name")
    cloze.rest()
    expect(form.field("Settings")).to_have_value(re.compile('"seed": 77'))
    form.button("Use these settings").click()
    expect(form.field("Seed")).to_have_value("77")
    # What is chosen altogether anew stands there again.
    form.field("Seed").fill("3")
    cloze.rest()
    assert form.config()["seed"] == 3
    form.field("Settings").fill("{")
    form.button("Use these settings").click()
    form.refuses("This is not JSON")
    # An empty box is filled again.
    form.field("Settings").fill("")
    form.field("Seed").fill("4")
    cloze.rest()
    assert form.config()["seed"] == 4


def test_settings_that_are_being_written_stay_when_an_answer_comes(cloze, monkeypatch):
    """An answer to an older question once put its own settings over them."""
    form = open_form(cloze)
    settings = form.config()
    cloze.rest()
    asked, go = Event(), Event()

    def slowly(*arguments):
        asked.set()
        go.wait(30)
        return real(*arguments)

    real = command.file_name
    with monkeypatch.context() as patch:
        patch.setattr(command, "file_name", slowly)
        form.field("Seed").fill("5")
        assert asked.wait(30)
        form.field("Settings").fill(json.dumps(settings | {"seed": 77}))
        go.set()
        cloze.rest()
    expect(form.field("Settings")).to_have_value(re.compile('"seed": 77'))


def test_of_two_acts_in_one_moment_the_later_one_counts(cloze):
    """Gradio asks for both at once, and the first answer may come last."""
    form = open_form(cloze, "race")
    boxes = [form.field(name).element_handle() for name in ("Steps of each", "Seed")]
    sent = Held(cloze.page, "/run/predict")
    cloze.page.evaluate(TOGETHER, [*boxes, "12", "34"])
    sent.wait()
    while sent.routes:  # the last of them first
        with cloze.page.expect_response(re.compile("/run/predict")):
            sent.give(which=-1)
        cloze.page.evaluate(PAINTED)
    sent.end()
    cloze.rest()
    settings = form.config()
    assert (settings["budget"], settings["seed"]) == ({"steps": 12}, 34)


def test_a_file_is_looked_at_and_checked_a_few_times(cloze, tmp_path):
    """Two answers of one event, both under way, once repeated each other until one was quick."""
    form = open_form(cloze)
    form.fold("Texts of your own")
    cloze.page.evaluate(SLOWLY)
    asked = []
    cloze.hear("request", lambda it: asked.append(it) if "/run/predict" in it.url else None)
    for name in ("first.csv", "second.csv", "third.csv"):
        rows = "".join(f"A bird sang to child {n}.\n" for n in range(40))
        (tmp_path / name).write_text(f"text\n{rows}")
        form.send(tmp_path / name)
        form.button(f"Remove {name}").wait_for()
    form.says("text, which is read")
    assert len(asked) < 30
    cloze.rest()
    assert len(asked) < 30
    cloze.page.evaluate("() => { window.fetch = window.quickly; }")


def test_a_pasted_name_is_taken(cloze):
    """Gradio tells of keys in a text box, not of what the mouse puts there."""
    form = open_form(cloze, "race")
    form.fold("The same from the command line")
    name = form.field("Name")
    cloze.page.evaluate(TOGETHER, [*[name.element_handle()] * 2, "Mine", "Mine and yours"])
    expect(form.field("Command")).to_have_value(re.compile("race mine-and-yours.json"))


def test_a_form_is_as_it_was_left(cloze, make):
    """Another kind of run, or a run that is looked at, changes nothing in a form."""
    run = make("Seen")
    form = open_form(cloze)
    form.field("Steps").fill("321")
    form.field("Seed").fill("")
    open_form(cloze, "race").field("Steps of each").fill("12")
    open_run(cloze, run)
    cloze.page.get_by_role("button", name="New run", exact=True).click()
    open_form(cloze)
    expect(form.field("Steps")).to_have_value("321")
    expect(form.field("Seed")).to_have_value("")
    expect(open_form(cloze, "race").field("Steps of each")).to_have_value("12")


def test_a_copy_takes_the_place_of_what_was_there(cloze, make):
    run = make("Copied")
    form = open_form(cloze)
    form.field("Steps").fill("321")
    open_run(cloze, run)
    copy_run(cloze, run)
    expect(form.field("Steps")).to_have_value("100000")
    expect(form.field("Primer, English")).to_be_checked()
