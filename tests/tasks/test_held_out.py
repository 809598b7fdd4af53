"""Rows that are held out: what is left to learn from, and texts that are nearly the same."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from core_models.errors import InputError
from core_models.tasks import sets
from core_models.tasks.rows import KINDS, Answer, Row


def row(kind: str, text: str, odd: bool) -> Row:
    """A row of a kind; the odd ones are what the others are not."""
    label = "ab"[odd]
    return {
        "classify": Row(text=text, label=label),
        "pair": Row(text=text, pair="so", label=label),
        "multilabel": Row(text=text, labels=(label,)),
        "regress": Row(text=text, score=float(odd)),
        "tag": Row(tokens=tuple(text.split()), tags=("O", ("O", "B-X")[odd])),
        "answer": Row(text=text, pair="What?", answers=(Answer(text, 0),) if odd else ()),
    }[kind]


def odd_one_held_out(kind: str) -> list[Row]:
    """Ten rows of which one is odd, and held out."""
    for odd in range(10):
        rows = [row(kind, f"text {n}", n == odd) for n in range(10)]
        if rows[odd] in sets.hold_out(rows)[1]:
            return rows
    raise AssertionError("no such split; choose other rows")


def refusal(name: str, kind: str, rows: Sequence[Row], dev: Sequence[Row] | None = None) -> str:
    try:
        sets.from_rows(name, kind, rows, dev)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("regress", "is rows of the score 0.0; add rows of other scores"),
        ("tag", "is rows of the label 'O'; add rows of other labels"),
        ("answer", "is questions without an answer; add questions that have one"),
    ],
)
def test_what_stays_must_hold_something_to_learn(kind: str, message: str) -> None:
    """Equal scores have no scale; one tag alone, and no answer at all, teach nothing."""
    with pytest.raises(InputError, match=f"of 10 rows 15 % are held out.*learn from {message}, or"):
        sets.from_rows("few", kind, odd_one_held_out(kind))


@pytest.mark.parametrize(
    ("kind", "odd", "rest", "held"),
    [
        ("classify", {"label": "b"}, {"label": "a"}, "of the label 'a'"),
        ("multilabel", {"labels": ("a", "b")}, {"labels": ("a",)}, "of the label 'a' or of none"),
        ("multilabel", {"labels": ("a", "b")}, {}, "without a label"),
    ],
)
def test_labels_of_which_too_few_stay(kind: str, odd: Any, rest: Any, held: str) -> None:
    """Each has one text; a form took such a set, and its run refused the rows to learn from."""
    rows = [
        Row(text=f"{name}{end}", **more) for name, more in (("x", odd), ("y", rest)) for end in ".!"
    ]
    with pytest.raises(InputError, match=f"learn from is rows {held}; add rows of other"):
        sets.from_rows("few", kind, rows)


@pytest.mark.parametrize("kind", ["tag", "answer"])
def test_one_row_that_stays_is_too_few(kind: str) -> None:
    rows = [
        Row(tokens=("a", "b"), tags=("O", "B-X")) if kind == "tag" else row(kind, "a", True),
        Row(tokens=("b", "a"), tags=("B-X", "O")) if kind == "tag" else row(kind, "b", True),
    ]
    with pytest.raises(InputError, match=r"of 2 rows 15 % are held out, .* from is one row; add"):
        sets.from_rows("few", kind, rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_takes_the_rows_that_a_form_has_taken(kind: str) -> None:
    """A run checks what is left to learn from once more, without the rows that are held out."""
    draw = random.Random(7)
    refused = []
    for _ in range(200):
        count = draw.randint(2, 12)
        share = draw.choice((0.1, 0.2, 0.5))
        rows = [
            row(kind, f"text {draw.randint(0, 9)}", draw.random() < share) for _ in range(count)
        ]
        try:
            made = sets.from_rows("few", kind, rows)
        except InputError as error:
            refused.append(str(error))
            continue
        assert refusal("few", kind, made.train, made.dev) == ""
    assert any("held out" in each for each in refused)
    assert len(refused) < 200


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A good film.", "A good film"),
        ("A good film.", "a GOOD film!"),
        ("A good film.", " A  good\tfilm . "),
        ("\u5f88\u597d\u3002", "\u5f88\u597d\uff01"),
        ("Stra\u00dfe", "STRASSE ..."),
    ],
)
def test_nearly_equal_texts_are_held_out_together(one: str, other: str) -> None:
    assert Row(text=one).group == Row(text=other).group
    assert Row(tokens=tuple(one.split())).group == Row(text=other).group
    rows = [Row(text=f"{n} {text}", label="ab"[n % 2]) for n in range(60) for text in (one, other)]
    train, dev = sets.hold_out(rows)
    assert {each.text.split()[0] for each in train}.isdisjoint(each.text.split()[0] for each in dev)
    assert len(dev) == 18
    assert sets.hold_out(rows) == (train, dev)
    with pytest.raises(InputError, match="the same text, but for capitals, blanks and the"):
        sets.hold_out([Row(text=one, label="a"), Row(text=other, label="b")])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("...", "!"),
        ("\U0001f600", "\U0001f621"),
        ("It cost 3.5", "It cost 35"),
        ("\u0939\u093f", "\u0939"),
        ("caf\u00e9", "cafe"),
    ],
)
def test_texts_that_say_something_else_are_apart(one: str, other: str) -> None:
    """Marks alone are a text; a vowel sign at the end is a letter's, and no punctuation."""
    assert Row(text=one).group != Row(text=other).group


def test_shipped_sets_share_no_text_with_the_rows_that_measure() -> None:
    for name in sets.shipped():
        task = sets.load(name)
        assert {each.group for each in task.train}.isdisjoint(each.group for each in task.dev)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Row(text="A good film.", label="a"), Row(text="a GOOD  film", label="b")),
        (Row(tokens=("In", "Oslo", "."), tags=("O", "B-X", "O")), Row(tokens=("in", "oslo"))),
        (Row(text="It rained.", pair="Where?"), Row(text="it rained", pair="where")),
    ],
    ids=["text", "words", "question"],
)
def test_nearly_equal_rows_are_told_as_training_rows(one: Row, other: Row) -> None:
    """What the hold-out keeps together is the same row where a file to measure on has it, too."""
    assert one.same == other.same
    rows = [Row(text=f"text {n}", label="ab"[n % 2]) for n in range(4)]
    changed = [Row(text=each.text.upper() + " !", label=each.label) for each in rows[:3]]
    made = sets.from_rows("few", "classify", rows, [*changed, Row(text="new", label="a")])
    assert "Development rows that are training rows, too: 3 of 4." in made.warnings


def test_another_second_text_makes_another_row() -> None:
    """Both would be held out together, but to learn one says nothing of the other."""
    one, other = (Row(text="A man sleeps.", pair=pair, label="a") for pair in ("So.", "Not so."))
    assert one.group == other.group
    assert one.same != other.same


def rows_of_labels(*counts: int) -> list[Row]:
    return [
        Row(text=f"text {label} {n}", label=f"{label:03}")
        for label, count in enumerate(counts)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("counts", "held", "most"),
    [
        ([1] * 90 + [1000], 164, 164),
        ([1000] + [1] * 90, 164, 164),
        ([1] * 90 + [100] * 10, 164, 17),
        ([1] * 90 + [20], 10, 10),
        ([1] * 90 + [2] * 10, 10, 1),
        ([3] * 50, 22, 1),
        ([2, 1], 1, 1),
    ],
)
def test_labels_of_one_row_stay_and_the_others_make_up_for_them(
    counts: list[int], held: int, most: int
) -> None:
    """A large label gave up to all but one of its rows for those before it that had none to give.

    Or the only row of a label was held out, though another label had more.
    """
    rows = rows_of_labels(*counts)
    train, dev = sets.hold_out(rows)
    assert len(dev) == held
    assert {each.label for each in train} == {each.label for each in rows}
    assert max(Counter(each.label for each in dev).values()) == most
    assert sets.from_rows("few", "classify", rows).dev == tuple(dev)


@pytest.mark.parametrize("kind", ["classify", "multilabel"])
def test_a_set_whose_labels_have_one_row_each_is_refused(kind: str) -> None:
    """Its one held-out row had a label that nothing was learnt of."""
    rows = rows_of_labels(*[1] * 100)
    if kind == "multilabel":
        rows = [Row(text=each.text, labels=(str(each.label),)) for each in rows]
    with pytest.raises(InputError, match=r"few: of 100 rows 15 % are .* add rows of each label"):
        sets.from_rows("few", kind, rows)
    assert sets.from_rows("few", kind, rows, rows[:1]).labels
