"""``train``: one training run, in this process."""

import argparse
import contextlib
import sys
from pathlib import Path

from core_models.cli.arguments import add_json
from core_models.cli.output import Output

HELP = """Train as a run folder's config.json says; the same as python -m core_models.training.

Metrics, checkpoints and the log are written into the folder of the file. A run that was stopped
goes on where it was; a file named "stop" in the folder stops it after the current step.
--preview and --estimate print what it would read and need as JSON, and train nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("config", metavar="CONFIG", help="config.json of a run, or a recipe")
    parser.add_argument("--run", metavar="FOLDER", help="first make this run folder from a recipe")
    parser.add_argument("--preview", action="store_true", help="print the first batch")
    parser.add_argument("--estimate", action="store_true", help="print parameters and times")
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Train; with ``--json`` progress goes to standard error and the last status is printed."""
    from core_models.training.__main__ import main
    from core_models.training.folder import RunFolder

    options = [arguments.config] + (["--run", arguments.run] if arguments.run else [])
    looks = [f"--{name}" for name in ("preview", "estimate") if getattr(arguments, name)]
    if looks or not arguments.json:
        return main(options + looks)
    with contextlib.redirect_stdout(sys.stderr):
        code = main(options)
    if code == 0:
        output.json(RunFolder(arguments.run or Path(arguments.config).parent).status())
    return code
