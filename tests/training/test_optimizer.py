"""Learning rate, parameter groups, and the optimizer's way through a file."""

from typing import Any

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.training import optimizer, settings
from core_models.training.optimizer import Schedule


class Wrapper(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = cm.size("bert-mini").with_vocabulary(50)
        self.encoder = cm.Encoder(config)
        self.head = torch.nn.Linear(256, 50)
        self.head.weight = self.encoder.embeddings.pieces.weight


def options(**changes: Any) -> settings.Settings:
    values = {"model": {"size": "bert-mini"}, "data": {"texts": ["a.txt"]}, "steps": 10}
    return settings.parse(values | changes)


def test_warm_up_and_decay() -> None:
    plan = options(schedule={"warmup": 4})
    shares = [Schedule.of(plan).share(step) for step in range(11)]
    expected = [0.25, 0.5, 0.75, 1.0, 1.0, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0.0]
    assert shares == pytest.approx(expected)
    constant = options(schedule={"warmup": 0, "decay": "none"})
    assert {Schedule.of(constant).share(step) for step in range(10)} == {1.0}


def test_a_stable_run_falls_in_its_last_share() -> None:
    plan = options(schedule={"warmup": 2, "decay": "stable", "cooldown": 0.4})
    shares = [Schedule.of(plan).share(step) for step in range(11)]
    expected = [0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0]
    assert shares == pytest.approx(expected)
    whole = options(schedule={"warmup": 2, "decay": "stable", "cooldown": 1.0})
    linear = options(schedule={"warmup": 2})
    for step in range(11):
        assert Schedule.of(whole).share(step) == Schedule.of(linear).share(step)


def test_two_ends_are_the_same_until_one_of_them_begins() -> None:
    plan = options(schedule={"decay": "stable", "cooldown": 0.3})
    longer = options(schedule={"decay": "none"})
    assert optimizer.same_until(plan, longer, 8)
    assert not optimizer.same_until(plan, longer, 9)
    assert optimizer.same_until(longer, options(steps=8, schedule={"decay": "none"}), 8)
    # It has made more than there would be.
    assert not optimizer.same_until(longer, options(steps=7, schedule={"decay": "none"}), 8)
    falling = {"rate": 0.3, "last_rate": 0.15, "dynamic": True}
    one, other = (options(masking=falling, steps=n, schedule={"decay": "none"}) for n in (10, 20))
    assert not optimizer.same_until(one, other, 1)
    data = {"texts": ["a.txt"], "first_length": 64, "first_share": 0.5}
    one, other = (options(data=data, steps=n, schedule={"decay": "none"}) for n in (10, 20))
    assert optimizer.same_until(one, other, 5)
    assert not optimizer.same_until(one, other, 6), "one reads longer examples by then"


def test_shorter_examples_come_first_and_more_of_them() -> None:
    plain = options(batch_size=32)
    assert (plain.first_steps, plain.first_batch) == (0, 32)
    data = {"texts": ["a.txt"], "max_length": 128, "first_length": 48}
    made = options(batch_size=32, data=data)
    assert (made.first_steps, made.first_batch) == (9, 85)
    assert options(data=data | {"first_share": 0.99}).first_steps == 9, "the last ones are longer"
    assert options(data=data | {"first_share": 0.01}).first_steps == 1
    with pytest.raises(InputError, match=r"data.first_length \(128\) must be below data.max_len"):
        options(data=data | {"first_length": 128})


def test_a_batch_may_grow_late_in_a_run() -> None:
    data = {"texts": ["a.txt"], "first_batch": 8, "first_share": 0.6}
    made = options(batch_size=32, data=data)
    assert (made.first_steps, made.first_batch) == (6, 8)
    made = options(batch_size=32, data=data | {"max_length": 128, "first_length": 32})
    assert (made.first_steps, made.first_batch) == (6, 8), "what is said counts"
    assert made.most_tokens == 6 * 8 * 32 + 4 * 32 * 128
    with pytest.raises(
        InputError, match=r"data.first_batch \(65536\) and data.max_length \(4096\) come to"
    ):
        options(steps=10**7, data=data | {"max_length": 4096, "first_batch": 65_536})


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_every_parameter_is_trained_once_and_vectors_are_not_decayed(kind: str) -> None:
    module = Wrapper()
    names = optimizer.parameters(module)
    assert "head.weight" not in names, "the shared table has one name"
    found = optimizer.build(module, names, options(optimizer={"kind": kind}).optimizer)
    groups = [group for each in found for group in each.param_groups]
    trained = [id(p) for group in groups for p in group["params"]]
    assert sorted(trained) == sorted(id(p) for p in names.values())
    for group in groups:
        assert {p.ndim >= 2 for p in group["params"]} == {group["weight_decay"] > 0}
    assert optimizer.skippable(found) is (kind == "adamw")
    if kind == "muon":
        inner = {n for n, p in names.items() if any(p is q for q in groups[-1]["params"])}
        assert all(n.startswith("encoder.blocks.") for n in inner)
        assert len(inner) == 4 * 6


def test_biases_that_look_like_matrices_are_not_decayed() -> None:
    module = cm.Encoder(cm.size("xlnet-base-cased").with_vocabulary(50))
    names = optimizer.parameters(module)
    (found,) = optimizer.build(module, names, options().optimizer)
    decayed, spared = ({id(p) for p in group["params"]} for group in found.param_groups)
    biases = {id(p) for name, p in names.items() if name.endswith("bias")}
    assert any(p.ndim == 2 for p in names.values() if id(p) in biases)
    assert biases <= spared
    assert all(id(p) in decayed for name, p in names.items() if name.endswith("segment_vectors"))


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_state_survives_and_foreign_state_is_refused(kind: str) -> None:
    module = Wrapper()
    names = optimizer.parameters(module)
    plan = options(optimizer={"kind": kind})
    first = optimizer.build(module, names, plan.optimizer)
    for parameter in names.values():
        parameter.grad = torch.full_like(parameter, 0.1)
    optimizer.set_learning_rate(first, 0.5)
    for each in first:
        each.step()
    tensors = optimizer.to_tensors(first, names)
    second = optimizer.build(module, names, plan.optimizer)
    optimizer.from_tensors(second, names, tensors)
    again = optimizer.to_tensors(second, names)
    assert tensors.keys() == again.keys()
    assert all(torch.equal(tensors[name], again[name]) for name in tensors)
    tensors["other|exp_avg"] = torch.zeros(1)
    with pytest.raises(InputError, match="another model: other"):
        optimizer.from_tensors(second, names, tensors)
