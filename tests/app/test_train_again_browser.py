"""New runs from earlier ones, and settings for the command line, in Chromium."""

import json

import pytest

from core_models.training import settings, task_settings
from core_models.training.process import new_run
from core_models.training.race import new_race
from tests.app.test_train_forms_browser import DOCUMENTS, TINY, settle
from tests.app.test_train_task_browser import ROWS
from tests.app.test_train_tasks import RACE
from tests.app.train_tab import copy_run, open_form, open_run, shared

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
    page = open_run(cloze, run)
    copy_run(page, run)
    page.wait_for_selector(".train-task[data-state=ready]")
    return page


def test_a_new_run_from_a_bi_encoder_is_one(cloze, runs):
    page = copied(cloze, runs.create(PAIRED))
    page.locator(".train-about", has_text="rows to learn from").wait_for()
    assert page.is_checked("#train-task-apart")
    # Another kind of set has no two texts to encode apart.
    page.select_option("#train-set", "sentiment")
    page.wait_for_selector("#train-task-apart", state="hidden")
    page.wait_for_function("!document.getElementById('train-task-apart').checked")
    page.select_option("#train-set", "similarity")
    page.wait_for_selector("#train-task-apart")
    assert not page.is_checked("#train-task-apart")


@pytest.fixture
def own(runs):
    """Two fine-tunings on tables that were sent."""
    task = {"kind": "classify", "columns": {"text": "sentence", "label": "mood"}}
    made = []
    for name in ("first.csv", "second.csv"):
        sent = runs.inbox.save_labelled(name, ROWS.encode())
        made.append(runs.create(PAIRED | {"name": name, "task": task}, texts=[sent["id"]]))
    return made


def test_a_copied_table_shows_its_rows_and_its_own_name(cloze, own):
    for run in (own[0], own[1]):
        page = copied(cloze, run)
        page.locator(".train-about", has_text="rows to learn from").wait_for()
        assert page.locator(".train-rows-table tr").count() >= 5
        page.get_by_text("of the 68 rows to learn from, with their numbers in the table").wait_for()
        chosen = page.locator("#train-set option:checked").inner_text()
        assert chosen.startswith("first" if run == own[0] else "second")
        assert page.is_enabled("#train-task-start")


def test_a_copied_set_takes_the_place_of_a_copied_table(cloze, own, runs):
    """The form once showed the set and sent the table."""
    copied(cloze, own[0]).get_by_text("of the 68 rows to learn from").first.wait_for()
    page = copied(cloze, runs.create(PAIRED))
    page.locator(".train-about", has_text="rows to learn from").wait_for()
    page.get_by_text("The same from the command line").first.click()
    with page.expect_download() as saved:
        page.click("#train-task-save")
    assert json.loads(saved.value.path().read_text())["task"]["set"] == "similarity"


def test_settings_for_the_command_line_name_what_was_sent(cloze, tmp_path):
    page = open_form(cloze)
    page.click(".train-all summary")
    page.fill(".train-json", json.dumps(TINY))
    page.click("#train-apply")
    page.fill("#train-paste", DOCUMENTS)
    page.locator("#train-paste").blur()
    settle(page)
    page.get_by_text("The same from the command line").first.click()
    page.get_by_text("Put this beside the file with the settings first: pasted.txt").wait_for()
    with page.expect_download() as saved:
        page.click("#train-save")
    saved.value.save_as(tmp_path / "forms.json")
    (tmp_path / "pasted.txt").write_text(DOCUMENTS)
    made = new_run(tmp_path / "forms.json", tmp_path / "run")
    assert settings.read(made).data.texts == [str(tmp_path / "pasted.txt")]


def test_settings_of_a_fine_tuning_name_its_table(cloze, tmp_path, own):
    page = copied(cloze, own[0])
    page.get_by_text("The same from the command line").first.click()
    page.get_by_text("settings first: texts/first.csv").wait_for()
    page.select_option("#train-set", "")
    (tmp_path / "mine.csv").write_text(ROWS)
    page.set_input_files("#train-set-file", tmp_path / "mine.csv")
    page.get_by_text("settings first: mine.csv").wait_for()
    with page.expect_download() as saved:
        page.click("#train-task-save")
    saved.value.save_as(tmp_path / "task.json")
    made = new_run(tmp_path / "task.json", tmp_path / "run")
    assert task_settings.read(made).task.set == str(tmp_path / "mine.csv")


def test_settings_of_a_race_name_what_was_sent(cloze, tmp_path):
    """The command once ran on the shipped text alone, without a word."""
    page = open_form(cloze, "race")
    page.fill("#train-race-paste", DOCUMENTS)
    page.locator("#train-race-paste").blur()
    page.fill("#train-race-name", "Mine and yours")
    page.get_by_text("The same from the command line").locator("visible=true").click()
    page.get_by_text("settings first: pasted.txt").wait_for()
    command = page.locator(".train-race-form pre.code").inner_text()
    assert "race mine-and-yours.json --runs runs/mine-and-yours" in command
    with page.expect_download() as saved:
        page.click("#train-race-save")
    assert saved.value.suggested_filename == "mine-and-yours.json"
    saved.value.save_as(tmp_path / "race.json")
    (tmp_path / "pasted.txt").write_text(DOCUMENTS)
    made = new_race(tmp_path / "race.json", tmp_path / "run")
    read = json.loads(made.read_text())["data"]["texts"]
    assert str(tmp_path / "pasted.txt") in read
    assert len(read) == 2


def test_a_race_says_why_one_of_its_runs_failed(cloze, runs):
    run = runs.create(RACE)
    row = {"name": "masked", "family": "bert", "size": "bert-mini", "objectives": {}, "step": 0}
    row |= {"steps": 10, "parameters": 1, "generator_parameters": 0, "flops_per_step": 1.0}
    table = [row | {"state": "failed", "reason": "The disk is full of it."}]
    runs.folder(run).write_status({"state": "finished", "table": table})
    page = open_run(cloze, run)
    page.locator(".train-failures", has_text="masked: The disk is full of it.").wait_for()
