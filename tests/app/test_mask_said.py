"""What the folds of the Mask lab say of models of one title, and of texts without spaces."""

import math

from app.labs.mask import said
from app.labs.mask.said import MOST_LETTERS
from core_models.prediction import WordScore
from viz.svg import LETTER, text_width

HALF = math.log(0.5)


def scored(title, name):
    return {"title": title, "name": name, "words": [HALF], "perplexity": 2.0, "error": None}


def test_models_of_one_title_are_told_apart_by_their_names():
    names = ["bert-mini", "folder/1", "tiny"]
    titles = ["BERT mini · 3 M", "BERT mini · words in gaps", "Tiny"]
    chart = said.each_word([*map(scored, titles, names)], ["a"])
    called = ["BERT mini (bert-mini)", "BERT mini (folder/1)", "Tiny"]
    assert [line.name for line in chart.data] == called
    assert chart.layout.meta["columns"] == ["Word", *called]
    assert chart.layout.meta["rows"][-1] == ["Pseudo-perplexity", "2.00", "2.00", "2.00"]


def title_of(text):
    word = WordScore(word="a", pieces=("a",), steps=(HALF,), log_probability=HALF)
    _, chart = said.spelled([word], None, text)
    return chart.layout.title.text.removeprefix("Words in this gap: ")


def test_a_long_text_without_spaces_shows_its_beginning():
    text = "北京是中国的首都。" * 20
    title = title_of(text)
    assert text.startswith(title.removesuffix("…"))
    assert 40 < len(title) <= MOST_LETTERS
    assert text_width(title) <= MOST_LETTERS * LETTER


def test_a_text_stands_on_one_line_and_is_no_markup():
    assert title_of("a\n <b> c") == "a &lt;b&gt; c"
    assert title_of("n" * MOST_LETTERS) == "n" * MOST_LETTERS
    assert title_of("n" * (MOST_LETTERS + 1)) == "n" * (MOST_LETTERS - 1) + "…"
