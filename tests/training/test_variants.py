"""Runs that differ from the usual one: other sources, teachers, generators, compilation."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.training.folder import RunFolder, read_json
from core_models.training.process import train
from tests.training.conftest import forget_accelerator, quiet

pytestmark = pytest.mark.usefixtures("in_process")
MakeRun = Callable[..., RunFolder]
Toy = Callable[..., dict[str, Any]]


def test_similar_words_are_found_in_the_runs_own_text(make_run: MakeRun, toy: Toy) -> None:
    overrides = toy()["model"]["overrides"]
    model = {"size": "chinese-macbert-base", "overrides": overrides}
    run = make_run(steps=6, model=model, data=toy()["data"] | {"singles": 0.0})
    assert train(run.config_path, quiet) == "finished"
    assert (run.data_path / "similar.safetensors").exists()
    assert run.status()["masking"]["kind"] == "similar_word"


@pytest.mark.parametrize("name", ["masked_diffusion", "masked_next_token"])
def test_other_ways_to_hide_learn_and_are_asked_afterwards(
    name: str, make_run: MakeRun, toy: Toy
) -> None:
    data = toy()["data"] | {"format": "full_sentences"}
    masking = {"leftward": 0.25} if name == "masked_next_token" else {}
    run = make_run(steps=60, objectives={name: 1.0}, data=data, masking=masking)
    assert train(run.config_path, quiet) == "finished"
    records = run.metrics()
    assert records[-1][f"{name}_loss"] < records[0][f"{name}_loss"] - 0.5
    assert records[-1][f"validation_{name}_loss"] < records[0][f"{name}_loss"]
    assert 0 <= records[-1][f"{name}_accuracy"] <= 1
    if name == "masked_next_token":
        assert run.status()["losses"] == {name: 0.75, "causal": 0.25}
        assert records[-1]["causal_loss"] < records[0]["causal_loss"]
    assert read_json(run.path / "validation.json")["worst"]
    made = cm.load(run.model_path)
    assert cm.fill(made, "the [MASK] sees a cat").predictions[0].candidates


def test_a_mini_of_the_modern_line_is_trained_saved_and_goes_on(
    make_run: MakeRun, toy: Toy
) -> None:
    """Ettin's shape, made narrower; the second run begins with the first one's weights."""
    overrides = {"layers": 4, "width": 32, "heads": 4, "inner": 48}
    modern: dict[str, Any] = {
        "model": {"size": "ettin-encoder-17m", "overrides": overrides},
        "tokenizer": {"vocabulary": 300},
        "data": {"texts": ["text.txt"], "held_out": 0.1, "max_length": 24},
        "masking": {"last_rate": 0.15},
    }
    run = make_run(steps=12, **modern)
    assert train(run.config_path, quiet) == "finished"
    first, last = run.metrics()[0], run.metrics()[-1]
    assert last["masked_token_loss"] < first["masked_token_loss"]
    assert run.status()["masking"] | {"rate": 0.3, "last_rate": 0.15} == run.status()["masking"]
    made = cm.load(run.model_path)
    assert type(made) is cm.Model
    assert made.config.family == "modernbert"
    assert made.config.kinds == ("global", "local", "local", "global")
    assert made.config.attention.rotary is not None
    assert made.longest == made.config.attention.rotary.positions == 512
    assert made.tokenizer.kind == "byte_bpe"
    assert cm.fill(made, "the [MASK] sees a cat").predictions[0].candidates
    rest = {"model": {"checkpoint": "../run/model"}, "tokenizer": {}}
    again = make_run("again", steps=6, **modern | rest)
    forget_accelerator()
    assert train(again.config_path, quiet) == "finished"
    assert cm.load(again.model_path).config == made.config


def test_tables_and_paragraphs_are_read(make_run: MakeRun, toy: Toy) -> None:
    data = toy()["data"] | {"texts": ["cells.csv"], "column": "story", "held_out": 0.2}
    run = make_run(steps=6, data=data)
    rows = [
        f'{n},"The cat sees a dog. The dog {n} sees a bird. It hears a fish."' for n in range(30)
    ]
    (run.path / "cells.csv").write_text("number,story\n" + "\n".join(rows) + "\n")
    assert train(run.config_path, quiet) == "finished"
    status = run.status()
    assert (status["data"]["documents"], status["data"]["held_out_documents"]) == (24, 6)
    wrong = make_run("wrong", data=data | {"column": "tale"})
    (wrong.path / "cells.csv").write_text((run.path / "cells.csv").read_text())
    with pytest.raises(InputError, match="tale"):
        train(wrong.config_path, quiet)


def test_a_student_learns_from_a_teacher_and_keeps_its_words(make_run: MakeRun, toy: Toy) -> None:
    teacher = make_run("teacher", steps=6)
    train(teacher.config_path, quiet)
    forget_accelerator()
    student = make_run(
        "student",
        steps=6,
        model={"size": "bert-mini", "overrides": toy()["model"]["overrides"] | {"layers": 1}},
        tokenizer={"folder": "../teacher/model"},
        data=toy()["data"] | {"format": "doc_sentences"},
        objectives={"distillation": 1.0},
        distillation={"teacher": "../teacher/model", "temperature": 2.0},
    )
    train(student.config_path, quiet)
    record = student.metrics()[-1]
    assert {"distillation_loss", "masked_token_loss", "hidden_cosine_loss"} <= record.keys()
    noted = json.loads((student.path / "validation.json").read_text())
    assert noted["kind"] == "masked_token"
    assert noted["worst"]
    made = cm.load(student.model_path)
    assert made.config.steps == 1
    assert made.tokenizer.fingerprint == cm.load(teacher.model_path).tokenizer.fingerprint


def test_a_teacher_that_reads_too_little_is_told_at_once(make_run: MakeRun, toy: Toy) -> None:
    teacher = make_run("teacher", steps=6)
    train(teacher.config_path, quiet)
    shape = toy()["model"]["overrides"] | {"positions": 64}
    student = make_run(
        "student",
        model={"size": "bert-mini", "overrides": shape},
        tokenizer={"folder": "../teacher/model"},
        data=toy()["data"] | {"format": "doc_sentences", "max_length": 64},
        objectives={"distillation": 1.0},
        distillation={"teacher": "../teacher/model"},
    )
    with pytest.raises(InputError, match=r"is 64, but distillation\.teacher has only 32 positions"):
        train(student.config_path, quiet)


def test_a_second_phase_goes_on_with_the_generator(make_run: MakeRun, toy: Toy) -> None:
    electra: dict[str, Any] = {
        "objectives": {"replaced_token": 1.0},
        "generator": {"width": 16, "heads": 2},
        "data": {"texts": ["text.txt"], "held_out": 0.1, "max_length": 24},
    }
    overrides = toy()["model"]["overrides"]
    first = make_run(
        "first", steps=6, model={"size": "electra-base", "overrides": overrides}, **electra
    )
    train(first.config_path, quiet)
    forget_accelerator()
    second = make_run(
        "second",
        steps=6,
        model={"checkpoint": str(first.model_path)},
        optimizer={"learning_rate": 1e-12},
        schedule={},
        **electra,
    )
    train(second.config_path, quiet)
    for name in ("model", "generator"):
        before, after = cm.load(first.path / name), cm.load(second.path / name)
        trained = dict(after.named_parameters())
        for key, old in before.named_parameters():
            torch.testing.assert_close(trained[key], old, atol=1e-6, rtol=0)


@pytest.mark.slow
def test_a_compiled_run_has_the_same_losses(
    make_run: MakeRun, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[torch.nn.Module] = []
    original = torch.nn.Module.compile

    def cheaply(self: torch.nn.Module, **options: Any) -> None:
        compiled.append(self)
        # No C++ compiler: takes seconds, not minutes.
        original(self, backend="aot_eager", **options)

    monkeypatch.setattr(torch.nn.Module, "compile", cheaply)
    # Each layer is compiled.
    overrides = toy()["model"]["overrides"] | {"layers": 1}
    model = toy()["model"] | {"dropout": 0.0, "overrides": overrides}
    losses = []
    for wanted in (False, True):
        run = make_run(f"compiled-{wanted}", model=model, steps=6, report_every=1, compile=wanted)
        train(run.config_path, quiet)
        assert [type(each) for each in compiled] == [cm.Encoder] * wanted
        losses.append([record["loss"] for record in run.metrics()])
        forget_accelerator()
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
