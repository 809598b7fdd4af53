"""Muon against PyTorch's own, and against singular values."""

import pytest
import torch
from torch import nn

from core_models.training import muon


def matrices(*shapes: tuple[int, int]) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(4)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def train(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter]) -> None:
    generator = torch.Generator().manual_seed(5)
    for rate in (0.01, 0.02, 0.005):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()


@pytest.mark.parametrize(
    ("dtype", "close"), [(torch.bfloat16, 0.0), (torch.float32, 0.006)], ids=["bf16", "fp32"]
)
def test_steps_are_those_of_pytorch(monkeypatch, dtype: torch.dtype, close: float) -> None:
    """To the last bit in bfloat16, in which PyTorch's always are."""
    official = getattr(torch.optim, "Muon", None)
    if official is None:
        pytest.skip("needs torch 2.9 or newer")
    monkeypatch.setattr(muon, "precision", lambda _: dtype)
    shapes = (6, 4), (4, 6), (5, 5)
    ours, theirs = matrices(*shapes), matrices(*shapes)
    train(muon.Muon(ours, lr=1.0, momentum=0.9, weight_decay=0.1), ours)
    asked = {"momentum": 0.9, "weight_decay": 0.1, "adjust_lr_fn": "match_rms_adamw"}
    train(official(theirs, lr=1.0, **asked), theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert not torch.equal(one, matrices(tuple(one.shape))[0])
        assert (one - other).abs().max() <= close


@pytest.mark.parametrize(("own", "made"), [(0, [(6, 4), (5, 5)]), (1, [(4, 6), (5, 5)])])
def test_of_two_processes_each_makes_its_share_of_the_updates(
    monkeypatch, own: int, made: list[tuple[int, int]]
) -> None:
    """What the other one makes is taken from a process alone, where all have the same gradients."""
    shapes = (6, 4), (4, 6), (5, 5)
    orthogonal = muon.orthogonal
    calls: list[torch.Tensor] = []

    def noted(step: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        calls.append(orthogonal(step, dtype))
        return calls[-1]

    monkeypatch.setattr(muon, "orthogonal", noted)
    alone, shared = matrices(*shapes), matrices(*shapes)
    train(muon.Muon(alone, lr=1.0, momentum=0.9, weight_decay=0.1), alone)
    others = [update for number, update in enumerate(calls) if number % 3 == 1 - own]
    calls.clear()

    def broadcast(update: torch.Tensor, process: int) -> None:
        if process != own:
            update.copy_(others.pop(0))

    monkeypatch.setattr(muon, "_place", lambda: (own, 2))
    monkeypatch.setattr("torch.distributed.broadcast", broadcast)
    train(muon.Muon(shared, lr=1.0, momentum=0.9, weight_decay=0.1), shared)
    assert [tuple(call.shape) for call in calls] == made * 3
    assert not others
    assert all(torch.equal(one, other) for one, other in zip(alone, shared, strict=True))


def test_what_has_no_gradient_stays() -> None:
    parameters = matrices((3, 3), (3, 3))
    before = [parameter.detach().clone() for parameter in parameters]
    parameters[0].grad = torch.ones(3, 3)
    optimizer = muon.Muon(parameters, lr=0.1, momentum=0.9, weight_decay=0.1)
    optimizer.step()
    assert not torch.equal(parameters[0], before[0])
    assert torch.equal(parameters[1], before[1])
    assert list(optimizer.state) == parameters[:1]


@pytest.mark.parametrize("shape", [(24, 8), (8, 24), (12, 12)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_singular_values_come_near_one(shape: tuple[int, int], scale: float) -> None:
    (matrix,) = matrices(shape)
    u, values, v = torch.linalg.svd(matrix.detach(), full_matrices=False)
    spread = (u * values.clamp(min=1.0)) @ v
    found = muon.orthogonal(scale * spread, torch.float32)
    assert found.shape == shape
    assert found.dtype == torch.float32
    values = torch.linalg.svdvals(found)
    assert 0.6 < values.min() <= values.max() < 1.3
    # The directions stay: u^T found v is diagonal.
    turned = u.T @ found @ v.T
    assert (turned - turned.diag().diag()).abs().max() < 1e-3


def test_nothing_is_divided_by_nothing() -> None:
    assert torch.equal(muon.orthogonal(torch.zeros(3, 5), torch.float32), torch.zeros(3, 5))


@pytest.mark.parametrize(
    ("device", "there", "fast", "expected"),
    [
        ("cpu", True, True, torch.bfloat16),
        ("cpu", True, False, torch.float32),
        ("cpu", False, True, torch.float32),
        ("cuda", False, False, torch.bfloat16),
    ],
)
def test_emulated_products_are_not_used(monkeypatch, device, there, fast, expected) -> None:
    monkeypatch.setattr("torch.backends.mkldnn.is_available", lambda: there)
    monkeypatch.setattr("torch.ops.mkldnn._is_mkldnn_bf16_supported", lambda: fast)
    muon.precision.cache_clear()
    try:
        assert muon.precision(device) is expected
    finally:
        muon.precision.cache_clear()
