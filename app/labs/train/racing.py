"""The form for an objective race: who takes part, the same budget, what is measured at the end."""

from collections.abc import Mapping
from typing import Any, ClassVar

import gradio as gr
from gradio.components import Component

from app.labs.train.form import kept, key, listed, matching, translated
from app.labs.train.parts import Told
from app.labs.train.reading import ReadingForm, counted
from app.parts import fields
from app.parts.controls import OpenCheckboxGroup, OpenDropdown, new_value
from app.parts.plain import Table, table
from app.runs.forms import preview as run_preview
from app.runs.forms import races as run_races
from app.runs.forms.words import duration, many, operations
from app.serving.session import Session
from core_models import InputError
from core_models.training.race_schema import Race
from viz.svg import Wording

FIRST = ("masked", "replaced", "causal")
PROBES = {"sentiment": "sentiment", "topic": "topic", "nli": "inference"}
BUDGETS = {"steps": "the same number of steps", "flops": "the same number of operations"}
TERA = 1e12


class Racing(ReadingForm):
    """Several ways of learning, the same text and budget."""

    kind = "race"
    schema = Race
    offered: ClassVar = {
        **ReadingForm.offered,
        "measures.probes": [(title, name) for name, title in PROBES.items()],
    }
    left_out = frozenset({"data.format"})  # it follows the objectives of each
    start = "Start the race"
    otherwise = "race"
    shell = "python -m core_models.training.race {0}.json --runs runs/{0}"

    def first(self) -> dict[str, Any]:
        """Three entrants."""
        offer = run_races.describe()
        entrants = [each["config"] for each in offer["entrants"]]
        return offer["config"] | {"entrants": [e for e in entrants if e["name"] in FIRST]}

    def lay_out(self, config: Mapping[str, Any]) -> None:
        """Who takes part, what they read, and what is the same for all."""
        self.entrants = OpenCheckboxGroup(
            entrants_of(config), value=names_of(config), label="Who takes part"
        )
        self.entrant_choices = translated(self.entrants)
        self.budget = gr.Radio(
            [(title, name) for name, title in BUDGETS.items()], value="steps", label="What is equal"
        )
        self.controls = fields.draw(self.known, "train-race")
        self.controls["budget.flops"].visible = False
        self.texts()
        self.own |= {"entrants": self.entrants, "budget": self.budget}

    def beside(self) -> None:
        """Whose first batch is shown."""
        self.whose = OpenDropdown(
            list(FIRST),
            value=FIRST[0],
            label="Whose first batch",
            filterable=False,
            scale=0,
            min_width=200,
        )
        self.own["whose"] = self.whose

    def tried(self) -> None:
        """What each entrant comes to."""
        self.table = Table(elem_id="train-race-entrants")
        self.tells += [self.whose, self.table]

    def settings(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """With the entrants that are chosen."""
        config = super().settings(question)
        there = [each for each in listed(config.get("entrants")) if isinstance(each, Mapping)]
        offered = [each["config"] for each in run_races.describe()["entrants"]]
        chosen = question["entrants"] or []
        stay = [each for each in there if each.get("name") in chosen]
        new = [each for each in offered if each["name"] in chosen]
        return {
            **config,
            "entrants": [*stay, *(e for e in new if e["name"] not in names_of(config))],
        }

    def needed(self, question: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
        """The budget, too, in the unit that is chosen."""
        paths = [f"budget.{unit}" for unit in BUDGETS]
        empty = all(fields.read(config, path) is None for path in paths)
        chosen = [path for path in paths if path == f"budget.{question['budget']}"]
        return [*super().needed(question, config), *(chosen if empty else [])]

    def tell(self, question: Mapping[str, Any], found: Mapping[str, Any] | None) -> list[Any]:
        """How many models do how much."""
        names = names_of(self.settings(question))
        whose = question["whose"] if question["whose"] in names else next(iter(names), None)
        chosen = gr.update(choices=names, **new_value(whose, question["whose"]))
        if found is None:
            return ["", "", None, chosen, None]
        entrants, steps = found["entrants"], found["steps"]
        said = (
            Wording("{0} models, 1 step each, {1} in all.", entrants, f"{entrants:,}")
            if steps == 1
            else Wording(
                "{0} models, {1} steps each, {2} in all.",
                entrants,
                f"{steps:,}",
                f"{steps * entrants:,}",
            )
            if steps
            else Wording(
                "{0} models, {1} operations each. Steps are those with examples as long as "
                "allowed; with shorter ones there are more.",
                entrants,
                operations(found["flops"]),
            )
        )
        return [said, "", counted(found), chosen, self.rows_of(question, found)]

    def rows_of(self, question: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        """What each entrant comes to; with its time, where just these settings were tried."""
        measured = matching(question["measured"], key(self.asked(question)))
        times = {each["name"]: each["seconds"] for each in measured["entrants"]} if measured else {}
        columns = [Wording("Entrant"), Wording("Family"), Wording("Parameters"), Wording("Steps")]
        columns += [Wording("Operations"), *([Wording("Time")] if times else [])]
        rows = [
            [
                row["name"],
                row["title"],
                [row["parameters"], parameters(row)],
                row["steps"],
                [row["flops"], operations(row["flops"])],
                *([[times.get(row["name"]), duration(times[row["name"]])]] if times else []),
            ]
            for row in found["rows"]
        ]
        return table(Wording("What each entrant comes to"), columns, rows)

    def time_of(self, measured: Mapping[str, Any]) -> str:
        """Of all entrants together."""
        return Wording(
            "At most about {0} of training on this machine as busy as it is now; measuring them "
            "comes on top.",
            duration(measured["seconds"]),
        )

    async def preview(self, question: Mapping[str, Any]) -> list[Any]:
        """The first batch of the entrant that is chosen: the server shows that of the first."""
        asked = self.asked(question)
        config, ids, source = asked
        first = [each for each in config["entrants"] if each["name"] == question["whose"]]
        others = [each for each in config["entrants"] if each["name"] != question["whose"]]
        turned = ({**config, "entrants": [*first, *others]}, ids, source)
        found = await self._try(question, run_preview.first_batch, turned)
        return [{"of": key(asked)}, found]

    # --- wiring -------------------------------------------------------------------------------

    def wire(self, session: Session, turns: run_preview.Turns, wish: Told, started: Told) -> None:
        """The budget may be counted in another unit."""
        super().wire(session, turns, wish, started)
        inputs = {"kept": self.kept, **self.controls, **self.own}
        self.fills([self.budget.input], self.change_budget, inputs)

    def changes(self) -> list[Any]:
        """Who takes part, too."""
        return [*super().changes(), self.entrants.input, self.whose.input]

    def change_budget(self, question: Mapping[str, Any]) -> list[Any]:
        """About the same race in the other unit."""
        config, unit = self.settings(question), question["budget"]
        try:
            rows = self.weigh(self.session, self.asked(question))["rows"]
        except InputError:
            rows = []
        mean = (
            {name: sum(row[name] for row in rows) / len(rows) for name in BUDGETS} if rows else {}
        )
        if unit == "flops":
            config["budget"] = {"flops": float(f"{mean.get('flops', TERA):.1e}")}
        else:
            config["budget"] = {"steps": max(1, round(mean.get("steps", 400)))}
        return self.fill(config, source=kept(question)["source"])

    def filled(self) -> list[Component]:
        """With the budget and who takes part."""
        return [*super().filled(), self.budget, self.entrants, self.entrant_choices]

    def fill(self, config: Mapping[str, Any], **more: Any) -> list[Any]:
        """With the budget and who takes part."""
        found = super().fill(config, **more)
        unit = "steps" if fields.read(config, "budget.flops") is None else "flops"
        for place, path in enumerate(self.controls):
            if path in ("budget.steps", "budget.flops"):
                shown = path == f"budget.{unit}"
                found[place + 3] = gr.update(value=found[place + 3], visible=shown)
        return [*found, unit, names_of(config), {"choices": entrants_of(config)}]


def names_of(config: Mapping[str, Any]) -> list[str]:
    """Who takes part."""
    entrants = listed(config.get("entrants"))
    return [str(each.get("name"))[:40] for each in entrants if isinstance(each, Mapping)]


def entrants_of(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who may take part: those that are offered, and those of the settings."""
    offered: ClassVar = {each["name"]: each["title"] for each in run_races.ENTRANTS}
    own = {name: name for name in names_of(config) if name not in offered}
    return [(title, name) for name, title in (offered | own).items()]


def parameters(row: Mapping[str, Any]) -> str:
    """Of an entrant, with its generator's."""
    if not row["generator"]:
        return many(row["parameters"])
    return Wording("{0} and a generator of {1}", many(row["parameters"]), many(row["generator"]))
