"""Which language a model's vocabulary tells, and what a form says of a set in another one."""

import json
from pathlib import Path

import pytest
from tokenizers import decoders, pre_tokenizers

from app.labs.train.tuning import Tuning
from app.runs import models as run_models
from app.runs.forms import form as run_form
from app.runs.forms import labelled
from core_models import Tokenizer

ASSETS = Path(__file__).resolve().parents[2] / "assets"
HAN = [chr(0x4E00 + n) for n in range(1_000)]
WORDS = [f"word{n}" for n in range(10_000)]


def signs(text):
    """A text in GPT-2's signs for bytes."""
    ((found, _),) = pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    ).pre_tokenize_str(text)
    assert decoders.ByteLevel().decode([found]) == text
    return found


def vocabulary(chinese, others, spell=str):
    """A table of pieces with a share of Chinese ones, and words that a file's own fields have."""
    return {
        spell(piece): n
        for n, piece in enumerate(["model", "vocab", *HAN[:chinese], *WORDS[:others]])
    }


def write(folder, kind, pieces):
    """A vocabulary as files have it."""
    model = {"type": "BPE", "vocab": pieces}
    whole = {"model": model, "pre_tokenizer": {"type": "ByteLevel"}, "decoder": None}
    texts = {
        "vocab.txt": "\n".join(pieces),
        "vocab.json": json.dumps(pieces),
        "tokenizer.json": json.dumps(whole),
    }
    (folder / kind).write_text(texts[kind], "utf-8")


@pytest.mark.parametrize(
    ("chinese", "others", "language"),
    [
        (0, 9_000, "en"),
        (90, 9_000, "en"),
        (350, 9_000, None),
        (1_000, 3_000, None),
        (900, 100, "zh"),
    ],
    ids=["none", "bert-base-uncased", "EuroBERT", "two languages", "Chinese"],
)
@pytest.mark.parametrize("kind", ["vocab.txt", "vocab.json", "tokenizer.json"])
def test_shares_of_chinese_pieces(tmp_path, kind, chinese, others, language):
    """Whether they are written as they are or in signs for bytes."""
    spell = str if kind == "vocab.txt" else signs
    write(tmp_path, kind, vocabulary(chinese, others, spell))
    assert run_models.language(tmp_path) == language


def test_parts_of_characters_are_no_chinese(tmp_path):
    write(tmp_path, "vocab.json", {signs(piece)[:2]: n for n, piece in enumerate(HAN)})
    assert run_models.language(tmp_path) == "en"


@pytest.mark.parametrize("kind", ["byte_bpe", "unigram", "wordpiece"])
def test_a_vocabulary_of_two_languages_tells_neither(kind):
    assert run_models.language(ASSETS / "tokenizers" / kind) is None


def test_a_byte_level_vocabulary_of_chinese_texts_is_chinese(tmp_path):
    lines = (ASSETS / "primer" / "chinese-world.txt").read_text("utf-8").splitlines()
    Tokenizer.train(lines, vocabulary=2_000, kind="byte_bpe").save(tmp_path)
    assert run_models.language(tmp_path) == "zh"


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", '{"model": 3}', '{"model": {"vocab": 3}}', '{"model": {"vocab": [[]]}}', "x"],
)
def test_what_is_no_vocabulary_tells_nothing(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    assert run_models.language(tmp_path) is None


@pytest.mark.parametrize(("language", "sets"), [("en", "zh"), ("zh", "en"), (None, "")])
def test_a_model_of_both_is_refused_for_neither(language, sets):
    found = [
        wanted
        for wanted in ("zh", "en")
        if labelled.strange(
            {"name": "m", "language": language}, {"good": True, "chinese": wanted == "zh"}
        )
    ]
    assert found == ([sets] if sets else [])


# --- the model that a set begins with -------------------------------------------------------------

MODELS = [
    {"name": name, "title": name, "language": language, "left_to_right": name == "leftward"}
    for name, language in (
        ("untold", None),
        ("english", "en"),
        ("leftward", "en"),
        ("chinese", "zh"),
        ("other-chinese", "zh"),
    )
]
ENGLISH = {"kind": "classify", "chinese": False}
CHINESE = {"kind": "classify", "chinese": True}


@pytest.fixture
def bases(monkeypatch):
    """What a form begins with: page's model and the usual Chinese one, set, base, facts, auto."""

    def ask(first, base, facts, auto, chosen="sentiment"):
        monkeypatch.setattr(run_form, "readers", lambda runs, session: MODELS)
        monkeypatch.setattr(run_form, "task_models", lambda: [first, "chinese"])
        form = Tuning.__new__(Tuning)
        form.service, form.session = (lambda: None), None
        question = {"base": base, "set": chosen, "task.apart": False}
        found, _, auto = form._bases(question, facts, {"auto": auto} if auto else {})
        return (base if isinstance(found, dict) else found), auto

    return ask


@pytest.mark.parametrize(
    ("first", "auto", "facts", "wanted"),
    [
        ("untold", None, ENGLISH, "untold"),
        ("untold", None, CHINESE, "untold"),
        ("english", None, ENGLISH, "english"),
        ("english", None, CHINESE, "chinese"),
        ("english", "chinese", ENGLISH, "english"),
        ("other-chinese", None, CHINESE, "other-chinese"),
        ("other-chinese", None, ENGLISH, "english"),
        ("leftward", None, ENGLISH, "english"),
        ("leftward", None, ENGLISH | {"kind": "tag"}, "leftward"),
        ("english", None, {}, "english"),
    ],
)
def test_the_model_of_the_page_gives_way_only_where_it_cannot_learn_a_set(
    bases, first, auto, facts, wanted
):
    """One of many languages tells none and reads both; it gave way to one of either alone."""
    assert bases(first, auto or first, facts, auto) == (wanted, wanted)


def test_a_model_that_was_chosen_stays(bases):
    assert bases("english", "untold", CHINESE, "english") == ("untold", "english")
    assert bases("english", "english", CHINESE, "chinese") == ("english", "chinese")
    # That of a copied run was chosen for it, also where it is the page's.
    assert bases("english", "english", CHINESE, None, labelled.COPIED) == ("english", "english")
