"""Tables of positions that begin as sine waves."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.training.models import build_model
from core_models.training.plan import plan_for
from core_models.training.settings import parse
from core_models.training.shape import build_config

STD = 0.04
TABLES = ("bert-base-uncased", "roberta-base", "albert-base-v2", "electra-small-discriminator")
NONE = ("xlnet-base-cased", "deberta-base", "deberta-v3-base")
WORDS = cm.Tokenizer.train(["the red fox sees a small dog in the old house"] * 5, vocabulary=120)


def made(toy: Callable[..., dict[str, Any]], size: str, **model: Any) -> cm.Model:
    """The model that a run of the toy config begins with."""
    published = cm.size(size).embeddings
    overrides: dict[str, Any] = {"layers": 2, "width": 32, "heads": 2, "inner": 64}
    overrides["positions"] = 30 if published.positions is not None else None
    if published.width != cm.size(size).width:
        overrides["embedding_width"] = 16
    values = toy(model={"size": size, "overrides": overrides} | model)
    values["data"] |= {"singles": 0.0}
    settings = parse(values)
    pad = 1 if size == "roberta-base" else WORDS.pad_id  # as in the published vocabulary
    config = build_config(settings, WORDS.vocabulary, pad)
    plan = plan_for(settings, cm.size(size))
    return build_model(settings, plan, config, WORDS, None)


@pytest.mark.parametrize("size", TABLES)
def test_waves_have_the_asked_size_and_the_rest_is_as_without(
    toy: Callable[..., dict[str, Any]], size: str
) -> None:
    drawn, waved = made(toy, size), made(toy, size, position_waves=STD)
    first = waved.encoder.embeddings.first_position
    assert first == (2 if size == "roberta-base" else 0)
    table = waved.state_dict()["encoder.embeddings.positions.weight"]
    width = waved.config.embeddings.width
    assert table.shape == (waved.config.embeddings.positions, width)
    # sine and cosine of one angle: every row has the same length, which the deviation gives
    lengths = table[first:].norm(dim=1)
    assert torch.allclose(lengths, torch.full_like(lengths, STD * math.sqrt(width)), rtol=1e-5)
    # row 0 is sin 0 and cos 0; one row on, the fastest wave has turned by one radian
    half = width // 2
    assert torch.allclose(table[first, :half], torch.zeros(half))
    assert torch.allclose(table[first, half:], torch.full((half,), STD * math.sqrt(2)))
    assert float(table[first + 1, 0]) == pytest.approx(STD * math.sqrt(2) * math.sin(1), rel=1e-5)
    # a distance is one rotation: rows as far apart have the same product everywhere
    rows = table[first:].double()
    products = (rows[:-3] * rows[3:]).sum(1)
    assert torch.allclose(products, products[0].expand_as(products), rtol=1e-4)
    for name, tensor in drawn.state_dict().items():
        if not name.endswith("embeddings.positions.weight"):
            assert torch.equal(tensor, waved.state_dict()[name]), name
        else:
            assert torch.equal(tensor[:first], waved.state_dict()[name][:first])
            assert not torch.equal(tensor, waved.state_dict()[name])


def test_the_row_of_padding_stays_zero_and_the_table_is_learnt(
    toy: Callable[..., dict[str, Any]],
) -> None:
    """RoBERTa: row 1 belongs to padding; the waves begin at row 2, its first position."""
    model = made(toy, "roberta-base", position_waves=STD)
    table = model.encoder.embeddings.positions
    assert table is not None
    assert table.weight.requires_grad
    assert not table.weight[1].any()
    hidden = model.encoder(model.batch(["the red fox", "a dog sees the old house"])).hidden
    hidden.pow(2).sum().backward()
    assert table.weight.grad is not None
    assert table.weight.grad[2].any()
    assert not table.weight.grad[:2].any()


@pytest.mark.parametrize("size", NONE)
def test_families_without_a_table_take_no_notice(
    toy: Callable[..., dict[str, Any]], size: str
) -> None:
    drawn, waved = made(toy, size), made(toy, size, position_waves=STD)
    assert waved.encoder.embeddings.positions is None
    assert drawn.state_dict().keys() == waved.state_dict().keys()
    for name, tensor in drawn.state_dict().items():
        assert torch.equal(tensor, waved.state_dict()[name]), name


@pytest.mark.parametrize("size", ["bert-base-uncased", "albert-base-v2", "xlnet-base-cased"])
def test_a_config_without_waves_gives_the_model_of_always(
    toy: Callable[..., dict[str, Any]], size: str
) -> None:
    """Bit for bit what Model.new draws, whether the field is left out or null."""
    plain, null = made(toy, size), made(toy, size, position_waves=None)
    drawn = cm.Model.new(
        plain.config,
        WORDS,
        heads=tuple(plain.heads),
        generator=torch.Generator().manual_seed(parse(toy()).seed),
    )
    for name, tensor in drawn.state_dict().items():
        assert torch.equal(tensor, plain.state_dict()[name]), name
        assert torch.equal(tensor, null.state_dict()[name]), name


def test_an_odd_width_loses_the_last_wave_only() -> None:
    config = cm.size("bert-mini").with_vocabulary(WORDS.vocabulary, pad_id=WORDS.pad_id)
    narrow = replace(config, embeddings=replace(config.embeddings, width=5, positions=7))
    model = cm.Model.new(narrow, WORDS, generator=torch.Generator().manual_seed(1))
    model.encoder.embeddings.start_positions(1.0)
    table = model.state_dict()["encoder.embeddings.positions.weight"]
    assert table.shape == (7, 5)
    assert table[3, :3].tolist() == pytest.approx(
        [math.sqrt(2) * math.sin(3 * 1e4 ** (-2 * k / 5)) for k in range(3)], rel=1e-5
    )
    assert table[3, 3:].tolist() == pytest.approx(
        [math.sqrt(2) * math.cos(3 * 1e4 ** (-2 * k / 5)) for k in range(2)], rel=1e-5
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"checkpoint": "bert-mini", "position_waves": STD}, "position_waves belongs to model.siz"),
        ({"size": "bert-mini", "position_waves": 0.0}, "position_waves"),
        ({"size": "bert-mini", "position_waves": 1.5}, "position_waves"),
    ],
)
def test_what_is_refused(
    toy: Callable[..., dict[str, Any]], model: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        parse(toy(model=model))
