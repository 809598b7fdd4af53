"""Values that every part must take from its config, and numbers at the edge of their range."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AlbertConfig, BertConfig, ElectraConfig, RobertaConfig, XLNetConfig

import core_models as cm
from core_models.batch import Batch
from core_models.checkpoints.formats import FORMATS
from core_models.heads.pretraining import build_head
from core_models.network.attention import attend
from core_models.network.encoder import Encoder
from core_models.network.layer import FUNCTIONS
from core_models.network.terms.distances import hide
from core_models.network.trace import Trace
from core_models.objectives.causal import Causal
from core_models.objectives.masked_token import MaskedToken
from tests.core.conformance import SIZES, close, inputs, narrow, new, tokenizer
from tests.core.tiny_models import masked_batch, tiny
from tests.core.tiny_models import new as tiny_model

NORMS = (nn.LayerNorm, nn.RMSNorm)
cases = pytest.mark.parametrize("case", SIZES)


@cases
def test_every_norm_takes_the_epsilon_of_the_config(case: str) -> None:
    config = replace(narrow(case), norm_epsilon=3e-4)
    model = cm.Model(config, tokenizer(config.family), config.objectives)
    found = {name: part.eps for name, part in model.named_modules() if isinstance(part, NORMS)}
    assert found
    assert set(found.values()) == {3e-4}, found


@cases
def test_a_new_model_is_drawn_as_published(case: str) -> None:
    """Weights and XLNet's vectors from the normal, biases 0, norms 1 and 0, padding rows 0."""
    config = replace(narrow(case), initial_std=0.05)
    source = torch.Generator().manual_seed(3)
    model = cm.Model.new(config, tokenizer(config.family), generator=source)
    norms = [part for part in model.modules() if isinstance(part, NORMS)]
    ones = {id(part.weight) for part in norms}
    for name, parameter in model.named_parameters():
        values = parameter.detach()
        drawn = values.dim() > 1 or name.endswith("query_start")
        if id(parameter) in ones:
            assert (values == 1).all(), name
        elif not drawn:
            assert not values.any(), name
        else:
            ends = name.endswith(("attention.output.weight", "feed_forward.down.weight"))
            share = (2 * config.steps) ** -0.5 if ends and config.initial_by_depth else 1.0
            error = 5 / (2 * values.numel()) ** 0.5  # five standard deviations of a spread
            spread = float(values.square().mean().sqrt()) / (0.05 * share)
            assert abs(spread - 1) < error + 0.03, name


@pytest.mark.parametrize("style", ["token", "token_and_first"])
@pytest.mark.parametrize("activation", FUNCTIONS)
@torch.no_grad()
def test_a_judging_head_takes_the_activation_of_the_network(activation: str, style: str) -> None:
    config = tiny("electra-small", replaced_token_style=style)
    config = replace(config, feed_forward=replace(config.feed_forward, activation=activation))
    head = build_head("replaced_token", config, Encoder(config).embeddings)
    hidden = torch.randn(2, 3, config.width, generator=torch.Generator().manual_seed(1))
    x = hidden
    if style == "token_and_first":
        x = nn.functional.layer_norm(x + x[:, :1], (config.width,), eps=config.norm_epsilon)
    expected = head.classifier(FUNCTIONS[activation](head.dense(x)))[..., 0]
    close(head(hidden), expected)


@torch.no_grad()
def test_scores_far_below_zero_hide_no_visible_key() -> None:
    """What is hidden lies below every score that a model can reach, on every path."""
    source = torch.Generator().manual_seed(1)
    q, k, v = torch.randn(3, 1, 2, 4, 8, generator=source).unbind(0)
    visible = torch.ones(4, 4, dtype=torch.bool).tril()
    low = torch.full((1, 2, 4, 4), -2e4)
    expected = attend(q, k, v, scale=0.3, visible=visible)
    sites = Trace(["probabilities"]).at(0)
    close(attend(q, k, v, scale=0.3, terms={"low": low}, visible=visible), expected, 1e-2)
    close(
        attend(q, k, v, scale=0.3, terms={"low": low}, visible=visible, sites=sites), expected, 1e-2
    )
    with torch.enable_grad():
        graphed = hide(low.clone().requires_grad_(), visible)
    for bias in (hide(low.clone(), visible), graphed):
        assert torch.equal(bias == -torch.inf, ~visible.expand_as(bias))
        assert bool((bias[..., 0] == -2e4).all())


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("bert", BertConfig),
        ("roberta", RobertaConfig),
        ("albert", AlbertConfig),
        ("electra", ElectraConfig),
        ("xlnet", XLNetConfig),
    ],
)
def test_absent_fields_mean_what_they_mean_in_transformers(kind: str, made: Any) -> None:
    written = made().to_dict()
    form = FORMATS[kind]
    expected = form.read_config(written)
    assert form.read_config({"model_type": kind}) == expected
    for field in set(written) & set(form.fields):  # one at a time, beside all others
        rest = {name: value for name, value in written.items() if name != field}
        assert form.read_config(rest) == expected, field


def test_the_first_real_token_is_no_causal_target_wherever_it_stands() -> None:
    config = tiny("bert-mini")
    config = replace(config, attention=replace(config.attention, direction="left"))
    model = tiny_model(config, heads=("causal",)).eval()
    batch = masked_batch(padded=False)
    mask = torch.ones_like(batch.input_ids).bool()
    mask[0, :4] = False  # padding on the left
    mask[1, -2:] = False
    padded = Batch(input_ids=batch.input_ids, attention_mask=mask)
    objective = Causal(config, model.heads["causal"])
    losses = objective(model.encoder, padded)
    asked = mask.sum(1) - 1
    assert losses.counts["causal"].item() == objective.counts(padded)["causal"] == asked.sum()
    scores = model.heads["causal"](model.encoder(padded).hidden)
    hits = (scores[:, :-1].argmax(-1) == padded.input_ids[:, 1:]) & mask[:, 1:] & mask[:, :-1]
    assert losses.metrics["causal_accuracy"] == (hits.sum(), asked.sum())
    memory = objective(model.encoder, replace(padded, remember=3)).memory
    assert [kept.shape[1] for kept in memory] == [3] * config.steps


def test_accuracy_is_weighted_like_the_loss() -> None:
    model = tiny_model(tiny("electra-small"), heads=("masked_token",)).eval()
    batch = masked_batch()
    objective = MaskedToken(model.heads["masked_token"])
    scores = model.heads["masked_token"](model.encoder(batch).hidden).argmax(-1)
    labels = torch.where(batch.labels >= 0, scores, -100)
    labels[1] = torch.where(batch.labels[1] >= 0, (scores[1] + 1) % 50, -100)  # all wrong
    given = replace(batch, labels=labels)
    assert given.label_weights is not None
    weights = given.label_weights * (labels >= 0)
    hit, count = objective(model.encoder, given).metrics["masked_token_accuracy"]
    assert count == weights.sum() > (labels >= 0).sum()
    assert hit == weights.sum() - weights[1].sum() < count


def test_no_gradient_reaches_the_position_of_padding() -> None:
    """RoBERTa's padding stands at the row before the first position, whatever is read of it."""
    model = new("roberta")
    table = model.encoder.embeddings.positions
    assert table is not None
    first = model.config.embeddings.first_position
    with torch.no_grad():
        table.weight[first - 1] = 1.0
    model.encoder(inputs(model, pad="right")).hidden.square().sum().backward()
    grad = table.weight.grad
    assert grad is not None
    assert not grad[first - 1].any()
    assert grad[first].any()


@pytest.mark.parametrize("case", ["bert", "roberta", "albert", "xlnet", "deberta"])
@torch.no_grad()
def test_without_segments_all_is_the_first(case: str) -> None:
    model = new(case)
    batch = inputs(model)
    zeros = replace(batch, segment_ids=torch.zeros_like(batch.input_ids))
    for trace in (None, Trace(["scores"])):
        plain = model.encoder(replace(batch, segment_ids=None), trace).hidden
        if case == "xlnet":  # no comparison at all: a summand per query less, which changes nothing
            close(plain, model.encoder(zeros, trace).hidden)
        else:
            assert torch.equal(plain, model.encoder(zeros, trace).hidden)


@torch.no_grad()
def test_rows_read_backwards_are_so_at_any_length() -> None:
    """Distances change sign, on every path: as if the text stood in the other order."""
    model = new("xlnet")
    pieces = model.config.embeddings.vocabulary
    ids = torch.randint(5, pieces, (2, 150), generator=torch.Generator().manual_seed(1))
    backward = torch.tensor([False, True])
    mixed = Batch(input_ids=ids, reversed=backward)
    for trace in (None, Trace(["scores"])):
        found = model.encoder(mixed, trace).hidden
        close(found[:1], model.encoder(Batch(input_ids=ids[:1])).hidden)
        close(found[1:].flip(1), model.encoder(Batch(input_ids=ids[1:].flip(1))).hidden)


@pytest.mark.parametrize("case", ["xlnet", "deberta", "deberta v3"])
@torch.no_grad()
def test_nothing_is_kept_of_tensors_that_stand_in_for_parameters(case: str) -> None:
    """They have no count of their changes, so what was made of them may be out of date."""
    model = new(case)
    batch = inputs(model)
    stand_in = {name: p.detach().clone() for name, p in model.encoder.named_parameters()}
    torch.func.functional_call(model.encoder, stand_in, (batch,))
    for tensor in stand_in.values():
        tensor.mul_(1.5)
    found = torch.func.functional_call(model.encoder, stand_in, (batch,)).hidden
    model.encoder.load_state_dict(stand_in)
    close(found, model.encoder(batch).hidden, 1e-6)
