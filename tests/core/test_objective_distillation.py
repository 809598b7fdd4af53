"""Distillation and the students it trains."""

import math
from dataclasses import replace

import pytest
import torch

import core_models as cm
from core_models.objectives import Distillation, shallower
from tests.core.tiny_models import masked_batch, new, tiny


def test_losses_by_hand() -> None:
    model, teacher = new(tiny("bert-mini")), new(tiny("bert-mini", layers=3), seed=7)
    objective = Distillation(model, teacher)  # at temperature 2, as released
    batch = masked_batch()
    losses = objective(model.encoder, batch)
    ours, theirs = model.encoder(batch).hidden, teacher.encoder(batch).hidden
    head, wanted = model.heads["masked_token"](ours), teacher.heads["masked_token"](theirs)
    soft = filling = turned = 0.0
    agreed = 0
    for row, column in batch.attention_mask.nonzero().tolist():
        q, p = head[row, column].tolist(), wanted[row, column].tolist()
        total_p = sum(math.exp(x / 2) for x in p)
        total_q = sum(math.exp(x / 2) for x in q)
        for x, y in zip(p, q, strict=True):
            share = math.exp(x / 2) / total_p
            soft += 4 * share * (math.log(share) - y / 2 + math.log(total_q))
        a, b = ours[row, column], theirs[row, column]
        turned += 1 - (a @ b / a.norm() / b.norm()).item()
        agreed += q.index(max(q)) == p.index(max(p))
        label = int(batch.labels[row, column])
        if label >= 0:
            weight = float(batch.label_weights[row, column])
            filling -= weight * head[row, column].log_softmax(-1)[label].item()
    real = int(batch.attention_mask.sum())
    assert losses.sums["distillation"].item() == pytest.approx(soft, rel=1e-4)
    assert losses.sums["masked_token"].item() == pytest.approx(filling, rel=1e-5)
    assert losses.sums["hidden_cosine"].item() == pytest.approx(turned, rel=1e-5)
    assert losses.metrics["distillation_accuracy"] == (agreed, real)
    labels = float(batch.label_weights[batch.labels >= 0].sum())
    expected = 5 * soft / real + 2 * filling / labels + turned / real
    assert losses.total.item() == pytest.approx(expected, rel=1e-5)


def test_the_teacher_itself_has_nothing_to_learn_from_itself() -> None:
    model = new(tiny("deberta-base"))
    losses = Distillation(model, model.clone())(model.encoder, masked_batch())
    assert losses.parts["distillation"].item() == pytest.approx(0, abs=1e-5)
    assert losses.parts["hidden_cosine"].item() == pytest.approx(0, abs=1e-5)


def test_the_teacher_is_neither_trained_nor_saved_nor_dropped_out() -> None:
    model = new(tiny("bert-mini"))
    teacher = new(tiny("bert-mini").with_dropout(0.5), seed=7)
    objective = Distillation(model, teacher).train()
    before = [p.clone() for p in teacher.parameters()]
    losses = [objective(model.encoder, masked_batch()).total for _ in range(2)]
    assert losses[0].item() == losses[1].item()
    losses[0].backward()
    assert all(p.grad is None for p in teacher.parameters())
    mine = {id(p) for p in teacher.parameters()}
    assert not mine & {id(p) for p in objective.parameters()}
    assert all(torch.equal(a, b) for a, b in zip(before, teacher.parameters(), strict=True))
    assert objective.companions() == {}
    objective.double()
    assert next(teacher.parameters()).dtype == torch.float64


def test_a_narrower_student_goes_without_hidden_states() -> None:
    model, teacher = new(tiny("bert-mini", width=4)), new(tiny("bert-mini"), seed=7)
    with pytest.raises(cm.InputError, match="width is 8, the student's 4"):
        Distillation(model, teacher)
    objective = Distillation(model, teacher, weights=(1.0, 1.0, 0.0))
    batch = masked_batch()
    losses = objective(model.encoder, batch)
    assert list(losses.sums) == list(objective.counts(batch)) == ["distillation", "masked_token"]
    losses.total.backward()


def test_teachers_that_do_not_fit_are_refused() -> None:
    model = new(tiny("bert-mini"))
    with pytest.raises(cm.InputError, match="head 'masked_token'"):
        Distillation(model, new(tiny("electra-small")))
    config = tiny("bert-mini")
    other = replace(config, embeddings=replace(config.embeddings, vocabulary=120))
    with pytest.raises(cm.InputError, match="120 pieces"):
        Distillation(model, new(other))
    with pytest.raises(cm.InputError, match="must be > 0"):
        Distillation(model, model.clone(), temperature=0.0)


def test_the_released_choice_of_layers() -> None:
    model = new(tiny("bert-mini", layers=12))
    student = shallower(model, 6)
    assert student.config == replace(model.config, schedule=tuple(range(6)))
    for new_block, old in enumerate([0, 2, 4, 7, 9, 11]):
        ours = student.encoder.blocks[new_block].state_dict()
        theirs = model.encoder.blocks[old].state_dict()
        for name, tensor in ours.items():
            assert torch.equal(tensor, theirs[name])
            assert tensor.data_ptr() != theirs[name].data_ptr()
    table = student.encoder.embeddings.pieces.weight
    assert torch.equal(table, model.encoder.embeddings.pieces.weight)
    assert student.heads["masked_token"].decoder.weight is table
    assert [shallower(model, n).config.steps for n in (1, 2, 11)] == [1, 2, 11]


@pytest.mark.parametrize(
    "name",
    ["albert-base", "xlnet-base", "deberta-v2-xlarge", "electra-small-generator", "roberta-base"],
)
def test_a_student_of_any_family_repeats_its_teachers_steps(name: str) -> None:
    model = new(tiny(name, layers=4)).eval()
    student = shallower(model, 3)  # steps 0, 2 and 3
    assert not student.training
    batch = masked_batch()
    # The teacher itself, run over the same steps.
    model.encoder.config = student.config
    if name != "albert-base":
        blocks = model.encoder.blocks
        model.encoder.blocks = torch.nn.ModuleList([blocks[0], blocks[2], blocks[3]])
    real = batch.attention_mask
    assert torch.equal(student.encoder(batch).hidden[real], model.encoder(batch).hidden[real])
    assert set(student.heads) == set(model.heads)


@pytest.mark.parametrize("steps", [0, 2, 5])
def test_students_are_shallower(steps: int) -> None:
    with pytest.raises(cm.InputError, match="1 to 1 fit"):
        shallower(new(tiny("bert-mini")), steps)
