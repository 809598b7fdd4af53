"""Whether there is anything to learn from rows, and whether two tables of a set agree."""

from collections.abc import Sequence

from core_models.errors import InputError
from core_models.tasks.rows import Row, separators
from core_models.tasks.tables import Table

MOST_LABELS = 200


def labels_of(kind: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """All labels of rows in order, or all tags with ``O`` first."""
    if kind == "tag":
        return tuple(sorted({t for row in rows for t in row.tags}, key=lambda t: (t != "O", t)))
    return tuple(sorted({label for row in rows for label in each_label(row)}))


def each_label(row: Row) -> tuple[str, ...]:
    """The row's label or labels."""
    return row.labels if row.label is None else (row.label,)


def check_labels(name: str, kind: str, rows: Sequence[Row]) -> None:
    """InputError where there is nothing to learn from rows.

    Args:
        name: of the set.
        kind: of :data:`~core_models.tasks.rows.KINDS`.
        rows: to learn from.
    """
    if len(rows) < 2:
        there = "only one row" if rows else "no row"
        raise InputError(f"{name} has {there}; at least 2 are needed.")
    labels = labels_of(kind, rows)
    if kind == "multilabel" and len(labels) < 2:
        there = f"only the label {labels[0]!r}" if labels else "no label"
        raise InputError(f"{name} has {there}; at least two labels are needed.")
    if kind in ("classify", "pair", "multilabel", "tag"):
        if len(labels) < 2:
            raise InputError(
                f"{name}: every row has the label {labels[0]!r}; at least two labels are needed."
            )
        if len(labels) > MOST_LABELS:
            raise InputError(
                f"{name} has {len(labels)} different labels; at most {MOST_LABELS} are allowed. "
                "Is this the column of the labels?"
            )
    scores = {row.score for row in rows}
    if kind == "regress" and len(scores) < 2:
        raise InputError(f"{name}: every row has the score {rows[0].score}; they must differ.")
    if kind == "answer" and not any(row.answers for row in rows):
        raise InputError(f"{name}: no question has an answer; at least one is needed.")


def lacking(kind: str, rows: Sequence[Row]) -> str:
    """What rows are so that nothing can be learnt of them, and a cure; "" = something can.

    A run checks the rows to learn from once more by themselves: what :func:`check_labels` refuses
    there must be told here.
    """
    if len(rows) < 2:
        return "one row; add rows"
    labels = labels_of(kind, rows)
    if kind in ("classify", "pair", "tag") and len(labels) < 2:
        return f"rows of the label {labels[0]!r}; add rows of other labels"
    if kind == "multilabel" and len(labels) < 2:
        held = f"of the label {labels[0]!r} or of none" if labels else "without a label"
        return f"rows {held}; add rows of other labels"
    if kind == "regress" and len({row.score for row in rows}) < 2:
        return f"rows of the score {rows[0].score}; add rows of other scores"
    if kind == "answer" and not any(row.answers for row in rows):
        return "questions without an answer; add questions that have one"
    return ""


def check_separator(
    table: Table, dev: Table, column: str, train: Sequence[Row], held: Sequence[Row]
) -> None:
    """InputError where labels of the second table stand behind each other with another sign.

    Its labels were read with the sign of the first: one that is known is whole, whatever it holds.
    """
    signs, own = separators(table.records, column), separators(dev.records, column)
    if not signs or signs[0] in own:
        return
    known = set(labels_of("multilabel", train))
    for row in held:
        for label in row.labels:
            if label not in known and (other := next((s for s in own if s in label), None)):
                raise InputError(
                    f"{dev.name}, row {row.number}: several labels in a cell seem to have "
                    f"{other!r} between them: {label!r}; in {table.name} it is {signs[0]!r}. Use "
                    "one sign in both tables."
                )
