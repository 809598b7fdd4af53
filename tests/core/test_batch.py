"""Batches that cannot be: without rows or tokens, or with labels of another shape."""

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.masking import boundaries, orderings
from core_models.masking import spans as span_masking
from core_models.masking import tokens as masking
from core_models.objectives.replacing import sample

IDS = torch.arange(6).reshape(2, 3)


@pytest.mark.parametrize(("rows", "length"), [(0, 3), (2, 0), (0, 0)])
def test_nothing_to_read_is_refused(rows: int, length: int) -> None:
    with pytest.raises(InputError, match=f"A batch has {rows} rows of {length} tokens"):
        cm.Batch(input_ids=torch.zeros(rows, length, dtype=torch.int64))
    with pytest.raises(InputError, match="one row of one token"):
        cm.Batch(embeddings=torch.zeros(rows, length, 4))


@pytest.mark.parametrize("name", ["labels", "label_weights", "draws", "tag_labels"])
def test_one_label_per_token(name: str) -> None:
    cm.Batch(input_ids=IDS, **{name: torch.zeros(2, 3)})
    for shape in ((2, 2), (3,), (1, 3)):
        with pytest.raises(ValueError, match=rf"{name} has the shape .*needs \[2, 3\]"):
            cm.Batch(input_ids=IDS, **{name: torch.zeros(shape)})


@pytest.mark.parametrize("name", ["pair_labels", "class_labels", "score_labels", "answer_ends"])
def test_one_label_per_row(name: str) -> None:
    cm.Batch(input_ids=IDS, **{name: torch.zeros(2)})
    for shape in ((3,), (2, 1), ()):
        with pytest.raises(ValueError, match=rf"{name} has the shape .*needs \[2\]"):
            cm.Batch(input_ids=IDS, **{name: torch.zeros(shape)})


def test_no_rows_have_no_spans_and_no_targets() -> None:
    ids = torch.zeros(0, 5, dtype=torch.int64)
    maskable = torch.zeros(0, 5, dtype=torch.bool)
    masked = span_masking.spans(
        ids, maskable, generator=masking.generator_for(0), mask_id=1, vocabulary=9
    )
    places, labels = boundaries.boundary_fields(masked, maskable)
    assert (places.shape, labels.shape) == ((0, 1, 3), (0, 1))
    order = orderings.draw_order(0, 5, generator=masking.generator_for(0))
    assert orderings.paper(order, torch.zeros(0)).targets.shape == (0, 0)
    ranks = orderings.local_ranks(0, 5, generator=masking.generator_for(0), reuse=0)
    assert orderings.released(maskable, maskable, ranks, reuse=0).targets.shape == (0, 0)


def test_rows_without_pieces_are_refused() -> None:
    ids = torch.zeros(2, 0, dtype=torch.int64)
    with pytest.raises(ValueError, match="no pieces to mask"):
        masking.uniform(ids, ids > 0, generator=masking.generator_for(0), mask_id=1, vocabulary=9)


def test_no_temperature_draws_a_piece_beyond_the_vocabulary() -> None:
    scores = torch.tensor([[1.0, 3.0, 2.0], [-5.0, -9.0, -7.0]])
    for temperature in (1e-3, 1e-30, 1e-42):
        for draw in (0.0, 0.5, 0.9999):
            found = sample(scores, torch.full((2,), draw), temperature)
            assert found.tolist() == [1, 0]
