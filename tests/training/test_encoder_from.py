"""Models that begin with the encoder of another family."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.training.folder import RunFolder
from core_models.training.models import build_model
from core_models.training.plan import plan_for
from core_models.training.prepare import prepare
from core_models.training.settings import parse, read
from core_models.training.shape import build_config

WORDS = cm.Tokenizer.train(["the red fox sees a small dog in the old house"] * 5, vocabulary=120)
SHAPE = {"layers": 2, "width": 32, "heads": 2, "inner": 64, "positions": 30}


def made(toy: Callable[..., dict[str, Any]], size: str, seed: int = 1, **model: Any) -> cm.Model:
    overrides = SHAPE | ({"embedding_width": 32} if size.startswith("electra") else {})
    values = toy(
        seed=seed, model={"size": size, "overrides": overrides | model.pop("over", {})} | model
    )
    settings = parse(values)
    config = build_config(settings, WORDS.vocabulary, WORDS.pad_id)
    return build_model(settings, plan_for(settings, cm.size(size)), config, WORDS, None)


@pytest.fixture
def known(toy: Callable[..., dict[str, Any]], tmp_path: Path) -> tuple[cm.Model, str]:
    model = made(toy, "bert-mini", seed=7)
    model.save(tmp_path / "known")
    return model, str(tmp_path / "known")


@pytest.mark.parametrize("size", ["electra-small-discriminator", "spanbert-base-cased"])
def test_the_encoder_is_taken_and_the_heads_are_fresh(
    toy: Callable[..., dict[str, Any]], known: tuple[cm.Model, str], size: str
) -> None:
    bert, folder = known
    fresh, warm = made(toy, size), made(toy, size, encoder_from=folder)
    own = warm.encoder.state_dict()
    for name, tensor in bert.encoder.state_dict().items():
        assert torch.equal(own[name], tensor), name
    assert warm.config.family == fresh.config.family != bert.config.family
    assert set(warm.heads) == set(fresh.heads)
    for name, tensor in fresh.heads.state_dict().items():
        if tensor.shape != (WORDS.vocabulary, 32):  # tied to the pieces
            assert torch.equal(tensor, warm.heads.state_dict()[name]), name
    batch = warm.batch(["the red fox sees"])
    same = bert.eval().encoder(batch).hidden
    assert torch.allclose(warm.eval().encoder(batch).hidden, same, atol=1e-6)


@pytest.mark.parametrize(
    ("over", "named"),
    [
        ({"width": 64}, "[64"),
        ({"layers": 1}, "missing"),
        ({"positions": 40}, "positions.weight is [40, 32]"),
    ],
)
def test_other_shapes_are_refused_by_name(
    toy: Callable[..., dict[str, Any]],
    known: tuple[cm.Model, str],
    over: dict[str, int],
    named: str,
) -> None:
    with pytest.raises(
        InputError, match=r"model.encoder_from: the encoder of .* does not fit"
    ) as caught:
        made(toy, "bert-base-uncased", encoder_from=known[1], over=over)
    assert named in str(caught.value)


def test_a_checkpoint_brings_its_own_encoder(toy: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="encoder_from or"):
        parse(toy(model={"checkpoint": "bert-mini", "encoder_from": "bert-mini"}))


def test_a_tokenizer_may_be_named_as_a_shipped_model(
    make_run: Callable[..., RunFolder],
) -> None:
    run = make_run(tokenizer={"folder": "bert-mini"})
    settings = read(run.config_path)
    prepared = prepare(run, settings, plan_for(settings, cm.size("bert-mini")))
    assert prepared.tokenizer.vocabulary == cm.load("bert-mini").tokenizer.vocabulary
