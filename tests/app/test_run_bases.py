"""Runs that begin with another run's model: it is there when their turn comes, and has a name."""

import errno
import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.runs import models as run_models
from app.runs.forms import tasks as run_tasks
from app.runs.limits import Limits
from app.runs.process import note
from app.runs.reports.reports import Reports
from app.runs.routes import HEADER, RunRoutes
from core_models import InputError
from core_models.training.folder import RunFolder
from tests.app.test_train_tasks import TASK

CONFIG = {
    "name": "First",
    "model": {"size": "bert-mini"},
    "data": {"texts": ["primer/english-*.txt"]},
    "steps": 100,
}


def checkpoint(runs, run, step):
    folder = runs.folder(run)
    folder.save(step, lambda path: (path / "model").mkdir())
    folder.prune(1)


@pytest.fixture
def pair(make_runs):
    """A run at work with a checkpoint, and one that waits to begin with it."""
    runs = make_runs()
    first = runs.create(CONFIG)
    checkpoint(runs, first, 20)
    second = runs.create(CONFIG | {"name": "Second", "model": {"checkpoint": f"run/{first}"}})
    (runs.root / second / "queue").write_text("0")
    return runs, first, second


def test_a_run_at_work_keeps_the_checkpoint_that_a_waiting_run_begins_with(pair):
    runs, first, second = pair
    checkpoint(runs, first, 40)
    checkpoint(runs, first, 60)
    assert [each.step for each in runs.folder(first).checkpoints()] == [20, 60]
    named = runs.config(second)["model"]["checkpoint"]
    assert named == str(runs.root / first / "checkpoints" / "step-20" / "model")
    # It can be named once more: by a new run from the second one, and by the page.
    assert runs.as_form(second)["model"] == {"checkpoint": f"run/{first}/step-20"}
    assert runs.checked(runs.as_form(second), source=second)["model"]["checkpoint"] == named
    assert Reports(runs).summary(second)["model"]["from"] == f"{first}/step-20"
    with pytest.raises(InputError, match="no snapshot"):
        run_models.model_path(runs.folder(first), "step-40")


@pytest.mark.parametrize(
    ("checkpoint", "told"),
    [
        ("bert-mini", "bert-mini"),
        (
            f"/cache/hub/models--google-bert--bert-base-uncased/snapshots/{'a' * 40}",
            "google-bert/bert-base-uncased",
        ),
        ("../classroom/model", "classroom"),
        ("{root}/one/model", "one"),
        ("{root}/one/snapshots/step-5", "one/step-5"),
        ("/data/me/first/model", "first"),
        ("/data/me/first/checkpoints/step-5/model", "first/step-5"),
    ],
)
def test_the_list_names_what_a_run_begins_with(make_runs, checkpoint, told):
    runs = make_runs()
    config = {"model": {"checkpoint": checkpoint.replace("{root}", str(runs.root))}}
    RunFolder.create(runs.root / "mine", CONFIG | config)
    assert Reports(runs).summary("mine")["model"]["from"] == told


def test_a_run_is_not_deleted_before_its_model_was_read(pair):
    runs, first, second = pair
    with pytest.raises(InputError, match=f"“{second}” begins with a model"):
        runs.delete(first)
    (runs.root / second / "queue").unlink()
    runs.delete(first)
    assert runs.ids() == [second]


def test_a_teacher_stays_until_its_student_has_finished(make_runs):
    runs = make_runs()
    teacher = runs.create(CONFIG | {"name": "Teacher"})
    checkpoint(runs, teacher, 20)
    wanted = {"objectives": {"distillation": 1.0}, "distillation": {"teacher": f"run/{teacher}"}}
    student = runs.create(CONFIG | wanted | {"name": "Student"})
    runs.folder(student).write_status({"state": "stopped", "step": 50, "steps": 100})
    (runs.root / student / "queue").write_text("0")
    with pytest.raises(InputError, match=f"“{student}” learns from a model"):
        runs.delete(teacher)
    (runs.root / student / "queue").unlink()
    runs.delete(teacher)


def test_a_run_that_cannot_be_made_holds_no_checkpoint(make_runs, session):
    runs = make_runs(limits=Limits(steps=2))
    base = runs.create(CONFIG | {"steps": 2})
    folder = runs.folder(base)
    folder.save(1, lambda path: session.model("bert-mini").save(path / "model"))
    rows = "text,label\n" + "".join(f"Text {n} is here,{'ab'[n % 2]}\n" for n in range(90))
    sent = runs.inbox.save_labelled("mine.csv", rows.encode())
    with pytest.raises(InputError, match="This run makes"):
        runs.create(TASK | {"model": {"checkpoint": f"run/{base}"}}, texts=[sent["id"]])
    assert not (folder.path / "held").exists()
    assert runs.ids() == [base]


def test_others_change_runs_while_rows_are_read(make_runs, monkeypatch):
    """A large table is cut into pieces to count its steps, which takes long."""
    runs = make_runs()
    sent = runs.inbox.save_labelled("mine.csv", b"text,label\nOne is here,a\nTwo are here,b\n" * 20)
    made = []

    def meanwhile(*_):
        made.append(runs.create(CONFIG))
        runs.delete(made.pop())
        return 10

    monkeypatch.setattr(Limits, "check_rows", meanwhile)
    run = runs.create(TASK, texts=[sent["id"]])
    assert (runs.ids(), made) == ([run], [])


def test_a_table_is_not_sent_for_texts_that_are_no_paragraphs(make_runs):
    runs = make_runs()
    rows = "text\n" + "".join(f"Dr. Smith went home at {n} p.m. He slept.\n" for n in range(20))
    sent = runs.inbox.save("mine.csv", rows.encode())
    config = CONFIG | {"data": {"paragraphs": False}}
    with pytest.raises(InputError, match="cells of a table"):
        runs.create(config, texts=[sent.id])
    runs.create(CONFIG | {"data": {}}, texts=[sent.id])


def test_what_a_visitor_writes_is_no_place_to_write_to(make_runs):
    """Names and descriptions are free: a path in one of them is only a text."""
    runs = make_runs()
    aside = runs.root / "first" / "checkpoints" / "step-1" / "model"
    runs.create(CONFIG | {"description": str(aside), "name": str(aside)})
    assert not (runs.root / "first").exists()


def test_a_run_that_the_server_stopped_says_why(make_runs):
    runs = make_runs()
    run = runs.create(CONFIG)
    runs.folder(run).write_status({"state": "stopped", "step": 5, "steps": 100})
    assert Reports(runs).summary(run)["reason"] is None
    note(runs.root / run, late=3)
    assert "longer than 3 min" in Reports(runs).summary(run)["reason"]


def test_the_rows_of_a_copied_table_are_shown_again(make_runs):
    runs = make_runs()
    rows = "sentence,kind\n" + "".join(f"Text {n} is here,{'ab'[n % 2]}\n" for n in range(40))
    sent = runs.inbox.save_labelled("mine.csv", rows.encode())
    task = {"kind": "classify", "columns": {"text": "sentence", "label": "kind"}}
    run = runs.create(TASK | {"task": task}, texts=[sent["id"]])
    found = run_tasks.look_again(runs, run)
    assert (found["problem"], found["kind"], found["labels"]) == (None, "classify", ["a", "b"])
    assert found["rows"][0]["text"].startswith("Text ")
    with pytest.raises(InputError):
        run_tasks.look_again(runs, runs.create(CONFIG))
    with pytest.raises(InputError, match="no run"):
        run_tasks.look_again(runs, "../elsewhere")


def test_a_form_counts_the_windows_of_long_texts(make_runs, session):
    """Each of 20 texts of 60 words needs several windows of 32 pieces."""
    runs = make_runs()
    text = " ".join(["The cat sees the dog ."] * 12)
    answers = [{"text": "cat", "start": 4}]
    rows = [
        {"context": f"{text} {n} .", "question": "Who sees the dog?", "answers": answers}
        for n in range(20)
    ]
    sent = runs.inbox.save_labelled("qa.jsonl", "\n".join(map(json.dumps, rows)).encode())
    config = TASK | {"task": {"kind": "answer"}, "batch_size": 4, "epochs": 1, "max_length": 32}
    found = run_tasks.check(runs, session, config, [sent["id"]], None)
    assert found["steps"] > 2 * (found["rows"][0] // 4)
    with pytest.raises(InputError, match="no room for the text"):
        run_tasks.check(runs, session, config | {"max_length": 8}, [sent["id"]], None)


def test_a_full_disk_is_told_in_plain_words(make_runs, monkeypatch):
    def full(*values, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    runs = make_runs()
    monkeypatch.setattr(runs.inbox, "save", full)
    page = TestClient(Starlette(routes=RunRoutes(runs, Reports(runs), None).routes()))
    answer = page.post("/train/texts?name=a.txt", content=b"a b\n", headers={HEADER: "train"})
    assert answer.json()["error"].startswith("The disk of this server is full")
