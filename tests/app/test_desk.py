"""The desk for long computations: one job at a time, watched, given up, left behind."""

import asyncio
from threading import Event

import pytest

from app.serving import desk as desk_parts
from app.serving.desk import MOST_WAITING, Desk, StoppedError, wait
from core_models import InputError
from tests.app.why_questions import finish
from tests.waiting import until


def slow(gate, log, name):
    def work(tell):
        log.append(name)
        while not gate.wait(0.005):
            tell(0.5)
        return {"name": name}

    return work


def test_one_job_per_visitor_in_their_order():
    desk, gate, log = Desk(), Event(), []
    first = desk.ask("ann", 1, slow(gate, log, "one"))
    second = desk.ask("bob", 2, slow(gate, log, "two"))
    third = desk.ask("cat", 2, slow(gate, log, "two again"))
    fourth = desk.ask("dan", 4, slow(gate, log, "four"))
    assert second is third
    assert [desk.ahead(job) for job in (first, second, fourth)] == [0, 1, 2]
    fifth = desk.ask("dan", 5, slow(gate, log, "five"))  # dan's newest; the older one is dropped
    gate.set()
    assert fifth.future.result(10) == {"name": "five"}
    with pytest.raises(StoppedError):
        fourth.future.result(10)
    assert log == ["one", "two", "five"]
    assert desk.ask("eve", 1, slow(gate, log, "never")).future.result(0) == {"name": "one"}


def test_a_visitor_who_leaves_frees_the_desk_and_one_who_stays_does_not():
    desk, gate, log = Desk(), Event(), []
    job = desk.ask("ann", 1, slow(gate, log, "one"))
    desk.ask("bob", 1, slow(gate, log, "one"))
    desk.leave("ann")
    job.share = 0.0
    assert until(lambda: job.share == 0.5)  # it has asked since whether somebody waits
    assert not job.future.done()
    desk.leave("bob")
    with pytest.raises(StoppedError):
        job.future.result(10)
    finish(desk)
    again = desk.ask("ann", 1, slow(gate, log, "anew"))
    gate.set()
    assert again.future.result(10) == {"name": "anew"}


def test_a_page_that_closes_stops_its_job(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("app.serving.desk.monotonic", lambda: now[0])
    desk, gate = Desk(lease=5.0), Event()
    job = desk.ask("ann", 1, slow(gate, [], "one"))
    for moment in (4.0, 8.0, 12.0):
        now[0] = moment
        job.share = 0.0
        assert until(lambda: job.share == 0.5)
        assert desk.ask("ann", 1, slow(gate, [], "one")) is job
    now[0] = 17.5
    with pytest.raises(StoppedError):
        job.future.result(10)


def test_who_waits_hears_of_giving_up():
    desk, gate = Desk(), Event()
    job = desk.ask("ann", 1, slow(gate, [], "one"))
    desk.ask("bob", 1, slow(gate, [], "one"))

    async def waits():
        waiting = asyncio.create_task(wait(job, "ann", 0.1))
        await asyncio.sleep(0)
        desk.leave("ann")
        return await waiting

    with pytest.raises(StoppedError):
        asyncio.run(waits())
    gate.set()
    assert asyncio.run(wait(job, "bob", 10))


def test_a_full_queue_is_told_and_a_broken_job_harms_no_other():
    desk, gate = Desk(), Event()
    for number in range(MOST_WAITING + 1):
        desk.ask(f"visitor {number}", number, slow(gate, [], number))
    with pytest.raises(InputError, match="others wait"):
        desk.ask("one more", "key", slow(gate, [], "x"))
    gate.set()
    finish(desk)

    def broken(tell):
        raise ZeroDivisionError

    job = desk.ask("ann", "broken", broken)
    with pytest.raises(ZeroDivisionError):
        job.future.result(10)
    fine = desk.ask("ann", "fine", lambda tell: {"value": 1})
    assert fine.future.result(10) == {"value": 1}


def test_a_server_of_low_priority_has_a_desk(monkeypatch):
    """One that was started by ``nice -n 15`` may not raise a thread to 10: nothing was answered."""

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(desk_parts.os, "setpriority", refused)
    job = Desk().ask("ann", "key", lambda tell: {"value": 1})
    assert job.future.result(10) == {"value": 1}
