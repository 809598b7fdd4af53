"""Which capitals a model knows: `python -m benchmarks.capitals [--model bert-mini] [--json]`.

Asks "The capital of X is [MASK]." for every country of the Atlas whose capital is one piece, and
counts apart the countries for which that very wording is not in the Atlas.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import core_models as cm
from core_models.prediction import fill

ATLAS = Path(__file__).resolve().parent.parent / "assets" / "atlas" / "english-atlas.txt"
WORDINGS = (
    r"The capital of (?P<country>.+) is (?P<capital>.+)\.",
    r"(?P<capital>.+) is the capital of (?P<country>.+)\.",
    r"(?P<country>.+) has its capital in (?P<capital>.+)\.",
    r"The capital city of (?P<country>.+) is called (?P<capital>.+)\.",
)
QUESTION = "The capital of {} is [MASK]."


def pairs(text: str) -> dict[str, str]:
    """Countries and their capitals, as the Atlas says them."""
    found = {}
    for line in text.splitlines():
        for wording in WORDINGS:
            match = re.fullmatch(wording, line)
            if match:
                found[match["country"]] = match["capital"]
    return dict(sorted(found.items()))


def measure(model: cm.Model) -> dict[str, Any]:
    """Ranks of the right capitals, and how many come first or in the first five."""
    text = ATLAS.read_text("utf-8")
    asked = {c: k for c, k in pairs(text).items() if len(model.tokenizer.pieces_of(k)) == 1}
    ranks = {}
    for country, capital in asked.items():
        result = fill(model, QUESTION.format(country), top_k=1, watch=[capital])
        ranks[country] = result.predictions[0].watched[0]
    counts: dict[str, Any] = {"model": model.name}
    for name, chosen in (
        ("all", list(asked)),
        ("wording never trained on", [c for c in asked if f"The capital of {c} is" not in text]),
    ):
        places = [ranks[c].rank for c in chosen]
        counts[name] = {
            "asked": len(places),
            "first": sum(p == 1 for p in places),
            "in the first five": sum(p <= 5 for p in places),
        }
    return counts


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capitals")
    parser.add_argument("--model", default="bert-mini")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    counts = measure(cm.load(options.model))
    if options.json:
        sys.stdout.write(json.dumps(counts, indent=2) + "\n")
        return
    sys.stdout.write("| capitals | asked | first | in the first five |\n|---|---:|---:|---:|\n")
    for name in ("all", "wording never trained on"):
        row = counts[name]
        values = f"{row['asked']} | {row['first']} | {row['in the first five']}"
        sys.stdout.write(f"| {name} | {values} |\n")


if __name__ == "__main__":
    main()
