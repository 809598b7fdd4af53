"""A class on one server: nobody waits for those who wait, and closed pages are forgotten."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from gradio.state_holder import SessionState
from prometheus_client import REGISTRY
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from app import main
from app.labs.mask import lab as mask
from app.parts.views import answered
from app.runs import runs as run_parts
from app.runs.owner import USER
from app.serving import pages, server
from app.serving.direct import PATH, Direct
from app.serving.settings import Settings
from core_models import InputError
from core_models.training import durable
from tests.waiting import soon

START = Path(__file__).resolve().parents[2] / "app.py"


@pytest.mark.parametrize(("given", "code"), [("--help", 0), ("--port=8000", 2)])
def test_arguments_are_not_passed_over(given, code):
    """Who types ``--port`` reads which variable sets it, and no page opens elsewhere."""
    done = subprocess.run([sys.executable, START, given], capture_output=True, text=True)
    assert done.returncode == code
    assert "PORT=8000" in done.stdout + done.stderr


def test_gradio_remembers_a_bounded_number_of_pages(session, runs, monkeypatch):
    given = {}
    monkeypatch.setattr(main.pages, "remember_little", lambda blocks: given.update(blocks=blocks))
    blocks = SimpleNamespace(launch=lambda **options: (given.update(options), "", ""))
    page = SimpleNamespace(blocks=blocks, renew=lambda _: None)
    monkeypatch.setattr(main, "build", lambda *_: page)
    main.start(session, Settings(), runs)
    assert 100 <= given["state_session_capacity"] <= 1_000
    assert given["blocks"] is blocks


def test_whether_the_page_is_there_is_answered_without_making_it():
    """Gradio asks when it starts, and ends the program where that takes three seconds."""
    made = []

    def gradio(request):
        made.append(request.method)
        return Response("page")

    routes = [*server.app_kwargs((), ())["routes"], Route("/", gradio)]
    client = TestClient(Starlette(routes=routes))
    assert client.head("/").status_code == 200
    assert made == []
    assert client.get("/").text == "page"


def test_a_new_page_costs_next_to_nothing():
    """Gradio writes all components down for each, a third of a second: 300 pages stood still."""
    with gr.Blocks() as blocks:
        box = gr.Textbox("a")
    blocks.app = SimpleNamespace(state_holder=None)
    blocks.state_session_capacity = 2
    pages.remember_little(blocks)
    held = blocks.app.state_holder
    assert held is blocks.state_holder
    assert SessionState(blocks).config_values
    first = held["first"]
    assert not first.config_values
    assert first[box._id] is box
    first[box._id] = other = gr.Textbox("b", render=False)
    assert (held["first"][box._id], held["second"][box._id]) == (other, box)
    assert held["third"]
    assert [*held.session_data] == ["second", "third"]


def test_a_class_that_opens_the_page_at_once_has_it_made_once():
    """Forty threads that each made the same page stood in the way of every answer."""
    config, made, sent = {}, [], []

    async def gradio(scope, receive, send):
        made.append(scope["path"])
        await asyncio.sleep(0)  # the others come meanwhile
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"<head></head>", "more_body": True})
        await send({"type": "http.response.body", "body": b"text"})

    async def send(message):
        sent.append(message)

    blocks = SimpleNamespace(config=config)
    asked = SimpleNamespace(auth=None, get_blocks=lambda: blocks)
    page = {"type": "http", "path": "/", "method": "GET", "scheme": "http", "query_string": b""}

    def by(visitor):  # what proxies add for each
        return [(b"host", b"a"), (b"x-forwarded-for", b"%d" % visitor), (b"x-request-id", b"x")]

    async def lesson():
        head = server.Head(gradio, "LINKS")
        for _ in range(2):
            pages = (head({**page, "headers": by(n), "app": asked}, None, send) for n in range(9))
            await asyncio.gather(*pages)
            blocks.config = {}  # a model came

    asyncio.run(lesson())
    assert len(made) == 2
    bodies = [message["body"] for message in sent if "body" in message]
    assert bodies == [b"<head>LINKS\n</head>text"] * 18


def test_a_model_to_open_with_that_is_not_here_stops_the_start(session):
    """The page opened with another one, and nobody was told."""
    for name in ({}, {"CLOZE_MODEL": "bert-mini"}):
        main.check_model(Settings.from_environment(name), session)
    with pytest.raises(InputError, match="CLOZE_MODEL is 'bert-mnii'; it must be one of bert-mini"):
        main.check_model(Settings(model="bert-mnii"), session)


def direct(body, *, auth=None, user=None):
    """What a view is answered directly; None where Gradio is left to look at it."""
    sent, seen = [], []

    async def double(question):
        if question.get("n") is None:
            raise InputError("n is missing.")
        return {"twice": 2 * question["n"]}

    async def on_event():
        raise AssertionError("Gradio's way")

    on_event.reply = double
    functions = {3: SimpleNamespace(fn=on_event), 4: SimpleNamespace(fn=print)}
    gradio = SimpleNamespace(auth=auth, get_blocks=lambda: SimpleNamespace(fns=functions))
    parts = [body[:10], body[10:]]

    async def receive():
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def rest(scope, receive, send):
        seen.append((await receive())["body"] + (await receive())["body"])

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": PATH, "app": gradio, USER: user}
    asyncio.run(Direct(rest)(scope, receive, send))
    assert seen in ([], [body])
    assert bool(seen) is not bool(sent)
    return json.loads(sent[1]["body"])["data"][0] if sent else None


def test_a_view_is_answered_without_gradio():
    question = {"fn_index": 3, "data": [], "event_data": {"rev": 7, "n": 4}}
    asked = json.dumps(question).encode()
    assert direct(asked) == {"rev": 7, "error": None, "twice": 8}
    refused = {"rev": 0, "error": "n is missing."}
    assert direct(json.dumps(question | {"event_data": "x" * 20}).encode()) == refused
    assert direct(asked, auth={"ada": "x"}, user="ada") == direct(asked)
    assert direct(asked, auth={"ada": "x"}) is None
    for other in ({"fn_index": 4}, {"fn_index": [3]}, {"fn_index": 99}, {"data": [1]}):
        assert direct(json.dumps(question | other).encode()) is None
    for odd in (b"{" * 20, b"[1, 2, 3, 4, 5]", b"\xff" * 20):
        assert direct(odd) is None


def test_refused_predictions_count_as_refused(session):
    def count(outcome):
        labels = {"answer": "labs.mask.lab.predict", "outcome": outcome}
        return REGISTRY.get_sample_value("cloze_answer_seconds_count", labels) or 0

    before = count("refused"), count("answered")
    reply = partial(mask.predict, session)
    asyncio.run(answered(reply, {"rev": 1, "text": "a [MASK]", "model": "no such one"}))
    found = asyncio.run(answered(reply, {"rev": 1, "text": "a [MASK]", "model": "bert-mini"}))
    assert found["error"] is None
    assert (count("refused"), count("answered")) == (before[0] + 1, before[1] + 1)


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


def test_a_class_that_waits_for_a_model_leaves_threads_for_others(session, monkeypatch):
    """Forty threads answer all that blocks; each page that waited for a slow disk took one."""
    asked, go, load = [], threading.Event(), session.model

    def slow(name):
        if name == "bert-mini":
            asked.append(name)
            assert go.wait(20)
        return load(name)

    monkeypatch.setattr(session, "model", slow)
    monkeypatch.setattr(session._installed, "here", lambda place: None)

    async def lesson():
        async with server._staffed(None):
            ask = [session.tokenize, partial(session.random_mask, seed=1)]
            texts = [f"some text {number}" for number in range(2 * server.WORKERS)]
            pages = [asyncio.create_task(ask[len(t) % 2](t, model="bert-mini")) for t in texts]
            assert await soon(lambda: asked)
            try:
                assert await asyncio.wait_for(asyncio.to_thread(len, "abc"), 20) == 3
                assert asked == ["bert-mini"]
            finally:
                go.set()
            return await asyncio.gather(*pages)

    assert len(asyncio.run(lesson())) == 2 * server.WORKERS


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


@pytest.mark.parametrize(
    ("host", "before", "after"),
    [
        (None, "", "localhost,127.0.0.1"),
        ("[::1]", "intra.example.org", "intra.example.org,localhost,127.0.0.1,::1"),
    ],
)
def test_a_proxy_of_the_network_does_not_stop_the_start(monkeypatch, host, before, after):
    """Gradio asks the page once when it starts, and asked the proxy of a school for it."""
    for name in ("no_proxy", "GRADIO_SERVER_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", before)  # put back at the end, as the next one
    monkeypatch.setenv("NO_PROXY", before)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    main.pass_proxies_by(host)
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == after
    own = (host or "127.0.0.1").strip("[]")
    assert urllib.request.proxy_bypass_environment(f"{own}:7860")


def test_a_class_may_open_more_connections_than_a_program_by_itself():
    """300 browsers with six each are more than 1,024: the 1,000th was told 500."""
    resource = pytest.importorskip("resource")
    before = now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = main.FILES if most == resource.RLIM_INFINITY else min(main.FILES, most)
    few = (min(1_000, wanted - 1), most)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, few)
        main.allow_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        main.allow_files()  # never fewer
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == now


@pytest.mark.parametrize("host", ["192.0.2.7", "0.0.0.0:8000", "a..b", "[::2]"])
def test_an_address_that_is_not_this_machines_stops_the_start(host, tmp_path, monkeypatch):
    """A hundred ports were tried, and the last word was that one is taken."""
    monkeypatch.setattr(main.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit, match=re.escape(f"CLOZE_HOST is {host!r}, on which")):
        main.launch(Settings(host=host, runs=tmp_path))


@pytest.mark.parametrize("host", [None, "127.0.0.1", "0.0.0.0", "localhost"])
def test_an_address_of_this_machine_is_one(host):
    main.check_host(host)


@pytest.mark.parametrize("path", ["cloze", "school.example.org/cloze"])
def test_a_path_behind_a_proxy_that_is_none_stops_the_start(path):
    """The page came without a script and a style of ours."""
    with pytest.raises(
        InputError, match=r"GRADIO_ROOT_PATH is .* it must be a path such as /cloze"
    ):
        server.app_kwargs((), (), environment={"GRADIO_ROOT_PATH": path})


def test_a_server_that_is_told_to_end_beside_another_one_ends(make_runs, monkeypatch):
    """The other one was just saving what trains."""
    monkeypatch.setattr(run_parts, "_PATIENCE", 0.05)
    runs, stop, closed = make_runs(), threading.Event(), []
    runs.root.mkdir()
    stop.set()
    with durable.exclusive(runs.root / ".lock") as held:
        assert held
        main._stay(SimpleNamespace(close=lambda: closed.append(True)), runs, stop)
    assert closed
