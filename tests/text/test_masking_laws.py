"""Laws of masking that hold row by row: against plain loops over the same numbers.

Training draws each row from a generator of its own, so the laws are asked there, too.
"""

import itertools
import math
from collections import Counter

import torch
from torch import Tensor

from core_models.masking.electra import with_replacement
from core_models.masking.spans import ALBERT_WEIGHTS, geometric, ngrams, spans
from core_models.masking.tokens import (
    IGNORED,
    KEPT,
    MASK,
    RANDOM,
    UNTOUCHED,
    generator_for,
    uniform,
    whole_word,
)

V, MASK_ID = 50, 4


def rows(count: int, length: int) -> tuple[Tensor, Tensor, list[torch.Generator]]:
    """Pieces, which of them may be masked (all but both ends), and a generator for each row."""
    ids = torch.randint(5, V, (count, length), generator=generator_for(1))
    maskable = torch.ones(count, length, dtype=torch.bool)
    maskable[:, [0, -1]] = False
    return ids, maskable, [generator_for(2, n) for n in range(count)]


def numbers(count: int, source: torch.Generator) -> list[float]:
    found: list[float] = torch.rand(count, generator=source, dtype=torch.float64).tolist()
    return found


def chosen(labels: Tensor) -> set[int]:
    return set((labels != IGNORED).nonzero()[:, 0].tolist())


def test_rows_with_own_generators_follow_the_same_laws() -> None:
    ids, maskable, sources = rows(4000, 42)
    masked = uniform(ids, maskable, generator=sources, mask_id=MASK_ID, vocabulary=V)
    cases = Counter(masked.cases[masked.cases != UNTOUCHED].tolist())
    total = sum(cases.values())
    assert total == 4000 * 6
    shares = {MASK: 0.8, RANDOM: 0.1, KEPT: 0.1}
    assert sum((cases[c] - p * total) ** 2 / (p * total) for c, p in shares.items()) < 13.8
    # Random pieces: uniform over all V, 49 degrees of freedom, p = 0.001 at 85.4.
    drawn = masked.inputs[masked.cases == RANDOM].bincount(minlength=V).double()
    assert float(((drawn - drawn.mean()) ** 2 / drawn.mean()).sum()) < 85.4
    # Places: a draw of 6 of 40 without replacement; 39 degrees of freedom, p = 0.001 at 72.1.
    places = (masked.cases != UNTOUCHED).sum(0)[1:-1].double()
    spread = places.mean() * (1 - 6 / 40)
    assert float(((places - places.mean()) ** 2 / spread).sum()) * 39 / 40 < 72.1


def test_generators_of_many_examples_all_differ() -> None:
    assert len({generator_for(3, 0, n).initial_seed() for n in range(3000)}) == 3000


def test_a_piece_without_a_word_is_never_masked() -> None:
    ids, maskable, sources = rows(200, 20)
    words = (torch.arange(20) // 2).expand(200, -1).clone()
    words[:, 5] = words[:, 12] = -1  # real pieces of no word
    options = {"generator": sources, "mask_id": MASK_ID, "vocabulary": V, "rate": 0.5}
    for function in (whole_word, ngrams, spans):
        masked = function(ids, maskable, words, **options)  # type: ignore[operator]
        hidden = masked.labels != IGNORED
        assert not hidden[:, [5, 12]].any()
        assert hidden.any(0).sum() == 16


def test_spans_are_those_of_the_released_loop() -> None:
    """facebookresearch/SpanBERT: an anchor that is masked already is drawn again."""
    ids, maskable, sources = rows(60, 62)
    words = (torch.arange(62) * 2 // 3).expand(60, -1)
    masked = spans(ids, maskable, words, generator=sources, mask_id=MASK_ID, vocabulary=V, rate=0.5)
    edges = list(itertools.accumulate(geometric()))[:-1]
    for row in range(60):
        source = generator_for(2, row)
        groups = [list(g) for _, g in itertools.groupby(range(1, 61), words[row].__getitem__)]
        word_of = {piece: n for n, group in enumerate(groups) for piece in group}
        expected: set[int] = set()
        while len(expected) < math.ceil(0.5 * 60):
            place, length = numbers(2, source)
            anchor = 1 + int(place * 60)
            if anchor in expected:
                continue
            first = word_of[anchor]
            last = first + sum(length >= edge for edge in edges)
            for piece in itertools.chain.from_iterable(groups[first : last + 1]):
                if len(expected) < 30:
                    expected.add(piece)
        assert chosen(masked.labels[row]) == expected, row


def test_ngrams_are_those_of_the_released_loop() -> None:
    """google-research/albert: shortened until it fits; then skipped where it touches another."""
    ids, maskable, sources = rows(60, 42)
    words = (torch.arange(42) * 2 // 3).expand(60, -1)
    masked = ngrams(
        ids, maskable, words, generator=sources, mask_id=MASK_ID, vocabulary=V, rate=0.5
    )
    edges = [ALBERT_WEIGHTS[0], sum(ALBERT_WEIGHTS[:2])]
    skipped = 0
    for row in range(60):
        groups = [list(g) for _, g in itertools.groupby(range(1, 41), words[row].__getitem__)]
        drawn = numbers(2 * len(groups), generator_for(2, row))
        expected: set[int] = set()
        turns = sorted(range(len(groups)), key=drawn[::2].__getitem__)
        for word, number in zip(turns, drawn[1::2], strict=True):
            n = 1 + sum(number * sum(ALBERT_WEIGHTS) >= edge for edge in edges)
            run: list[int] = []
            while n and (not run or len(expected) + len(run) > 21):
                run = [piece for group in groups[word : word + n] for piece in group]
                n -= 1
            if len(expected) + len(run) > 21:
                continue
            if expected & set(run):
                skipped += 1
                continue
            expected |= set(run)
        assert chosen(masked.labels[row]) == expected, row
    assert skipped > 60


def test_unigram_shares_need_not_add_up_to_one() -> None:
    ids, maskable, _ = rows(50, 40)
    shares = torch.rand(V, generator=generator_for(7))
    plain, scaled = (
        spans(
            ids,
            maskable,
            generator=generator_for(8),
            mask_id=MASK_ID,
            vocabulary=V,
            split=(0.0, 1.0, 0.0),
            unigram=unigram,
        )
        for unigram in (shares / shares.sum(), shares * 64)
    )
    assert (plain.inputs != scaled.inputs).sum() <= 1  # one may lie on a rounded edge
    assert plain.inputs[plain.cases == RANDOM].unique().numel() > 30


def test_electra_draws_are_those_of_the_released_loop() -> None:
    """google-research/electra: drawn with replacement; one coin that says mask is enough."""
    length = 512
    ids, maskable, sources = rows(5, length)
    lengths = torch.tensor([512, 400, 128, 3, 1])
    for row, size in enumerate(lengths.tolist()):
        maskable[row, max(0, size - 1) :] = False
    masked = with_replacement(ids, maskable, generator=sources, mask_id=MASK_ID, lengths=lengths)
    assert masked.times.sum(1).tolist() == [77, 60, 19, 1, 0]  # the last has no piece to mask
    several = torch.zeros((), dtype=torch.long)
    for row, size in enumerate(lengths.tolist()):
        drawn = numbers(2 * 79, generator_for(2, row))
        places = maskable[row].nonzero()[:, 0].tolist()
        times, hidden = Counter[int](), set()
        for n in range(max(1, round(0.15 * size)) if places else 0):
            place = places[int(drawn[2 * n] * len(places))]
            times[place] += 1
            if drawn[2 * n + 1] < 0.85:
                hidden.add(place)
        assert times == Counter({p: c for p, c in enumerate(masked.times[row].tolist()) if c})
        assert chosen(masked.labels[row]) == set(times)
        expected = torch.tensor([MASK_ID if p in hidden else int(ids[row, p]) for p in range(512)])
        assert torch.equal(masked.inputs[row], expected)
        kept = sorted(set(times) - hidden)
        assert (masked.cases[row] == KEPT).nonzero()[:, 0].tolist() == kept
        several += (masked.times[row] > 1).sum()
    assert several > 3


def test_electra_masks_one_piece_of_a_very_short_text() -> None:
    ids, maskable, sources = rows(3, 4)
    masked = with_replacement(ids, maskable, generator=sources, mask_id=MASK_ID)
    assert masked.times.sum(1).tolist() == [1, 1, 1]
