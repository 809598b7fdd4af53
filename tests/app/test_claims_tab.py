"""The Claims tab without a browser: who may measure when, what is kept, and the files."""

import asyncio
import csv
import io
import threading
import time
from dataclasses import replace
from xml.etree import ElementTree

import pytest
import torch

from app.claims.card import Claim, Number, Rule
from app.claims.desk import CLAIMS, Desk
from app.labs.claims import lab as tab
from app.serving.session import Session
from core_models import InputError
from viz.claims import Card, Row, bars, claims_svg, lines

MODEL = "bert-mini"


@pytest.fixture(scope="module")
def session():
    session = Session(threads=1)
    yield session
    session.close()


def slow_claim(monkeypatch, work, head=None) -> Claim:
    rule = Rule(text="always", judge=lambda values: "right" if values["x"] else "wrong")
    claim = replace(CLAIMS["bert-always-mask"], name="slow", measure=work, rule=rule, head=head)
    monkeypatch.setitem(CLAIMS, "slow", claim)
    return claim


def test_one_measurement_per_visitor_each_of_them_once(session, monkeypatch):
    started, go, calls = threading.Event(), threading.Event(), []

    def work(bench):
        calls.append(bench.seed)
        started.set()
        go.wait(5)
        return [Number(key="x", label="x", value=1.0)]

    claim = slow_claim(monkeypatch, work)
    desk = Desk(session)

    async def scene():
        first = asyncio.ensure_future(desk.run("a", claim, 0, MODEL))
        await asyncio.to_thread(started.wait, 5)
        with pytest.raises(InputError, match="still running"):
            await desk.run("a", claim, 1, MODEL)
        second = asyncio.ensure_future(desk.run("b", claim, 0, MODEL))
        await asyncio.sleep(0.05)
        go.set()
        return await first, await second

    one, two = asyncio.run(scene())
    assert one is two
    assert calls == [0]
    assert desk.known(claim, 0, MODEL) is one
    assert desk.known(claim, 1, MODEL) is None
    assert asyncio.run(desk.run("a", claim, 0, MODEL)) is one
    assert calls == [0]


def test_a_slow_measurement_is_told_and_kept(session, monkeypatch):
    go = threading.Event()

    def work(bench):
        go.wait(5)
        return [Number(key="x", label="x", value=0.0)]

    claim = slow_claim(monkeypatch, work)
    desk = Desk(session, patience=0.1)

    async def scene():
        with pytest.raises(InputError, match="not done after"):
            await desk.run("a", claim, 0, MODEL)
        go.set()
        for _ in range(100):
            if desk.known(claim, 0, MODEL):
                return
            await asyncio.sleep(0.02)

    asyncio.run(scene())
    assert desk.known(claim, 0, MODEL).verdict == "wrong"


def test_the_event_loop_is_free_and_models_answer_on_their_thread(session, monkeypatch):
    threads = []

    def work(bench):
        time.sleep(0.2)
        threads.append(
            bench.ask(lambda: (threading.current_thread().name, torch.is_grad_enabled()))
        )
        return [Number(key="x", label="x", value=1.0)]

    claim = slow_claim(monkeypatch, work, head="masked_token")
    desk = Desk(session)

    async def scene():
        task, ticks = asyncio.ensure_future(desk.run("a", claim, 0, MODEL)), 0
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.01)
        return ticks

    assert asyncio.run(scene()) > 5
    assert threads == [("cloze-models", False)]


def test_an_error_is_told_and_not_kept(session, monkeypatch):
    def work(bench):
        raise InputError("no luck")

    claim = slow_claim(monkeypatch, work)
    desk = Desk(session)
    answer = asyncio.run(tab.run(desk, {"rev": 4, "name": "slow", "seed": 0, "model": MODEL}, "a"))
    assert answer == {"rev": 4, "error": "no luck", "kind": "result", "name": "slow"}
    assert desk.known(claim, 0, MODEL) is None


@pytest.mark.parametrize(
    "question",
    [
        {"name": "nothing"},
        {"name": None},
        {"name": ["bert-always-mask"]},
        {"name": "bert-always-mask", "seed": -1},
        {"name": "bert-always-mask", "seed": "x"},
        {"name": "bert-always-mask", "seed": 10**9},
        {"name": "bert-always-mask", "model": 7},
    ],
)
def test_bad_questions_are_answered(session, question):
    answer = asyncio.run(tab.run(Desk(session), {"rev": 1, "seed": 0, **question}, "a"))
    assert answer["rev"] == 1
    assert answer["error"]


# --- files ----------------------------------------------------------------------------------------


def test_files_hold_the_measured_cards(session):
    desk = Desk(session)
    names = ("bert-always-mask", "electra-twice")
    for name in names:
        answer = asyncio.run(
            tab.run(desk, {"rev": 1, "name": name, "seed": 0, "model": MODEL}, "a")
        )
        assert answer["error"] is None
        assert len(answer["bars"]) == len(answer["numbers"])
        assert f"CLAIMS['{name}']" in answer["code"]
    asked = {
        "rev": 2,
        "model": MODEL,
        "cards": [{"name": name, "seed": 0} for name in (*names, "nsp-order")],
    }
    text = tab.export(desk, {**asked, "what": "csv"})["text"]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["claim"] for row in rows} == set(names)
    (asked_share,) = [row for row in rows if row["number"] == "asked"]
    found = desk.known(CLAIMS["bert-always-mask"], 0, MODEL)
    assert float(asked_share["value"]) == pytest.approx(found.numbers[0].value)
    assert asked_share["verdict"] == found.verdict
    words = {
        "title": "论断",
        "electra-twice": {"statement": "</text><script>", "said": "错", "labels": ["甲"] * 6},
    }
    svg = tab.export(desk, {**asked, "what": "svg", "words": words})["text"]
    ElementTree.fromstring(svg)
    assert "论断" in svg
    assert "甲" in svg
    assert "<script>" not in svg
    assert "BERT hides 15" in svg
    for bad in (
        {"what": "exe"},
        {"what": "csv", "cards": "x"},
        {"what": "csv", "cards": [1]},
        {"what": "csv", "cards": []},
    ):
        with pytest.raises(InputError):
            tab.export(desk, {**asked, **bad})


def test_bars_share_a_scale_by_unit():
    values = [
        (50.0, "%"),
        (25.0, "%"),
        (3.0, "million"),
        (6.0, "million"),
        (7.0, ""),
        (2.0, "times"),
    ]
    assert bars(values) == [0.5, 0.25, 0.5, 1.0, None, None]
    assert bars([(107.0, "%"), (53.5, "%")]) == [1.0, 0.5]
    with pytest.raises(ValueError, match="no card"):
        claims_svg([], title="x")
    card = Card(
        statement="a" * 300 + " b",
        verdict="right",
        said="Right",
        rows=[Row(label="l", shown="1", share=None)],
    )
    ElementTree.fromstring(claims_svg([card], title="t"))
    assert lines("汉" * 100, 92) == ["汉" * 46, "汉" * 46, "汉" * 8]


def test_numbers_read_the_same_as_on_the_page():
    shown = [
        tab.readable(Number(key="k", label="l", value=value, unit=unit))
        for value, unit in (
            (30522, ""),
            (21.7732, "%"),
            (354.655, "million"),
            (1e-6, "%"),
            (0, "%"),
            (0.123456, ""),
        )
    ]
    assert shown == ["30,522", "21.77 %", "354.7 M", "< 0.001 %", "0 %", "0.123"]
