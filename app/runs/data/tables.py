"""Tables that visitors send: their first rows, one column as plain text. No Gradio in it."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core_models import InputError

ROWS = 5
"""Rows that are shown."""
_READ = 20_000
"""Rows from which those that are shown are taken."""
_LOOK = 200
"""Rows by which the column of the text is guessed."""
_SHORT = 160
"""Characters of a cell that are shown."""
MOST_TEXT = 100 << 20
"""Bytes of a column as plain text: a packed table may hold much more than it weighs."""
MOST_UNPACKED = 256 << 20
"""Bytes of a Parquet table, unpacked."""
_NAMES = (
    *("text", "content", "body", "document", "article", "sentence"),
    *("文本", "内容", "正文", "句子"),
)
"""Names that a column of text often has, the likeliest first."""


def look(path: Path) -> dict[str, Any]:
    """A table as it was read.

    Returns:
        ``columns``, ``usable`` (whether each holds texts), ``rows`` (cells of some rows from all
        parts of the table, shortened), ``numbers`` (of these rows, from 1), ``of`` (rows among
        which they were chosen), ``more`` (whether the table goes on after them) and ``column``, the
        place of the one that is probably the text.

    Raises:
        InputError: it is damaged, empty, or no column holds texts.
    """
    # Imported late, here and below: the readers of tables are not needed to watch runs.
    from core_models.data import tables  # noqa: PLC0415

    if path.suffix == ".parquet":
        check_unpacked(path)
    columns, found = tables.head(path, _READ + 1)
    if not found:
        raise InputError(f"{path.name} holds no rows.")
    rows, read = found[:_LOOK], found[:_READ]
    places = representative([None] * len(read), ROWS)
    usable = [_holds_texts(row.get(column) for row in rows) for column in columns]
    if not any(usable):
        raise InputError(f"{path.name} has no column of text; it has {', '.join(columns)}.")
    return {
        "columns": columns,
        "usable": usable,
        "rows": [[_shown(read[place].get(column)) for column in columns] for place in places],
        "numbers": tuple(place + 1 for place in places),
        "of": len(read),
        "more": len(found) > len(read),
        "column": _guess(columns, usable, rows),
    }


def representative(labels: Sequence[str | None], most: int) -> list[int]:
    """Places of rows that stand for a table: some of each label, from all its parts, in its order.

    Args:
        labels: of each row; None where there are none.
        most: rows to choose; with more labels than that, the commonest ones have a row.
    """
    places: dict[str | None, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label, []).append(place)
    parts = sorted(places.values(), key=len, reverse=True)
    wanted = [0] * len(parts)
    while sum(wanted) < min(most, len(labels)):
        for number, part in enumerate(parts):
            if wanted[number] < len(part) and sum(wanted) < most:
                wanted[number] += 1
    return sorted(
        part[turn * len(part) // count]
        for part, count in zip(parts, wanted, strict=True)
        for turn in range(count)
    )


def _guess(
    columns: Sequence[str], usable: Sequence[bool], rows: Sequence[Mapping[str, Any]]
) -> int:
    """A column with a usual name, else the one with the longest texts."""
    lowered = [column.strip().lower() for column in columns]
    for name in _NAMES:
        if name in lowered and usable[lowered.index(name)]:
            return lowered.index(name)

    def letters(place: int) -> int:
        cells = (_shown(row.get(columns[place]), most=10_000) for row in rows)
        return sum(letter.isalpha() for cell in cells for letter in cell)

    return max((place for place, good in enumerate(usable) if good), key=letters)


def _holds_texts(cells: Iterable[Any]) -> bool:
    found = False
    for cell in cells:
        parts = cell if isinstance(cell, list) else [cell]
        if not all(part is None or isinstance(part, str) for part in parts):
            return False
        found = found or any(part and part.strip() for part in parts)
    return found


def _shown(cell: Any, most: int = _SHORT) -> str:
    text = " ".join(map(str, cell)) if isinstance(cell, list) else "" if cell is None else str(cell)
    return text if len(text) <= most else text[: most - 1] + "…"


def write_text(path: Path, column: str, target: Path) -> dict[str, int]:
    """One column of a table as plain text: a sentence on a line, a blank line between documents.

    Returns:
        ``lines``, ``documents`` and ``bytes``.

    Raises:
        InputError: as the reader of tables, or the column is no text or too long.
    """
    from core_models.data import sources  # noqa: PLC0415

    return write_documents(
        sources.read_documents(sources.Source(paths=(path,), column=column)), target
    )


def write_documents(documents: Iterable[Sequence[str]], target: Path) -> dict[str, int]:
    """Documents as plain text; see :func:`write_text`."""
    found = {"lines": 0, "documents": 0, "bytes": 0}
    # A name of its own: a class may send the same table at once.
    part = target.with_name(f"{target.stem}.{secrets.token_hex(4)}.part")
    try:
        with part.open("wb") as file:
            for document in documents:
                text = "\n".join([*document, "", ""]).encode()
                found["lines"] += len(document)
                found["documents"] += 1
                found["bytes"] += len(text)
                if found["bytes"] > MOST_TEXT:
                    raise InputError(
                        f"As plain text this is more than {MOST_TEXT >> 20} MB. Longer ones go "
                        "through the command line: see docs/training.md."
                    )
                file.write(text)
        if found["lines"] < 2:
            raise InputError(
                "There is only one line of text. Put one sentence on each line and a blank line "
                "between documents; a few hundred lines are the least that teaches anything."
            )
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return found


def check_unpacked(path: Path) -> None:
    """Refuse a Parquet table that would fill the memory."""
    from core_models.data.parquet import open_parquet  # noqa: PLC0415

    facts = open_parquet(path).metadata
    unpacked = sum(facts.row_group(n).total_byte_size for n in range(facts.num_row_groups))
    if unpacked > MOST_UNPACKED:
        raise InputError(
            f"{path.name} unpacks to {unpacked >> 20} MB; at most {MOST_UNPACKED >> 20} MB are "
            "allowed. Use a part of it."
        )
