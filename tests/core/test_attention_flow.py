"""Attention added up, by hand-computed cases and against the model's own output."""

import numpy as np
import pytest
import torch

import core_models as cm
from core_models.prediction.attention_flow import (
    combine,
    flow,
    head_norms,
    layer_norms,
    moved_values,
    rollout,
)
from tests.core.tiny_models import masked_batch, new, part, tiny


def random_maps(steps=3, heads=2, length=5, seed=0):
    scores = np.random.default_rng(seed).normal(size=(steps, heads, length, length))
    weights = np.exp(2 * scores)
    return weights / weights.sum(-1, keepdims=True)


def test_heads_combined_by_mean_and_maximum():
    maps = random_maps()
    chosen = [(0, 1), (2, 0)]
    np.testing.assert_allclose(combine(maps, chosen), (maps[0, 1] + maps[2, 0]) / 2)
    np.testing.assert_allclose(combine(maps, chosen, "max"), np.maximum(maps[0, 1], maps[2, 0]))
    np.testing.assert_allclose(combine(maps, chosen).sum(-1), 1)
    np.testing.assert_allclose(combine(maps, np.array(chosen)), combine(maps, chosen))


@pytest.mark.parametrize(
    ("heads", "how"), [([], "mean"), ([(3, 0)], "mean"), ([(0, 2)], "mean"), ([(0, 0)], "min")]
)
def test_heads_that_cannot_be_combined(heads, how):
    with pytest.raises(cm.InputError):
        combine(random_maps(), heads, how)


def test_rollout_of_uniform_attention():
    """One step leaves 1/2 + 1/2L of a token; after n steps 1/2^n of it and the rest is uniform."""
    steps, length = 3, 4
    maps = np.full((steps, 2, length, length), 1 / length)
    rolled = rollout(maps)
    for n in range(steps):
        left = 0.5 ** (n + 1)
        expected = left * np.eye(length) + (1 - left) / length
        np.testing.assert_allclose(rolled[n], expected, atol=1e-12)


def test_rollout_of_two_steps_by_hand():
    """Token 0 looks at 1 in the first step; token 1 looks at 0 in the second."""
    first = np.array([[0.0, 1.0], [0.0, 1.0]])
    second = np.array([[1.0, 0.0], [1.0, 0.0]])
    rolled = rollout(np.stack([first, second])[:, None])
    np.testing.assert_allclose(rolled[0], [[0.5, 0.5], [0, 1]])
    # Token 1: half of itself (all token 1) and half of token 0 (half and half).
    np.testing.assert_allclose(rolled[1], [[0.5, 0.5], [0.25, 0.75]])


def test_rollout_keeps_rows_that_sum_to_one_and_the_residual_matters():
    maps = random_maps()
    np.testing.assert_allclose(rollout(maps).sum(-1), 1)
    np.testing.assert_allclose(rollout(maps, 1.0)[-1], np.eye(5), atol=1e-12)
    plain = rollout(maps, 0.0)[1]
    np.testing.assert_allclose(plain, maps[1].mean(0) @ maps[0].mean(0))


def test_flow_on_a_two_by_two_by_two_graph():
    """Two steps, two tokens. Capacities with the residual: a row [1, 0] and a row [1/2, 1/2].

    From token 0 on top: 1/2 may go to each token in the middle. Its first way down carries all of
    that, so token 0 gets 1/2 from itself and 1/2 from token 1 (whose edge to 0 has 1/2); token 1
    gets only what token 1 in the middle keeps, 1/2.
    """
    first = np.array([[1.0, 0.0], [1.0, 0.0]])  # with the residual: [1, 0] and [1/2, 1/2]
    second = np.array([[0.0, 1.0], [0.0, 1.0]])  # [1/2, 1/2] and [0, 1]
    maps = np.stack([first, second])[:, None]
    np.testing.assert_allclose(flow(maps, 0), [1.0, 0.5], atol=1e-6)
    # From token 1: all of it stays in the middle, then half may go each way.
    np.testing.assert_allclose(flow(maps, 1), [0.5, 0.5], atol=1e-6)


def test_one_step_of_flow_is_the_map_itself_and_no_flow_exceeds_one():
    maps = random_maps()
    one = flow(maps[:1], 2)
    np.testing.assert_allclose(one, 0.5 * np.eye(5)[2] + 0.5 * maps[0].mean(0)[2], atol=1e-6)
    assert flow(maps, 2).max() <= 1 + 1e-6
    assert (flow(maps, 2) >= rollout(maps)[-1, 2] - 1e-6).all()


def test_flow_says_what_it_cannot_do():
    with pytest.raises(cm.InputError, match="up to 16 tokens; this text has 17"):
        flow(np.full((1, 1, 17, 17), 1 / 17), 0)
    with pytest.raises(cm.InputError, match="Position 5"):
        flow(random_maps(), 5)


@pytest.fixture(scope="module", params=["bert-base", "albert-base", "xlnet-base", "deberta-base"])
def traced(request):
    model = new(tiny(request.param, layers=2)).eval()
    batch = part(masked_batch(padded=False), slice(0, 1))
    trace = cm.Trace(["probabilities", "v", "attention_output"])
    with torch.no_grad():
        model.encoder(batch, trace=trace)
    return model, trace


def test_norms_are_those_of_what_the_layer_really_adds(traced):
    """The vectors, summed over heads and keys, are the layer's attention output less its bias."""
    model, trace = traced
    step = 1
    attention = model.encoder.blocks[model.config.schedule[step]].attention
    weights = trace["probabilities", step][0].numpy()
    moved = moved_values(
        trace["v", step][0].numpy(), attention.output.weight.detach().numpy()
    )  # [H, L, D]
    vectors = np.einsum("hqk,hkD->hqkD", weights, moved)
    bias = attention.output.bias
    added = trace["attention_output", step][0] - (0 if bias is None else bias.detach())
    np.testing.assert_allclose(vectors.sum((0, 2)), added.numpy(), atol=2e-5)
    np.testing.assert_allclose(
        head_norms(weights, moved), np.linalg.norm(vectors, axis=-1), atol=2e-5
    )
    np.testing.assert_allclose(
        layer_norms(weights, moved), np.linalg.norm(vectors.sum(0), axis=-1), atol=2e-4
    )
    assert (layer_norms(weights, moved) <= head_norms(weights, moved).sum(0) + 1e-4).all()
