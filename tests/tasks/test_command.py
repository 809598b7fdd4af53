"""``python -m core_models finetune``."""

import json
from pathlib import Path

import pytest

import core_models as cm
from core_models.cli.main import main
from core_models.tasks import sets
from core_models.tasks.settings import Settings
from core_models.training.task_schema import TaskSettings


@pytest.fixture
def folder(bert: cm.Model, tmp_path: Path) -> Path:
    bert.save(tmp_path / "tiny")
    return tmp_path / "tiny"


def rows(tmp_path: Path) -> Path:
    lines = ["Body,Verdict", *(f"row {w} of {i},{w}" for i in range(20) for w in ("good", "bad"))]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines))
    return path


def test_json_has_metrics_beside_the_baselines(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "out"
    options = ["--epochs", "2", "--learning-rate", "5e-3", "--column", "text=Body", "--json"]
    code = main(["finetune", str(folder), str(rows(tmp_path)), *options, "--save", str(saved)])
    printed = capsys.readouterr()
    assert code == 0
    found = json.loads(printed.out)
    assert found["set"]["kind"] == "classify"
    assert found["set"]["labels"] == ["bad", "good"]
    assert found["settings"]["epochs"] == 2
    assert set(found["metrics"]) == {"accuracy", "macro_f1", "calibration_error"}
    assert {b["name"] for b in found["baselines"]} >= {"majority", "bag_of_words"}
    assert len(found["history"]) == 2
    assert "epoch 2: loss" in printed.err
    assert cm.load(saved).heads["classify"].labels == ("bad", "good")
    assert main(["finetune", str(folder), "topic", "--save", str(saved)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_the_table_has_a_line_for_each_method(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert main(["finetune", str(folder), str(rows(tmp_path)), "--epochs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["accuracy", "macro_f1", "calibration_error"]
    assert lines[1].startswith("always the commonest label")
    assert any(line.startswith("this model") for line in lines)
    assert lines[-1] == "Best epoch 1 of 1, by accuracy."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "No labelled set 'nothing'"),
        (["bad.csv"], "There is no file bad.csv."),
        (["bad.jsonl.xz"], "There is no file bad.jsonl.xz."),
        (["folder/topic"], "There is no file folder/topic."),
        (["topic", "--column", "text"], "has no '='"),
        (["topic", "--epochs", "0"], "epochs is 0"),
        (["topic", "--apart"], "apart belongs to scored pairs"),
        (["topic", "--mix"], "A mix of all layers is for tags"),
        (["topic", "--frozen", "99"], "frozen is 99"),
    ],
)
def test_bad_input_is_told(
    folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["finetune", str(folder), *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_help_names_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["finetune", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    run = TaskSettings.model_fields
    for name in ("epochs", "batch_size", "seed", "layer_decay", "warmup", "max_length"):
        usual, other = getattr(Settings, name), run[name].default
        more = "" if usual == other else f"; {other} where a config.json does not say"
        assert f"(default: {usual}{more})" in said.split("--" + name.replace("_", "-"))[-1]


def test_shipped_sets_are_named_in_the_documents() -> None:
    readme = (sets.SHIPPED.parent / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in sets.shipped())


def test_several_labels_at_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        json.dumps({"Body": f"row {' '.join(held)} of {i}", "Topics": held})
        for i in range(20)
        for held in (["good"], ["bad"], ["bad", "good"], [])
    ]
    path, saved = tmp_path / "several.jsonl", tmp_path / "out"
    path.write_text("\n".join(lines))
    options = ["--epochs", "2", "--column", "labels=Topics", "--json", "--save", str(saved)]
    assert main(["finetune", str(folder), str(path), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["set"]["kind"], found["main"]) == ("multilabel", "micro_f1")
    assert set(found["metrics"]) == {"micro_f1", "macro_f1", "exact_match", "calibration_error"}
    assert {b["name"] for b in found["baselines"]} == {
        "majority",
        "bag_of_words",
        "weighted_words",
    }
    assert list(found["labels"]) == ["bad", "good"]
    assert cm.load(saved).heads["multilabel"].labels == ("bad", "good")
