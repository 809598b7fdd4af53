"""Any number of labels of a text: read, learnt, measured, saved, and asked again."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn import metrics as scores
from transformers import AutoModelForSequenceClassification, BertForSequenceClassification

import core_models as cm
from core_models.errors import InputError
from core_models.tasks import baselines, decode, metrics, objectives, sets
from core_models.tasks.columns import guess
from core_models.tasks.encode import Coder
from core_models.tasks.heads import head_for
from core_models.tasks.probe import probe
from core_models.tasks.report import main_metric, measure, report
from core_models.tasks.rows import Row
from core_models.tasks.settings import Settings
from core_models.tasks.tables import Table, parse
from core_models.training.finetune import finetune
from tests.tasks.conftest import tiny

PARTS = {
    "joy": ("We laughed a lot.", "It was a happy day.", "Everybody smiled."),
    "fear": ("A wolf howled near us.", "We were afraid of the storm.", "The forest was dark."),
    "food, drink": ("We ate bread and soup.", "The milk was cold.", "They cooked rice."),
}


def rows(count: int = 48) -> list[Row]:
    """Texts made of one sentence for each of their labels, every set of labels equally often."""
    found = []
    for n in range(count):
        held = [label for bit, label in enumerate(PARTS) if n >> bit & 1]
        said = [PARTS[label][n // 8 % 3] for label in held] or ["The train left."]
        found.append(Row(number=n + 1, text=f"{' '.join(said)} {n}", labels=tuple(sorted(held))))
    return found


@pytest.fixture(scope="module")
def task() -> sets.TaskSet:
    return sets.from_rows("moods", "multilabel", rows(), rows(16))


def table(text: str, ending: str = ".csv") -> Table:
    return parse(text.encode(), ending, f"moods{ending}")


LISTS = '{"text": "a b", "labels": ["x", "y"]}\n{"text": "c", "labels": []}\n'


@pytest.mark.parametrize(
    ("content", "ending", "kind"),
    [
        (LISTS, ".jsonl", None),
        (LISTS.replace("labels", "topics"), ".jsonl", None),
        ("text,label\na b,\"['y', 'x']\"\nc,[]\n", ".csv", None),
        ("text,labels\na b,x|y\nc,\n", ".csv", "multilabel"),
        ("text\tlabels\na b\ty; x;\nc\t\n", ".tsv", "multilabel"),
        ('text,labels\na b,"y, x"\nc,\n', ".csv", "multilabel"),
    ],
)
def test_labels_are_lists_or_stand_with_signs_between(
    content: str, ending: str, kind: str | None
) -> None:
    found = table(content, ending)
    guessed = guess(found, kind=kind)
    assert guessed.kind == "multilabel"
    assert [row.labels for row in sets.rows_of(found, guessed)] == [("x", "y"), ()]


def test_one_sign_parts_labels_in_a_whole_column() -> None:
    found = table('text,labels\na,"food, drink|joy"\nb,"food, drink"\n')
    read = sets.rows_of(found, guess(found, kind="multilabel"))
    assert [row.labels for row in read] == [("food, drink", "joy"), ("food, drink",)]


def both(first: str, second: str) -> sets.TaskSet:
    """A set of two tables of the columns text and labels."""
    return sets.build(table(first), table(second), kind="multilabel")


def test_the_sign_between_labels_is_that_of_the_table_to_learn_from() -> None:
    """Each table had its own: what was one label to learn was two to measure."""
    task = both('text,labels\na,"food, drink; joy"\nb,joy\n', 'text,labels\nc,"food, drink"\n')
    assert task.dev[0].labels == ("food, drink",)
    assert task.labels == ("food, drink", "joy")
    task = both("text,labels\na,food\nb,joy\n", "text,labels\nc,food;joy\n")
    assert task.dev[0].labels == ("food", "joy")


@pytest.mark.parametrize(("learnt", "measured"), [(";", ","), (",", ";"), ("|", ";"), (";", "|")])
def test_another_sign_in_the_other_table_is_told(learnt: str, measured: str) -> None:
    first, second = ('text;labels\na;"x' + sign + 'y"\nb;x\n' for sign in (learnt, measured))
    said = rf"row 1: several labels in a cell seem to have '[{measured}]' between them: 'x.y'; in"
    with pytest.raises(InputError, match=rf"moods\.csv, {said} moods\.csv it is '[{learnt}]'"):
        both(first, second)
    assert both(first, first).labels == ("x", "y")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("text,label\na,x\nb,y\n", "classify"),
        ('{"tokens": ["a"], "labels": ["O"]}\n', "tag"),
        ('{"text": "a", "tokens": ["a"], "tags": ["O"]}\n', "tag"),
    ],
)
def test_what_was_another_kind_before_still_is(content: str, kind: str) -> None:
    ending = ".jsonl" if content.startswith("{") else ".csv"
    assert guess(table(content, ending)).kind == kind


def test_a_column_by_any_name_and_a_second_text() -> None:
    content = '{"body": "a", "other": "b", "said": ["x"]}\n'
    columns = {"text": "body", "text_b": "other", "labels": "said"}
    found = table(content, ".jsonl")
    guessed = guess(found, columns=columns)
    (row,) = sets.rows_of(found, guessed)
    assert (guessed.kind, row.text, row.pair, row.labels) == ("multilabel", "a", "b", ("x",))


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('{"text": "a", "labels": ["x", null]}', "'labels' has an entry that is no"),
        ('{"text": "a", "labels": [["x"]]}', "no label"),
        ('{"text": "a", "labels": {"x": 1}}', "holds no list of labels"),
        ('{"text": "", "labels": ["x"]}', "holds no text"),
    ],
)
def test_a_damaged_row_is_told_with_its_number(line: str, match: str) -> None:
    found = table(line + "\n", ".jsonl")
    guessed = guess(found, kind="multilabel")
    with pytest.raises(InputError, match=f"row 1: .*{match}"):
        sets.rows_of(found, guessed)


@pytest.mark.parametrize(
    ("labels", "match"), [(((), ()), "has no label"), ((("x",), ()), "only the label 'x'")]
)
def test_two_labels_are_needed(labels: tuple[tuple[str, ...], ...], match: str) -> None:
    few = [Row(text=f"a {n}", labels=held) for n, held in enumerate(labels)]
    with pytest.raises(InputError, match=match):
        sets.from_rows("few", "multilabel", few)


def test_rows_held_out_keep_shares_of_rare_labels() -> None:
    many = [Row(text=f"a {n}", labels=("common",)) for n in range(180)]
    rare = [Row(text=f"b {n}", labels=("common", "rare")) for n in range(20)]
    train, dev = sets.hold_out([*many, *rare])
    assert sum("rare" in row.labels for row in dev) == 3
    assert sum("rare" in row.labels for row in train) == 17


def test_a_row_counts_for_each_of_its_labels(task: sets.TaskSet) -> None:
    assert task.labels == ("fear", "food, drink", "joy")
    assert task.statistics().labels == dict.fromkeys(task.labels, 24)


def test_the_loss_is_that_of_transformers(tokenizers, task: sets.TaskSet) -> None:
    model = tiny("bert", tokenizers).with_head("multilabel", task.labels)
    coder = Coder.of(model.eval(), task)
    batch = coder.batch(coder.features(task.train[:8]))
    assert batch.label_sets is not None
    assert batch.label_sets[5].tolist() == [0.0, 1.0, 1.0]
    objective = objectives.build("multilabel", model.heads["multilabel"])
    logits = objective.answer(model.encoder, batch)
    wanted = torch.nn.BCEWithLogitsLoss()(logits, batch.label_sets)
    found = objective(model.encoder, batch)
    torch.testing.assert_close(found.total, wanted)
    # parts of a batch add up to the whole
    parts = [objective.losses(logits[a:b], replace_rows(batch, a, b)) for a, b in ((0, 3), (3, 8))]
    total = sum(float(part.sums["multilabel"].detach()) for part in parts)
    assert total == pytest.approx(float(found.sums["multilabel"].detach()), rel=1e-6)
    right = ((logits > 0) == (batch.label_sets > 0.5)).all(1).sum()
    assert float(found.metrics["multilabel_accuracy"][0]) == float(right)


def replace_rows(batch: cm.Batch, start: int, stop: int) -> cm.Batch:
    assert batch.input_ids is not None
    assert batch.label_sets is not None
    return cm.Batch(input_ids=batch.input_ids[start:stop], label_sets=batch.label_sets[start:stop])


def test_labels_that_are_not_known_are_left_out() -> None:
    objective = objectives.Multilabel(torch.nn.Identity())
    logits = torch.tensor([[2.0, -1.0], [0.5, 3.0]], requires_grad=True)
    labels = torch.tensor([[1.0, torch.nan], [torch.nan, torch.nan]])
    batch = cm.Batch(input_ids=torch.ones(2, 1, dtype=torch.long), label_sets=labels)
    found = objective.losses(logits, batch)
    assert objective.counts(batch)["multilabel"] == 1
    torch.testing.assert_close(found.sums["multilabel"], torch.tensor(2.0).neg().exp().log1p())
    found.total.backward()
    assert logits.grad is not None
    assert logits.grad[0, 1] == 0
    assert logits.grad[1].tolist() == [0.0, 0.0]


def test_a_label_is_said_from_its_threshold_on(tokenizers, task: sets.TaskSet) -> None:
    model = tiny("bert", tokenizers).with_head("multilabel", task.labels).eval()
    with torch.no_grad():
        model.heads["multilabel"].classifier.weight.zero_()
        model.heads["multilabel"].classifier.bias.copy_(torch.tensor([2.0, 0.0, -1.0]))
    objective = objectives.build("multilabel", model.heads["multilabel"])
    coder = Coder.of(model, task)
    row = decode.text_row("multilabel", "We ate.")
    (said,) = decode.predict(objective, coder, [row])
    assert said.labels == ("fear", "food, drink")  # 0.5 reaches the threshold
    assert said.label is None
    assert said.probabilities == pytest.approx(
        {"fear": 0.8808, "food, drink": 0.5, "joy": 0.2689}, abs=1e-4
    )
    (strict,) = decode.predict(objective, replace(coder, threshold=0.9), [row])
    assert strict.labels == ()
    (loose,) = decode.predict(objective, replace(coder, threshold=0.2), [row])
    assert loose.labels == task.labels


def test_metrics_are_those_of_scikit_learn() -> None:
    labels = ("a", "b", "c")
    draw = np.random.default_rng(4)
    true, said = (draw.integers(0, 2, (30, 3)) for _ in range(2))
    held = [[tuple(np.array(labels)[row > 0]) for row in part] for part in (true, said)]
    found = metrics.several_labels(*held, labels)
    assert found == {
        "micro_f1": pytest.approx(scores.f1_score(true, said, average="micro")),
        "macro_f1": pytest.approx(scores.f1_score(true, said, average="macro")),
        "exact_match": pytest.approx(scores.accuracy_score(true, said)),
    }
    each = metrics.per_label_of_several(*held, labels)
    assert [each[n].f1 for n in labels] == pytest.approx(scores.f1_score(true, said, average=None))
    assert [each[n].support for n in labels] == true.sum(0).tolist()


def test_a_report_by_hand(task: sets.TaskSet) -> None:
    two = [
        Row(number=1, text="one", labels=("fear", "joy")),
        Row(number=2, text="two", labels=()),
    ]
    said = [
        decode.Prediction(
            labels=("joy",), probabilities={"fear": 0.4, "food, drink": 0.1, "joy": 0.8}
        ),
        decode.Prediction(labels=(), probabilities={"fear": 0.1, "food, drink": 0.1, "joy": 0.1}),
    ]
    found = report(task, two, said)
    assert found.main == "micro_f1"
    assert found.metrics["micro_f1"] == pytest.approx(2 / 3)  # one of two found, none wrong
    assert found.metrics["exact_match"] == 0.5
    assert found.confusion == []
    assert found.labels["fear"].recall == 0.0
    assert found.labels["joy"].precision == 1.0
    (wrong,) = found.mistakes
    assert (wrong.expected, wrong.said) == ("fear, joy", "joy")
    assert wrong.wrongness == pytest.approx(0.6)
    assert found.calibration is not None
    assert sum(each.count for each in found.calibration.bins) == 6


def test_baselines_learn_every_label_by_itself(task: sets.TaskSet) -> None:
    named = {each.name: each.metrics for each in baselines.baselines(task)}
    assert named["majority"] == measure(task, task.dev, [("fear",)] * 16)
    assert named["bag_of_words"]["micro_f1"] == 1.0
    always = [replace(row, labels=(*row.labels, "z")) for row in task.train]
    same = replace(task, train=tuple(always), labels=(*task.labels, "z"))
    assert baselines.baselines(same)[1].metrics["exact_match"] == 0.0  # z is said everywhere


def test_a_model_learns_several_labels_and_transformers_reads_it(
    tmp_path: Path, tokenizers, task: sets.TaskSet
) -> None:
    settings = Settings(epochs=10, batch_size=8, learning_rate=3e-3)
    assert head_for(task, settings) == "multilabel"
    result = finetune(tiny("bert", tokenizers), task, settings)
    majority = result.baselines[0].metrics["micro_f1"]
    assert main_metric(task) == result.report.main == "micro_f1"
    assert result.report.metrics["micro_f1"] > max(0.8, majority)
    assert any(len(said.labels) > 1 for said in result.predictions)
    result.model.save(tmp_path / "model")
    values = json.loads((tmp_path / "model" / "config.json").read_text())
    assert values["problem_type"] == "multi_label_classification"
    assert "cloze_task" not in values
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "model").eval()
    assert isinstance(theirs, BertForSequenceClassification)
    again = cm.load(tmp_path / "model")
    assert list(again.heads) == ["multilabel"]
    assert again.heads["multilabel"].labels == task.labels
    batch = again.batch(["We laughed a lot. They cooked rice."])
    coder = Coder.of(again, task)
    features = coder.features(task.dev[:4])
    labelled = coder.batch(features)
    with torch.no_grad():
        torch.testing.assert_close(
            again(batch).logits["multilabel"], theirs(batch.input_ids).logits
        )
        asked = theirs(
            labelled.input_ids,
            attention_mask=labelled.attention_mask,
            token_type_ids=labelled.segment_ids,
            labels=labelled.label_sets,
        )
        objective = objectives.build("multilabel", again.heads["multilabel"])
        torch.testing.assert_close(objective(again.encoder, labelled).total, asked.loss)


def test_a_probe_is_refused_by_a_sentence(tokenizers, task: sets.TaskSet) -> None:
    with pytest.raises(InputError, match="Several labels at once are no matter for a linear probe"):
        probe(tiny("bert", tokenizers).eval(), task)
