"""Sentences to begin with, chosen by trying them: each model is offered what it is good at."""

# ruff: noqa: RUF001 (Chinese commas are meant)

from typing import TypedDict

import core_models as cm
from core_models.evaluation.language import language_of


class Example(TypedDict):
    """A button above the chips."""

    name: str
    text: str
    hide: list[str]
    """Small letters: what the example hides, at its first place in the text."""


DEFAULT = "The capital of France is Paris ."


def _example(name: str, text: str, *hide: str) -> Example:
    return {"name": name, "text": text, "hide": list(hide)}


PARIS = _example("Paris", DEFAULT, "paris")
MADRID = _example("Madrid", "Madrid is the capital of Spain.", "spain")
DOCTOR = _example("Doctor", "The doctor told him to stay in bed and rest.", "bed")
PARAGRAPH = _example(
    "A paragraph",
    "Spain lies in the south of Europe. Its capital is Madrid, and most people there speak "
    "Spanish. In summer the days are hot, so many people eat dinner late in the evening.",
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
    "albert": [MOMENT, AGO, NATION, CARE, SOURCE, THAILAND, ARGENTINA, MADRID],
    "roberta": [WHITE_HOUSE, MOMENT, NATION, CARE, DOCTOR, THAILAND, SECOND_HALF, PARAGRAPH],
    "electra": [PARIS, MADRID, WHITE_HOUSE, MOMENT, AGO, NATION, AMERICA, ANKARA],
    "spanbert": [SPAN, TWO_WORDS, PARIS, MADRID, WHITE_HOUSE, AGO, PARAGRAPH],
    "xlnet": [SPAN, WHITE_HOUSE, MOMENT, AGO, STREETS, AMERICA, SECOND_HALF],
    "deberta": [WHITE_HOUSE, MOMENT, NATION, SOURCE, THAILAND, ARGENTINA, MADRID],
    "deberta_v2": [MOMENT, AGO, NATION, CARE, SOURCE, THAILAND, STREETS, SPAN, MADRID],
    "deberta_v3": [MADRID, WHITE_HOUSE, MOMENT, AGO, NATION, THAILAND, AMERICA, SECOND_HALF],
}
BLIND = _example("Nothing to go by", "Madrid is the capital of Spain.", "madrid")
"""Shows what a model that reads from the left cannot know."""
FROM_THE_LEFT = [WHITE_HOUSE, CARE, AMERICA, THAILAND, SECOND_HALF, MONGOLIA, BLIND]
CHINESE = [
    _example("Capital", "法国的首都是巴黎。", "首都"),
    _example("Largest", "东北的海里有大堡礁，那是世界上最大的珊瑚礁。", "最大"),
    _example("Meals", "吃饭的时候，他们习惯用右手把饭送进嘴里。", "时候"),
    _example("Beijing", "北京是中国的首都，位于华北平原的北部。", "中国"),
    _example("South", "阿根廷在南美洲的南部，首都是布宜诺斯艾利斯。", "南部"),
]


def examples_of(model: cm.Model) -> list[Example]:
    """The examples of a model's language, its direction, or its family, the first that exist."""
    if language_of(model.tokenizer) == "zh":
        return CHINESE
    if "causal" in model.heads:
        return FROM_THE_LEFT
    return OF_FAMILY.get(model.config.family, EXAMPLES)
