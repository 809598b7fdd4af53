"""What every objective promises: replay, parts that add up, one table to build them from."""

from dataclasses import replace

import pytest
import torch

import core_models as cm
from core_models.batch import Batch
from core_models.errors import InputError
from core_models.joint import new_generator
from core_models.objectives import NEEDS, Objective, Options, Weighted, build
from tests.core.tiny_models import masked_batch, new, ordered_batch, part, tiny

SIZES = {
    "masked_token": "bert-mini",
    "next_sentence": "bert-mini",
    "sentence_order": "albert-base",
    "span_boundary": "spanbert-base",
    "permutation": "xlnet-base",
    "replaced_token": "electra-small",
    "masked_diffusion": "bert-mini",
    "masked_next_token": "bert-mini",
    "causal": "bert-mini",
    "distillation": "bert-mini",
}


def made(name: str, sharing: str = "tied") -> tuple[cm.Model, Objective, Batch]:
    config = tiny(SIZES[name])
    if name == "causal":
        config = replace(config, attention=replace(config.attention, direction="left"))
    model = new(config, heads=(NEEDS[name].head,))
    options = Options(
        generator=new_generator(model, generator=torch.Generator().manual_seed(2)),
        teacher=new(tiny("bert-mini", layers=3), seed=7),
        sharing=sharing,
    )
    batch = ordered_batch() if name == "permutation" else masked_batch()
    return model, build(name, model, options), batch


def test_the_table_names_every_objective() -> None:
    assert SIZES.keys() == NEEDS.keys()
    for name in NEEDS:
        assert made(name)[1].name == name


@pytest.mark.parametrize("name", SIZES)
def test_the_same_batch_twice_and_in_parts(name: str) -> None:
    model, objective, batch = made(name)
    whole = objective(model.encoder, batch)
    again = objective(model.encoder, batch)
    assert {k: v.item() for k, v in whole.sums.items()} == {
        k: v.item() for k, v in again.sums.items()
    }
    counts = objective.counts(batch)
    assert {k: v.item() for k, v in counts.items()} == {
        k: v.item() for k, v in whole.counts.items()
    }
    assert whole.weights == objective.loss_weights()
    assert whole.sums.keys() == whole.weights.keys() == whole.counts.keys()
    cuts = [slice(0, 1), slice(1, 4), slice(4, None)]
    pieces = [part(batch, rows) for rows in cuts if (rows.start or 0) < batch.shape[0]]
    losses = [objective(model.encoder, p) for p in pieces]
    torch.testing.assert_close(sum(p.total_over(counts) for p in losses), whole.total)
    for metric, (total, count) in whole.metrics.items():
        assert sum(p.metrics[metric][0].item() for p in losses) == pytest.approx(
            total.item(), rel=1e-5
        )
        assert sum(p.metrics[metric][1].item() for p in losses) == count.item()


@pytest.mark.parametrize("name", SIZES)
def test_gradients_of_parts_add_up_and_are_finite(name: str) -> None:
    model, objective, batch = made(name)
    counts = objective.counts(batch)
    module = torch.nn.ModuleList([model.encoder, objective])
    names = dict(module.named_parameters())
    objective(model.encoder, batch).total.backward()
    whole = {n: p.grad.clone() for n, p in names.items() if p.grad is not None}
    module.zero_grad(set_to_none=True)
    for rows in (slice(0, 2), slice(2, None)):
        objective(model.encoder, part(batch, rows)).total_over(counts).backward()
    for n, p in names.items():
        assert (p.grad is None) == (n not in whole), n
        if p.grad is not None:
            torch.testing.assert_close(p.grad, whole[n], atol=1e-5, rtol=1e-4, msg=n)
    assert any(g.any() for g in whole.values())


@pytest.mark.parametrize("name", sorted(set(SIZES) - {"causal"}))
def test_nothing_labelled_costs_nothing_and_is_finite(name: str) -> None:
    model, objective, batch = made(name)
    empty = replace(
        batch,
        **{
            field: torch.full_like(getattr(batch, field), -100)
            for field in ("labels", "pair_labels", "boundary_labels", "target_labels")
            if getattr(batch, field) is not None
        },
    )
    losses = objective(model.encoder, empty)
    losses.total.backward()
    assert losses.total.isfinite()
    for loss, count in losses.counts.items():
        assert (losses.sums[loss].item() == 0) or count.item() > 0
    for p in [*model.parameters(), *objective.parameters()]:
        assert p.grad is None or bool(p.grad.isfinite().all())


def test_own_passes_do_not_run_the_encoder_in_vain() -> None:
    model, objective, batch = made("replaced_token")
    passes: list[Batch] = []
    model.encoder.register_forward_pre_hook(lambda _, values: passes.append(values[0]))
    Weighted([(1.0, objective)])(model.encoder, batch)
    assert len(passes) == 1
    assert passes[0].labels is None
    sentence = build("sentence_order", new(model.config, heads=("sentence_order",)))
    passes.clear()
    both = Weighted([(0.5, objective), (2.0, sentence)])
    losses = both(model.encoder, batch)
    assert len(passes) == 2
    weights = {"masked_token": 0.5, "replaced_token": 25.0, "sentence_order": 2.0}
    assert losses.weights == both.loss_weights() == weights


def test_weighted_hands_through_companions_states_and_memory() -> None:
    model, objective, batch = made("replaced_token", "gradient_disentangled")
    both = Weighted([(1.0, objective)])
    assert both.companions() == {"generator": objective.generator}
    state = {name: torch.randn_like(tensor) for name, tensor in both.own_state().items()}
    assert sorted(state) == [f"replaced_token.{n}" for n in ("pieces", "positions", "segments")]
    both.load_own_state(state)
    for name, tensor in objective.own_state().items():
        assert torch.equal(tensor, state[f"replaced_token.{name}"])
    with pytest.raises(InputError, match=r"replaced_token\.pieces"):
        both.load_own_state({})
    wrong = state | {"replaced_token.pieces": torch.zeros(2, 2)}
    with pytest.raises(InputError, match="shape"):
        both.load_own_state(wrong)
    model, objective, batch = made("permutation")
    both = Weighted([(1.0, objective)])
    assert both.companions() == {}
    assert both.own_state() == {}
    memory = both(model.encoder, replace(batch, remember=3)).memory
    assert [m.shape for m in memory] == [(4, 3, 8)] * 2
    with pytest.raises(InputError, match="expected nothing"):
        both.load_own_state({"x": torch.zeros(1)})


def test_two_objectives_with_one_loss_are_refused() -> None:
    objective = made("replaced_token")[1]
    filling = build("masked_token", new(tiny("bert-mini")))
    with pytest.raises(ValueError, match="'masked_token'"):
        Weighted([(1.0, objective), (1.0, filling)])


def test_what_is_missing_is_named() -> None:
    model = new(tiny("electra-small"))
    with pytest.raises(
        InputError, match=r"No objective 'replaced'.*masked_token, masked_diffusion"
    ):
        build("replaced", model)
    with pytest.raises(InputError, match="head 'masked_token'; the model has replaced_token"):
        build("masked_token", model)
    with pytest.raises(InputError, match=r"replaced_token needs a generator.*Options.generator"):
        build("replaced_token", model)
    with pytest.raises(InputError, match="'same'; allowed are tied, gradient_disentangled, none"):
        build("replaced_token", model, Options(generator=new_generator(model), sharing="same"))
    with pytest.raises(InputError, match="above 0"):
        build("replaced_token", model, Options(generator=new_generator(model), temperature=0.0))
    with pytest.raises(InputError, match="needs the head 'masked_token'"):
        build("replaced_token", model, Options(generator=model))
    with pytest.raises(InputError, match=r"attention\.direction"):
        build("causal", new(tiny("bert-mini"), heads=("causal",)))
    for name, needs in NEEDS.items():
        if needs.fields:
            made_model, objective, batch = made(name)
            for field in needs.fields:
                if field in ("visibility", "target_visibility"):
                    continue  # without them everything is seen
                with pytest.raises(ValueError, match=f"batch.{field}"):
                    objective(made_model.encoder, replace(batch, **{field: None}))


def test_an_ordering_without_targets_costs_nothing() -> None:
    """A row of special pieces has none to predict, in the released code's order."""
    model, objective, batch = made("permutation")
    nothing = torch.empty(batch.shape[0], 0, dtype=torch.int64)
    seen = torch.empty(batch.shape[0], 0, batch.shape[1], dtype=torch.bool)
    empty = replace(batch, targets=nothing, target_labels=nothing, target_visibility=seen)
    losses = objective(model.encoder, empty)
    assert losses.total.item() == 0
