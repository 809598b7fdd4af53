"""The parser, and what becomes of errors."""

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from core_models.cli import count, diff, evaluate, fill, finetune, models, push, score, train
from core_models.cli.output import Output
from core_models.errors import InputError, let_go, refused

VERBS: dict[str, ModuleType] = {
    "fill": fill,
    "score": score,
    "models": models,
    "train": train,
    "finetune": finetune,
    "count": count,
    "diff": diff,
    "evaluate": evaluate,
    "push": push,
}

BAD_INPUT = 2
"""Exit code for input that cannot be used, or what the system refuses; argparse takes it, too."""
INTERRUPTED = 130
READER_GONE = 141
"""What a shell reports for a program that writes into a closed pipe."""


def build_parser() -> argparse.ArgumentParser:
    """The parser with a sub-parser for each verb."""
    parser = argparse.ArgumentParser(
        prog="python -m core_models",
        description="Encoder-only language models: fill gaps, score text, count, compare, train.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, module in VERBS.items():
        summary = module.HELP.partition("\n")[0]
        verb = verbs.add_parser(
            name,
            help=summary,
            description=module.HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(verb)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code; a message for people goes to standard error."""
    arguments = build_parser().parse_args(argv)
    try:
        code: int = VERBS[arguments.verb].run(arguments, Output(sys.stdout))
        sys.stdout.flush()
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        let_go()
        return READER_GONE
    except OSError as error:
        sys.stderr.write(f"error: {refused(error)}\n")
        if error.filename is None:
            let_go()
        return BAD_INPUT
    return code
