"""A disk that fills up, checkpoints that others need, and held-out text that just fits."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors import SafetensorError

from core_models.errors import InputError
from core_models.training import durable, process
from core_models.training.folder import RunFolder
from core_models.training.prepare import check_documents

MakeRun = Callable[..., RunFolder]
FULL = "Error while serializing: I/O error: No space left on device (os error 28)"


def test_what_fails_half_way_gives_its_room_back(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "half").write_text("of it")
        raise SafetensorError(FULL)

    with pytest.raises(SafetensorError):
        durable.write_folder(tmp_path / "step-1", write)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_finds_no_room_says_so_in_plain_words(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer of the weights raises an error of its own, which is no OSError."""
    run = make_run(steps=10)

    def full(*args: object, **values: object) -> None:
        raise SafetensorError(FULL)

    monkeypatch.setattr("core_models.training.checkpoint.write", full)
    with pytest.raises(SafetensorError):
        process.train(run.config_path, lambda line: None)
    assert run.state() == "failed"
    assert str(run.status()["reason"]).startswith("The disk is full.")


def test_a_held_checkpoint_outlives_those_after_it(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {})
    for step in (10, 20, 30, 40):
        run.save(step, lambda folder: (folder / "model").mkdir())
        if step == 10:
            run.hold(10)
        run.prune(2)
    assert [each.step for each in run.checkpoints()] == [10, 30, 40]


def test_held_out_text_of_a_stream_is_cut_into_as_many_rows_as_it_fills(make_run: MakeRun) -> None:
    """Whatever its length is: special pieces count in examples, but not in the text."""
    for number, length in enumerate((17, 19, 20, 21)):
        run = make_run(
            f"run-{number}",
            documents=60,
            model={"size": "xlnet-base", "overrides": {"layers": 1, "width": 32, "heads": 2}},
            data={"texts": ["text.txt"], "held_out": 0.1, "max_length": length},
            batch_size=16,
            steps=6,
        )
        assert process.train(run.config_path, lambda line: None) == "finished"


def test_one_document_is_too_few_to_hold_some_out(make_run: MakeRun) -> None:
    check_documents(4, 0.05)
    check_documents(1, 0.0)
    run = make_run(documents=40)
    whole = (run.path / "text.txt").read_text().replace("\n\n", "\n")
    (run.path / "text.txt").write_text(whole)
    with pytest.raises(InputError, match=r"too few \(1\): at least 4 .* blank line"):
        process.train(run.config_path, lambda line: None)
    assert "blank line" in json.dumps(run.status()["reason"])
