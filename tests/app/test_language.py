"""The catalogue holds what the page says, no more and no less; files that disagree are refused."""

import json
import re

import pytest

from app.serving import locales
from core_models import InputError
from core_models.model import SHIPPED
from tests.app.language_keys import (
    APP,
    FIXED,
    ROOT,
    data_texts,
    expression,
    is_prose,
    longest,
    raised,
    script_keys,
    sources,
    worded,
    written,
)

LANGUAGE = "zh"
PART = 12
"""Characters beside values that a text must share with a source to count as used."""
PYDANTIC = "{0} = {1}: Input should be"
"""Words of the library that checks settings of runs."""
SCRIPTS = sorted(APP.rglob("*.js"))
DRAWN = [path for path in sources("app", "viz") if path.name != "svg.py"]
"""Programs that put texts of their own into pictures."""
TERMINAL = (
    *("settings.py", "locales.py", "sign_in.py", "main.py", "shipped.py"),
    *("guard.py", "server.py"),
)
ALOUD = [
    *(path for path in sources("app") if path.name not in TERMINAL),
    *sources("core_models/prediction", "core_models/tokenizer"),
    *sources("core_models/foreign", "core_models/checkpoints"),
    *(
        ROOT / "core_models" / f"{name}.py"
        for name in ("model", "inspection", "hub/fetch", "hub/files", "network/embeddings")
    ),
    *(ROOT / "core_models" / "config" / name for name in ("check.py", "task.py")),
]
"""Programs whose messages a visitor can meet; those of the start are for the terminal."""
FILES = locales.files(LANGUAGE)


@pytest.fixture(scope="module")
def catalogue():
    return locales.catalogue(LANGUAGE)


def values(text: str) -> set[str]:
    return set(re.findall(r"\{\d\}", text))


def test_scripts_say_nothing_untranslated(catalogue):
    missing = {
        path.name: [key for key in script_keys(path) if key not in catalogue] for path in SCRIPTS
    }
    assert {name: keys for name, keys in missing.items() if keys} == {}


def test_no_text_looks_for_the_sentence_above_the_tabs(catalogue):
    # It stands between the names of the labs and the lab.
    assert [key for key in catalogue if "above the tabs" in key] == []


def test_messages_of_python_are_translated(catalogue):
    known = [expression(text) for text in catalogue if len(re.sub(r"\{\d\}", "", text)) >= FIXED]

    def translated(text: str) -> bool:
        """As it stands, by a wider pattern, or with its values spelled out."""
        return (
            text in catalogue
            or any(form.fullmatch(text) for form in known)
            or (len(longest(text)) >= FIXED and any(map(expression(text).fullmatch, catalogue)))
        )

    missing = {
        str(path.relative_to(ROOT)): [text for text in raised(path) if not translated(text)]
        for path in ALOUD
    }
    assert {name: texts for name, texts in missing.items() if texts} == {}


def test_pictures_of_python_are_translated(catalogue):
    missing = {
        str(path.relative_to(ROOT)): [
            key for key in worded(path) if is_prose(key) and key not in catalogue
        ]
        for path in DRAWN
    }
    assert {name: keys for name, keys in missing.items() if keys} == {}
    assert sum(map(len, map(worded, DRAWN))) > 80


def test_cards_of_shipped_models_are_translated(catalogue):
    said = set()
    for folder in (path.parent for path in SHIPPED.glob("*/cloze.json")):
        card = json.loads((folder / "cloze.json").read_text("utf-8"))
        run = json.loads((folder / "evaluation.json").read_text("utf-8"))["run"]
        said |= {run.get("note", "")}
        if not folder.name.endswith("-generator"):
            said |= {card["description"]}
    assert sorted(said - {*catalogue, ""}) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_translations_keep_their_values(path):
    entries = json.loads(path.read_text("utf-8"))
    assert [key for key, text in entries.items() if values(key) != values(text)] == []
    assert [key for key, text in entries.items() if not text.strip()] == []


def test_no_translation_is_left_over(catalogue):
    said = {key for path in SCRIPTS for key in script_keys(path)}
    said |= written(sources("app", "core_models", "viz", "zoo")) | data_texts()
    forms = [expression(text) for text in said if "{" in text and len(longest(text)) >= FIXED]
    parts = {longest(text) for text in said if len(longest(text)) >= PART}

    def used(key: str) -> bool:
        """A sentence may be put together, so a long part of it is enough."""
        return (
            bool({key, key.capitalize()} & said)
            or any(form.fullmatch(key) for form in forms)
            or any(part in key for part in parts)
            or (len(longest(key)) >= PART and any(longest(key) in text for text in said))
            or (len(longest(key)) >= FIXED and any(map(expression(key).fullmatch, said)))
            or key.startswith(PYDANTIC)
        )

    assert [key for key in catalogue if is_prose(key) and not used(key)] == []


def test_tagged_templates_are_found(tmp_path):
    script = tmp_path / "a.js"
    script.write_text(
        "// t`in a comment`\n"
        "const a = t`Show ${list.map((n) => `${n} {`)} of ${t`all ${'}'}`} now`;\n"
        "const cut`no`; const b = texts({ one: 'One' + ' and',"
        " 'two': [`Two`, () => [1, 'none']], 3: \"it’s\" });\n"
        "const NAMES = { x: 'Ex' };\nconst c = texts(NAMES); message('Said'); t`100 %`;\n",
        "utf-8",
    )
    assert script_keys(script) == {
        "Show {0} of {1} now": 2,
        "all {0}": 2,
        "One and": 3,
        "Two": 3,
        "it’s": 3,
        "Ex": 5,
        "Said": 5,
    }


def test_messages_are_found(tmp_path):
    program = tmp_path / "a.py"
    program.write_text(
        "raise InputError(f\"At most {most:,} of {', '.join(names) or 'nothing'} \" 'go.')\n"
        "raise InputError('Plain ' + name)\nraise ValueError('ours')\nraise InputError(NAME)\n"
    )
    assert raised(program) == {"At most {0} of {1} go.": 1, "Plain {0}": 2}
    assert {"ours", "nothing", ", ", "Plain {0}"} < written([program])
    assert "Plain " not in written([program])


def test_texts_of_pictures_are_found(tmp_path):
    program = tmp_path / "a.py"
    program.write_text(
        "a = Wording('One ' 'text')\nb = svg.Wording('Of {0}', x)\nc = Wording(f'At {x}')\n"
        "d = Wording(NAMES[x])\ne = wording('no')\n"
    )
    assert worded(program) == {"One text": 1, "Of {0}": 2, "f'At {x}'": 3, "NAMES[x]": 4}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two rooms without translations."""
    for room in ("a", "b"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "README").touch()
    monkeypatch.setattr(locales, "APP", tmp_path)
    return tmp_path


def test_the_files_of_a_language_are_one_catalogue(folder):
    (folder / "b" / "xx.json").write_text('{"Model": "M", "A": "a"}')
    (folder / "a" / "xx.json").write_text('{"Model": "M", "</script>": "</script>"}')
    assert locales.languages() == ["xx"]
    assert locales.catalogue("xx") == {"Model": "M", "A": "a", "</script>": "</script>"}
    assert json.loads(locales.script("xx").removeprefix("window.ClozeCatalogue = ").strip("; \n"))


def test_files_that_disagree_are_refused(folder):
    (folder / "a" / "xx.json").write_text('{"Model": "M"}')
    (folder / "b" / "xx.json").write_text('{"Model": "N"}')
    with pytest.raises(InputError, match=r"b/xx\.json: “Model”"):
        locales.catalogue("xx")


def test_a_language_without_files_says_nothing(folder):
    assert locales.catalogue("xx") == {}
