"""The stream of batches: complete, repeatable, and exact after a restore."""

import numpy as np
import pytest
import torch

from core_models.data.order import Order

LENGTHS = np.random.default_rng(0).integers(5, 60, 53)


def order(bucketing: int = 3, seed: int = 1, *, even: bool = False) -> Order:
    return Order(
        LENGTHS,
        batch_size=5,
        bucketing=bucketing,
        generator=torch.Generator().manual_seed(seed),
        even=even,
    )


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("bucketing", [1, 3, 100])
def test_an_epoch_shows_every_example_at_most_once(bucketing: int, even: bool) -> None:
    stream = order(bucketing, even=even)
    assert stream.batches_per_epoch == 10
    for _ in range(3):
        seen = torch.cat([next(stream) for _ in range(stream.batches_per_epoch)])
        assert len(seen) == 50
        assert len(seen.unique()) == 50


def test_epochs_differ_and_seeds_decide() -> None:
    first, again, other = order(), order(), order(seed=2)
    a = [next(first).tolist() for _ in range(20)]
    assert a == [next(again).tolist() for _ in range(20)]
    assert a != [next(other).tolist() for _ in range(20)]
    assert a[:10] != a[10:]


@pytest.mark.parametrize("even", [False, True])
def test_restored_at_any_batch_it_goes_on_alike(even: bool) -> None:
    reference = order(even=even)
    expected = [next(reference).tolist() for _ in range(35)]
    for done in range(35):
        stream = order(even=even)
        for _ in range(done):
            next(stream)
        for _ in range(2):  # twice: a restored stream must save itself right as well
            position = stream.position()
            stream = order(seed=99, even=even)
            stream.restore(position)
        assert [next(stream).tolist() for _ in range(35 - done)] == expected[done:]


def test_bucketing_saves_padding() -> None:
    def padded(stream: Order) -> int:
        batches = [next(stream) for _ in range(stream.batches_per_epoch)]
        return sum(len(batch) * int(LENGTHS[batch].max()) for batch in batches)

    assert padded(order(10)) < 0.75 * padded(order(1))


def even_batches(lengths: list[int], bucketing: int) -> list[list[int]]:
    """The even batches of eight examples on average of one epoch."""
    stream = Order(
        np.array(lengths),
        batch_size=8,
        bucketing=bucketing,
        generator=torch.Generator().manual_seed(0),
        even=True,
    )
    return [next(stream).tolist() for _ in range(stream.batches_per_epoch)]


def test_even_batches_have_as_many_tokens_each() -> None:
    lengths = [4] * 60 + [20] * 12
    batches = even_batches(lengths, 9)
    assert sorted(map(len, batches)) == [2, 3, 3, 3, 8, 13, 13, 13, 14]
    tokens = [sum(lengths[index] for index in batch) for batch in batches]
    assert max(tokens) <= 64
    assert min(tokens) >= 40


def test_an_even_batch_has_a_quarter_of_the_usual_examples_at_least() -> None:
    batches = even_batches([2] * 31 + [500], 4)
    assert sorted(map(len, batches)) == [2, 2, 2, 26]
    assert sorted(index for batch in batches for index in batch) == list(range(32))


def test_fewer_examples_than_a_batch_are_one_batch() -> None:
    stream = Order(
        np.array([3, 4]), batch_size=8, bucketing=4, generator=torch.Generator().manual_seed(0)
    )
    assert sorted(next(stream).tolist()) == [0, 1]
    assert sorted(next(stream).tolist()) == [0, 1]
