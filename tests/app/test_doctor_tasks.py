"""The doctor on made-up curves of a fine-tuning."""

import pytest

from app.runs.doctor.doctor import Case, examine

STATUS = {
    "state": "running",
    "steps": 100,
    "task": {
        "kind": "classify",
        "main": "accuracy",
        "train": {"labels": {"good": 50, "bad": 50}},
        "baselines": [
            {"name": "majority", "title": "commonest", "metrics": {"accuracy": 0.5}},
            {"name": "bag_of_words", "title": "bag of words", "metrics": {"accuracy": 0.8}},
        ],
    },
}


def kinds(accuracy, losses=(), labels=None, training=()):
    status = STATUS | {"task": STATUS["task"] | ({"train": {"labels": labels}} if labels else {})}
    records = [
        {"step": 10 * (n + 1), "validation_accuracy": value} for n, value in enumerate(accuracy)
    ]
    for name, values in (("validation_loss", losses), ("loss", training)):
        for record, value in zip(records, values, strict=False):
            record[name] = value
    found = examine(Case(records=records, status=status, config={}))
    return [finding.kind for finding in found]


def test_the_doctor_compares_a_fine_tuning_with_its_baselines():
    assert kinds([0.6] * 4) == []  # too early to say
    assert kinds([0.6] * 6) == ["below_baseline"]
    assert kinds([0.6] * 5 + [0.9]) == ["above_baseline"]
    assert kinds([0.8] * 6) == []


def test_only_the_ends_of_epochs_count_whose_weights_are_kept():
    values = {0.5: 0.9, 1.0: 0.6, 1.5: 0.9, 2.0: 0.7}
    records = [
        {"step": round(40 * epoch), "epoch": epoch, "validation_accuracy": value}
        for epoch, value in values.items()
    ]
    (found,) = examine(Case(records=records, status=STATUS, config={}))
    assert found.kind == "below_baseline"
    assert "0.7" in found.text


def test_the_doctor_sees_unbalanced_labels():
    assert kinds([0.6], labels={"good": 90, "bad": 30}) == ["unbalanced"]
    assert kinds([0.6], labels={"good": 89, "bad": 30}) == []


def test_the_doctor_sees_rows_learned_by_heart():
    falling = [0.7, 0.5, 0.3, 0.2, 0.1, 0.05]
    assert kinds([0.8] * 6, [0.6, 0.5, 0.5, 0.6, 0.7, 0.8], training=falling) == ["memorised"]
    assert kinds([0.8] * 6, [0.6, 0.5, 0.5, 0.5, 0.5, 0.5], training=falling) == []
    # What counts went on rising, so fewer epochs would be no cure.
    rising = [0.5, 0.6, 0.6, 0.7, 0.8, 0.8]
    assert "memorised" not in kinds(rising, [0.6, 0.5, 0.5, 0.6, 0.7, 0.8], training=falling)


def measured(kind, main, majority, values, **more):
    """Findings of a fine-tuning with these values of its main metric."""
    baselines = [
        {"name": "majority", "title": "always the same", "metrics": {main: majority}},
        {"name": "other", "title": "another method", "metrics": {main: majority - 0.1}},
    ]
    task = {"kind": kind, "main": main, "train": {}, "baselines": baselines}
    records = [
        {"step": 10 * (n + 1), f"validation_{main}": value} | {k: v[n] for k, v in more.items()}
        for n, value in enumerate(values)
    ]
    status = {"state": "finished", "steps": 10 * len(values), "task": task}
    return examine(Case(records=records, status=status, config={}))


def test_a_model_that_never_answers_is_no_good_model():
    silent = {"validation_no_answer_accuracy": [1.0] * 6}
    (found,) = measured("answer", "f1", 0.333, [0.333] * 6, **silent)
    assert (found.kind, found.level) == ("same_answer", "problem")
    assert found.title == "It only learnt to answer nothing"
    assert "0.333" in found.text
    assert "more rows that have an answer" in found.cure
    talkative = {"validation_no_answer_accuracy": [0.2] * 6}
    (found,) = measured("answer", "f1", 0.333, [0.3] * 6, **talkative)
    assert found.title == "It is no better than one answer to everything"
    # Where every row has an answer, wrong answers and none cannot be told apart by the figures.
    (found,) = measured("answer", "f1", 0.0, [0.0] * 6)
    assert found.title == "It is no better than one answer to everything"


@pytest.mark.parametrize(
    ("kind", "main", "majority"),
    [
        ("classify", "accuracy", 0.5),
        ("pair", "accuracy", 0.34),
        ("regress", "pearson", 0.0),
        ("tag", "entity_f1", 0.0),
        ("tag", "accuracy", 0.7),
    ],
)
def test_no_task_is_well_that_is_not_above_the_majority(kind, main, majority):
    (found,) = measured(kind, main, majority, [majority] * 6)
    assert (found.kind, found.level) == ("same_answer", "problem")
    assert [f.kind for f in measured(kind, main, majority, [majority + 0.2] * 6)] == [
        "above_baseline"
    ]


def test_the_rate_of_a_fine_tuning_that_diverged_is_its_own():
    reason = "Fine-tuning diverged at step 3: the loss or its gradient is not finite."
    status = STATUS | {"state": "failed", "reason": reason, "learning_rate": 3e-4}
    (found,) = examine(Case(records=[], status=status, config={"task": {"set": "sentiment"}}))
    assert found.kind == "diverged"
    assert found.cure == "Use a lower learning rate: 0.0001 instead of 0.0003."
