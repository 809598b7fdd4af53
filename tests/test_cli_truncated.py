"""Texts beyond what a model reads, and folders that cannot be written, on the command line."""

from pathlib import Path

import pytest

from core_models.cli.main import main
from core_models.model import SHIPPED, load

LONG = "The cat sat on the mat. " * 60
MODEL = "bert-mini"


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_gap_beyond_the_models_reach_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    longest = load(MODEL).longest
    code, out, err = call(capsys, "fill", f"{LONG} A [MASK].", "--model", MODEL)
    assert (code, out) == (2, "")
    assert f"longer than the {longest} pieces" in err
    code, out, err = call(capsys, "fill", f"A [MASK]. {LONG}", "--model", MODEL)
    assert code == 0
    assert out
    assert f"only the first {longest} pieces" in err


def test_a_line_that_is_scored_in_part_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "lines.txt"
    file.write_text(f"The cat sat.\n{LONG}\n")
    code, out, err = call(capsys, "score", str(file), "--model", str(SHIPPED / "causal-mini"))
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "line 2 is longer than" in err
    assert "line 1" not in err


def test_a_folder_that_cannot_be_written_is_told_before_the_training(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    wanted = str(tmp_path / "file" / "model")
    code, out, err = call(capsys, "finetune", MODEL, "topic", "--save", wanted)
    assert (code, out) == (2, "")
    assert "Cannot write to" in err
    assert "epoch" not in err
    code, _, err = call(capsys, "finetune", MODEL, "topic", "--dev", "nothing.csv")
    assert code == 2
    assert "topic is a shipped set" in err
