"""What is said of one thing, and of several."""

from app.runs.forms import labelled
from viz.svg import count_words


def test_one_word_is_no_words() -> None:
    assert [count_words(count) for count in (1, 2)] == ["1 word", "2 words"]


def test_one_question_is_no_questions() -> None:
    facts = {
        "train": {"rows": 9, "mean_length": 5.0, "scores": None},
        "dev": {"rows": 2},
        "kind": "answer",
        "chinese": False,
    }
    said = [labelled.about(facts | {"train": {**facts["train"], "unanswered": n}}) for n in (1, 2)]
    assert said[0].endswith("1 question has no answer.")
    assert said[1].endswith("2 questions have no answer.")
