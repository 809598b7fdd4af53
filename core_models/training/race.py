"""``python -m core_models.training.race FILE --runs FOLDER``: an objective race, or the rest of it.

Killed or stopped at any moment, the same command goes on where it was.
"""

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from core_models.errors import InputError, refused
from core_models.training.race_folder import RaceFolder

_INTERRUPTED = 130
"""As a shell says of a program that Ctrl-C has ended."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    The same command tries again what failed. The exit status: 0 finished or stopped, 1 a model
    failed, 2 bad input, 130 interrupted before the start.
    """
    parser = argparse.ArgumentParser(
        prog="python -m core_models.training.race",
        description="Train several models with the same budget and measure them alike.",
    )
    parser.add_argument("file", type=Path, help="file of a race, or experiment.json of one")
    parser.add_argument("--runs", type=Path, help="folder of the race; made from the file first")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(options: argparse.Namespace) -> int:
    """Do what was asked for."""
    # Imported late: --help and mistyped arguments need not wait for PyTorch.
    from core_models.training.race_run import run_race  # noqa: PLC0415

    try:
        with _made(options) as config:
            _say(f"Race {config.parent}: {run_race(config, _say)}.")
        table = RaceFolder(config.parent).table()
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"{refused(error)}\n")
        return 2
    failed = [row for row in table if row["state"] == "failed"]
    for row in failed:
        sys.stderr.write(f"{row['name']} failed: {row.get('reason', '')}\n")
    return 1 if failed else 0


@contextlib.contextmanager
def _made(options: argparse.Namespace) -> Iterator[Path]:
    """The file of the race; a folder made with ``--runs`` goes again where it could not start.

    Texts that are prepared already stay, as that may have taken hours.
    """
    if options.runs is None:
        yield options.file
        return
    from core_models.training.race_run import new_race  # noqa: PLC0415

    fresh = not options.runs.exists()
    config = new_race(options.file, options.runs)
    try:
        yield config
    except (InputError, OSError, KeyboardInterrupt):
        if fresh and not any(options.runs.glob("*/data")):
            shutil.rmtree(options.runs, ignore_errors=True)
        raise


def _say(line: str) -> None:
    # Whoever started this process may be gone with the pipe; the race goes on.
    with contextlib.suppress(OSError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
