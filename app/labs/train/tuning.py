"""The form for a fine-tuning: a labelled set, what it starts from, and how it learns."""

from collections.abc import Mapping
from typing import Any

import gradio as gr
from gradio.components import Component

from app.labs.train.form import Asked, kept, translated
from app.labs.train.labelling import APART, LabelledForm
from app.labs.train.parts import COPIES, Upload, sent
from app.parts import fields
from app.parts.controls import OpenDropdown
from app.parts.plain import Kept, Line, Table
from app.runs.forms import form as run_form
from app.runs.forms import labelled
from app.runs.forms import tasks as run_tasks
from app.runs.forms.words import layers, many, sentences
from app.serving.ask import clean_name
from core_models import InputError
from core_models.tasks import sets
from core_models.training.task_schema import TaskSettings
from viz.svg import Wording

FIRST = "sentiment"
TABLE = "text,label\nThe film was a joy.,positive\nI left after an hour.,negative"


class Tuning(LabelledForm):
    """A pretrained model learns a task from labelled examples."""

    kind = "task"
    schema = TaskSettings
    start = "Start fine-tuning"
    otherwise = "my-task"
    shell = "python -m core_models.training {0}.json --run runs/{0}"

    def first(self) -> dict[str, Any]:
        """The sentiment of sentences."""
        model = {"checkpoint": run_form.task_models()[0]}
        return {"model": model, "task": {"set": FIRST}, "checkpoints": {"keep": 1}}

    def lay_out(self, config: Mapping[str, Any]) -> None:
        """The set with what is in it, the model, and the settings."""
        titles = {each["name"]: each["title"] for each in run_tasks.describe()["sets"]}
        with gr.Row():
            self.set = OpenDropdown(
                labelled.set_choices(),
                value=FIRST if FIRST in titles else labelled.OWN,
                label="Labelled set",
                filterable=False,
                elem_id="train-set",
            )
            self.base = OpenDropdown(
                [config["model"]["checkpoint"]],
                value=config["model"]["checkpoint"],
                label="Checkpoint",
                filterable=False,
            )
        self.set_choices, self.bases = translated(self.set), translated(self.base)
        self.direction, self.language = Line(elem_classes=["wrong"]), Line(elem_classes=["wrong"])
        with gr.Column(visible=False) as self.mine:
            with gr.Row():
                self.table = Upload("Send a table (.csv, .tsv, .jsonl, .parquet)", labelled=True)
                self.dev = Upload("Rows to measure on (optional)", labelled=True)
            self.paste = gr.Textbox(
                label="Or paste one, with a first row of column names",
                placeholder=TABLE,
                lines=4,
                max_lines=10,
                max_length=400_000,
            )
            Line("Without a second table 15 % of the rows are kept to measure on.")
            Line(COPIES)
        with gr.Row(visible=False) as self.mapping:
            kinds = [(str(title), name) for name, title in labelled.KINDS.items()]
            self.task_kind = OpenDropdown(kinds, label="What it asks", filterable=False)
            self.roles = {
                role: OpenDropdown([], label=label, filterable=False, visible=False)
                for role, label in labelled.ROLES.items()
            }
        self.facts = Kept()
        self.about_set = Line(elem_classes=["said"])
        self.warnings = Line(elem_classes=["wrong"])
        with gr.Accordion("Rows and labels of the set", open=False):
            self.labels, self.rows = Table(elem_id="train-labels"), Table(elem_id="train-set-rows")
        self.controls = fields.draw(self.known, "train-task")
        self.own |= {"set": self.set, "base": self.base, "table": self.table, "dev": self.dev}
        self.own["facts"] = self.facts

    def _end(self) -> None:
        super()._end()
        self.tells += [self.direction, self.language, self.begin, self.batch, self.measure]

    # --- settings -----------------------------------------------------------------------------

    def settings(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """With the set and the model."""
        config = super().settings(question)
        ticked = config["task"] if isinstance(config.get("task"), Mapping) else {}
        facts = question["facts"] if isinstance(question["facts"], Mapping) else {}
        task: Any = {"set": question["set"]}
        if question["set"] == labelled.COPIED:
            task = kept(question).get("task") or {}
        elif question["set"] == labelled.OWN:
            task = facts.get("task") or {}
        plain = {n: v for n, v in task.items() if n not in ("apart", "every_step")}
        ticks = {name: True for name in ("apart", "every_step") if ticked.get(name) is True}
        return {**config, "model": {"checkpoint": question["base"]}, "task": plain | ticks}

    def sent(self, question: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The tables."""
        if question["set"] != labelled.OWN:
            return []
        return [*sent(question["table"]), *sent(question["dev"])]

    def asked(self, question: Mapping[str, Any]) -> Asked:
        """Without a set that can be learned from there is nothing to ask."""
        facts = question["facts"] if isinstance(question["facts"], Mapping) else {}
        if facts.get("problem"):
            raise InputError(str(facts["problem"])[:1000])
        if not facts.get("good"):
            raise InputError("There is nothing to learn: choose a labelled set or send one.")
        return super().asked(question)

    def tell(self, question: Mapping[str, Any], found: Mapping[str, Any] | None) -> list[Any]:
        """What is learned from what, and what should be known of the two."""
        facts = question["facts"] if isinstance(question["facts"], Mapping) else {}
        able = bool(facts.get("good")) and self.runs is not None and self.runs.enabled
        model = self._reader(question["base"])
        buttons = [gr.update(interactive=able)] * 3
        about = [
            labelled.DIRECTION if not labelled.fits(model, facts, question[APART] is True) else "",
            labelled.strange(model, facts),
            *buttons,
        ]
        if found is None:
            return ["", "", *about]
        steps = _steps(found["steps"], estimated=found["estimated"])
        rows = found["rows"][0]
        rate = Wording("Its peak learning rate is {0}.", f"{found['learning_rate']:g}")
        return [
            Wording(
                "{0} over {1}, with a model of {2} parameters ({3} of width {4}).",
                steps,
                Wording("1 row") if rows == 1 else Wording("{0} rows", f"{rows:,}"),
                many(found["parameters"]),
                layers(found["layers"]),
                found["width"],
            ),
            rate if found["rate_is_usual"] else "",
            *about,
        ]

    def _reader(self, name: Any) -> Mapping[str, Any]:
        models = run_form.readers(self.service(), self.session)
        return next((each for each in models if each["name"] == name), {"name": str(name)[:80]})

    def time_of(self, measured: Mapping[str, Any]) -> Wording:
        """Without a speed, as rows differ in length."""
        time, memory, _ = super().time_of(measured).values
        return Wording(
            "About {0} and {1} MB of memory on this machine as busy as it is now.", time, memory
        )

    def filled(self) -> list[Component]:
        """With the set, the model and what sets there are."""
        return [*super().filled(), self.set, self.base, self.set_choices]

    def fill(self, config: Mapping[str, Any], **more: Any) -> list[Any]:
        """Of a run that learned from a table of its own, the table goes with it."""
        task = config["task"] if isinstance(config.get("task"), Mapping) else {}
        name, source = str(task.get("set") or ""), more.get("source")
        shipped = name in sets.shipped()
        copied = source is not None and not shipped
        found = super().fill(config, **more, **({"task": task} if copied else {}))
        label = [(f"{name.rsplit('/', 1)[-1]} of {source}", labelled.COPIED)] if copied else []
        base = str(fields.read(config, "model.checkpoint") or "")
        return [
            *found,
            labelled.COPIED if copied else name if shipped else labelled.OWN,
            base,
            {"choices": [*labelled.set_choices(), *label]},
        ]

    def noted(self, kept: Mapping[str, Any]) -> str:
        """Its labelled file, too."""
        told = super().noted(kept)
        return sentences(
            [told, Wording("Its labelled file goes with it.") if "task" in kept else ""]
        )

    def begin_with(self, model: str) -> list[Any]:
        """The settings of the first form with another model."""
        return self.fill({**self.first(), "model": {"checkpoint": clean_name(model)}})


def _steps(count: int, *, estimated: bool) -> str:
    """How many there are."""
    if estimated:
        return Wording("About {0} steps", f"{count:,}")
    return Wording("{0} steps", f"{count:,}") if count > 1 else Wording("1 step")
