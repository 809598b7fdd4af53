"""Which column of a table holds what, and so what the table asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core_models.errors import InputError
from core_models.tasks.rows import KINDS, NEEDED, OPTIONAL, ROLES, holds_lists
from core_models.tasks.tables import Table


@dataclass(frozen=True)
class Guess:
    """What a table seems to hold."""

    kind: str
    columns: dict[str, str]
    """Role to column."""


def guess(
    table: Table, *, kind: str | None = None, columns: Mapping[str, str] | None = None
) -> Guess:
    """The kind of a table and its columns, as far as they are not given.

    Raises:
        InputError: a column that was named does not exist, or none fits; lists the columns.
    """
    there = ", ".join(repr(column) for column in table.columns)
    if kind is not None and kind not in KINDS:
        raise InputError(f"No kind {kind!r} of task; allowed are {', '.join(KINDS)}.")
    found = dict(columns or {})
    for role, column in found.items():
        if role not in ROLES:
            raise InputError(f"No role {role!r} of a column; allowed are {', '.join(ROLES)}.")
        if column not in table.columns:
            raise InputError(f"{table.name} has no column {column!r}; it has {there}.")
    by_name = {column.lower(): column for column in table.columns}
    if (several := _several(table, by_name, found, kind)) is not None:
        found["labels"] = several
        kind = kind or "multilabel"
    for role, names in ROLES.items():
        free = [by_name[n] for n in names if n in by_name and by_name[n] not in found.values()]
        if role not in found and free and role != "labels":
            found[role] = free[0]
    for together in ({"tokens", "tags"}, {"context", "question"}):
        if not together <= found.keys():  # a lone "labels" or "query" means something else
            found = {r: c for r, c in found.items() if r not in together or r in (columns or {})}
    found = _by_values(table, found, labelled=kind in ("classify", "pair"))
    order = ("tag", "answer", "multilabel", "pair", "regress", "classify")
    fitting = [k for k in order if _fits(k, found)]
    if kind is None and "regress" in fitting and "score" in (columns or {}):
        kind = "regress"
    if kind is None and fitting:
        kind = fitting[0]
    if kind is None or not _fits(kind, found):
        lacking = [r for r in NEEDED[kind or "classify"] if r not in found]
        raise InputError(
            f"{table.name}: no column for {' and '.join(lacking)}; it has {there}. "
            "Say which column holds what."
        )
    used = {*NEEDED[kind], *OPTIONAL.get(kind, ())}
    return Guess(kind, {role: column for role, column in found.items() if role in used})


def _several(
    table: Table, by_name: Mapping[str, str], found: Mapping[str, str], kind: str | None
) -> str | None:
    """The column of several labels: where they are wanted, or one by a usual name holds lists."""
    if kind not in (None, "multilabel") or "labels" in found:
        return found.get("labels")
    names = [by_name[n] for n in ROLES["labels"] if n in by_name]
    named = [column for column in names if column not in found.values()]
    if kind == "multilabel":
        return next(iter(named), None)
    if any(column in ROLES[role] for role in ("tokens", "context") for column in by_name):
        return None
    return next((column for column in named if holds_lists(table.records[:500], column)), None)


def _by_values(table: Table, found: dict[str, str], *, labelled: bool) -> dict[str, str]:
    """Fill text, label and score from what the other columns hold.

    ``labelled``: labels are wanted, also where they look like a measure.
    """
    if {"tokens", "tags"} <= found.keys() or {"context", "question"} <= found.keys():
        return found
    found = dict(found)
    sample = table.records[:500]
    rest = [c for c in table.columns if c not in found.values()]
    widths = {c: sum(len(str(r.get(c) or "")) for r in sample) / len(sample) for c in rest}
    if "text" not in found and rest and max(widths.values()) >= 1:
        found["text"] = max(rest, key=widths.__getitem__)
        rest.remove(found["text"])
    if not {"label", "labels", "score"} & found.keys():
        few = [c for c in rest if len({str(r.get(c)) for r in sample}) <= max(2, len(sample) // 2)]
        measures = [c for c in rest if _is_measure(sample, c)]
        if few:
            found["label"] = min(few, key=lambda c: len({str(r.get(c)) for r in sample}))
        elif measures:
            found["score"] = measures[0]
    looks = "label" in found and not labelled and _is_measure(sample, found["label"])
    if "score" not in found and looks:
        found["score"] = found.pop("label")
    return found


def _is_measure(sample: Sequence[Mapping[str, Any]], column: str) -> bool:
    """Whether a column holds numbers that are not just names of classes."""
    try:
        numbers = {float(str(record.get(column))) for record in sample}
    except ValueError:
        return False
    return len(numbers) > 2 and any(not number.is_integer() for number in numbers)


def _fits(kind: str, columns: Mapping[str, str]) -> bool:
    return all(role in columns for role in NEEDED[kind])
