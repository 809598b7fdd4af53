"""Which labelled sets the models are fine-tuned on, and how: one JSON file, checked first."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from core_models.errors import InputError
from core_models.tasks import sets, tables
from core_models.tasks.sets import TaskSet
from core_models.tasks.settings import Settings
from core_models.tasks.tables import Table
from core_models.training.settings import ASSETS
from zoo.recipe import Part, read_as

RECIPE = ASSETS / "recipes" / "scores.json"
_DEV_SHARE = 0.2
"""Of a file without rows to measure on."""

Rows = Annotated[int, Field(ge=2, le=100_000)]


class TaskRecipe(Part):
    """One labelled set, and how much of it is used."""

    title: str
    """What is asked, for people."""
    kind: Literal["classify", "pair", "regress", "tag", "answer"]
    language: Literal["en", "zh"] = "en"
    shipped: str | None = None
    """Name of a set of the Primer."""
    train: str | None = None
    """Otherwise: a file of the data folder."""
    dev: str | None = None
    """File with the rows to measure on."""
    part_by: str | None = None
    """Without ``dev``: a column; rows with one value of it stay together, a fifth is measured on.
    """
    columns: dict[str, str] = Field(default_factory=dict)
    """Role to column, where it cannot be guessed."""
    train_rows: Rows | None = None
    """Most rows to learn from, drawn from the file; null = all."""
    dev_rows: Rows | None = None
    """Most rows to measure on; null = all."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Merged into the settings of all tasks."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.shipped is None) == (self.train is None):
            raise ValueError("give either shipped or train, not both and not neither")
        if self.train is not None and (self.dev is None) == (self.part_by is None):
            raise ValueError("train needs either dev or part_by")
        return self

    @property
    def of_text(self) -> bool:
        """Whether one token stands for the whole text: the first, in most families."""
        return self.kind in ("classify", "pair", "regress")


class Scores(Part):
    """The whole recipe."""

    sample_seed: int
    """Of the rows that are drawn; the same rows for every model and seed."""
    settings: dict[str, Any]
    """Of every fine-tuning, as in :class:`~core_models.tasks.settings.Settings`."""
    tasks: dict[str, TaskRecipe]

    @model_validator(mode="after")
    def _settings_exist(self) -> Self:
        for name in self.tasks:
            try:
                self.settings_of(name, seed=1)
            except (TypeError, InputError) as error:
                raise ValueError(f"tasks.{name}: {error}") from None
        return self

    def settings_of(self, name: str, *, seed: int, pretrained: bool = True) -> Settings:
        """How to fine-tune on a task."""
        values = self.settings | self.tasks[name].settings
        return Settings(**values | {"seed": seed, "pretrained": pretrained})

    def facts(self, name: str) -> dict[str, Any]:
        """All that a score depends on, but for the model and the seed: for telling old scores."""
        task = self.tasks[name].model_dump(mode="json", exclude={"title", "settings"})
        return task | {
            "sample_seed": self.sample_seed,
            "settings": self.settings | self.tasks[name].settings,
        }


def read(path: Path = RECIPE) -> Scores:
    """Read the recipe; InputError lists everything that is wrong with it."""
    return read_as(Scores, path)


def task_set(recipe: Scores, name: str, data: Path | None) -> TaskSet:
    """The rows of a task, the same ones each time.

    Raises:
        InputError: a file is missing or does not fit.
    """
    task = recipe.tasks[name]
    if task.shipped is not None:
        train, dev = (sets.SHIPPED / f"{task.shipped}.{part}.jsonl" for part in ("train", "dev"))
        rows: tuple[Table, Table] = (tables.read(train), tables.read(dev))
    else:
        if data is None:
            raise InputError(f"The task {name} reads {task.train}; give its folder with --data.")
        assert task.train is not None
        first = tables.read(data / task.train)
        if task.dev is None:
            assert task.part_by is not None
            rows = _parted(first, task.part_by, recipe.sample_seed)
        else:
            rows = (first, tables.read(data / task.dev))
    some = [
        _drawn(table, most, recipe.sample_seed)
        for table, most in zip(rows, (task.train_rows, task.dev_rows), strict=True)
    ]
    return sets.build(*some, kind=task.kind, columns=task.columns, title=name)


def _drawn(table: Table, most: int | None, seed: int) -> Table:
    """At most so many rows, in the order of the file."""
    if most is None:
        return table
    ranked = sorted(range(len(table.records)), key=lambda i: _rank(seed, i))
    return _only(table, sorted(ranked[:most]))


def _parted(table: Table, column: str, seed: int) -> tuple[Table, Table]:
    """Rows to learn from and to measure on, which share no value of a column."""
    if column not in table.columns:
        raise InputError(f"{table.name} has no column {column!r}; it has {table.columns}.")
    groups: dict[str, list[int]] = {}
    for index, record in enumerate(table.records):
        groups.setdefault(str(record.get(column)), []).append(index)
    dev: list[int] = []
    train: list[int] = []
    for value in sorted(groups, key=lambda value: _rank(seed, value)):
        full = len(dev) >= _DEV_SHARE * len(table.records)
        (train if full else dev).extend(groups[value])
    return _only(table, sorted(train)), _only(table, sorted(dev))


def _only(table: Table, indices: Sequence[int]) -> Table:
    return replace(
        table,
        records=tuple(table.records[i] for i in indices),
        numbers=tuple(table.numbers[i] for i in indices),
    )


def _rank(seed: int, value: object) -> bytes:
    """The same on every version of Python."""
    return hashlib.sha256(f"{seed},{value}".encode()).digest()
