"""Labelled examples, and how a record becomes one."""

import ast
import contextlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core_models.errors import InputError
from core_models.tokenizer import MAX_CHARACTERS

KINDS = ("classify", "pair", "multilabel", "regress", "tag", "answer")
"""A label of a text, a label of two, any number of labels, a score, a tag for each word, an answer
in a text."""

ROLES: dict[str, tuple[str, ...]] = {
    "text": ("text", "text_a", "sentence", "sentence1", "premise", "review", "question1"),
    "text_b": ("text_b", "pair", "sentence2", "hypothesis", "question2"),
    "label": ("label", "class", "category", "sentiment", "topic", "gold_label"),
    "labels": ("labels", "label", "tags", "categories", "topics", "genres"),
    "score": ("score", "similarity", "rating"),
    "tokens": ("tokens", "words"),
    "tags": ("tags", "ner_tags", "labels"),
    "context": ("context", "paragraph", "passage"),
    "question": ("question", "query"),
    "answers": ("answers", "answer"),
    "start": ("start", "answer_start"),
}
"""Usual column names of each role, the likeliest first."""

NEEDED = {
    "classify": ("text", "label"),
    "pair": ("text", "text_b", "label"),
    "multilabel": ("text", "labels"),
    "regress": ("text", "score"),
    "tag": ("tokens", "tags"),
    "answer": ("context", "question", "answers"),
}
"""Roles without which a kind cannot be read."""
OPTIONAL = {"regress": ("text_b",), "multilabel": ("text_b",), "answer": ("start",)}
"""Roles that a kind may have besides."""
SEPARATORS = ("|", ";", ",")
"""What may stand between several labels in a cell; the first of them that a set's column holds."""


@dataclass(frozen=True)
class Answer:
    """A stretch of a context."""

    text: str
    start: int
    """First character (code point) in the context."""

    @property
    def end(self) -> int:
        """One after the last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One example; which fields are filled follows from the kind of the set."""

    number: int = 0
    """Row or line in its file."""
    text: str = ""
    """The text; the first of two; the context of a question."""
    pair: str | None = None
    """The second text, or the question."""
    label: str | None = None
    labels: tuple[str, ...] = ()
    """Several labels, or none: all that hold."""
    score: float | None = None
    tokens: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()
    """Right answers of a question; empty where the context does not answer it."""

    @property
    def group(self) -> str:
        """Rows of one group must not be parted between training and development.

        They have the same text, but for capitals, blanks and the punctuation at its end; of two
        texts the first counts, and of a question its context.
        """
        return bare(" ".join(self.tokens) or self.text)

    @property
    def same(self) -> tuple[str, str]:
        """What rows that ask the same have in common: their group and, of two texts, the second."""
        return self.group, bare(self.pair or "")


def bare(text: str) -> str:
    """A text but for capitals, blanks and the punctuation at its end."""
    text = " ".join(text.casefold().split())
    end = len(text)
    while end and (text[end - 1] == " " or unicodedata.category(text[end - 1])[0] == "P"):
        end -= 1
    return text[:end] or text


Reader = Callable[[Mapping[str, Any], Mapping[str, str]], dict[str, Any]]


def read_row(kind: str, record: Mapping[str, Any], columns: Mapping[str, str], number: int) -> Row:
    """The example of one record.

    Args:
        kind: of :data:`KINDS`.
        record: column to value.
        columns: role to column.
        number: of the row, for messages.

    Raises:
        InputError: a value is missing or cannot be read; without the number of the row.
    """
    return Row(number=number, **_READERS[kind](record, columns))


def _labelled(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    label = record.get(columns["label"])
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, list | dict):
        raise InputError(
            f"column {columns['label']!r} holds {_kind(label)}, not one label; choose another "
            "column, or several labels as what it asks"
        )
    if label is None or not str(label).strip() or _hollow(label):
        raise InputError(
            f"column {columns['label']!r} holds no label; write one, or leave the row out"
        )
    return _texts(record, columns) | {"label": str(label).strip()}


def _several(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    value = record.get(columns["labels"])
    if isinstance(value, dict):
        raise InputError(f"column {columns['labels']!r} holds no list of labels: {value!r}")
    items = value if isinstance(value, list) else [] if value is None or _hollow(value) else [value]
    if any(item is None or isinstance(item, list | dict) or _hollow(item) for item in items):
        raise InputError(f"column {columns['labels']!r} has an entry that is no label: {value!r}")
    named = (str(item).strip() for item in items)
    return _texts(record, columns) | {"labels": tuple(sorted({name for name in named if name}))}


def separators(records: Sequence[Mapping[str, Any]], column: str) -> tuple[str, ...]:
    """Those of :data:`SEPARATORS` that stand in cells of a column which spell out no list."""
    cells = [cell for record in records if isinstance(cell := record.get(column), str)]
    texts = [cell for cell in cells if _written(cell) is None]
    return tuple(sign for sign in SEPARATORS if any(sign in text for text in texts))


def in_lists(
    records: Sequence[Mapping[str, Any]], column: str, between: str | None
) -> list[dict[str, Any]]:
    """Records whose cells of several labels are lists.

    A cell is a list already, spells one out, or holds labels with a sign between. An empty cell
    has no label.

    Args:
        records: of a table.
        column: of the labels.
        between: the sign; None = each cell that is no list is one label.
    """
    found = []
    for record in records:
        value = record.get(column)
        if isinstance(value, str):
            listed = _written(value)
            value = listed if listed is not None else value.split(between) if between else [value]
        found.append({**record, column: value})
    return found


def holds_lists(records: Sequence[Mapping[str, Any]], column: str) -> bool:
    """Whether every cell of a column is a list or spells one out; empty ones aside."""
    cells = [cell for record in records if (cell := record.get(column)) not in (None, "")]
    return bool(cells) and all(
        isinstance(_written(cell) if isinstance(cell, str) else cell, list) for cell in cells
    )


def _scored(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    value = record.get(columns["score"])
    try:
        score = float("nan") if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"column {columns['score']!r} holds no number: {value!r}") from None
    if not math.isfinite(score):
        raise InputError(f"column {columns['score']!r} holds no finite number: {value!r}")
    return _texts(record, columns) | {"score": score}


def _texts(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    found = {"text": _text(record, columns["text"])}
    if "text_b" in columns:
        found["pair"] = _text(record, columns["text_b"])
    return found


def _tagged(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    tokens, tags = (_strings(record, columns[role]) for role in ("tokens", "tags"))
    if len(tokens) != len(tags):
        raise InputError(f"tokens {len(tokens)}, tags {len(tags)}; give each token a tag")
    return {"tokens": tokens, "tags": tags}


def _strings(record: Mapping[str, Any], column: str) -> tuple[str, ...]:
    value = record.get(column)
    if isinstance(value, str):
        if re.match(r"\s*\[", value) and re.search(r"'\s+'|\"\s+\"", value):  # as NumPy prints it
            raise InputError(f"column {column!r} has a list without commas: {_shortened(value)}")
        value = written if (written := _written(value)) is not None else value.split()
    if not isinstance(value, list) or not value:
        raise InputError(f"column {column!r} is empty; give a list or words with blanks between")
    found = tuple("" if item is None or _hollow(item) else str(item).strip() for item in value)
    if not all(found):
        raise InputError(f"column {column!r} has an empty entry")
    if any(len(item.split()) > 1 for item in found):
        raise InputError(f"column {column!r} has an entry with a blank inside; split it in two")
    return found


def _question(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    context, question = (_text(record, columns[role]) for role in ("context", "question"))
    if columns["answers"] not in record:
        raise InputError(
            f"there is no {columns['answers']!r}; give an empty list where there is no answer"
        )
    value = record[columns["answers"]]
    if isinstance(value, str) and (written := _written(value)) is not None:
        value = written
    if isinstance(value, str):
        start = record.get(columns.get("start", ""))
        if _hollow(start) or not str(start).strip():
            start = None
        value = [{"text": value, "start": start}] if value.strip() else []
    if isinstance(value, dict):  # the columns of `datasets`: {"text": [...], "answer_start": [...]}
        texts, starts = value.get("text", []), value.get("answer_start", [])
        if not (isinstance(texts, list) and isinstance(starts, list)) or len(texts) != len(starts):
            raise InputError(
                f"column {columns['answers']!r} must hold as many starts as answers: {value!r}"
            )
        value = [{"text": text, "start": start} for text, start in zip(texts, starts, strict=True)]
    if not isinstance(value, list | None):
        raise InputError(f"column {columns['answers']!r} holds no list of answers: {value!r}")
    answers = tuple(_answer(context, item) for item in value or [])
    if record.get("is_impossible") is True and answers:
        raise InputError("is_impossible is true, but there is an answer")
    return {"text": context, "pair": question, "answers": answers}


def _answer(context: str, item: Any) -> Answer:
    if not isinstance(item, Mapping) or not isinstance(item.get("text"), str):
        raise InputError(f"an answer must be an object with text and start, not {item!r}")
    text = item["text"]
    start = item.get("start", item.get("answer_start"))
    if not text.strip():
        raise InputError("an answer is empty; leave the list of answers empty instead")
    if start is None:
        start = context.find(text)
        if start < 0:
            raise InputError(f"the answer {text!r} does not stand in the context")
    try:  # tables of numbers write 12 as 12.0 where another row has none
        whole = int(number) if (number := float(start)).is_integer() else None
    except (TypeError, ValueError, OverflowError):
        whole = None
    if whole is None:
        raise InputError(f"the start of an answer is no whole number: {start!r}")
    start = whole
    if start < 0 or context[start : start + len(text)] != text:
        there = context[max(start, 0) : max(start, 0) + len(text)]
        raise InputError(f"at character {start} the context has {there!r}, not {text!r}")
    return Answer(text, start)


def _text(record: Mapping[str, Any], column: str) -> str:
    value = record.get(column)
    if isinstance(value, list | dict):
        raise InputError(
            f"column {column!r} holds {_kind(value)}, not a text: {_shortened(str(value))}; choose "
            "another column"
        )
    if value is None or not str(value).strip() or _hollow(value):
        raise InputError(f"column {column!r} holds no text; write one, or leave the row out")
    text = str(value)
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"column {column!r} has a text of {len(text):,} characters; at most "
            f"{MAX_CHARACTERS:,} are allowed"
        )
    return text


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else "an object"


def _hollow(value: object) -> bool:
    """Whether a value is what tables of numbers put where nothing is (NaN in JSON Lines)."""
    return isinstance(value, float) and math.isnan(value)


def _written(value: str) -> list[Any] | dict[str, Any] | None:
    """What a cell of CSV spells out: a list or an object, as JSON or as Python prints it."""
    if not re.match(r"\s*[\[{]", value):
        return None
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if isinstance(found := read(value.strip()), list | dict):
                return found
    return None


def _shortened(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:39] + "\u2026")


_READERS: dict[str, Reader] = {
    "classify": _labelled,
    "pair": _labelled,
    "multilabel": _several,
    "regress": _scored,
    "tag": _tagged,
    "answer": _question,
}
