"""What the forms of the Train tab offer and do not offer, in Chromium."""

from pathlib import Path

import pytest

import core_models.model as shipped
from tests.app.train_tab import look_again, open_form, shared

CAUSAL = "causal-mini"
WHOLE = Path(shipped.__file__).resolve().parents[1] / "assets" / "models"


@pytest.fixture
def cloze(module_page):
    """One page for these tests."""
    yield from shared(module_page)


@pytest.fixture
def causal(session):
    """The left-to-right model beside the one that all tests have."""
    link = shipped.SHIPPED / CAUSAL
    link.symlink_to(WHOLE / CAUSAL, target_is_directory=True)
    session._infos.clear()
    yield CAUSAL
    link.unlink()
    session._infos.clear()


def test_a_model_that_reads_from_left_to_right_is_no_start_for_classes(cloze, causal):
    """It was offered, and the run refused it."""
    page = open_form(cloze, "task")
    page.wait_for_selector(".train-task[data-state=ready]")
    option = page.locator(f"#train-task-from option[value='{causal}']")
    assert option.is_disabled()
    assert option.inner_text().endswith("reads from left to right")
    for name, off in (("ner", False), ("nli", True), ("qa", False), ("similarity", True)):
        page.select_option("#train-set", name)
        page.wait_for_function(
            "([name, off]) => document.querySelector(`option[value='${name}']`).disabled === off",
            arg=["causal-mini", off],
        )
    # Compared apart, each text's vector is a mean of all its tokens.
    page.check("#train-task-apart")
    page.wait_for_function("!document.querySelector(\"option[value='causal-mini']\").disabled")
    page.select_option("#train-task-from", causal)
    page.uncheck("#train-task-apart")
    page.locator(".train-warnings", has_text="Choose a model that reads both sides").wait_for()


def test_runs_of_one_name_are_told_apart_in_the_list(cloze, runs):
    """A class starts the same recipe thirty times."""
    task = {"set": "sentiment"}
    config = {"name": "Ours, all alike", "model": {"checkpoint": "bert-mini"}, "task": task}
    made = [runs.create(config) for _ in range(2)]
    for run in made:
        runs.folder(run).write_status({"state": "stopped"})
    page = open_form(cloze)
    look_again(page)
    for run in made:
        card = page.locator(f".train-card[data-run='{run}']")
        card.wait_for()
        assert card.locator(".train-name").inner_text() == "Ours, all alike"
        assert card.locator(".train-twin").inner_text() == f"· {run.rpartition('-')[2]}"
    runs.delete(made[0])
    look_again(page)
    page.wait_for_selector(f".train-card[data-run='{made[0]}']", state="detached")
    assert page.locator(f".train-card[data-run='{made[1]}'] .train-twin").inner_text() == ""


def test_numbers_and_their_signs_stay_on_one_line(cloze):
    page = open_form(cloze)
    said = page.evaluate(
        "[Cloze.t`Half, ${50} % of it`, Cloze.message('About 5 % more.'),"
        " Cloze.format.percent(0.2), Cloze.texts({ a: 'Hides 15 %' }).a]"
    )
    assert said == ["Half, 50\xa0% of it", "About 5\xa0% more.", "20.0\xa0%", "Hides 15\xa0%"]


def test_a_preview_has_rows_from_all_parts_with_their_numbers(cloze, tmp_path):
    page = open_form(cloze)
    rows = "".join(f"Sentence {n} is here.,{'ab'[n > 49]}\n" for n in range(100))
    (tmp_path / "sorted.csv").write_text(f"text,label\n{rows}")
    page.set_input_files("#train-file", tmp_path / "sorted.csv")
    card = page.locator(".train-text", has_text="sorted.csv")
    card.get_by_text("5 of 100 rows, from all parts of the table.").wait_for()
    numbers = card.locator("tbody th").all_inner_texts()
    assert numbers == ["1", "21", "41", "61", "81"]
    assert card.locator("td.chosen").last.inner_text() == "Sentence 80 is here."
