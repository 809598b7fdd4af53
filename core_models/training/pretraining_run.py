"""A pretraining as a run folder: from its settings to its first update, and to its evaluation."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from accelerate import Accelerator

from core_models.model import Model
from core_models.training import models
from core_models.training.checkpoint import Saved
from core_models.training.examples import Masker
from core_models.training.folder import RunFolder
from core_models.training.learning import Begun
from core_models.training.models import Base
from core_models.training.plan import Plan, plan_for
from core_models.training.prepare import Prepared, prepare
from core_models.training.pretraining import Pretraining
from core_models.training.settings import Settings
from core_models.training.several import check_same, check_shares
from core_models.training.streams import open_stream, open_validation


def begin(run: RunFolder, settings: Settings, saved: Saved | None) -> Begun:
    """Prepare the data and build the models, with the weights of a checkpoint where there is one.

    Raises:
        InputError: the settings or the data cannot be used.
    """
    accelerator = Accelerator(
        mixed_precision="bf16" if settings.precision == "bf16" else "no",
        cpu=not torch.accelerator.is_available(),  # else several CPU processes stay strangers
    )
    if saved is None:
        base = models.base_of(settings, run.path)
    else:
        companions = saved.values.get("companions", [])
        base = Base(saved.model(), {name: saved.model(name) for name in companions})
    plan = plan_for(settings, models.published_config(settings, base))
    with accelerator.main_process_first():
        data = prepare(run, settings, plan, None if base is None else base.model.tokenizer)
    check_same(accelerator, run, settings, saved)
    examples = settings.batch_size if plan.recurrent else len(data.training)
    check_shares(accelerator.num_processes, settings.batch_size, examples)
    words = data.tokenizer
    config = models.model_config(
        settings, plan, base, vocabulary=words.vocabulary, pad_id=words.pad_id
    )
    model = models.build_model(settings, plan, config, words, base)
    masker = Masker(plan, config, words, data.similar)
    learning = Pretraining(
        settings=settings,
        plan=plan,
        accelerator=accelerator,
        model=model,
        objective=models.build_objective(settings, plan, model, base, run.path),
        stream=open_stream(data.training, masker, settings, accelerator.device),
        validation=open_validation(data.validation, masker, settings),
    )

    def conclude(measure: Callable[[], dict[str, float]], stop: object) -> dict[str, Any]:
        del stop
        return {"held_out": measure()}

    return Begun(learning, _facts(run, settings, plan, data, learning), conclude)


def _facts(
    run: RunFolder, settings: Settings, plan: Plan, data: Prepared, learning: Pretraining
) -> dict[str, Any]:
    return {
        "name": settings.name or run.path.name,
        "family": learning.model.config.family,
        "objectives": plan.objectives,
        "losses": learning.weights,
        "format": plan.format,
        "masking": asdict(plan.masking) if plan.masks else None,
        "threads": torch.get_num_threads(),
        "precision": settings.precision,
        "processes": learning.accelerator.num_processes,
        "parameters": _size(learning.model),
        "companions": {
            name: _size(model) for name, model in learning.objective.companions().items()
        },
        "data": {k: v for k, v in data.facts.items() if k != "baselines"}
        | {"examples": len(data.training)},
        "baselines": data.facts["baselines"],
    }


def _size(model: Model) -> int:
    return sum(p.numel() for p in model.parameters())
