"""The doctor on made-up curves of a fine-tuning."""

from app.doctor import Case, examine

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


def test_the_doctor_sees_unbalanced_labels():
    assert kinds([0.6], labels={"good": 90, "bad": 30}) == ["unbalanced"]
    assert kinds([0.6], labels={"good": 89, "bad": 30}) == []


def test_the_doctor_sees_rows_learned_by_heart():
    falling = [0.7, 0.5, 0.3, 0.2, 0.1, 0.05]
    assert kinds([0.8] * 6, [0.6, 0.5, 0.5, 0.6, 0.7, 0.8], training=falling) == ["memorised"]
    assert kinds([0.8] * 6, [0.6, 0.5, 0.5, 0.5, 0.5, 0.5], training=falling) == []
