"""A fine-tuning that begins with a model that a visitor has opened, on the page."""

import json
import re

import pytest
from playwright.sync_api import expect

import core_models as cm
from tests.app.test_opened_browser import forget, name_it
from tests.app.test_train_task_browser import ROWS
from tests.app.train_tab import Run, open_form
from tests.core.tiny_models import new, tiny


@pytest.mark.slow
def test_a_folder_is_opened_fine_tuned_and_its_model_opened(visit, runs, session, tmp_path):
    new(tiny("bert-mini")).save(tmp_path / "my-bert")
    cloze = visit()
    page = cloze.page
    name_it(page, str(tmp_path / "my-bert"))
    page.get_by_role("button", name="Open it", exact=True).click()
    page.wait_for_function("() => Cloze.sentence.model.startsWith('folder/')")
    name = page.evaluate("Cloze.sentence.model")
    form = open_form(cloze, "task")
    form.choose("Labelled set", "my own table …")
    form.paste(ROWS, "Or paste one, with a first row of column names")
    form.says("68 rows to learn from and 12 to measure on")
    form.choose("Checkpoint", re.compile("^my-bert"))
    for field, value in {"Epochs": "2", "Longest input": "16"}.items():
        form.field(field).fill(value)
    form.says("steps over 68 rows")
    form.button("How long will it take?").click()
    form.says("MB of memory")
    form.start.click()
    shown = Run(cloze)
    shown.state("finished")
    config = json.loads(runs.folder(shown.id).config_path.read_text("utf-8"))
    assert config["model"]["checkpoint"] == str(session.folder(name))
    assert cm.load(runs.folder(shown.id).model_path).config.task is not None
    shown.ask("The song was superb .")
    expect(shown.root.get_by_text(re.compile(r"^\d+%$")).nth(1)).to_be_visible()
    shown.delete()
    forget(session)
