"""``fill``: what the model puts in place of [MASK]."""

import argparse
import sys
from typing import TYPE_CHECKING

from core_models.cli.arguments import add_json, add_model, positive
from core_models.cli.output import Output

if TYPE_CHECKING:
    from core_models.prediction import Candidate, FillResult, Watched

HELP = """Fill every [MASK] of a text.

Example: fill "The capital of France is [MASK]." --top-k 5
Probabilities are those of the model's own pretraining head, each gap on its own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("text", metavar="TEXT", help="text with one or more [MASK]")
    add_model(parser)
    parser.add_argument(
        "--top-k", type=positive, default=5, metavar="K", help="candidates per gap (default: 5)"
    )
    parser.add_argument("--pair", metavar="TEXT", help="second text of a pair")
    parser.add_argument(
        "--watch",
        action="append",
        default=[],
        metavar="WORD",
        help="also show the rank and probability of this word; may be given several times",
    )
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Fill and print."""
    import core_models as cm
    from core_models.prediction import fill

    for option, texts in (("--pair", [arguments.pair]), ("--watch", arguments.watch)):
        if any(text is not None and not text.strip() for text in texts):
            raise cm.InputError(f"{option} is empty; write something behind it, or leave it out.")
    model = cm.load(arguments.model)
    result = fill(
        model,
        arguments.text,
        top_k=arguments.top_k,
        watch=arguments.watch,
        pair=arguments.pair,
    )
    if result.truncated:
        if not result.predictions:
            raise cm.InputError(
                f"The text is longer than the {model.longest} pieces that {model.name} reads, and "
                "no [MASK] stands within them; shorten the text."
            )
        sys.stderr.write(f"note: only the first {model.longest} pieces of the text were read.\n")
    if not result.predictions:
        raise cm.InputError(
            "There is nothing to fill: write [MASK] where a word is missing, "
            'as in "The capital of France is [MASK]."'
        )
    if arguments.json:
        output.json({"model": model.name, **result.to_json()})
    else:
        _print(result, output)
    return 0


def _print(result: "FillResult", output: Output) -> None:
    for number, prediction in enumerate(result.predictions, start=1):
        if number > 1:
            output.line()
        if len(result.predictions) > 1:
            output.line(f"[MASK] {number}, token {prediction.position}")
        shown = {candidate.id for candidate in prediction.candidates}
        rows = [_row(candidate) for candidate in prediction.candidates]
        rows += [_row(w) for w in prediction.watched if w.rank and w.id not in shown]
        output.table(rows, right=(0, 1))
        for watched in prediction.watched:
            if watched.note:
                output.line(watched.note)


def _row(candidate: "Candidate | Watched") -> list[str]:
    share = 100 * (candidate.probability or 0.0)
    return [str(candidate.rank), f"{share:.2f} %", candidate.display or ""]
