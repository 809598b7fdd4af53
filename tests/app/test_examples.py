"""The example sentences: what they hide stands in them, and each family has its own."""

import pytest

import core_models as cm
from app import examples
from app.examples import EXAMPLES, examples_of
from app.pieces import sentence_tokens
from tests.core.tiny_models import new, tiny

LISTS = [
    EXAMPLES,
    examples.CHINESE,
    examples.FROM_THE_LEFT,
    *examples.OF_FAMILY.values(),
]
ALL = {e["text"] + e["name"]: e for chosen in LISTS for e in chosen}


@pytest.mark.parametrize("key", ALL)
def test_what_is_hidden_stands_in_the_text(key):
    example = ALL[key]
    text = example["text"].lower()
    assert example["hide"]
    for word in example["hide"]:
        start = text.index(word)
        around = text[start - 1 : start] + text[start + len(word) : start + len(word) + 1]
        assert not any("a" <= c <= "z" for c in around), "the first place must be the word itself"


def test_a_model_gets_those_of_its_family(model):
    assert examples_of(model) == EXAMPLES
    assert examples_of(new(tiny("deberta-base"))) == examples.OF_FAMILY["deberta"]
    assert examples_of(new(tiny("roberta-base")))
    assert set(examples.OF_FAMILY) <= set(cm.families())
    for chosen in LISTS:
        names = [e["name"] for e in chosen]
        assert len(set(names)) == len(names) >= 4


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
    page.wait_for_selector(".view-examples button")
    names = [e["name"] for e in EXAMPLES]
    assert page.locator(".view-examples button").all_inner_texts() == names
    page.evaluate(
        """() => window.Cloze.change({ card: { ...window.Cloze.sentence.card, examples: [{
            name: 'Own', text: 'Paris and Ouagadougou are cities.', hide: ['ouagadougou', 'cities'],
        }] } })"""
    )
    page.get_by_role("button", name="Own").click()
    page.wait_for_function("() => window.Cloze.sentence.marks.size > 2")
    hidden = page.evaluate(
        """() => { const { tokens, marks } = window.Cloze.sentence;
            return tokens.filter((t) => marks.has(t.position)).map((t) => t.text).join(''); }"""
    )
    assert hidden == "Ouagadougoucities"
