"""Combinations that no other test puts together."""

from dataclasses import replace

import pytest
import torch

import core_models as cm
from core_models.joint import generator_config, new_generator
from core_models.objectives.distillation import Distillation
from core_models.objectives.pair import NextSentence
from core_models.objectives.weighted import Weighted
from tests.core.tiny_models import masked_batch, new, tiny


def test_one_objective_that_reads_all_makes_the_shared_pass_whole() -> None:
    """Next sentence alone asks for [CLS] only; imitation needs every token beside it."""
    model = new(tiny("bert-mini")).eval()
    teacher = new(tiny("bert-mini", layers=3), seed=7)
    batch = masked_batch()
    alone = [Distillation(model, teacher), NextSentence(model.heads["next_sentence"])]
    both = Weighted([(1.0, alone[0]), (2.0, alone[1])])
    assert both.reads(model.encoder, batch) is None
    losses = both(model.encoder, batch)
    expected = [objective(model.encoder, batch) for objective in alone]
    torch.testing.assert_close(losses.total, expected[0].total + 2 * expected[1].total)


def test_a_generator_of_version_3_keeps_the_inner_width() -> None:
    config = tiny("deberta-v3-base")
    assert config.feed_forward.width == 12 != 4 * config.width
    assert generator_config(config).feed_forward.width == 12
    assert generator_config(tiny("electra-base")).feed_forward.width == 8  # a quarter as wide, x 4


@pytest.mark.parametrize("name", ["electra-base", "deberta-v3-base"])
def test_a_new_generator_starts_from_the_norm_of_the_tables_too(name: str) -> None:
    model = new(tiny(name))
    norm = model.encoder.embeddings.norm
    with torch.no_grad():
        norm.weight.add_(torch.randn(norm.weight.shape, generator=torch.Generator().manual_seed(1)))
    made = new_generator(model)
    assert torch.equal(made.encoder.embeddings.norm.weight, norm.weight)
    assert made.encoder.embeddings.norm.weight is not norm.weight


def test_chosen_steps_leave_the_sites_before_the_first_step() -> None:
    model = new(tiny("bert-mini"))
    trace = cm.Trace(["embedding", "residual"], steps=[1])
    model.encoder(model.batch(["red fox sees"]), trace=trace)
    assert {(site, step) for site, step, _ in trace.records} == {
        ("embedding", None),
        ("residual", 1),
    }


def test_a_decoder_has_steps_of_its_own_to_edit() -> None:
    """It may run more often than the encoder has layers."""
    model = new(replace(tiny("deberta-base", layers=1)))
    batch = model.batch(["red fox sees"])
    before = model.encoder.decode(batch, model.encoder(batch))
    edit = cm.Edit("residual", torch.zeros_like, 1, "mask_decoder")
    trace = cm.Trace(edits=[edit])
    after = model.encoder.decode(batch, model.encoder(batch, trace=trace), trace)
    assert before.any()
    assert not after.any()
    with pytest.raises(cm.InputError, match="No step 1 to edit"):
        model.encoder(batch, trace=cm.Trace(edits=[replace(edit, stream="content")]))
