"""The folder of an objective race: what its process writes and everybody else reads.

    experiment.json  what was asked for; never changed by the process
    race.json        state, identity of the process, and the table so far; replaced in one step
    words.json       the held-out words that every model is asked for
    log.txt          what happened, in words
    stop             created by whoever wants the race to stop after the current step
    NAME/            an ordinary run folder for each entrant

No PyTorch here.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core_models.errors import InputError
from core_models.training import durable
from core_models.training.folder import RunFolder, read_json

_LIVE = ("step", "steps", "tokens")
"""Figures of a run at work that its own folder knows better."""


class RaceFolder(RunFolder):
    """One race on disk. Any number of readers; one writer, which holds :meth:`lock`.

    Log, stop request and lock work as in a run.
    """

    @classmethod
    def create(cls, path: Path | str, config: Mapping[str, Any]) -> "RaceFolder":
        """Make a new race folder that holds ``experiment.json``.

        Raises:
            InputError: there already is a race.
        """
        race = cls(path)
        if race.config_path.exists():
            raise InputError(f"{race.path} already holds a race. Choose another folder.")
        race.path.mkdir(parents=True, exist_ok=True)
        text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        durable.write_text(race.config_path, text)
        return race

    @property
    def config_path(self) -> Path:
        """``experiment.json``."""
        return self.path / "experiment.json"

    @property
    def words_path(self) -> Path:
        """``words.json``."""
        return self.path / "words.json"

    def config(self) -> dict[str, Any]:
        """What was asked for; empty when it cannot be read."""
        return read_json(self.config_path)

    def run(self, name: str) -> RunFolder:
        """The run of an entrant; it may not exist yet."""
        return RunFolder(self.path / name)

    def status(self) -> dict[str, Any]:
        """The last complete ``race.json``; empty when there is none."""
        return read_json(self.path / "race.json")

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace ``race.json`` in one step."""
        values = dict(status) | {"updated": time.time()}
        durable.write_text(self.path / "race.json", json.dumps(values, indent=2) + "\n")

    def request_stop(self) -> None:
        """Ask the process to save and stop: the run at work after its step, no other begins."""
        super().request_stop()
        for row in self._rows():
            if row["state"] == "running":
                self.run(row["name"]).request_stop()

    def reopen(self) -> bool:
        """Let a race that has finished go on with its models that failed; False where none did.

        Raises:
            InputError: a process works on it.
        """
        with self.lock():
            rows = self._rows()
            failed = [row for row in rows if row["state"] == "failed"]
            for row in failed:
                row.pop("reason", None)
                row["state"] = "waiting"
            if failed:
                self.write_status(self.status() | {"state": "stopped", "table": rows})
        return bool(failed)

    def table(self) -> list[dict[str, Any]]:
        """A row for each entrant in the order of the file, with what is known so far.

        The row of the run at work follows its own folder, so it is as new as that.
        """
        rows = self._rows()
        for row in rows:
            if row["state"] == "running":
                status = self.run(row["name"]).status()
                row |= {name: status[name] for name in _LIVE if name in status}
                row["state"] = self.run(row["name"]).state()
        return rows

    def _rows(self) -> list[dict[str, Any]]:
        """The rows of the last table; what no race writes is left out."""
        found = self.status().get("table")
        rows = found if isinstance(found, list) else []
        texts = ("name", "state")
        return [
            dict(row)
            for row in rows
            if isinstance(row, dict) and all(isinstance(row.get(text), str) for text in texts)
        ]


def races(root: Path | str) -> list[RaceFolder]:
    """Every race folder directly under ``root``, by name."""
    return [RaceFolder(path.parent) for path in sorted(Path(root).glob("*/experiment.json"))]
