"""What a fine-tuning refuses, with the reason: sets, settings, several processes, bad losses."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.model import SHIPPED
from core_models.tasks import sets
from core_models.tasks.heads import ready
from core_models.tasks.settings import RANGES
from core_models.training import task_look, task_settings
from core_models.training.__main__ import main
from core_models.training.finetune import FineTuning
from core_models.training.folder import RunFolder
from core_models.training.guard import DivergenceError
from core_models.training.process import train
from core_models.training.task_schema import TaskSettings
from tests.training.conftest import labelled, quiet

pytestmark = pytest.mark.usefixtures("in_process")
MakeTask = Callable[..., RunFolder]


BAD = {
    "one label": ("text,label\na b,x\nc d,x\n", {}, "every row has the label 'x'"),
    "no rows": ("text,label\n", {}, "holds no rows"),
    "no such column": (None, {"columns": {"text": "Body"}}, "no column 'Body'; it has 'text'"),
    "wrong kind": (None, {"kind": "answer"}, "no column for context"),
    "outside": (
        "context,question,answers\nA cat.,Who?,dog\nA cow.,Who?,cow\n",
        {},
        "row 1: the answer 'dog' does not stand in the context",
    ),
    "binary": ("text,label\na\0,b\n", {}, "binary"),
    "no file": (None, {"set": "nothing.csv"}, "no labelled set 'nothing.csv'. By name: ner"),
    "shipped": (None, {"set": "sentiment", "kind": "pair"}, "sentiment is a shipped set"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_set_that_cannot_be_used_fails_with_the_reason(make_task: MakeTask, case: str) -> None:
    content, task, reason = BAD[case]
    run = make_task(content=content, task={"set": "rows.csv"} | task)
    with pytest.raises(InputError, match=reason):
        train(run.config_path, quiet)
    assert run.state() == "failed"
    assert reason in run.status()["reason"]
    assert "Traceback" not in (run.path / "log.txt").read_text()
    assert main([str(run.config_path)]) == 2
    (run.path / "rows.csv").write_text(labelled())  # a better file, and the run goes on
    if task == {}:
        assert train(run.config_path, quiet) == "finished"


@pytest.mark.parametrize(("part", "name"), [("task", "set"), ("model", "checkpoint")])
def test_a_recipe_that_cannot_start_leaves_no_folder(
    make_task: MakeTask, tmp_path: Path, part: str, name: str
) -> None:
    values = json.loads(make_task(name="recipes").config_path.read_text())
    values[part][name] = "nothing.csv"
    recipe = tmp_path / "recipes" / "mine.json"
    recipe.write_text(json.dumps(values))
    assert main([str(recipe), "--run", str(tmp_path / "run")]) == 2
    assert not (tmp_path / "run").exists()


def test_a_recipe_is_not_run_among_other_files(
    make_task: MakeTask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = make_task(name="recipes").config_path.rename(tmp_path / "recipes" / "mine.json")
    assert main([str(recipe), "--run", str(recipe.parent)]) == 2
    assert "already holds other files, such as 'mine.json'" in capsys.readouterr().err
    assert {path.name for path in recipe.parent.iterdir()} == {"mine.json", "rows.csv"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs = 0"),
        ({"learning_rate": 2.0}, "learning_rate = 2.0"),
        ({"task": {}}, "task.set: is missing"),
        ({"task": {"set": "a", "colums": {}}}, "Did you mean 'columns'"),
        ({"task": {"set": "a", "columns": {"body": "x"}}}, "task.columns.body"),
        ({"frozen": 1}, "Did you mean 'frozen_layers'"),
        ({"steps": 5}, "steps: no such field"),
        ({"from_scratch": True, "compare_from_scratch": True}, "leave one of the two out"),
    ],
)
def test_settings_are_strict(changes: dict[str, Any], message: str) -> None:
    values = {"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}}
    with pytest.raises(InputError, match=message):
        task_settings.parse(values | changes)


def test_ranges_are_those_of_the_core() -> None:
    """What the schema lets through the core accepts, too."""
    base = {"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}}
    limits = [
        (name, getattr(each, end))
        for name, field in TaskSettings.model_fields.items()
        for each in field.metadata
        for end in ("ge", "le")
        if hasattr(each, end)
    ]
    assert {("epochs", 1), ("epochs", 1000), ("frozen_layers", 48), ("warmup", 0.0)} <= {*limits}
    optional = {*RANGES} - {name for name, _ in limits}  # whose limits stand beside None
    assert optional == {"dropout", "learning_rate"}
    limits += [(name, limit) for name in optional for limit in RANGES[name]]
    for name, limit in limits:
        task_settings.tuning(task_settings.parse(base | {name: limit}))


def test_frozen_layers_beyond_the_model_are_refused(make_task: MakeTask) -> None:
    run = make_task(frozen_layers=3)
    with pytest.raises(InputError, match="frozen is 3; this model has 2 blocks"):
        train(run.config_path, quiet)


def test_other_settings_are_refused_on_resume(make_task: MakeTask) -> None:
    run = make_task()

    def stop_early(line: str) -> None:
        run.request_stop()

    assert train(run.config_path, stop_early) == "stopped"
    values = json.loads(run.config_path.read_text())
    run.config_path.write_text(json.dumps(values | {"seed": 9}))
    with pytest.raises(InputError, match="was changed since step 2: seed"):
        train(run.config_path, quiet)
    run.config_path.write_text(json.dumps(values | {"name": "new", "compare_from_scratch": True}))
    assert train(run.config_path, quiet) == "finished"


def test_a_loss_that_is_not_finite_stops_the_run(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_task()
    from core_models.tasks import objectives

    real = objectives.Classify.losses

    def broken(self: Any, answer: torch.Tensor, batch: Any) -> Any:
        steps = len((run.path / "metrics.jsonl").read_text()) if run.metrics() else 0
        return real(self, answer * (float("nan") if steps and self.training else 1.0), batch)

    monkeypatch.setattr(objectives.Classify, "losses", broken)
    with pytest.raises(DivergenceError, match=r"diverged at step 3.*lower learning rate.*none"):
        train(run.config_path, quiet)
    assert run.state() == "failed"


def test_several_processes_are_refused(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_task()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="one process: labelled sets are small"):
        train(run.config_path, quiet)
    assert run.state() == "failed"
    assert "torchrun" in run.status()["reason"]
    assert not run.data_path.exists()


def test_too_little_memory_names_what_a_fine_tuning_has(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_task()

    def full(self: FineTuning) -> None:
        raise MemoryError

    monkeypatch.setattr(FineTuning, "update", full)
    with pytest.raises(MemoryError):
        train(run.config_path, quiet)
    reason = run.status()["reason"]
    assert reason.startswith("Not enough memory.")
    named = {word.strip(",.") for word in reason.split() if "_" in word or "." in word[:-1]}
    assert named == {"batch_size", "max_length"} <= TaskSettings.model_fields.keys()


@pytest.mark.parametrize(
    ("name", "fits"), [("sentiment", False), ("similarity", False), ("ner", True)]
)
def test_left_to_right_is_refused_before_a_run_as_in_it(name: str, fits: bool) -> None:
    settings = task_settings.parse({"model": {"checkpoint": "x"}, "task": {"set": name}})
    task = sets.load(name)
    model = cm.load(SHIPPED / "causal-mini")
    for refuse in (
        lambda: task_look.check_model(settings, task, model),
        lambda: ready(model, task, task_settings.tuning(settings)),
    ):
        with contextlib.nullcontext() if fits else pytest.raises(InputError, match="left to right"):
            refuse()


def test_checking_a_config_needs_no_pytorch() -> None:
    code = (
        "import sys; from core_models.training import task_settings as t;"
        "t.parse({'model': {'checkpoint': 'x'}, 'task': {'set': 'y'}});"
        "sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
