"""Sentences to begin with, chosen by trying them: each model is offered what it is good at."""

# ruff: noqa: RUF001 (Chinese commas are meant)

from typing import NamedTuple, TypedDict

import core_models as cm
from core_models.evaluation.language import language_of
from core_models.prediction.passes import kind_of


class Example(TypedDict):
    """A button above the chips."""

    name: str
    text: str
    hide: list[str]
    """Small letters: what the example hides, at its first place in the text."""


DEFAULT = "She was born in Paris, the capital of France."


def _example(name: str, text: str, *hide: str) -> Example:
    return {"name": name, "text": text, "hide": list(hide)}


PARIS = _example("Paris", DEFAULT, "paris")
"""Both sides tell: the left that a place is asked for, the right which. All shipped models that see
both have it first, but for deberta-mini, and the one that reads from the left does not. The word is
not the first: of those, byte-level vocabularies know few as one piece."""
PARIS_LAST = _example("Paris", "The capital of France is Paris.", "paris")
MADRID = _example("Madrid", "Madrid is the capital of Spain.", "spain")
PARAGRAPH = _example(
    "A paragraph",
    "Spain lies in the south of Europe. Its capital is Madrid, and most people there speak "
    "Spanish. In summer the days are hot, so many people eat dinner late in the evening.",
    "spanish",
)
SHORT_PARAGRAPH = _example(
    "A paragraph",
    "Madrid is the capital of Spain. Most people there speak Spanish, and in summer they eat "
    "dinner late in the evening, because the days are hot.",
    "spanish",
)
WHITE_HOUSE = _example("White House", "The president lives in the White House.", "house")
MOMENT = _example("Moment", "She looked at him for a moment, and then she smiled.", "moment")
AGO = _example("Ago", "The house was built two hundred years ago.", "years")
NATION = _example("Nation", "The President of the United States spoke to the nation.", "states")
CARE = _example("Care", "Talk to your health care provider about the test.", "care")
SOURCE = _example("Open source", "Anyone can contribute to an open source project.", "source")

EXAMPLES = [PARIS, WHITE_HOUSE, MOMENT, AGO, NATION, CARE, SOURCE, MADRID]
"""Sentences near to what the shipped models read."""

THAILAND = _example("Thailand", "Most people in Thailand speak Thai.", "people")
ARGENTINA = _example("Argentina", "The language of Argentina is Spanish.", "spanish")
AMERICA = _example("Mexico", "Mexico lies in North America.", "america")
ANKARA = _example("Ankara", "The government of Turkey meets in Ankara, the capital.", "government")
STREETS = _example("Streets", "In Iraq you hear Arabic in the streets.", "streets")
MONGOLIA = _example(
    "Mongolia", "Ulaanbaatar, the Mongolian capital, is the coldest of them all.", "capital"
)
_VISIT = "People who visit Argentina often begin in the capital, Buenos Aires."
SECOND_HALF = _example("Second half", _VISIT, "aires")
TWO_WORDS = _example("Two words", _VISIT, "buenos", "aires")
SPAN = _example("A span", "The capital city of Portugal is called Lisbon.", "capital", "city")

OF_FAMILY = {
    "albert": [PARIS, MOMENT, AGO, NATION, CARE, SOURCE, THAILAND, ARGENTINA, MADRID],
    "roberta": [
        PARIS,
        WHITE_HOUSE,
        MOMENT,
        AGO,
        NATION,
        CARE,
        THAILAND,
        SECOND_HALF,
        SHORT_PARAGRAPH,
    ],
    "electra": [PARIS, MADRID, WHITE_HOUSE, MOMENT, AGO, NATION, AMERICA, ANKARA],
    "spanbert": [PARIS, SPAN, TWO_WORDS, MADRID, MOMENT, AGO, NATION, CARE, PARAGRAPH],
    "xlnet": [PARIS, SPAN, WHITE_HOUSE, MOMENT, AGO, STREETS, AMERICA, SECOND_HALF],
    "deberta": [PARIS_LAST, MOMENT, AGO, NATION, CARE, SOURCE, THAILAND, ARGENTINA, SECOND_HALF],
    "deberta_v2": [PARIS, MOMENT, AGO, NATION, CARE, SOURCE, THAILAND, STREETS, SPAN, MADRID],
    "deberta_v3": [PARIS, MADRID, MOMENT, AGO, NATION, THAILAND, AMERICA, ANKARA, SECOND_HALF],
    "modernbert": [PARIS, SPAN, TWO_WORDS, AGO, NATION, CARE, SOURCE, THAILAND, MADRID],
}
BLIND = _example("Nothing to go by", "Madrid is the capital of Spain.", "madrid")
"""Shows what a model that reads from the left cannot know."""
FROM_THE_LEFT = [WHITE_HOUSE, CARE, AMERICA, THAILAND, SECOND_HALF, MONGOLIA, BLIND]
CLASSROOM = [
    _example("Invention", "Paper was invented in China about two thousand years ago.", "years"),
    _example("Vienna", "Its capital, Vienna, lies in the east beside the river Danube.", "capital"),
    _example(
        "Pigs", "Many people think that pigs are dirty, but this is not really fair.", "people"
    ),
    _example("The sun", "More than a million Earths would fit inside it.", "more"),
    _example(
        "Germany", "Germany lies in the middle of Europe and touches nine other countries.", "lies"
    ),
    _example("Potato", "The potato comes from the mountains of South America.", "america"),
    THAILAND,
    ARGENTINA,
]
"""Of the Primer, which is nearly all that the shipped run has read."""
CLASSROOM_SHAPE = ("deberta", 2, 128, 2000)
"""Family, layers, width and vocabulary of the recipe *classroom*, whoever has run it."""
CHINESE = [
    _example("Capital", "法国的首都是巴黎。", "首都"),
    _example("Largest", "东北的海里有大堡礁，那是世界上最大的珊瑚礁。", "最大"),
    _example("Meals", "吃饭的时候，他们习惯用右手把饭送进嘴里。", "时候"),
    _example("Beijing", "北京是中国的首都，位于华北平原的北部。", "中国"),
    _example("South", "阿根廷在南美洲的南部，首都是布宜诺斯艾利斯。", "南部"),
]
MACBERT = [
    CHINESE[0],
    CHINESE[1],
    CHINESE[2],
    _example("Japan", "日本是亚洲东部的一个岛国。", "一个"),
    _example("Egypt", "埃及在非洲的东北部，首都是开罗。", "首都"),
]
"""In training it never saw a [MASK], only similar words: it fills fewer gaps than its BERT."""


def examples_of(model: cm.Model) -> list[Example]:
    """The examples of a model's language, direction, size, or family, the first that exist."""
    if language_of(model.tokenizer) == "zh":
        return MACBERT if model.config.family == "macbert" else CHINESE
    if kind_of(model.heads, leftward=model.config.left_to_right) == "causal":
        return FROM_THE_LEFT
    shape = model.config.family, model.config.steps, model.config.width
    if (*shape, model.tokenizer.vocabulary) == CLASSROOM_SHAPE:
        return CLASSROOM
    return OF_FAMILY.get(model.config.family, EXAMPLES)


class Texts(NamedTuple):
    """Sentences that stand to each other as pairs are told apart."""

    first: str
    next: str
    """Stands right after the first."""
    same: str
    """About the same, but no neighbour of the first."""
    other: str
    """About something else."""


PAIRS = {
    "en": [
        Texts(
            "Tom forgot his umbrella at home this morning.",
            "When it began to rain, he got wet and had to run home.",
            "His mother had warned him about the weather at breakfast.",
            "A camel can live without water for many days.",
        ),
        Texts(
            "The sun went down behind the hills.",
            "Then it grew dark, and the stars came out.",
            "It had been a hot day in the village.",
            "Your doctor may order a blood test.",
        ),
        Texts(
            "The rain stopped in the afternoon.",
            "Then the children ran out to play in the garden.",
            "It had rained since the morning.",
            "Milk is good for your bones.",
        ),
        Texts(
            "Lena opened the letter with shaking hands.",
            "When she read the first line, she began to cry.",
            "She had waited for news from her brother for months.",
            "Iron is a metal that rusts in wet air.",
        ),
        Texts(
            "Anna found a small dog in the street.",
            "She took it home with her and gave it food.",
            "The street was empty and dark at this hour.",
            "The state collects taxes from companies.",
        ),
    ],
    "zh": [
        Texts(
            "日本是亚洲东部的一个岛国。",
            "它的首都是东京，是世界上最大的城市之一。",
            "那里常常发生地震。",
            "妈妈给孩子讲了一个故事。",
        ),
        Texts(
            "秋天到了，许多鸟都飞到南方去过冬。",
            "到了春天，天气变暖了，它们又飞回北方。",
            "有些鸟要飞过整个沙漠。",
            "工厂里的工人正在修理机器。",
        ),
        Texts(
            "长江是中国最长的河。",
            "它从西部的高山流到东边的大海。",
            "江上有很多大船。",
            "他昨天买了一本英文书。",
        ),
    ],
}
"""What the Pairs tab begins with, by language: written for Cloze (CC0) and read by no model before.

The next-sentence heads of the shipped models tell the true pair from the one about something else,
and say of the swapped one what they say of the true one. The sentence-order head of albert-mini
tells these from swapped ones; over 1,000 held-out questions it is at chance (docs/models.md), and
the tab's own count over many examples shows it (``tests/app/test_demonstrations.py``).
"""
