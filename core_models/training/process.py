"""The life of a training process: take the folder, prepare, train, export, say how it ended."""

import contextlib
import errno
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import torch

from core_models.errors import InputError
from core_models.training import (
    checkpoint,
    optimizer,
    precision,
    pretraining_run,
    settings,
    task_settings,
)
from core_models.training.checkpoint import Saved
from core_models.training.folder import RunFolder, State, read_json, remember_process
from core_models.training.host import (
    Stop,
    asked_for,
    is_main,
    meet,
    on,
    processes,
    rank,
    threads,
    together,
)
from core_models.training.learning import Begun, size
from core_models.training.loop import Trainer
from core_models.training.meter import finite
from core_models.training.run_schema import RunSettings
from core_models.training.settings import Settings
from core_models.training.several import LostError, lost
from core_models.training.task_schema import TaskSettings, is_task
from core_models.training.tracker import Tracker

Whole = TypeVar("Whole", bound=RunSettings)
Say = Callable[[str], None]
_PLAIN = (InputError, LostError)
"""Errors whose message is for people."""


def train(config: Path, say: Say) -> State:
    """Train, or go on training, the run whose ``config.json`` is given.

    Returns:
        ``finished``, or ``stopped`` after a stop request or SIGTERM.

    Raises:
        InputError: the settings or the data cannot be used, a process is already at work, or the
            run is finished and is to have another end.
        DivergenceError: loss or gradient became infinite or NaN.
        LostError: of several processes another one is gone.
    """
    meet()
    settings.refuse_folder(config)
    if not config.is_file():
        raise InputError(f"There is no file {config}.")
    if config.name != "config.json":
        raise InputError(
            f"{config.name} is not inside a run folder: its file is called config.json. "
            "Use --run FOLDER to make a run from a recipe."
        )
    run = RunFolder(config.parent)
    _check_end(run)
    return live(run, lambda: _train(run, say), say)


def _check_end(run: RunFolder) -> None:
    """InputError where a finished run is asked for another number of steps than it made."""
    status = run.status()
    if run.state(status) != "finished":
        return
    asked, made = read_json(run.config_path).get("steps"), status.get("steps")
    if None not in (asked, made) and asked != made:  # a fine-tuning says epochs
        steps = "1 step" if made == 1 else f"{made} steps"
        raise InputError(
            f"{run.path} is finished after {steps}; config.json asks for {asked}. Put that "
            "back, or begin a new run with its model (model.checkpoint)."
        )


def live(folder: RunFolder, work: Callable[[], State], say: Say) -> State:
    """Take the folder of a run or a race, and do its work unless that is finished.

    A failure is written down, with the reason in plain words.
    """
    with contextlib.ExitStack() as stack:
        if is_main():
            stack.enter_context(folder.lock())
        if folder.state() == "finished":
            say(f"{folder.path} is finished.")
            return "finished"
        try:
            return work()
        except BaseException as error:
            gone = lost(error, asked_for())
            if is_main():
                _record_failure(folder, gone or error)
            else:
                _record_other(folder, gone or error)
            if gone is not None:
                raise gone from error
            raise


def _train(run: RunFolder, say: Say) -> State:
    stop = Stop(run)
    status: dict[str, Any] = {"state": "running", "process": remember_process()}
    if is_main():
        since = run.wanted_since()
        run.write_status(_last(run) | status)
        run.clear_stop(before=since)
        run.sweep()
    task = is_task(settings.read_values(run.config_path))
    if processes() > 1 and task:
        raise InputError(
            "Fine-tuning runs in one process: labelled sets are small, and several would only wait "
            "for each other. Start it without torchrun or accelerate launch."
        )
    options: RunSettings = task_settings.read_any(run.config_path)
    last = run.last_checkpoint()
    saved = None if last is None else checkpoint.read(last.path)
    before = None if saved is None else int(saved.environment["threads"])
    torch.set_num_threads(threads(options.threads, before))
    options = _with_precision(options, saved)
    exact = saved is None or resumes_exactly(run, options, saved)
    begun = _begin(run, options, saved)
    noted = options.model_dump(mode="json") if saved is None else None
    tracker = Tracker(options.tracker if is_main() else None, run, noted)
    trainer = Trainer(run=run, settings=options, learning=begun.learning, say=say, tracker=tracker)
    if saved is not None:
        trainer.restore(saved)
    here = checkpoint.environment()
    facts = _facts(run, options, begun)
    trainer.write_status(**status, **facts, exact_resume=exact, environment=here)
    for warning in begun.warnings if saved is None else ():
        trainer.log(f"warning: {warning}")
    trainer.log(f"started at step {trainer.progress.step}")
    with contextlib.closing(tracker):
        ended = trainer.train(stop.requested)
    found = begun.conclude(trainer.measure, stop.requested) if ended else None
    if found is None:
        trainer.log(f"stopped at step {trainer.progress.step}, saved")
        trainer.write_status(state="stopped", reason=stop.reason or "by request")
        if is_main():  # not before: without the request it would seem to go on
            run.clear_stop()
        return "stopped"
    _export(run, trainer, found | facts)
    trainer.write_status(state="finished", **facts)
    trainer.log("finished")
    return "finished"


def _begin(run: RunFolder, options: RunSettings, saved: Saved | None) -> Begun:
    if isinstance(options, Settings):
        return pretraining_run.begin(run, options, saved)
    # Imported late: measuring tasks brings libraries that pretraining need not wait for.
    from core_models.training import task_run  # noqa: PLC0415

    assert isinstance(options, TaskSettings)
    return task_run.begin(run, options, saved)


def _facts(run: RunFolder, options: RunSettings, begun: Begun) -> dict[str, Any]:
    """What stands in ``status.json`` and ``evaluation.json`` from now on."""
    learning = begun.learning
    return {
        "name": options.name or run.path.name,
        "family": learning.model.config.family,
        "losses": learning.weights,
        "threads": torch.get_num_threads(),
        "precision": options.precision,
        "parameters": size(learning.model),
        **begun.facts,
    }


def _with_precision(options: Whole, saved: Saved | None) -> Whole:
    """The settings with the precision that they leave open; the first process decides for all."""
    before = None if saved is None else saved.settings["precision"]
    chosen = [precision.settled(options.precision, before) if is_main() else ""]
    if together() is not None:
        from accelerate.utils import broadcast_object_list  # noqa: PLC0415

        broadcast_object_list(chosen)
    return options.model_copy(update={"precision": chosen[0]})


def resumes_exactly(run: RunFolder, options: RunSettings, saved: Saved) -> bool:
    """Refuse other settings; log another environment. Whether the resume is bit-identical.

    A run whose learning rate has been the same under both settings may get another end.
    """
    # Through the schema: a field that is newer than the checkpoint has its default.
    before = settings.validated(type(options), saved.settings)
    changed = settings.changes(before.model_dump(mode="json"), options.model_dump(mode="json"))
    if isinstance(options, Settings) and optimizer.same_until(
        cast(Settings, before), options, saved.progress.step
    ):
        changed = [name for name in changed if name not in settings.END]
    if changed:
        raise InputError(
            f"config.json was changed since step {saved.progress.step}: {', '.join(changed)}. "
            "Put the values back to go on, or make a new run."
        )
    same = checkpoint.same_environment(run, saved.environment)
    # Dropout is drawn anew in each of several processes, and a GPU adds in any order.
    return same and processes() == 1 and on().type == "cpu"


def _export(run: RunFolder, trainer: Trainer, found: dict[str, Any]) -> None:
    """Write the models and ``evaluation.json``."""
    progress = trainer.progress
    evaluation = {
        "steps": progress.step,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 1),
        **found,
    }
    models = trainer.learning.models()
    if not trainer.learning.main:
        return
    for name, model in models.items():
        run.save_model(model.save, name)
    run.write_evaluation(finite(evaluation))


_LASTING = frozenset(
    {
        "name",
        "family",
        "objectives",
        "losses",
        "format",
        "step",
        "steps",
        "tokens",
        "baselines",
        "task",
        "data",
        "parameters",
        "companions",
    }
)


def _last(run: RunFolder) -> dict[str, Any]:
    """Figures of the last part of the run that stay true while the next one starts."""
    return {name: value for name, value in run.status().items() if name in _LASTING}


def _record_failure(run: RunFolder, error: BaseException) -> None:
    task = False
    with contextlib.suppress(InputError):
        task = is_task(settings.read_values(run.config_path))
    reason = explain(error, task=task)
    # On a full disk any of these may fail. The status comes first: without it readers see a crash.
    with contextlib.suppress(OSError):
        run.write_status(run.status() | {"state": "failed", "reason": reason})
    with contextlib.suppress(OSError):
        if not isinstance(error, _PLAIN):
            run.log("".join(traceback.format_exception(error)).rstrip())
        run.log(f"failed: {reason}")


def _record_other(run: RunFolder, error: BaseException) -> None:
    """Tell in the log what ended a process beside the first, which only sees that it is gone."""
    # All of them refuse a wrong config.json, and where nodes share no folder there may be no log.
    with contextlib.suppress(OSError):
        if run.path.is_dir() and not isinstance(error, _PLAIN):
            run.log("".join(traceback.format_exception(error)).rstrip())
            run.log(f"process {rank() + 1} failed: {explain(error)}")


def explain(error: BaseException, *, task: bool = False) -> str:
    """Why a run ended, and what to change, in plain words.

    Args:
        error: what ended it.
        task: whether it is a fine-tuning, whose config.json has other fields.
    """
    if isinstance(error, _PLAIN):
        return str(error)
    text = str(error)
    # The writer of safetensors has an exception of its own for whatever the system says.
    full = any(word in text for word in ("No space left on device", "Disk quota exceeded"))
    if full or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
        return "The disk is full. Make room and start the run again; it goes on where it was saved."
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return f"The run folder cannot be written: {error.strerror}."
    if isinstance(error, OSError) and error.errno in (errno.EIO, errno.EFBIG, errno.ESTALE):
        return (
            f"The disk refuses what the run writes: {error.strerror}. Start the run again when the "
            "disk takes it; it goes on where it was saved."
        )
    memory = ("out of memory", "not enough memory", "alloc_cpu", "bad_alloc")
    if isinstance(error, MemoryError) or any(word in text.lower() for word in memory):
        if task:
            return (
                "Not enough memory. Lower batch_size, shorten max_length, or choose a smaller "
                "model."
            )
        return (
            "Not enough memory. Lower batch_size or raise accumulation, shorten data.max_length, "
            "or choose a smaller model."
        )
    return f"Unexpected error ({type(error).__name__}). Details are in log.txt."


def new_run(recipe: Path, folder: Path) -> Path:
    """Make a run folder from a recipe and give the path of its ``config.json``.

    Files named relative to the recipe are named in full, as the copy lies elsewhere.

    Raises:
        InputError: the recipe is not valid, or the folder already holds a run or other files.
    """
    settings.refuse_folder(recipe)
    task_settings.read_any(recipe)
    values = task_settings.named_in_full(settings.read_values(recipe), recipe.resolve().parent)
    if not RunFolder(folder).config_path.exists():
        settings.refuse_filled(folder)
    return RunFolder.create(folder, values).config_path
