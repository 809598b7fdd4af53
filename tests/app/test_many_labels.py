"""What is shown of a set of very many labels, and that the page says what it leaves out."""

import json

import pytest

from app.runs.forms import labelled
from app.runs.forms import tasks as run_tasks
from app.runs.reports import reached, tried
from app.serving.locales import catalogue


def facts(count: int) -> dict:
    return {"train": {"labels": {f"label {n:02}": 1 + (n == count - 1) for n in range(count)}}}


def test_of_many_labels_the_most_frequent_are_shown_and_it_is_said():
    few = labelled.labels(facts(24))
    assert few["caption"] == "Labels of the set"
    assert [row[0] for row in few["rows"]] == [f"label {n:02}" for n in range(24)]
    many = labelled.labels(facts(40))
    assert many["caption"] == "The 24 most frequent of 40 labels of the set"
    assert [row[0] for row in many["rows"]] == ["label 39", *(f"label {n:02}" for n in range(23))]


@pytest.mark.parametrize("count", [30, 31])
def test_a_confusion_matrix_that_is_not_drawn_is_missed_aloud(make_runs, count):
    runs = make_runs()
    run = runs.create({"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}})
    names = [f"label {n}" for n in range(count)]
    evaluation = {"main": "accuracy", "metrics": {"accuracy": 0.75}, "best_epoch": 1}
    evaluation |= {"confusion": [[1] * count] * count, "labels": {}, "worst": [], "best": []}
    (runs.folder(run).path / "evaluation.json").write_text(json.dumps(evaluation))
    live = {"evaluated": True, "task": {"kind": "classify", "dev": {"rows": 4}, "labels": names}}
    parts = reached.result_parts(runs, run, live)
    assert (parts["confusion"]["value"] is None) == (count > 30)
    said = parts["no_confusion"]["value"]["text"]
    assert ("the set has 31 labels, and one shows 30 at most" in said) == (count > 30)
    # A set that has no such matrix, of tags for example, misses none.
    (runs.folder(run).path / "evaluation.json").write_text(
        json.dumps(evaluation | {"confusion": []})
    )
    assert reached.result_parts(runs, run, live)["no_confusion"]["value"]["text"] == ""


@pytest.mark.parametrize("kind", ["classify", "multilabel"])
def test_of_many_labels_the_likeliest_are_shown_to_a_text(kind):
    for count in (12, 13):
        chances = {f"label {n}": 0.9 - n / 20 for n in range(count)}
        said = {"kind": kind, "text": "", "probabilities": chances, "labels": ["label 0"]}
        parts = tried.tried(said)
        assert len(parts["shares"]["value"]["confidences"]) == 12
        told = parts["found"]["value"]["text"]
        assert told == ("The 12 likeliest of 13 labels." if count == 13 else "")
    said |= {"labels": []}
    assert ("none of its labels holds" in str(tried.tried(said)["found"])) == (kind == "multilabel")


def test_a_table_that_the_hold_out_leaves_without_an_answer_is_refused_by_the_form(make_runs):
    """The form took it, and the run failed."""
    inbox = make_runs().inbox
    for odd in range(6):
        asked = [{"context": f"Bo ran {n}.", "question": "Who?", "answers": []} for n in range(6)]
        rows = [each | {"answers": [{"text": "Bo"}] * (each is asked[odd])} for each in asked]
        sent = inbox.save_labelled("rows.jsonl", "\n".join(map(json.dumps, rows)).encode())
        found = run_tasks.look(inbox, {"set": sent["id"]})
        assert found["problem"] or found["train"]["unanswered"] < found["train"]["rows"]
        if problem := found["problem"]:
            break
    assert "stays to learn from is questions without an answer; add questions" in problem


def test_what_is_left_out_has_its_pattern_in_the_catalogue():
    chinese = catalogue("zh")
    held = "{0}: of {1} rows 15 % are held out, and all that stays to learn from is "
    assert {key for key in chinese if key.startswith(held)} == {
        f"{held}{rest}, or give a file to measure on."
        for rest in (
            "one row; add rows",
            "rows of the label {2}; add rows of other labels",
            "rows of the label {2} or of none; add rows of other labels",
            "rows without a label; add rows of other labels",
            "rows of the score {2}; add rows of other scores",
            "questions without an answer; add questions that have one",
        )
    }
    assert "The tags B and I name no type: whole stretches are measured, all of one type, {0}." in (
        chinese
    )
