"""The runs service: ids, names from visitors, places, the queue, and what survives a server."""

import json
import subprocess
import sys
import threading
import time

import pytest

from app.runs import process as run_process
from app.runs import shipped
from app.runs.reports.reports import Reports
from app.runs.runs import Runs
from core_models import InputError
from core_models.training.durable import Identity
from core_models.training.folder import RunFolder
from tests.waiting import until

CONFIG = {
    "name": "My first run",
    "model": {"size": "bert-mini"},
    "data": {"texts": ["primer/english-*.txt"]},
    "steps": 100,
}
TEXT = "The cat sees the dog.\nThe dog hears the bird.\n\nA bird sees a cat.\nA cat sleeps.\n"

# Takes the place of a training process: says that it runs, ends when asked to stop.
STAND_IN = """
import sys, threading
from core_models.training.folder import RunFolder, remember_process
run = RunFolder(sys.argv[1])
status = {"process": remember_process(), "step": 1, "steps": 100}
run.write_status(status | {"state": "running"})
while not run.stop_requested():
    threading.Event().wait(0.02)
run.clear_stop()
run.write_status(status | {"state": "stopped"})
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def service(folder, monkeypatch):
    """Makes services over one folder; their processes are stand-ins."""
    started = []

    def launch(path, command=None):
        child = subprocess.Popen([sys.executable, "-c", STAND_IN, str(path)], cwd=run_process.ROOT)
        values = {"process": Identity.current(child.pid).to_json(), "time": time.time()}
        (path / "launch.json").write_text(json.dumps(values))
        started.append(child)
        return child

    monkeypatch.setattr(run_process, "launch", launch)
    services = []

    def make(**options):
        services.append(Runs(folder, seconds=0.05, **options))
        return services[-1]

    yield make
    for each in services:
        each.close()
    for child in started:
        child.kill()
        child.wait()


def wait(runs, run, *states):
    """Until a run is in one of the states; the state."""
    assert until(lambda: runs.state(run) in states), f"{run} is {runs.state(run)}, not {states}"
    return runs.state(run)


def test_a_run_is_made_started_stopped_continued_and_deleted(service):
    runs = service()
    run = runs.create(CONFIG)
    assert runs.state(run) == "new"
    assert run.startswith("my-first-run-")
    runs.start(run)
    wait(runs, run, "running")
    with pytest.raises(InputError, match="already"):
        runs.start(run)
    with pytest.raises(InputError, match="Stop it first"):
        runs.delete(run)
    runs.stop(run)
    wait(runs, run, "stopped")
    with pytest.raises(InputError, match="not at work"):
        runs.stop(run)
    runs.start(run)
    wait(runs, run, "running")
    runs.stop(run)
    wait(runs, run, "stopped")
    runs.delete(run)
    assert runs.ids() == []


def test_a_further_run_waits_and_starts_when_a_place_is_free(service):
    runs = service(slots=1)
    first, second, third = (runs.create(CONFIG) for _ in range(3))
    for run in (first, second, third):
        runs.start(run)
    wait(runs, first, "running")
    assert [runs.state(run) for run in (second, third)] == ["queued", "queued"]
    assert runs.queue() == [second, third]
    assert Reports(runs).summary(third)["place"] == 2
    runs.stop(second)
    assert runs.state(second) == "new"
    runs.stop(first)
    wait(runs, third, "running")
    assert runs.state(first) == "stopped"


def test_a_look_that_fails_does_not_end_the_watch(service, monkeypatch, caplog):
    runs = service(slots=1)
    first, second = (runs.create(CONFIG) for _ in range(2))
    runs.start(first)
    wait(runs, first, "running")
    runs.start(second)
    fill, failures = runs._fill_slots, iter([ValueError("odd"), OSError("full")])

    def fail():
        for failure in failures:
            raise failure
        fill()

    monkeypatch.setattr(runs, "_fill_slots", fail)
    runs.stop(first)
    wait(runs, second, "running")
    assert next(failures, None) is None
    assert "odd" in caplog.text


def test_a_new_server_finds_runs_and_queue_again(service):
    old = service(slots=1)
    first, second = old.create(CONFIG), old.create(CONFIG)
    old.start(first)
    old.start(second)
    wait(old, first, "running")
    old.close()
    new = service(slots=1)
    assert new.state(first) == "running"
    assert new.queue() == [second]
    new.stop(first)
    wait(new, second, "running")


def test_two_starts_at_once_start_one_process(service, monkeypatch):
    runs = service(slots=5)
    launched = []
    real = run_process.launch
    monkeypatch.setattr(
        run_process, "launch", lambda path, command: launched.append(path) or real(path)
    )
    run = runs.create(CONFIG)
    refused = []

    def start():
        try:
            runs.start(run)
        except InputError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(launched) == 1
    assert len(refused) == 7


def test_a_killed_process_is_told_from_a_stopped_one(service):
    runs = service()
    run = runs.create(CONFIG)
    runs.start(run)
    wait(runs, run, "running")
    pid = RunFolder(runs.root / run).status()["process"]["pid"]
    subprocess.run(["kill", "-9", str(pid)], check=True)
    wait(runs, run, "crashed")
    assert "gone" in Reports(runs).summary(run)["reason"]
    runs.start(run)
    wait(runs, run, "running")


def test_a_process_that_ends_before_it_speaks_is_crashed_and_its_last_words_are_told(
    service, monkeypatch
):
    runs = service()
    run = runs.create(CONFIG)

    def launch(path, command=None):
        (path / "output.txt").write_text("No module named x\n")
        child = subprocess.Popen([sys.executable, "-c", ""])
        values = {"process": Identity.current(child.pid).to_json(), "time": time.time()}
        (path / "launch.json").write_text(json.dumps(values))
        child.wait()
        return child

    monkeypatch.setattr(run_process, "launch", launch)
    runs.start(run)
    assert runs.state(run) == "crashed"
    assert "No module named x" in Reports(runs).summary(run)["reason"]


@pytest.mark.parametrize(
    "run", ["..", "../x", "/etc", "a/b", "", ".hidden", "a" * 81, None, 7, "missing", "a\0b"]
)
def test_only_runs_of_the_folder_have_ids(service, run):
    runs = service()
    runs.create(CONFIG)
    with pytest.raises(InputError, match="no run"):
        runs.folder(run)


def test_a_link_out_of_the_folder_is_no_run(service, tmp_path):
    runs = service()
    runs.create(CONFIG)
    outside = RunFolder.create(tmp_path / "outside", CONFIG)
    (runs.root / "inside").symlink_to(outside.path)
    with pytest.raises(InputError, match="no run"):
        runs.folder("inside")


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"texts": ["/etc/passwd"]}},
        {"data": {"texts": ["../../secret.txt"]}},
        {"data": {"texts": ["config.json"]}},
        {"data": {"texts": ["primer/english-*.txt"], "training_only": ["/etc/passwd"]}},
        {"tokenizer": {"folder": "/etc"}},
        {"tokenizer": {"folder": ".."}},
        {"model": {"checkpoint": "/tmp/model"}},
        {"model": {"checkpoint": "google/bert"}},
        {"model": {"checkpoint": "run/../../etc"}},
        {"data": {"texts": []}},
        {"data": {"texts": "all"}},
        {"data": {"texts": ["primer/english-*.txt"] * 101}},
        {"data": 3},
        {"steps": 0},
        {"stepps": 10},
        {"model": {"size": "nothing"}},
    ],
)
def test_a_page_cannot_name_files_or_impossible_settings(service, change):
    runs = service()
    with pytest.raises(InputError):
        runs.create(CONFIG | change)
    assert runs.ids() == []
    assert [path.name for path in runs.root.glob("*") if path.is_dir()] in ([], [".uploads"])


@pytest.mark.parametrize("free", ["name", "description"])
@pytest.mark.parametrize("texts", ["../.uploads/*.txt", "/etc/passwd"])
def test_what_a_run_is_called_allows_its_copy_no_file(service, free, texts):
    runs = service()
    run = runs.create(CONFIG | {free: texts})
    assert runs.config(run)[free] == texts
    with pytest.raises(InputError, match="the page takes the texts and models that it lists"):
        runs.create(runs.as_form(run) | {"data": {"texts": [texts]}}, source=run)


def test_names_that_go_to_every_page_are_short(service):
    with pytest.raises(InputError, match=r"^name has 201 characters; the page takes up to 200\.$"):
        service().create(CONFIG | {"name": "a" * 201})


def test_switched_off_nothing_changes_and_the_message_says_so(service, folder):
    run = service().create(CONFIG)
    runs = Runs(folder, enabled=False)
    assert runs.ids() == [run]
    for act in (lambda: runs.create(CONFIG), lambda: runs.start(run), lambda: runs.delete(run)):
        with pytest.raises(InputError, match="switched off"):
            act()


def test_a_sent_text_lies_in_the_run_folder_and_goes_with_a_copy(service):
    runs = service()
    text = runs.inbox.save("../my text.txt", TEXT.encode())
    assert (text.name, text.lines, text.documents) == ("my-text.txt", 4, 2)
    config = CONFIG | {"data": {"texts": []}}
    run = runs.create(config, texts=[text.id])
    assert runs.config(run)["data"]["texts"] == ["texts/my-text.txt"]
    assert (runs.root / run / "texts/my-text.txt").read_text() == TEXT
    again = runs.create(runs.as_form(run), source=run)
    assert (runs.root / again / "texts/my-text.txt").read_text() == TEXT
    with pytest.raises(InputError, match=r"data\.texts"):
        runs.create(runs.as_form(run))  # without its source the name is nobody's


def test_nobody_learns_where_the_files_of_a_run_made_beside_the_page_lie(service):
    runs = service()
    run = runs.create(CONFIG)
    elsewhere = {
        "model": {"checkpoint": "/srv/ada/models/bert-mini"},
        "data": {"texts": ["/srv/ada/texts/novels.txt"], "column": "/a column"},
    }
    runs.folder(run).config_path.write_text(json.dumps(CONFIG | elsewhere), encoding="utf-8")
    for told in (runs.as_form(run), Reports(runs).settings(run)):
        assert told["model"]["checkpoint"] == "…/bert-mini"
        assert told["data"]["texts"] == ["…/novels.txt"]
        assert told["data"]["column"] == "/a column"
    # The model of that name that is shipped is another one: nothing begins with it instead.
    with pytest.raises(InputError, match="names '…/") as refused:
        runs.create(runs.as_form(run), source=run)
    assert "ada" not in str(refused.value)


def test_the_settings_of_a_shipped_run_that_names_its_neighbour_begin_another_one(service):
    runs = service()
    shipped.install(runs.root)
    settings = runs.as_form("names")
    assert settings["model"] == {"checkpoint": "run/classroom"}
    again = runs.create(settings)
    assert runs.config(again)["model"]["checkpoint"] == str(runs.root / "classroom" / "model")


def test_continuing_from_a_run_names_it_and_not_its_place(service):
    runs = service()
    first = runs.create(CONFIG)
    (runs.root / first / "model").mkdir()
    name = f"run/{first}"
    second = runs.create(CONFIG | {"model": {"checkpoint": name}})
    assert runs.config(second)["model"]["checkpoint"] == str(runs.root / first / "model")
    assert runs.as_form(second)["model"]["checkpoint"] == name
    assert runs.models() == [(name, f"{first} (run)")]


def test_polling_gives_each_report_once_and_starts_over_when_some_are_taken_back(service):
    runs = service()
    run = runs.create(CONFIG)
    folder, reports = runs.folder(run), Reports(runs)
    for step in (10, 20, 30):
        folder.append_metrics({"step": step, "loss": 1.0})
    first = reports.live(run)
    assert [record["step"] for record in first["records"]] == [10, 20, 30]
    assert first["offset"] == 3
    folder.append_metrics({"step": 40, "loss": 1.0})
    second = reports.live(run, first["offset"], first["generation"])
    assert [record["step"] for record in second["records"]] == [40]
    folder.append_metrics({"step": 30, "loss": 2.0})  # resumed from step 20
    third = reports.live(run, second["offset"], second["generation"])
    assert [record["step"] for record in third["records"]] == [10, 20, 30]
    assert third["records"][-1]["loss"] == 2.0


def test_a_config_that_cannot_be_read_does_not_break_the_list(service):
    runs = service()
    run = runs.create(CONFIG)
    (runs.root / run / "config.json").write_text("{not json")
    (summary,) = Reports(runs).overview()
    assert summary["id"] == run
