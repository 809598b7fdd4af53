import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from core_models.masking.boundaries import boundary_rows
from core_models.masking.electra import with_replacement
from core_models.masking.spans import (
    ALBERT_WEIGHTS,
    MACBERT_WEIGHTS,
    SpanMasked,
    draw_lengths,
    geometric,
    ngrams,
    spans,
    windowed_ngrams,
)
from core_models.masking.tokens import (
    IGNORED,
    KEPT,
    MASK,
    RANDOM,
    UNTOUCHED,
    Masked,
    generator_for,
    quota,
)

MASK_ID, V = 4, 50
OPTIONS: dict[str, Any] = {"mask_id": MASK_ID, "vocabulary": V}


def rows(count: int, length: int, *, padding: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, maskable and lengths of rows ``[CLS] ... [SEP]`` with padding at the end."""
    ids = torch.randint(5, V, (count, length), generator=generator_for(count, length))
    ids[:, 0], ids[:, length - padding - 1] = 2, 3
    ids[:, length - padding :] = 0
    return ids, ids > 4, torch.full((count,), length - padding)


def words_of(maskable: Tensor, size: int) -> Tensor:
    """Words of ``size`` pieces; the first maskable piece begins one."""
    number = (torch.arange(maskable.shape[1]) - 1).clamp(min=0) // size
    return number.expand(maskable.shape).masked_fill(~maskable, -1)


def check(ids: Tensor, maskable: Tensor, masked: Masked) -> None:
    """What holds for every masking."""
    chosen = masked.cases != UNTOUCHED
    assert not (chosen & ~maskable).any()
    assert torch.equal(masked.labels, torch.where(chosen, ids, IGNORED))
    assert torch.equal(masked.inputs[~chosen], ids[~chosen])
    assert (masked.inputs[masked.cases == MASK] == MASK_ID).all()
    assert torch.equal(masked.inputs[masked.cases == KEPT], ids[masked.cases == KEPT])


def check_spans(masked: SpanMasked) -> None:
    """The spans are the runs of chosen pieces, each as long as it can be."""
    chosen = masked.cases != UNTOUCHED
    again = torch.zeros_like(chosen)
    for row, start, stop in masked.spans.tolist():
        assert stop > start
        again[row, start:stop] = True
        assert start == 0 or not chosen[row, start - 1]
        assert stop == chosen.shape[1] or not chosen[row, stop]
    assert torch.equal(again, chosen)


# --- lengths ----------------------------------------------------------------------------------


def test_geometric_lengths_are_renormalised() -> None:
    shares = geometric()
    published = (0.224, 0.179, 0.143, 0.115, 0.092, 0.073, 0.059, 0.047, 0.038, 0.030)
    assert shares == pytest.approx(published, abs=6e-4)
    assert sum(shares) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="longest"):
        geometric(0.2, 0)


@pytest.mark.parametrize(
    ("shares", "mean"),
    [(geometric(), 3.797), (ALBERT_WEIGHTS, 18 / 11), (MACBERT_WEIGHTS, 2.0)],
)
def test_drawn_lengths_have_the_published_mean(shares: tuple[float, ...], mean: float) -> None:
    numbers = torch.rand(200_000, generator=generator_for(1), dtype=torch.float64).tolist()
    counts = Counter(draw_lengths(numbers, shares))
    assert set(counts) == set(range(1, len(shares) + 1))
    assert abs(sum(n * count for n, count in counts.items()) / 200_000 - mean) < 0.02
    expected = {n: 200_000 * share / sum(shares) for n, share in enumerate(shares, 1)}
    # Chi-square, at most 9 degrees of freedom, p = 0.001.
    assert sum((counts[n] - e) ** 2 / e for n, e in expected.items()) < 27.9


# --- spans ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3])
def test_spans_fill_the_budget_exactly(size: int) -> None:
    ids, maskable, _ = rows(20, 91, padding=8)
    masked = spans(ids, maskable, words_of(maskable, size), generator=generator_for(2), **OPTIONS)
    check(ids, maskable, masked)
    check_spans(masked)
    assert ((masked.cases > 0).sum(1) == math.ceil(0.15 * 81)).all()
    if size == 3:  # 27 words, a budget of 13: spans start at words, one word per row is cut
        assert (masked.spans[:, 1] % 3 == 1).all()
        cut = masked.spans[(masked.spans[:, 2] - masked.spans[:, 1]) % 3 > 0]
        assert sorted(cut[:, 0].tolist()) == list(range(20))


def test_all_pieces_of_a_span_share_one_draw() -> None:
    ids, maskable, _ = rows(600, 128)
    masked = spans(ids, maskable, generator=generator_for(3), **OPTIONS)
    fates = Counter()
    for row, start, stop in masked.spans.tolist():
        (case,) = set(masked.cases[row, start:stop].tolist())
        fates[case] += 1
    total = sum(fates.values())
    expected = {MASK: 0.8 * total, RANDOM: 0.1 * total, KEPT: 0.1 * total}
    assert sum((fates[case] - e) ** 2 / e for case, e in expected.items()) < 13.8


def test_random_pieces_follow_the_given_probabilities() -> None:
    ids, maskable, _ = rows(600, 64)
    unigram = torch.zeros(V)
    unigram[[7, 9]] = torch.tensor([0.75, 0.25])
    masked = spans(
        ids, maskable, split=(0, 1, 0), unigram=unigram, generator=generator_for(4), **OPTIONS
    )
    drawn = Counter(masked.inputs[masked.cases == RANDOM].tolist())
    assert set(drawn) == {7, 9}
    assert abs(drawn[7] / (drawn[7] + drawn[9]) - 0.75) < 0.03
    with pytest.raises(ValueError, match="unigram"):
        spans(ids, maskable, unigram=unigram[1:], generator=generator_for(4), **OPTIONS)


def test_spans_depend_on_the_generator_of_their_row_only() -> None:
    ids, maskable, _ = rows(3, 40)
    wide = [torch.nn.functional.pad(t, (0, 5)) for t in (ids, maskable)]
    for method in (spans, ngrams, windowed_ngrams):
        extra = {} if method is spans else {"lengths": torch.full((3,), 40)}
        generators = [generator_for(0, i) for i in range(3)]
        one = method(*wide, generator=generators, **extra, **OPTIONS)
        for row in range(3):
            two = method(ids[row], maskable[row], generator=[generator_for(0, row)], **OPTIONS)
            assert torch.equal(one.inputs[row, :40], two.inputs)
        with pytest.raises(ValueError, match="1 generators for 3 rows"):
            method(ids, maskable, generator=[generator_for(0)], **OPTIONS)


# --- boundaries -------------------------------------------------------------------------------


def test_boundaries_by_hand() -> None:
    # [CLS] 11 12 13 14 15 16 [SEP] 0: the span 2..3 counts, the one at 6 touches [SEP].
    ids = torch.tensor([[2, 11, 12, 13, 14, 15, 16, 3, 0]])
    labels = torch.tensor([[-100, -100, 12, 13, -100, -100, 16, -100, -100]])
    masked = SpanMasked(ids, labels, labels.ge(0).byte(), torch.tensor([[0, 2, 4], [0, 6, 7]]))
    found, pieces = boundary_rows(masked, ids > 4)
    assert found.tolist() == [[0, 1, 4, 0], [0, 1, 4, 1]]
    assert pieces.tolist() == [12, 13]
    found, pieces = boundary_rows(masked, ids > 4, most=1)
    assert found.tolist() == [[0, 1, 4, 0]]
    # At the edges of a row without special pieces there is nothing to look from.
    masked = SpanMasked(ids, ids, ids.byte(), torch.tensor([[0, 0, 2], [0, 7, 9]]))
    assert boundary_rows(masked, torch.ones_like(ids, dtype=torch.bool))[0].shape == (0, 4)


def test_the_pieces_around_a_span_are_never_masked() -> None:
    ids, maskable, _ = rows(100, 64)
    masked = spans(ids, maskable, rate=0.4, generator=generator_for(5), **OPTIONS)
    found, pieces = boundary_rows(masked, maskable)
    row, before, after, place = found.unbind(1)
    for around in (before, after):
        assert (masked.cases[row, around] == UNTOUCHED).all()
        assert maskable[row, around].all()
    assert torch.equal(ids[row, before + 1 + place], pieces)
    assert int(place.max()) <= 14


# --- n-grams ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3])
def test_albert_ngrams_are_whole_words_within_the_quota(size: int) -> None:
    ids, maskable, lengths = rows(40, 92, padding=10)
    masked = ngrams(
        ids,
        maskable,
        words_of(maskable, size),
        lengths=lengths,
        generator=generator_for(6),
        **OPTIONS,
    )
    check(ids, maskable, masked)
    check_spans(masked)
    counts = (masked.cases > 0).sum(1)
    wanted = quota(82, 0.15)  # 12
    if size == 1:
        assert (counts == wanted).all()
    else:
        assert (counts <= wanted).all()
        groups = words_of(maskable, size)
        for row in range(40):
            sizes = Counter(groups[row][masked.cases[row] > 0].tolist())
            assert all(n == (groups[row] == word).sum() for word, n in sizes.items())


def test_ngrams_that_do_not_fit_are_shortened_then_skipped() -> None:
    ids = torch.tensor([[2, 11, 12, 13, 14, 15, 16, 3]])
    groups = torch.tensor([[-1, 0, 0, 0, 0, 1, 2, -1]])
    options = {**OPTIONS, "weights": (0.0, 0.0, 1.0)}
    seen = set()
    for seed in range(30):
        masked = ngrams(ids, ids > 4, groups, rate=0.25, generator=generator_for(seed), **options)
        seen.add(tuple(masked.spans.flatten().tolist()))
    # Two pieces: word 0 never fits; words 1 and 2 together, or one after the other.
    assert seen == {(0, 5, 7)}


def test_albert_draws_for_each_piece() -> None:
    ids, maskable, _ = rows(2000, 20)
    masked = ngrams(ids, maskable, words_of(maskable, 3), generator=generator_for(7), **OPTIONS)
    cases = Counter(masked.cases.flatten().tolist())
    total = cases[MASK] + cases[RANDOM] + cases[KEPT]
    assert abs(cases[MASK] / total - 0.8) < 0.02
    whole = masked.spans[masked.spans[:, 2] - masked.spans[:, 1] == 3]
    same = [len(set(masked.cases[r, a:b].tolist())) == 1 for r, a, b in whole.tolist()]
    assert abs(sum(same) / len(same) - (0.8**3 + 2 * 0.1**3)) < 0.05


def test_deberta_takes_one_ngram_per_window_and_masks_the_tail_less() -> None:
    ids, maskable, _ = rows(1500, 128)
    masked = windowed_ngrams(ids, maskable, generator=generator_for(8), **OPTIONS)
    check(ids, maskable, masked)
    check_spans(masked)
    chosen = masked.cases > 0
    counts = chosen.sum(1)
    assert int(counts.max()) <= quota(128, 0.15)
    share = chosen.double().mean(0)
    assert float(share[1:60].mean()) > 0.15  # one in six, not one in 6.67
    assert float(share[115:127].mean()) < 0.9 * float(share[1:60].mean())
    single = windowed_ngrams(
        ids, maskable, words_of(maskable, 3), weights=(1.0,), generator=generator_for(8), **OPTIONS
    )
    # One piece in every window of six pieces: words play no part.
    assert ((single.cases > 0)[:, 1:109].unflatten(1, (18, 6)).sum(2) == 1).all()


def test_deberta_never_cuts_a_word() -> None:
    ids, maskable, _ = rows(50, 92)
    groups = words_of(maskable, 3)
    masked = windowed_ngrams(ids, maskable, groups, most=7, generator=generator_for(9), **OPTIONS)
    assert ((masked.cases > 0).sum(1) == 9).all()  # 7 is reached by the third word


# --- ELECTRA ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "rate", "draws", "unique"),
    [(128, 0.15, 19, 17.7), (512, 0.15, 77, 71.5), (512, 0.25, 128, 113.3)],
)
def test_electra_draws_with_replacement(
    length: int, rate: float, draws: int, unique: float
) -> None:
    ids, maskable, _ = rows(1000, length)
    masked = with_replacement(
        ids, maskable, rate=rate, generator=generator_for(10), mask_id=MASK_ID
    )
    check(ids, maskable, masked)
    assert (masked.times.sum(1) == draws).all()
    assert torch.equal(masked.times > 0, masked.cases > 0)
    assert abs(float((masked.times > 0).sum(1).double().mean()) - unique) < 0.35
    assert not (masked.cases == RANDOM).any()
    for times in (1, 2):  # kept only if every draw keeps
        kept = (masked.cases[masked.times == times] == KEPT).double().mean()
        assert abs(float(kept) - 0.15**times) < 0.02


@pytest.mark.parametrize(("length", "padding"), [(30, 9), (32, 8), (10, 30)])
def test_electra_rows_do_not_depend_on_padding(length: int, padding: int) -> None:
    ids, maskable, lengths = rows(2, length)
    wide = [torch.nn.functional.pad(t, (0, padding)) for t in (ids, maskable)]
    one = with_replacement(
        *wide, lengths=lengths, generator=[generator_for(0), generator_for(1)], mask_id=MASK_ID
    )
    two = with_replacement(ids[1], maskable[1], generator=[generator_for(1)], mask_id=MASK_ID)
    assert torch.equal(one.inputs[1, :length], two.inputs)
    assert torch.equal(one.times[1, :length], two.times)
    assert int(two.times.sum()) == max(1, round(0.15 * length))
    closed = with_replacement(
        ids, torch.zeros_like(maskable), generator=generator_for(0), mask_id=MASK_ID
    )
    assert torch.equal(closed.inputs, ids)
    with pytest.raises(ValueError, match="1 generators for 2 rows"):
        with_replacement(ids, maskable, generator=[generator_for(0)], mask_id=MASK_ID)


@pytest.mark.slow
@pytest.mark.parametrize("function", [spans, ngrams, windowed_ngrams])
@pytest.mark.parametrize("size", [1, 2])
def test_no_run_goes_on_behind_a_special_piece(function: Callable[..., Any], size: int) -> None:
    """Runs of two words: the last of the first text and the next are no more often both chosen
    than words that are no neighbours."""
    text = 4 * size  # pieces of each text, behind [CLS] and before [SEP]
    ids = torch.tensor([2, *range(10, 10 + text), 3, *range(30, 30 + text), 3])
    maskable = ids > 5
    words = torch.full_like(ids, -1)
    words[maskable] = torch.arange(2 * text) // size
    counts: Counter[frozenset[int]] = Counter()
    for seed in range(2000):
        masked = function(
            ids,
            maskable,
            words,
            generator=generator_for(seed),
            mask_id=MASK_ID,
            vocabulary=V,
            rate=2 * size / (2 * text if function is spans else len(ids)),
            **{"shares" if function is spans else "weights": (1e-12, 1.0)},
        )
        counts[frozenset(words[masked.labels >= 0].tolist())] += 1
    inside = [counts[frozenset({n, n + 1})] for n in (0, 1, 4, 5)]
    apart = [counts[frozenset({n, n + 2})] for n in (1, 3)]
    assert min(inside) > 100
    assert counts[frozenset({3, 4})] < max(30, 2 * max(apart)), counts
