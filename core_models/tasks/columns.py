"""Which column of a table holds what, and so what the table asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core_models.errors import InputError
from core_models.tasks.rows import KINDS, NEEDED, ROLES
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
    for role, names in ROLES.items():
        free = [by_name[n] for n in names if n in by_name and by_name[n] not in found.values()]
        if role not in found and free:
            found[role] = free[0]
    for together in ({"tokens", "tags"}, {"context", "question"}):
        if not together <= found.keys():  # a lone "labels" or "query" means something else
            found = {r: c for r, c in found.items() if r not in together or r in (columns or {})}
    found = _by_values(table, found, labelled=kind in ("classify", "pair"))
    fitting = [k for k in ("tag", "answer", "pair", "regress", "classify") if _fits(k, found)]
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
    used = {*NEEDED[kind], *(("text_b",) if kind == "regress" else ()), "start"}
    return Guess(kind, {role: column for role, column in found.items() if role in used})


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
    if "label" not in found and "score" not in found:
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
