"""An objective race, or the rest of it, in this process.

Makes an ordinary run for each entrant, trains one after the other, and measures each as soon as it
has finished. Killed or stopped at any moment, it goes on where it was.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from core_models.errors import InputError
from core_models.evaluation.words import Word
from core_models.model import load
from core_models.training import durable, race_measure, race_schema, settings
from core_models.training.folder import RunFolder, State, read_json, remember_process
from core_models.training.host import Stop, on, processes, threads
from core_models.training.precision import settled
from core_models.training.process import Say, live, train
from core_models.training.race_folder import RaceFolder
from core_models.training.race_schema import Entrant, Race

Row = dict[str, Any]


def new_race(recipe: Path, folder: Path) -> Path:
    """Make a race folder from a file and give the path of its ``experiment.json``.

    A folder that already holds the same race is left as it is.

    Raises:
        InputError: the file is not valid, names texts that are not there, or the folder holds
            another race or other files.
    """
    settings.refuse_folder(recipe, "experiment.json")
    values = settings.read_values(recipe)
    try:
        race = race_schema.parse(values)
    except InputError as error:
        raise InputError(f"{recipe}: {error}") from None
    values["data"] = settings.texts_in_full(values["data"], recipe.resolve().parent)
    known = RaceFolder(folder)
    if not known.config_path.exists():
        settings.refuse_filled(folder)
    elif known.config() == values:
        return known.config_path
    settings.check_texts(race.data, recipe)
    return RaceFolder.create(folder, values).config_path


def run_race(config: Path, say: Say) -> State:
    """Run, or go on with, the race whose ``experiment.json`` is given; what failed is tried again.

    Returns:
        ``finished``, or ``stopped`` after a stop request or a signal.

    Raises:
        InputError: the race cannot be used, or a process is already at work.
    """
    settings.refuse_folder(config, "experiment.json")
    if config.name != "experiment.json":
        raise InputError(
            f"{config.name} is not inside a race folder: its file is called experiment.json. "
            "Use --runs FOLDER to make a race from a file."
        )
    if not config.is_file():
        raise InputError(f"There is no file {config}.")
    if processes() > 1:
        raise InputError(
            "A race runs in one process: its runs are trained one after the other. Start it "
            "without torchrun or accelerate launch, or train each run of it on its own with them."
        )
    folder = RaceFolder(config.parent)
    folder.reopen()
    return live(folder, lambda: _Runner(folder, say).run(), say)


class _Runner:
    """One race, from wherever it stands to its end or to a stop."""

    def __init__(self, folder: RaceFolder, say: Say) -> None:
        self.folder, self.say = folder, say
        self._stop = Stop(folder)
        before, since = folder.status(), folder.wanted_since()
        self.status: dict[str, Any] = {
            "name": folder.path.name,
            **{k: before[k] for k in ("table", "probe_baselines", "precision") if k in before},
            "state": "running",
            "process": remember_process(),
        }
        folder.write_status(self.status)
        folder.clear_stop(before=since)
        folder.sweep()
        self.race: Race = race_schema.parse(settings.read_values(folder.config_path))
        self.rows: list[Row] = self.status.setdefault("table", [])
        self.words: list[Word] = []

    def run(self) -> State:
        chosen = settled(self.race.precision, self.status.get("precision"))
        race = self.race = self.race.model_copy(update={"precision": chosen})
        self.status |= {
            "name": race.name or self.folder.path.name,
            "precision": chosen,
            "budget": race.budget.model_dump(),
        }
        self._prepare()
        for row in self.rows:
            if row["state"] == "finished":
                continue
            if self._stop.requested() or not self._entrant(row):
                return self._stopped()
            self._stop.take_back()  # the run took the signals for itself
        self._write(state="finished")
        self.folder.log("finished")
        return "finished"

    def _stopped(self) -> State:
        self.folder.log("stopped")
        self._write(state="stopped", reason=self._stop.reason or "by request")
        self.folder.clear_stop()  # not before: without the request it would seem to go on
        return "stopped"

    # -- before the first step --------------------------------------------------------------------

    def _prepare(self) -> None:
        """Make every run with its data, so that nothing is spent on a race that cannot end."""
        race = self.race
        known = {row["name"] for row in self.rows}
        for entrant in race.entrants:
            if entrant.name not in known:
                self.rows.append(self._new_run(entrant))
                self._write()
        if race.measures.words:
            if not self.folder.words_path.exists():
                words = race_measure.held_out_words(race, self.folder.path)
                durable.write_text(self.folder.words_path, json.dumps(words, ensure_ascii=False))
            values = settings.read_values(self.folder.words_path)
            self.words = [Word(*word) for word in values]
        if "probe_baselines" not in self.status:
            self._write(probe_baselines=race_measure.probe_baselines(race.measures.probes))

    def _new_run(self, entrant: Entrant) -> Row:
        """Make a run's data, find out its number of steps, and write its ``config.json``."""
        race, run = self.race, self.folder.run(entrant.name)
        run.path.mkdir(exist_ok=True)
        steps = race.budget.steps
        try:
            cost = race_measure.cost(
                run, settings.parse(self._values(entrant, steps or race_schema.ANY_STEPS))
            )
            if steps is None:
                assert race.budget.flops is not None
                steps = max(1, round(race.budget.flops / cost.flops_per_step))
            values = self._values(entrant, steps)
            settings.parse(values)
        except InputError as error:
            raise InputError(f"entrants, {entrant.name}: {error}") from None
        if read_json(run.config_path) != values:
            RunFolder.create(run.path, values)
        return {
            "name": entrant.name,
            "state": "waiting",
            "size": entrant.size,
            **asdict(cost),
            "flops": steps * cost.flops_per_step,
            "steps": steps,
            "step": 0,
        }

    def _values(self, entrant: Entrant, steps: int) -> dict[str, Any]:
        values = race_schema.run_values(self.race, entrant, steps)
        values["data"] = settings.texts_in_full(values["data"], self.folder.path.resolve())
        return values

    # -- one entrant ------------------------------------------------------------------------------

    def _entrant(self, row: Row) -> bool:
        """Train and measure; False when it was stopped. Where either fails the row says why."""
        run = self.folder.run(row["name"])
        row.pop("reason", None)
        row["state"] = "running"
        self._write()
        self.folder.log(f"{row['name']}: training")
        try:
            state = train(run.config_path, lambda line: self._tell(row, run, line))
            self._follow(row, run)
            if state == "stopped":
                row["state"] = "stopped"
                self._stop.reason = self._stop.reason or str(run.status().get("reason", ""))
                return False
            self._stop.take_back()
            return self._measure(row, run)
        except InputError as error:
            row |= {"state": "failed", "reason": str(error)}
            self.folder.log(f"{row['name']}: failed: {error}")
            self._write()
            return True

    def _tell(self, row: Row, run: RunFolder, line: str) -> None:
        self._follow(row, run)
        self._write()
        if self._stop.requested():
            run.request_stop()
        self.say(f"{row['name']}: {line}")

    def _follow(self, row: Row, run: RunFolder) -> None:
        """Take over what the run's folder says."""
        status, found = run.status(), read_json(run.path / "evaluation.json")
        row |= {name: status[name] for name in ("step", "tokens") if name in status}
        if found:
            row |= {"seconds": found["seconds"], "held_out": found["held_out"]}

    def _measure(self, row: Row, run: RunFolder) -> bool:
        """Whatever the model has heads for and the row has not; False when it was stopped."""
        row["state"] = "measuring"
        self._write()
        torch.set_num_threads(threads(self.race.threads, None))
        model = load(run.model_path).to(on()).eval()
        calls = race_measure.measurements(model, self.race.measures, self.words)
        for name, call in calls.items():
            group, _, member = name.partition(".")
            place: dict[str, Any] = row.setdefault(group, {}) if member else row
            if (member or group) in place:
                continue
            if self._stop.requested():
                return False
            place[member or group] = call()
            self.say(f"{row['name']}: {name} {_figure(place[member or group])}")
            self._write()
        row["state"] = "finished"
        self.folder.log(f"{row['name']}: finished")
        self._write()
        return True

    def _write(self, **changes: Any) -> None:
        self.status |= changes
        self.folder.write_status(self.status)


def _figure(found: Mapping[str, Any]) -> str:
    return f"{found['value'] if 'value' in found else found['accuracy']:.3f}"
