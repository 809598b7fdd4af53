"""The example sentences: what they hide stands in them, each family has its own, and the shipped
weights do with them what they promise.

Weights may be replaced: then a test here names the example that has to be chosen anew.
"""

from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect

import core_models as cm
from app.labs.pairs import answers as pairs
from app.serving import examples
from app.serving.examples import EXAMPLES, examples_of
from app.serving.pieces import BEFORE_MARK, sentence_tokens
from core_models.prediction import FillRequest, fill_many
from tests.core.tiny_models import new, tiny

ASSETS = Path(__file__).resolve().parents[2] / "assets"
FILLING = {"masked_token", "permutation", "causal"}
CLASSROOM = ASSETS / "runs" / "classroom" / "model"
SHIPPED = [
    *sorted(path.parent for path in (ASSETS / "models").glob("*/config.json")),
    CLASSROOM,
]
LISTS = [
    EXAMPLES,
    examples.CLASSROOM,
    examples.CHINESE,
    examples.FROM_THE_LEFT,
    *examples.OF_FAMILY.values(),
]
ALL = {e["text"] + e["name"]: e for chosen in LISTS for e in chosen}


@pytest.mark.parametrize("key", ALL)
def test_what_is_hidden_stands_in_the_text(key):
    example = ALL[key]
    text = example["text"].lower()
    assert not BEFORE_MARK.search(text)
    assert example["hide"]
    for word in example["hide"]:
        start = text.index(word)
        around = text[start - 1 : start] + text[start + len(word) : start + len(word) + 1]
        assert not any("a" <= c <= "z" for c in around), "the first place must be the word itself"


def test_a_model_gets_those_of_its_family(model):
    assert examples_of(model) == EXAMPLES
    assert examples_of(new(tiny("deberta-base"))) == examples.OF_FAMILY["deberta"]
    assert examples_of(new(tiny("roberta-base")))
    assert set(examples.OF_FAMILY) <= set(cm.family_names())
    for chosen in LISTS:
        names = [e["name"] for e in chosen]
        assert len(set(names)) == len(names) >= 4


def hidden_places(model: cm.Model, example: examples.Example) -> list[int]:
    """Positions that an example hides, as tools.js finds them."""
    (encoding,) = model.encode([example["text"]])
    found = []
    for word in example["hide"]:
        start = example["text"].lower().index(word)
        end = start + len(word)
        found += [
            place
            for place, (first, last) in enumerate(encoding.offsets)
            if not encoding.special[place] and first < end and start < last
        ]
    return found


def name_of(folder: Path) -> str:
    return "run/classroom" if folder == CLASSROOM else folder.name


@pytest.mark.parametrize("folder", SHIPPED, ids=name_of)
def test_a_shipped_model_gets_its_examples_right(folder):
    """What an example hides is the first choice; only *Nothing to go by* must not be."""
    model = cm.load(folder)
    if not FILLING & set(model.heads):
        pytest.skip("it fills no gaps")
    chosen = examples_of(model)
    asked = [
        FillRequest(text=each["text"], masks=tuple(hidden_places(model, each)), top_k=1)
        for each in chosen
    ]
    with torch.inference_mode():
        found = fill_many(model, asked)
    wrong = [
        f"“{example['name']}” hides “{each.original.display}”, {name_of(folder)} puts it at rank "
        f"{each.original.rank} ({each.original.probability:.1%}) after "
        f"“{each.candidates[0].display}” ({each.candidates[0].probability:.1%})"
        for example, answer in zip(chosen, found, strict=True)
        for each in answer.predictions
        if (each.original.rank == 1) is (example is examples.BLIND)
    ]
    assert wrong == [], "choose other examples for it in app/serving/examples.py"


def test_every_family_begins_with_the_sentence_that_is_there_first():
    """But for DeBERTa, whose shipped model has another word first there."""
    first = {family: chosen[0] for family, chosen in examples.OF_FAMILY.items()}
    assert first.pop("deberta") == examples.PARIS_LAST
    assert [EXAMPLES[0], *first.values()] == [examples.PARIS] * (1 + len(first))


def test_the_shipped_run_gets_sentences_that_it_has_read():
    model = cm.load(CLASSROOM)
    assert examples_of(model) == examples.CLASSROOM
    text = "".join(file.read_text("utf-8") for file in (ASSETS / "primer").glob("english-*.txt"))
    read = " ".join(text.split())
    assert sum(each["text"] in read for each in examples.CLASSROOM) >= 5


def test_what_is_offered_first_is_new_to_the_models_and_followed_by_the_primer():
    everything = "".join(file.read_text("utf-8") for file in (ASSETS / "primer").glob("*.txt"))
    for language, chosen in examples.PAIRS.items():
        for number, texts in enumerate(chosen):
            assert pairs.shown_example(number, language) == texts
            assert len(set(texts)) == 4
            assert not [text for text in texts if text in everything]
        assert pairs.shown_example(len(chosen), language) == pairs.example(len(chosen), language)


def test_words_of_a_byte_level_vocabulary_are_shown_without_their_blank():
    """So that they can be compared with the words of examples."""
    text = "Most people in Thailand speak Thai."
    learnt = cm.Tokenizer.train([text] * 5, vocabulary=400, kind="byte_bpe")
    encoding = learnt.encode(text)
    tokens = [t for t in sentence_tokens(encoding, learnt) if not t.special]
    assert [t.text for t in tokens] == ["Most", "people", "in", "Thailand", "speak", "Thai", "."]
    assert "".join(text[t.start : t.end] for t in tokens) in (text, text.replace(" ", ""))


def test_a_button_hides_its_word_in_any_vocabulary(cloze, session):
    """Two words, of which one is two pieces: all of them are hidden, nothing else."""
    page = cloze.page
    cloze.unfold("Examples")
    page.wait_for_selector(".view-examples button")
    cloze.rest()
    names = [e["name"] for e in EXAMPLES]
    expect(page.locator(".view-examples button")).to_have_text(names)
    page.evaluate(
        """() => window.Cloze.change({ card: { ...window.Cloze.sentence.card, examples: [{
            name: 'Own', text: 'Paris and Ouagadougou are cities.', hide: ['ouagadougou', 'cities'],
        }] } })"""
    )
    page.get_by_role("button", name="Own", exact=True).click()
    page.wait_for_function("() => window.Cloze.sentence.marks.size > 2")
    hidden = page.evaluate(
        """() => { const { tokens, marks } = window.Cloze.sentence;
            return tokens.filter((t) => marks.has(t.position)).map((t) => t.text).join(''); }"""
    )
    assert hidden == "Ouagadougoucities"
