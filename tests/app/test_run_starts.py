"""What a run began with: its name for the command line, and what the card says of its licence."""

import json
import re
import shutil

import pytest
import yaml

from app.runs.export import card as run_card
from app.runs.export.starts import starts
from app.runs.forms import command
from app.runs.runs import Runs
from core_models.training import settings
from core_models.training.models import base_of
from tests.app.opening import NAME, opened
from tests.app.test_run_export import CONFIG, model, unpacked
from tests.stand_in_hub import COMMIT

FOLDER = "folder/mine-01234567"
FRESH = {"model": {"size": "bert-mini"}}
PINNED = f"{NAME}@{COMMIT}"


@pytest.fixture
def session(open_with):
    """One whose visitors may open any model."""
    return open_with()


@pytest.fixture
def runs(session, tmp_path):
    """Runs that may begin with what was opened; nothing starts."""
    made = Runs(tmp_path / "runs", seconds=60, others=session.opened)
    yield made
    made.close()


def made(runs, **config):
    """A run with a model; its id."""
    run = runs.create(CONFIG | config)
    runs.folder(run).save_model(model().save)
    return run


def begun(runs, start):
    """A run that began with a model of the page."""
    return made(runs, model={"checkpoint": start})


def learnt(runs, teacher, **config):
    """A run that learnt from a model of the page."""
    taught = {"distillation": {"teacher": teacher}, "objectives": {"distillation": 1.0}}
    return made(runs, **(FRESH | taught | config))


def card_of(runs, run, path):
    """Head, text and recipe of a run's card."""
    _, (top,) = unpacked(runs, run, path)
    card = (path / top / "README.md").read_text("utf-8")
    head = yaml.safe_load(card.split("---\n")[1])
    return head, card, json.loads((path / top / "recipe.json").read_text("utf-8"))


# --- the command line -----------------------------------------------------------------------


def test_a_model_of_the_hub_is_named_as_the_command_loads_it(there, folder, tmp_path):
    there.add(NAME, folder)
    form = {"model": {"checkpoint": f"hub/{NAME}"}, "data": {"texts": ["hub/mine.txt"]}, "steps": 3}
    file = command.for_shell(form, [])
    assert file["data"]["texts"] == ["hub/mine.txt"], "a text of one's own, not a model"
    assert form["model"]["checkpoint"] == f"hub/{NAME}", "the form stays as it is"
    assert command.before(form, []) == ""
    base = base_of(settings.parse(file), tmp_path)
    assert base is not None
    assert base.model.config.family == "bert"


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ("model", "checkpoint"),
        ("model", "encoder_from"),
        ("generator", "encoder_from"),
        ("distillation", "teacher"),
    ],
)
def test_every_setting_that_names_a_model_is_looked_at(part, field):
    def form(name):
        asked = {part: {field: name}}
        return {"entrants": [asked], "data": {"texts": []}, **asked}

    assert command.for_shell(form(f"hub/{NAME}"), []) == form(NAME)
    for name, said in (("run/first", "as a download"), (FOLDER, "does not tell where it lies")):
        assert command.for_shell(form(name), []) == form(name)
        assert re.fullmatch(f"In place of {name} write .* {said}.", command.before(form(name), []))


def test_a_vocabulary_of_the_hub_has_to_lie_in_a_folder():
    form = {"tokenizer": {"folder": f"hub/{NAME}"}, "data": {"texts": []}}
    assert command.for_shell(form, []) == form
    assert f"hf download {NAME} fetches it" in command.before(form, [])


def test_names_and_columns_are_no_models():
    form = {"name": FOLDER, "task": {"columns": {"text": "run/a"}}, "model": {"checkpoint": "b"}}
    assert command.before(form, []) == ""


def test_a_command_names_the_commit_of_what_is_open(there, folder, session, runs, tmp_path):
    """What is newest on the hub when the command runs may have other weights."""
    there.add(NAME, folder)
    form = {"model": {"checkpoint": opened(session, NAME)}, "data": {"texts": []}}
    assert command.for_shell(form, [], runs.place)["model"] == {"checkpoint": PINNED}
    for name in ("hub/not/open", "run/first", "folder/x-1", "bert-mini"):
        assert runs.place(name) == name
    shown = runs.as_form(begun(runs, form["model"]["checkpoint"]))
    assert shown["model"] == form["model"], "on the page it is what the list of models calls it"


# --- the card -------------------------------------------------------------------------------


def test_the_card_names_a_model_of_the_hub(there, folder, session, runs, tmp_path):
    there.add(NAME, folder)
    run = begun(runs, opened(session, NAME))
    head, card, recipe = card_of(runs, run, tmp_path / "zip")
    assert head == {"library_name": "transformers", "base_model": NAME, "tags": ["cloze"]}
    assert recipe["model"]["checkpoint"] == PINNED
    assert base_of(settings.parse(recipe), tmp_path) is not None
    assert f"| began with | {PINNED} |" in card
    assert f"The command fetches `{PINNED}` from the Hugging Face hub." in card
    assert f"the model `{PINNED}` of the Hugging Face hub. Its own card names its licence" in card
    assert f"<https://huggingface.co/{NAME}>" in card
    again = begun(runs, f"run/{run}")
    head, card, _ = card_of(runs, again, tmp_path / "later")
    assert head["base_model"] == NAME, "runs between are followed"
    assert "It begins with a model of another run" in card
    assert "fetches" not in card


def test_the_card_names_a_folder_and_its_licence(folder, session, runs, tmp_path):
    (folder / "README.md").write_text("---\nlicense: 'cc-by-sa-4.0'\n---\n# Mine\n")
    name = opened(session, str(folder))
    head, card, recipe = card_of(runs, begun(runs, name), tmp_path / "zip")
    assert "base_model" not in head
    assert recipe["model"]["checkpoint"] == name
    assert f"| began with | {name} |" in card
    assert f"what is not part of Cloze (`{name}`): write the path of its folder there." in card
    assert "Its own card names the licence `cc-by-sa-4.0`." in card
    assert str(tmp_path) not in card


@pytest.fixture
def three(there, folder, session):
    """Three models of the hub by their names on the page."""
    names = (NAME, "somebody/other", "somebody/teacher")
    for name in names:
        there.add(name, folder)
    return [opened(session, name) for name in names]


def test_several_models_of_the_hub(three, runs, tmp_path):
    first, second, _ = three
    parts = {
        "model": {"size": "electra-small", "encoder_from": first},
        "generator": {"encoder_from": second},
    }
    head, card, recipe = card_of(runs, made(runs, **parts), tmp_path / "zip")
    assert head["base_model"] == ["somebody/other", NAME]
    assert f"| began with | somebody/other@{COMMIT}, {PINNED} |" in card
    assert recipe["model"]["encoder_from"] == PINNED
    assert recipe["generator"]["encoder_from"] == f"somebody/other@{COMMIT}"


def test_a_teacher_is_no_base(three, runs, tmp_path):
    """None of its weights are in the model, nor of what it began with; its licence may count."""
    first, _, teacher = three
    run = learnt(runs, teacher, model={"size": "bert-mini", "encoder_from": first})
    head, card, recipe = card_of(runs, run, tmp_path / "zip")
    assert head["base_model"] == NAME
    taught = f"somebody/teacher@{COMMIT}"
    assert f"| learnt from the answers of | {taught} |" in card
    assert f"It learnt from the answers of the model `{taught}` of the Hugging" in card
    assert recipe["distillation"]["teacher"] == taught
    fresh = learnt(runs, f"run/{run}")
    assert [start.teacher for start in starts(runs, fresh)] == [True, True]
    mixed = learnt(runs, f"run/{run}", model={"size": "bert-mini", "encoder_from": teacher})
    weights = [start.name for start in starts(runs, mixed) if not start.teacher]
    assert weights == ["somebody/teacher"], "here they are"


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlanguage: en\nlicense: mit\ntags: []\n---\n", "mit"),
        ('---\r\nlicense: "apache-2.0"\r\n---\r\n', "apache-2.0"),
        ("# A card\n\nlicense: mit\n", None),
        ("---\ntags: []\n---\nlicense: mit\n", None),
        ("---\nlicense_name: mine\n---\n", None),
        ("---\nlicense: other\n---\n", None),
        ("---\nlicense: mit` <b>bold</b>\n---\n", None),
        ("---\nlicense: |\n  mit\n---\n", None),
        ("---\nlicense: [mit]\n---\n", None),
        (f"---\nlicense: {'a' * 61}\n---\n", None),
        ("---\nlicense: mit\n---\n" + "a" * 1_000_000, None),
        (None, None),
    ],
)
def test_of_a_card_nothing_but_a_licence_is_taken(folder, session, runs, card, licence):
    if card is not None:
        (folder / "README.md").write_bytes(card.encode())
    run = begun(runs, opened(session, str(folder)))
    (start,) = starts(runs, run)
    assert (start.kind, start.licence) == ("folder", licence)
    assert ("names the licence" in start.told()) == (licence is not None)


def test_a_folder_that_is_open_no_more_is_told_without_its_place(folder, session, runs, tmp_path):
    """As after a restart; and two that are called the same are two."""
    cards = {}
    for licence in ("mit", "gpl-3.0"):
        place = tmp_path / licence / "same`|name"
        shutil.copytree(folder, place)
        (place / "README.md").write_text(f"---\nlicense: {licence}\n---\n")
        cards[licence] = opened(session, str(place))
    parts = {"size": "bert-mini", "encoder_from": cards["mit"]}
    run = learnt(runs, cards["gpl-3.0"], model=parts)
    later = Runs(runs.root, seconds=60)
    try:
        assert [start.licence for start in starts(later, run)] == ["gpl-3.0", "mit"]
        head, card, recipe = card_of(later, run, tmp_path / "zip")
        form = later.as_form(run)
    finally:
        later.close()
    assert set(head) == {"library_name", "tags"}
    assert "| began with | …/same\\`\\|name |" in card
    assert "`…/same'|name`" in card
    assert str(tmp_path) not in card + json.dumps(recipe)
    assert "does not tell where it lies" in command.before(form, [])


def test_a_run_of_the_command_line_names_the_hub_itself(there, folder, session, runs, tmp_path):
    there.add(NAME, folder)
    opened(session, NAME)  # it is in the cache
    run = made(runs)
    for name, kind in ((NAME, "hub"), ("mine", "folder"), ("mine/bert", "folder")):
        values = CONFIG | {"model": {"checkpoint": name}}
        (runs.root / run / "config.json").write_text(json.dumps(values))
        (start,) = starts(runs, run)
        assert (start.name, start.kind) == (name, kind)
    head, _, _ = card_of(runs, run, tmp_path / "zip")
    assert "base_model" not in head, "it may be a folder as well"
    values = CONFIG | {"model": {"checkpoint": f"somebody/else@{COMMIT}"}}
    (runs.root / run / "config.json").write_text(json.dumps(values))
    (start,) = starts(runs, run)
    assert (start.name, start.commit, start.kind) == ("somebody/else", COMMIT, "hub")
    head, card, recipe = card_of(runs, run, tmp_path / "pinned")
    assert head["base_model"] == "somebody/else"
    assert f"The command fetches `somebody/else@{COMMIT}` from" in card
    assert recipe["model"] == values["model"]


def test_a_shipped_vocabulary_needs_no_word(runs, tmp_path):
    run = made(runs, **FRESH, tokenizer={"folder": "bert-mini"})
    _, card, _ = card_of(runs, run, tmp_path / "zip")
    assert "begins with" not in card


def test_a_recipe_keeps_what_only_looks_like_the_hub():
    recipe = {"data": {"texts": ["hub/mine.txt"]}, "model": {"checkpoint": f"hub/{NAME}"}}
    found = run_card.portable(recipe)
    assert found["data"] == recipe["data"]
    assert (found["model"], recipe["model"]) == (
        {"checkpoint": NAME},
        {"checkpoint": f"hub/{NAME}"},
    )
