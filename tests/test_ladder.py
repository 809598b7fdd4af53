"""The ladder's command: rungs are trained and measured once, and written as they are finished."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import ladder
from core_models.ladder import ground, rungs
from tests.core.tiny_models import narrow

ROOT = Path(__file__).resolve().parent.parent
PRIMER = ROOT / "assets" / "primer"


def small() -> tuple:
    """The first and the last rung, with few and narrow layers."""
    base = narrow(ground(), width=16, inner=48)
    return tuple(rungs(base)[n] for n in (0, -1))


@pytest.fixture
def command(tmp_path, monkeypatch, in_process):
    """Runs the command over a small ladder; returns what the page would read, and the document."""
    held_out = tmp_path / "held-out.txt"
    held_out.write_text("\n\n".join((PRIMER / "english-nature.txt").read_text().split("\n\n")[:9]))
    document = tmp_path / "ladder.md"
    document.write_text("before\n<!-- ladder: begin -->\n<!-- ladder: end -->\n")
    monkeypatch.setattr(ladder, "DOCUMENT", document)
    monkeypatch.setattr(ladder, "MEASURED", tmp_path / "ladder.json")
    monkeypatch.setattr(ladder, "rungs", small)
    monkeypatch.setattr(ladder, "RECIPE", {**ladder.RECIPE, "batch_size": 4})
    monkeypatch.setattr(ladder, "FEWEST", 3)
    monkeypatch.setattr(ladder, "STEPS", 1)
    pairs = ladder.read_pairs()[:4]
    monkeypatch.setattr(ladder, "read_pairs", lambda: pairs)

    def run(*more: str):
        given = ["--text", str(PRIMER / "english-life.txt"), "--held-out"]
        given += [str(held_out), "--documents", "30"]
        given += ["--work", str(tmp_path / "work"), "--minutes", "1e-5", *more]
        monkeypatch.setattr(sys, "argv", ["ladder", *given])
        ladder.main()
        return json.loads((tmp_path / "ladder.json").read_text()), document.read_text()

    return run


@pytest.mark.slow
def test_rungs_are_trained_once_and_written(command, monkeypatch):
    found, text = command()
    assert list(found["rungs"]) == list(found["again"]) == ["bert", "schedule"]
    first, again = found["rungs"]["bert"], found["again"]["bert"]
    assert first["steps"] == 3
    assert first["seed"] != again["seed"]
    assert first["perplexity"] != again["perplexity"]
    assert first["parameters"] == ladder.count(small()[0].config).pretraining
    assert text.startswith("before\n")
    assert text.count("another seed") == 2
    assert f"| {first['perplexity']:.0f} |" in text

    def trained(*_):
        raise AssertionError("a rung that is finished is trained again")

    monkeypatch.setattr(ladder.Ladder, "trainer", trained)
    assert command()[0]["rungs"] == found["rungs"]
    assert command("--write")[0]["rungs"] == found["rungs"]
    with pytest.raises(SystemExit, match="results of other texts"):
        command("--text", str(PRIMER / "english-world.txt"))
