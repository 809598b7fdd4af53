"""Gates: what has to survive, at a short size in the suite and at full size in a soak.

A test that takes the fixture ``gate`` draws its cases from it; ``make soak`` runs all of them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest


@dataclass
class Gate:
    """The cases of one test; ``share``, ``seed`` and ``only`` are options of the command line."""

    name: str
    share: float | None
    """Of the full figure; None = the suite's short form."""
    seed: int
    only: int | None
    """The one case to run again."""
    case: int = 0
    done: int = 0
    asked: int = 0

    @property
    def short(self) -> bool:
        """Whether this is the suite's short form, or one case of it that is run again."""
        return self.share is None

    def cases(self, short: int, full: int) -> Iterator[Random]:
        """A source of choices for each case, the same for the same seed and number."""
        self.asked = full
        for case in range(self._count(short)) if self.only is None else (self.only,):
            self.case = case
            yield Random(f"{self.seed} {self.name} {case}")
            self.done += 1

    def size(self, short: int, full: int) -> int:
        """How many there are where they do not stand alone, for example questions of threads."""
        self.asked = full
        self.done = self._count(short)
        return self.done

    def random(self) -> Random:
        """A source of choices for all cases."""
        return Random(f"{self.seed} {self.name}")

    def _count(self, short: int) -> int:
        return short if self.share is None else max(short, math.ceil(self.asked * self.share))

    def replay(self, node: str) -> str:
        """The command that runs the failed case again."""
        size = "" if self.share is None else f" --soak {self.share:g}"
        case = f" --case {self.case}" if self.case else ""
        return f"python -m pytest '{node}'{size} --seed {self.seed}{case}"


def table(reports: list[pytest.TestReport]) -> list[str]:
    """What the gates ran, as rows of Markdown."""
    lines = ["| gate | asked | run | seconds |", "| --- | ---: | ---: | ---: |"]
    for report in reports:
        found = dict(report.user_properties)
        if "asked" in found:
            name = report.nodeid.partition("::test_")[2].replace("_", " ")
            failed = " (failed)" if report.failed else ""
            counted = f"{found['asked']:,} | {found['run']:,}{failed}"
            lines.append(f"| {name} | {counted} | {report.duration:.0f} |")
    return lines
