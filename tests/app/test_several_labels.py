"""Any number of labels of a text on the page: the set, the run, its result, and trying it."""

import asyncio
import json

from app.runs.forms import labelled, preview
from app.runs.forms import tasks as run_tasks
from app.runs.reports import reached, tried
from app.runs.reports.charts import name_of
from app.serving.model_titles import HEADS
from core_models.training.process import train

NOUNS = ("film", "meal", "room", "song", "walk", "book", "house", "dog")
ROWS = "\n".join(
    json.dumps({"text": f"The {noun} {' and '.join(held) or 'is there'}.", "labels": held})
    for noun in NOUNS
    for held in (["sad", "warm"], ["sad"], ["warm"], [])
)
TASK = {"model": {"checkpoint": "bert-mini"}, "task": {}, "epochs": 1, "max_length": 16}


def test_a_sent_table_of_several_labels_is_shown_with_all_of_them(make_runs):
    inbox = make_runs().inbox
    sent = inbox.save_labelled("moods.jsonl", ROWS.encode())
    found = run_tasks.look(inbox, {"set": sent["id"]})
    assert (found["problem"], found["kind"]) == (None, "multilabel")
    assert found["guess"] == {"text": "text", "labels": "labels"}
    assert found["labels"] == ["sad", "warm"]
    assert {row["said"] for row in found["rows"]} == {"sad, warm", "sad", "warm", ""}
    assert set(labelled.KINDS) == set(run_tasks.describe()["kinds"])
    assert set(labelled.ROLES) == set(run_tasks.describe()["roles"])
    assert "any number of labels" in str(labelled.about(found))
    cells = labelled.rows(found)["rows"]
    assert any("sad, warm" in str(cell) for cell in cells)


def test_a_run_is_looked_at_measured_and_tried(make_runs, session, monkeypatch, in_process):
    runs = make_runs()
    sent = runs.inbox.save_labelled("moods.jsonl", ROWS.encode())
    first = preview.first_batch(runs, TASK, [sent["id"]], None)
    assert {row["says"] for row in first["rows"]} <= {"sad, warm", "sad", "warm", "\N{EN DASH}"}
    run = runs.create(TASK, texts=[sent["id"]])
    folder = runs.folder(run)
    train(folder.config_path, lambda line: None)
    found = run_tasks.result(runs, run)
    assert found["main"] == "micro_f1"
    live = {"task": folder.status()["task"], "evaluated": True, "model": True}
    parts = reached.result_parts(runs, run, live)
    assert parts["confusion"]["value"] is None
    assert parts["labels"]["value"] is not None
    assert "Micro-F1" in str(parts["summary"])
    assert name_of("multilabel_loss") == "Loss of several labels"
    box = tried.try_parts(live)
    assert box["pair"]["visible"] is False
    monkeypatch.setattr(session, "model", lambda name: load_run(folder))
    said = asyncio.run(run_tasks.try_out(session, runs, run, {"text": "The film is sad."}))
    assert sum(said["probabilities"].values()) != 1.0
    shown = tried.tried(said)
    assert shown["shares"]["value"]["label"] == (", ".join(said["labels"]) or "\N{EN DASH}")


def load_run(folder):
    from core_models import load

    return load(folder.model_path)


def test_what_a_model_says_names_all_labels_that_hold_or_none():
    known = {"kind": "multilabel", "text": "", "probabilities": {"a": 0.9, "b": 0.6, "c": 0.1}}
    both = tried.tried(known | {"labels": ["a", "b"]})
    assert both["shares"]["value"]["label"] == "a, b"
    assert [each["confidence"] for each in both["shares"]["value"]["confidences"]] == [
        0.9,
        0.6,
        0.1,
    ]
    none = tried.tried(known | {"labels": [], "probabilities": {"a": 0.2, "b": 0.1}})
    assert none["shares"]["value"]["label"] == "\N{EN DASH}"
    assert "none of its labels holds" in str(none["found"])


def test_a_row_without_labels_is_no_question_without_an_answer():
    rows = [
        {"text": "a", "said": [], "expected": "x"},
        {"text": "b", "said": ["x"], "expected": ""},
    ]
    found = reached._rows(rows, {"kind": "multilabel"}, wrong=True)
    assert [row[1:] for row in found["rows"]] == [["no label", "x"], ["x", "no label"]]


def test_the_head_has_a_name_in_the_list_of_models():
    assert HEADS["multilabel"] == "several labels of texts"
