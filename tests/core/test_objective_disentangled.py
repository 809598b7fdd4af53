"""Gradient-disentangled embedding sharing (arXiv 2111.09543, section 3.3)."""

import copy
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.joint import OffsetTable, new_generator, share
from core_models.objectives import ReplacedToken, Weighted
from tests.core.tiny_models import masked_batch, new, tiny

TABLES = {"deberta-v3-small": ["pieces"], "electra-small": ["pieces", "positions", "segments"]}


def joined(name: str = "deberta-v3-small") -> tuple[cm.Model, ReplacedToken]:
    model = new(tiny(name))
    generator = new_generator(model, generator=torch.Generator().manual_seed(2))
    return model, ReplacedToken(model, generator, sharing="gradient_disentangled")


def optimizer(model: cm.Model, objective: ReplacedToken) -> torch.optim.Optimizer:
    both = torch.nn.ModuleList([model.encoder, objective])
    return torch.optim.AdamW(both.parameters(), lr=0.02, weight_decay=0.1)


def step(model: cm.Model, objective: ReplacedToken, update: torch.optim.Optimizer) -> float:
    update.zero_grad()
    total = objective(model.encoder, masked_batch()).total
    total.backward()
    update.step()
    return total.item()


@pytest.mark.parametrize("name", TABLES)
def test_both_models_start_from_one_table_and_nothing_changes_by_joining(name: str) -> None:
    alone = new(tiny(name))
    batch = masked_batch()
    expected = alone.encoder(batch).hidden
    model, objective = joined(name)
    assert list(objective.tables) == TABLES[name]
    for part, delta in objective.own_state().items():
        assert not delta.any()
        table = objective.generator.encoder.embeddings.get_submodule(part)
        assert torch.equal(getattr(model.encoder.embeddings, part).weight, table.weight)
    assert torch.equal(model.encoder(batch).hidden, expected)


@pytest.mark.parametrize("name", TABLES)
def test_the_discriminator_leaves_the_generators_tables_untouched(name: str) -> None:
    model, objective = joined(name)
    losses = objective(model.encoder, masked_batch())
    losses.sums["replaced_token"].backward()
    for part, p in objective.generator.named_parameters():
        assert p.grad is None, part
    for part, table in objective.tables.items():
        assert table.delta.grad is not None, part
        assert table.delta.grad.any()


def test_the_generators_loss_moves_its_own_tables_only() -> None:
    model, objective = joined()
    objective(model.encoder, masked_batch()).sums["masked_token"].backward()
    assert objective.generator.encoder.embeddings.pieces.weight.grad.any()
    for part, p in model.named_parameters():
        assert p.grad is None, part


def test_the_delta_gets_the_gradient_that_the_sum_would_get() -> None:
    model, objective = joined()
    batch = masked_batch()
    ids = batch.input_ids
    objective.tables["pieces"].delta.data.normal_(generator=torch.Generator().manual_seed(0))
    plain = model.clone()
    assert isinstance(plain.encoder.embeddings.pieces, torch.nn.Embedding)
    for one in (model, plain):
        one.encoder(batch).hidden.square().sum().backward()
    expected = plain.encoder.embeddings.pieces.weight.grad
    torch.testing.assert_close(objective.tables["pieces"].delta.grad, expected)
    assert expected[ids[ids > 0]].any(1).all()


def test_the_row_of_padding_gets_no_gradient_at_the_input() -> None:
    table = joined("electra-small")[0].encoder.embeddings.pieces
    table(torch.tensor([[7, 0, 0]])).sum().backward()
    assert table.delta.grad[7].eq(1).all()
    assert not table.delta.grad[0].any()


def test_the_sum_follows_the_generator() -> None:
    model, objective = joined()
    update = optimizer(model, objective)
    before = model.encoder.embeddings.pieces.weight.clone()
    step(model, objective, update)
    ours = objective.generator.encoder.embeddings.pieces.weight
    delta = objective.own_state()["pieces"]
    assert delta.any()
    assert torch.equal(model.encoder.embeddings.pieces.weight, ours + delta)
    assert not torch.equal(model.encoder.embeddings.pieces.weight, before + delta)


def test_the_saved_model_holds_the_sum_and_a_clone_stands_still(tmp_path: Path) -> None:
    model, objective = joined()
    update = optimizer(model, objective)
    step(model, objective, update)
    names = set(model.state_dict())
    assert names == set(new(tiny("deberta-v3-small")).state_dict())
    model.eval().save(tmp_path / "model")
    batch = masked_batch()
    expected = model.encoder(batch).hidden
    again = cm.load(tmp_path / "model")
    torch.testing.assert_close(again.encoder(batch).hidden, expected, atol=1e-6, rtol=1e-6)
    copied = model.clone()
    assert isinstance(copied.encoder.embeddings.pieces, torch.nn.Embedding)
    step(model.train(), objective, update)
    assert torch.equal(copied.encoder(batch).hidden, expected)
    assert not torch.equal(model.encoder(batch).hidden, expected)


def test_a_resumed_run_goes_on_to_the_bit(tmp_path: Path) -> None:
    model, objective = joined()
    both = Weighted([(1.0, objective)])
    update = optimizer(model, objective)
    for _ in range(3):
        step(model, objective, update)
    model.save(tmp_path / "model")
    both.companions()["generator"].save(tmp_path / "generator")
    state = {name: tensor.clone() for name, tensor in both.own_state().items()}
    moments = copy.deepcopy(update.state_dict())
    expected = [step(model, objective, update) for _ in range(3)]

    rest = cm.load(tmp_path / "model").train()
    other = cm.load(tmp_path / "generator").train()
    again = ReplacedToken(rest, other, sharing="gradient_disentangled")
    Weighted([(1.0, again)]).load_own_state(state)
    update = optimizer(rest, again)
    update.load_state_dict(moments)
    assert [step(rest, again, update) for _ in range(3)] == expected
    for name, tensor in model.state_dict().items():
        assert torch.equal(rest.state_dict()[name], tensor), name


def test_a_published_pair_keeps_both_tables() -> None:
    model = new(tiny("deberta-v3-small"))
    other = new_generator(model, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        model.encoder.embeddings.pieces.weight.mul_(2)
    wanted = model.encoder.embeddings.pieces.weight.clone()
    share(other, model, "gradient_disentangled")
    table = model.encoder.embeddings.pieces
    assert isinstance(table, OffsetTable)
    torch.testing.assert_close(table.weight, wanted)
    model.load_state_dict({**model.state_dict(), "encoder.embeddings.pieces.weight": wanted * 3})
    torch.testing.assert_close(table.weight, wanted * 3)
    lacking = {k: v for k, v in model.state_dict().items() if not k.endswith("pieces.weight")}
    with pytest.raises(RuntimeError, match=r"Missing key.*pieces\.weight"):
        model.load_state_dict(lacking)


def test_a_head_tied_to_the_replaced_table_is_refused() -> None:
    model = new(tiny("electra-small"), heads=("replaced_token", "masked_token"))
    with pytest.raises(cm.InputError, match="'masked_token' is tied"):
        share(new_generator(model), model, "gradient_disentangled")


def test_editing_rows_and_devices_go_through() -> None:
    model, objective = joined()
    ids = masked_batch().input_ids
    table = model.encoder.embeddings.pieces
    assert torch.equal(table(ids), table.weight[ids])
    objective.double()
    model.double()
    assert table.weight.dtype == torch.float64
    assert table(ids).dtype == torch.float64
    assert model.batch(["red fox"]).input_ids is not None
