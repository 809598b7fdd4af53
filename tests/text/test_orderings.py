import itertools
from collections import Counter

import pytest
import torch
from torch import Tensor

from core_models.batch import Batch
from core_models.masking.orderings import (
    draw_order,
    last_targets,
    local_ranks,
    paper,
    released,
    sample_spans,
)
from core_models.masking.tokens import generator_for


def flags(*rows: str) -> Tensor:
    """Bool rows from strings: x = True."""
    return torch.tensor([[letter == "x" for letter in row] for row in rows])


# --- the paper --------------------------------------------------------------------------------


def test_the_order_3_2_4_1_of_the_paper() -> None:
    # Figure 2 of arXiv 1906.08237, positions counted from 0 here.
    made = paper(torch.tensor([[2, 1, 3, 0]]), torch.tensor([4]))
    assert torch.equal(made.visibility[0], flags("xxxx", ".xx.", "..x.", ".xxx"))
    assert made.targets.tolist() == [[2, 1, 3, 0]]
    assert torch.equal(made.target_visibility[0], flags("....", "..x.", ".xx.", ".xxx"))


def test_only_the_last_pieces_are_predicted() -> None:
    order = torch.tensor([[2, 1, 3, 0], [0, 1, 2, 3]])
    made = paper(order, torch.tensor([1, 3]))
    assert made.targets.tolist() == [[0, 0, 0], [1, 2, 3]]
    assert made.counts.tolist() == [1, 3]
    assert torch.equal(made.target_visibility[0, 0], flags(".xxx")[0])
    ids = torch.tensor([[10, 11, 12, 13], [20, 21, 22, 23]])
    assert made.labels(ids).tolist() == [[10, -100, -100], [21, 22, 23]]
    with pytest.raises(ValueError, match="counts"):
        last_targets(order, torch.tensor([1, 5]))


def test_every_order_is_as_likely_as_any_other() -> None:
    order = draw_order(24_000, 4, generator=generator_for(1))
    counts = Counter(map(tuple, order.tolist()))
    assert set(counts) == set(itertools.permutations(range(4)))
    # Chi-square, 23 degrees of freedom, p = 0.001.
    assert sum((n - 1000) ** 2 / 1000 for n in counts.values()) < 49.7


def test_pieces_that_come_first_are_never_predicted() -> None:
    first = flags("x...x", "...xx")
    order = draw_order(2, 5, generator=generator_for(2), first=first)
    assert order[:, :2].tolist() == [[0, 4], [3, 4]]
    targets, _ = last_targets(order, torch.tensor([3, 3]))
    assert not first.gather(1, targets).any()


def test_an_order_depends_on_its_own_generator_only() -> None:
    one = draw_order(1, 6, generator=[generator_for(0, 7)])
    two = draw_order(2, 6, generator=[generator_for(0, 8), generator_for(0, 7)])
    assert torch.equal(one[0], two[1])
    with pytest.raises(ValueError, match="1 generators for 2 rows"):
        draw_order(2, 6, generator=[generator_for(0)])


# --- the released code ------------------------------------------------------------------------


def test_a_released_mask_by_hand() -> None:
    # Two parts of 3: pieces 1, 3, 5 chosen, 4 a separator. Ranks 2 0 1 | 5 3 4.
    masked, functional = flags(".x.x.x"), flags("....x.")
    ranks = torch.tensor([[2, 0, 1, 5, 3, 4]])
    made = released(masked, functional, ranks, reuse=3)
    assert made.targets.tolist() == [[1, 3, 5]]
    # Query of 3 (rank 5) sees 4 (rank 3) and 5 (rank 4); the one of 5 sees 4 only.
    assert torch.equal(made.target_visibility[0], flags("x.x...", "xxx.xx", "xxx.x."))
    expected = flags("x.x...", "xxx...", "x.x...", "xxxxxx", "xxx.x.", "xxx.xx")
    assert torch.equal(made.visibility[0], expected)


def reference(masked: list[bool], functional: list[bool], ranks: list[int]) -> list[list[bool]]:
    """`perm_mask` of _local_perm, one part, entry by entry: True = hidden."""
    length = len(ranks)
    known = [not m and not f for m, f in zip(masked, functional, strict=True)]
    rev = [-1 if k else r for k, r in zip(known, ranks, strict=True)]
    wanted = [m and not f for m, f in zip(masked, functional, strict=True)]
    own = [r if w else r + 1 for w, r in zip(wanted, rev, strict=True)]
    return [[own[i] <= rev[j] and not known[j] for j in range(length)] for i in range(length)]


def test_released_masks_equal_the_published_procedure() -> None:
    generator = generator_for(3)
    masked = torch.rand(20, 16, generator=generator) < 0.3
    functional = torch.rand(20, 16, generator=generator) < 0.1
    ranks = local_ranks(20, 16, generator=generator, reuse=8)
    made = released(masked, functional, ranks, reuse=8)
    for row in range(20):
        wanted = (masked & ~functional)[row].nonzero().squeeze(1)
        assert made.targets[row, : made.counts[row]].tolist() == wanted.tolist()
        hidden = torch.ones(16, 16, dtype=torch.bool)
        for part in (slice(0, 8), slice(8, 16)):
            hidden[part, part] = torch.tensor(
                reference(*(t[row, part].tolist() for t in (masked, functional, ranks)))
            )
        hidden[8:, :8] = False
        assert torch.equal(made.target_visibility[row, : len(wanted)], ~hidden[wanted])
        assert torch.equal(made.visibility[row], ~hidden | torch.eye(16, dtype=torch.bool))


def test_what_holds_for_every_released_ordering() -> None:
    generator = generator_for(4)
    masked = sample_spans(torch.ones(8, 64, dtype=torch.bool), 10, generator=generator)
    functional = torch.zeros(8, 64, dtype=torch.bool)
    functional[:, [40, 62, 63]] = True
    ranks = local_ranks(8, 64, generator=generator, reuse=32)
    made = released(masked, functional, ranks, reuse=32)
    assert made.visibility.diagonal(dim1=1, dim2=2).all()
    own = made.target_visibility.gather(2, made.targets[..., None]).squeeze(2)
    real = torch.arange(own.shape[1]) < made.counts[:, None]
    assert not (own & real).any()
    assert not made.visibility[:, :32, 32:].any()
    assert made.visibility[:, 32:, :32].all()
    assert not functional.gather(1, made.targets)[real].any()
    Batch(  # the fields fit
        input_ids=torch.zeros(8, 64, dtype=torch.long),
        visibility=made.visibility,
        targets=made.targets,
        target_visibility=made.target_visibility,
    )


def test_blocks_are_permuted_in_themselves_and_parts_independently() -> None:
    ranks = local_ranks(4000, 8, generator=generator_for(5), reuse=4)
    assert (ranks[:, :4].sort(1).values == torch.arange(4)).all()
    assert (ranks[:, 4:].sort(1).values == torch.arange(4, 8)).all()
    same = (ranks[:, :4] + 4 == ranks[:, 4:]).all(1).double().mean()
    assert abs(float(same) - 1 / 24) < 0.015
    counts = Counter(map(tuple, ranks[:, 4:].tolist()))
    assert len(counts) == 24
    assert sum((n - 4000 / 24) ** 2 / (4000 / 24) for n in counts.values()) < 49.7
    small = local_ranks(50, 8, generator=generator_for(6), reuse=0, block=4)
    assert torch.equal(small[:, :4] + 4, small[:, 4:])  # one shuffle for all blocks of a part
    with pytest.raises(ValueError, match="do not fill"):
        local_ranks(1, 8, generator=generator_for(0), reuse=3, block=4)
    with pytest.raises(ValueError, match="reuse"):
        local_ranks(1, 8, generator=generator_for(0), reuse=9)


# --- spans ------------------------------------------------------------------------------------


def runs(row: list[bool]) -> list[int]:
    return [len(list(group)) for value, group in itertools.groupby(row) if value]


def test_spans_reach_the_goal_exactly() -> None:
    chosen = sample_spans(torch.ones(20, 128, dtype=torch.bool), 21, generator=generator_for(7))
    assert (chosen.sum(1) == 21).all()
    full = sample_spans(torch.ones(2, 9, dtype=torch.bool), 9, generator=generator_for(7))
    assert full.all()
    none = sample_spans(torch.ones(2, 9, dtype=torch.bool), 0, generator=generator_for(7))
    assert not none.any()


def test_spans_have_a_mean_length_of_2_19_and_fill_a_sixth_or_seventh() -> None:
    starts = torch.ones(1, 30_000, dtype=torch.bool)
    chosen = sample_spans(starts, 3000, generator=generator_for(8))
    found = runs(chosen[0].tolist())
    # Spans touch where no context lies between them (rarely), which merges two.
    assert abs(sum(found) / len(found) - 300 / 137) < 0.3
    # n pieces in n + 6 n: one in seven.
    assert abs(3000 / int(chosen[0].nonzero().max()) - 1 / 7) < 0.01


def test_spans_start_at_words_and_count_pieces_or_words() -> None:
    starts = torch.arange(4000).expand(1, -1) % 3 == 0
    for whole in (False, True):
        chosen = sample_spans(starts, 300, generator=generator_for(9), whole_words=whole)[0]
        begins = chosen & ~torch.cat([torch.tensor([False]), chosen[:-1]])
        assert starts[0][begins].all()
        lengths = set(runs(chosen.tolist()))
        assert all(n % 3 == 0 for n in lengths) if whole else 1 in lengths


def test_spans_walk_to_the_end_of_the_text() -> None:
    # One piece, one piece of context: every other piece, but none that ends the text.
    chosen = sample_spans(
        torch.ones(1, 21, dtype=torch.bool), 10, generator=generator_for(1), longest=1, context=1
    )
    assert chosen[0].nonzero()[:, 0].tolist() == list(range(0, 20, 2))


@pytest.mark.parametrize("whole_words", [False, True])
def test_spans_are_those_of_the_released_loop(whole_words: bool) -> None:
    """_sample_mask of zihangdai/xlnet, over the same numbers; words counted as it means to."""
    count, length, goal = 40, 80, 14
    starts = torch.rand(count, length, generator=generator_for(2)) < 0.7
    chosen = sample_spans(
        starts,
        goal,
        generator=[generator_for(3, n) for n in range(count)],
        whole_words=whole_words,
    )
    edges = list(itertools.accumulate(1 / n for n in range(1, 6)))
    for row in range(count):
        source, begins = generator_for(3, row), starts[row].tolist()
        drawn = torch.rand(2, length // 7 + 1, generator=source, dtype=torch.float64).tolist()
        taken = [False] * length
        at = 0
        for number, place in zip(*drawn, strict=True):
            if at >= length or sum(taken) >= goal:
                break
            n = 1 + sum(number * edges[-1] >= edge for edge in edges[:-1])
            n = min(n, goal - sum(taken))
            left = int(place * n * 6)
            begin = at + left
            while begin < length and not begins[begin]:
                begin += 1
            if begin >= length:
                break
            end, found = begin + 1, 1
            while end < length:
                found += begins[end] if whole_words else 1
                if found > n:
                    break
                end += 1
            if end >= length:
                break
            taken[begin:end] = [True] * (end - begin)
            at = end + n * 6 - left
        free = [place for place in range(length) if not taken[place]]
        missing = goal - sum(taken)
        if missing > 0:
            for pick in torch.randperm(len(free), generator=source)[:missing].tolist():
                taken[free[pick]] = True
        assert chosen[row].tolist() == taken, row


def test_wrong_arguments_are_refused() -> None:
    starts = torch.ones(2, 8, dtype=torch.bool)
    with pytest.raises(ValueError, match="goal"):
        sample_spans(starts, 9, generator=generator_for(0))
    with pytest.raises(ValueError, match="at least 1"):
        sample_spans(starts, 2, generator=generator_for(0), longest=0)
    with pytest.raises(ValueError, match="1 generators for 2 rows"):
        sample_spans(starts, 2, generator=[generator_for(0)])
