"""``models``: the checkpoints that can be loaded by name."""

import argparse

from core_models.cli.arguments import add_json
from core_models.cli.output import Output, whole

HELP = "List the models that can be loaded by name."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Print the list."""
    import core_models as cm

    found = cm.models()
    if arguments.json:
        output.json(
            [
                {
                    "name": info.name,
                    "family": info.family,
                    "title": info.title,
                    "description": info.description,
                    "heads": list(info.heads),
                    "parameters": info.parameters,
                    "folder": str(info.folder),
                }
                for info in found
            ]
        )
        return 0
    if not found:
        output.line("No model is installed: assets/models is empty.")
        return 0
    header = ["name", "family", "parameters", "heads", "description"]
    rows = [
        [info.name, info.family, whole(info.parameters), " ".join(info.heads), info.description]
        for info in found
    ]
    output.table([header, *rows], right=(2,))
    return 0
