"""What the Pairs lab says: names, what should come out, and what an answer means."""

from collections.abc import Mapping
from typing import Any

import core_models as cm
from app.labs.pairs.answers import constant
from app.parts.plain import sentences
from viz.svg import Wording
from viz.words import percent

KINDS = {
    "next": Wording("Real next"),
    "swapped": Wording("Swapped"),
    "same": Wording("Same topic"),
    "other": Wording("Random"),
}
HEADS = {"next_sentence": Wording("Next sentence"), "sentence_order": Wording("Sentence order")}
LABELS = {
    "next_sentence": (Wording("next"), Wording("random")),
    "sentence_order": (Wording("in order"), Wording("swapped")),
}
"""What each head may say: yes and no."""
RIGHT = {
    True: Wording("right: every time"),
    False: Wording("right: never"),
    None: Wording("no such pair in its training"),
}
SHOULD: dict[str, dict[str, bool | None]] = {
    "next_sentence": {"next": True, "swapped": None, "same": None, "other": False},
    "sentence_order": {"next": True, "swapped": False, "same": None, "other": None},
}
"""Whether a head should say yes to a kind of pair; None = it was never taught."""
ABOVE = {
    "other": Wording("True pair above the random one"),
    "same": Wording("True pair above one of the same topic"),
    "swapped": Wording("True pair above the swapped one"),
}
COSINES = {"cls": Wording("Cosine of [CLS]"), "mean": Wording("Cosine of the means")}
EXPECTED = {
    "next": Wording(
        "Right is “next” for a next-sentence head, and “in order” for a sentence-order head."
    ),
    "swapped": Wording(
        "Right is “swapped” for a sentence-order head. A next-sentence head does not see order: no "
        "swapped pair stands in its training, so expect the same of it as for the true pair."
    ),
    "same": Wording(
        "Neither head was trained on such pairs, so no answer is right or wrong. A next-sentence "
        "head often goes by the topic and says “next”."
    ),
    "other": Wording(
        "Right is “random” for a next-sentence head. A sentence-order head never saw such a pair, "
        "so its answer says nothing."
    ),
}
"""What should come out, by the kind of pair."""
ABOUT = """\
BERT learnt to tell a true next sentence from a random one, ALBERT to tell the right order of two \
neighbours from the swapped one. A random sentence is usually about something else, so the first \
task can be passed by topic alone; the second cannot."""
LITTLE = """\
One pair proves little. The shipped models have read the Primer, so this is how they do on what \
they know."""
COUNTED = Wording(
    "This is no count of right answers: point at a bar, or open the numbers, to see what would be "
    "right."
)
COIN = Wording(
    "A coin would win half of them. The cosine is the same both ways round, so it always ties with "
    "the swapped pair."
)
CROSS = """\
The heads above read both texts at once (a cross-encoder). Here each text is read alone and only \
the vectors meet (a bi-encoder)."""
UNTRAINED = """\
This model was not trained for similarity: even unrelated texts may look alike, so only \
differences say anything."""
BLIND_ORDER = """\
A cosine is the same both ways round, so a bi-encoder cannot tell the order. Its gain is speed: \
1,000 texts are read 1,000 times, a cross-encoder reads each of their 499,500 pairs."""
BLIND = Wording("This model reads from left to right: its first piece sees nothing of the text.")
SEGMENTS = {
    "table": Wording("The segment number picks a learnt vector that is added to each piece."),
    "scores": Wording(
        "This family has no segment table: the attention scores ask only whether two pieces stand "
        "in the same text."
    ),
    "none": Wording(
        "This family has no segments: only the special pieces part the texts, and the numbers are "
        "not used."
    ),
}
FOREIGN = {
    ("next_sentence", "en"): Wording(
        "No model with a next sentence head that reads English is installed."
    ),
    ("next_sentence", "zh"): Wording(
        "No model with a next sentence head that reads Chinese is installed."
    ),
    ("sentence_order", "en"): Wording(
        "No model with a sentence order head that reads English is installed."
    ),
    ("sentence_order", "zh"): Wording(
        "No model with a sentence order head that reads Chinese is installed."
    ),
}
LACKING = {
    "next_sentence": Wording(
        "No model with a next sentence head is installed. Train one: choose BERT in the Train tab, "
        "or run {0}",
        "python -m zoo build bert-mini",
    ),
    "sentence_order": Wording(
        "No model with a sentence order head is installed. Train one: choose ALBERT in the Train "
        "tab, or run {0}",
        "python -m zoo build albert-mini",
    ),
}
UNCHANGED = 0.0005
NOTICED = 0.1
"""A smaller change says nothing."""
MINDS = {
    "topic": {
        "for": Wording("it goes by the topic"),
        "less": Wording("it minds the topic less than the order"),
        "not": Wording("it hardly minds the topic"),
        "against": Wording("it prefers the other topic"),
    },
    "order": {
        "for": Wording("it goes by the order"),
        "less": Wording("it minds the order less than the topic"),
        "not": Wording("it hardly minds the order"),
        "against": Wording("it prefers the wrong order"),
    },
}


def notes(
    trust: Mapping[str, Mapping[str, Any] | None],
    answering: Mapping[str, str | None],
    others: Mapping[str, str],
    language: str,
) -> str:
    """How far each head can be trusted, and why one does not answer."""
    said: list[str] = []
    for head, title in HEADS.items():
        if known := trust.get(head):
            values = f"{known['questions']:,}", percent(known["right"])
            told = (
                Wording(
                    "Of {0} held-out questions {1} answered right: no better than guessing.",
                    *values,
                )
                if known["guesses"]
                else Wording("Of {0} held-out questions {1} answered right.", *values)
            )
            said.append(Wording("{0}: {1}", title, told))
        elif not answering[head] and head in others:
            said.append(FOREIGN[head, language])
            said.append(
                Wording(
                    "{0} has such a head, but it reads another language, so it is not asked.",
                    others[head],
                )
            )
        elif not answering[head]:
            said.append(LACKING[head])
    return sentences(*said)


def cut(readers: Mapping[str, cm.Model], heads: Mapping[str, Mapping[str, Any]]) -> str:
    """Which judges do not read both texts to their ends."""
    text = "{0} reads {1} pieces of both texts together; the rest is cut off."
    return sentences(
        *(
            Wording(text, heads[head]["model"], reader.longest)
            for head, reader in readers.items()
            if heads[head]["now"]["truncated"]
        )
    )


def verdict(
    heads: Mapping[str, Mapping[str, Any]], trust: Mapping[str, Mapping[str, Any] | None]
) -> str:
    """What two texts tell of each head: whether it minds topic and order, and which way."""

    def side(effect: float, other: float) -> str:
        if abs(effect) < NOTICED:
            return "not"
        if effect < 0:
            return "against"
        return "less" if 2 * effect < abs(other) else "for"

    said: list[str] = []
    for head, found in heads.items():
        title, topic, order = HEADS[head], found["effects"]["topic"], found["effects"]["order"]
        about, way = side(topic, order), side(order, topic)
        if (known := trust.get(head)) and known["guesses"]:
            told = Wording(
                "{0}: on held-out texts this head only guesses, so what it says here means "
                "nothing.",
                title,
            )
        elif about == way == "not":
            told = Wording("{0}: on these texts it hardly tells the pairs apart.", title)
        else:
            minds = MINDS["topic"][about], MINDS["order"][way]
            told = Wording("{0}: on these texts {1}, and {2}.", title, *minds)
        said.append(told)
    return sentences(*said)


def effects(head: str, found: Mapping[str, float]) -> str:
    """By how much another topic and the wrong order change the probability of yes."""
    yes = LABELS[head][0]
    topic, order = found["topic"], found["order"]
    points = [f"{100 * abs(value):.1f}" for value in (topic, order)]
    if abs(topic) < UNCHANGED:
        first = Wording("Another topic leaves “{0}” as it is.", yes)
    elif topic > 0:
        first = Wording("Another topic makes “{0}” {1} points less probable.", yes, points[0])
    else:
        first = Wording("Another topic makes “{0}” {1} points more probable.", yes, points[0])
    if abs(order) < UNCHANGED:
        second = Wording("The wrong order leaves “{0}” as it is.", yes)
    elif order > 0:
        second = Wording("The wrong order makes “{0}” {1} points less probable.", yes, points[1])
    else:
        second = Wording("The wrong order makes “{0}” {1} points more probable.", yes, points[1])
    return sentences(first, second)


def texts_used(kind: str, base: Mapping[str, str]) -> str:
    """What the squares compare."""
    if kind == "own":
        return Wording(
            "Your second text is taken as the true continuation of your first. The other topic: "
            "“{0}”",
            base["other"],
        )
    return Wording(
        "First: “{0}” Second: “{1}” The other topic: “{2}”",
        base["first"],
        base["next"],
        base["other"],
    )


def reading(name: str, found: Mapping[str, Any]) -> str:
    """What the row of pieces is."""
    count = len(found["pieces"])
    return sentences(
        Wording("{0}: {1} pieces. The small number is the segment.", name, count),
        Wording("The rest was cut off.") if found["truncated"] else None,
        SEGMENTS[found["segments"]],
    )


def measured(
    counts: Mapping[str, Mapping[str, int]],
    answering: Mapping[str, str | None],
    asked: int,
) -> str:
    """What judges that always say the same are worth, and how to read the counts."""
    said: list[str] = []
    for head, found in counts.items():
        yes = sum(found.values())
        if constant(yes, asked):
            often = max(yes, asked - yes)
            said.append(
                Wording(
                    "{0} says “{1}” to {2} of {3} pairs: this judge always answers the same. It "
                    "was trained too little, so its answers say nothing.",
                    answering[head],
                    LABELS[head][0 if yes > asked / 2 else 1],
                    often,
                    asked,
                )
            )
    return sentences(*said, COUNTED if counts else None, COIN)
