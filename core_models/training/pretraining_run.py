"""A pretraining as a run folder: from its settings to its first update, and to its evaluation."""

import contextlib
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from core_models.data.order import fewest_rows
from core_models.errors import InputError
from core_models.training import models
from core_models.training.checkpoint import Saved
from core_models.training.folder import RunFolder
from core_models.training.host import on, processes, sharded, together
from core_models.training.learning import Begun, size
from core_models.training.models import Base
from core_models.training.plan import Plan
from core_models.training.prepare import Prepared
from core_models.training.pretraining import Pretraining
from core_models.training.settings import Settings
from core_models.training.several import check_same, check_shares
from core_models.training.streams import open_data, open_stream, open_validation


def begin(run: RunFolder, settings: Settings, saved: Saved | None) -> Begun:
    """Prepare the data and build the models, with the weights of a checkpoint where there is one.

    Raises:
        InputError: the settings or the data cannot be used.
    """
    if settings.compile and sharded():
        raise InputError("A sharded run cannot compile the encoder: set compile to false.")
    accelerator = together()
    if saved is None:
        base = models.base_of(settings, run.path)
    else:
        companions = saved.values.get("companions", [])
        base = Base(saved.model(), {name: saved.model(name) for name in companions})
    with accelerator.main_process_first() if accelerator else contextlib.nullcontext():
        data, masker, config = open_data(run, settings, base)
    plan = masker.plan
    if accelerator:
        check_same(accelerator, run, settings, saved)
        examples = settings.batch_size
        if not plan.recurrent:
            examples = min(len(data.training), len(data.early))
        least = min(settings.batch_size, settings.first_batch)
        if settings.data.even and not plan.recurrent:
            least = fewest_rows(least)
        check_shares(accelerator.num_processes, least, examples)
    model = models.build_model(settings, plan, config, data.tokenizer, base)
    learning = Pretraining(
        settings=settings,
        plan=plan,
        model=model,
        objective=models.build_objective(settings, plan, model, base, run.path),
        stream=open_stream(data, masker, settings, on()),
        validation=open_validation(data.validation, masker, settings),
        accelerator=accelerator,
    )

    def conclude(measure: Callable[[], dict[str, float]], stop: object) -> dict[str, Any]:
        del stop
        return {"held_out": measure()}

    return Begun(learning, _facts(plan, data, learning), conclude)


def _facts(plan: Plan, data: Prepared, learning: Pretraining) -> dict[str, Any]:
    return {
        "objectives": plan.objectives,
        "format": plan.format,
        "masking": asdict(plan.masking) if plan.masks else None,
        "processes": processes(),
        "companions": {
            name: size(model) for name, model in learning.objective.companions().items()
        },
        "data": {k: v for k, v in data.facts.items() if k != "baselines"}
        | {"examples": len(data.training)},
        "baselines": data.facts["baselines"],
    }
