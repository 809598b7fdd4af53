"""Texts that are hard to cut: gaps written in them, marks without a piece, windows that part."""

import pytest

import core_models as cm
from core_models.errors import InputError
from core_models.tasks import objectives, sets
from core_models.tasks.decode import predict, text_row
from core_models.tasks.encode import IGNORED, Coder, content
from core_models.tasks.rows import Answer, Row
from core_models.tasks.settings import Settings
from core_models.training.finetune import FineTuning
from tests.tasks.test_decode import oracle


def row(context: str, answer: str) -> Row:
    return Row(text=context, pair="what ?", answers=(Answer(answer, context.index(answer)),))


@pytest.mark.parametrize("gap", ["<mask>", "[MASK]"])
def test_a_context_may_speak_of_gaps(model: cm.Model, gap: str) -> None:
    """Every spelling of a gap is one piece, whatever the vocabulary calls it."""
    asked = row(f"A model fills {gap} and writes {gap} again.", "writes")
    coder = Coder(model=model, kind="answer", max_length=60)
    (feature,) = coder.features([asked])
    assert feature.encoding.ids.count(model.tokenizer.mask_id) == 2
    start, _ = content(feature.encoding, feature.start, asked.text)
    _, end = content(feature.encoding, feature.end, asked.text)
    assert asked.text[start:end] == "writes"
    asked = Row(text="It rained.", pair=f"What does {gap} mean?")
    (feature,) = coder.features([asked])
    places = [content(feature.encoding, place, asked.text) for place in range(*feature.context)]
    assert "".join(asked.text[a:b] for a, b in places) == "Itrained."


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("an e\u0301te\u0301 in the city", "e\u0301te\u0301"),
        ("\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902 it", "\u092e\u0947\u0902"),
    ],
)
def test_an_answer_keeps_the_marks_of_its_last_letter(
    model: cm.Model, context: str, answer: str
) -> None:
    coder = Coder(model=model, kind="answer", max_length=100)
    (found,) = predict(oracle("answer"), coder, [row(context, answer)])
    assert found.answers[0].text == answer


@pytest.mark.parametrize("stride", [1, 7, 1000])
def test_no_stride_leaves_a_part_of_the_context_unread(model: cm.Model, stride: int) -> None:
    asked = Row(text="rain and sun , wind and snow . " * 8, pair="what ?")
    coder = Coder(model=model, kind="answer", max_length=30, stride=stride)
    seen: set[int] = set()
    for feature in coder.features([asked]):
        for place in range(*feature.context):
            seen.update(range(*content(feature.encoding, place, asked.text)))
    assert seen >= {i for i, c in enumerate(asked.text) if not c.isspace()}


def test_an_answer_that_no_window_holds_is_not_taught_as_none(bert: cm.Model) -> None:
    long = "rain and sun , wind and snow . " * 4
    coder = Coder(model=bert, kind="answer", max_length=24, stride=4)
    features = coder.features([row(f"it was {long}again", long.strip())])
    assert {feature.start for feature in features} == {IGNORED}
    task = sets.from_rows("x", "answer", [row(f"it was {long}{i}", long.strip()) for i in "abc"])
    tuning = FineTuning(bert, task, Settings(max_length=24, stride=4, epochs=1, batch_size=64))
    assert tuning.step().loss == 0.0


def test_a_question_is_needed(bert: cm.Model) -> None:
    coder = Coder(model=bert, kind="answer")
    with pytest.raises(InputError, match="There is no question"):
        predict(objectives.build("span", bert), coder, [text_row("answer", "It rained.")])


def test_answers_and_their_absence_are_both_learnt(bert: cm.Model) -> None:
    """The loss does not drive a model to "no answer" although most windows hold none."""
    rain = "rain fell on the town for days and nobody was out . " * 3
    rows = [
        Row(text=f"{name} lives here . {rain}", pair="who lives here ?", answers=(Answer(name, 0),))
        for name in ("ann", "tom", "mary")
    ]
    rows += [
        Row(text=f"{rain} {word}", pair="who lives here ?") for word in ("snow", "sun", "wind")
    ]
    task = sets.from_rows("x", "answer", rows, rows)
    options = Settings(learning_rate=5e-3, epochs=40, batch_size=6, max_length=40, dropout=0.0)
    tuning = FineTuning(bert, task, options)
    none = [f.start == tuning.coder.cls_place(f.encoding) for f in tuning.features]
    assert sum(none) > 2 * (len(none) - sum(none))
    while not tuning.finished:
        if tuning.epoch_ended:
            tuning.end_epoch()
        else:
            tuning.step()
    tuning.use_best()
    said = [found.answer() for found in tuning.predict()]
    assert said == ["ann", "tom", "mary", "", "", ""]
