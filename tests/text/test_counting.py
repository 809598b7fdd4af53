"""fairseq's way to count and to draw, and what else a batch takes from a masking."""

import math

import pytest
import torch
from torch import Tensor

from core_models.data.layout import TokenBatch
from core_models.masking import tokens as masking
from core_models.masking.electra import with_replacement
from core_models.masking.spans import spans
from core_models.masking.tokens import (
    IGNORED,
    MASK,
    RANDOM,
    generator_for,
    ordinary_ids,
    quota,
    sample_draws,
    uniform,
    whole_word,
)

MASK_ID, V = 4, 50
SPECIAL = range(5)


def packed(count: int, length: int, padding: int = 0) -> TokenBatch:
    """Rows ``[CLS] ... [SEP]`` of words of two pieces, with padding at the end."""
    ids = torch.randint(5, V, (count, length), generator=generator_for(count, length))
    ids[:, 0], ids[:, length - padding - 1], ids[:, length - padding :] = 2, 3, 0
    groups = (torch.arange(length) - 1).div(2, rounding_mode="floor").expand(count, -1)
    return TokenBatch(
        input_ids=ids,
        segment_ids=torch.zeros_like(ids),
        attention_mask=ids > 0,
        words=groups.masked_fill(ids < 5, -1),
        pair_labels=torch.full((count,), -100),
        lengths=torch.full((count,), length - padding),
    )


def fairseq(batch: TokenBatch, generator: masking.Generators, **options: object) -> masking.Masked:
    values = {
        "generator": generator,
        "mask_id": MASK_ID,
        "vocabulary": V,
        "lengths": batch.lengths,
        "counting": "fairseq",
        "random_ids": ordinary_ids(V, SPECIAL),
    }
    return uniform(batch.input_ids, batch.attention_mask, **values | options)  # type: ignore[arg-type]


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize(("length", "padding"), [(64, 0), (64, 14), (3, 0), (128, 0)])
def test_the_count_is_the_floor_of_the_share_plus_a_uniform_number(
    each: bool, length: int, padding: int
) -> None:
    count = 4000
    batch = packed(count, length, padding)
    sources = [generator_for(0, n) for n in range(count)] if each else generator_for(5)
    found = (fairseq(batch, sources).labels != IGNORED).sum(1)
    exact = 0.15 * (length - padding)
    assert set(found.tolist()) <= {math.floor(exact), math.floor(exact) + 1}
    fraction = exact % 1
    # Mean of a coin with this share, within five standard deviations.
    error = 5 * math.sqrt(fraction * (1 - fraction) / count) + 1e-6
    assert abs(found.double().mean().item() - exact) < error
    assert found.double().var().item() <= 0.2501


def test_berts_count_has_no_variance() -> None:
    batch = packed(200, 64)
    found = uniform(
        batch.input_ids, batch.maskable, generator=generator_for(1), mask_id=MASK_ID, vocabulary=V
    )
    assert set((found.labels != IGNORED).sum(1).tolist()) == {quota(64, 0.15)}


def test_fairseq_masks_every_position_alike_also_the_first_and_the_last() -> None:
    count, length, padding = 20_000, 24, 4
    batch = packed(count, length, padding)
    chosen = fairseq(batch, generator_for(3)).labels != IGNORED
    assert not chosen[:, length - padding :].any()
    hits = chosen[:, : length - padding].sum(0).double()
    expected = count * 0.15
    # 20 counts; chi-square with 19 degrees of freedom, 99.9 % below 43.8
    assert ((hits - expected) ** 2 / (expected * 0.85)).sum() < 43.8
    assert hits[0] > 0
    assert hits[-1] > 0


def test_random_pieces_are_uniform_over_the_ordinary_ids() -> None:
    batch = packed(6000, 64)
    masked = fairseq(batch, generator_for(4), split=(0.0, 1.0, 0.0))
    drawn = masked.inputs[masked.cases == RANDOM]
    assert int(drawn.min()) >= 5
    hits = torch.bincount(drawn, minlength=V)[5:].double()
    expected = hits.sum() / (V - 5)
    # 45 ids; chi-square with 44 degrees of freedom, 99.9 % below 78.7
    assert ((hits - expected) ** 2 / expected).sum() < 78.7


def test_ordinary_ids() -> None:
    assert ordinary_ids(8, [0, 7, 3]).tolist() == [1, 2, 4, 5, 6]


def test_a_limit_holds_for_both_ways_to_count() -> None:
    batch = packed(300, 128)
    found = fairseq(batch, generator_for(0), most=7)
    assert ((found.labels != IGNORED).sum(1) == 7).all()


def test_words_stay_whole_under_either_count() -> None:
    batch = packed(3000, 60)
    masked = whole_word(
        batch.input_ids,
        batch.maskable,
        batch.words,
        generator=generator_for(2),
        mask_id=MASK_ID,
        vocabulary=V,
        counting="fairseq",
        rate=0.13,  # 7.8 pieces: 7 or 8, of which words of two pieces fill 6 or 8
        random_ids=ordinary_ids(V, SPECIAL),
    )
    chosen = masked.labels != IGNORED
    assert torch.equal(chosen[:, 1:-1:2], chosen[:, 2:-1:2])
    counts = chosen.sum(1)
    assert set(counts.tolist()) == {6, 8}
    assert abs((counts == 8).double().mean().item() - 0.8) < 0.04  # standard deviation 0.007
    assert int(masked.inputs[masked.cases == RANDOM].min()) >= 5


def test_rows_are_drawn_by_their_own_generator() -> None:
    batch = packed(6, 40, 8)
    whole = fairseq(batch, [generator_for(1, n) for n in range(6)])
    part = fairseq(packed(6, 40, 8), [generator_for(1, n) for n in range(6)])
    assert torch.equal(whole.inputs, part.inputs)
    cut = TokenBatch(
        **{
            k: v[2:3, :32] if isinstance(v, Tensor) and v.dim() == 2 else v
            for k, v in vars(batch).items()
            if k != "lengths" and k != "pair_labels"
        },
        lengths=batch.lengths[2:3],
        pair_labels=batch.pair_labels[2:3],
    )
    alone = fairseq(cut, [generator_for(1, 2)])
    assert torch.equal(alone.inputs[0], whole.inputs[2, :32])


# --- what a Batch takes over ---------------------------------------------------------------------


def test_draws_are_below_one_and_follow_the_generator_of_the_row() -> None:
    both = sample_draws(2, 5000, [generator_for(1), generator_for(2)])
    assert torch.equal(both[1], sample_draws(1, 5000, [generator_for(2)])[0])
    assert torch.equal(both[:, :30], sample_draws(2, 30, [generator_for(1), generator_for(2)]))
    assert both.dtype == torch.float32
    assert float(both.min()) >= 0
    assert float(both.max()) < 1
    assert abs(both.mean().item() - 0.5) < 0.02
    assert sample_draws(3, 4, generator_for(0)).shape == (3, 4)
    with pytest.raises(ValueError, match="1 generators for 2 rows"):
        sample_draws(2, 5, [generator_for(1)])


def test_weights_are_how_often_a_piece_was_drawn() -> None:
    batch = packed(8, 128)
    drawn = with_replacement(
        batch.input_ids, batch.maskable, generator=generator_for(0), mask_id=MASK_ID
    )
    draws = sample_draws(8, 128, generator_for(1))
    made = batch.masked(drawn, draws=draws)
    assert made.label_weights is not None
    assert made.label_weights.sum(1).tolist() == [quota(128, 0.15)] * 8
    assert made.labels is not None
    assert torch.equal(made.label_weights > 0, made.labels != IGNORED)
    assert made.draws is draws


def test_boundaries_of_a_batch_by_hand() -> None:
    ids = torch.tensor([[2, 10, 11, 12, 13, 14, 15, 3], [2, 20, 21, 22, 3, 0, 0, 0]])
    batch = TokenBatch(
        input_ids=ids,
        segment_ids=torch.zeros_like(ids),
        attention_mask=ids > 0,
        words=torch.where(ids > 4, torch.arange(8), -1),
        pair_labels=torch.tensor([-100, -100]),
        lengths=torch.tensor([8, 5]),
    )
    masked = spans(
        batch.input_ids, batch.maskable, generator=generator_for(0), mask_id=MASK_ID, vocabulary=V
    )
    by_hand = type(masked)(
        inputs=ids,
        labels=torch.tensor(
            [
                [IGNORED, IGNORED, 11, 12, IGNORED, 14, IGNORED, IGNORED],
                [IGNORED, 20, IGNORED, IGNORED, IGNORED, IGNORED, IGNORED, IGNORED],
            ]
        ),
        cases=torch.zeros_like(ids, dtype=torch.uint8),
        spans=torch.tensor([[0, 2, 4], [0, 5, 6], [1, 1, 2]]),
    )
    made = batch.masked(by_hand, boundaries=15)
    assert made.boundaries is not None
    assert made.boundary_labels is not None
    # The span of the second row stands beside [CLS] and is left out.
    assert made.boundaries.tolist() == [[[1, 4, 0], [1, 4, 1], [4, 6, 0]], [[0, 0, 0]] * 3]
    assert made.boundary_labels.tolist() == [[11, 12, 14], [IGNORED] * 3]
    one = batch.masked(by_hand, boundaries=1)
    assert one.boundary_labels is not None
    assert one.boundary_labels.tolist() == [[11, 14], [IGNORED] * 2]
    assert batch.masked(by_hand).boundaries is None


def test_masked_pieces_are_the_mask() -> None:
    masked = fairseq(packed(4, 64), generator_for(0))
    assert (masked.inputs[masked.cases == MASK] == MASK_ID).all()
