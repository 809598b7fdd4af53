"""Fine-tuning from the page: labelled sets, what a form comes to, and a box to try a model in.

No Gradio in it. What reads sets and asks models is imported late: a page starts without it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.parts.figure import drawn
from app.runs import config as run_config
from app.runs.data import sources as run_sources
from app.runs.data import tables as run_tables
from app.runs.data.texts import BESIDE, Inbox
from app.runs.limits import COUNTED, SAMPLED
from app.runs.runs import Runs
from app.serving.ask import clean_text
from app.serving.session import Session
from core_models import InputError
from core_models.tasks import sets
from core_models.tasks.columns import guess
from core_models.tasks.rows import KINDS, NEEDED, OPTIONAL, ROLES, Row
from core_models.tasks.sets import TaskSet
from core_models.tasks.settings import usual_rate
from core_models.tasks.tables import Table, parse
from core_models.tasks.words import words
from core_models.training import task_settings
from core_models.training.folder import read_json
from core_models.training.task_schema import TaskSettings
from viz.training import calibration

if TYPE_CHECKING:
    from core_models import Model
    from core_models.tasks.decode import Prediction

TITLES = {
    "sentiment": "Sentiment of a sentence",
    "sentiment-hard": "Sentiment, hard: not, but, although",
    "sentiment-zh": "Sentiment, Chinese",
    "topic": "Topic of a sentence",
    "nli": "Inference between two sentences",
    "similarity": "Similarity of two sentences",
    "ner": "Names in a sentence",
    "ner-zh": "Names in a sentence, Chinese",
    "qa": "Questions on a text",
}
_ROWS = 5
_TYPICAL = 8
"""Rows of a set that are shown: some of each label."""
_SHORT = 240


def describe() -> dict[str, Any]:
    """The shipped sets, and what a set of one's own may be."""
    return {
        "sets": [{"name": name, "title": TITLES.get(name, name)} for name in sets.shipped()],
        "kinds": {kind: [*NEEDED[kind], *OPTIONAL.get(kind, ())] for kind in KINDS},
        "roles": list(ROLES),
    }


def look_again(runs: Runs, source: Any) -> dict[str, Any]:
    """The same of the set of a run whose settings were copied; its columns are those of the run.

    Raises:
        InputError: there is no such fine-tuning.
    """
    folder = runs.folder(source)
    options = task_settings.parse(runs.config(source))
    return {"problem": None, "columns": []} | _facts(task_settings.load_set(options, folder.path))


def look(inbox: Inbox, task: Any) -> dict[str, Any]:
    """A set before training: columns, first rows, counts, and what should be known about it.

    Args:
        inbox: where sent files lie.
        task: ``set`` (shipped name, or the id of a sent file), and of a sent file ``dev`` (another
            one), ``kind`` and ``columns``. Or a text to read from elsewhere: ``dataset`` or
            ``folder``, see :func:`app.runs.data.sources.fetch`; the answer is then as of a text
            that was sent.

    Returns:
        ``problem`` says why a sent file cannot be read as it is; ``columns`` and ``cells`` then
        still tell what it holds.

    Raises:
        InputError: no such set, or no table.
    """
    if not isinstance(task, Mapping):
        raise InputError("task must be an object.")
    if "dataset" in task or "folder" in task:
        return asdict(run_sources.fetch(inbox, task))
    name = task.get("set")
    if isinstance(name, str) and name in sets.shipped():
        return {"problem": None, "columns": []} | _facts(sets.load(name))
    table = _table(inbox, name)
    found: dict[str, Any] = {
        "columns": list(table.columns),
        "cells": [
            {column: str(cell)[:_SHORT] for column, cell in record.items()}
            for record in table.preview(_ROWS)
        ],
    }
    try:
        kind, columns = _wanted(task)
        found |= {"kind": kind, "guess": columns}
        guessed = guess(table, kind=kind, columns=columns)
        found |= {"kind": guessed.kind, "guess": guessed.columns}
        both = [each for each in (name, task.get("dev")) if each is not None]
        made = _built(inbox, both, kind, columns)
    except InputError as error:
        return found | {"problem": str(error)}
    return found | {"problem": None} | _facts(made)


def _table(inbox: Inbox, value: Any) -> Table:
    """A sent file; messages name it as the visitor does."""
    path = inbox.find(value)
    if (table := inbox.opened.get(value)) is None:
        content = path.read_bytes()
        table = parse(content, path.suffix, inbox.name_of(value))
        inbox.opened.put(value, table, len(content))
    return table


def _built(
    inbox: Inbox, tables: Sequence[Any], kind: str | None, columns: Mapping[str, str]
) -> TaskSet:
    """The set of a sent file, and of another one to measure on where there are two."""
    table, dev = [*(_table(inbox, each) for each in tables), None][:2]
    assert table is not None
    guessed = guess(table, kind=kind, columns=columns)
    key = (*tables, guessed.kind, *sorted(guessed.columns.items()))
    if (made := inbox.opened.get(key)) is None:
        made = sets.build(table, dev, kind=kind, columns=columns)
        size = sum(inbox.find(each).stat().st_size for each in tables)
        inbox.opened.put(key, made, size)
    return made


def _wanted(task: Mapping[str, Any]) -> tuple[str | None, dict[str, str]]:
    kind, columns = task.get("kind"), task.get("columns") or {}
    if kind is not None and not isinstance(kind, str):
        raise InputError("task.kind must be a text.")
    if not isinstance(columns, Mapping) or not all(isinstance(c, str) for c in columns.values()):
        raise InputError("task.columns must be an object of names.")
    return kind, dict(columns)


def _facts(made: TaskSet) -> dict[str, Any]:
    rows = sorted(made.train, key=lambda row: row.number)
    typical = run_tables.representative(
        [row.label or ", ".join(row.labels) for row in rows], _TYPICAL
    )
    return {
        "name": made.name,
        "kind": made.kind,
        "labels": list(made.labels),
        "train": asdict(made.statistics()),
        "dev": asdict(made.statistics(made.dev)),
        "chinese": made.chinese,
        "paired": all(row.pair is not None for row in made.train),
        "warnings": list(made.warnings),
        "rows": [_shown(rows[place], made) for place in typical],
    }


def _shown(row: Row, made: TaskSet) -> dict[str, Any]:
    """A row for people."""
    said = row.label
    if row.tags:
        pairs = zip(row.tokens, row.tags, strict=True)
        said = ", ".join(f"{token} {tag}" for token, tag in pairs if tag != "O")[:_SHORT]
    elif row.score is not None:
        said = f"{row.score:g}"
    elif made.kind == "multilabel":
        said = ", ".join(row.labels)
    elif row.label is None:
        said = "; ".join(answer.text for answer in row.answers)
    text = row.text or " ".join(row.tokens)
    pair = None if row.pair is None else row.pair[:_SHORT]
    return {"number": row.number, "text": text[:_SHORT], "pair": pair, "said": said}


def check(
    runs: Runs, session: Session, config: Any, texts: Sequence[Any], source: str | None
) -> dict[str, Any]:
    """What a form for a fine-tuning comes to.

    Raises:
        InputError: the settings, the model or the set cannot be used.
    """
    from core_models.training import task_look  # noqa: PLC0415

    values = runs.checked(config, texts=len(texts), source=source)
    options = task_settings.parse(run_config.with_texts(values, ["sent.csv"] * len(texts)))
    task = _open(runs, options, texts, source)
    named = str(config["model"]["checkpoint"])
    model = session.model(named)
    blocks = model.config.blocks
    if options.frozen_layers > blocks:
        raise InputError(f"frozen_layers is {options.frozen_layers}; {named} has {blocks} blocks.")
    return {
        "kind": task.kind,
        "steps": task_settings.steps(options, _inputs(task, model, options)),
        "estimated": len(task.train) > COUNTED and task.kind in task_look.SEVERAL,
        "rows": [len(task.train), len(task.dev)],
        "parameters": task_look.parameters(options, task, model),
        "layers": model.config.steps,
        "width": model.config.width,
        "learning_rate": options.learning_rate or usual_rate(model.config.width),
        "rate_is_usual": options.learning_rate is None,
    }


def _inputs(task: TaskSet, model: "Model", options: TaskSettings) -> int:
    """Examples that the rows become: a long text, or a long row of words, becomes several.

    Raises:
        InputError: the model cannot learn the set, or a row does not fit into the longest input.
    """
    from core_models.training import task_look  # noqa: PLC0415

    task_look.check_model(options, task, model)
    some = SAMPLED if len(task.train) > COUNTED else None
    return task_look.inputs(options, task, model, sample=some)


def _open(runs: Runs, options: TaskSettings, texts: Sequence[Any], source: str | None) -> TaskSet:
    """The set of a form, from where it lies now."""
    part = options.task
    if not texts and source is not None and part.set.startswith(f"{BESIDE}/"):
        return task_settings.load_set(options, runs.folder(source).path)
    if not texts:
        return task_settings.load_set(options, runs.root)
    columns = {str(role): column for role, column in part.columns.items()}
    return _built(runs.inbox, texts[:2], part.kind, columns)


def result(runs: Runs, run: str) -> dict[str, Any]:
    """``evaluation.json`` of a fine-tuning that has finished.

    Raises:
        InputError: it has not, or is none.
    """
    folder = runs.folder(run)
    found = read_json(folder.path / "evaluation.json")
    if not found or not run_config.is_task(runs.config(run)):
        raise InputError("This run has no result yet. It is measured when the run finishes.")
    known = found.get("calibration") or {}
    if bins := known.get("bins"):
        rows = [(each["probability"], each["accuracy"], each["count"]) for each in bins]
        found["figure"] = drawn(calibration(rows, error=known["error"]))
    return found


async def try_out(session: Session, runs: Runs, run: str, values: Mapping[str, Any]) -> Any:
    """What a fine-tuned model says about a text that somebody typed.

    Args:
        session: computes on its model thread.
        runs: the runs folder.
        run: of a fine-tuning.
        values: ``text`` (the context for a question), and ``pair`` (second text or question).

    Raises:
        InputError: a text is missing or too long, or the run has no model yet.
    """
    status = runs.folder(run).status()
    task = status.get("task")
    if not isinstance(task, dict):
        raise InputError("This run is no fine-tuning, or it has not begun yet.")
    text, pair = _texts(values, task)
    name = f"run/{run}"
    model = await asyncio.to_thread(session.model, name)
    options = task_settings.parse(runs.config(run))

    def work() -> "tuple[str, Prediction]":
        from core_models.tasks import decode, objectives  # noqa: PLC0415
        from core_models.tasks.encode import Coder  # noqa: PLC0415

        head = next(head for head in model.heads if head in objectives.OBJECTIVES)
        length = min(options.max_length, model.longest)
        coder = Coder(
            model=model,
            kind=task["kind"],
            labels=tuple(task["labels"]),
            scale=(task["scale"][0], task["scale"][1]),
            apart=options.task.apart,
            max_length=length,
            stride=options.stride or max(1, length // 3),
        )
        objective = objectives.build(head, model.heads[head]).eval()
        return head, decode.predict(objective, coder, [decode.text_row(coder.kind, text, pair)])[0]

    head, said = await session.compute(work)
    found = asdict(said) | {"kind": task["kind"], "text": text, "pair": pair, "head": head}
    if task["kind"] == "tag":
        found["words"] = [[word.start, word.end] for word in words(text)]
    if task["kind"] == "answer":
        none = max(0.0, 1 - sum(each.probability for each in said.answers))
        found |= {"answer": said.answer(), "answers": found["answers"][:5], "none": none}
    return found | {"scale": task["scale"], "entities_known": task["entities"]}


def _texts(values: Mapping[str, Any], task: Mapping[str, Any]) -> tuple[str, str | None]:
    text = clean_text(values.get("text"))
    # Of a run from before this was noted, a score may be one of a text or of two.
    paired = task.get("paired", task["kind"] in ("pair", "answer") or None)
    if paired and not values.get("pair"):
        raise InputError("This model reads two texts: write the second one, too.")
    return text, clean_text(values["pair"]) if values.get("pair") and paired is not False else None
