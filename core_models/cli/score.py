"""``score``: how likely a model finds each line of a file."""

import argparse
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core_models.cli.arguments import add_json, add_model, positive
from core_models.cli.output import Output
from core_models.errors import InputError

if TYPE_CHECKING:
    from core_models.model import Model

HELP = """Score each line of a file by its (pseudo-)log-likelihood.

The score of a line is the sum over its tokens of log p(token | all others, that one hidden), in
nats (natural logarithm; arXiv 1910.14659); of a causal model, log p(token | those before it).
Higher is likelier. Blank lines are left out."""

CHUNK = 256
"""Lines that are scored together before their results are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("file", metavar="FILE", help="UTF-8 text, one text per line; - reads stdin")
    add_model(parser)
    parser.add_argument(
        "--batch-size",
        type=positive,
        default=64,
        metavar="N",
        help="masked copies per forward pass (default: 64)",
    )
    parser.add_argument("--tokens", action="store_true", help="also print the score of each token")
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Score and print, line by line."""
    import core_models as cm
    from core_models.prediction import score

    lines = _lines(arguments.file)
    chunk = list(itertools.islice(lines, CHUNK))
    if not chunk:
        name = "Standard input" if arguments.file == "-" else arguments.file
        raise InputError(f"{name} has no line to score; write one text per line.")
    model = cm.load(arguments.model)
    while chunk:
        _check(model, chunk, arguments.file)
        scores = score(model, [text for _, text in chunk], batch_size=arguments.batch_size)
        for (number, _), item in zip(chunk, scores, strict=True):
            if item.truncated:
                sys.stderr.write(
                    f"note: line {number} is longer than {model.longest} pieces; its end is left "
                    "out of the score.\n"
                )
            values = {"line": number, **item.to_json()}
            tokens = values.pop("per_token")
            if arguments.json:
                output.json_line(values | ({"per_token": tokens} if arguments.tokens else {}))
                continue
            output.line(f"{values['total']:.4f}\t{values['tokens']}\t{values['text']}")
            for token in tokens if arguments.tokens else ():
                output.line(f"\t{token['score']:.4f}\t{token['display']}")
        chunk = list(itertools.islice(lines, CHUNK))
    return 0


def _check(model: "Model", chunk: Sequence[tuple[int, str]], name: str) -> None:
    """Name the line of the file that cannot be scored."""
    for number, text in chunk:
        try:
            model.encode([text])
        except InputError as error:
            raise InputError(f"{name}, line {number}: {error}") from None


def _lines(name: str) -> Iterator[tuple[int, str]]:
    """Numbered lines (from 1) that are not blank."""
    if name == "-":
        yield from _decoded(sys.stdin.buffer, "standard input")
        return
    try:
        with Path(name).open("rb") as file:
            yield from _decoded(file, name)
    except OSError as error:
        raise InputError(f"Cannot read {name}: {error.strerror}.") from None


def _decoded(source: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    lines = (line for ended in source for line in ended.splitlines())  # old files end them by \r
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise InputError(f"{name}, line {number}: not UTF-8 text; save it as UTF-8.") from None
        if text:
            yield number, text
