"""Endpoints asked without Gradio's client, as from a shell; docs/api.md."""

import asyncio
import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import pytest

from app.serving import calls

TEXT = "Paris is a [MASK] of secrets."


@pytest.fixture(scope="module")
def http(server):
    with httpx.Client(base_url=f"{server.rstrip('/')}/gradio_api", timeout=60) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_in_the_log(caplog, capsys):
    """Tracebacks tell the host what was typed, and look like faults."""
    yield
    said = "".join([*capsys.readouterr(), caplog.text])
    assert "Traceback" not in said
    assert "secrets" not in said


def call(http, name, values):
    asked = http.post(f"/call/{name}", json=values)
    assert asked.status_code == 200, asked.text
    told = http.get(f"/call/{name}/{asked.json()['event_id']}").text
    event, data = re.fullmatch(r"event: (\w+)\ndata: (.*)\n\n", told).groups()
    return event, json.loads(data)


def test_arguments_with_a_default_may_be_left_out(http):
    event, (answer,) = call(http, "fill", {"data": [TEXT]})
    assert event == "complete"
    assert len(answer["predictions"][0]["candidates"]) == 5
    event, (answer,) = call(http, "v2/fill", {"text": TEXT, "top_k": 2})
    assert event == "complete"
    assert len(answer["predictions"][0]["candidates"]) == 2


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("fill", [], "There is no text yet"),
        ("run", [], "There is no run"),
        ("mask", [TEXT, "bert-mini", "1"], "seed is '1'"),
        ("fill", [TEXT, "bert-mini", None, [{"position": 1, "case": "x" * 9_000}]], "one of mask"),
    ],
)
def test_what_is_missing_or_wrong_is_said(http, name, data, said):
    event, answer = call(http, name, {"data": data})
    assert event == "error"
    assert said in answer["error"]
    assert len(answer["error"]) < 300


@pytest.mark.parametrize(
    ("path", "values", "status", "said"),
    [
        ("/call/nope", {"data": []}, 404, "no endpoint"),
        ("/run/nope", {"data": []}, 404, "no endpoint"),
        ("/call/v2/nope", {}, 404, "no endpoint"),
        ("/call/v2/fill", {}, 422, "argument is missing"),
        ("/call/v2/fill", {"text": TEXT, "k": 1}, 422, "none of that name"),
    ],
)
def test_a_call_of_what_is_not_there_is_refused(http, path, values, status, said):
    answer = http.post(path, json=values)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_an_answer_is_given_once(http):
    asked = http.post("/call/models", json={"data": []}).json()["event_id"]
    assert "complete" in http.get(f"/call/models/{asked}").text
    for path in (f"/call/models/{asked}", "/call/v2/fill/nope"):
        again = http.get(path)
        assert again.status_code == 404
        assert "given once" in again.json()["error"]


def test_a_view_that_is_asked_with_too_little_says_so(http):
    """An event of the page, which no script is to send."""
    parts = urlsplit(str(http.base_url))
    dependencies = http.get(f"{parts.scheme}://{parts.netloc}/config").json()["dependencies"]
    some = next(d for d in dependencies if d["inputs"] and d["backend_fn"] and not d["queue"])
    asked = {"data": [], "fn_index": some["id"], "session_hash": "little"}
    answer = http.post("/run/predict", json=asked)
    assert "It takes" in answer.json()["error"]


class Queue:
    """What Gradio keeps of calls."""

    def __init__(self):
        self.pending_messages_per_session = {}
        self.pending_event_ids_session = {}
        self.event_ids_to_events = {}

    def ask(self, session, event, done=True):
        """A call; one that is done waits to be fetched."""
        self.pending_messages_per_session.setdefault(session, asyncio.Queue())
        self.pending_event_ids_session.setdefault(session, set()).add(event)
        if not done:
            under_way = SimpleNamespace(session_hash=session, alive=True)
            self.event_ids_to_events[event] = under_way

    def fetch(self, session, event):
        self.pending_event_ids_session[session].remove(event)


@pytest.mark.parametrize("sessions", [1, 500])
def test_answers_that_nobody_fetches_are_let_go(sessions):
    queue = Queue()
    queue.ask("watched", "slow", done=False)
    for number in range(500):
        calls.forget(queue)
        queue.ask(f"s{number % sessions}", f"e{number}")
        queue.ask(f"fetched{number}", "e")
        queue.fetch(f"fetched{number}", "e")
    calls.forget(queue)
    kept = Counter({name: len(ids) for name, ids in queue.pending_event_ids_session.items()})
    assert kept.pop("watched") == 1
    assert kept.total() <= calls.MOST_UNFETCHED
    assert sessions == 1 or kept.total() == calls.MOST_UNFETCHED
    assert set(kept) <= set(queue.pending_messages_per_session)
    assert queue.event_ids_to_events["slow"].alive


def test_a_session_that_is_let_go_gets_no_more_messages():
    queue = Queue()
    for number in range(calls.MOST_UNFETCHED + 1):
        queue.ask("greedy", f"e{number}")
    queue.ask("greedy", "last", done=False)
    calls.forget(queue)
    assert not queue.event_ids_to_events["last"].alive
    assert not queue.pending_messages_per_session


def test_the_container_is_healthy_on_any_port(server):
    """Platforms choose a port of their own, and some set a proxy that reaches no such place."""
    file = (Path(__file__).parents[2] / "Dockerfile").read_text(encoding="utf-8")
    command = json.loads(re.search(r"HEALTHCHECK.*?CMD (\[.*?\])\n", file, re.S)[1])
    assert command[0] == "python"
    around = {"PORT": str(urlsplit(server).port), "http_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(command, env=os.environ | around, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
