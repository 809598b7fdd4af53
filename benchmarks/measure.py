"""Timing and printing that the benchmarks share."""

import argparse
import json
import math
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True)
class Table:
    """One table of figures with the words that explain it."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str

    def to_markdown(self) -> str:
        """The table as Markdown, first column left and the others right."""
        lines = [f"**{self.title}**", "", _row(self.columns)]
        lines.append(_row(("---", *("---:" for _ in self.columns[1:]))))
        lines += [_row(row) for row in self.rows]
        return "\n".join([*lines, "", self.note])


@dataclass(frozen=True)
class Report:
    """What one benchmark found."""

    tables: list[Table]
    environment: list[str]
    """Processor, cores, versions."""
    figures: list[dict[str, float | int | str]] = field(default_factory=list)
    """The same figures unrounded, for programs."""
    command: str = ""
    """The command line that was run (`measured`)."""

    def to_markdown(self) -> str:
        """Tables, then command and machine."""
        parts = [table.to_markdown() for table in self.tables]
        return "\n\n".join([*parts, f"`{self.command}`: {', '.join(self.environment)}."]) + "\n"


def interleaved(
    contestants: Mapping[str, Callable[[], object]],
    *,
    seconds: float,
    fewest: int = 10,
    warm: int = 3,
) -> dict[str, list[float]]:
    """Time contestants in turn, so that a change of the machine's mood meets all of them.

    Each round runs every contestant once, in alternating order.

    Args:
        contestants: what to run, by name.
        seconds: how long to measure; at least ``fewest`` rounds are run whatever this says.
        fewest: smallest number of rounds.
        warm: runs of each before the first round.

    Returns:
        Seconds of each run, by name.
    """
    for run in contestants.values():
        for _ in range(warm):
            run()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants)
    end = time.perf_counter() + seconds
    while len(times[order[0]]) < fewest or time.perf_counter() < end:
        for name in order:
            start = time.perf_counter()
            contestants[name]()
            times[name].append(time.perf_counter() - start)
        order.reverse()
    return times


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median over rounds of ours / theirs: each round's two runs saw the same machine."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile: the smallest value that ``share`` of all values do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(round(share * len(ranked), 9)) - 1)]


def environment(*packages: str, threads: int | None = None) -> list[str]:
    """Processor, cores, Python and the versions that matter."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = [_processor(), f"{cores} cores", f"Python {platform.python_version()}"]
    if threads is not None:
        found.append(f"{threads} torch threads")
    return found + [f"{name} {version(name)}" for name in packages]


def command(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> str:
    """The command line that gives these arguments: the program's name, and what is no default."""
    words = []
    for name, value in vars(arguments).items():
        if name == "json" or value == parser.get_default(name):
            continue
        words.append(("--no-" if value is False else "--") + name.replace("_", "-"))
        if not isinstance(value, bool):
            words += map(str, value if isinstance(value, list) else [value])
    return f"{parser.prog} {shlex.join(words)}".rstrip()


def measured(
    measure: Callable[[argparse.Namespace], Report],
    parser: argparse.ArgumentParser,
    arguments: argparse.Namespace,
) -> Report:
    """What a benchmark finds, with the command that was run."""
    return replace(measure(arguments), command=command(parser, arguments))


def run_main(
    measure: Callable[[argparse.Namespace], Report], parser: argparse.ArgumentParser
) -> Report:
    """The command line of a benchmark: measure, then print Markdown or JSON."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    report = measured(measure, parser, arguments)
    text = json.dumps(asdict(report), indent=2) + "\n" if arguments.json else report.to_markdown()
    sys.stdout.write(text)
    return report


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
