"""Batches that cannot be: without rows or tokens, or with labels of another shape."""

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.masking import boundaries, orderings
from core_models.masking import spans as span_masking
from core_models.masking import tokens as masking
from core_models.objectives.replacing import sample
from tests.core.tiny_models import new, tiny

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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.uint8])
@pytest.mark.parametrize("name", ["input_ids", "segment_ids"])
def test_ids_are_whole_numbers(name: str, dtype: torch.dtype) -> None:
    values = {"input_ids": IDS, name: IDS.to(dtype)}
    with pytest.raises(InputError, match=rf"{name} is of type {dtype}; .* {name}\.long\(\)"):
        cm.Batch(**values)
    cm.Batch(**{**values, name: IDS.int()})


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(InputError, match=r"input_ids is of type list; .* torch\.tensor"):
        cm.Batch(input_ids=[[1, 2]])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"attention_mask is of type list"):
        cm.Batch(input_ids=IDS, attention_mask=[[1, 1, 1]])  # type: ignore[arg-type]


def test_a_row_alone_is_not_a_batch() -> None:
    with pytest.raises(InputError, match=r"input_ids has the shape \[6\]; .* input_ids\[None\]"):
        cm.Batch(input_ids=torch.arange(6))
    with pytest.raises(InputError, match=r"input_ids has the shape \[1, 2, 3\]; .*\[B, L\]"):
        cm.Batch(input_ids=IDS[None])
    with pytest.raises(InputError, match=r"embeddings has the shape \[2, 3\]; .*\[B, L, E\]"):
        cm.Batch(embeddings=torch.zeros(2, 3))
    with pytest.raises(InputError, match=r"embeddings is of type torch\.int64"):
        cm.Batch(embeddings=torch.zeros(2, 3, 4, dtype=torch.int64))


@pytest.mark.parametrize("name", ["attention_mask", "segment_ids"])
@pytest.mark.parametrize("shape", [(2, 2), (3,), (1, 3), (2, 1, 1, 3)])
def test_masks_and_segments_are_of_the_shape_of_the_ids(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=rf"{name} has the shape .*; this batch needs \[2, 3\]"):
        cm.Batch(input_ids=IDS, **{name: torch.ones(shape, dtype=torch.int64)})


@pytest.mark.parametrize(
    ("name", "shape", "needed"),
    [
        ("visibility", (3, 3), r"\[2, 3, 3\]"),
        ("visibility", (2, 3, 4), r"\[2, 3, 3\]"),
        ("target_visibility", (2, 3, 3), r"\[2, 1, 3\]"),
        ("targets", (2,), r"\[2, M\]"),
        ("targets", (1, 1), r"\[2, M\]"),
    ],
)
def test_targets_and_what_rows_see_are_of_the_shape_of_the_batch(
    name: str, shape: tuple[int, ...], needed: str
) -> None:
    given = {"targets": torch.tensor([[0], [1]]), name: torch.ones(shape, dtype=torch.int64)}
    with pytest.raises(InputError, match=rf"{name} has the shape .*; this batch needs {needed}"):
        cm.Batch(input_ids=IDS, **given)
    with pytest.raises(InputError, match=rf"{name} is of type list"):
        cm.Batch(input_ids=IDS, **{**given, name: [[1]]})
    with pytest.raises(InputError, match=r"targets is of type torch\.float32"):
        cm.Batch(input_ids=IDS, targets=torch.zeros(2, 1))


FAMILIES = ["bert-base", "roberta-base", "deberta-base", "xlnet-base", "modernbert-base"]


@pytest.mark.parametrize("id_", [-1, 10_000])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_piece_that_there_is_not_is_named(name: str, id_: int) -> None:
    model = new(tiny(name)).eval()
    rows = model.config.embeddings.vocabulary
    ids = torch.tensor([[5, 6, id_, 7]])
    told = f"input_ids has the value {id_} at row 0, place 2; allowed is 0 to {rows - 1}, "
    for ask in (model, model.encoder):
        with pytest.raises(InputError, match=told):
            ask(cm.Batch(input_ids=ids))


@pytest.mark.parametrize("segment", [-1, 2])
def test_a_segment_that_there_is_not_is_named(segment: int) -> None:
    ids = torch.tensor([[5, 6, 7], [5, 6, 7]])
    segments = torch.tensor([[0, 0, 0], [0, segment, 1]])
    with pytest.raises(InputError, match=f"segment_ids has the value {segment} at row 1, place 1"):
        new(tiny("bert-base"))(cm.Batch(input_ids=ids, segment_ids=segments))
    single = new(tiny("roberta-base"))
    with pytest.raises(InputError, match=r"segment_ids has the value 1 .*; allowed is 0, "):
        single(cm.Batch(input_ids=ids, segment_ids=segments.clamp(0, 1)))


@pytest.mark.parametrize("name", FAMILIES)
def test_more_tokens_than_positions_are_refused_or_answered(name: str) -> None:
    model = new(tiny(name)).eval()
    batch = cm.Batch(input_ids=torch.full((1, 600), 5))
    if name in ("xlnet-base", "modernbert-base"):  # positions are no table there
        assert model(batch).hidden.shape[:2] == (1, 600)
        return
    with pytest.raises(InputError, match="600 tokens; this model takes at most"):
        model(batch)


def test_ids_without_a_batch_are_refused_with_the_way_out() -> None:
    for ids in (IDS, IDS[0]):
        with pytest.raises(InputError, match=r"cm\.Batch\(input_ids=\.\.\.\)"):
            new(tiny("bert-base"))(ids)  # type: ignore[arg-type]


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
