"""Rows that are held out: what is left to learn from, and texts that are nearly the same."""

import random
from collections.abc import Sequence

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


@pytest.mark.parametrize("rest", [("a",), ()])
def test_several_labels_of_which_too_few_stay(rest: tuple[str, ...]) -> None:
    """A form took a set whose rows to learn from have one label, and its run refused it."""
    for odd in range(4):
        rows = [Row(text=f"text {n}", labels=("a", "b") if n == odd else rest) for n in range(4)]
        if not any("b" in each.labels for each in sets.hold_out(rows)[0]):
            held = "of the label 'a' or of none" if rest else "without a label"
            with pytest.raises(InputError, match=f"learn from is rows {held}; add rows of other"):
                sets.from_rows("few", "multilabel", rows)
            return
    raise AssertionError("no such split; choose other rows")


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
