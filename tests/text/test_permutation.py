"""Orderings read from packed batches: padded rows, reversed rows, recurrent rows."""

import pytest
import torch
from torch import Tensor

from core_models.data.layout import TokenBatch
from core_models.data.permutation import paper_ordering, released_ordering
from core_models.masking.tokens import IGNORED, generator_for, uniform

SEP, CLS, PAD = 3, 2, 0


def packed(
    lengths: list[int],
    width: int,
    *,
    reuse: int | None = None,
    backwards: list[bool] | None = None,
    word: int = 1,
) -> TokenBatch:
    """Rows ``... [SEP] [CLS]`` padded on the left, words of ``word`` pieces."""
    ids = torch.full((len(lengths), width), PAD)
    words = torch.full_like(ids, -1)
    for row, length in enumerate(lengths):
        text = torch.arange(length - 2)
        ids[row, width - length : width - 2] = 10 + text
        words[row, width - length : width - 2] = text // word
        ids[row, -2:] = torch.tensor([SEP, CLS])
    return TokenBatch(
        input_ids=ids,
        segment_ids=torch.zeros_like(ids),
        attention_mask=ids != PAD,
        words=words,
        pair_labels=torch.full((len(lengths),), -100),
        lengths=torch.tensor(lengths),
        reversed=None if backwards is None else torch.tensor(backwards),
        reuse=reuse,
    )


def predicted(labels: Tensor) -> list[list[int]]:
    return [sorted(i for i in row if i != IGNORED) for row in labels.tolist()]


def test_the_paper_predicts_a_share_of_each_row() -> None:
    batch = packed([32, 14, 4, 3], 32)
    ordering = paper_ordering(batch, generator=generator_for(0), predict=1 / 6)
    assert ordering.counts.tolist() == [5, 2, 1, 1]
    made = batch.permuted(ordering)
    assert torch.equal(made.input_ids, batch.input_ids)  # nothing is masked
    assert made.target_labels is not None
    assert made.targets is not None
    assert made.target_visibility is not None
    for row, count in enumerate([5, 2, 1, 1]):
        pieces = made.input_ids[row, made.targets[row, :count]]
        assert torch.equal(pieces, made.target_labels[row, :count])
        assert int(pieces.min()) >= 10
        # The last piece of an order sees all others but itself.
        last = made.targets[row, count - 1]
        assert made.target_visibility[row, count - 1].sum() == 31
        assert not made.target_visibility[row, count - 1, last]
    with pytest.raises(ValueError, match="predict 0"):
        paper_ordering(batch, generator=generator_for(0), predict=0)


def test_orders_over_whole_rows_have_no_memory() -> None:
    with pytest.raises(ValueError, match="use released_ordering"):
        paper_ordering(packed([32], 32, reuse=8), generator=generator_for(0))


def test_released_spans_fill_both_parts_by_themselves() -> None:
    batch = packed([64] * 500, 64, reuse=32)
    ordering = released_ordering(batch, generator=generator_for(1), predict=11 / 64)
    chosen = torch.zeros(500, 64, dtype=torch.bool)
    real = torch.arange(ordering.targets.shape[1]) < ordering.counts[:, None]
    rows = torch.arange(500)[:, None].expand_as(real)
    chosen[rows[real], ordering.targets[real]] = True
    assert (chosen[:, :32].sum(1) == 6).all()  # the larger half of an odd goal
    rest = chosen[:, 32:].sum(1)
    assert int(rest.max()) == 5
    assert int(rest.min()) >= 3  # [SEP] and [CLS] may be chosen, but are not predicted
    assert not ordering.visibility[:, :32, 32:].any()
    assert ordering.visibility[:, 32:, :32].all()


def test_padding_is_never_predicted() -> None:
    batch = packed([64, 20, 9], 64)
    for seed in range(20):
        ordering = released_ordering(batch, generator=generator_for(seed), predict=0.3)
        labels = predicted(ordering.labels(batch.input_ids))
        assert all(len(row) <= goal for row, goal in zip(labels, (19, 6, 3), strict=True))
        assert all(piece >= 10 for row in labels for piece in row)


def test_spans_begin_at_word_starts_in_the_direction_of_the_text() -> None:
    count = 400
    forwards = packed([62] * count, 62, word=3)
    backwards = packed([62] * count, 62, word=3, backwards=[True] * count)
    for batch, way in ((forwards, 1), (backwards, -1)):
        ordering = released_ordering(batch, generator=generator_for(2), predict=6 / 62)
        labels = predicted(ordering.labels(batch.input_ids))
        # Where the walk reached the goal before the end, no single piece was added.
        starts = 0
        for row in labels:
            spans = [i - 10 for i in row if i - way not in row]
            starts += sum(place % 3 == (0 if way == 1 else 2) for place in spans) / len(spans)
        assert starts / count > 0.9


def test_rows_follow_their_own_generator() -> None:
    batch = packed([40, 40, 40], 40, reuse=10, backwards=[False, True, False])
    sources = [generator_for(4, n) for n in range(3)]
    whole = released_ordering(batch, generator=sources)
    alone = TokenBatch(
        **{
            name: value[1:2] if isinstance(value, Tensor) else value
            for name, value in vars(batch).items()
        }
    )
    part = released_ordering(alone, generator=[generator_for(4, 1)])
    count = int(whole.counts[1])
    assert torch.equal(part.targets[0], whole.targets[1, :count])
    assert torch.equal(part.visibility[0], whole.visibility[1])


def test_batches_move_and_keep_what_is_no_tensor() -> None:
    batch = packed([8], 8, reuse=3)
    moved = batch.to("meta")
    assert moved.input_ids.device.type == "meta"
    assert (moved.reuse, moved.reversed) == (3, None)
    made = batch.permuted(released_ordering(batch, generator=generator_for(0)))
    assert made.reuse == 3
    turned = packed([8], 8, reuse=3, backwards=[True])
    masked = turned.masked(
        uniform(
            turned.input_ids,
            turned.maskable,
            generator=generator_for(0),
            mask_id=9,
            vocabulary=20,
        )
    )
    assert masked.reuse == 3
    assert masked.reversed is turned.reversed
