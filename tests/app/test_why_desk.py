"""The desk of the Why tab: one job at a time, watched, given up, left behind."""

import time
from threading import Event

import pytest

from app.labs.why.desk import MOST_WAITING, Desk, StoppedError
from core_models import InputError
from tests.app.why_questions import finish


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
    time.sleep(0.05)
    assert not job.future.done()
    desk.leave("bob")
    with pytest.raises(StoppedError):
        job.future.result(10)
    finish(desk)
    again = desk.ask("ann", 1, slow(gate, log, "anew"))
    gate.set()
    assert again.future.result(10) == {"name": "anew"}


def test_a_page_that_closes_stops_its_job():
    desk, gate = Desk(lease=0.1), Event()
    job = desk.ask("ann", 1, slow(gate, [], "one"))
    for _ in range(5):
        time.sleep(0.05)
        assert desk.ask("ann", 1, slow(gate, [], "one")) is job
    with pytest.raises(StoppedError):
        job.future.result(10)


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
