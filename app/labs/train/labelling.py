"""What a form for a fine-tuning knows of its labelled set: rows, columns, and who may learn it."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from app.labs.train.form import Form, kept
from app.labs.train.parts import Told, Upload, sent
from app.parts import fields
from app.parts.controls import answer, new_value
from app.parts.plain import Kept, Line, Table
from app.runs.forms import form as run_form
from app.runs.forms import labelled
from app.runs.forms import preview as run_preview
from app.runs.forms import tasks as run_tasks
from app.serving.session import Session
from core_models import InputError

APART, MIX = "task.apart", "task.every_step"


class LabelledForm(Form):
    """A form with a labelled set, which is looked at before its settings are checked."""

    set: gr.Dropdown
    base: gr.Dropdown
    table: Upload
    dev: Upload
    paste: gr.Textbox
    mine: gr.Column
    mapping: gr.Row
    task_kind: gr.Dropdown
    roles: dict[str, gr.Dropdown]
    facts: Kept
    about_set: Line
    warnings: Line
    labels: Table
    rows: Table
    bases: Kept

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
        self.pasting(self.paste, self.table, "table", self.take)

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
        found = self.inbox().save_labelled("pasted", text.encode())
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
        return [
            noted,
            gr.update(visible=chosen == labelled.OWN),
            *self._columns(question, facts, other=of != before.get("of")),
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

    def _columns(
        self, question: Mapping[str, Any], facts: Mapping[str, Any], *, other: bool
    ) -> list[Any]:
        """What the columns of a table are, and what is asked of it.

        With the columns of another table their own values always come, or the boxes would be empty.
        """
        columns = facts.get("columns") or []
        kinds = run_tasks.describe()["kinds"]
        shown = facts.get("kind") or "classify"
        mapped = facts.get("guess") or {}
        held = {role: None if other else question[f"role.{role}"] for role in labelled.ROLES}
        return [
            gr.update(visible=bool(columns)),
            gr.update(**new_value(shown, question["kind"])),
            *(
                gr.update(
                    choices=[(labelled.NONE, ""), *((column, column) for column in columns)],
                    visible=role in kinds[shown],
                    **new_value(mapped.get(role, ""), held[role]),
                )
                for role in labelled.ROLES
            ),
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
        if facts and base == auto and question["set"] != labelled.COPIED:
            chosen = labelled.usual(models, facts, apart, run_form.task_models()) or base
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
