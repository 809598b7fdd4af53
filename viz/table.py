"""Texts of tables that a spreadsheet opens without running anything."""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def guard_cell(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula.

    Source: OWASP, "CSV Injection" (a cell that begins with = + - @, tab or carriage return).
    Spaces in front do not protect: some programs trim them.
    """
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA_STARTS) else text
