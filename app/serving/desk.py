"""One thread for long computations, one after another, that visitors can watch and give up.

A job lives as long as somebody asks for it: a page asks again and again until it has the answer, so
that a closed page needs no word of farewell. No Gradio and no PyTorch in it.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread, get_native_id
from time import monotonic
from typing import Any

from app.serving.cache import Cache
from core_models import InputError

LEASE = 5.0
"""Seconds without a question after which a visitor counts as gone."""
MOST_WAITING = 32
CACHE_BYTES = 16 << 20
_BYTES_OF_A_NUMBER = 32
_NICENESS = 10

Tell = Callable[[float], None]
"""Reports which share is done; raises `StoppedError` where nobody waits any more."""


class StoppedError(Exception):
    """Nobody waits for this answer any more, or nobody has asked for so long that it seems so.

    Where a visitor still stands among the job's it was the question that was late, as on a busy
    machine; the next one begins the job anew.
    """


@dataclass(eq=False)
class Job:
    """One computation."""

    key: Hashable
    work: Callable[[Tell], Any]
    share: float = 0.0
    """How much of it is done, 0 to 1."""
    visitors: dict[str, float] = field(default_factory=dict)
    """Who waits for it, and when each asked last."""
    stopped: bool = False
    """Whether it ends without an answer: who comes now begins it anew."""
    future: Future[Any] = field(default_factory=Future)


class Desk:
    """Computes one job at a time, each visitor's newest only, and remembers the answers."""

    def __init__(self, *, lease: float = LEASE, most: int = CACHE_BYTES) -> None:
        self.lease = lease
        self.parts = Cache(most)
        """What jobs keep for each other."""
        self._answers = Cache(most)
        self._jobs: list[Job] = []
        """The first one is being computed."""
        self._changed = Condition()
        self._thread: Thread | None = None

    def ask(self, visitor: str, key: Hashable, work: Callable[[Tell], Any]) -> Job:
        """The job of a key, begun, waiting or finished; the visitor gives up any other one.

        Args:
            visitor: Who asks; the job goes on while one of its visitors asks again.
            key: All that the answer depends on.
            work: Computes it on the desk's thread and reports as it goes.

        Raises:
            InputError: Too many jobs are waiting.
        """
        if (known := self._answers.get(key)) is not None:
            job = Job(key, work, 1.0)
            job.future.set_result(known)
            return job
        with self._changed:
            found = None
            for job in self._jobs:
                if job.key == key and job.visitors and not (job.stopped or job.future.done()):
                    found = job
                else:
                    job.visitors.pop(visitor, None)
            if found is None:
                self._tidy()
                if len(self._jobs) > MOST_WAITING:
                    raise InputError(
                        f"{MOST_WAITING} others wait for an explanation. Try again in a minute."
                    )
                found = Job(key, work)
                self._jobs.append(found)
                self._begin()
            found.visitors[visitor] = monotonic()
            return found

    def leave(self, visitor: str) -> None:
        """The visitor waits for nothing any more."""
        with self._changed:
            for job in self._jobs:
                job.visitors.pop(visitor, None)
            self._tidy()

    def ahead(self, job: Job) -> int:
        """How many jobs come before this one."""
        with self._changed:
            return self._jobs.index(job) if job in self._jobs else 0

    def busy(self) -> bool:
        """Whether something is computed or waits."""
        with self._changed:
            return bool(self._jobs)

    # --- inside -----------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start the thread; it ends when nothing waits, so that no one needs to close a desk."""
        if self._thread is None:
            self._thread = Thread(target=self._work, name="cloze-desk", daemon=True)
            self._thread.start()

    def _tidy(self) -> None:
        """Drop the waiting jobs that nobody waits for."""
        for job in self._jobs[1:]:
            if not self._wanted(job):
                self._jobs.remove(job)
                job.future.set_exception(StoppedError())

    def _wanted(self, job: Job) -> bool:
        oldest = monotonic() - self.lease
        return any(asked >= oldest for asked in job.visitors.values())

    def _work(self) -> None:
        _step_back()
        while True:
            with self._changed:
                if not self._jobs:
                    self._thread = None
                    return
                job = self._jobs[0]
            self._do(job)
            with self._changed:
                self._jobs.remove(job)
                self._tidy()

    def _do(self, job: Job) -> None:
        def tell(share: float) -> None:
            job.share = min(share, 1.0)
            with self._changed:
                if not self._wanted(job):
                    job.stopped = True
                    raise StoppedError

        try:
            tell(0.0)
            answer = job.work(tell)
        except BaseException as error:  # the thread must live on whatever a model does
            job.future.set_exception(error)
        else:
            self._answers.put(job.key, answer, cost(answer))
            job.future.set_result(answer)


async def wait(job: Job, visitor: str, seconds: float) -> bool:
    """Whether a job is done, at most so many seconds later.

    Raises:
        StoppedError: The visitor has given it up meanwhile.
    """
    if not job.future.done():
        watched = asyncio.wrap_future(job.future)
        watched.add_done_callback(_look)
        await asyncio.wait([watched], timeout=seconds)
    if not job.future.done() and visitor not in job.visitors:
        raise StoppedError
    return job.future.done()


def _look(future: asyncio.Future[Any]) -> None:
    """Take note of a failure that is told by another future, lest asyncio complain of it."""
    if not future.cancelled():
        future.exception()


def cost(answer: Any) -> int:
    """Rough bytes of plain values."""
    if isinstance(answer, dict):
        return sum(cost(value) for value in answer.values()) + _BYTES_OF_A_NUMBER
    if isinstance(answer, list | tuple):
        return sum(cost(value) for value in answer) + _BYTES_OF_A_NUMBER
    return _BYTES_OF_A_NUMBER


def _step_back() -> None:
    """Let the model thread, which answers clicks, go first on the processor (Linux only)."""
    if sys.platform == "linux":
        # A server that was started with less priority than this may not take more.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)
