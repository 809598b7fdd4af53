"""Which heads of a model were trained here, converted, or are missing."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import core_models as cm
from core_models.errors import InputError
from core_models.training.badges import badges
from tests.core.tiny_models import new, tiny

MODELS = Path(__file__).resolve().parents[2] / "assets" / "models"


def states(folder: Path) -> dict[str, str]:
    found = badges(folder)
    assert len({badge.head for badge in found}) == len(found)
    assert all(badge.why.endswith(".") for badge in found)
    return {badge.head: badge.state for badge in found}


def test_a_checkpoint_from_elsewhere_is_converted(tmp_path: Path) -> None:
    new(tiny("bert-mini")).save(tmp_path / "m")
    assert states(tmp_path / "m") == {"masked_token": "converted", "next_sentence": "converted"}


def test_heads_that_the_files_lack_are_missing(tmp_path: Path) -> None:
    new(tiny("bert-mini"), heads=("masked_token",)).save(tmp_path / "m")
    assert states(tmp_path / "m") == {"masked_token": "converted", "next_sentence": "missing"}
    new(tiny("spanbert-base-cased"), heads=()).save(tmp_path / "encoder")
    found = states(tmp_path / "encoder")
    assert found == {"masked_token": "missing", "span_boundary": "missing"}


def test_the_card_names_what_was_trained(tmp_path: Path) -> None:
    new(tiny("bert-mini")).save(tmp_path / "m")
    card = tmp_path / "m" / "cloze.json"
    card.write_text(json.dumps({"title": "m", "trained": ["masked_token"]}))
    assert states(tmp_path / "m") == {"masked_token": "trained", "next_sentence": "converted"}
    card.write_text(json.dumps({"trained": ["masked_token", "span_boundary"]}))
    assert "span_boundary" not in states(tmp_path / "m")  # a card adds no head
    for odd in ('{"trained": "masked_token"}', '{"trained": null}', "[]", "not JSON"):
        card.write_text(odd)
        assert set(states(tmp_path / "m").values()) == {"converted"}


def test_a_run_leaves_a_record(tmp_path: Path) -> None:
    run = tmp_path / "run"
    new(tiny("bert-mini")).save(run / "model")
    held_out = {"held_out": {"loss": 1.0, "masked_token_loss": 1.0, "masked_token_accuracy": 0.5}}
    (run / "evaluation.json").write_text(json.dumps(held_out))
    assert set(states(run / "model").values()) == {"converted"}  # no status: not a run's folder
    (run / "status.json").write_text("{}")
    assert states(run / "model") == {"masked_token": "trained", "next_sentence": "converted"}
    (run / "evaluation.json").write_text('{"held_out": {"distillation_loss": 1.0}}')
    assert states(run / "model")["masked_token"] == "trained"


@pytest.mark.parametrize("place", ["model", "snapshots/step-128", "checkpoints/step-1/model"])
def test_a_run_leaves_a_record_of_every_model_that_it_saves(tmp_path: Path, place: str) -> None:
    run = tmp_path / "run"
    new(tiny("bert-mini")).save(run / place)
    assert set(states(run / place).values()) == {"converted"}
    (run / "status.json").write_text('{"state": "running", "objectives": {"masked_token": 1.0}}')
    learning = {"masked_token": "trained", "next_sentence": "converted"}
    assert states(run / place) == learning, "it has not finished, so nothing is measured"
    (run / "evaluation.json").write_text('{"held_out": {"next_sentence_loss": 1.0}}')
    assert states(run / place) == {"masked_token": "converted", "next_sentence": "trained"}
    (run / "evaluation.json").unlink()
    for odd in ('{"objectives": ["masked_token"]}', "[]", "not JSON"):
        (run / "status.json").write_text(odd)
        assert set(states(run / place).values()) == {"converted"}


def test_a_generator_and_a_task_under_way_are_trained(tmp_path: Path) -> None:
    run = tmp_path / "run"
    new(tiny("electra-base"), heads=("masked_token",)).save(run / "checkpoints/step-1/generator")
    losses = {"masked_token": 1.0, "replaced_token": 50.0}
    status = {"objectives": {"replaced_token": 1.0}, "losses": losses}
    (run / "status.json").write_text(json.dumps(status))
    assert states(run / "checkpoints/step-1/generator")["masked_token"] == "trained"
    tuned = run / "checkpoints/step-2/model"
    new(tiny("bert-mini")).with_head("classify", labels=("a", "b")).save(tuned)
    (run / "status.json").write_text('{"objectives": {"classify": 1.0}}')
    assert states(tuned)["classify"] == "trained"


def test_a_model_that_somebody_put_into_a_run_is_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text('{"objectives": {"masked_token": 1.0}}')
    new(tiny("bert-mini")).save(tmp_path / "texts" / "m")
    assert set(states(tmp_path / "texts" / "m").values()) == {"converted"}


def test_a_fine_tuned_head_is_trained_and_the_others_are_gone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    new(tiny("bert-mini")).with_head("classify", labels=("a", "b")).save(run / "model")
    (run / "status.json").write_text("{}")
    (run / "evaluation.json").write_text('{"best_epoch": 2}')
    assert states(run / "model") == {
        "classify": "trained",
        "masked_token": "missing",
        "next_sentence": "missing",
    }


def test_own_fields_are_no_proof_of_training(tmp_path: Path) -> None:
    """A converted checkpoint carries cloze_objectives, too."""
    new(replace(tiny("bert-mini"), objectives=("masked_token",))).save(tmp_path / "m")
    assert "cloze_objectives" in json.loads((tmp_path / "m" / "config.json").read_text())
    assert states(tmp_path / "m") == {"masked_token": "converted", "next_sentence": "missing"}


def test_shipped_models_have_no_converted_head() -> None:
    looked_at = []
    for folder in sorted(path.parent for path in MODELS.glob("*/config.json")):
        found = states(folder)
        heads = cm.inspect(folder).heads
        assert {found[head] for head in heads} <= {"trained"}, folder.name
        looked_at += heads
    assert {"masked_token", "permutation", "replaced_token"} <= {*looked_at}


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        badges(tmp_path)
