"""The hardest and easiest held-out examples of a validation, for every objective that asks."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.training import extremes
from core_models.training.folder import RunFolder
from core_models.training.process import train
from tests.training.conftest import forget_accelerator, quiet
from tests.training.test_resume import SMALL, assert_same

pytestmark = pytest.mark.usefixtures("in_process")
MakeRun = Callable[..., RunFolder]
SHORT = {"steps": 8, "validate_every": 4, "report_every": 4}
KINDS: dict[str, dict[str, Any]] = {
    "masked_token": {"masking": {"dynamic": True}},
    "causal": {"objectives": {"causal": 1.0}},
    "permutation": {
        "model": {"size": "xlnet-base", "overrides": SMALL},
        "data": {"texts": ["text.txt"], "held_out": 0.3, "max_length": 24, "reuse": 12},
        "tokenizer": {"vocabulary": 300},
        "batch_size": 4,
    },
    "replaced_token": {
        "model": {"size": "electra-small", "overrides": SMALL | {"embedding_width": 32}},
        "objectives": {"replaced_token": 1.0},
        "generator": {"width": 16, "heads": 2, "inner": 32},
        "data": {"texts": ["text.txt"], "held_out": 0.1, "max_length": 24},
    },
}


def noted(run: RunFolder) -> dict[str, Any]:
    found = json.loads((run.path / "validation.json").read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_examples_add_up_to_the_held_out_loss(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(extremes, "KEPT", 10**6)
    for name in ("FEWEST", "FEWEST_OF_ALL"):
        monkeypatch.setattr(extremes, name, 1)
    for name in ("MOST_QUESTIONS", "MOST_OF_ALL"):
        monkeypatch.setattr(extremes, name, 10**6)
    run = make_run(**KINDS[kind] | SHORT)
    train(run.config_path, quiet)
    found = noted(run)
    assert (found["kind"], found["step"]) == (kind, 8)
    every = found["best"] + found["worst"][::-1]
    assert 0 < len(every) <= found["examples"]
    assert [each["loss"] for each in every] == sorted(each["loss"] for each in every)
    questions = sum(each["questions"] for each in every)
    mean = sum(each["loss"] * each["questions"] for each in every) / questions
    record = run.metrics()[-1]
    assert mean == pytest.approx(record[f"validation_{kind}_loss"], abs=2e-4)
    for each in every:
        for question in each["asked"]:
            assert each["pieces"][question["place"]][0] == question["right"]
    asked = [question for each in every for question in each["asked"]]
    if kind == "replaced_token":
        # Every wrong verdict is there, and every piece that was put in.
        wrong = sum(question["wrong"] for question in asked)
        assert 1 - wrong / questions == pytest.approx(record["validation_replaced_token_accuracy"])
        fakes = [question for question in asked if question["replaced"]]
        assert len(fakes) / questions == pytest.approx(record["validation_replaced_token_share"])
        assert all(question["shown"] != question["right"] for question in fakes)
        assert all(question["wrong"] == (question["chance"] <= 0.5) for question in fakes)
    else:
        assert len(asked) == questions
        right = sum(question["said"] == question["right"] for question in asked)
        # Two pieces of a vocabulary may read the same, as "a" and "##a".
        assert right / questions >= record[f"validation_{kind}_accuracy"] - 1e-9
        for each in every:
            mean = sum(question["loss"] for question in each["asked"]) / each["questions"]
            assert mean == pytest.approx(each["loss"], abs=1e-3)


def test_what_the_model_said_is_what_the_saved_model_says(make_run: MakeRun) -> None:
    run = make_run(**SHORT, objectives={"masked_token": 1.0}, masking={"split": [1.0, 0.0, 0.0]})
    train(run.config_path, quiet)
    model = cm.load(run.model_path)
    worst = next(
        each
        for each in noted(run)["worst"]
        # One segment whose hidden pieces are whole words, so that it can be written as a text.
        if sum(piece == "[SEP]" for piece, _ in each["pieces"]) == 1
    )
    ids = [
        model.tokenizer.id(piece if starts else f"##{piece}") for piece, starts in worst["pieces"]
    ]
    for question in worst["asked"]:
        ids[question["place"]] = model.tokenizer.mask_id
    with torch.no_grad():
        hidden = model.encoder(cm.Batch(input_ids=torch.tensor([ids]))).hidden[0]
        chances = model.heads["masked_token"](hidden).softmax(-1)
    for question in worst["asked"]:
        chance, said = chances[question["place"]].max(-1)
        assert model.tokenizer.display(int(said)) == question["said"]
        assert float(chance) == pytest.approx(question["chance"], abs=1e-4)


def test_noting_changes_no_result(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    noting, silent = make_run("noting", **SHORT), make_run("silent", **SHORT)
    train(noting.config_path, quiet)
    forget_accelerator()
    monkeypatch.setattr(extremes, "_listener", lambda objective: None)
    train(silent.config_path, quiet)
    assert_same(noting, silent)
    assert not (silent.path / "validation.json").exists()


def test_few_are_kept_and_each_was_asked_enough(make_run: MakeRun) -> None:
    run = make_run(**SHORT, documents=120)
    train(run.config_path, quiet)
    found = noted(run)
    assert len(found["worst"]) == len(found["best"]) == extremes.KEPT
    every = found["worst"] + found["best"]
    assert all(each["questions"] >= extremes.FEWEST for each in every)
    assert found["worst"][0]["loss"] > found["best"][0]["loss"]


def test_objectives_that_ask_of_no_token_leave_none(make_run: MakeRun) -> None:
    run = make_run(**SHORT, objectives={"next_sentence": 1.0})
    train(run.config_path, quiet)
    assert not (run.path / "validation.json").exists()
