"""``python -m core_models.training runs/x/config.json``: train, or go on training, a run."""

import argparse
import contextlib
import sys
from pathlib import Path

from core_models.errors import InputError


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status: 0 finished or stopped, 1 failed, 2 bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m core_models.training",
        description="Train a model in a run folder. The same command continues a stopped run.",
    )
    parser.add_argument("config", type=Path, help="config.json of a run, or a recipe with --run")
    parser.add_argument("--run", type=Path, help="make this run folder from the recipe first")
    options = parser.parse_args(arguments)
    # Imported late: --help and mistyped arguments need not wait for PyTorch.
    from core_models.training.loop import DivergenceError  # noqa: PLC0415
    from core_models.training.process import new_run, train  # noqa: PLC0415

    try:
        config = options.config if options.run is None else new_run(options.config, options.run)
        _say(f"Run {config.parent}: {train(config, _say)}.")
    except (InputError, DivergenceError) as error:
        sys.stderr.write(f"{error}\n")
        return 2 if isinstance(error, InputError) else 1
    return 0


def _say(line: str) -> None:
    # Whoever started this process may be gone with the pipe; training goes on.
    with contextlib.suppress(OSError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
