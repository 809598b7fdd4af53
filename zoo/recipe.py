"""What the set is made of: one JSON file, checked before anything is trained."""

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core_models.errors import InputError, not_json
from core_models.training.settings import ASSETS

RECIPE = ASSETS / "recipes" / "zoo.json"


class Part(BaseModel):
    """Strict: unknown fields and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Source(Part):
    """Files, and what of them is kept for validation."""

    pattern: str
    """Files below the folder of this kind of source."""
    held_out: Annotated[float, Field(ge=0.0, le=0.5)] = 0.0
    """Share of the documents kept for validation."""


class Repeated(Source):
    """Text below the project's ``assets``, one sentence a line, that is read several times."""

    times: Annotated[int, Field(ge=1, le=10_000)]
    """Copies for each pass over the text."""


class Sampled(Source):
    """Text of a folder that the user gives, one paragraph a line, of which a part is taken."""

    words: Annotated[int, Field(ge=1)]
    """Most words (Chinese: characters) to take: whole documents in the order of each file, the same
    number of words of every file."""


class TextRecipe(Part):
    """The text that all models of one language read."""

    repeated: list[Repeated] = []
    sampled: list[Sampled] = []
    seed: int = 1
    """Of the held-out documents and of the order of the documents."""
    apart_from: str | None = None
    """Another text, without whose held-out documents, and any that share a long sentence with
    them, this one is made."""


class Budget(Part):
    """How much is computed."""

    tokens: Annotated[int, Field(ge=1)]
    """Real tokens that each model reads."""
    settings: dict[str, Any] = {}
    """Merged into the settings of every run."""
    note: str = ""
    """What sets all models of this budget apart from others; cards of those without one say so."""


class Later(Part):
    """A later run, which goes on with the model of the one before, and with its generator."""

    tokens: Annotated[int, Field(ge=1)]
    """Real tokens to read in it."""
    text: str | None = None
    """Another text than the first run's; validated on what the first one's sampled sources hold
    out."""
    settings: dict[str, Any] = {}
    """Merged into what of the first run's settings a checkpoint does not bring."""


class Special(Part):
    """What one model does otherwise under one budget."""

    note: str | None = None
    """In place of the model's and of the budget's."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """In place of the budget's."""
    text: str | None = None
    """In place of the model's."""
    settings: dict[str, Any] = {}
    """Merged last."""
    then: Annotated[list[Later], Field(max_length=4)] = []
    """Later runs, one after the other."""


class ModelRecipe(Part):
    """One model of the set."""

    title: str
    """One line for people: what it is and what it was trained to do."""
    text: str
    """Name of its text recipe."""
    settings: dict[str, Any]
    """Merged into the common settings; later ones win."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Real tokens to read in place of the budget's."""
    note: str = ""
    """What sets it apart from the rest of the set; its card says so."""
    budgets: dict[str, Special] = {}
    """What a budget changes for this model alone."""
    then: Annotated[list[Later], Field(max_length=4)] = []
    """Later runs, one after the other."""

    def at(self, name: str, budget: Budget) -> "ModelRecipe":
        """The recipe under one budget, whose name is ``name``."""
        values: dict[str, Any] = {
            "note": self.note or budget.note,
            "budgets": {},
        }
        special = self.budgets.get(name)
        if special is not None:
            values["settings"] = merge(self.settings, special.settings)
            values["note"] = values["note"] if special.note is None else special.note
            values["text"] = special.text or self.text
            values["tokens"] = special.tokens or self.tokens
            values["then"] = special.then
        return self.model_copy(update=values)


class Zoo(Part):
    """The whole recipe."""

    texts: dict[str, TextRecipe]
    budgets: dict[str, Budget]
    common: dict[str, Any]
    """Settings of every run, as in a run's ``config.json``."""
    models: dict[str, ModelRecipe]

    def run_settings(self, name: str, budget: str) -> dict[str, Any]:
        """Settings of one model's run, without texts and steps.

        Raises:
            InputError: unknown model or budget.
        """
        if name not in self.models:
            raise InputError(f"No model {name!r} in the set; it has {', '.join(self.models)}.")
        if budget not in self.budgets:
            raise InputError(f"No budget {budget!r}; known are {', '.join(self.budgets)}.")
        merged = self.common
        for part in (self.budgets[budget].settings, self.models[name].settings):
            merged = merge(merged, part)
        return merged | {"name": name, "description": self.models[name].title}

    def later_settings(self, name: str, budget: str, later: Later) -> dict[str, Any]:
        """Settings of a model's later run, without checkpoint, texts and steps."""
        settings = self.run_settings(name, budget)
        model, generator = settings.pop("model"), settings.pop("generator", None)
        settings.pop("tokenizer", None)
        settings["model"] = {key: model[key] for key in ("dropout",) if key in model}
        if generator is not None:
            kept = ("weight", "temperature")
            settings["generator"] = {key: generator[key] for key in kept if key in generator}
        return merge(settings, later.settings)

    def is_chinese(self, name: str) -> bool:
        """Whether a model reads Chinese: texts are named after their language."""
        return self.models[name].text.startswith("chinese")

    def texts_of(self, name: str) -> list[str]:
        """Names of the texts that a model reads, in the order in which it meets them."""
        model = self.models[name]
        later = [each.text for each in model.then if each.text is not None]
        return list(dict.fromkeys([model.text, *later]))

    def tokens(self, name: str, budget: str) -> int:
        """Real tokens that a model reads."""
        return self.models[name].tokens or self.budgets[budget].tokens

    def at(self, budget: str) -> "Zoo":
        """The recipe under one budget, with what the budget changes put in place."""
        if budget not in self.budgets:
            raise InputError(f"No budget {budget!r}; known are {', '.join(self.budgets)}.")
        chosen = self.budgets[budget]
        models = {name: model.at(budget, chosen) for name, model in self.models.items()}
        return self.model_copy(update={"models": models})


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``base`` with the values of ``over``; objects are merged, everything else is replaced.

    ``objectives`` is replaced whole, as a run's objectives are one choice.
    """
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        both = isinstance(value, dict) and isinstance(known, dict) and key != "objectives"
        result[key] = merge(known, value) if both else value  # type: ignore[arg-type]
    return result


def read(path: Path = RECIPE) -> Zoo:
    """Read the recipe; InputError lists everything that is wrong with it."""
    return read_as(Zoo, path)


Recipe = TypeVar("Recipe", bound=Part)


def read_as(kind: type[Recipe], path: Path) -> Recipe:
    """Read a recipe file; InputError lists everything that is wrong with it."""
    try:
        return kind.model_validate_json(json.dumps(json.loads(path.read_text(encoding="utf-8"))))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}"
            for item in error.errors(include_url=False)
        ]
        raise InputError(f"{path}:\n" + "\n".join(lines)) from error
    except (ValueError, RecursionError) as error:  # also bytes that are no text
        raise InputError(f"{path} is not JSON: {not_json(error)}.") from error
