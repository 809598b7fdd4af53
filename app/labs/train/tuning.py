"""The form for a fine-tuning: a labelled set, what it starts from, and how it learns."""

from collections.abc import Mapping
from typing import Any

import gradio as gr
from gradio.components import Component

from app.labs.train.form import Asked, Form, kept, translated
from app.labs.train.parts import Told, Upload, sent
from app.parts import fields
from app.parts.controls import OpenDropdown, answer, new_value
from app.parts.plain import Kept, Line, Table
from app.runs import form as run_form
from app.runs import labelled
from app.runs import preview as run_preview
from app.runs import tasks as run_tasks
from app.runs.words import many, sentences
from app.serving.ask import clean_name
from app.serving.session import Session
from core_models import InputError
from core_models.tasks import sets
from core_models.training.task_schema import TaskSettings
from viz.svg import Wording

FIRST = "sentiment"
TABLE = "text,label\nThe film was a joy.,positive\nI left after an hour.,negative"
APART, MIX = "task.apart", "task.every_step"


class Tuning(Form):
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

    # --- the set ------------------------------------------------------------------------------

    def wire(self, session: Session, turns: run_preview.Turns, wish: Told, started: Told) -> None:
        """What a set holds is looked at before its settings are checked."""
        super().wire(session, turns, wish, started)
        looked = {
            "kept": self.kept,
            **self.own,
            **self.controls,
            "kind": self.task_kind,
            **{f"role.{role}": part for role, part in self.roles.items()},
        }
        parts = [self.facts, self.mine, self.mapping, self.task_kind, *self.roles.values()]
        parts += [self.about_set, self.warnings, self.labels, self.rows, self.bases, self.base]
        self.looks = [*parts, *(self.controls[path] for path in (APART, MIX, "name"))]
        chosen = [self.set.input, self.base.input, self.table.change, self.dev.change]
        chosen += [self.task_kind.input, *(part.input for part in self.roles.values())]
        chosen += [self.kept.change, self.controls[APART].input]
        self.looked = looked
        answer(chosen, self.look, looked, self.looks, self.problem, first=True)
        pasted = {"paste": self.paste, "table": self.table}
        answer([self.paste.blur], self.take, pasted, [self.table], self.problem)

    def offer(self, offers: Kept) -> None:
        """Models that are there now may be fitter."""
        answer([offers.change], self.look, self.looked, self.looks, self.problem)

    def changes(self) -> list[Any]:
        """What the set holds decides whether there is anything to learn."""
        return [*super().changes(), self.base.input, self.facts.change]

    def take(self, question: Mapping[str, Any]) -> list[Any]:
        """A pasted table, in place of one that was sent."""
        text = question["paste"] if isinstance(question["paste"], str) else ""
        held = question["table"] if isinstance(question["table"], Mapping) else {}
        old = next((each for each in held.get("sent") or () if each.get("pasted")), None)
        if not text.strip():
            return [{"drop": "pasted"} if old else gr.skip()]
        found = self.service().inbox.save_labelled("pasted", text.encode())
        if old and old.get("id") == found["id"]:
            return [gr.skip()]
        return [{"add": found | {"pasted": True}}]

    def look(self, question: Mapping[str, Any]) -> list[Any]:
        """What the chosen set holds, whose columns say what, and which models may learn it."""
        before = question["facts"] if isinstance(question["facts"], Mapping) else {}
        chosen, of = question["set"], None
        facts: dict[str, Any] = {}
        task: dict[str, Any] = {}
        try:
            of = [chosen, *self._ids(question), kept(question)["source"]]
            task = {"set": chosen} if chosen else self._mapped(question, before, of)
            if chosen == labelled.COPIED:
                facts = run_tasks.look_again(self.service(), kept(question)["source"])
            elif task.get("set"):
                facts = run_tasks.look(self.service().inbox, task)
        except InputError as error:
            facts = {"problem": str(error)}
        good = bool(facts.get("train")) and not facts.get("problem")
        columns = facts.get("columns") or []
        base, bases, auto = self._bases(question, facts if good else {}, before)
        name, called = self._name(question, facts if good else {}, before, base)
        ticks = (
            facts.get("kind") == "regress" and bool(facts.get("paired")),
            facts.get("kind") == "tag",
        )
        noted = {
            "of": of,
            "good": good,
            "problem": facts.get("problem"),
            **{name: facts.get(name) for name in ("kind", "chinese", "paired", "guess")},
            "task": None if chosen else {n: v for n, v in task.items() if n in ("kind", "columns")},
            "auto": auto,
            "called": called,
        }
        kinds = run_tasks.describe()["kinds"]
        shown = facts.get("kind") or "classify"
        mapped = (noted["task"] or {}).get("columns") or facts.get("guess") or {}
        other = of != before.get("of")

        def column(role: str) -> dict[str, Any]:
            """With the columns of another table its own always come, or the box would be empty."""
            value = mapped.get(role, "")
            return {"value": value} if other else new_value(value, question[f"role.{role}"])

        return [
            noted,
            gr.update(visible=chosen == labelled.OWN),
            gr.update(visible=bool(columns)),
            gr.update(**new_value(shown, question["kind"])),
            *(
                gr.update(
                    choices=[(labelled.NONE, ""), *((column, column) for column in columns)],
                    visible=role in kinds[shown],
                    **column(role),
                )
                for role in labelled.ROLES
            ),
            labelled.about(facts) if good else "",
            labelled.warned(facts) if good else "",
            labelled.labels(facts) if good else None,
            labelled.rows(facts),
            {"choices": bases},
            base,
            *(
                gr.update(visible=True)
                if shows
                else gr.update(visible=False, value=False)
                if facts
                else gr.skip()
                for shows in ticks
            ),
            name,
        ]

    def _ids(self, question: Mapping[str, Any]) -> list[str]:
        """Of the tables that were sent; none while one of them was refused."""
        if question["set"] != labelled.OWN:
            return []
        dev = question["dev"] if isinstance(question["dev"], Mapping) else {}
        if dev.get("refused"):
            return []
        tables = sent(question["table"])
        return [str(each.get("id"))[:40] for each in (*tables, *(sent(dev) if tables else ()))]

    def _mapped(
        self, question: Mapping[str, Any], before: Mapping[str, Any], of: list[Any]
    ) -> dict[str, Any]:
        """A table of one's own with what its columns are, if somebody has said so."""
        ids = self._ids(question)
        task: dict[str, Any] = dict(zip(("set", "dev"), ids, strict=False))
        if before.get("of") != of:
            return task
        if question["kind"] != (before.get("kind") or "classify"):
            return task | {"kind": question["kind"]}
        named = {role: question[f"role.{role}"] for role in labelled.ROLES}
        columns = {role: column for role, column in named.items() if column}
        told = before.get("task") or {}
        if told.get("columns") or columns != (before.get("guess") or {}):
            return task | {"kind": question["kind"], "columns": columns}
        return task | {name: told[name] for name in ("kind",) if told.get(name)}

    def _bases(
        self, question: Mapping[str, Any], facts: Mapping[str, Any], before: Mapping[str, Any]
    ) -> tuple[Any, list[tuple[str, str]], Any]:
        """The model, the choices, and the model as it was chosen for the set and not by hand."""
        models = run_form.readers(self.service(), self.session)
        apart = question[APART] is True
        fit = {each["name"]: labelled.fits(each, facts, apart) for each in models}
        choices = [
            (
                each["title"]
                if fit[each["name"]]
                else f"{each['title']} {labelled.NONE} reads from left to right",
                each["name"],
            )
            for each in models
        ]
        base, auto = question["base"], before.get("auto", run_form.task_models()[0])
        wanted = "zh" if facts.get("chinese") else "en"
        if facts and base == auto:
            able = [e["name"] for e in models if e["language"] == wanted and fit[e["name"]]]
            usual = next((name for name in run_form.task_models() if name in able), None)
            chosen = usual or next(iter(able), base)
            return (chosen if chosen != base else gr.skip()), choices, chosen
        if base not in fit and base:
            choices.append((str(base)[:80], base))
        return gr.skip(), choices, auto

    def _name(
        self,
        question: Mapping[str, Any],
        facts: Mapping[str, Any],
        before: Mapping[str, Any],
        base: Any,
    ) -> tuple[Any, str]:
        """What the run is called while nobody has said so."""
        shown = question["name"] or ""
        if not facts or shown not in ("", before.get("called", "")):
            return gr.skip(), before.get("called", "")
        model = base if isinstance(base, str) else str(question["base"] or "")
        stem = str(facts.get("name") or "").rsplit(".", 1)[0]
        called = f"{stem} · {model.rsplit('/', 1)[-1]}"[: fields.MOST_LETTERS]
        return (called if called != shown else gr.skip()), called

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
        steps = f"{found['steps']:,}"
        rate = Wording("Its peak learning rate is {0}.", f"{found['learning_rate']:g}")
        return [
            Wording(
                "{0} steps over {1} rows, with a model of {2} parameters ({3} layers of width "
                "{4}).",
                Wording("About {0}", steps) if found["estimated"] else steps,
                f"{found['rows'][0]:,}",
                many(found["parameters"]),
                found["layers"],
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
