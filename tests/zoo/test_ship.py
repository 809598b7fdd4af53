"""Shipping finished models, and measuring models that the recipe did not train."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.checkpoints.files import read_tensors
from core_models.evaluation import evaluate_words
from core_models.evaluation.minimal_pairs import read_pairs
from core_models.evaluation.words import choose_words
from tests.core.tiny_models import new, tiny
from zoo import build, ship
from zoo.__main__ import main
from zoo.measure import Questions, measure, rounding
from zoo.weights import fingerprint

RUN: dict[str, Any] = {"texts": ["primer"], "tokens": 12, "held_out": {}}
SENTENCES = "The red fox sees a small dog.\nThe dog likes the old house.\nBirds sing in the tree.\n"


def make(folder: Path, name: str = "a", size: str = "bert-mini", **figures: Any) -> Path:
    path = folder / name
    new(tiny(size)).save(path)
    (path / "cloze.json").write_text('{"trained": []}')
    (path / "README.md").write_text("A card.")
    if figures:
        (path / "evaluation.json").write_text(json.dumps(figures))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Models ``a``, and ``b`` with its generator; all of them measured."""
    folder = tmp_path / "made"
    words = {"words": {"accuracy": 0.5}, "run": RUN}
    make(folder, "a", **words)
    make(folder, "b", "electra-small-discriminator", forgeries={"auc": 0.5}, run=RUN)
    make(folder, "b-generator", "electra-small-generator", **words)
    return folder


def test_models_are_shipped_in_half_precision_with_all_that_belongs_to_them(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "shipped"
    assert main(["ship", "a", "b", "--from", str(source), "--models", str(target)]) == 0
    assert {p.name for p in target.iterdir()} == {"a", "b", "b-generator"}
    for folder in target.iterdir():
        assert {t.dtype for t in read_tensors(folder).values()} == {torch.float16}
        for name in ("README.md", "cloze.json", "evaluation.json", "tokenizer.json"):
            assert (folder / name).read_bytes() == (source / folder.name / name).read_bytes()
        assert cm.load(folder).name == folder.name
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"a: {ship.size(target / 'a'):,} bytes; ")
    before = fingerprint(target / "a")
    assert main(["ship", "a", "--from", str(target), "--models", str(target)]) == 0
    assert fingerprint(target / "a") == before


def test_what_is_not_evaluated_is_refused(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusal(name: str) -> str:
        arguments = ["ship", name, "--from", str(source), "--models", str(tmp_path / "shipped")]
        assert main(arguments) == 2
        assert not (tmp_path / "shipped").exists()
        return capsys.readouterr().err

    assert "no model 'nobody'" in refusal("nobody")
    (source / "b-generator" / "evaluation.json").unlink()
    assert "b-generator is not evaluated" in refusal("b")
    for figures in ({"run": RUN}, {"words": {}}):
        (source / "a" / "evaluation.json").write_text(json.dumps(figures))
        assert "zoo measure a" in refusal("a")
    (source / "a" / "evaluation.json").write_text(json.dumps({"words": {}, "run": RUN}))
    (source / "a" / "README.md").unlink()
    assert "a has no README.md" in refusal("a")


def test_limits_of_files_and_of_the_whole_set(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "shipped"
    command = ["ship", "a", "--from", str(source), "--models", str(target)]
    assert main(command) == 0
    one = ship.size(target / "a")
    monkeypatch.setattr(ship, "LARGEST_SET", one)
    assert main(command) == 0  # it takes the place of the old one
    (target / "a").rename(target / "old")
    assert main(command) == 2
    assert f"take {2 * one:,} bytes; at most {one:,}" in capsys.readouterr().err
    assert not (target / "a").exists()
    monkeypatch.setattr(ship, "LARGEST_FILE", 100)
    assert main(command) == 2
    assert "larger than 10 MB" in capsys.readouterr().err


def test_scores_stay_with_their_weights(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "shipped"
    ship.ship(["a"], source, target, lambda line: None)
    scores = {"weights": fingerprint(target / "a"), "tasks": {}}
    (target / "a" / "scores.json").write_text(json.dumps(scores))
    ship.ship(["a"], source, target, lambda line: None)
    assert json.loads((target / "a" / "scores.json").read_text()) == scores
    new(tiny("bert-mini"), seed=2).save(source / "a")
    ship.ship(["a"], source, target, lambda line: None)
    assert not (target / "a" / "scores.json").exists()


@pytest.mark.slow
def test_a_model_from_elsewhere_is_measured(tmp_path: Path) -> None:
    folder = make(tmp_path, words={"words": 1}, forgeries={"auc": 1.0}, run=RUN)
    held_out = tmp_path / "held-out.txt"
    held_out.write_text(SENTENCES)
    arguments = ["measure", "a", "--models", str(tmp_path), "--text", str(held_out)]
    assert main([*arguments, "--words", "9"]) == 0
    found = json.loads((folder / "evaluation.json").read_text())
    assert found["run"] == RUN
    assert "forgeries" not in found  # what was there of other measurements is gone
    expected = evaluate_words(cm.load(folder), choose_words(SENTENCES.splitlines(), most=9))
    assert found["words"]["perplexity"] == pytest.approx(expected.perplexity)
    assert (found["words"]["words"], found["minimal_pairs"]["pairs"]) == (9, 2340)


CARD = """# a

## Held-out figures

| measure | value |
|---|---:|
| hidden words right | 99.0 % |

The figures of all models side by side, and how they are measured: docs/models.md.

## Licence
"""


def test_one_figure_is_measured_and_the_others_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"accuracy": 0.25, "perplexity": 40.0}
    folder = make(tmp_path, run=RUN, words=words, plain_sentences={"asked": 1}, other=1)
    (folder / "README.md").write_text(CARD)
    arguments = ["measure", "a", "--models", str(tmp_path), "--only"]
    assert main([*arguments, "plain_sentences"]) == 0  # no text is needed
    found = json.loads((folder / "evaluation.json").read_text())
    plain = found.pop("plain_sentences")
    assert found == {"words": words, "run": RUN, "other": 1}
    assert plain["asked"] == 60
    card = (folder / "README.md").read_text()
    rows = [
        "| hidden words right | 25.0 % |",
        "| perplexity per word | 40.0 |",
        f"| plain sentences: first / in the first five / asked | {plain['first']} / "
        f"{plain['in_first_five']} / 60 |",
    ]
    assert card == CARD.replace("| hidden words right | 99.0 % |", "\n".join(rows))
    assert main([*arguments, "attention"]) == 0
    spread = json.loads((folder / "evaluation.json").read_text())["attention"]["entropy"]
    row = f"| entropy of the attention by layer, nats | {', '.join(f'{e:.2f}' for e in spread)} |"
    assert row in (folder / "README.md").read_text()
    make(tmp_path, "b", size="electra-small-discriminator")
    arguments[1] = "b"
    assert main([*arguments, "capitals", "plain_sentences"]) == 2
    assert "b can be asked nothing of capitals, plain_sentences" in capsys.readouterr().err


def test_a_discriminator_is_measured_with_the_generator_beside_it(
    source: Path, tmp_path: Path
) -> None:
    held_out = tmp_path / "held-out.txt"
    held_out.write_text(SENTENCES)
    questions = Questions.of(held_out, words=5, pairs=read_pairs()[:2])
    assert set(measure(source / "b", questions)) == {"forgeries", "attention"}
    asked = {"words", "minimal_pairs", "plain_sentences", "attention"}
    assert set(measure(source / "b-generator", questions)) == asked
    (source / "b-generator").rename(source / "c")
    with pytest.raises(cm.InputError, match="no b-generator lies beside it"):
        measure(source / "b", questions)


@pytest.mark.parametrize("size", ["bert-mini", "electra-small-discriminator"])
def test_what_half_precision_changes(size: str, tmp_path: Path) -> None:
    folder = make(tmp_path, size=size)
    held_out = tmp_path / "held-out.txt"
    held_out.write_text(SENTENCES)
    questions = Questions.of(held_out, words=5, pairs=read_pairs()[:2])
    change, whole, half = rounding(folder, questions)
    assert 0 < change < 0.01
    assert whole.keys() == half.keys()
    ship.export(folder, tmp_path / "half")
    assert rounding(tmp_path / "half", questions)[0] == 0


def test_equal_weights_are_equal_files(tmp_path: Path) -> None:
    """Scores belong to the bytes of a model, and so does what git keeps for ever."""
    folder = make(tmp_path, size="bert-mini")
    marks = set()
    for number in range(6):
        ship.export(folder, tmp_path / f"half-{number}")
        marks.add(fingerprint(tmp_path / f"half-{number}"))
    assert len(marks) == 1


def test_a_run_is_evaluated_as_it_is_exported(tmp_path: Path) -> None:
    """With rounded weights, so that the figures are those of the files."""
    run = build.RunFolder(tmp_path / "run")
    new(tiny("bert-mini")).save(run.model_path)
    (run.path / "evaluation.json").write_text('{"held_out": {}}')
    held_out = tmp_path / "held-out.txt"
    held_out.write_text(SENTENCES)
    found = build.evaluate(run, held_out, words=9, pairs=read_pairs()[:2])
    ship.export(run.model_path, tmp_path / "half")
    questions = Questions.of(held_out, words=9, pairs=read_pairs()[:2])
    assert found["model"] == questions.figures(cm.load(tmp_path / "half"))
    assert found["model"] != questions.figures(cm.load(run.model_path))
