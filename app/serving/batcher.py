"""One thread that runs the models, taking what waits as one batch.

While a batch is computed, further requests queue up; the next batch takes as many of them as are
alike. A class of thirty that clicks at once is answered in a few forward passes instead of thirty.
What is heavy goes one by one, and only when nothing light waits: so a light item waits for one
heavy pass at most.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any

from core_models import InputError

Run = Callable[[Hashable, list[Any]], Sequence[Any]]


class BusyError(InputError):
    """Too many wait. The page asks again by itself (``asker`` in shell.js)."""

    again = 2
    """Seconds after which to ask again."""


@dataclass(frozen=True)
class _Job:
    key: Hashable
    item: Any
    size: int
    heavy: bool
    future: Future[Any]


class Batcher:
    """Runs ``run(key, items) -> results`` on one thread, over items that share a key.

    ``results`` has one entry per item; an entry that is an exception is raised for that item
    alone. An exception raised by ``run`` itself is raised for every item of the batch.
    """

    def __init__(self, run: Run, *, most: int = 16, budget: int = 4096, waiting: int = 256) -> None:
        self.run = run
        self.most = most
        """Most items in one batch."""
        self.budget = budget
        """Most padded units (items x largest size); one item may exceed it alone."""
        self.waiting = waiting
        """Most items that wait for the thread."""
        self._jobs: deque[_Job] = deque()
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._work, name="cloze-models", daemon=True)
        self._thread.start()

    def submit(
        self, key: Hashable, item: Any, size: int = 1, *, heavy: bool = False
    ) -> Future[Any]:
        """Queue an item.

        Args:
            key: Items that share it may go into one batch.
            item: What ``run`` takes.
            size: Its length (tokens), so that batches stay within budget.
            heavy: It takes long, so whatever is not goes first.

        Raises:
            BusyError: too many wait.
        """
        job = _Job(key, item, size, heavy, Future())
        with self._changed:
            if self._closed:
                raise RuntimeError("The batcher is closed.")
            if len(self._jobs) >= self.waiting:
                raise BusyError(
                    f"{self.waiting} other questions wait for an answer. Try again in "
                    f"{BusyError.again} seconds."
                )
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    def close(self) -> None:
        """Cancel what waits and end the thread after the batch at hand."""
        with self._changed:
            self._closed = True
            while self._jobs:
                self._jobs.popleft().future.cancel()
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closed)
                if self._closed:
                    return
                batch = self._take()
            if live := [job for job in batch if job.future.set_running_or_notify_cancel()]:
                self._finish(live)
            del batch, live  # or an idle thread keeps what was asked last, and with it its model

    def _take(self) -> list[_Job]:
        """The oldest light job and those like it, within the bounds, or else a heavy one."""
        first = next((job for job in self._jobs if not job.heavy), self._jobs[0])
        self._jobs.remove(first)
        batch = [first]
        if first.heavy:
            return batch
        largest = batch[0].size
        rest: deque[_Job] = deque()
        for job in self._jobs:
            size = max(largest, job.size)
            fits = len(batch) < self.most and size * (len(batch) + 1) <= self.budget
            if job.key == first.key and fits and not job.heavy:
                batch.append(job)
                largest = size
            else:
                rest.append(job)
        self._jobs = rest
        return batch

    def _finish(self, batch: list[_Job]) -> None:
        try:
            results = self.run(batch[0].key, [job.item for job in batch])
            if len(results) != len(batch):
                raise RuntimeError(f"{len(results)} results for {len(batch)} items.")
        except BaseException as error:  # the thread must live on whatever a model does
            # asyncio loses a StopIteration: whoever waits for it waits for ever.
            lost = isinstance(error, StopIteration)
            told = LookupError("nothing of this kind is there") if lost else error
            for job in batch:
                job.future.set_exception(told)
            return
        for job, result in zip(batch, results, strict=True):
            if isinstance(result, BaseException):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)
