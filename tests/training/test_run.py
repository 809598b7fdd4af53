"""Whole runs: what they leave behind, and how they fail."""

import errno
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.objectives import Losses, MaskedToken
from core_models.training import learning
from core_models.training.__main__ import main
from core_models.training.folder import RunFolder
from core_models.training.guard import DivergenceError, Guard
from core_models.training.process import explain, new_run, train
from tests.training.conftest import forget_accelerator, quiet, text

pytestmark = pytest.mark.usefixtures("in_process")
MakeRun = Callable[..., RunFolder]
Toy = Callable[..., dict[str, Any]]


def test_a_run_leaves_metrics_baselines_and_a_model(make_run: MakeRun) -> None:
    run = make_run(checkpoints={"every": 10, "keep": 1, "snapshots": True})
    lines: list[str] = []
    assert train(run.config_path, lines.append) == "finished"
    records = run.metrics()
    assert [r["step"] for r in records] == [4, 8, 10, 12, 16, 20, 24, 28, 30]
    assert {
        "step",
        "tokens",
        "loss",
        "masked_token_loss",
        "masked_token_accuracy",
        "next_sentence_loss",
        "next_sentence_accuracy",
        "learning_rate",
        "gradient_norm",
        "tokens_per_second",
        "seconds",
    } <= records[0].keys()
    assert "validation_masked_token_accuracy" not in records[0]
    for name in ("loss", "masked_token_loss", "masked_token_accuracy", "next_sentence_accuracy"):
        assert math.isfinite(records[2][f"validation_{name}"])
    assert records[-1]["masked_token_loss"] < records[0]["masked_token_loss"]
    status = run.status()
    baselines = status["baselines"]
    assert baselines["uniform"] == pytest.approx(math.log(status["data"]["vocabulary"]))
    assert 0 < baselines["unigram_entropy"] < baselines["uniform"]
    assert status["threads"] == 1
    assert [c.step for c in run.checkpoints()] == [30]
    assert [c.step for c in run.checkpoints("snapshots")] == [1, 2, 4, 8, 16]
    evaluation = json.loads((run.path / "evaluation.json").read_text())
    last = records[-1]["validation_masked_token_loss"]
    assert evaluation["held_out"]["masked_token_loss"] == pytest.approx(last)
    assert lines[-1].startswith("step 30/30")


def test_model_and_checkpoints_open_here_and_in_transformers(make_run: MakeRun) -> None:
    transformers = pytest.importorskip("transformers")
    run = make_run(steps=8, checkpoints={"every": 4, "keep": 2})
    train(run.config_path, quiet)
    for folder in (run.model_path, run.checkpoints()[0].path / "model"):
        model = cm.load(folder)
        assert set(model.heads) == {"masked_token", "next_sentence"}
        batch = model.batch(["the cat [MASK] a bird.", ("a dog.", "the tree.")])
        theirs = transformers.BertForPreTraining.from_pretrained(folder).eval()
        with torch.no_grad():
            hidden = model.encoder(batch).hidden
            other = theirs(
                input_ids=batch.input_ids,
                token_type_ids=batch.segment_ids,
                attention_mask=batch.attention_mask,
            )
        mask = batch.attention_mask
        ours = model.heads["masked_token"](hidden)[mask]
        torch.testing.assert_close(ours, other.prediction_logits[mask], atol=1e-5, rtol=1e-5)
        pairs = model.heads["next_sentence"](hidden)
        torch.testing.assert_close(pairs, other.seq_relationship_logits, atol=1e-5, rtol=1e-5)


def test_training_learns(make_run: MakeRun, toy: Toy) -> None:
    run = make_run(
        documents=6,
        data=toy()["data"] | {"held_out": 0.0, "duplicates": 20},
        model=toy()["model"] | {"dropout": 0.0},
        optimizer={"learning_rate": 0.01},
        steps=80,
        report_every=40,
    )
    train(run.config_path, quiet)
    records = run.metrics()
    assert records[-1]["masked_token_loss"] < run.status()["baselines"]["unigram_entropy"]
    assert not any(name.startswith("validation") for name in records[-1])


def test_accumulated_parts_equal_the_whole_batch(make_run: MakeRun, toy: Toy) -> None:
    model = toy()["model"] | {"dropout": 0.0}
    losses = []
    for parts in (1, 3):
        run = make_run(f"parts{parts}", model=model, accumulation=parts, steps=8, report_every=1)
        train(run.config_path, quiet)
        losses.append([r["loss"] for r in run.metrics()])
        forget_accelerator()
    assert losses[0] == pytest.approx(losses[1], abs=2e-5)


def test_validating_more_often_changes_nothing(make_run: MakeRun) -> None:
    models = []
    for every in (3, 8):
        run = make_run(f"every{every}", steps=8, validate_every=every)
        train(run.config_path, quiet)
        models.append((run.model_path / "model.safetensors").read_bytes())
        forget_accelerator()
    assert models[0] == models[1]


def test_masked_token_alone_needs_no_pairs(make_run: MakeRun) -> None:
    run = make_run(steps=6, objectives={"masked_token": 1.0})
    train(run.config_path, quiet)
    assert set(cm.load(run.model_path).heads) == {"masked_token"}


def test_going_on_from_a_model_keeps_its_weights_and_vocabulary(make_run: MakeRun) -> None:
    first = make_run("first", steps=6)
    train(first.config_path, quiet)
    forget_accelerator()
    second = make_run(
        "second",
        steps=6,
        model={"checkpoint": str(first.model_path), "dropout": 0.0},
        optimizer={"learning_rate": 1e-12},
        schedule={},
    )
    train(second.config_path, quiet)
    before, after = cm.load(first.model_path), cm.load(second.model_path)
    assert after.tokenizer.fingerprint == before.tokenizer.fingerprint
    assert after.config.dropout == 0.0
    trained = dict(after.named_parameters())
    for name, old in before.named_parameters():
        torch.testing.assert_close(trained[name], old, atol=1e-6, rtol=0)


@pytest.mark.parametrize("asked", ["at every step", "before a report"])
def test_a_loss_that_is_not_a_number_stops_before_the_update(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    if asked == "before a report":  # as on a GPU
        monkeypatch.setattr(
            learning, "Guard", lambda device, immediate: Guard(device, immediate=False)
        )
    run = make_run(checkpoints={"every": 4, "keep": 2})
    original = MaskedToken.forward
    calls = 0

    def poisoned(self: MaskedToken, *arguments: Any, **options: Any) -> Losses:
        nonlocal calls
        calls += self.training
        losses = original(self, *arguments, **options)
        factor = math.nan if calls > 6 else 1.0
        total, count = losses.metrics["masked_token_loss"]
        losses.metrics["masked_token_loss"] = (total * factor, count)
        return Losses(
            sums={n: v * factor for n, v in losses.sums.items()},
            counts=losses.counts,
            weights=losses.weights,
            metrics=losses.metrics,
        )

    monkeypatch.setattr(MaskedToken, "forward", poisoned)
    with pytest.raises(DivergenceError):
        train(run.config_path, quiet)
    status = run.status()
    assert run.state() == "failed"
    assert status["reason"].startswith("Training diverged at step 7: the loss of masked_token")
    assert "Last good checkpoint: step 4" in status["reason"]
    assert "lower learning rate" in status["reason"]
    last = run.last_checkpoint()
    assert last is not None
    for parameter in cm.load(last.path / "model").parameters():
        assert bool(parameter.isfinite().all())


@pytest.mark.parametrize("text", ["", "\n \n\n"])
def test_empty_corpus(make_run: MakeRun, text: str) -> None:
    run = make_run()
    (run.path / "text.txt").write_text(text)
    with pytest.raises(InputError, match="no text in text"):
        train(run.config_path, quiet)
    assert run.state() == "failed"
    assert "no text" in run.status()["reason"]
    assert not run.data_path.exists()


def test_one_line_is_too_little(make_run: MakeRun) -> None:
    run = make_run()
    (run.path / "text.txt").write_text("One line only.\n")
    with pytest.raises(InputError, match="too few"):
        train(run.config_path, quiet)


def test_a_file_that_is_no_text(make_run: MakeRun) -> None:
    run = make_run()
    (run.path / "text.txt").write_bytes(b"\xff\xfe\x00\x01" * 50)
    with pytest.raises(InputError, match="not readable as UTF-8"):
        train(run.config_path, quiet)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"size": "bert-huge"}}, "No published size 'bert-huge'"),
        ({"model": {"checkpoint": "nowhere"}}, "No model 'nowhere'"),
        ({"model": {"size": "bert-mini", "overrides": {"heads": 3}}}, "not divisible by 3 heads"),
        (
            {"model": {"size": "bert-mini"}, "data": {"texts": ["text.txt"], "max_length": 600}},
            "has only 512",
        ),
    ],
)
def test_impossible_models(make_run: MakeRun, changes: dict[str, Any], message: str) -> None:
    run = make_run(**changes)
    with pytest.raises(InputError, match=message):
        train(run.config_path, quiet)
    assert run.state() == "failed"


def test_a_second_start_is_refused_and_does_no_harm(make_run: MakeRun) -> None:
    run = make_run()
    refused: list[str] = []

    def start_again(line: str) -> None:
        if not refused:
            with pytest.raises(InputError) as error:
                train(run.config_path, quiet)
            refused.append(str(error.value))

    assert train(run.config_path, start_again) == "finished"
    assert "already training" in refused[0]


def test_recipes_become_runs(tmp_path: Path, make_run: MakeRun, toy: Toy) -> None:
    (tmp_path / "text.txt").write_text((make_run().path / "text.txt").read_text())
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(toy(steps=6)))
    with pytest.raises(InputError, match="--run"):
        train(recipe, quiet)
    config = new_run(recipe, tmp_path / "made")
    assert json.loads(config.read_text())["data"]["texts"] == [str(tmp_path / "text.txt")]
    assert train(config, quiet) == "finished"
    with pytest.raises(InputError, match="already holds a run"):
        new_run(recipe, tmp_path / "made")
    (tmp_path / "other" / "data").mkdir(parents=True)
    with pytest.raises(InputError, match="already holds other files, such as 'data'; allowed is"):
        new_run(recipe, tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("words", "message"),
    [(None, "neither beside recipe.json"), ("", "no text in text"), ("A cat.\n", "too few")],
)
def test_a_run_that_cannot_start_leaves_no_folder(
    tmp_path: Path, toy: Toy, words: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if words is not None:
        (tmp_path / "text.txt").write_text(words)
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(toy()))
    (tmp_path / "empty").mkdir()
    for name in ("run", "empty"):
        assert main([str(recipe), "--run", str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert (tmp_path / "empty").is_dir()  # it was there before


def test_prepared_texts_stay_where_a_run_cannot_start(
    tmp_path: Path, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> None:
        raise InputError("not this model")

    monkeypatch.setattr("core_models.training.models.build_model", refuse)
    (tmp_path / "text.txt").write_text(text(40))
    (tmp_path / "recipe.json").write_text(json.dumps(toy()))
    assert main([str(tmp_path / "recipe.json"), "--run", str(tmp_path / "run")]) == 2
    assert (tmp_path / "run" / "data").is_dir()


def test_a_finished_run_counts_its_steps_in_words(make_run: MakeRun) -> None:
    run = make_run()
    run.write_status({"state": "finished", "steps": 1})
    with pytest.raises(InputError, match=r"after 1 step; config\.json asks for 30"):
        train(run.config_path, quiet)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (OSError(errno.EROFS, "Read-only file system"), "cannot be written"),
        (MemoryError(), "Not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: not enough memory"), "memory"),
        (ZeroDivisionError("x"), "Unexpected error (ZeroDivisionError)"),
    ],
)
def test_failures_in_plain_words(error: BaseException, words: str) -> None:
    assert words in explain(error)


def test_the_command(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(steps=6)
    command = [sys.executable, "-m", "core_models.training"]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [*command, str(run.config_path)], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("finished.\n")
    (run.path / "other.json").write_text("{}")
    assert main([str(run.path / "other.json")]) == 2
    assert "--run FOLDER" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["__main__", "race"])
def test_ctrl_c_while_pytorch_is_imported_ends_quietly(tmp_path: Path, command: str) -> None:
    # Not the signal itself: what a shell starts in the background ignores it.
    (tmp_path / "torch.py").write_text("raise KeyboardInterrupt\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r});"
        f"from core_models.training.{command} import main; sys.exit(main(['recipe.json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
