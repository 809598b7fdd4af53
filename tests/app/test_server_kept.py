"""A class on one server: nobody waits for those who wait, and closed pages are forgotten."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from app import main
from app.serving import server
from app.serving.settings import Settings
from core_models import InputError
from tests.waiting import soon

"""More than the threads that Python itself gives two cores, six."""


def test_gradio_remembers_a_bounded_number_of_pages(session, runs, monkeypatch):
    """An eighth of a megabyte each: ten thousand would be more than a gigabyte."""
    given = {}
    blocks = SimpleNamespace(launch=lambda **options: (given.update(options), "", ""))
    page = SimpleNamespace(blocks=blocks, renew=lambda _: None)
    monkeypatch.setattr(main, "build", lambda *_: page)
    main.start(session, Settings(), runs)
    assert 100 <= given["state_session_capacity"] <= 1_000


def test_a_class_that_asks_the_same_at_once_shares_the_work(session):
    """Thirty pages open a tab with one sentence; one of them leaves, and one asks later."""
    made, go = [], threading.Event()

    def work():
        made.append(threading.current_thread().name)
        assert go.wait(20)
        return {"answer": 1}

    async def ask():
        return await session.compute_once(("kept", "once"), work, 1_000)

    async def lesson():
        pages = [asyncio.create_task(ask()) for _ in range(30)]
        assert await soon(lambda: made)
        pages[0].cancel()
        go.set()
        found = await asyncio.gather(*pages, return_exceptions=True)
        return [*found[1:], await ask()]

    assert asyncio.run(lesson()) == [{"answer": 1}] * 30
    assert made == ["cloze-models"]


def test_no_error_of_a_thread_is_waited_for_for_ever():
    """asyncio cannot hand a StopIteration on."""

    async def ask():
        async with server._staffed(None):
            await asyncio.wait_for(asyncio.to_thread(next, iter(())), 20)

    with pytest.raises(LookupError):
        asyncio.run(ask())


def test_work_that_fails_is_not_remembered(session):
    def fail():
        raise InputError("no")

    for _ in range(2):
        with pytest.raises(InputError, match="no"):
            asyncio.run(session.compute_once(("kept", "fails"), fail, 1_000))
    assert asyncio.run(session.compute_once(("kept", "fails"), lambda: 2, 1_000)) == 2
