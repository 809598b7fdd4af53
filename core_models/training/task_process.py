"""The life of a fine-tuning inside a training process: open, train, measure, export."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from core_models.errors import InputError
from core_models.model import Model, load
from core_models.tasks.baselines import Baseline
from core_models.tasks.finetune import FineTuning, finetune
from core_models.tasks.report import main_metric
from core_models.tasks.sets import TaskSet
from core_models.training import checkpoint, task_report, task_settings
from core_models.training.folder import RunFolder, State
from core_models.training.host import Stop, on_accelerator, processes, threads
from core_models.training.precision import settled
from core_models.training.settings import changes, resolve_folder
from core_models.training.task_data import prepare
from core_models.training.task_loop import Saved, TaskTrainer
from core_models.training.task_schema import TaskSettings
from core_models.training.tracker import Tracker

SCRATCH = "from_scratch"


def fine_tune(
    run: RunFolder, status: dict[str, Any], stop: Stop, say: Callable[[str], None]
) -> State:
    """Fine-tune, or go on, as the run's ``config.json`` says.

    Args:
        run: locked by this process.
        status: state and process, for ``status.json``.
        stop: asked before every step.
        say: told one line for each report.

    Raises:
        InputError: the settings, the model or the set cannot be used.
        DivergenceError: loss or gradient became infinite or NaN.
    """
    if processes() > 1:
        raise InputError(
            "Fine-tuning runs in one process: labelled sets are small, and several would only wait "
            "for each other. Start it without torchrun or accelerate launch."
        )
    settings = task_settings.read(run.config_path)
    last = run.last_checkpoint()
    saved = None if last is None else Saved(last.path)
    before = None if saved is None else int(saved.environment["threads"])
    torch.set_num_threads(threads(settings.threads, before))
    chosen = settled(settings.precision, None if saved is None else saved.settings["precision"])
    settings = settings.model_copy(update={"precision": chosen})
    exact = saved is None or _check_resume(run, settings, saved)
    task, baselines = prepare(run, settings)
    model = on_accelerator(load(resolve_folder(settings.model.checkpoint, run.path)))
    tuning = FineTuning(model, task, task_settings.tuning(settings))
    begun = settings.model_dump(mode="json") if saved is None else None
    tracker = Tracker(settings.tracker, run, begun)
    trainer = TaskTrainer(run, settings, tuning, say, tracker)
    if saved is not None:
        trainer.restore(saved)
    facts = _facts(run, settings, tuning, baselines)
    trainer.write_status(
        **status, **facts, exact_resume=exact, environment=checkpoint.environment()
    )
    for warning in task.warnings if saved is None else ():
        run.log(f"warning: {warning}")
    run.log(f"started at step {trainer.progress.step}")
    with contextlib.closing(tracker):
        ended = trainer.train(stop.requested)
    if not ended:
        return _stopped(run, trainer, stop)
    scratch = None
    if settings.compare_from_scratch:
        run.log("fine-tuning the same model from random weights, to compare")
        scratch = _from_scratch(model, task, settings, stop)
        if scratch is None:
            return _stopped(run, trainer, stop)
        facts["baselines"] |= task_report.main_values(task, [scratch])
        facts["task"]["baselines"].append(vars(scratch))
    _export(run, trainer, facts)
    trainer.write_status(state="finished", **facts)
    run.log("finished")
    return "finished"


def _stopped(run: RunFolder, trainer: TaskTrainer, stop: Stop) -> State:
    run.log(f"stopped at step {trainer.progress.step}, saved")
    run.clear_stop()
    trainer.write_status(state="stopped", reason=stop.reason or "by request")
    return "stopped"


def _check_resume(run: RunFolder, settings: TaskSettings, saved: Saved) -> bool:
    """Refuse other settings; log another environment. Whether the resume is bit-identical."""
    harmless = {"compare_from_scratch"}
    changed = changes(saved.settings, settings.model_dump(mode="json"))
    if changed := [name for name in changed if name not in harmless]:
        raise InputError(
            f"config.json was changed since step {saved.progress.step}: {', '.join(changed)}. "
            "Put the values back to go on, or make a new run."
        )
    return checkpoint.same_environment(run, saved.environment)


def _from_scratch(
    model: Model, task: TaskSet, settings: TaskSettings, stop: Stop
) -> Baseline | None:
    """What the same model reaches without its pretraining; None when it was stopped."""
    wanted = replace(task_settings.tuning(settings), pretrained=False)
    result = finetune(model, task, wanted, stop=stop.requested)
    if result.stopped:
        return None
    return Baseline(
        name=SCRATCH, title="same model without pretraining", metrics=result.report.metrics
    )


def _facts(
    run: RunFolder, settings: TaskSettings, tuning: FineTuning, baselines: list[Baseline]
) -> dict[str, Any]:
    objective = tuning.objective.name
    task = tuning.task
    return {
        "name": settings.name or run.path.name,
        "family": tuning.model.config.family,
        "model": settings.model.checkpoint,
        "objectives": {objective: 1.0},
        "losses": {objective: 1.0},
        "main": main_metric(task),
        "learning_rate": tuning.rate,
        "threads": torch.get_num_threads(),
        "precision": settings.precision,
        "parameters": sum(p.numel() for p in tuning.model.parameters()),
        "task": task_report.facts(task, baselines),
        "baselines": task_report.main_values(task, baselines),
    }


def _export(run: RunFolder, trainer: TaskTrainer, facts: dict[str, Any]) -> None:
    """Write ``model`` with the weights of the best epoch, and ``evaluation.json``."""
    began = time.perf_counter()
    found = task_report.evaluate(trainer.tuning)
    progress = trainer.progress
    evaluation = {
        "steps": progress.step,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 1),
        **found,
        **facts,
        "predicting_seconds": round(time.perf_counter() - began, 2),
    }
    run.save_model(trainer.tuning.model.save)
    run.write_evaluation(task_report.finite(evaluation))
