from collections import Counter

import pytest
import torch
from torch import Tensor

from core_models.masking.tokens import (
    IGNORED,
    KEPT,
    MASK,
    RANDOM,
    UNTOUCHED,
    Masked,
    generator_for,
    quota,
    uniform,
    whole_word,
)

MASK_ID, V = 4, 50


def rows(count: int, length: int, *, padding: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, maskable and lengths of rows ``[CLS] ... [SEP]`` with padding at the end."""
    ids = torch.randint(5, V, (count, length), generator=generator_for(count, length))
    ids[:, 0], ids[:, length - padding - 1] = 2, 3
    ids[:, length - padding :] = 0
    maskable = ids > 4
    return ids, maskable, torch.full((count,), length - padding)


def check(ids: Tensor, maskable: Tensor, masked: Masked) -> None:
    """What holds for every masking."""
    chosen = masked.cases != UNTOUCHED
    assert not (chosen & ~maskable).any()
    assert torch.equal(masked.labels, torch.where(chosen, ids, IGNORED))
    assert torch.equal(masked.inputs[~chosen], ids[~chosen])
    assert (masked.inputs[masked.cases == MASK] == MASK_ID).all()
    assert torch.equal(masked.inputs[masked.cases == KEPT], ids[masked.cases == KEPT])
    assert masked.cases.dtype == torch.uint8


# --- the count --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "count"), [(128, 19), (512, 77), (3, 1), (10, 2), (30, 4), (50, 8), (1, 1)]
)
def test_quota_rounds_halves_to_even_and_counts_special_pieces(length: int, count: int) -> None:
    assert quota(length, 0.15) == count


def test_quota_has_a_limit() -> None:
    assert quota(512, 0.15, 20) == 20
    assert quota(128, 0.15, 20) == 19


@pytest.mark.parametrize("length", [3, 10, 30, 128, 512])
def test_every_row_gets_exactly_its_quota(length: int) -> None:
    ids, maskable, lengths = rows(16, length)
    masked = uniform(
        ids, maskable, lengths=lengths, generator=generator_for(1), mask_id=MASK_ID, vocabulary=V
    )
    check(ids, maskable, masked)
    assert ((masked.cases > 0).sum(1) == quota(length, 0.15)).all()


def test_padding_does_not_count() -> None:
    ids, maskable, lengths = rows(8, 128, padding=98)
    masked = uniform(
        ids, maskable, lengths=lengths, generator=generator_for(1), mask_id=MASK_ID, vocabulary=V
    )
    check(ids, maskable, masked)
    assert ((masked.cases > 0).sum(1) == 4).all()  # round(0.15 * 30) = 4


def test_rows_with_too_few_pieces_are_masked_whole() -> None:
    ids = torch.tensor([[2, 7, 3, 0], [2, 3, 0, 0], [2, 8, 9, 3]])
    maskable = ids > 4
    masked = uniform(
        ids, maskable, rate=1.0, generator=generator_for(0), mask_id=MASK_ID, vocabulary=V
    )
    check(ids, maskable, masked)
    assert torch.equal(masked.cases > 0, maskable)


def test_a_single_row_needs_no_batch() -> None:
    ids, maskable, _ = rows(1, 40)
    one = uniform(ids[0], maskable[0], generator=generator_for(5), mask_id=MASK_ID, vocabulary=V)
    two = uniform(ids, maskable, generator=generator_for(5), mask_id=MASK_ID, vocabulary=V)
    assert one.inputs.shape == (40,)
    assert torch.equal(one.inputs, two.inputs[0])


# --- the draws --------------------------------------------------------------------------------


def test_cases_come_80_10_10() -> None:
    ids, maskable, _ = rows(4000, 64)
    masked = uniform(ids, maskable, generator=generator_for(2), mask_id=MASK_ID, vocabulary=V)
    counts = torch.bincount(masked.cases.flatten().long(), minlength=4)[1:].double()
    expected = counts.sum() * torch.tensor([0.8, 0.1, 0.1])
    assert float(((counts - expected) ** 2 / expected).sum()) < 13.8  # chi-square, 2 df, p = 0.001


def test_another_split() -> None:
    ids, maskable, _ = rows(200, 64)
    for split, case in (
        ((1.0, 0.0, 0.0), MASK),
        ((0.0, 1.0, 0.0), RANDOM),
        ((0.0, 0.0, 1.0), KEPT),
    ):
        masked = uniform(
            ids, maskable, split=split, generator=generator_for(2), mask_id=MASK_ID, vocabulary=V
        )
        assert set(masked.cases.flatten().tolist()) == {UNTOUCHED, case}


def test_random_pieces_are_uniform_over_the_whole_vocabulary() -> None:
    ids, maskable, _ = rows(6000, 64)
    for generator in (generator_for(3), [generator_for(3, row) for row in range(6000)]):
        masked = uniform(
            ids, maskable, split=(0, 1, 0), generator=generator, mask_id=MASK_ID, vocabulary=V
        )
        drawn = masked.inputs[masked.cases == RANDOM]
        counts = torch.bincount(drawn, minlength=V).double()
        assert len(counts) == V  # special pieces 0..4 included
        expected = len(drawn) / V
        assert float(((counts - expected) ** 2 / expected).sum()) < 85.4  # 49 df, p = 0.001


def test_the_true_piece_may_be_drawn() -> None:
    ids, maskable, _ = rows(3000, 64)
    masked = uniform(
        ids, maskable, split=(0, 1, 0), generator=generator_for(4), mask_id=MASK_ID, vocabulary=V
    )
    drawn = masked.cases == RANDOM
    share = (masked.inputs[drawn] == ids[drawn]).double().mean()
    assert abs(float(share) - 1 / V) < 0.003


def test_every_position_is_as_likely_as_any_other() -> None:
    ids, maskable, _ = rows(20_000, 22)
    masked = uniform(ids, maskable, generator=generator_for(6), mask_id=MASK_ID, vocabulary=V)
    counts = (masked.cases > 0).sum(0)[1:-1].double()
    expected = 20_000 * quota(22, 0.15) / 20
    variance = expected * (1 - quota(22, 0.15) / 20)
    # Without replacement the sum over 20 positions has 19 degrees of freedom: p = 0.001 at 43.8.
    assert float(((counts - expected) ** 2 / variance).sum()) * 19 / 20 < 43.8


# --- whole words ------------------------------------------------------------------------------


def words_for(maskable: Tensor, longest: int, seed: int) -> Tensor:
    """Random word groups over the maskable pieces of each row."""
    generator = generator_for(seed)
    groups = torch.full(maskable.shape, -1)
    for row in range(len(maskable)):
        group, left = -1, 0
        for column in range(maskable.shape[1]):
            if not maskable[row, column]:
                left = 0
                continue
            if left == 0:
                group += 1
                left = int(torch.randint(1, longest + 1, (), generator=generator))
            groups[row, column] = group
            left -= 1
    return groups


@pytest.mark.parametrize("most", [None, 5])
@pytest.mark.parametrize("longest", [1, 3, 9])
def test_words_are_masked_whole_or_not_at_all(longest: int, most: int | None) -> None:
    ids, maskable, lengths = rows(40, 60, padding=10)
    groups = words_for(maskable, longest, seed=longest)
    masked = whole_word(
        ids,
        maskable,
        groups,
        lengths=lengths,
        most=most,
        generator=generator_for(7),
        mask_id=MASK_ID,
        vocabulary=V,
    )
    check(ids, maskable, masked)
    chosen = masked.cases > 0
    budget = quota(50, 0.15, most)
    for row in range(40):
        inside = set(groups[row][chosen[row]].tolist())
        outside = set(groups[row][maskable[row] & ~chosen[row]].tolist())
        assert not inside & outside
        left = budget - int(chosen[row].sum())
        assert left >= 0
        # Skipped words are those that no longer fitted when their turn came, so none fits now.
        sizes = Counter(groups[row][maskable[row]].tolist())
        assert all(sizes[word] > left for word in outside)


def test_the_budget_is_filled_as_by_the_plain_loop() -> None:
    from core_models.masking.tokens import _fill_budget

    generator = generator_for(8)
    sizes = torch.randint(0, 7, (300, 30), generator=generator)
    budget = torch.randint(1, 25, (300,), generator=generator)
    taken = _fill_budget(sizes, budget)
    for row in range(300):
        left, expected = int(budget[row]), []
        for size in sizes[row].tolist():
            expected.append(0 < size <= left)
            left -= size if expected[-1] else 0
        assert taken[row].tolist() == expected


def test_the_draw_is_made_for_each_piece_of_a_word() -> None:
    ids = torch.tensor([[2, 7, 8, 9, 3]]).repeat(20_000, 1)
    maskable = ids > 4
    groups = torch.tensor([[-1, 0, 0, 0, -1]]).repeat(20_000, 1)
    masked = whole_word(
        ids, maskable, groups, rate=0.6, generator=generator_for(9), mask_id=MASK_ID, vocabulary=V
    )
    cases = masked.cases[:, 1:4]
    assert (cases > 0).all()
    all_masked = (cases == MASK).all(1).double().mean()
    assert abs(float(all_masked) - 0.8**3) < 0.015  # 0.8 if it were drawn per word


def test_a_word_over_the_budget_is_never_cut() -> None:
    ids = torch.tensor([[2, 7, 8, 9, 10, 3]])
    groups = torch.tensor([[-1, 0, 0, 0, 0, -1]])
    masked = whole_word(
        ids, ids > 4, groups, generator=generator_for(0), mask_id=MASK_ID, vocabulary=V
    )
    assert not (masked.cases > 0).any()  # quota(6) = 1 piece, the only word has 4


# --- generators -------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_mask() -> None:
    ids, maskable, _ = rows(8, 64)
    first, second, other = (
        uniform(ids, maskable, generator=generator_for(seed), mask_id=MASK_ID, vocabulary=V).inputs
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_generators_differ_by_every_counter() -> None:
    draws = [
        torch.rand(2, generator=generator_for(*key)).tolist()
        for key in (
            (0,),
            (1,),
            (0, 0),
            (0, 1),
            (1, 0),
            (0, 0, 0),
            (0, 11),
            (0, 1, 1),
            (-1,),
            (2**70,),
        )
    ]
    assert len({tuple(draw) for draw in draws}) == len(draws)


def test_no_global_generator_is_touched() -> None:
    before = torch.get_rng_state()
    ids, maskable, _ = rows(4, 32)
    uniform(ids, maskable, generator=generator_for(1), mask_id=MASK_ID, vocabulary=V)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("words", [False, True])
def test_ten_static_copies_are_each_used_four_times_in_forty_epochs(words: bool) -> None:
    ids, maskable, lengths = rows(6, 48)
    groups = words_for(maskable, 3, seed=1)
    uses: dict[int, Counter[bytes]] = {index: Counter() for index in range(6)}
    for epoch in range(40):
        order = torch.randperm(6, generator=generator_for(epoch)).tolist()
        for batch in (order[:4], order[4:]):  # other neighbours every time
            generators = [generator_for(0, epoch % 10, index) for index in batch]
            padded = 48 + epoch % 3  # and other padding
            pick = [torch.nn.functional.pad(t[batch], (0, padded - 48)) for t in (ids, maskable)]
            where = torch.nn.functional.pad(groups[batch], (0, padded - 48), value=-1)
            options = {
                "lengths": lengths[batch],
                "generator": generators,
                "mask_id": MASK_ID,
                "vocabulary": V,
            }
            masked = whole_word(*pick, where, **options) if words else uniform(*pick, **options)
            for index, row in zip(batch, masked.inputs[:, :48], strict=True):
                uses[index][row.numpy().tobytes()] += 1
    for counter in uses.values():
        assert sorted(counter.values()) == [4] * 10


def test_wrong_arguments_are_refused() -> None:
    ids, maskable, _ = rows(4, 32)
    options = {"generator": generator_for(0), "mask_id": MASK_ID, "vocabulary": V}
    with pytest.raises(ValueError, match="rate"):
        uniform(ids, maskable, rate=0.0, **options)
    with pytest.raises(ValueError, match="split"):
        uniform(ids, maskable, split=(0.8, 0.1, 0.2), **options)
    with pytest.raises(ValueError, match="same shape"):
        uniform(ids, maskable[:, 1:], **options)
    with pytest.raises(ValueError, match="3 generators for 4 rows"):
        uniform(ids, maskable, **options | {"generator": [generator_for(i) for i in range(3)]})


@pytest.mark.gpu
def test_masking_runs_on_the_device() -> None:
    ids, maskable, lengths = (t.cuda() for t in rows(64, 128))
    groups = torch.arange(128, device="cuda").expand(64, -1).masked_fill(~maskable, -1)
    for where in ("cpu", "cuda"):
        options = {
            "lengths": lengths,
            "mask_id": MASK_ID,
            "vocabulary": V,
            "generator": generator_for(0, device=where),
        }
        for masked in (
            uniform(ids, maskable, **options),
            whole_word(ids, maskable, groups, **options),
        ):
            assert masked.inputs.is_cuda
            assert ((masked.cases > 0).sum(1) == 19).all()
