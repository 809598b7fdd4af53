"""``python -m core_models.training runs/x/config.json``: train, or go on training, a run."""

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from core_models.errors import InputError, let_go, refused

_INTERRUPTED = 130
"""As a shell says of a program that Ctrl-C has ended."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    The exit status: 0 finished or stopped, 1 failed, 2 bad input, 130 interrupted before the start.
    """
    parser = argparse.ArgumentParser(
        prog="python -m core_models.training",
        description="Train a model in a run folder. The same command continues a stopped run.",
    )
    parser.add_argument("config", type=Path, help="config.json of a run, or a recipe with --run")
    parser.add_argument("--run", type=Path, help="make this run folder from the recipe first")
    parser.add_argument(
        "--preview", action="store_true", help="print the first batch as JSON; train nothing"
    )
    parser.add_argument(
        "--estimate", action="store_true", help="print parameters and times as JSON; train nothing"
    )
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(options: argparse.Namespace) -> int:
    """Do what was asked for."""
    # Imported late: --help and mistyped arguments need not wait for PyTorch.
    from core_models.training.guard import DivergenceError  # noqa: PLC0415
    from core_models.training.process import train  # noqa: PLC0415
    from core_models.training.several import LostError  # noqa: PLC0415

    try:
        if options.preview or options.estimate:
            return _look(options)
        with _made(options) as config:
            _say(f"Run {config.parent}: {train(config, _say)}.")
    except (InputError, LostError) as error:
        sys.stderr.write(f"{error}\n")
        return 1 if isinstance(error, DivergenceError | LostError) else 2
    except OSError as error:
        sys.stderr.write(f"{refused(error)}\n")
        return 2
    return 0


def _look(options: argparse.Namespace) -> int:
    """Print what a run would read or need."""
    from dataclasses import asdict  # noqa: PLC0415

    from core_models.training import task_settings  # noqa: PLC0415
    from core_models.training.estimate import estimate  # noqa: PLC0415
    from core_models.training.folder import RunFolder  # noqa: PLC0415
    from core_models.training.preview import first_batch  # noqa: PLC0415
    from core_models.training.settings import Settings, check_texts  # noqa: PLC0415

    with _config(options) as config:
        values: dict[str, object] = {}
        run, wanted = RunFolder(config.parent), task_settings.read_any(config)
        if options.preview and config != options.config and isinstance(wanted, Settings):
            check_texts(wanted.data, options.config)
        if options.estimate:
            values["estimate"] = asdict(estimate(wanted, run.path))
        if options.preview:
            values["first_batch"] = first_batch(wanted, run)
    try:
        sys.stdout.write(json.dumps(values, ensure_ascii=False) + "\n")
        sys.stdout.flush()
    except OSError as error:
        let_go()
        if not isinstance(error, BrokenPipeError):  # nobody reads it any more
            raise
    return 0


@contextlib.contextmanager
def _made(options: argparse.Namespace) -> Iterator[Path]:
    """The config of the run; one made with ``--run`` goes again where it is refused at the start.

    Texts that are prepared already stay, as that may have taken hours.
    """
    if options.run is None:
        yield options.config
        return
    from core_models.training import task_settings  # noqa: PLC0415
    from core_models.training.folder import RunFolder  # noqa: PLC0415
    from core_models.training.process import new_run  # noqa: PLC0415
    from core_models.training.settings import Settings, check_texts  # noqa: PLC0415

    fresh = not options.run.exists()
    config = new_run(options.config, options.run)
    run, wanted = RunFolder(config.parent), task_settings.read_any(config)
    try:
        if isinstance(wanted, Settings):
            check_texts(wanted.data, options.config)
        yield config
    except (InputError, OSError, KeyboardInterrupt):
        began = "step" in run.status() or (isinstance(wanted, Settings) and run.data_path.exists())
        if fresh and not began:
            shutil.rmtree(run.path, ignore_errors=True)
        raise


@contextlib.contextmanager
def _config(options: argparse.Namespace) -> Iterator[Path]:
    """The config in its run folder; for a recipe in one that is soon gone, and not in ``--run``."""
    from core_models.training.process import new_run  # noqa: PLC0415

    if options.run is None and options.config.name == "config.json":
        yield options.config
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield new_run(options.config, Path(folder) / "run")


def _say(line: str) -> None:
    # Whoever started this process may be gone with the pipe; training goes on.
    with contextlib.suppress(OSError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
