"""Arguments that several verbs share."""

import argparse

DEFAULT_MODEL = "bert-mini"


def add_model(parser: argparse.ArgumentParser) -> None:
    """``--model``: which checkpoint answers."""
    parser.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        metavar="NAME",
        help="a shipped name (see: models), a model folder, or a hub id (default: %(default)s)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """``--json``: for programs."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def whole(text: str, allowed: str = "") -> int:
    """A whole number; ``allowed`` ends the message about what is none."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number{allowed}") from None


def number(text: str) -> float:
    """Any number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = whole(text, "; give 1 or more")
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too small; give 1 or more")
    return number


def seed(text: str) -> int:
    """A whole number that every generator of random numbers takes."""
    number = whole(text, "; give 0 to 2^63 - 1")
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{number} is no seed; give 0 to 2^63 - 1")
    return number
