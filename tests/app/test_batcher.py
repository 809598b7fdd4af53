"""What waits is run in batches, and what was answered is kept."""

import asyncio
import threading
import weakref
from concurrent.futures import CancelledError

import pytest

from app.serving.batcher import Batcher
from app.serving.cache import Cache
from core_models import InputError
from tests.waiting import PATIENCE, until


class Recorder:
    """A model to the batcher: doubles numbers, notes batches, waits until it may go on."""

    def __init__(self):
        self.batches = []
        self.free = threading.Event()

    def __call__(self, key, items):
        self.free.wait(PATIENCE)
        self.batches.append((key, list(items)))
        return [ValueError(item) if item < 0 else item * 2 for item in items]


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def batcher(recorder):
    batcher = Batcher(recorder, most=4, budget=100)
    yield batcher
    recorder.free.set()
    batcher.close()


def test_what_waits_is_run_as_one_batch_of_equal_keys(batcher, recorder):
    futures = [batcher.submit(key, n) for n, key in enumerate("aabab")]
    recorder.free.set()
    assert [future.result(5) for future in futures] == [0, 2, 4, 6, 8]
    sizes = [len(items) for _, items in recorder.batches]
    assert sum(sizes) == 5
    assert len(sizes) <= 3
    assert all(len({key}) == 1 for key, _ in recorder.batches)


def test_batches_keep_to_their_most_and_to_their_budget(batcher, recorder):
    first = batcher.submit("a", 0)
    many = [batcher.submit("a", n) for n in range(1, 7)]
    long = [batcher.submit("b", n, size=60) for n in range(3)]
    recorder.free.set()
    for future in (first, *many, *long):
        future.result(5)
    assert max(len(items) for _, items in recorder.batches) <= 4
    assert [items for key, items in recorder.batches if key == "b"] == [[0], [1], [2]]


def test_what_is_light_waits_for_one_heavy_pass_at_most(batcher, recorder):
    first = batcher.submit("large", 0, heavy=True)
    heavy = [batcher.submit("large", n, heavy=True) for n in (1, 2)]
    light = [batcher.submit(key, n) for n, key in enumerate("aab")]
    recorder.free.set()
    for future in (first, *heavy, *light):
        future.result(5)
    keys = [key for key, _ in recorder.batches]
    assert sorted(keys[:3]) in (["a", "b", "large"], ["a", "a", "b"])
    assert [items for key, items in recorder.batches if key == "large"] == [[0], [1], [2]]


def test_an_error_reaches_its_own_request_only(batcher, recorder):
    good, bad = batcher.submit("a", 1), batcher.submit("a", -1)
    recorder.free.set()
    assert good.result(5) == 2
    with pytest.raises(ValueError, match="-1"):
        bad.result(5)


def test_what_was_asked_last_is_not_kept():
    """It may hold a model that should leave the memory."""

    class Item:
        pass

    batcher = Batcher(lambda _, items: [1 for _ in items], most=4, budget=100)
    item = Item()
    gone = weakref.ref(item)
    assert batcher.submit("a", item).result(PATIENCE) == 1
    del item
    assert until(lambda: gone() is None)
    batcher.close()


def test_a_failing_batch_does_not_end_the_thread():
    def run(key, items):
        if key == "bad":
            raise MemoryError("no room")
        return items

    batcher = Batcher(run)
    with pytest.raises(MemoryError):
        batcher.submit("bad", 1).result(5)
    assert batcher.submit("good", 1).result(5) == 1
    batcher.close()
    with pytest.raises(RuntimeError):
        batcher.submit("good", 1)


def test_work_that_runs_out_of_an_iterator_is_not_waited_for_for_ever():
    """asyncio cannot hand a StopIteration on."""
    batcher = Batcher(lambda _, items: [next(iter(())) for _ in items])

    async def ask():
        return await asyncio.wait_for(asyncio.wrap_future(batcher.submit("a", 1)), 20)

    with pytest.raises(LookupError):
        asyncio.run(ask())
    batcher.close()


def test_a_cancelled_request_is_not_run(batcher, recorder):
    first = batcher.submit("a", 1)
    gone = batcher.submit("b", 2)
    assert gone.cancel()
    recorder.free.set()
    first.result(5)
    assert batcher.submit("c", 3).result(5) == 6
    assert "b" not in [key for key, _ in recorder.batches]


def test_closing_cancels_what_waits(recorder):
    batcher = Batcher(recorder)
    futures = [batcher.submit(key, 1) for key in "abc"]
    assert until(futures[0].running)
    closing = threading.Thread(target=batcher.close)
    closing.start()
    try:
        assert until(futures[-1].cancelled)
        assert closing.is_alive(), "the batch at hand is waited for"
    finally:
        recorder.free.set()
    assert futures[0].result(5) == 2
    for future in futures[1:]:
        with pytest.raises(CancelledError):
            future.result(5)
    assert until(lambda: not closing.is_alive())


def test_a_question_too_many_is_refused_and_harms_no_other(recorder):
    batcher = Batcher(recorder, waiting=2)
    first = batcher.submit("a", 1)
    assert until(first.running)  # the thread has taken it
    others = [batcher.submit("a", n) for n in (2, 3)]
    with pytest.raises(InputError, match="2 other questions wait"):
        batcher.submit("a", 4)
    recorder.free.set()
    assert [future.result(5) for future in (first, *others)] == [2, 4, 6]
    assert batcher.submit("a", 5).result(5) == 10
    batcher.close()


def test_the_cache_drops_what_was_used_longest_ago():
    cache = Cache(3)
    for key in "abc":
        cache.put(key, key.upper(), 1)
    assert cache.get("a") == "A"
    cache.put("d", "D", 1)
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    cache.put("e", "E", 4)
    assert cache.get("e") is None
    assert (len(cache), cache.cost) == (3, 3)
    cache.put("d", "again", 2)
    assert cache.cost <= 3
    assert cache.get("d") == "again"
