"""Where dropout stands: with the rate 1 everything behind it is zero, so its place can be read.

Places are those of the released code: after the input sum and before its projection, on the
probabilities, on both residual branches; XLNet's also on its sinusoids, its query start, inside the
feed-forward network and at the end; DeBERTa's on the relative table, in every block.
"""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import core_models as cm
from core_models.batch import Batch
from core_models.network.layer import Layer
from core_models.network.trace import Trace
from tests.core.conformance import SIZES, close, inputs, new

CASES = [case for case in SIZES if not case.startswith("bert, ")]


def trained(case: str, *, dropout: float = 0.0, attention: float = 0.0) -> cm.Model:
    """A model in train mode whose parts drop at these rates."""
    model = new(case, dropout=0.0)
    config = replace(
        model.config,
        dropout=dropout,
        attention=replace(model.config.attention, dropout=attention),
    )
    made = cm.Model(config, model.tokenizer, model.heads)
    made.load_state_dict(model.state_dict())
    return made.train()


def traced(model: cm.Model, batch: Batch) -> Trace:
    trace = Trace(["embedding", "residual_in", "residual", "attention_output", "term:*"])
    with torch.no_grad():
        model.encoder(batch, trace)
    return trace


@pytest.mark.parametrize("case", CASES)
def test_the_input_is_dropped_before_the_projection_and_both_branches_behind(case: str) -> None:
    model = trained(case, dropout=1.0)
    batch = inputs(model)
    trace = traced(model, batch)
    embedding = trace["embedding", None]
    projection = model.encoder.embeddings.projection
    bias = projection.bias if isinstance(projection, torch.nn.Linear) else torch.zeros(32)
    assert torch.equal(embedding, bias.expand_as(embedding))
    for stream in ("content", *(["query"] if model.config.query_stream else [])):
        for step, block in enumerate(model.config.schedule):
            layer = model.encoder.blocks[block]
            assert isinstance(layer, Layer)
            start = trace.get("residual_in", step, stream)
            if stream == "query" and step == 0:
                assert not start.any()
            expected = start
            if model.config.norm_place == "after":
                expected = layer.feed_forward_norm(layer.attention_norm(start))
            close(trace.get("residual", step, stream), expected, 1e-6)


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_only_xlnet_drops_what_the_last_step_gives(case: str) -> None:
    model = trained(case, dropout=1.0)
    out = model.encoder(inputs(model))
    # The last three have no biases, which are all that is left elsewhere.
    assert out.hidden.any() != (case in ("xlnet", "modernbert", "eurobert", "neobert"))
    assert not any(stream.any() for stream in out.streams.values())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("path", ["fast", "traced"])
@torch.no_grad()
def test_probabilities_are_dropped_on_both_paths(case: str, path: str) -> None:
    model = trained(case, attention=1.0)
    batch = inputs(model, pad="right")
    sites = ["attention_output"] + (["probabilities"] if path == "traced" else [])
    trace = Trace(sites)
    model.encoder(batch, trace)
    for step, block in enumerate(model.config.schedule):
        found = trace["attention_output", step]
        bias = model.encoder.blocks[block].attention.output.bias
        close(found, (0 if bias is None else bias) + torch.zeros_like(found), 1e-6)
    model.eval()
    model.encoder(batch, trace)
    assert trace["attention_output", 0].std(1).mean() > 1e-3


@pytest.mark.parametrize("case", ["xlnet", "deberta", "deberta v2", "deberta v3"])
def test_relative_positions_are_dropped(case: str) -> None:
    model = trained(case, dropout=1.0)
    trace = traced(model, inputs(model))

    def spread(term: Tensor, axis: int) -> Tensor:
        return (term - term.mean(axis, keepdim=True)).abs().max()

    for step in range(model.config.steps):
        if case == "xlnet":
            assert not trace["term:position", step].any()
        else:  # every distance gives what the bias of a projection gives
            assert spread(trace["term:c2p", step], -1) < 1e-5
            assert spread(trace["term:p2c", step], -2) < 1e-5
    trace = traced(model.eval(), inputs(model))
    name = "term:position" if case == "xlnet" else "term:c2p"
    assert spread(trace[name, 1], -1) > 1e-2


@torch.no_grad()
def test_every_block_draws_its_own_relative_rows_in_deberta_and_none_in_xlnet() -> None:
    for case, own in (("deberta", True), ("deberta v3", True), ("xlnet", False)):
        model = trained(case, dropout=0.5)
        table = model.encoder.table
        assert table is not None
        prepared = table(inputs(model), 0)
        assert (prepared.dropout == 0.5) == own
        layer = model.encoder.blocks[0].attention
        first, second = (layer.terms.project(prepared, layer.query, layer.key) for _ in range(2))
        assert torch.equal(first, second) != own
        if not own:
            share = (prepared.rows == 0).float().mean()
            assert 0.4 < float(share) < 0.6


@pytest.mark.parametrize("case", ["bert", "xlnet", "deberta"])
@torch.no_grad()
def test_only_xlnet_drops_inside_the_feed_forward_network(case: str) -> None:
    network = trained(case, dropout=1.0).encoder.blocks[0].feed_forward
    x = torch.randn(2, 3, 32, generator=torch.Generator().manual_seed(1))
    dropped = torch.equal(network(x), network.down.bias.expand(2, 3, -1))
    assert dropped == (case == "xlnet")


@torch.no_grad()
def test_the_convolution_drops_before_its_activation() -> None:
    model = trained("deberta v2", dropout=0.5)
    part = model.encoder.convolution
    assert part is not None
    seen: list[Tensor] = []
    part.dropout.register_forward_hook(lambda _, __, output: seen.append(output))
    start, hidden = torch.randn(2, 2, 5, 32, generator=torch.Generator().manual_seed(1)).unbind(0)
    found = part(start, hidden, None)
    close(found, part.norm(hidden + part.activation(seen[0])))
    assert 0.3 < float((seen[0] == 0).float().mean()) < 0.7
