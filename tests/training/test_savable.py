"""What can be trained can be saved: all else is refused before the first step."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import core_models as cm
from core_models.errors import InputError
from core_models.training.folder import RunFolder
from core_models.training.models import build_model, build_objective, model_config
from core_models.training.plan import plan_for
from core_models.training.process import train
from core_models.training.settings import parse
from tests.training.conftest import quiet

SIZES = {cm.size(name).family: name for name in cm.sizes()}
"""One of each family."""
OBJECTIVES = (
    *("masked_token", "next_sentence", "sentence_order", "span_boundary", "permutation"),
    *("replaced_token", "causal", "masked_diffusion", "masked_next_token"),
)
SHAPE = {"layers": 2, "width": 64, "heads": 2, "inner": 96}
WORDS = cm.Tokenizer.train(["the red fox sees a small dog in the old house"] * 5, vocabulary=120)


def values(size: str, **objectives: float) -> dict[str, Any]:
    return {
        "model": {"size": size, "overrides": SHAPE},
        "data": {"texts": ["text.txt"], "max_length": 32},
        "objectives": objectives,
        "steps": 10,
    }


@pytest.mark.parametrize("family", SIZES)
def test_every_model_that_a_run_begins_with_comes_back_from_its_file(
    family: str, tmp_path: Path
) -> None:
    begun = 0
    for name in OBJECTIVES:
        try:
            settings = parse(values(SIZES[family], **{name: 1.0}))
            plan = plan_for(settings, cm.size(SIZES[family]))
            config = model_config(
                settings, plan, None, vocabulary=WORDS.vocabulary, pad_id=WORDS.pad_id
            )
        except InputError:
            continue
        begun += 1
        model = build_model(settings, plan, config, WORDS, None)
        objective = build_objective(settings, plan, model, None, tmp_path)
        for part, each in {**objective.companions(), "model": model}.items():
            each.save(tmp_path / name / part)
            back = cm.load(tmp_path / name / part)
            assert (back.config, set(back.heads)) == (each.config, set(each.heads)), (name, part)
    assert begun


@pytest.mark.parametrize(
    ("size", "objective", "able"),
    [
        ("bert-base", "sentence_order", "albert"),
        ("modernbert-base", "next_sentence", "bert"),
        ("roberta-base", "span_boundary", "spanbert"),
        ("bert-base", "replaced_token", "electra"),
    ],
)
def test_an_objective_whose_head_no_file_holds_is_refused_before_the_first_step(
    make_run: Callable[..., RunFolder], size: str, objective: str, able: str
) -> None:
    wanted = {"size": size, "overrides": SHAPE}
    words = {"kind": "wordpiece", "vocabulary": 120}
    run = make_run(model=wanted, tokenizer=words, objectives={objective: 1.0})
    with pytest.raises(InputError, match=rf"{objective} cannot be trained .*that have one.*{able}"):
        train(run.config_path, quiet)
    assert run.metrics() == []
