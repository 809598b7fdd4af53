"""Around the page: names, other sites, signing in, what an operator sees, a graceful stop."""

import asyncio
import http.client
import inspect
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import gradio as gr
import pytest
from prometheus_client import REGISTRY

from app import main
from app.labs.mask import folds
from app.parts.controls import InsteadError
from app.runs import owner
from app.runs import process as run_process
from app.serving import guard, metrics, sign_in
from app.serving.guard import Names
from app.serving.settings import Settings
from app.serving.sign_in import Register, line_of
from core_models import InputError
from tests.app.test_runs import CONFIG
from tests.app.test_train_tasks import TASK
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]


def ask(server, path="/health", method="GET", **headers):
    """Status and text of an answer."""
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=60)
    connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return found


@pytest.mark.parametrize(
    ("environment", "name", "answers"),
    [
        ({}, "127.0.0.1", True),
        ({}, "[::1]", True),
        ({}, "192.168.7.20", True),
        ({}, "localhost", True),
        ({}, "cloze.localhost", True),
        ({}, "attacker.example", False),
        ({}, "localhost.attacker.example", False),
        ({"CLOZE_HOSTS": "cloze.example.org"}, "cloze.example.org", True),
        ({"CLOZE_HOSTS": "a.example, *.example.org"}, "class.example.org", True),
        ({"CLOZE_HOSTS": "*.example.org"}, "example.org", False),
        ({"CLOZE_HOSTS": "*.example.org"}, "badexample.org", False),
        ({"CLOZE_HOSTS": "*"}, "anything.example", True),
        ({"CLOZE_HOSTS": "https://Cloze.example.org/class"}, "cloze.example.org", True),
        ({"CLOZE_HOSTS": "cloze.example.org:8443, b.example."}, "cloze.example.org", True),
        ({"CLOZE_HOSTS": "cloze.example.org:8443, b.example."}, "b.example", True),
        ({"CLOZE_HOSTS": "例子.中国"}, "xn--fsqu00a.xn--fiqs8s", True),
        ({"CLOZE_HOSTS": "*.schüler.de"}, "cloze.xn--schler-5ya.de", True),
        ({"SPACE_ID": "ada/cloze"}, "ada-cloze.hf.space", True),
        ({"SPACE_ID": "ada/cloze", "CLOZE_HOSTS": "b.example"}, "attacker.example", False),
        ({"SPACE_HOST": "Ada-Cloze.hf.space", "CLOZE_HOSTS": "b"}, "ada-cloze.hf.space", True),
    ],
)
def test_a_server_answers_to_its_names(environment, name, answers):
    assert Names.read(environment).answer(name) is answers


@pytest.mark.parametrize("name", ["https://", "a..b.中国", f"{'a' * 64}.中国"])
def test_what_is_no_name_of_a_server_stops_the_start(name):
    with pytest.raises(InputError, match=r"CLOZE_HOSTS names .* it must be names such as"):
        Names.read({"CLOZE_HOSTS": name})


@pytest.mark.parametrize(
    "cookies",
    [
        "{}",
        'choices={{"a": 1}}; {}',
        "flag; {}",
        "user[name]=x; {}; last seen=a b",
        "a,b=1; {}",
    ],
)
def test_who_has_signed_in_is_known_beside_cookies_of_other_programs(cookies):
    """Cookies belong to a host with all its ports: one odd one made everybody a stranger."""
    gradio = SimpleNamespace(auth=print, cookie_id="1", tokens={"secret": "ada"})
    sent = cookies.format("access-token-unsecure-1=secret").encode()
    scope = {"type": "http", "path": "/train/runs", "headers": [(b"cookie", sent)], "app": gradio}
    assert guard._strange(scope) is None
    assert scope[owner.USER] == "ada"
    assert guard._user(scope | {"headers": [(b"cookie", b"access-token-1=other")]}, gradio) is None


@pytest.mark.parametrize(
    ("path", "root", "refused"),
    [
        ("/train/runs", "", True),
        ("/train/runs", "/cloze", True),
        ("/cloze/train/runs", "/cloze", True),
        ("/cloze/train/runs", "/cloze/", True),
        ("/cloze/metrics", "/cloze", True),
        ("/clozetrain/runs", "/cloze", False),
        ("/health", "/cloze", False),
    ],
)
def test_a_stranger_is_refused_by_the_path_that_routes_see(path, root, refused):
    """Behind a proxy that takes a path off, whoever writes it twice comes with it."""
    gradio = SimpleNamespace(auth=[("ada", "x")], cookie_id="1", tokens={})
    scope = {"type": "http", "path": path, "root_path": root, "headers": [], "app": gradio}
    assert (guard._strange(scope) is not None) is refused


@pytest.mark.parametrize(
    ("path", "root", "refused"),
    [
        ("/gradio_api/upload", "", True),
        ("/gradio_api/upload/", "", True),
        ("/gradio_api/upload_progress", "", True),
        ("/upload", "", True),
        ("/gradio_api/upload", "/cloze", True),
        ("/cloze/gradio_api/upload", "/cloze", True),
        ("/cloze//gradio_api/upload", "/cloze/", True),
        ("/train/runs/upload-test-954b/start", "", False),
        ("/train/runs/upload/model.zip", "", False),
        ("/cloze/train/runs/upload-test-954b", "/cloze", False),
    ],
)
def test_only_what_takes_files_is_refused_as_an_upload(path, root, refused):
    """A run may be called so, too."""
    scope = {"type": "http", "path": path, "root_path": root, "method": "GET"}
    found = guard._refusal(scope, {})
    assert (found is not None) is refused
    assert found is None or found.status_code == 403


def test_a_run_may_be_called_upload(server):
    status, text, _ = ask(server, "/train/runs/upload-test-954b")
    assert (status == 403, "takes no files" in text) == (False, False)
    status, text, _ = ask(server, "/gradio_api/upload", "POST", content_length="0")
    assert (status, "takes no files" in text) == (403, True)


def test_another_name_for_this_machine_is_refused(server):
    """Another site's name may be made to point here: DNS rebinding."""
    port = urlsplit(server).port
    for host in ("attacker.example", f"attacker.example:{port}", "attacker.example.", ""):
        status, text, _ = ask(server, "/", Host=host)
        assert (status, "CLOZE_HOSTS" in text) == (421, True), host
    for host in (f"localhost:{port}", "127.0.0.1", f"[::1]:{port}", "LOCALHOST."):
        assert ask(server, Host=host)[0] == 200, host


def test_a_page_of_another_site_is_told_nothing(server):
    own = urlsplit(server).netloc
    assert ask(server, "/train/runs", Origin=server)[0] == 200
    for origin in ("http://127.0.0.1:1", "https://attacker.example", "null", f"ftp://{own}"):
        for method, path in (("GET", "/train/runs"), ("GET", "/config"), ("POST", "/train/x")):
            status, text, _ = ask(server, path, method, Origin=origin, content_length="0")
            assert (status, "may ask nothing" in text) == (403, True), (origin, path)


def test_health_needs_no_model_and_metrics_tell_no_text(server, session):
    assert ask(server)[:2] == (200, '{"status":"ok"}')
    before = REGISTRY.get_sample_value(
        "cloze_answer_seconds_count",
        {"answer": "runs.routes.RunRoutes.overview", "outcome": "answered"},
    )
    assert ask(server, "/train/runs?x=secret-words")[0] == 200
    status, text, headers = ask(server, "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain")
    line = 'cloze_answer_seconds_count{answer="runs.routes.RunRoutes.overview",outcome="answered"}'
    (count,) = (row for row in text.splitlines() if row.startswith(line))
    assert float(count.rpartition(" ")[2]) == (before or 0) + 1
    assert "secret-words" not in text


def refuse():
    raise InputError("The text “my secret” has no words.")


def fail():
    raise ValueError("my secret")


def test_each_answer_is_a_line_on_request(caplog):
    with caplog.at_level(logging.INFO, logger="cloze.answers"):
        with metrics.counted(ask):
            pass
        for answering, error in ((refuse, InputError), (fail, ValueError)):
            with pytest.raises(error), metrics.counted(answering):
                answering()
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [line["outcome"] for line in lines] == ["answered", "refused", "failed"]
    assert lines[0]["answer"].endswith("test_hosted.ask")
    assert set(lines[0]) == {"time", "answer", "outcome", "milliseconds"}
    assert "secret" not in caplog.text


@pytest.fixture
def names(tmp_path):
    """A file of two names."""
    path = tmp_path / "names"
    path.write_text(f"# a class\n\n{line_of('ada', 'one')}\n{line_of('小明', 'zwei:drei')}\n")
    return path


def test_passwords_belong_to_names(names):
    register = Settings.from_environment({"CLOZE_AUTH": str(names)}).register
    assert register is not None
    assert register("ada", "one")
    assert register("小明", "zwei:drei")
    assert not register("ada", "zwei:drei")
    assert not register("bob", "one")
    assert not register("bob", "")
    assert "one" not in names.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names nobody"),
        ("ada:secret\n", "line 1 of .* is no name with a salt and a hash"),
        (f"{line_of('ada', 'x')}\n{line_of('ada', 'y')}", "line 2 of .* names somebody twice"),
    ],
)
def test_a_wrong_file_of_names_stops_the_start(tmp_path, text, message):
    path = tmp_path / "names"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Settings.from_environment({"CLOZE_AUTH": str(path)})
    with pytest.raises(InputError, match="cannot be read"):
        Register.read(Path(tmp_path / "none"))
    for name in ("a:b", "#1", " "):
        with pytest.raises(InputError, match="no colon"):
            line_of(name, "x")


def test_names_are_those_that_are_typed(tmp_path):
    """Editors of Windows put a mark before the first one; Gradio leaves blanks around it out."""
    path = tmp_path / "names"
    old = line_of("bob", "two").replace(":", " :", 1)
    path.write_text(f"\ufeff{line_of(' ada ', 'one')}\n{old}\n", "utf-8")
    register = Register.read(path)
    assert register("ada", "one")
    assert register("bob", "two")


def test_who_signs_in_holds_up_nobody(monkeypatch):
    """A password took its time from all: thirty who signed in at once, four seconds."""
    free, hashed = threading.Event(), sign_in._hash

    def slow(*given):
        assert free.wait(10)
        return hashed(*given)

    name, salt, expected = line_of("ada", "one").split(":")
    register = Register({name: (bytes.fromhex(salt), bytes.fromhex(expected))})
    monkeypatch.setattr(sign_in, "_hash", slow)

    async def lesson():
        signing = [asyncio.create_task(register.admits("ada", given)) for given in ("one", "two")]
        await asyncio.sleep(0)
        free.set()  # by whom the server answers meanwhile
        return await asyncio.gather(*signing)

    assert asyncio.run(lesson()) == [True, False]


def test_the_page_asks_whether_a_name_is_admitted_and_waits_for_the_answer(names, monkeypatch):
    """Gradio takes any other function's coroutine for a yes."""
    given = {}
    blocks = SimpleNamespace(launch=lambda **options: (given.update(options), "", ""))
    monkeypatch.setattr(main, "build", lambda *_: SimpleNamespace(blocks=blocks, renew=print))
    monkeypatch.setattr(main, "_warm", lambda *_: None)
    monkeypatch.setattr(main.pages, "remember_little", print)
    runs = SimpleNamespace(root=names.parent)
    for variables in ({"CLOZE_AUTH": str(names)}, {}):
        main.start(None, Settings.from_environment(variables), runs)
        assert inspect.iscoroutinefunction(given["auth"]) is bool(variables)
    assert given["auth"] is None


@pytest.mark.parametrize("name", ["CLOZE_RUNS", "CLOZE_AUTH"])
def test_a_home_is_found_in_settings(names, monkeypatch, name):
    """``CLOZE_RUNS=~/runs`` of a file of settings made a folder called ``~``."""
    monkeypatch.setenv("HOME", str(names.parent))
    found = Settings.from_environment({name: "~/names"})
    assert found.register("ada", "one") if name == "CLOZE_AUTH" else found.runs == names
    with pytest.raises(InputError, match="no home of that user"):
        Settings.from_environment({name: "~nobody-of-this-name/names"})


def test_a_name_owns_its_runs_and_no_browser_can_claim_it(make_runs):
    runs = make_runs()
    run = runs.create(TASK, owner=owner.of("ada", "f" * 32))
    assert runs.may_change(run, owner.of("ada", None))
    for user, secret in ((None, "f" * 32), ("bob", "f" * 32), (None, "name ada")):
        assert not runs.may_change(run, owner.of(user, secret))


def test_what_trains_is_saved_and_queued_when_the_server_is_told_to_end(make_runs):
    runs = make_runs()
    run = runs.create(TASK)
    runs.start(run)
    assert until(lambda: runs.state(run) == "running")
    runs.rest(60)
    assert runs.state(run) == "queued"
    assert runs.folder(run).state() == "stopped"
    later = make_runs()
    later._look()
    assert until(lambda: later.state(run) in ("running", "finished"))
    later.stop(run)
    assert until(lambda: later.state(run) in ("stopped", "finished"))


WRAPPER = """#!/bin/sh
# Another machine, as far as one can be one here: other variables, another home, another folder.
cd / && exec env -i HOME=/nowhere PATH=/usr/bin:/bin PYTHONPATH={root} {python} -m "$@"
"""


@pytest.mark.slow
def test_a_run_may_train_by_a_command(make_runs, tmp_path):
    wrapper = tmp_path / "else where.sh"
    wrapper.write_text(WRAPPER.format(root=ROOT, python=sys.executable))
    wrapper.chmod(0o755)
    given = Settings.from_environment({"CLOZE_TRAIN_COMMAND": f"'{wrapper}' {{run}}"})
    runs = make_runs(command=given.command)
    run = runs.create(CONFIG)
    runs.start(run)
    assert until(lambda: runs.state(run) == "running")
    runs.stop(run)
    assert until(lambda: runs.state(run) == "stopped"), tmp_path / "runs" / run / "output.txt"
    with pytest.raises(InputError, match=r"must have \{run\}"):
        Settings.from_environment({"CLOZE_TRAIN_COMMAND": "ssh gpu1 train"})


def test_a_command_that_lasts_speaks_for_a_process_elsewhere(make_runs, monkeypatch):
    """Its number means nothing here, and the machine has another boot id."""
    runs = make_runs(command="tail -f /dev/null # {run}")
    run = runs.create(CONFIG)
    runs.start(run)
    folder = runs.folder(run)
    assert until(lambda: runs.state(run) == "starting")
    process = {"pid": 1, "started": 2, "boot": "another machine"}
    folder.write_status({"state": "running", "process": process, "step": 1, "steps": 9})
    assert folder.state() == "crashed"
    assert runs.state(run) == "running"
    assert run_process.age_here(folder) is not None
    runs.stop(run)
    assert runs.state(run) == "stopping"
    launched = json.loads((folder.path / "launch.json").read_text())["process"]["pid"]
    os.killpg(launched, signal.SIGKILL)
    assert until(lambda: runs.state(run) == "crashed")


def test_a_command_that_ends_at_once_has_crashed(make_runs):
    runs = make_runs(command="echo no such machine; exit 1 # {run}")
    run = runs.create(CONFIG)
    runs.start(run)
    assert until(lambda: runs.state(run) == "crashed")
    assert "no such machine" in (runs.folder(run).path / "output.txt").read_text()


def test_what_a_fold_cannot_answer_counts_as_refused_and_empties_it():
    async def section(*_):
        raise InputError("The model fills no gaps.")

    empty = [gr.Dropdown(), "old", None]
    sentence = {"text": "A cat .", "marks": []}
    with pytest.raises(InsteadError, match="fills no gaps") as found:
        asyncio.run(folds.show(section, None, empty, {"sentence": sentence, "at": None}))
    chooser, *shown = found.value.values
    assert chooser.visible == "hidden"
    assert shown == empty[1:]
