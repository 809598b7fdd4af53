"""The Claims lab without a browser: who may measure when, what is kept, what is shown."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace

import gradio as gr
import pytest
import torch

from app.claims.card import Claim, Number, Rule
from app.claims.desk import CLAIMS, Desk, Result, read_run
from app.labs.claims import answers
from app.parts.controls import InsteadError
from app.serving.session import Session
from core_models import InputError
from tests.waiting import soon
from viz.claims import Measured, readable, shares

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
        await asyncio.sleep(0)
        go.set()
        return await first, await second

    one, two = asyncio.run(scene())
    assert one is two
    assert calls == [0]
    assert desk.found(claim, 0, MODEL) is one
    assert desk.found(claim, 1, MODEL) is None
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
        assert await soon(lambda: desk.found(claim, 0, MODEL))

    asyncio.run(scene())
    assert desk.found(claim, 0, MODEL).verdict == "wrong"


def test_the_event_loop_is_free_and_models_answer_on_their_thread(session, monkeypatch):
    threads, ticked = [], threading.Event()

    def work(bench):
        assert ticked.wait(20), "the loop stands still"
        threads.append(
            bench.ask(lambda: (threading.current_thread().name, torch.is_grad_enabled()))
        )
        return [Number(key="x", label="x", value=1.0)]

    claim = slow_claim(monkeypatch, work, head="masked_token")
    desk = Desk(session)

    async def scene():
        task = asyncio.ensure_future(desk.run("a", claim, 0, MODEL))
        for _ in range(6):
            await asyncio.sleep(0)
        ticked.set()
        return await task

    assert asyncio.run(scene()).numbers
    assert threads == [("cloze-models", False)]


def held(monkeypatch) -> tuple[Claim, threading.Event, threading.Event]:
    """A claim whose measurement says that it has begun, and goes on once it may."""
    begun, go = threading.Event(), threading.Event()

    def work(bench):
        begun.set()
        go.wait(60)
        return [Number(key="x", label="x", value=1.0)]

    return slow_claim(monkeypatch, work), begun, go


def test_who_waits_for_a_turn_takes_no_thread_from_others(session, monkeypatch):
    claim, begun, go = held(monkeypatch)
    desk = Desk(session)

    async def scene():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        asked = [asyncio.ensure_future(desk.run(f"{n}", claim, n, MODEL)) for n in range(4)]
        assert await soon(begun.is_set)
        try:
            assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 10) == 1
        finally:
            go.set()
        return await asyncio.gather(*asked)

    assert [result.seed for result in asyncio.run(scene())] == [0, 1, 2, 3]


def test_too_many_that_wait_are_refused(session, monkeypatch):
    monkeypatch.setattr("app.claims.desk.MOST_WAITING", 2)
    claim, begun, go = held(monkeypatch)
    desk = Desk(session)

    async def scene():
        asked = [asyncio.ensure_future(desk.run(f"{n}", claim, n, MODEL)) for n in range(3)]
        assert await soon(begun.is_set)
        with pytest.raises(InputError, match="2 other measurements wait"):
            await desk.run("late", claim, 3, MODEL)
        # One that waits already is no further one.
        asked.append(asyncio.ensure_future(desk.run("late", claim, 2, MODEL)))
        await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(*asked)

    assert [result.seed for result in asyncio.run(scene())] == [0, 1, 2, 2]


def test_an_error_is_told_and_not_kept(session, monkeypatch):
    def work(bench):
        raise InputError("no luck")

    claim = slow_claim(monkeypatch, work)
    desk = Desk(session)
    with pytest.raises(InputError, match="no luck"):
        ask(answers.measure, desk, claim="slow")
    assert desk.found(claim, 0, MODEL) is None


# --- what is asked and shown ----------------------------------------------------------------------


def ask(answering, desk, **question):
    """The answer to a question; "slow" and its like are claims of the whole list."""
    asked = {"model": {"model": MODEL}, "topic": "", "claim": FIRST, "only": [], "ran": []}
    asked |= {"guesses": {}, "guess": "none", "all": False, "visitor": "a", "linked": True}
    asked |= question
    asked["only"] = asked["only"] or [*answers.TOPICS[""], "slow"]
    found = answering(desk, asked)
    return asyncio.run(found) if asyncio.iscoroutine(found) else found


FIRST, BOTH, FAST = answers.FIRST, "bert-always-mask", "electra-fifteen"


def test_a_guess_measures_and_counts_once(session):
    desk = Desk(session)
    _, radio, *_ = ask(answers.show, desk, claim=FAST)
    assert radio.constructor_args == {"interactive": True}  # a late answer does not undo a guess
    (first,) = ask(answers.measure, desk, claim=FAST, guess="partly")
    assert first == {"name": FAST, "seed": 0, "guess": "partly"}
    ran, guesses = [f"{FAST}.0"], {FAST: "partly"}
    # Whoever has seen the answer guesses no more.
    known = {"claim": FAST, "ran": ran, "guesses": guesses}
    (second,) = ask(answers.measure, desk, guess="wrong", **known)
    assert second["guess"] == "partly"
    (again,) = ask(answers.measure_again, desk, **known)
    assert again == {"name": FAST, "seed": 1, "guess": None}
    _, radio, button, card, chart, score, table, code, *_ = ask(answers.show, desk, **known)
    found = desk.found(CLAIMS[FAST], 0, MODEL)
    assert (card["name"], card["guessed"], card["measured"]) == (FAST, "partly", True)
    assert (radio.interactive, button.interactive) == (False, True)
    assert card["verdict"] == found.verdict
    right = answers.hit("partly", found.verdict)
    assert score == f"Your guesses: {int(right)} of 1 right."
    assert [row[:2] for row in chart.layout.meta["rows"]] == [
        [number.label, number.value] for number in found.numbers
    ]
    measured = [row for row in table["rows"] if row[5] is not None]
    assert [row[5][0] for row in measured] == [number.value for number in found.numbers]
    assert f"CLAIMS['{FAST}']" in code


def test_the_code_asks_the_model_that_answered(session, monkeypatch):
    def work(bench):
        name = bench.with_head("masked_token").name
        return [Number(key="x", label="x", value=float(name == "other"))]

    slow_claim(monkeypatch, work, head="masked_token")
    infos, first = session.models(), session.model(MODEL)
    infos = [*infos, replace(infos[0], name="other")]
    models = {MODEL: first, "other": copy(first)}
    models["other"].name = "other"
    monkeypatch.setattr(Session, "models", lambda self: infos)
    monkeypatch.setattr(Session, "model", lambda self, name: models[name])
    desk = Desk(session)
    chosen = {"claim": "slow", "model": {"model": "other"}, "ran": ["slow.0"]}
    ask(answers.measure, desk, **chosen)
    code = ask(answers.show, desk, **chosen)[7]
    names: dict[str, object] = {}
    exec(code.partition("# The same")[0], names)
    assert desk.found(CLAIMS["slow"], 0, "other").numbers == names["result"].numbers


def test_nothing_is_asked_before_the_lab_is_seen(session):
    assert ask(answers.show, Desk(session), model=None) == [gr.skip()] * answers.SHOWN


def test_what_a_link_says_was_measured_is_measured_again_and_shown(session):
    desk = Desk(session)
    found, *_, clock, linked = ask(answers.show, desk, ran=[f"{BOTH}.3", f"{FAST}.2"])
    assert (found["meant"][1], clock.active) == (FAST, True)
    assert linked is not True
    ran = []
    for _ in range(2):
        found, every, clock = ask(answers.measure_next, desk, ran=[f"{BOTH}.3", f"{FAST}.2"])
        ran.append((found["name"], found["seed"]))
    assert ran == [(BOTH, 3), (FAST, 2)]
    found, every, clock = ask(answers.measure_next, desk, ran=[f"{BOTH}.3", f"{FAST}.2"])
    assert (every, clock.active) == (False, False)


@pytest.mark.parametrize("more", [{"linked": False}, {"only": [FIRST, "albert-sixth"]}])
def test_a_link_is_followed_until_the_first_answer_and_within_its_topic(session, more):
    """Whoever has no guesses, or has forgotten them, can choose the first claim."""
    meant, *_, card = ask(answers.show, Desk(session), ran=[f"{FAST}.0"], **more)[:4]
    assert meant is None
    assert card["name"] == FIRST


def test_who_chooses_a_claim_outside_of_the_topic_leaves_it(session):
    desk, topic = Desk(session), "How many parameters?"

    def chosen(claim, linked):
        question = {"model": {"model": MODEL}, "topic": topic, "claim": claim, "only": []}
        more = {"ran": [], "guesses": {}, "visitor": "a", "linked": linked}
        meant, _, _, card, *_, linked = answers.show(desk, question | more)
        return meant, card["name"], linked

    first = answers.TOPICS[topic][0]
    # The topic was chosen now: it has the say.
    told = {"asked": [topic, FAST, []], "meant": [topic, first, []]}
    assert chosen(FAST, ["", []]) == (told, first, [topic, []])
    assert chosen(FAST, True) == (told, first, [topic, []])
    # The claim was: it has.
    told["meant"] = ["", FAST, []]
    assert chosen(FAST, [topic, []]) == (told, FAST, ["", []])
    assert chosen(first, [topic, []]) == (None, first, [topic, []])


def test_why_the_rest_is_not_measured_is_told(session, monkeypatch):
    def work(bench):
        raise InputError("no luck")

    slow_claim(monkeypatch, work)
    with pytest.raises(InsteadError, match="no luck") as told:
        ask(answers.measure_next, Desk(session), all=True, only=["slow", FAST])
    found, every, clock = told.value.values
    assert (found, every, clock.active) == (gr.skip(), False, False)


def test_each_value_has_its_unit():
    values = (("million", 354.655), ("%", 21.7732), ("", 30522))
    numbers = tuple(Number(key=unit, label="x", value=value, unit=unit) for unit, value in values)
    result = Result(claim=CLAIMS[FAST], seed=0, model=None, numbers=numbers, verdict="right")
    table = answers.verdicts([FAST, BOTH], {FAST: result}, {})
    at = table["columns"].index("Unit")
    assert [row[at - 1 : at + 1] for row in table["rows"]] == [
        [[354.655, "354.7"], "million"],
        [[21.7732, "21.77"], "%"],
        [[30522, "30,522"], None],
        [None, None],
    ]
    assert {len(row) for row in table["rows"]} == {len(table["columns"])}


def test_a_whole_topic_is_measured_one_by_one(session):
    desk, ran = Desk(session), []
    for _ in range(2):
        found, *_ = ask(answers.measure_next, desk, all=True, only=[BOTH, FAST], ran=ran)
        ran.append(f"{found['name']}.{found['seed']}")
    assert ran == [f"{BOTH}.0", f"{FAST}.0"]
    assert ask(answers.measure_next, desk, all=True, only=[BOTH, FAST], ran=ran)[1] is False


def test_topics_and_links_choose_among_claims(session):
    desk = Desk(session)
    assert ask(answers.show, desk, only=[BOTH, FAST])[0]["meant"][1] == BOTH
    strange = ask(answers.show, desk, only=["../x", 5, None, FAST], ran=["x.1", {}, f"{FAST}.z"])
    assert strange[0]["meant"][1] == FAST
    assert strange[4] is None
    assert all(set(names) <= set(CLAIMS) for names in answers.TOPICS.values())
    asked = {"only": [], "topic": "ALBERT"}
    assert {CLAIMS[name].family for name in answers.topic_of(asked)} == {"ALBERT"}
    assert answers.topic_of({"only": 7, "topic": []}) == list(CLAIMS)


@pytest.mark.parametrize(
    "question", [{"name": "nothing"}, {"name": None}, {"seed": -1}, {"seed": "x"}, {"model": 7}]
)
def test_bad_questions_are_refused(question):
    with pytest.raises(InputError):
        read_run({"name": BOTH, "seed": 0, **question})


# --- the figure -----------------------------------------------------------------------------------


def test_bars_share_a_scale_by_unit():
    values = [(50.0, "%"), (25.0, "%"), (3.0, "million"), (6.0, "million"), (7.0, ""), (2.0, "ms")]
    numbers = [Measured(label="l", value=value, unit=unit) for value, unit in values]
    assert shares(numbers) == [0.5, 0.25, 0.5, 1.0, 0.0, 0.0]
    over = [Measured(label="l", value=value, unit="%") for value in (107.0, 53.5)]
    assert shares(over) == [1.0, 0.5]


def test_numbers_read_as_people_say_them():
    shown = [
        readable(value, unit)
        for value, unit in (
            (30522, ""),
            (21.7732, "%"),
            (354.655, "million"),
            (1e-6, "%"),
            (0, "%"),
            (0.123456, ""),
        )
    ]
    assert shown == ["30,522", "21.77 %", "354.7 million", "< 0.001 %", "0 %", "0.123"]
