"""``count``: parameters of a published size."""

import argparse

from core_models.cli.arguments import add_json
from core_models.cli.output import Output, whole

HELP = """Count the parameters of a published size, part by part.

The figures are taken from the built module; a tensor with several uses counts once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("name", metavar="NAME", help="a size, such as bert-base-uncased")
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Count and print."""
    import core_models as cm

    values = cm.count(arguments.name).to_json()
    if arguments.json:
        output.json({"name": arguments.name, **values})
        return 0
    rows = []
    for name, value in values.items():
        parts = {f"head {k}": v for k, v in value.items()} if name == "heads" else {name: value}
        rows += [[part.replace("_", " "), whole(number)] for part, number in parts.items()]
    output.table(rows, right=(1,))
    return 0
