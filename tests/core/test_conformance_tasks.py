"""Heads of fine-tuning over every family: shapes, trace, gradients, files."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.network.trace import Trace
from tests.core.conformance import (
    EVERYTHING,
    LENGTH,
    ROWS,
    SIZES,
    close,
    inputs,
    new,
    storages,
    task,
)

cases = pytest.mark.parametrize("case", SIZES)

TASK_SHAPES = {
    "classify": (ROWS, 3),
    "multilabel": (ROWS, 4),
    "regress": (ROWS,),
    "tag": (ROWS, LENGTH, 2),
    "span": (ROWS, LENGTH, 2),
    "similarity": (ROWS, 32),
}


@cases
@pytest.mark.parametrize("head", TASK_SHAPES)
def test_fine_tuning_heads(case: str, head: str, tmp_path: Path) -> None:
    model = task(case, head)
    assert list(model.heads) == [head]
    batch = replace(inputs(model), targets=None, target_visibility=None)
    answer = model.heads[head].answer(model.encoder, batch)
    assert answer.shape == TASK_SHAPES[head]
    with torch.no_grad():
        close(model.heads[head].answer(model.encoder, batch, Trace(EVERYTHING)), answer)
    # a weighted sum: the plain mean of what a norm gives hardly depends on the weights before it
    weights = torch.randn(answer.shape, generator=torch.Generator().manual_seed(3))
    (answer * weights).sum().backward()
    silent = {n for n, p in model.named_parameters() if p.grad is None or not bool(p.grad.any())}
    without_targets = {"encoder.query_start", "encoder.mask_decoder.weight"}
    assert silent <= without_targets  # parts of pretraining alone
    model.save(tmp_path)
    again = cm.load(tmp_path)
    assert again.state_dict().keys() == model.state_dict().keys()
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    assert again.heads[head].labels == model.heads[head].labels
    with torch.no_grad():
        expected = model.heads[head].answer(model.encoder, batch)
        assert torch.equal(again.heads[head].answer(again.encoder, batch), expected)


@cases
def test_a_fine_tuning_head_leaves_the_original_alone(case: str) -> None:
    model = new(case)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    made = model.with_head("classify", ("a", "b"), generator=torch.Generator().manual_seed(2))
    assert not set(storages(model)) & set(storages(made))
    with torch.no_grad():
        for p in made.parameters():
            p.add_(1.0)
    assert all(torch.equal(t, before[n]) for n, t in model.state_dict().items())
