"""Every shipped recipe, at a tiny size: trains, survives its death, and opens everywhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.training import settings
from core_models.training.estimate import estimate
from core_models.training.folder import RunFolder
from core_models.training.process import train
from tests.training.conftest import forget_accelerator, text
from tests.training.test_resume import assert_same

pytestmark = pytest.mark.usefixtures("in_process")
QUICK = ("classroom", "electra-mini", "xlnet-mini", "masked-diffusion")
"""Recipes that `make test` trains; the others are slow."""
RECIPES = [
    path
    for path in sorted((settings.ASSETS / "recipes").glob("*.json"))
    if "size" in json.loads(path.read_text()).get("model", {})
]
assert RECIPES


class Death(BaseException):
    """Ends the process without a word, as SIGKILL does."""


def tiny(recipe: Path, **changes: Any) -> dict[str, Any]:
    """A recipe with everything as it is but the sizes."""
    values = json.loads(recipe.read_text())
    positions = {"positions": 32} if "positions" in values["model"]["overrides"] else {}
    overrides = {"layers": 2, "width": 32, "heads": 2, "inner": 64} | positions
    values["model"] |= {"overrides": overrides}
    values["tokenizer"] |= {"vocabulary": 300}
    values["data"] |= {"texts": ["text.txt"], "training_only": [], "max_length": 24}
    values["data"] |= {"held_out": 0.05}  # a few batches: they are measured six times
    if "duplicates" in values["data"]:
        values["data"]["duplicates"] = 2
    if values.pop("compile", None):
        values["precision"] = "fp32"  # made for a GPU; a CPU's bf16 depends on its kernels
    if "memory" in values["data"]:
        values["data"] |= {"memory": 16, "reuse": 12}
    return (
        values
        | {
            "batch_size": 4,
            "steps": 10,
            "schedule": {"warmup": 2},
            "threads": 1,
            "report_every": 2,
            "validate_every": 5,
            "checkpoints": {"every": 4, "keep": 2},
        }
        | changes
    )


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., RunFolder]:
    def make_run(name: str, values: dict[str, Any]) -> RunFolder:
        run = RunFolder.create(tmp_path / name, values)
        (run.path / "text.txt").write_text(text(60))
        return run

    return make_run


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in QUICK else pytest.mark.slow)
        for path in RECIPES
    ],
)
def test_a_recipe_trains_dies_goes_on_and_opens(
    recipe: Path, make: Callable[..., RunFolder]
) -> None:
    values = tiny(recipe)
    reference, killed = make("reference", values), make("killed", values)
    assert train(reference.config_path, lambda line: None) == "finished"
    forget_accelerator()

    def die(line: str) -> None:
        if line.startswith("step 6/"):
            raise Death

    with pytest.raises(Death):
        train(killed.config_path, die)
    last = killed.last_checkpoint()
    assert last is not None
    assert last.step == 4
    forget_accelerator()
    assert train(killed.config_path, lambda line: None) == "finished"
    assert_same(killed, reference)
    check_metrics(reference)
    check_models(reference)


def check_metrics(run: RunFolder) -> None:
    status = run.status()
    for record in run.metrics():
        # A report without any label of an objective leaves it out.
        losses = {name: record.get(f"{name}_loss", 0.0) for name in status["losses"]}
        total = sum(weight * losses[name] for name, weight in status["losses"].items())
        assert record["loss"] == pytest.approx(total)
        for name in losses:
            assert 0 <= record.get(f"{name}_accuracy", 0) <= 1
    last = run.metrics()[-1]
    assert all(f"validation_{name}_loss" in last for name in status["losses"])


def check_models(run: RunFolder) -> None:
    transformers = pytest.importorskip("transformers")
    for name in ("model", *run.status()["companions"]):
        model = cm.load(run.path / name)
        batch = model.batch(["the cat sees a dog."])
        loader = transformers.AutoModel
        options = {}
        if model.config.attention.direction == "left":
            loader, options = transformers.BertLMHeadModel, {"output_hidden_states": True}
        theirs = loader.from_pretrained(run.path / name).eval()
        inputs = {"input_ids": batch.input_ids}
        if model.config.embeddings.segments != 1:
            inputs["token_type_ids"] = batch.segment_ids
        with torch.no_grad():
            ours = model.encoder(batch).hidden
            other = theirs(**inputs, **options)
        hidden = other.hidden_states[-1] if options else other.last_hidden_state
        torch.testing.assert_close(ours, hidden, atol=1e-5, rtol=1e-4)


def test_a_size_that_no_file_can_hold_is_refused_before_the_training(tmp_path: Path) -> None:
    """NeoBERT's files tell the inner width in steps of eight."""
    values = {
        "model": {
            "size": "neobert",
            "overrides": {"layers": 2, "width": 32, "heads": 2, "inner": 60},
        },
        "tokenizer": {"vocabulary": 300},
        "data": {"texts": ["primer/english-life.txt"], "max_length": 24},
        "steps": 5,
    }
    with pytest.raises(InputError, match="files of the family neobert cannot hold"):
        estimate(settings.parse(values), tmp_path, seconds=0.1)
