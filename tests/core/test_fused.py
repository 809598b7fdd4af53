"""Fused attention: bfloat16 is trained in fp32 on a CPU, and all else stays as it is."""

import contextlib

import pytest
import torch
import torch.nn.functional as F

from core_models.network.fused import attend_fused

BIASES = {
    "none": lambda: None,
    "seen": lambda: torch.tensor([True, True, False]).expand(2, 1, 3, 3),
    "added": lambda: torch.randn(2, 4, 3, 3, generator=torch.Generator().manual_seed(2)),
}


def drawn(kind, *, learns):
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(2, 4, 3, 8, generator=generator).to(kind).requires_grad_(learns)
        for _ in range(3)
    ]


def plain(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.3)


@pytest.mark.parametrize("bias", BIASES.values(), ids=BIASES)
@pytest.mark.parametrize("autocast", [False, True])
def test_bfloat16_that_learns_is_computed_in_fp32(bias, autocast):
    q, k, v = drawn(torch.bfloat16, learns=True)
    given = [x.float() if autocast else x for x in (q, k, v)]
    low = torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext()
    with low:
        found = attend_fused(*given, bias(), 0.3, 0.0)
        assert torch.is_autocast_enabled("cpu") == autocast
    exact = plain(q.float(), k.float(), v.float(), bias())
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, exact.to(torch.bfloat16))
    gradient = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    ours = torch.autograd.grad(found, [q, k, v], gradient.to(found.dtype))
    theirs = torch.autograd.grad(exact, [q, k, v], gradient.to(found.dtype).float())
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their.to(our.dtype))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [BIASES["none"], BIASES["seen"]])
def test_other_arithmetic_stays_as_it_is(kind, bias):
    q, k, v = drawn(kind, learns=True)
    assert torch.equal(attend_fused(q, k, v, bias(), 0.3, 0.0), plain(q, k, v, bias()))


def test_bfloat16_that_only_answers_stays_bfloat16(monkeypatch):
    q, k, v = drawn(torch.bfloat16, learns=False)
    seen = []
    attend = F.scaled_dot_product_attention

    def listen(*given, **options):
        seen.extend(x.dtype for x in given)
        return attend(*given, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", listen)
    with torch.no_grad():
        attend_fused(q, k, v, None, 0.3, 0.0)
    assert seen == [torch.bfloat16] * 3


def test_a_query_that_sees_nothing_gets_zeros():
    q, k, v = drawn(torch.bfloat16, learns=True)
    found = attend_fused(q, k, v, torch.zeros(2, 1, 3, 3, dtype=torch.bool), 0.3, 0.0)
    assert not found.detach().any()
