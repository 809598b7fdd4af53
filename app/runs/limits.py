"""How large a run from the page may be. No Gradio in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.runs.data.texts import MOST_BYTES
from core_models import InputError
from core_models.training import race_schema, settings, task_settings
from core_models.training.settings import Settings
from core_models.training.task_schema import TaskSettings

COUNTED = 5_000
"""Rows up to which it is counted, where no steps are limited, as how many they are read."""
SAMPLED = 1_000
"""Rows of a larger set from which that is estimated."""
_CURE = "Choose less, or train on a machine of your own: `make app`."


@dataclass(frozen=True, kw_only=True)
class Limits:
    """None = no limit."""

    steps: int | None = None
    """Updates of a run; of all entrants together in a race."""
    parameters: int | None = None
    """Of a fresh model with its pretraining heads; of its generator, too."""
    minutes: int | None = None
    """After which a run is stopped, with everything saved."""
    upload: int = MOST_BYTES
    """Bytes of a text or a table that is sent."""

    def check(self, kind: str, values: Mapping[str, Any]) -> None:
        """Refuse a config that is too large; a set is not read here, see :meth:`check_rows`."""
        if self.steps is None and self.parameters is None:
            return
        if kind == "race":
            race = race_schema.parse(values)
            if race.budget.steps is None:
                raise InputError("This server limits steps: give budget.steps, not budget.flops.")
            self._steps(race.budget.steps * len(race.entrants), "Together the runs make")
            for entrant in race.entrants:
                self._fresh(
                    settings.parse(race_schema.run_values(race, entrant, race.budget.steps))
                )
        elif kind == "pretraining":
            options = settings.parse(values)
            self._steps(options.steps, "This run makes")
            self._fresh(options)

    def check_rows(self, values: Mapping[str, Any], beside: Path) -> int:
        """The same for a fine-tuning, whose set lies in or beside its folder by now.

        Rows that are too long to be read at once count as often as they are read. Where steps are
        limited all are counted, or as many as are needed to refuse the run; else some of a large
        set, as in the form.

        Returns:
            The steps of the run itself, without a comparison from scratch.

        Raises:
            InputError: too many steps, the set cannot be used, or not with this model.
        """
        # Imported late: a server that only looks at runs need not wait for PyTorch.
        from core_models.model import load  # noqa: PLC0415
        from core_models.training import task_look  # noqa: PLC0415

        options = task_settings.parse(values)
        task = task_settings.load_set(options, beside)
        model = load(settings.resolve_folder(options.model.checkpoint, beside))
        times = 2 if options.compare_from_scratch else 1
        # Before anything is encoded: rows are counted in no time, and there are as many at least.
        self._steps(times * task_settings.steps(options, len(task.train)), "This run makes")
        most = self._most_inputs(options, times)
        task_look.check_model(options, task, model)
        some = SAMPLED if most is None and len(task.train) > COUNTED else None
        inputs = task_look.inputs(options, task, model, most=most, sample=some)
        steps = task_settings.steps(options, inputs)
        self._steps(times * steps, "Long texts are read in parts, so this run makes at least")
        return steps

    def _most_inputs(self, options: TaskSettings, times: int) -> int | None:
        """Examples of which the allowed steps can be made; one more is one step too many."""
        if self.steps is None:
            return None
        batches = self.steps // (times * options.epochs)
        return (batches + 1) * options.batch_size - 1

    def _steps(self, wanted: int, words: str) -> None:
        if self.steps is not None and wanted > self.steps:
            raise InputError(
                f"{words} {wanted:,} steps; this server allows {self.steps:,}. {_CURE}"
            )

    def _fresh(self, options: Settings) -> None:
        """A model to go on from is one that this server lists, so it is small enough."""
        if self.parameters is None or options.model.size is None:
            return
        # Imported late: whoever sets no limit need not wait for PyTorch here.
        from core_models.counting.counts import count  # noqa: PLC0415
        from core_models.training.models import fresh_generator_config  # noqa: PLC0415
        from core_models.training.plan import plan_for  # noqa: PLC0415
        from core_models.training.shape import build_config  # noqa: PLC0415

        model = build_config(options, options.tokenizer.vocabulary, 0)
        largest = count(model).trained
        if "replaced_token" in plan_for(options, model).objectives:
            generator = fresh_generator_config(options, model)
            largest = max(largest, count(generator).trained)
        if largest > self.parameters:
            raise InputError(
                f"This model has {largest:,} parameters; this server allows "
                f"{self.parameters:,}. {_CURE}"
            )


NO_LIMITS = Limits()
