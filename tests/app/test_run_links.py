"""Run folders of somebody else with links in them: no page shows what these lead to."""

import json

import pytest

from app.runs.data.texts import own_texts
from app.runs.export import archive as run_export
from app.runs.reports.reports import Reports
from core_models import InputError
from tests.app.test_run_export import finished, model


@pytest.fixture
def runs(make_runs):
    """A folder for each test, in which nothing starts."""
    return make_runs()


@pytest.fixture
def secret(tmp_path):
    """A file of this machine."""
    path = tmp_path / "secret.json"
    path.write_text(json.dumps({"key": "hidden away"}), "utf-8")
    return path


def link(path, target):
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("name", ["vocab.txt", "notes.txt", "model.safetensors"])
def test_no_linked_file_is_packed(runs, secret, name):
    run = finished(runs, model())
    link(runs.folder(run).model_path / name, secret)
    with pytest.raises(InputError, match=f"{name} of this model is a link that leads out"):
        run_export.pack(runs, run)


def test_a_link_within_a_run_is_packed(runs):
    run = finished(runs, model())
    folder = runs.folder(run)
    (folder.path / "notes.txt").write_text("of the run", "utf-8")
    link(folder.model_path / "notes.txt", folder.path / "notes.txt")
    run_export.pack(runs, run).file.close()


def test_no_linked_log_is_shown(runs, secret):
    run = finished(runs, model())
    for name in ("log.txt", "output.txt"):
        link(runs.folder(run).path / name, secret)
    assert "hidden away" not in json.dumps(Reports(runs).live(run))


def test_a_run_with_a_linked_config_is_none(runs, secret):
    run = finished(runs, model())
    link(runs.folder(run).config_path, secret)
    with pytest.raises(InputError, match="There is no run"):
        runs.as_form(run)


def test_no_linked_text_is_taken_over(runs, secret, tmp_path):
    run = finished(runs, model())
    folder = runs.folder(run).path
    (folder / "texts").mkdir(exist_ok=True)
    link(folder / "texts" / "a.txt", secret)
    (tmp_path / "new").mkdir()
    runs.copy_texts(run, {"data": {"texts": ["texts/a.txt"]}}, tmp_path / "new")
    assert not [*tmp_path.glob("new/texts/*")]
    assert own_texts(folder, ["texts/a.txt"]) == []


@pytest.mark.parametrize(
    ("name", "values"), [("config.json", {"model": 5, "data": 7}), ("status.json", {"step": "x"})]
)
def test_a_damaged_run_is_not_packed_and_says_so(runs, name, values):
    """It was a bare fault of the server."""
    run = finished(runs, model())
    (runs.folder(run).path / name).write_text(json.dumps({"state": "finished"} | values), "utf-8")
    with pytest.raises(InputError, match="are damaged"):
        run_export.pack(runs, run)
