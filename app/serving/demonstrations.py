"""What presets, first sentences and lesson steps are meant to show, in a form that can be measured.

One table for the page and its tests: `benchmarks.demonstrations` measures every row on its model
through `core_models`, and ``tests/app/test_demonstrations.py`` demands that it holds. What the
example buttons hide (`app.serving.examples`) has to be the first choice, senses stand with the
words of Meaning, and a claim carries its own measurement; these are measured with the rest.
"""

# ruff: noqa: RUF001 (Chinese commas are meant)

from typing import NamedTuple

from app.serving.examples import CHINESE, DEFAULT, PAIRS
from app.serving.statements import (
    Accuses,
    Contexts,
    Cuts,
    Emerges,
    Ends,
    First,
    GivesLess,
    Helps,
    Hotter,
    LooksAt,
    NeedsHead,
    NeedsTerms,
    Neighbours,
    Overtakes,
    Prefers,
    Recovers,
    Smaller,
    Statement,
    Surer,
    Together,
    Trusts,
)

BERT = "bert-mini"
CHINESE_BERT = "bert-mini-chinese"
ELECTRA = "electra-mini"
DEBERTA = "deberta-mini"
XLNET = "xlnet-mini"
SPANBERT = "spanbert-mini"
CAUSAL = "causal-mini"


class Demonstration(NamedTuple):
    """What one thing on the page shows."""

    lab: str
    """As in links; ``tour`` for the lesson's steps."""
    name: str
    """Of the preset, in English."""
    model: str
    """On which it is measured; "" where none answers."""
    shows: Statement


CAPITAL = "The capital of France is Paris."
WINTER = "In winter the lake is covered with snow."
STATES = "The President of the United States spoke to the nation."
HONEY = "The capital of France is honey."
BUENOS_AIRES = "People who visit Argentina often begin in the capital, Buenos Aires."
MADRID = "Madrid is the capital of Spain."
FILLING = (
    BERT, "electra-mini-generator", "albert-mini", XLNET, "roberta-mini", SPANBERT,
    "deberta-v2-mini", "deberta-v3-mini-generator", "modernbert-mini", "diffusion-mini",
)  # fmt: skip
"""English models that see both sides of a gap; deberta-mini has Paris second there."""

_ROWS: dict[str, list[tuple[str, str, Statement]]] = {
    "mask": [
        *(("first sentence", name, First(DEFAULT, "paris")) for name in FILLING),
        ("first sentence", BERT, Surer(DEFAULT, "paris", CAUSAL)),
        (
            "A capital and its country",
            BERT,
            Together(CAPITAL, ("france", "paris"), ("india", "brussels"), ("india", "delhi")),
        ),
        (
            "Two words",
            BERT,
            Together(
                "New York is a large city in the United States.",
                ("united", "states"),
                ("united", "city"),
                ("united", "states"),
            ),
        ),
        (
            "Bulgarian",
            BERT,
            Prefers(
                "The language of Bulgaria is Bulgarian.",
                "bulgarian",
                "bulgarian",
                ("english", "russian", "macedonian"),
                pieces=2,
            ),
        ),
        ("Paris", BERT, Overtakes(CAPITAL, "paris", ("people",))),
        (
            "Wine",
            BERT,
            Overtakes("He drank a glass of wine.", "wine", ("water", "milk")),
        ),
        ("The end tells", BERT, Surer("Paris is the capital of France.", "paris", CAUSAL)),
        ("Nothing follows", BERT, Ends(CAPITAL[:-1], "paris")),
        ("Nothing follows", CAUSAL, First(CAPITAL[:-1], "paris")),
    ],
    "attention": [
        ("What fills the gap?", BERT, LooksAt(CAPITAL, "paris", "france")),
        ("Why does the gap look there?", BERT, LooksAt(CAPITAL, "paris", "france")),
        ("Which heads does it need?", BERT, NeedsHead(CAPITAL, "paris", 0.6)),
        ("The whole last layer", BERT, NeedsHead(CAPITAL, "paris", 0.2, whole_layer=True)),
        ("Special tokens", BERT, GivesLess(CAPITAL)),
    ],
    "why": [
        ("Why Paris, not London?", BERT, Prefers(CAPITAL, "paris", "paris", ("london",))),
        (
            "One or many?",
            BERT,
            Prefers("The children are playing in the garden.", "are", "are", ("is",)),
        ),
        ("Too few steps", BERT, First("Mexico lies in North America.", "america", 0.5)),
        (
            "Three words at a time",
            BERT,
            First("The house was built two hundred years ago.", "years", 0.5),
        ),
        (
            "Two sentences",
            BERT,
            Neighbours(
                "Mount Everest is the highest mountain in the world.",
                "Its top lies almost nine kilometres above the sea.",
                "She forgot the password of her computer.",
            ),
        ),
        ("A forged word", ELECTRA, Accuses(HONEY, "honey")),
    ],
    "forge": [
        ("Fool it", ELECTRA, Trusts("The capital of France is London.", "london")),
        (
            "A hot generator",
            ELECTRA,
            Hotter("The heart pumps blood through the body.", "blood", 2.5),
        ),
        ("Lucky draws", "electra-mini-generator", First(STATES, "states", 0.5)),
    ],
    "spans": [
        ("Three words", SPANBERT, Recovers(MADRID, "the capital of")),
        ("A name", SPANBERT, Recovers(BUENOS_AIRES, "Buenos Aires")),
        (
            "Other words inside",
            SPANBERT,
            Recovers("The government of Turkey meets in Ankara, the capital.", "meets in Ankara"),
        ),
    ],
    "permutation": [
        ("The last word sees all", XLNET, First(MADRID, "spain")),
        ("The first word comes last", XLNET, Helps(MADRID, "madrid")),
    ],
    "terms": [
        (
            "Without positions",
            DEBERTA,
            NeedsTerms("Mexico lies in North America.", "america", ("c2p", "p2c")),
        ),
        ("Without contents", DEBERTA, NeedsTerms(CAPITAL, "paris", ("content",))),
    ],
    "unmasking": [
        (
            "A word stays",
            BERT,
            Emerges(CAPITAL, ("capital",), 6, "the capital of belgium is brussels.", fits=True),
        ),
        (
            "All at once",
            BERT,
            Emerges(CAPITAL, ("capital",), 1, "the capital of of is london."),
        ),
        (
            "Beginning and end",
            BERT,
            Emerges(MADRID, ("Madrid", "Spain"), 4, "madrid is the capital of spain."),
        ),
    ],
    "timeline": [
        ("BERT: ten copies, 40 epochs", BERT, Contexts("copies", 40, 10, 2, 10)),
        ("RoBERTa: afresh", BERT, Contexts("dynamic", 40, 10, 11, 40)),
        ("One mask for ever", BERT, Contexts("static", 20, 10, 1, 1)),
    ],
    "budget": [
        ("BERT against ALBERT", "", Smaller("albert-base", "bert-base-uncased", 9, 1.1)),
        (
            "Four ways to be base",
            "",
            Smaller("electra-small-discriminator", "bert-base-uncased", 8),
        ),
        (
            "The vocabulary grows",
            "",
            Smaller("bert-base-uncased", "bert-base-multilingual-cased", 1.5, 1.1),
        ),
        ("Relative positions", "", Smaller("bert-base-uncased", "deberta-base", 1.2)),
        ("From 2018 to 2024", "", Smaller("bert-base-uncased", "modernbert-base", 1.3)),
    ],
    "tokenizers": [
        (
            "A long word",
            BERT,
            Cuts(
                "Unbelievable! They reopened the antislavery museum.", ("unb", "eli", "ev", "able")
            ),
        ),
        ("An accent", BERT, Cuts("The café’s crème brûlée wasn’t re-heated.", ("ca", "fe"))),
        ("Chinese", BERT, Cuts(CHINESE[3]["text"], ("[UNK]",))),
        ("Chinese", CHINESE_BERT, Cuts(CHINESE[3]["text"], ("北", "京"))),
        (
            "Both",
            BERT,
            Cuts("In Chinese, Beijing is written 北京 .", ("beijing", "is", "written", "[UNK]")),
        ),
        (
            "Unknown signs",
            BERT,
            Cuts("I like 龘 and 😀 very much.", ("like", "[UNK]", "and", "[UNK]")),
        ),
    ],
    "tour": [
        ("A gap is filled from both sides", BERT, First(DEFAULT, "paris", 0.5)),
        ("A gap is filled from both sides", CHINESE_BERT, First(CHINESE[0]["text"], "首都")),
        ("Where it looks", BERT, LooksAt(CAPITAL, "paris", "france")),
        ("What training hides", BERT, Contexts("dynamic", 20, 10, 11, 20)),
        ("A forger and a detective", ELECTRA, Accuses(HONEY, "honey")),
        ("A forger and a detective", ELECTRA, Trusts("The capital of France is London.", "london")),
        ("Another order of reading", XLNET, Helps(WINTER, "snow")),
        ("What and where, kept apart", DEBERTA, NeedsTerms(CAPITAL, "paris", ("content",))),
        ("Where the parameters are", "", Smaller("albert-base", "bert-base-uncased", 9, 1.1)),
        (
            "Watch one learn",
            "run/classroom",
            First("The language of Argentina is Spanish.", "spanish"),
        ),
    ],
    "pairs": [
        (texts.first, model, Neighbours(texts.first, texts.next, texts.other))
        for language, models in (("en", (BERT, "albert-mini")), ("zh", (CHINESE_BERT,)))
        for texts in PAIRS[language]
        for model in models
    ],
}
DEMONSTRATIONS = [Demonstration(lab, *row) for lab, rows in _ROWS.items() for row in rows]
