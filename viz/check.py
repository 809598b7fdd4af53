"""What a picture cannot be made of is refused: what was given, and what it needs.

Python's own errors for it, such as "max() arg is an empty sequence", name neither. This package
does not know ``InputError`` of ``core_models``, which is a ValueError, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized


def something(what: str, values: Sized) -> None:
    """Raise ValueError where there is nothing to draw."""
    if not len(values):
        raise ValueError(f"there is nothing to draw; give at least one {what}")


def one_each(count: int, what: str, /, **lists: Sized) -> None:
    """Raise ValueError unless every list, by its name, has one value for each of so many."""
    for name, values in lists.items():
        if len(values) != count:
            raise ValueError(
                f"{name} has {len(values)} values; give one for each {what}, {count} in all"
            )


def square(count: int, what: str, name: str, rows: Sequence[Sized]) -> None:
    """Raise ValueError unless there is a row for each of so many, with one value for each."""
    one_each(count, what, **{name: rows})
    one_each(count, what, **{f"row {n} of {name}": row for n, row in enumerate(rows)})


def among(name: str, value: object, allowed: Iterable[object]) -> None:
    """Raise ValueError unless a value is one of those that are allowed."""
    known = list(allowed)
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(str, known))}")


def within(name: str, value: int, first: int, last: int) -> None:
    """Raise ValueError unless a number lies between two others."""
    if not first <= value <= last:
        raise ValueError(f"{name} is {value}; it must lie between {first} and {last}")
