"""The life of a training process: take the folder, prepare, train, export, say how it ended."""

import contextlib
import errno
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import broadcast_object_list

from core_models.errors import InputError
from core_models.model import Model
from core_models.training import (
    checkpoint,
    durable,
    models,
    optimizer,
    precision,
    settings,
    task_settings,
)
from core_models.training.checkpoint import Saved
from core_models.training.examples import Masker
from core_models.training.folder import RunFolder, State, remember_process
from core_models.training.guard import DivergenceError
from core_models.training.host import Stop, asked_for, is_main, meet, processes, rank, threads
from core_models.training.loop import Trainer
from core_models.training.models import Base
from core_models.training.plan import Plan, plan_for
from core_models.training.prepare import Prepared, prepare
from core_models.training.settings import Settings
from core_models.training.several import LostError, check_same, check_shares, lost
from core_models.training.streams import open_stream, open_validation
from core_models.training.task_schema import is_task
from core_models.training.tracker import Tracker

Say = Callable[[str], None]
_PLAIN = (InputError, DivergenceError, LostError)
"""Errors whose message is for people."""


def train(config: Path, say: Say) -> State:
    """Train, or go on training, the run whose ``config.json`` is given.

    Returns:
        ``finished``, or ``stopped`` after a stop request or SIGTERM.

    Raises:
        InputError: the settings or the data cannot be used, or a process is already at work.
        DivergenceError: loss or gradient became infinite or NaN.
        LostError: of several processes another one is gone.
    """
    meet()
    if config.name != "config.json":
        raise InputError(
            f"{config.name} is not inside a run folder: its file is called config.json. "
            "Use --run FOLDER to make a run from a recipe."
        )
    if not config.is_file():
        raise InputError(f"There is no file {config}.")
    run = RunFolder(config.parent)
    with contextlib.ExitStack() as stack:
        if is_main():
            stack.enter_context(run.lock())
        if run.state() == "finished":
            say(f"{run.path} is finished; its model is in {run.model_path}.")
            return "finished"
        try:
            return _train(run, say)
        except BaseException as error:
            gone = lost(error, asked_for())
            if is_main():
                _record_failure(run, gone or error)
            else:
                _record_other(run, gone or error)
            if gone is not None:
                raise gone from error
            raise


def _train(run: RunFolder, say: Say) -> State:
    stop = Stop(run)
    status: dict[str, Any] = {"state": "running", "process": remember_process()}
    if is_main():
        run.write_status(_last(run) | status)
        run.clear_stop(before=durable.process_start())
        run.sweep()
    processes()
    if is_task(settings.read_values(run.config_path)):
        # Imported late: measuring tasks brings libraries that pretraining need not wait for.
        from core_models.training import task_process  # noqa: PLC0415

        return task_process.fine_tune(run, status, stop, say)
    options = settings.read(run.config_path)
    last = run.last_checkpoint()
    saved = None if last is None else checkpoint.read(last.path)
    before = None if saved is None else int(saved.environment["threads"])
    torch.set_num_threads(threads(options.threads, before))
    alone = not torch.accelerator.is_available()  # else several CPU processes stay strangers
    options = _with_precision(options, saved, PartialState(cpu=alone))
    accelerator = Accelerator(
        mixed_precision="bf16" if options.precision == "bf16" else "no", cpu=alone
    )
    exact = saved is None or _check_resume(run, options, saved)
    if saved is None:
        base = models.base_of(options, run.path)
    else:
        base = Base(saved.model, saved.companions)
    plan = plan_for(options, models.published_config(options, base))
    with accelerator.main_process_first():
        prepared = prepare(run, options, plan, None if base is None else base.model.tokenizer)
    check_same(accelerator, run, options, saved)
    examples = options.batch_size if plan.recurrent else len(prepared.training)
    check_shares(accelerator.num_processes, options.batch_size, examples)
    words = prepared.tokenizer
    config = models.model_config(
        options, plan, base, vocabulary=words.vocabulary, pad_id=words.pad_id
    )
    model = models.build_model(options, plan, config, words, base)
    begun = options.model_dump(mode="json") if saved is None else None
    tracker = Tracker(options.tracker if is_main() else None, run, begun)
    trainer = _trainer(run, options, plan, accelerator, model, base, prepared, say, tracker)
    if saved is not None:
        trainer.restore(saved)
    facts = _facts(run, options, plan, prepared, trainer)
    here = checkpoint.environment()
    trainer.write_status(**status, **facts, exact_resume=exact, environment=here)
    trainer.log(f"started at step {trainer.progress.step}")
    with contextlib.closing(tracker):
        ended = trainer.train(stop.requested)
    if not ended:
        trainer.log(f"stopped at step {trainer.progress.step}, saved")
        if is_main():
            run.clear_stop()
        trainer.write_status(state="stopped", reason=stop.reason or "by request")
        return "stopped"
    _export(run, trainer, model, facts)
    trainer.write_status(state="finished")
    trainer.log("finished")
    return "finished"


def _with_precision(options: Settings, saved: Saved | None, state: PartialState) -> Settings:
    """The settings with the precision that they leave open; the first process decides for all."""
    before = None if saved is None else saved.settings["precision"]
    chosen = [precision.settled(options.precision, before) if state.is_main_process else ""]
    broadcast_object_list(chosen)
    return options.model_copy(update={"precision": chosen[0]})


def _trainer(
    run: RunFolder,
    options: Settings,
    plan: Plan,
    accelerator: Accelerator,
    model: Model,
    base: Base | None,
    data: Prepared,
    say: Say,
    tracker: Tracker,
) -> Trainer:
    masker = Masker(plan, model.config, data.tokenizer, data.similar)
    return Trainer(
        run=run,
        settings=options,
        plan=plan,
        accelerator=accelerator,
        model=model,
        objective=models.build_objective(options, plan, model, base, run.path),
        stream=open_stream(data.training, masker, options, accelerator.device),
        validation=open_validation(data.validation, masker, options),
        say=say,
        tracker=tracker,
    )


def _check_resume(run: RunFolder, options: Settings, saved: Saved) -> bool:
    """Refuse other settings; log another environment. Whether the resume is bit-identical.

    A run whose learning rate has been the same under both settings may get another end.
    """
    # Through the schema: a field that is newer than the checkpoint has its default.
    before = settings.validated(Settings, saved.settings)
    changed = settings.changes(before.model_dump(mode="json"), options.model_dump(mode="json"))
    if optimizer.same_until(before, options, saved.progress.step):
        changed = [name for name in changed if name not in settings.END]
    if changed:
        raise InputError(
            f"config.json was changed since step {saved.progress.step}: {', '.join(changed)}. "
            "Put the values back to go on, or make a new run."
        )
    return checkpoint.same_environment(run, saved.environment)


def _facts(
    run: RunFolder, options: Settings, plan: Plan, data: Prepared, trainer: Trainer
) -> dict[str, Any]:
    companions = trainer.objective.companions()
    return {
        "name": options.name or run.path.name,
        "family": trainer.model.config.family,
        "objectives": plan.objectives,
        "losses": trainer.objective.loss_weights(),
        "format": plan.format,
        "masking": asdict(plan.masking) if plan.masks else None,
        "threads": torch.get_num_threads(),
        "precision": options.precision,
        "processes": trainer.accelerator.num_processes,
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "companions": {
            name: sum(p.numel() for p in companion.parameters())
            for name, companion in companions.items()
        },
        "data": {k: v for k, v in data.facts.items() if k != "baselines"}
        | {"examples": len(data.training)},
        "baselines": data.facts["baselines"],
    }


def _export(run: RunFolder, trainer: Trainer, model: Model, facts: dict[str, Any]) -> None:
    """Write ``model``, the models trained with it, and ``evaluation.json``."""
    validation = {} if trainer.validation is None else trainer.validate()
    progress = trainer.progress
    evaluation = {
        "steps": progress.step,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 1),
        "held_out": validation,
        **facts,
    }
    if not trainer.accelerator.is_main_process:
        return

    for name, companion in trainer.objective.companions().items():
        run.save_model(_writer(companion), name)
    run.save_model(_writer(model))
    run.write_evaluation(evaluation)


def _writer(model: Model) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        model.save(folder)

    return write


_LASTING = frozenset(
    (
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
    )
) | {"data", "parameters", "companions"}


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
        InputError: the recipe is not valid, or the folder already holds a run.
    """
    values = settings.read_values(recipe)
    beside = recipe.resolve().parent
    if is_task(values):
        task_settings.read(recipe)
        return RunFolder.create(folder, task_settings.named_in_full(values, beside)).config_path
    settings.read(recipe)
    values["data"] = settings.texts_in_full(values["data"], beside)
    for part, name in (
        ("tokenizer", "folder"),
        ("model", "checkpoint"),
        ("model", "encoder_from"),
        ("generator", "encoder_from"),
    ):
        given = values.get(part, {}).get(name)
        if given is not None and (beside / given).is_dir():
            values[part][name] = str(beside / given)
    return RunFolder.create(folder, values).config_path
