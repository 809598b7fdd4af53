"""Shipping a finished run, and the shipped one in a new runs folder."""

import json
from pathlib import Path

import pytest
import torch

import core_models as cm
from app.runs import shipped as shipped_runs
from app.runs.runs import Runs
from core_models.checkpoints.files import read_tensors
from core_models.errors import InputError
from core_models.prediction import fill
from core_models.training import durable
from core_models.training.folder import RunFolder, read_json
from core_models.training.settings import resolve_folder
from core_models.training.task_settings import parse as parse_task
from tests.core.tiny_models import new, tiny
from zoo.__main__ import main
from zoo.ship_run import ship_run

QUESTION = "The children [MASK] playing in the garden ."


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A finished run with snapshots and more than is shipped."""
    run = RunFolder.create(tmp_path / "made" / "short", {"data": {"texts": ["primer/*.txt"]}})
    model = new(tiny("bert-mini"))
    run.append_metrics({"step": 16, "loss": 1.5})
    run.log("finished")
    run.write_evaluation({"steps": 16})
    run.save_model(model.save)
    for step in (1, 2, 8, 16):
        run.save(step, model.save, kind="snapshots")
    run.save(16, model.save)
    run.write_status({"state": "finished", "step": 16, "process": {"pid": 1}})
    return run


def test_what_the_page_shows_is_shipped_in_half_precision(run: RunFolder, tmp_path: Path) -> None:
    target = tmp_path / "shipped"
    assert main(["ship-run", str(run.path), "--target", str(target)]) == 0
    copy = RunFolder(target / "short")
    assert copy.state() == "finished"
    assert "process" not in copy.status()
    assert copy.metrics() == run.metrics()
    assert [each.step for each in copy.checkpoints("snapshots")] == [1, 8, 16]
    assert copy.checkpoints() == []
    for folder in (copy.model_path, *(each.path for each in copy.checkpoints("snapshots"))):
        assert durable.verify(folder) is None
        assert {tensor.dtype for tensor in read_tensors(folder).values()} == {torch.float16}
        assert cm.load(folder).heads


def test_what_cannot_be_shipped_is_refused(run: RunFolder, tmp_path: Path) -> None:
    target = tmp_path / "shipped"
    status = run.status()
    run.write_status(status | {"state": "stopped"})
    with pytest.raises(InputError, match="only a finished run"):
        ship_run(run, target, print)
    run.write_status(status)
    config = {"data": {"texts": [f"{Path.home()}/my.txt"]}}
    run.config_path.write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"config\.json names"):
        ship_run(run, target, print)
    for snapshot in run.checkpoints("snapshots"):
        durable.remove_folder(snapshot.path)
    with pytest.raises(InputError, match="has no snapshots"):
        ship_run(run, target, print)
    assert not target.exists() or not list(target.iterdir())


def test_a_new_runs_folder_begins_with_the_shipped_ones(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped_runs, "SHIPPED", run.path.parent)
    root = tmp_path / "runs"
    shipped_runs.install(root)
    runs = Runs(root, enabled=False)
    assert runs.ids() == ["short"]
    assert runs.state("short") == "finished"
    assert runs.model_path("run/short/step-8").is_dir()
    (root / "short" / "log.txt").write_text("mine")
    shipped_runs.install(root)
    assert (root / "short" / "log.txt").read_text() == "mine"
    durable.remove_folder(root / "short")
    shipped_runs.install(root)
    assert Runs(root, enabled=False).ids() == [], "what its keeper deleted does not come back"


def test_a_fine_tuning_is_shipped_without_snapshots(run: RunFolder, tmp_path: Path) -> None:
    for snapshot in run.checkpoints("snapshots"):
        durable.remove_folder(snapshot.path)
    run.config_path.write_text(json.dumps({"task": {"set": "ner"}}))
    ship_run(run, tmp_path / "shipped", print)
    assert cm.load(RunFolder(tmp_path / "shipped" / "short").model_path).heads


def test_the_shipped_fine_tuning_goes_on_from_the_shipped_run_and_gains_by_it(
    tmp_path: Path,
) -> None:
    shipped_runs.install(tmp_path)
    runs = Runs(tmp_path, enabled=False)
    assert runs.ids() == ["classroom", "names"], "the page begins with the pretraining"
    run = RunFolder(tmp_path / "names")
    status, config = run.status(), parse_task(read_json(run.config_path))
    base = Path(resolve_folder(config.model.checkpoint, run.path)).resolve()
    assert base == (tmp_path / "classroom" / "model").resolve()
    assert durable.verify(run.model_path) is None
    reached = read_json(run.path / "evaluation.json")["metrics"][status["main"]]
    assert reached > 2 * max(status["baselines"].values())
    assert "tag" in cm.load(run.model_path).heads


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        shipped_runs.install(tmp_path / "file")


def test_the_shipped_run_learns_from_snapshot_to_snapshot() -> None:
    run = RunFolder(shipped_runs.SHIPPED / "classroom")
    assert run.state() == "finished"
    snapshots = run.checkpoints("snapshots")
    assert len(snapshots) >= 8
    chances = []
    for snapshot in snapshots:
        assert durable.verify(snapshot.path) is None
        (found,) = fill(cm.load(snapshot.path), QUESTION, watch=["are"]).predictions
        chances.append(found.watched[0].probability)
    assert chances[0] < 0.01
    assert chances[-1] > 0.1
    losses = [record["masked_token_loss"] for record in run.metrics()]
    assert losses[-1] < losses[0] - 2
