"""The life of a training process: take the folder, prepare, train, export, say how it ended."""

import contextlib
import errno
import json
import os
import signal
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from accelerate import Accelerator

from core_models.config import Config
from core_models.errors import InputError
from core_models.families import size
from core_models.model import Model, load
from core_models.objectives import MaskedToken, NextSentence, Objective, Weighted
from core_models.tokenizer import Tokenizer
from core_models.training import checkpoint, durable, settings
from core_models.training.checkpoint import Saved
from core_models.training.examples import Examples
from core_models.training.folder import RunFolder, State, remember_process
from core_models.training.loop import DivergenceError, Trainer
from core_models.training.prepare import Prepared, prepare
from core_models.training.settings import ModelOverrides, Settings

Say = Callable[[str], None]
OBJECTIVES: dict[str, Callable[[torch.nn.Module], Objective]] = {
    "masked_token": MaskedToken,
    "next_sentence": NextSentence,
}


def train(config: Path, say: Say) -> State:
    """Train, or go on training, the run whose ``config.json`` is given.

    Returns:
        ``finished``, or ``stopped`` after a stop request or SIGTERM.

    Raises:
        InputError: the settings or the data cannot be used, or a process is already at work.
        DivergenceError: loss or gradient became infinite or NaN.
    """
    if config.name != "config.json":
        raise InputError(
            f"{config.name} is not inside a run folder: its file is called config.json. "
            "Use --run FOLDER to make a run from a recipe."
        )
    if not config.is_file():
        raise InputError(f"There is no file {config}.")
    run = RunFolder(config.parent)
    with contextlib.ExitStack() as stack:
        if _is_main():
            stack.enter_context(run.lock())
        if run.state() == "finished":
            say(f"{run.path} is finished; its model is in {run.model_path}.")
            return "finished"
        try:
            return _train(run, say)
        except BaseException as error:
            if _is_main():
                _record_failure(run, error)
            raise


def _is_main() -> bool:
    """Whether this is the only process, or the first of several under ``accelerate launch``."""
    return os.environ.get("RANK", "0") == "0"


def _train(run: RunFolder, say: Say) -> State:
    stop = _Stop(run)
    status: dict[str, Any] = {"state": "running", "process": remember_process()}
    if _is_main():
        run.write_status(_last(run) | status)
        run.clear_stop(before=durable.process_start())
        run.sweep()
    options = settings.read(run.config_path)
    accelerator = Accelerator(
        mixed_precision="bf16" if options.precision == "bf16" else "no",
        cpu=not torch.accelerator.is_available(),  # else several CPU processes stay strangers
    )
    last = run.last_checkpoint()
    saved = None if last is None else checkpoint.read(last.path)
    torch.set_num_threads(_threads(options, saved))
    exact = saved is None or _check_resume(run, options, saved)
    base = _base(options, run) if saved is None else saved.model
    with accelerator.main_process_first():
        prepared = prepare(run, options, None if base is None else base.tokenizer)
    model = _model(options, prepared.tokenizer, base)
    trainer = _trainer(run, options, accelerator, model, prepared, say)
    if saved is not None:
        trainer.restore(saved)
    facts = _facts(run, options, prepared, model) | {"processes": accelerator.num_processes}
    here = checkpoint.environment()
    trainer.write_status(**status, **facts, exact_resume=exact, environment=here)
    trainer.log(f"started at step {trainer.progress.step}")
    if not trainer.train(stop.requested):
        trainer.log(f"stopped at step {trainer.progress.step}, saved")
        if _is_main():
            run.clear_stop()
        trainer.write_status(state="stopped", reason=stop.reason or "by request")
        return "stopped"
    _export(run, trainer, model, facts)
    trainer.write_status(state="finished")
    trainer.log("finished")
    return "finished"


def _trainer(
    run: RunFolder,
    options: Settings,
    accelerator: Accelerator,
    model: Model,
    data: Prepared,
    say: Say,
) -> Trainer:
    parts = [(weight, OBJECTIVES[n](model.heads[n])) for n, weight in options.objectives.items()]
    held_out = data.validation
    return Trainer(
        run=run,
        settings=options,
        accelerator=accelerator,
        model=model,
        objective=Weighted(parts),
        training=Examples(data.training, data.tokenizer, options),
        validation=None if held_out is None else Examples(held_out, data.tokenizer, options),
        say=say,
    )


class _Stop:
    """Whether to stop: the file ``stop``, SIGTERM or Ctrl-C."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._signal: int | None = None
        self.reason = ""
        signal.signal(signal.SIGTERM, self._note)
        signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._signal = number

    def requested(self) -> bool:
        if self._signal is not None:
            self.reason = f"by signal {signal.Signals(self._signal).name}"
        elif self._run.stop_requested():
            self.reason = "by request"
        return bool(self.reason)


def _threads(options: Settings, saved: Saved | None) -> int:
    if options.threads is not None:
        return options.threads
    if saved is not None:
        return int(saved.environment["threads"])
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _check_resume(run: RunFolder, options: Settings, saved: Saved) -> bool:
    """Refuse other settings; log another environment. Whether the resume is bit-identical."""
    changed = settings.changes(saved.settings, options.model_dump(mode="json"))
    if changed:
        raise InputError(
            f"config.json was changed since step {saved.progress.step}: {', '.join(changed)}. "
            "Put the values back to go on, or make a new run."
        )
    now = checkpoint.environment()
    differ = [name for name, value in saved.environment.items() if now.get(name) != value]
    if differ:
        words = ", ".join(f"{n} {saved.environment[n]} -> {now.get(n)}" for n in differ)
        run.log(f"this machine differs from the checkpoint's, so last bits may differ: {words}")
    return not differ


def _base(options: Settings, run: RunFolder) -> Model | None:
    name = options.model.checkpoint
    return None if name is None else load(settings.resolve_folder(name, run.path))


def build_config(options: Settings, vocabulary: int, pad_id: int) -> Config:
    """The config of a fresh model: a size with its overrides, over a vocabulary."""
    assert options.model.size is not None
    config = size(options.model.size)
    wanted: ModelOverrides = options.model.overrides
    width = wanted.width or config.width
    heads = wanted.heads or config.attention.heads
    if width % heads:
        raise InputError(f"model.overrides: width {width} is not divisible by {heads} heads.")
    parts = config.embeddings
    config = replace(
        config,
        width=width,
        embeddings=replace(
            parts,
            width=width if parts.width == config.width else parts.width,
            positions=wanted.positions or parts.positions,
        ),
        attention=replace(config.attention, heads=heads, head_width=width // heads),
        feed_forward=replace(config.feed_forward, width=wanted.inner or config.feed_forward.width),
        schedule=tuple(range(wanted.layers)) if wanted.layers else config.schedule,
    )
    return config.with_vocabulary(vocabulary, pad_id=pad_id)


def _model(options: Settings, tokenizer: Tokenizer, base: Model | None) -> Model:
    """The model to train: fresh, or with the weights of ``base`` and fresh heads it lacks."""
    if base is None:
        config = build_config(options, tokenizer.vocabulary, tokenizer.pad_id)
    else:
        config = base.config
    config = replace(config, objectives=tuple(options.objectives))
    if options.model.dropout is not None:
        config = config.with_dropout(options.model.dropout)
    if options.model.attention_dropout is not None:
        rate = options.model.attention_dropout
        config = replace(config, attention=replace(config.attention, dropout=rate))
    longest = config.embeddings.positions
    if longest is not None and longest - config.embeddings.first_position < options.data.max_length:
        raise InputError(
            f"data.max_length is {options.data.max_length}, but the model has only {longest} "
            "positions."
        )
    generator = torch.Generator().manual_seed(options.seed)
    model = Model.new(config, tokenizer, heads=list(options.objectives), generator=generator)
    # Strict is off for the heads that a checkpoint may lack; they start fresh.
    if base is not None:
        model.load_state_dict(base.state_dict(), strict=False)
    return model


def _facts(run: RunFolder, options: Settings, data: Prepared, model: Model) -> dict[str, Any]:
    return {
        "name": options.name or run.path.name,
        "threads": torch.get_num_threads(),
        "precision": options.precision,
        "parameters": sum(p.numel() for p in model.parameters()),
        "data": {k: v for k, v in data.facts.items() if k != "baselines"}
        | {"examples": len(data.training)},
        "baselines": data.facts["baselines"],
    }


def _export(run: RunFolder, trainer: Trainer, model: Model, facts: dict[str, Any]) -> None:
    """Write ``model`` and ``evaluation.json``."""
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

    def write(folder: Path) -> None:
        model.save(folder)

    run.save_model(write)
    run.write_evaluation(evaluation)


def _last(run: RunFolder) -> dict[str, Any]:
    """Figures of the last part of the run that stay true while the next one starts."""
    kept = ("name", "step", "steps", "tokens", "baselines", "data", "parameters")
    return {name: value for name, value in run.status().items() if name in kept}


def _record_failure(run: RunFolder, error: BaseException) -> None:
    reason = explain(error)
    try:
        if not isinstance(error, (InputError, DivergenceError)):
            run.log("".join(traceback.format_exception(error)).rstrip())
        run.log(f"failed: {reason}")
        run.write_status(run.status() | {"state": "failed", "reason": reason})
    except OSError:
        # A full disk: the status on the disk still says running, and this process is about to
        # be gone, so readers see a crash.
        return


def explain(error: BaseException) -> str:
    """Why a run ended, and what to change, in plain words."""
    if isinstance(error, (InputError, DivergenceError)):
        return str(error)
    text = str(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "The disk is full. Make room and start the run again; it goes on where it was saved."
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return f"The run folder cannot be written: {error.strerror}."
    memory = ("out of memory", "not enough memory", "alloc_cpu", "bad_alloc")
    if isinstance(error, MemoryError) or any(word in text.lower() for word in memory):
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
    settings.read(recipe)
    values = json.loads(recipe.read_text(encoding="utf-8"))
    beside = recipe.resolve().parent
    for name in ("texts", "training_only"):
        given = values["data"].get(name, [])
        values["data"][name] = [
            str(beside / text) if not Path(text).is_absolute() and any(beside.glob(text)) else text
            for text in given
        ]
    for part, name in (("tokenizer", "folder"), ("model", "checkpoint")):
        given = values.get(part, {}).get(name)
        if given is not None and (beside / given).is_dir():
            values[part][name] = str(beside / given)
    return RunFolder.create(folder, values).config_path
