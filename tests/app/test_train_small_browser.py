"""What the forms of the Train tab offer and do not offer, in Chromium."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import core_models.model as shipped
from tests.app.test_train_task_browser import APART
from tests.app.train_tab import card, look_again, open_form, shared

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


@pytest.mark.slow
def test_a_model_that_reads_from_left_to_right_is_no_start_for_classes(cloze, causal):
    """It was offered, and the run refused it."""
    form = open_form(cloze, "task")
    base, unfit = form.field("Checkpoint"), "causal-mini · next token – reads from left to right"

    def offered() -> list[str]:
        """What the list of models offers."""
        cloze.rest()
        base.click()
        texts = cloze.page.get_by_role("option").all_inner_texts()
        base.blur()
        return [text.strip("✓ \n") for text in texts]

    assert unfit in offered()
    for name, off in (
        ("Names in a sentence", False),
        ("Inference between", True),
        ("Questions on a text", False),
        ("Similarity of", True),
    ):
        form.choose("Labelled set", re.compile(f"^{name}(?!.*Chinese)"))
        assert (unfit in offered()) is off
    # Compared apart, each text's vector is a mean of all its tokens.
    form.field(APART).check()
    assert unfit not in offered()
    form.choose("Checkpoint", "causal-mini")
    form.field(APART).uncheck()
    form.says("Choose a model that reads both sides")


@pytest.mark.slow
def test_runs_of_one_name_are_told_apart_in_the_list(cloze, runs):
    """A class starts the same recipe thirty times."""
    task = {"set": "sentiment"}
    config = {"name": "Ours, all alike", "model": {"checkpoint": "bert-mini"}, "task": task}
    made = [runs.create(config) for _ in range(2)]
    for run in made:
        runs.folder(run).write_status({"state": "stopped"})
    open_form(cloze)
    page = cloze.page
    look_again(page)
    for run in made:
        card(page, run).get_by_text(f"Ours, all alike · {run.rpartition('-')[2]}").wait_for()
    runs.delete(made[0])
    look_again(page)
    card(page, made[0]).wait_for(state="detached")
    alone = re.compile("^Ours, all alike\n")
    expect(card(page, made[1])).to_have_text(alone, use_inner_text=True)


@pytest.mark.slow
def test_one_layer_is_not_called_layers(cloze):
    form = open_form(cloze)
    form.field("Layers").fill("1")
    form.field("Width").fill("64")
    form.says("1 layer of width 64, 2 heads.")


@pytest.mark.slow
def test_numbers_and_their_signs_stay_on_one_line(cloze):
    open_form(cloze)
    said = cloze.page.evaluate(
        "[Cloze.t`Half, ${50} % of it`, Cloze.message('About 5 % more.'),"
        " Cloze.format.percent(0.2), Cloze.texts({ a: 'Hides 15 %' }).a]"
    )
    assert said == ["Half, 50\xa0% of it", "About 5\xa0% more.", "20.0\xa0%", "Hides 15\xa0%"]
    nearly = cloze.page.evaluate("Cloze.format.percent(0.99996)")
    assert nearly == "99.99\xa0%", "not quite all is not all"


@pytest.mark.slow
def test_a_preview_has_rows_from_all_parts_with_their_numbers(cloze, tmp_path):
    form = open_form(cloze)
    form.fold("Texts of your own")
    rows = "".join(f"Sentence {n} is here.,{'ab'[n > 49]}\n" for n in range(100))
    (tmp_path / "sorted.csv").write_text(f"text,label\n{rows}")
    form.send(tmp_path / "sorted.csv")
    form.says("5 of 100 rows, from all parts of the table.")
    table = form.root.get_by_role("region", name="5 of 100 rows")
    expect(table.get_by_role("rowheader")).to_have_text(["1", "21", "41", "61", "81"])
    expect(table.get_by_role("cell", name="Sentence 80 is here.")).to_be_visible()
