"""Labelled sets for fine-tuning: the shipped ones, and those that people bring."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core_models.errors import InputError
from core_models.tasks import tables
from core_models.tasks.bio import NAMELESS, as_bio, beginnings, in_another_scheme, is_bio, type_of
from core_models.tasks.checks import (
    check_labels,
    check_separator,
    each_label,
    labels_of,
    lacking,
)
from core_models.tasks.columns import Guess, guess
from core_models.tasks.rows import NEEDED, Row, in_lists, read_row, separators
from core_models.tasks.tables import Table
from core_models.tasks.words import is_chinese

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "primer" / "tasks"
_UNEVEN = 5
"""A label is rare when the commonest is this many times as frequent."""
_SPLIT_SEED = 1


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """What a set holds, for people."""

    rows: int
    labels: dict[str, int]
    """Rows of each label (a row with several counts for each of them); for tags whole entities, or
    words where the tags are no entities."""
    unanswered: int
    """Questions that their context does not answer."""
    scores: tuple[float, float] | None
    """Lowest and highest score."""
    mean_length: float
    """Words, or for Chinese characters, of a row."""


@dataclass(frozen=True, kw_only=True)
class TaskSet:
    """Rows to learn from and rows to measure on."""

    name: str
    kind: str
    train: tuple[Row, ...]
    dev: tuple[Row, ...]
    labels: tuple[str, ...] = ()
    """Labels, or tags with ``O`` first; empty for scores and answers."""
    scale: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest score of the training rows."""
    chinese: bool = False
    warnings: tuple[str, ...] = ()
    """What does not forbid training but should be known."""

    @property
    def entities(self) -> bool:
        """Whether the tags are spans in BIO (names, chunks), not one class per word."""
        return self.kind == "tag" and all(is_bio(label) for label in self.labels)

    def statistics(self, rows: Sequence[Row] | None = None) -> Statistics:
        """Counts of some rows of this set, by default those for training."""
        rows = self.train if rows is None else rows
        scores = [row.score for row in rows if row.score is not None]
        lengths = [_length(row, self.chinese) for row in rows]
        return Statistics(
            rows=len(rows),
            labels=_counts(rows, self.kind, self.entities),
            unanswered=sum(self.kind == "answer" and not row.answers for row in rows),
            scores=(min(scores), max(scores)) if scores else None,
            mean_length=sum(lengths) / max(len(lengths), 1),
        )


def shipped() -> tuple[str, ...]:
    """Names of the sets of the Primer."""
    return tuple(sorted(p.name.removesuffix(".train.jsonl") for p in SHIPPED.glob("*.train.jsonl")))


def load(
    name: str | Path,
    dev: str | Path | None = None,
    *,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> TaskSet:
    """A shipped set by name, or a set of files.

    Args:
        name: of a shipped set, or a file that :func:`tables.read` reads.
        dev: a file with the rows to measure on; None holds out 15 % of the rows.
        kind: of :data:`~core_models.tasks.rows.KINDS`; None = guessed from columns and values.
        columns: role (see :data:`~core_models.tasks.rows.ROLES`) to column; roles that are left
            out are guessed.

    Raises:
        InputError: with the row and what is wrong there.
    """
    if str(name) in shipped():
        if dev is not None or kind is not None or columns:
            raise InputError(
                f"{name} is a shipped set with rows of its own to measure on; dev, kind and "
                "columns are for files."
            )
        train = tables.read(SHIPPED / f"{name}.train.jsonl")
        return build(train, tables.read(SHIPPED / f"{name}.dev.jsonl"), title=str(name))
    if not Path(name).exists():
        if isinstance(name, Path) or tables.is_file_name(name):
            raise InputError(f"There is no file {name}.")
        raise InputError(
            f"No labelled set {str(name)!r}. By name: {', '.join(shipped())}. Otherwise give a "
            ".jsonl, .csv or .tsv file."
        )
    table = tables.read(name)
    other = None if dev is None else tables.read(dev)
    return build(table, other, kind=kind, columns=columns, title=Path(name).name)


def build(
    table: Table,
    dev: Table | None = None,
    *,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    title: str | None = None,
) -> TaskSet:
    """A set from tables; arguments and errors as in :func:`load`."""
    guessed = guess(table, kind=kind, columns=columns)
    train = rows_of(table, guessed)
    held = None if dev is None else rows_of(dev, guessed, first=table)
    if dev is not None and held is not None and guessed.kind == "multilabel":
        check_separator(table, dev, guessed.columns["labels"], train, held)
    made = from_rows(title or table.name, guessed.kind, train, held)
    named = guessed.columns.get("label")
    if named not in made.labels:
        return made
    note = (
        f"The column of labels is called {named!r}, as one of its labels is. Where the first row "
        "does not name the columns, it is not learnt from: add a row of names above it."
    )
    return replace(made, warnings=(note, *made.warnings))


def from_rows(
    name: str, kind: str, train: Sequence[Row], dev: Sequence[Row] | None = None
) -> TaskSet:
    """Check rows and put them together; without ``dev`` 15 % are held out.

    Names in BIOES, BILOU or BMES are rewritten in BIO, so that they are measured as whole names.

    Raises:
        InputError: there is nothing to learn from the rows, or from those that are not held out.
    """
    tags = {tag for row in (*train, *(dev or ())) for tag in row.tags}
    renamed = kind == "tag" and in_another_scheme(tags)
    if renamed:
        train = [_in_bio(row) for row in train]
        dev = None if dev is None else [_in_bio(row) for row in dev]
    check_labels(name, kind, train)
    if dev is not None and not dev:
        raise InputError(f"{name} has no row to measure on.")
    if dev is None:
        train, dev = hold_out(train)
        if stays := lacking(kind, train):
            raise InputError(
                f"{name}: of {len(train) + len(dev)} rows 15 % are held out, and all that stays "
                f"to learn from is {stays}, or give a file to measure on."
            )
        measured = labels_of(kind, dev)
        if measured and set(measured).isdisjoint(labels_of(kind, train)):
            raise InputError(
                f"{name}: of {len(train) + len(dev)} rows 15 % are held out, and none of their "
                "labels is left to learn from; add rows of each label, or give a file to measure "
                "on."
            )
    labels = labels_of(kind, [*train, *dev])
    scores = [row.score for row in train if row.score is not None]
    made = TaskSet(
        name=name,
        kind=kind,
        train=tuple(train),
        dev=tuple(dev),
        labels=labels,
        scale=(min(scores), max(scores)) if scores else (0.0, 1.0),
        chinese=is_chinese(row.text or "".join(row.tokens) for row in train),
    )
    notes = ["The tags mark ends of names, too; they are read as B- and I- alone."] * renamed
    return replace(made, warnings=(*notes, *_warnings(made)))


def rows_of(table: Table, guessed: Guess, first: Table | None = None) -> list[Row]:
    """Every record as an example.

    Args:
        table: with the records.
        guessed: its kind and columns.
        first: another table of the set, whose sign between several labels holds for this one, too.

    Raises:
        InputError: a column is missing, or a record cannot be an example; names the first row.
    """
    found = []
    for role in NEEDED[guessed.kind]:
        if guessed.columns[role] not in table.columns:
            there = ", ".join(repr(column) for column in table.columns)
            raise InputError(
                f"{table.name} has no column {guessed.columns[role]!r}; it has {there}."
            )
    records: Sequence[Mapping[str, Any]] = table.records
    if guessed.kind == "multilabel":
        column = guessed.columns["labels"]
        signs = separators(first.records, column) if first is not None else ()
        between = next(iter(signs or separators(records, column)), None)
        records = in_lists(records, column, between)
    for number, record in zip(table.numbers, records, strict=True):
        try:
            found.append(read_row(guessed.kind, record, guessed.columns, number))
        except InputError as error:
            raise InputError(f"{table.name}, row {number}: {error}.") from None
    return found


def hold_out(rows: Sequence[Row], share: float = 0.15) -> tuple[list[Row], list[Row]]:
    """Split rows into (training, development), the same each time.

    Questions on one context stay together, and so do texts that are equal but for capitals, blanks
    and the punctuation at their end (:attr:`Row.group`); labels keep their shares as well as that
    allows. A label that has one text is not held out, where another has more.

    Raises:
        InputError: all rows have one text.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    if len(groups) < 2:
        raise InputError(
            "All rows have the same text, but for capitals, blanks and the punctuation at its end; "
            "rows to measure on need a text of their own."
        )
    kinds: dict[str | None, list[list[Row]]] = {}
    often = Counter(label for row in rows for label in each_label(row))
    for group in groups.values():
        labels = (label for row in group for label in each_label(row))
        rarest = min(labels, key=lambda label: (often[label], label), default=None)
        kinds.setdefault(rarest, []).append(group)
    # A label of one text stays to be learnt; others make up for it, with half of theirs at most.
    several = sum(len(part) for part in kinds.values() if len(part) > 1)
    share *= len(groups) / max(several, 1)
    rng = random.Random(_SPLIT_SEED)
    train: list[list[Row]] = []
    dev: list[list[Row]] = []
    carry = 0.5  # labels share what rounding leaves over
    for label in sorted(kinds, key=str):
        part = kinds[label]
        rng.shuffle(part)
        if len(part) > 1:
            carry += share * len(part)
        count = min(int(carry), len(part) // 2)
        carry -= count
        dev += part[:count]
        train += part[count:]
    if not dev:  # too few for a share: one text of the label that has most
        dev.append(max(kinds.values(), key=len)[-1])
        train.remove(dev[0])
    return [r for group in train for r in group], [r for group in dev for r in group]


def _warnings(made: TaskSet) -> list[str]:
    found = []
    counts = _counts(made.train, made.kind, made.entities)
    if made.kind not in ("tag", "multilabel") and counts:
        common, rare = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
        if counts[common] >= _UNEVEN * counts[rare]:
            found.append(
                f"The labels are unbalanced: {counts[common]} rows of {common!r}, "
                f"{counts[rare]} of {rare!r}. Look at macro-F1, not at accuracy."
            )
    folded = Counter(label.casefold() for label in made.labels)
    if twins := [label for label in made.labels if folded[label.casefold()] > 1]:
        found.append(
            f"The labels {twins[0]!r} and others differ only in capitals; they count as different."
        )
    known = set(labels_of(made.kind, made.train))
    unseen = [label for label in made.labels if label not in known]
    if unseen:
        found.append(f"No training row has the label {unseen[0]!r}; it cannot be learnt.")
    same = {row.same for row in made.train}
    if shared := sum(row.same in same for row in made.dev):
        found.append(f"Development rows that are training rows, too: {shared} of {len(made.dev)}.")
    if made.entities and any(label in ("B", "I") for label in made.labels):
        found.append(
            f"The tags B and I name no type: whole stretches are measured, all of one type, "
            f"{NAMELESS!r}."
        )
    begun = [tag for row in made.train for tag in beginnings(row.tags)] if made.entities else []
    if stray := sum(tag.startswith("I") for tag in begun):
        found.append(f"Names that begin with an I- tag ({stray}) are read as if it were B-.")
    if made.kind == "tag" and all(label.lstrip("-").isdecimal() for label in made.labels):
        found.append(
            "The tags are numbers, which do not say where names begin and end, so each word is "
            "measured by itself; for whole names write tags such as B-PER, I-PER and O."
        )
    if len(made.dev) < 50:
        found.append(f"Few rows to measure on ({len(made.dev)}): one row is a large difference.")
    return found


def _in_bio(row: Row) -> Row:
    return replace(row, tags=tuple(map(as_bio, row.tags)))


def _counts(rows: Sequence[Row], kind: str, entities: bool) -> dict[str, int]:
    if kind != "tag":
        return dict(sorted(Counter(label for row in rows for label in each_label(row)).items()))
    tags = [tag for row in rows for tag in row.tags]
    if entities:
        tags = [type_of(tag) for row in rows for tag in beginnings(row.tags)]
    return dict(sorted(Counter(tags).items()))


def _length(row: Row, chinese: bool) -> int:
    if row.tokens:
        return len(row.tokens)
    text = f"{row.text} {row.pair or ''}"
    return len("".join(text.split())) if chinese else len(text.split())
