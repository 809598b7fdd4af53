"""What the form for a fine-tuning says of a labelled set and of the model that is to learn it."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.parts.plain import table
from app.runs.forms import tasks as run_tasks
from app.runs.forms.words import sentences
from viz.svg import Wording

OWN, COPIED = "", "*"
"""In place of the name of a shipped set: a table of one's own, and that of the copied run."""
KINDS = {
    "classify": Wording("a label of a text"),
    "pair": Wording("a label of two texts"),
    "multilabel": Wording("any number of labels"),
    "regress": Wording("a score"),
    "tag": Wording("a tag for each word"),
    "answer": Wording("an answer in a text"),
}
ROLES = {
    "text": "Column: text",
    "text_b": "Column: second text",
    "label": "Column: label",
    "labels": "Column: several labels",
    "score": "Column: score",
    "tokens": "Column: words",
    "tags": "Column: tags",
    "context": "Column: the text with the answer",
    "question": "Column: question",
    "answers": "Column: answers",
    "start": "Column: first character",
}
MOST_LABELS = 24
"""In the table of labels."""
NONE = "\N{EN DASH}"

DIRECTION = (
    "This model reads from left to right: its first token, which stands for a text, sees nothing "
    "of it. Choose a model that reads both sides, or a set of tags or answers."
)


def set_choices() -> list[tuple[str, str]]:
    """The shipped sets, and one's own."""
    shipped = [(each["title"], each["name"]) for each in run_tasks.describe()["sets"]]
    return [*shipped, ("my own table …", OWN)]


def fits(model: Mapping[str, Any], facts: Mapping[str, Any], apart: bool) -> bool:
    """Whether a model can learn a set.

    A text's class or score is read from its first token, which sees nothing of it where a model
    reads from left to right.
    """
    kind = facts.get("kind")
    able = not kind or kind in ("tag", "answer") or (kind == "regress" and apart)
    return able or not model.get("left_to_right")


def reads(model: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether a model reads the language of a set, as far as its vocabulary tells."""
    return (model.get("language") or _language(facts)) == _language(facts)


def _language(facts: Mapping[str, Any]) -> str:
    return "zh" if facts.get("chinese") else "en"


def usual(
    models: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
    apart: bool,
    first: Sequence[str],
) -> str | None:
    """The model that a set begins with; None where none can read and learn it.

    Args:
        models: that may be chosen.
        facts: of the set.
        apart: see :func:`fits`.
        first: names of those to begin with, the first before all others.
    """
    able = [each for each in models if fits(each, facts, apart) and reads(each, facts)]
    able.sort(key=lambda each: not each["language"])  # those of which nothing is told come last
    names = [each["name"] for each in able]
    return next(iter([*(name for name in first if name in names), *names]), None)


def strange(model: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """A word where set and model are of different languages."""
    if not facts.get("good") or reads(model, facts):
        return ""
    short = str(model["name"]).rsplit("/", 1)[-1]
    if _language(facts) == "zh":
        return Wording(
            "This set is Chinese, and {0} has hardly read any Chinese: it would have to learn "
            "almost from nothing. Choose a Chinese model.",
            short,
        )
    return Wording(
        "This set is not Chinese, and {0} has read Chinese: it would have to learn almost from "
        "nothing. Choose another model.",
        short,
    )


def about(facts: Mapping[str, Any]) -> str:
    """How many rows of what a set has."""
    train, dev = facts["train"], facts["dev"]
    values = (
        f"{train['rows']:,}",
        f"{dev['rows']:,}",
        f"{train['mean_length']:.0f}",
        KINDS[facts["kind"]],
    )
    scores, unanswered = train.get("scores"), train.get("unanswered")
    return sentences(
        [
            Wording(
                "{0} rows to learn from and {1} to measure on, {2} characters on average: {3}.",
                *values,
            )
            if facts["chinese"]
            else Wording(
                "{0} rows to learn from and {1} to measure on, {2} words on average: {3}.", *values
            ),
            Wording("Scores from {0} to {1}.", *(f"{s:g}" for s in scores)) if scores else "",
            Wording("1 question has no answer.")
            if unanswered == 1
            else Wording("{0} questions have no answer.", unanswered)
            if unanswered
            else "",
        ]
    )


def warned(facts: Mapping[str, Any]) -> str:
    """What should be known of a set."""
    return "\n".join(facts["warnings"])


def labels(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """How often each label is there; of many the most frequent, which the caption says."""
    found: Sequence[tuple[str, int]] = list(facts["train"]["labels"].items())
    if not found:
        return None
    caption = Wording("Labels of the set")
    if (count := len(found)) > MOST_LABELS:
        caption = Wording("The {0} most frequent of {1} labels of the set", MOST_LABELS, count)
        found = sorted(found, key=lambda each: -each[1])[:MOST_LABELS]
    return table(caption, [Wording("Label"), Wording("Rows to learn from")], found)


def rows(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Some rows of a set, or of a table that is none yet."""
    if facts.get("cells") and not facts.get("rows"):
        cells = [[row.get(name) for name in facts["columns"]] for row in facts["cells"]]
        return table(Wording("The table as it was read"), facts["columns"], cells)
    if not facts.get("rows"):
        return None
    caption = Wording(
        "{0} of the {1} rows to learn from, with their numbers in the table.",
        len(facts["rows"]),
        f"{facts['train']['rows']:,}",
    )
    pairs = any(row["pair"] for row in facts["rows"])
    heads = [Wording("Row"), Wording("Text"), *([Wording("Second text")] if pairs else [])]
    return table(
        caption,
        [*heads, Wording("To be answered with")],
        [
            [row["number"], row["text"], *([row["pair"]] if pairs else []), row["said"] or NONE]
            for row in facts["rows"]
        ],
    )
