"""``count``: parameters and operations of a model."""

import argparse
from typing import Any

from core_models.cli.arguments import add_json, positive
from core_models.cli.output import Output, whole

HELP = """Count the parameters of a model, part by part, and its operations.

Parameters are taken from the built module; a tensor with several uses counts once. Operations are
those of one sequence of --length tokens, a multiply-add counting as two."""
LENGTH = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("name", metavar="NAME", help="a published size, a shipped name or a folder")
    parser.add_argument(
        "--length",
        type=positive,
        default=LENGTH,
        metavar="L",
        help="tokens of the sequence whose operations are counted (default: %(default)s)",
    )
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Count and print."""
    import core_models as cm

    found = cm.count(arguments.name)
    values, flops = found.to_json(), found.flops(arguments.length).to_json()
    if arguments.json:
        output.json({"name": arguments.name, **values, "flops": flops})
        return 0
    output.table(_rows(values), right=(1,))
    output.line()
    tokens = "1 token" if arguments.length == 1 else f"{arguments.length} tokens"
    output.line(f"Operations of one sequence of {tokens}")
    output.table(_rows({k: v for k, v in flops.items() if k != "length"}), right=(1,))
    return 0


def _rows(values: dict[str, Any]) -> list[list[str]]:
    rows = []
    for name, value in values.items():
        parts = {f"head {k}": v for k, v in value.items()} if name == "heads" else {name: value}
        rows += [[part.replace("_", " "), whole(round(number))] for part, number in parts.items()]
    return rows
