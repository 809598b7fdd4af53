"""``diff``: what differs between two models."""

import argparse
import json
from typing import Any

from core_models.cli.arguments import add_json
from core_models.cli.output import Output

HELP = """Show every value in which two models differ.

The list is computed from the values that the models are built from."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("left", metavar="A", help="a published size, a shipped name or a folder")
    parser.add_argument("right", metavar="B", help="another one")
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Compare and print."""
    import core_models as cm

    found = cm.diff(arguments.left, arguments.right)
    if arguments.json:
        output.json(
            {
                "left": arguments.left,
                "right": arguments.right,
                "differences": [{"path": d.path, "left": d.left, "right": d.right} for d in found],
            }
        )
        return 0
    if not found:
        output.line("No difference.")
        return 0
    rows = [[d.path, _value(d.left), _value(d.right)] for d in found]
    output.table([["", arguments.left, arguments.right], *rows])
    return 0


def _value(value: Any) -> str:
    return "-" if value is None else json.dumps(value, ensure_ascii=False)
