"""Tags that mark stretches without saying what they are, and tags that are numbers."""

import random

import pytest
from seqeval.metrics.sequence_labeling import get_entities

import core_models as cm
from core_models.tasks import sets
from core_models.tasks.bio import NAMELESS, beginnings, is_bio
from core_models.tasks.decode import entities_of, predict
from core_models.tasks.encode import Coder
from core_models.tasks.report import main_metric, measure
from core_models.tasks.rows import Row
from core_models.tasks.settings import Settings
from core_models.tasks.words import join
from core_models.training.finetune import FineTuning

WORDS = ("The", "old", "man", "saw", "a", "cat", "today")


def tagged(*tags: str) -> sets.TaskSet:
    rows = [Row(tokens=WORDS, tags=each) for each in (tuple(t.split()) for t in tags)]
    return sets.from_rows("x", "tag", rows, rows)


def test_chunks_without_a_type_are_measured_as_a_whole() -> None:
    """By hand: there are three, and of two that were said first none and then one is right."""
    task = tagged("B I I O B I B", "B I I O B I B")
    assert task.entities
    assert main_metric(task) == "entity_f1"
    assert task.statistics().labels == {NAMELESS: 6}
    said = ("B", "I", "O", "O", "B", "I", "I")
    found = measure(task, task.dev[:1], [said])
    assert found["entity_precision"] == 0.0  # both have a wrong end
    said = ("B", "I", "I", "O", "B", "I", "I")
    found = measure(task, task.dev[:1], [said])
    assert found["entity_precision"] == pytest.approx(1 / 2)
    assert found["entity_recall"] == pytest.approx(1 / 3)
    assert found["entity_f1"] == pytest.approx(2 / 5)
    assert found["accuracy"] == pytest.approx(6 / 7)  # what was the only measure
    assert "The tags B and I name no type" in " ".join(task.warnings)


@pytest.mark.parametrize(
    "tags", [("B", "I", "O"), ("I", "O"), ("B-X", "I-X", "B-Y", "I-Y", "O"), ("B", "I", "I-X", "O")]
)
def test_stretches_are_those_of_seqeval(tags: tuple[str, ...]) -> None:
    draw = random.Random(3)
    for _ in range(100):
        drawn = [draw.choice(tags) for _ in WORDS]
        text, places = join(WORDS)
        found = entities_of(drawn, [1.0] * len(drawn), places, text)
        theirs = [
            (kind, places[first][0], places[last][1]) for kind, first, last in get_entities(drawn)
        ]
        assert [(each.type, each.start, each.end) for each in found] == theirs
        assert len(beginnings(drawn)) == len(theirs)


def test_a_model_of_plain_tags_finds_stretches(bert: cm.Model) -> None:
    task = tagged("B I I O B I B", "O O O O B O O")
    tuning = FineTuning(bert, task, Settings(max_length=32))
    tuning.model.eval()
    (one, _) = predict(tuning.objective, Coder.of(tuning.model, task), task.dev)
    assert len(one.entities) == len(get_entities(list(one.tags)))
    assert {each.type for each in one.entities} <= {NAMELESS}


@pytest.mark.parametrize("tag", ["I-", "B-", "BI", "b", "X", "1", "-", "I_PER"])
def test_what_is_no_tag_of_bio(tag: str) -> None:
    assert not is_bio(tag)


@pytest.mark.parametrize("tags", ["0 1 2 0 1 2 0", "0 -100 1 0 1 1 0"])
def test_numbers_as_tags_are_measured_word_by_word_and_it_is_said(tags: str) -> None:
    task = tagged(tags, tags)
    assert (task.entities, main_metric(task)) == (False, "accuracy")
    assert "The tags are numbers, which do not say where names begin" in " ".join(task.warnings)
    named = tagged("B-X 1 O O O O O", "O O O O O O O")
    assert "numbers" not in " ".join(named.warnings)
