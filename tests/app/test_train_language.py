"""The Chinese of the Train tab: what Python says to the page has a pattern in the catalogue."""

import re
from collections.abc import Iterator

import pytest

from app.labs.train.pretraining import Pretraining
from app.labs.train.racing import Racing
from app.parts.fields import Field, fields
from app.runs.config import parse
from app.runs.data import texts as run_texts
from app.runs.doctor.doctor import Case, examine
from app.runs.forms import form as run_form
from app.runs.forms import races as run_races
from app.runs.forms import tasks as run_tasks
from app.runs.runs import NOT_YOURS, OFF
from app.serving.locales import catalogue
from core_models import InputError
from core_models.tasks import baselines
from core_models.training.race_schema import Race
from core_models.training.schema import Settings
from core_models.training.task_schema import TaskSettings

RECIPE = {"model": {"size": "bert-mini"}, "data": {"texts": ["primer/english-*.txt"]}, "steps": 100}
RACE = {
    "entrants": [{"name": "a", "size": "bert-mini"}, {"name": "b", "size": "xlnet-base-cased"}],
    "budget": {"steps": 10},
    "data": {"texts": ["primer/english-*.txt"]},
}


@pytest.fixture(scope="module")
def chinese() -> dict[str, str]:
    return catalogue("zh")


def found(catalogue: dict[str, str], text: str) -> str | None:
    """The key of a text as language.js finds it: itself, else the longest pattern that fits."""
    if text in catalogue:
        return text
    for key in sorted(catalogue, key=len, reverse=True):
        if "{0}" not in key or len(re.sub(r"\{\d\}", "", key)) < 8:
            continue
        form = r"[\s\S]*?".join(re.escape(part) for part in re.split(r"\{\d\}", key))
        if re.fullmatch(form, text):
            return key
    return None


def texts() -> Iterator[str]:
    """What is sent to the page whatever the visitor does."""
    yield from (OFF, NOT_YOURS, *run_tasks.TITLES.values(), *run_texts.SHIPPED.values())
    for preset in run_form.presets():
        yield preset["title"]
        yield preset["config"]["description"]
    for entrant in run_races.ENTRANTS:
        yield entrant["title"]
    for schema, offered in ((Settings, Pretraining.offered), (Race, Racing.offered)):
        yield from said(fields(schema, offered))
    yield from said(fields(TaskSettings))
    for methods in baselines._METHODS.values():
        yield from (title for _, title, _ in methods)


def said(fields: dict[str, Field]) -> Iterator[str]:
    """What stands at the control of each setting."""
    for each in fields.values():
        yield from (each.label, each.group or each.label)
        if each.help:
            yield each.help
        yield from (name for name, value in each.choices if name != value)


def test_what_the_forms_offer_is_in_the_catalogue(chinese: dict[str, str]) -> None:
    assert [text for text in texts() if text not in chinese] == []


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (RECIPE | {"steps": 0}, "{0} = {1}: Input should be greater than or equal to {2}."),
        (RECIPE | {"steps": "many"}, "{0} = {1}: Input should be a valid integer."),
        (RECIPE | {"stepps": 3}, "{0}: no such field. Did you mean {1}?"),
        ({"model": RECIPE["model"], "data": RECIPE["data"]}, "{0}: is missing."),
        (
            RECIPE | {"schedule": {"warmup": 200}},
            "schedule.warmup ({0}) must be below steps ({1}).",
        ),
        (
            RECIPE | {"model": {}},
            "give either model.size or model.checkpoint, not both and not neither.",
        ),
        (
            RACE | {"budget": {}},
            "give either budget.steps or budget.flops, not both and not neither.",
        ),
        (
            RACE | {"entrants": RACE["entrants"][:1]},  # type: ignore[index]
            "entrants: a race compares 2 to 24 models, not {0}; add more.",
        ),
        (
            RACE | {"overrides": {"width": 32}},
            "entrants, {0}: model.overrides.width: {1} is not divisible by {2} heads; choose a "
            "multiple of {3}, or another number of heads.",
        ),
        (
            RACE | {"entrants": [RACE["entrants"][0]] * 2},  # type: ignore[index]
            "entrants: two are called {0}; give each a name of its own.",
        ),
        (
            RACE | {"entrants": [RACE["entrants"][0] | {"name": "stop"}, RACE["entrants"][1]]},  # type: ignore[index]
            "entrants: the race has a file {0}; choose another name.",
        ),
    ],
)
def test_every_line_of_an_error_has_its_pattern(
    chinese: dict[str, str], config: dict[str, object], key: str
) -> None:
    with pytest.raises(InputError) as error:
        parse(config)
    assert key in [found(chinese, line) for line in str(error.value).splitlines()]


def test_what_the_doctor_says_has_its_patterns(chinese: dict[str, str]) -> None:
    def case(losses: list[float], **more: object) -> Case:
        records = [
            {"step": 10 * (n + 1), "tokens": 9_000_000, "loss": loss, "masked_token_loss": loss}
            for n, loss in enumerate(losses)
        ]
        status = {"baselines": {"uniform": 8.0, "unigram_entropy": 6.0}} | more
        return Case(records=records, status=status, config={"steps": 100}, repeated=0.5)

    cases = [
        case([5.0, 4.0, 5.0, 6.0, 7.0, 7.0, 7.0, 7.0]),
        case([4.0, 5.0, 6.0, 7.0, 7.0, 7.0, 7.0]),
        case([9.0] * 8),
        case([6.0] * 9),
        case([7.5] * 9),
        case([6.0, 5.0, 4.0, 3.0, 3.0, 3.0, 3.0]),
        case([6.0] * 9, state="failed", reason="Training diverged at step 3."),
        case([6.0], data={"tokens": 900, "vocabulary": 1000}),
    ]
    said = {
        text
        for each in cases
        for finding in examine(each)
        for text in (finding.title, finding.text, finding.cure)
        if text
    }
    assert len(said) > 15
    assert [text for text in said if found(chinese, text) is None] == []
