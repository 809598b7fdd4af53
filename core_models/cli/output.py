"""Writing results: lines and tables for people, JSON for programs."""

import json
from collections.abc import Sequence
from typing import Any, TextIO


class Output:
    """Standard output, or a stand-in for it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str = "") -> None:
        """Write one line."""
        self._stream.write(text + "\n")

    def json(self, value: Any) -> None:
        """Write one indented JSON document."""
        self.line(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2))

    def json_line(self, value: Any) -> None:
        """Write one line of JSON Lines, and pass it on at once."""
        self.line(json.dumps(value, ensure_ascii=False, allow_nan=False))
        self._stream.flush()

    def table(self, rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
        """Write rows in columns of equal width; columns named in ``right`` align right."""
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [
                cell.rjust(width) if column in right else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            self.line("  ".join(cells).rstrip())


def whole(number: int) -> str:
    """A whole number with thousands marks: 11,170,560."""
    return f"{number:,}"
