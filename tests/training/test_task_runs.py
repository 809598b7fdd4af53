"""Fine-tuning as a run folder: killed, stopped, and opened elsewhere."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

import core_models as cm
from core_models.training import estimate as estimates
from core_models.training import precision, settings, task_run, task_settings
from core_models.training.__main__ import main
from core_models.training.finetune import finetune
from core_models.training.folder import RunFolder
from core_models.training.guard import DivergenceError
from core_models.training.preview import first_batch
from core_models.training.process import new_run, train
from core_models.training.task_schema import is_task
from tests.training.conftest import SENTENCES, labelled, quiet
from tests.training.harness import kill_until_finished

pytestmark = pytest.mark.usefixtures("in_process")
TIMING = {"seconds", "tokens_per_second"}
MakeTask = Callable[..., RunFolder]


def tensors(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.safetensors")}


def reports(run: RunFolder) -> list[dict[str, Any]]:
    return [{k: v for k, v in r.items() if k not in TIMING} for r in run.metrics()]


def assert_same(run: RunFolder, reference: RunFolder) -> None:
    assert tensors(run.model_path)
    assert tensors(run.model_path) == tensors(reference.model_path)
    mine, other = (each.checkpoints()[-1] for each in (run, reference))
    assert mine.step == other.step
    assert "state.safetensors" in tensors(mine.path)
    assert tensors(mine.path) == tensors(other.path)
    assert reports(run) == reports(reference)
    first, second = (evaluation(each) for each in (run, reference))
    for name in ("metrics", "worst", "best", "history", "confusion", "best_epoch"):
        assert first[name] == second[name], name


def evaluation(run: RunFolder) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((run.path / "evaluation.json").read_text())
    return values


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments_a_run_resumes_bit_identically(make_task: MakeTask) -> None:
    # A checkpoint at every step: most of the time is spent in writing, so kills fall into it.
    options = {"checkpoints": {"every": 1, "keep": 2}, "epochs": 7}
    reference, killed = make_task("reference", **options), make_task("killed", **options)
    seen = kill_until_finished(reference, killed, 5)
    assert set(seen.states) <= {"new", "crashed", "finished"}, seen
    assert seen.states.count("crashed") >= 2, seen
    assert any(seen.torn), seen
    assert any(0 < step < 35 for step in seen.steps), seen  # some fell into the training
    assert killed.state() == "finished"
    assert_same(killed, reference)


def test_stop_request_then_resume(make_task: MakeTask) -> None:
    reference, stopped = make_task("reference"), make_task("stopped")
    assert train(reference.config_path, quiet) == "finished"

    def stop_early(line: str) -> None:
        if line.startswith(("step 4/", "step 10/")):
            stopped.request_stop()

    for expected in (4, 10):
        assert train(stopped.config_path, stop_early) == "stopped"
        assert stopped.state() == "stopped"
        status = stopped.status()
        assert (status["step"], status["reason"]) == (expected, "by request")
        assert not stopped.stop_requested()
    (stopped.path / "rows.csv").unlink()  # what counts is the run's own copy
    assert train(stopped.config_path, quiet) == "finished"
    assert_same(stopped, reference)


def test_a_run_goes_on_without_the_model_that_it_began_with(
    make_task: MakeTask, base: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    shutil.copytree(base, own)
    wanted = {"model": {"checkpoint": str(own)}, "compare_from_scratch": True}
    reference, stopped = make_task("reference", **wanted), make_task("stopped", **wanted)
    assert train(reference.config_path, quiet) == "finished"

    def stop_early(line: str) -> None:
        if line.startswith("step 4/"):
            stopped.request_stop()

    assert train(stopped.config_path, stop_early) == "stopped"
    shutil.rmtree(own)
    assert train(stopped.config_path, quiet) == "finished"
    assert_same(stopped, reference)


def test_the_folder_tells_everything(make_task: MakeTask) -> None:
    run = make_task(compare_from_scratch=True, checkpoints={"keep": 3, "snapshots": True})
    assert main([str(run.config_path)]) == 0
    status = run.status()
    assert status["state"] == "finished"
    assert status["objectives"] == {"classify": 1.0}
    assert status["step"] == status["steps"] == 20  # 41 training rows: 5 batches of 8, 4 epochs
    assert set(status["baselines"]) == {
        "majority",
        "bag_of_words",
        "weighted_words",
        "from_scratch",
    }
    assert status["task"]["labels"] == ["animal", "other"]
    assert status["task"]["train"]["rows"] + status["task"]["dev"]["rows"] == 48

    assert [c.step for c in run.checkpoints()] == [10, 15, 20]  # after each epoch
    assert [c.step for c in run.checkpoints("snapshots")] == [1, 2, 4, 8, 16]
    assert "classify" in cm.load(run.checkpoints("snapshots")[0].path).heads

    records = run.metrics()
    measured = [r["step"] for r in records if "validation_accuracy" in r]
    assert measured == [3, 5, 6, 9, 10, 12, 15, 18, 20]
    assert [r["step"] for r in records if "validation_loss" not in r] == [2, 4, 8, 14, 16]
    assert records[-1]["epoch"] == 4.0
    assert records[-1]["learning_rate"] > 0
    assert all(r["gradient_norm"] > 0 for r in records)

    found = evaluation(run)
    assert sum(map(sum, found["confusion"])) == status["task"]["dev"]["rows"]
    right = sum(found["confusion"][i][i] for i in range(2))
    assert right / 7 == pytest.approx(found["metrics"]["accuracy"])
    assert len(found["best"]) == right
    assert len(found["worst"]) == 7 - right
    assert [b["sureness"] for b in found["best"]] == sorted(
        (b["sureness"] for b in found["best"]), reverse=True
    )
    assert found["calibration"]["bins"]
    by_epoch = [h["metrics"]["accuracy"] for h in found["history"]]
    assert found["metrics"]["accuracy"] == by_epoch[found["best_epoch"] - 1] == max(by_epoch)
    scratch = next(b for b in found["task"]["baselines"] if b["name"] == "from_scratch")
    assert scratch["metrics"]["accuracy"] == status["baselines"]["from_scratch"]


def test_a_comparison_that_diverges_costs_no_result(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(*_: object, **__: object) -> None:
        raise DivergenceError("The loss is not finite.")

    monkeypatch.setattr(task_run, "finetune", diverge)
    run = make_task(compare_from_scratch=True)
    assert train(run.config_path, quiet) == "finished"
    assert "from_scratch" not in run.status()["baselines"]
    assert evaluation(run)["metrics"]["accuracy"] > 0
    assert "there is no comparison: The loss is not finite." in (run.path / "log.txt").read_text()
    assert run.status()["measuring"] is False


def test_a_run_is_what_finetune_does(make_task: MakeTask, base: Path) -> None:
    run = make_task()
    train(run.config_path, quiet)
    wanted = task_settings.read_any(run.config_path)
    task = task_settings.load_set(wanted, run.path)
    torch.set_num_threads(1)
    alone = finetune(cm.load(base), task, task_settings.tuning(wanted))
    ours = cm.load(run.model_path).state_dict()
    assert ours.keys() == alone.model.state_dict().keys()
    assert all(torch.equal(ours[k], v) for k, v in alone.model.state_dict().items())


NAMES = [
    {"tokens": s[:-1].split(), "tags": ["B-A" if w == "dog" else "O" for w in s[:-1].split()]}
    for s in SENTENCES[:30]
]
QUESTIONS = [
    {
        "context": s,
        "question": "red bird?",
        "answers": [{"text": s.split()[1], "start": len(s.split()[0]) + 1}],
    }
    for s in SENTENCES[:30]
]
PAIRS = [
    {"text": a, "text_b": b, "score": (i % 7) / 2}
    for i, (a, b) in enumerate(zip(SENTENCES[:30], SENTENCES[30:60], strict=True))
]

SEVERAL = [
    {"text": s, "labels": [word for word in ("dog", "red", "sees") if word in s.split()]}
    for s in SENTENCES[:30]
]


@pytest.mark.parametrize(
    ("rows", "opened", "head"),
    [
        (None, AutoModelForSequenceClassification, "classify"),
        (PAIRS, AutoModelForSequenceClassification, "regress"),
        (SEVERAL, AutoModelForSequenceClassification, "multilabel"),
        (NAMES, AutoModelForTokenClassification, "tag"),
        (QUESTIONS, AutoModelForQuestionAnswering, "span"),
    ],
)
def test_every_kind_leaves_a_model_that_opens(
    make_task: MakeTask, rows: list[dict[str, Any]] | None, opened: Any, head: str
) -> None:
    run = make_task(epochs=1)
    if rows is not None:
        (run.path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        values = json.loads(run.config_path.read_text())
        run.config_path.write_text(json.dumps(values | {"task": {"set": "rows.jsonl"}}))
    train(run.config_path, quiet)
    json.loads((run.path / "evaluation.json").read_text(), parse_constant=pytest.fail)
    for folder in (run.model_path, run.checkpoints()[-1].path / "model"):
        assert head in cm.load(folder).heads
    ours = cm.load(run.model_path)
    theirs = opened.from_pretrained(run.model_path).eval()
    batch = ours.batch(["the red dog sees a cat."])
    with torch.no_grad():
        mine = ours.heads[head].answer(ours.encoder, batch)  # type: ignore[operator]
        out = theirs(batch.input_ids)
    if head == "span":
        out_logits = torch.stack([out.start_logits, out.end_logits], -1)
    else:
        out_logits = out.logits.squeeze(-1) if head == "regress" else out.logits
    torch.testing.assert_close(mine, out_logits, atol=1e-5, rtol=1e-5)


def test_a_recipe_beside_its_files(make_task: MakeTask, tmp_path: Path, base: Path) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "mine.csv").write_text(labelled())
    values = {"model": {"checkpoint": str(base)}, "task": {"set": "mine.csv"}, "epochs": 1}
    (folder / "mine.json").write_text(json.dumps(values))
    config = new_run(folder / "mine.json", tmp_path / "elsewhere")
    assert task_settings.read_any(config).task.set == str(folder / "mine.csv")
    assert is_task(settings.read_values(config))
    assert train(config, quiet) == "finished"


def test_looking_before_training(
    make_task: MakeTask, capsys: pytest.CaptureFixture[str], base: Path
) -> None:
    run = make_task()
    assert main([str(run.config_path), "--estimate", "--preview"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["estimate"]["steps"] == 20
    assert found["estimate"]["seconds"] == pytest.approx(20 * found["estimate"]["seconds_per_step"])
    assert {p.name for p in run.path.iterdir()} == {"config.json", "rows.csv"}
    rows = labelled().split("\n")
    vocabulary = cm.load(base).tokenizer
    assert len(found["first_batch"]) == 8
    for example in found["first_batch"]:
        sentence, label = rows[example["number"]].split(",")
        assert example["label"] == label
        assert example["ids"] == vocabulary.encode(sentence).ids
        assert example["pieces"][0] == "[CLS]"
    train(run.config_path, quiet)
    assert run.status()["parameters"] == found["estimate"]["parameters"]


@pytest.mark.parametrize("most", [10, 5_000])
def test_an_estimate_reads_some_of_the_rows(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    run = make_task(batch_size=32, precision="auto")
    options = task_settings.read_any(run.config_path)
    monkeypatch.setattr(estimates, "_SAMPLED", most)
    monkeypatch.setattr(precision, "emulated", lambda: True)
    tuning = task_run.opened(options, run.path)
    found = estimates.estimate(options, run.path, seconds=0.0)
    assert found.steps == tuning.steps


@pytest.mark.parametrize(
    ("rows", "field"), [(NAMES, "tags"), (QUESTIONS, "answer"), (PAIRS, "score")]
)
def test_the_first_batch_says_what_is_asked(
    make_task: MakeTask, rows: list[dict[str, Any]], field: str
) -> None:
    run = make_task(task={"set": "rows.jsonl"})
    (run.path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    example = first_batch(task_settings.read_any(run.config_path), run)[0]
    row = rows[example["number"] - 1]
    if field == "tags":
        assert [tag for tag in example["tags"] if tag] == row["tags"]
    elif field == "answer":
        first, last = example["answer"]
        assert "".join(example["pieces"][first : last + 1]).replace("##", "") == (
            row["answers"][0]["text"].strip(".")
        )
    else:
        assert example["score"] == pytest.approx(row["score"] / 3)


def test_what_should_be_known_of_a_set_is_said_once(make_task: MakeTask) -> None:
    """That its tags were rewritten shows in the file alone, not in the rows that are kept."""
    lines = [
        {"tokens": ["Ann", "saw", "New", "York"], "tags": ["S-PER", "O", "B-LOC", "E-LOC"]},
        {"tokens": ["in", "Rome", "it", "rained"], "tags": ["O", "S-LOC", "O", "O"]},
    ]
    rows = [
        line | {"tokens": [*line["tokens"], f"day{n}"], "tags": [*line["tags"], "O"]}
        for n in range(8)
        for line in lines
    ]
    run = make_task(task={"set": "tags.jsonl"}, report_every=1)
    (run.path / "tags.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    assert train(run.config_path, lambda line: run.request_stop()) == "stopped"
    words = "The tags mark ends of names, too"
    warnings = run.status()["task"]["warnings"]
    assert any(words in warning for warning in warnings)
    assert all(f"warning: {warning}" in (run.path / "log.txt").read_text() for warning in warnings)
    assert train(run.config_path, quiet) == "finished"
    assert run.status()["task"]["warnings"] == warnings
    assert (run.path / "log.txt").read_text().count(words) == 1
