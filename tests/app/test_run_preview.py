"""Trials before a run: one at a time, and none for whoever has gone or has just been told."""

import asyncio
from threading import Event, active_count

import pytest

from app.runs.forms import form as run_form
from app.runs.forms import preview as run_preview
from core_models import InputError
from core_models.training import estimate as estimates
from tests.waiting import soon

TINY = {
    "name": "Tiny",
    "model": {"size": "bert-mini", "overrides": {"layers": 1, "width": 32, "heads": 2}},
    "tokenizer": {"vocabulary": 120},
    "data": {"texts": ["primer/english-*.txt"], "max_length": 16},
    "objectives": {"masked_token": 1.0},
    "steps": 50,
    "threads": 1,
}


@pytest.fixture
def tried(monkeypatch):
    """Configs that are really timed, each in no time."""
    found = []
    real = estimates.estimate

    def estimate(options, beside, **more):
        found.append(options)
        return real(options, beside, **(more | {"seconds": 0.0}))

    monkeypatch.setattr(estimates, "estimate", estimate)
    monkeypatch.setattr(run_preview, "_KNOWN", {})
    return found


def test_what_was_just_measured_is_told_again(make_runs, tried, monkeypatch):
    runs = make_runs()
    first = run_preview.estimate(runs, TINY, [], None)
    assert run_preview.estimate(runs, TINY | {"name": "Other", "seed": 7}, [], None) == first
    assert len(tried) == 1
    run_preview.estimate(runs, TINY | {"steps": 60}, [], None)
    assert len(tried) == 2
    monkeypatch.setattr(run_preview, "_FRESH", 0.0)
    run_preview.estimate(runs, TINY, [], None)
    assert len(tried) == 3


def test_texts_of_ones_own_are_always_tried(make_runs, tried):
    runs = make_runs()
    text = runs.inbox.save("own.txt", b"The cat sat .\nThe dog ran .\n")
    config = TINY | {"data": {"texts": [], "max_length": 16}}
    for _ in range(2):
        run_preview.estimate(runs, config, [text.id], None)
    assert len(tried) == 2
    assert run_preview.known_seconds(config) is None


def test_others_are_told_to_come_again(make_runs, tried, monkeypatch):
    monkeypatch.setattr(run_preview, "PATIENCE", 0.3)
    with run_preview._ONE, pytest.raises(InputError, match="Ask again in a moment"):
        run_preview.estimate(make_runs(), TINY, [], None)
    assert run_preview.estimate(make_runs(), TINY, [], None)["steps"] == 50


class Page:
    """A page that waits for an answer until it is closed."""

    def __init__(self):
        self.gone = False

    async def is_disconnected(self):
        return self.gone


def test_tries_wait_in_turn_and_who_has_gone_is_passed_over():
    """Tries of one page after the other, and none of a page that was closed while it waited."""
    begun, go = [], Event()

    def work(name):
        begun.append(name)
        go.wait(20)
        return name

    async def visit():
        turns, second = run_preview.Turns(), Page()
        first = asyncio.create_task(turns.take(Page(), work, "first"))
        assert await soon(lambda: begun)
        before = active_count()
        others = [
            asyncio.create_task(turns.take(page, work, name))
            for page, name in ((second, "second"), (Page(), "third"))
        ]
        await asyncio.sleep(0)
        second.gone = True
        with pytest.raises(InputError, match="Ask again in a moment"):
            await others[0]
        assert begun == ["first"]
        assert active_count() <= before  # who waits holds no thread
        go.set()
        return await first, await others[1]

    assert asyncio.run(visit()) == ("first", "third")
    assert begun == ["first", "third"]


@pytest.mark.parametrize("late", [False, True])
def test_who_is_cancelled_while_it_waits_keeps_no_turn(late):
    """Gradio cancels the question of a page that is gone."""
    begun, go = [], Event()

    def work(name):
        begun.append(name)
        go.wait(20)
        return name

    async def visit():
        turns = run_preview.Turns()
        first = asyncio.create_task(turns.take(Page(), work, "first"))
        assert await soon(lambda: begun)
        second = asyncio.create_task(turns.take(Page(), work, "second"))
        await asyncio.sleep(0)
        go.set()
        if late:  # its turn has come already, and it has not looked yet
            assert await soon(first.done)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        await first
        return await asyncio.wait_for(turns.take(Page(), work, "third"), 20)

    assert asyncio.run(visit()) == "third"
    assert begun == ["first", "third"]


def test_of_long_texts_a_first_batch_reads_the_beginning(make_runs, monkeypatch):
    monkeypatch.setattr(run_preview, "_MOST_READ", 4_000)
    runs = make_runs()
    config = TINY | {"data": {"texts": [], "max_length": 16, "held_out": 0.2}}
    for copies, shortened in ((4, False), (40, True)):
        documents = [f"cat {number} sat on the mat\n" * 40 for number in range(copies)]
        text = runs.inbox.save("own.txt", "\n".join(documents).encode())
        found = run_preview.first_batch(runs, config, [text.id], None)
        assert found["shortened"] is shortened
        assert found["rows"]


def test_a_shortened_text_has_documents_and_whole_lines():
    documents = ["\n".join([f"line {n}"] * 1_000) for n in range(20)]
    kept = run_preview._beginning("\n\n".join(documents), 1_600).split("\n\n")
    assert len(kept) >= run_preview._DOCUMENTS
    for number, document in enumerate(kept):
        assert set(document.split("\n")) == {f"line {number}"}
    endless = run_preview._beginning("x" * 10_000, 1_600)
    assert endless == "x" * 100


def test_who_asks_for_emulated_arithmetic_is_told(make_runs, monkeypatch):
    monkeypatch.setattr(run_form, "has_gpu", lambda: False)
    monkeypatch.setattr(run_form, "emulated", lambda: True)
    runs = make_runs()
    assert "many times as long" in run_form.slow(runs, TINY | {"precision": "bf16"})
    for choice in ("fp32", "auto", None):
        assert run_form.slow(runs, TINY | {"precision": choice}) == ""
    elsewhere = make_runs(command="ssh gpu1 {run}")
    assert run_form.slow(elsewhere, TINY | {"precision": "bf16"}) == ""
    monkeypatch.setattr(run_form, "emulated", lambda: False)
    assert run_form.slow(runs, TINY | {"precision": "bf16"}) == ""


@pytest.mark.parametrize("count", [20, 120])
def test_a_window_without_its_answer_has_no_piece_marked(count):
    """Nothing is learnt of an answer that fits into no window."""
    row = {"pieces": ["a"] * count, "ids": [1] * count, "segments": [0] * count, "number": 1}
    found = run_preview._labelled(row | {"answer": [-100, -100]})
    assert found["labels"] == [None] * count
    found = run_preview._labelled(row | {"answer": [2, 3]})
    assert [at for at, label in enumerate(found["labels"]) if label] == [2, 3]


def test_what_a_batch_says_in_words_of_ours_goes_with_its_key():
    """A Chinese page showed the English; a label of a visitor stays as it is."""
    row = {"pieces": ["a"] * 3, "ids": [1] * 3, "segments": [0] * 3, "number": 1}
    assert run_preview._labelled(row | {"score": 0.5})["says"] == ["{0} of 1", "0.50"]
    assert run_preview._labelled(row | {"label": "0.50 of 1"})["says"] == "0.50 of 1"
    labels = run_preview._labelled(row | {"answer": [1, 1]})["labels"]
    assert labels == [None, ["answer"], None]
