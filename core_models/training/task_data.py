"""From labelled files to the ``data`` folder of a fine-tuning: rows and baselines. Done once."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from core_models.tasks import sets
from core_models.tasks.baselines import Baseline, baselines
from core_models.tasks.rows import Answer, Row
from core_models.tasks.sets import TaskSet
from core_models.training.folder import RunFolder
from core_models.training.task_schema import TaskSettings
from core_models.training.task_settings import load_set

_FACTS, _ROWS = "task.json", ("train", "dev")


def prepare(run: RunFolder, settings: TaskSettings) -> tuple[TaskSet, list[Baseline]]:
    """Read the set once into the run's ``data`` folder, with its baselines, and open that.

    Raises:
        InputError: a file is missing, or a row cannot be used.
    """
    wanted = settings.task.model_dump(mode="json")
    facts = run.prepare(_FACTS, wanted, lambda folder: _build(folder, run, settings))
    train, dev = (_read_rows(run.data_path / f"{part}.jsonl") for part in _ROWS)
    task = sets.from_rows(facts["name"], facts["kind"], train, dev)
    # Rows were rewritten when the file was read, so only then it was seen in what scheme they were.
    task = replace(task, warnings=tuple(facts.get("warnings", task.warnings)))
    return task, [Baseline(**values) for values in facts["baselines"]]


def _build(folder: Path, run: RunFolder, settings: TaskSettings) -> None:
    task = load_set(settings, run.path)
    for part in _ROWS:
        lines = [json.dumps(asdict(row), ensure_ascii=False) for row in getattr(task, part)]
        (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    facts = {
        "name": task.name,
        "kind": task.kind,
        "warnings": list(task.warnings),
        "baselines": [asdict(baseline) for baseline in baselines(task)],
        "ingredients": settings.task.model_dump(mode="json"),
    }
    (folder / _FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def _read_rows(path: Path) -> list[Row]:
    lines = path.read_text(encoding="utf-8").split("\n")
    return [_row(json.loads(line)) for line in lines if line]


def _row(values: dict[str, Any]) -> Row:
    return Row(
        **values
        | {"labels": tuple(values.get("labels", ()))}
        | {"tokens": tuple(values["tokens"]), "tags": tuple(values["tags"])}
        | {"answers": tuple(Answer(**answer) for answer in values["answers"])}
    )
