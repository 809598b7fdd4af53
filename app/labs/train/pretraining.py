"""The form for a pretraining: a recipe, a family and its shape, and how it learns."""

from collections.abc import Iterable, Mapping
from typing import Any

import gradio as gr
from gradio.components import Component

from app.labs.train.form import kept
from app.labs.train.parts import Told
from app.labs.train.reading import ReadingForm, counted
from app.parts import fields
from app.parts.controls import OpenDropdown, answer
from app.parts.plain import Kept, Line
from app.runs.forms import form as run_form
from app.runs.forms import preview as run_preview
from app.runs.forms.words import duration, layers, many, ours, sentences, taught
from app.serving.session import Session
from core_models import InputError
from core_models.families import FAMILIES
from core_models.training.schema import Settings
from viz.svg import Wording

FRESH = "a fresh model"
# What was chosen, as a value that no answer writes.
RECIPE = "preset => ({ preset, at: Date.now() })"
BASE = "(base, _, family) => ({ base, family, at: Date.now() })"
FAMILY = "family => ({ base: '', family, at: Date.now() })"
SHAPE = ("model.overrides.layers", "model.overrides.width", "tokenizer.vocabulary")
"""What a model that is trained on has already."""
_FOLLOW = ("objectives", "masking", "generator", "distillation")
"""Settings that another family decides anew."""


class Pretraining(ReadingForm):
    """A model learns a language from plain text."""

    kind = "pretraining"
    schema = Settings
    start = "Start training"
    otherwise = "my-run"
    shell = "python -m core_models.training {0}.json --run runs/{0}"

    def first(self) -> dict[str, Any]:
        """The first recipe."""
        config: dict[str, Any] = run_form.presets()[0]["config"]
        return config

    def lay_out(self, config: Mapping[str, Any]) -> None:
        """A recipe, what it reads, what it starts from, and the settings."""
        presets = run_form.presets()
        self.preset = gr.Radio(
            [(each["title"], each["name"]) for each in presets],
            value=presets[0]["name"],
            label="Begin with a recipe",
        )
        self.recipe = Line(told(presets[0]))
        self.kept.value = {**self.kept.value, "recipe": presets[0]["name"]}
        with gr.Row():
            self.base = OpenDropdown(
                [(FRESH, "")], value="", label="Start from", filterable=False, min_width=220
            )
            self.family = OpenDropdown(
                [(each["title"], each["name"]) for each in run_form.families()],
                value=family_of(config),
                label="Family",
                filterable=False,
                min_width=160,
            )
        self.controls = fields.draw(self.known, f"train-{self.kind}")
        self.texts()
        self.tells.append(self.recipe)

    def settings(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """What a recipe says of itself is left out once the settings are others."""
        config = super().settings(question)
        said = config.get("description")
        for recipe in (each["config"] for each in run_form.presets()):
            if said and said == recipe.get("description") and _rest(config) != _rest(recipe):
                del config["description"]
                break
        return config

    def tell(self, question: Mapping[str, Any], found: Mapping[str, Any] | None) -> list[Any]:
        """What the model is, and what it learns."""
        recipe = next(
            (each for each in run_form.presets() if each["name"] == kept(question).get("recipe")),
            None,
        )
        about = told(recipe) if recipe else ""
        if found is None:
            return ["", "", None, about]
        generator = found["generator"]
        said = [
            Wording(
                "{0} parameters: {1} of width {2}, {3}. It will read at most {4} tokens.",
                many(found["parameters"]),
                layers(found["layers"]),
                found["width"],
                Wording("1 head") if found["heads"] == 1 else Wording("{0} heads", found["heads"]),
                many(found["tokens"]),
            ),
            Wording("The generator that learns beside it has {0} parameters.", many(generator))
            if generator
            else "",
        ]
        return [sentences(said), sentences(taught(found)), counted(found), about]

    # --- wiring -------------------------------------------------------------------------------

    def wire(self, session: Session, turns: run_preview.Turns, wish: Told, started: Told) -> None:
        """A recipe is tried once, so that it says how long it takes here."""
        super().wire(session, turns, wish, started)
        inputs = {"kept": self.kept, **self.controls, **self.own}
        # One event, so that the last choice counts, made of what the one before has filled in.
        act, of = Kept(), [self.base, self.family]
        for part, js in ((self.preset, RECIPE), (self.base, BASE), (self.family, FAMILY)):
            part.input(None, [part, *of], act, js=js)
        asked = {"act": act, **inputs}
        chosen = [act.change]  # type: ignore[attr-defined]
        self.fills(chosen, self.become, asked)
        then = [self.taken.then]
        answer(then, self.try_recipe, inputs, [self.measured], self.problem, patient=True)

    def become(self, question: Mapping[str, Any]) -> list[Any]:
        """What was chosen: settings of a recipe, for another family or for another beginning."""
        act = question["act"] if isinstance(question["act"], Mapping) else {}
        return self.choose(act) if "preset" in act else self.turn({**question, **act})

    def choose(self, act: Mapping[str, Any]) -> list[Any]:
        """The settings of a recipe."""
        recipe = _named(run_form.presets(), act.get("preset"))
        return self.fill(recipe["config"], recipe=recipe["name"])

    async def try_recipe(self, question: Mapping[str, Any]) -> list[Any]:
        """How long a recipe takes. One for a GPU keeps a CPU busy for minutes: only on demand."""
        name = kept(question).get("recipe")
        if not name or lacks_gpu(_named(run_form.presets(), name)):
            return [gr.skip()]
        return await self.estimate(question)

    def turn(self, question: Mapping[str, Any]) -> list[Any]:
        """Settings for another family, or for a model that goes on learning."""
        config, base = self.settings(question), str(question.get("base") or "")[:200]
        model = config["model"] if isinstance(config.get("model"), Mapping) else {}
        dropout = model.get("dropout") or 0
        if base:
            config["model"] = {"checkpoint": base, "dropout": dropout}
            return self.fill(config, source=kept(question)["source"])
        families = run_form.families()
        # After a model that goes on learning no family is chosen.
        chosen = _named(families, question.get("family") or families[0]["name"])
        shape = model.get("overrides")
        shape = shape if shape and isinstance(shape, Mapping) else {"layers": 2, "width": 128}
        shape = {name: shape[name] for name in ("layers", "width") if name in shape}
        if not model.get("checkpoint") and family_of(config) == chosen["name"]:
            return self.fill(config, source=kept(question)["source"])
        config = {name: value for name, value in config.items() if name not in _FOLLOW}
        config["model"] = {"size": chosen["size"], "overrides": shape, "dropout": dropout}
        data = {name: v for name, v in config["data"].items() if name not in ("format", "singles")}
        cut = config["tokenizer"] if isinstance(config.get("tokenizer"), Mapping) else {}
        cut = {name: v for name, v in cut.items() if name not in ("kind", "lowercase")}
        config |= {"data": data, "tokenizer": cut}
        return self.fill(config, source=kept(question)["source"])

    def offer(self, offers: Kept) -> None:
        """A fresh model comes first."""
        js = f"found => Cloze.trainChoices({{ choices: [['{FRESH}', ''], ...found.models] }})"
        offers.change(None, offers, self.base, js=js)

    def filled(self) -> list[Component]:
        """With the recipe, the base and the family."""
        return [*super().filled(), self.preset, self.base, self.family]

    def fill(self, config: Mapping[str, Any], **more: Any) -> list[Any]:
        """With the recipe, the base and the family."""
        model = config["model"] if isinstance(config.get("model"), Mapping) else {}
        base = str(model.get("checkpoint") or "")
        found = super().fill(config, **more)
        for place, path in enumerate(self.controls):
            if path in SHAPE:
                found[place + 3] = gr.update(value=found[place + 3], visible=not base)
        family = gr.update(value=family_of(config), visible=not base)
        return [*found, more.get("recipe"), base, family]


def _rest(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a description may speak of."""
    return {name: value for name, value in config.items() if name not in ("name", "seed")}


def _named(offered: Iterable[Mapping[str, Any]], name: Any) -> Mapping[str, Any]:
    found = next((each for each in offered if each["name"] == name), None)
    if found is None:
        raise InputError("This choice does not exist.")
    return found


def family_of(config: Mapping[str, Any]) -> str | None:
    """The family of a fresh model; None for one that goes on learning."""
    size = str(fields.read(config, "model.size"))
    known = ((name, {*family.sizes, *family.aliases}) for name, family in FAMILIES.items())
    return next((name for name, sizes in known if size in sizes), None)


def lacks_gpu(preset: Mapping[str, Any]) -> bool:
    """Whether a recipe is for a GPU and this machine has none."""
    return preset["gpu"] and not run_form.has_gpu()


def told(preset: Mapping[str, Any]) -> str:
    """What a recipe is, what it needs, and how long it took here."""
    config = preset["config"]
    seconds = run_preview.known_seconds(config)
    steps, batch = f"{config['steps']:,}", config.get("batch_size", 32)
    return sentences(
        [
            ours(str(config.get("description", ""))),
            Wording("{0} steps \N{MULTIPLICATION SIGN} {1} examples.", steps, batch),
            Wording("It needs a GPU; this machine has none.") if lacks_gpu(preset) else "",
            Wording("At most about {0} here.", duration(seconds)) if seconds else "",
        ]
    )
