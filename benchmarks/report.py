"""Run benchmarks and write their tables into docs/benchmarks.md, between its markers.

``python -m benchmarks.report`` runs all; ``python -m benchmarks.report forward page`` some.
"""

import argparse
import datetime
import importlib
import re
import sys
from pathlib import Path

import torch

from benchmarks.measure import Report, measured

BENCHMARKS: dict[str, tuple[str, list[str]]] = {
    "forward": ("forward", ["--size", "mini"]),
    "forward-base": ("forward", ["--size", "base"]),
    "forward-published": ("forward", ["--size", "published"]),
    "long": ("long", ["--threads", "1", "--seconds", "1"]),
    "page": ("page", []),
    "page-during-run": ("page", ["--during-run"]),
    "page-base": ("page", ["--model", "bert-base-uncased"]),
    "labs": ("labs", []),
    "overview": ("overview", []),
    "training": ("training", ["--bf16"]),
    "trainer": ("trainer", []),
}
"""Name of a part of the document -> module and arguments."""
DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"


def insert(document: str, name: str, report: Report, day: str) -> str:
    """The document with the text between a benchmark's markers replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    found = re.search(f"{re.escape(begin)}.*?{re.escape(end)}", document, re.DOTALL)
    if found is None:
        raise ValueError(f"{DOCUMENT.name} lacks the markers {begin} and {end}")
    text = f"{begin}\n{report.to_markdown()}Measured on {day}.\n{end}"
    return document[: found.start()] + text + document[found.end() :]


def main() -> None:
    """Measure one benchmark after the other; each result is written at once."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(BENCHMARKS), metavar="NAME")
    names = parser.parse_args().names
    if unknown := sorted(set(names) - set(BENCHMARKS)):
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    day = datetime.date.today().isoformat()
    threads = torch.get_num_threads()
    for name in names:
        torch.set_num_threads(threads)  # a part may have set its own
        module_name, options = BENCHMARKS[name]
        module = importlib.import_module(f"benchmarks.{module_name}")
        parser = module.build_parser()
        report = measured(module.measure, parser, parser.parse_args(options))
        sys.stdout.write(report.to_markdown() + "\n")
        DOCUMENT.write_text(insert(DOCUMENT.read_text("utf-8"), name, report, day), "utf-8")


if __name__ == "__main__":
    main()
