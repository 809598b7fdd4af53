"""New runs from earlier ones, and settings for the command line, in Chromium."""

import json
import re

import pytest
from playwright.sync_api import expect

from core_models.training import settings, task_settings
from core_models.training.process import new_run
from core_models.training.race_run import new_race
from tests.app.held import finished_race
from tests.app.test_train_forms_browser import DOCUMENTS, TINY
from tests.app.test_train_task_browser import APART, ROWS
from tests.app.train_tab import Run, copy_run, open_form, open_run, shared

PAIRED = {
    "name": "Apart",
    "model": {"checkpoint": "bert-mini"},
    "task": {"set": "similarity", "apart": True},
}


@pytest.fixture
def cloze(module_page):
    """One page for these tests."""
    yield from shared(module_page)


def copied(cloze, run):
    """The form with the settings of a run, without what an earlier test has left there."""
    open_form(cloze, "task")
    open_run(cloze, run)
    return copy_run(cloze, run, "task")


def saved(form, path):
    """The settings as they are saved as a file."""
    form.fold("The same from the command line")
    with form.page.expect_download() as file:
        form.button("Save the settings as a file").click()
    file.value.save_as(path)
    return path


@pytest.mark.slow
def test_a_new_run_from_a_bi_encoder_is_one(cloze, runs):
    form = copied(cloze, runs.create(PAIRED))
    form.says("rows to learn from")
    expect(form.field(APART)).to_be_checked()
    # Another kind of set has no two texts to encode apart.
    form.choose("Labelled set", "Sentiment of a sentence")
    form.field(APART).wait_for(state="hidden")
    form.choose("Labelled set", "Similarity of two sentences")
    form.field(APART).wait_for()
    expect(form.field(APART)).not_to_be_checked()


@pytest.fixture
def own(runs):
    """Two fine-tunings on tables that were sent."""
    task = {"kind": "classify", "columns": {"text": "sentence", "label": "mood"}}
    made = []
    for name in ("first.csv", "second.csv"):
        sent = runs.inbox.save_labelled(name, ROWS.encode())
        made.append(runs.create(PAIRED | {"name": name, "task": task}, texts=[sent["id"]]))
    return made


@pytest.mark.slow
def test_a_copied_table_shows_its_rows_and_its_own_name(cloze, own):
    for run in (own[0], own[1]):
        form = copied(cloze, run)
        form.says("68 rows to learn from")
        form.fold("Rows and labels of the set")
        form.says("of the 68 rows to learn from, with their numbers in the table")
        chosen = re.compile("^first" if run == own[0] else "^second")
        expect(form.field("Labelled set")).to_have_value(chosen)
        expect(form.start).to_be_enabled()


@pytest.mark.slow
def test_a_copied_set_takes_the_place_of_a_copied_table(cloze, own, runs, tmp_path):
    """The form once showed the set and sent the table."""
    copied(cloze, own[0]).says("68 rows to learn from")
    form = copied(cloze, runs.create(PAIRED))
    form.says("rows to learn from")
    assert json.loads(saved(form, tmp_path / "a.json").read_text())["task"]["set"] == "similarity"


@pytest.mark.slow
def test_settings_for_the_command_line_name_what_was_sent(cloze, tmp_path):
    form = open_form(cloze)
    form.use(TINY)
    form.fold("Texts of your own")
    form.paste(DOCUMENTS)
    form.fold("The same from the command line")
    form.says("Put this beside the file with the settings first: pasted.txt")
    saved(form, tmp_path / "forms.json")
    (tmp_path / "pasted.txt").write_text(DOCUMENTS)
    made = new_run(tmp_path / "forms.json", tmp_path / "run")
    assert settings.read(made).data.texts == [str(tmp_path / "pasted.txt")]


@pytest.mark.slow
def test_settings_of_a_fine_tuning_name_its_table(cloze, tmp_path, own):
    form = copied(cloze, own[0])
    form.fold("The same from the command line")
    form.says("settings first: texts/first.csv")
    form.choose("Labelled set", "my own table …")
    (tmp_path / "mine.csv").write_text(ROWS)
    form.send(tmp_path / "mine.csv", "Send a table")
    form.says("settings first: mine.csv")
    saved(form, tmp_path / "task.json")
    made = new_run(tmp_path / "task.json", tmp_path / "run")
    assert task_settings.read_any(made).task.set == str(tmp_path / "mine.csv")


@pytest.mark.slow
def test_settings_of_a_race_name_what_was_sent(cloze, tmp_path):
    """The command once ran on the shipped text alone, without a word."""
    form = open_form(cloze, "race")
    form.fold("Texts of your own")
    form.paste(DOCUMENTS)
    form.field("Name").fill("Mine and yours")
    form.fold("The same from the command line")
    form.says("settings first: pasted.txt")
    expect(form.field("Command")).to_have_value(
        re.compile("race mine-and-yours.json --runs runs/mine-and-yours")
    )
    saved(form, tmp_path / "race.json")
    (tmp_path / "pasted.txt").write_text(DOCUMENTS)
    made = new_race(tmp_path / "race.json", tmp_path / "run")
    read = json.loads(made.read_text())["data"]["texts"]
    assert str(tmp_path / "pasted.txt") in read
    assert len(read) == 2


def test_a_race_says_why_one_of_its_runs_failed(cloze, runs):
    row = {"name": "masked", "state": "failed", "reason": "The disk is full of it."}
    race = finished_race(runs, "Failed", [row])
    open_run(cloze, race.path.name)
    Run(cloze).says("masked: The disk is full of it.")
