"""Only the positions that somebody reads go through the last step."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter

import core_models as cm
from core_models.batch import Batch
from core_models.heads.pretraining import build_head
from core_models.network.trace import Trace
from core_models.objectives import NEEDS, Objective, Weighted, build
from core_models.objectives.base import positions
from core_models.prediction.passes import hidden_at
from tests.core import conformance
from tests.core.conformance import LENGTH, SIZES, TEXTS, inputs
from tests.core.test_objective_all import made
from tests.core.test_task_heads_model import inputs as texts
from tests.core.test_task_heads_model import pretrained
from tests.core.tiny_models import masked_batch, new, ordered_batch, tiny

PLACES = torch.tensor([[6, 0, 2], [7, 5, 6], [12, 1, 8]])


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


def watched(encoder: cm.Encoder) -> list[int]:
    """Grows by the positions of each result of the block that comes last in the schedule."""
    seen: list[int] = []

    def note(module: nn.Module, given: object, result: Tensor) -> None:
        seen.append(result.shape[1])

    encoder.blocks[encoder.config.schedule[-1]].register_forward_hook(note)
    return seen


@pytest.mark.parametrize("pad", ["", "left", "right"])
@pytest.mark.parametrize("case", SIZES)
@torch.no_grad()
def test_what_is_read_is_the_same(case: str, pad: str) -> None:
    model = conformance.new(case)
    batch = inputs(model, pad=pad)
    whole = model.encoder(batch)
    part = model.encoder(batch, places=PLACES)
    read = torch.zeros(3, LENGTH, dtype=torch.bool).scatter(1, PLACES, True)
    close(part.hidden[read], whole.hidden[read])
    assert part.hidden.shape == whole.hidden.shape
    assert not part.hidden[~read].any()
    nothing = model.encoder(batch, places=PLACES[:, :0])
    assert not nothing.hidden.any()
    for other in (part, nothing):
        assert torch.equal(other.last_input, whole.last_input)
        assert all(torch.equal(other.streams[k], v) for k, v in whole.streams.items())


@torch.no_grad()
def test_each_query_keeps_its_own_view() -> None:
    """Visibility by row and column, memory and order from left to right follow the positions."""
    model = conformance.new("xlnet")
    batch = inputs(model, pad="right")
    seen = torch.rand(3, LENGTH, LENGTH, generator=torch.Generator().manual_seed(2)) < 0.5
    batch = replace(batch, visibility=seen | torch.eye(LENGTH, dtype=torch.bool))
    memory = model.encoder(replace(batch, remember=4)).memory
    batch = replace(batch, memory=memory, remember=3)
    part, whole = model.encoder(batch, places=PLACES), model.encoder(batch)
    index = PLACES[..., None].expand(-1, -1, 32)
    close(part.hidden.gather(1, index), whole.hidden.gather(1, index))
    assert all(torch.equal(a, b) for a, b in zip(part.memory, whole.memory, strict=True))


@torch.no_grad()
def test_a_convolution_after_the_only_step_needs_all() -> None:
    config = replace(conformance.narrow("deberta v2"), schedule=(0,))
    assert config.convolution is not None
    words = conformance.tokenizer(config.family)
    model = cm.Model.new(config, words, generator=torch.Generator().manual_seed(1)).eval()
    batch = inputs(model)
    assert torch.equal(model.encoder(batch, places=PLACES).hidden, model.encoder(batch).hidden)


def test_a_trace_shows_every_position() -> None:
    model = conformance.new("bert")
    with pytest.raises(ValueError, match="leave places out"):
        model.encoder(inputs(model), Trace(["scores"]), places=PLACES)


def test_positions_of_flags() -> None:
    flags = torch.tensor([[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]).bool()
    places, real = positions(flags)
    assert places.tolist() == [[1, 3], [0, 1], [0, 1]]
    assert real.tolist() == [[True, True], [False, False], [True, False]]
    assert positions(flags[1:2])[0].shape == (1, 1)


def several(name: str) -> tuple[cm.Model, Objective, Batch]:
    """Objectives that share one pass."""
    families = {"bert": "bert-mini", "spanbert": "spanbert-base", "deberta": "deberta-base"}
    other = {"bert": "next_sentence", "spanbert": "span_boundary", "deberta": "next_sentence"}[name]
    config = tiny(families[name])
    model = new(config, heads=("masked_token", other))
    parts = [build("masked_token", model), build(other, model)]
    return model, Weighted([(1.0, parts[0]), (0.5, parts[1])]), masked_batch()


CASES = [*NEEDS, "bert", "spanbert", "deberta"]
EVERYWHERE = {"replaced_token", "causal", "distillation"}
"""These read every position."""


@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients_do_not_move(name: str) -> None:
    model, objective, batch = made(name) if name in NEEDS else several(name)
    model.train()
    module = nn.ModuleList([model.encoder, objective])
    names = dict(module.named_parameters())

    def gradients(total: Tensor) -> dict[str, Tensor]:
        module.zero_grad(set_to_none=True)
        total.backward()
        return {n: p.grad.clone() for n, p in names.items() if p.grad is not None and p.grad.any()}

    short = objective(model.encoder, batch)
    if objective.own_pass:
        whole = objective(model.encoder, batch, Trace(["scores"]))
    else:
        whole = objective(model.encoder, batch, output=model.encoder(batch))
    assert short.parts.keys() == whole.parts.keys()
    for part, value in whole.parts.items():
        close(short.parts[part], value)
    found, expected = gradients(short.total), gradients(whole.total)
    assert found.keys() == expected.keys()
    for parameter, gradient in expected.items():
        torch.testing.assert_close(found[parameter], gradient, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("name", [name for name in CASES if name not in EVERYWHERE])
def test_the_last_step_is_short(name: str) -> None:
    model, objective, batch = made(name) if name in NEEDS else several(name)
    length = batch.shape[1]
    rows = watched(model.encoder)
    objective(model.encoder, batch)
    wanted = model.encoder.config.steps if len(model.encoder.blocks) == 1 else 1
    assert rows.count(length) < wanted, rows


def test_no_label_at_all() -> None:
    model, objective, batch = several("bert")
    bare = replace(
        batch,
        labels=torch.full_like(batch.labels, -100),
        pair_labels=torch.full_like(batch.pair_labels, -100),
    )
    losses = objective(model.encoder, bare)
    assert losses.total.item() == 0
    losses.total.backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("family", ["bert", "xlnet", "deberta", "deberta_v2"])
@pytest.mark.parametrize("head", ["classify", "regress", "similarity"])
@torch.no_grad()
def test_a_text_is_read_from_one_token(family: str, head: str) -> None:
    labels = ("no", "yes") if head == "classify" else ()
    model = pretrained(family).with_head(head, labels)
    asked, batch = model.heads[head], texts()
    seen = watched(model.encoder)
    close(
        asked.answer(model.encoder, batch),
        asked.answer(model.encoder, batch, output=model.encoder(batch)),
    )
    assert seen == [1, batch.shape[1]]


@pytest.mark.parametrize(
    "case", ["bert", "bert, left to right", "xlnet", "deberta", "deberta v2", "albert"]
)
@torch.no_grad()
def test_questions_about_single_places(case: str) -> None:
    """Rows of different length, more questions in one than in another, one asked twice."""
    model = conformance.new(case)
    encodings = model.encode([*TEXTS, "Birds."])
    places = [(0, 3), (1, 2), (0, 1), (2, 4), (0, 3), (3, 1)]
    found = hidden_at(model, encodings, places)
    close(found, hidden_at(model, encodings, places, Trace(["scores"])))
    for number, (row, place) in enumerate(places):
        close(found[number], hidden_at(model, [encodings[row]], [(0, place)])[0])


def test_a_head_without_places_reads_all() -> None:
    config = conformance.task("bert", "tag").config
    head = build_head("tag", config, conformance.new("bert").encoder.embeddings)
    assert head.places(texts()) is None


def test_orders_are_read_from_the_query_stream() -> None:
    model, objective, _ = made("permutation")
    batch = ordered_batch()
    assert not objective.reads(model.encoder, batch).any()


@pytest.mark.slow
@pytest.mark.parametrize("case", ["bert", "deberta"])
@torch.no_grad()
def test_compiles_whole_for_any_number_of_places(case: str) -> None:
    model = conformance.new(case)
    counter = CompileCounter()
    compiled = torch.compile(model.encoder, fullgraph=True, backend=counter, dynamic=True)
    batch = inputs(model, pad="right")
    for number in (4, 2, 5):
        places = torch.arange(number).repeat(3, 1)
        close(compiled(batch, places=places).hidden, model.encoder(batch, places=places).hidden)
    torch.compiler.reset()
    assert counter.frame_count <= 2
