"""What is said about an explanation: sentences and tables of plain values. No Gradio in it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from app.labs.why.methods import FEWEST, METHODS, STEPS
from app.parts.plain import table
from viz.svg import Wording

TITLES = {
    "integrated": Wording("Integrated gradients"),
    "gradient": Wording("Input \N{MULTIPLICATION SIGN} gradient"),
    "saliency": Wording("Saliency"),
    "occlusion": Wording("Occlusion"),
}
KINDS = {
    "piece": Wording("The word in a gap"),
    "replaced": Wording("Real or replaced"),
    "class": Wording("The class"),
    "score": Wording("The score"),
    "tag": Wording("The tag of a word"),
    "start": Wording("Start of the answer"),
    "end": Wording("End of the answer"),
}
PAIR_HEADS = {
    "next_sentence": Wording("Next sentence"),
    "sentence_order": Wording("Sentence order"),
}
"""Heads for two texts, which answer for a class."""
VERDICTS: dict[str, str] = {
    "real": Wording("real"),
    "replaced": Wording("replaced"),
    "next": Wording("next"),
    "random": Wording("random"),
    "in order": Wording("in order"),
    "swapped": Wording("swapped"),
}
"""Answers of heads whose labels are the program's, not those of a visitor's data."""
ALIKE = 0.7
"""From this rank correlation on an explanation counts as having stayed the same."""
MISSED = 0.05
"""Share by which the sum may miss what it must be."""


def name_of(scene: Mapping[str, Any], index: int | None) -> str | None:
    """The name of an answer; labels of a visitor's own and pieces are never translated."""
    named = {choice["index"]: choice["name"] for choice in scene["choices"]}
    own = scene["head"] in ("replaced_token", *PAIR_HEADS)
    name = None if index is None else named.get(index)
    return VERDICTS.get(name, name) if own and name is not None else name


def asked(scene: Mapping[str, Any]) -> str:
    """The question in a few words."""
    answer, against = (name_of(scene, scene[part]) for part in ("answer", "against"))
    if answer is None:
        kind = KINDS[scene["kind"]]
        return Wording("{0}, token {1}", kind, scene["position"]) if scene["places"] else kind
    if against is None:
        return Wording("“{0}”", answer)
    return Wording("“{0}” rather than “{1}”", answer, against)


def headline(scene: Mapping[str, Any], value: float) -> str:
    """What is explained, in a sentence."""
    answer, against = (name_of(scene, scene[name]) for name in ("answer", "against"))
    if answer is not None and against is not None:
        more = math.exp(min(abs(value), 700))
        times = f"{more:.0f}" if more >= 99.5 else f"{more:.2g}"
        if value >= 0:
            return Wording(
                "Why “{0}” rather than “{1}”? It is {2} times as likely (difference of logits "
                "{3}).",
                *(answer, against, times, number(value)),
            )
        return Wording(
            "Why “{0}” rather than “{1}”? It is not: the other one is {2} times as likely "
            "(difference of logits {3}).",
            *(answer, against, times, number(value)),
        )
    if answer is not None:
        (chance,) = (c["probability"] for c in scene["choices"] if c["index"] == scene["answer"])
        return Wording("Why “{0}”? The model gives it {1}.", answer, percent(chance))
    if scene["kind"] == "score":
        return Wording("Why this score? The model says {0}.", number(value, signed=False))
    word = scene["tokens"][scene["position"]]["text"]
    chances = {"probability": value, "log_probability": math.exp(min(value, 0))}
    chance = chances.get(scene["scale"])
    shown = number(value) if chance is None else percent(chance)
    if scene["kind"] == "start":
        return Wording("Why does the answer start at “{0}”? ({1})", word, shown)
    return Wording("Why does the answer end at “{0}”? ({1})", word, shown)


def strongest(scene: Mapping[str, Any], values: Sequence[float]) -> str:
    """The strongest words on either side."""
    words = [
        (values[token["position"]], token["text"])
        for token in scene["tokens"]
        if not token["special"] and not token["hidden"]
    ]
    if not words:
        return ""
    (most, best), (least, worst) = max(words), min(words)
    if most > 0 > least:
        return Wording(
            "Most for it: “{0}” ({1}). Most against it: “{2}” ({3}).",
            *(best, number(most), worst, number(least)),
        )
    if most > 0:
        return Wording("Most for it: “{0}” ({1}). No word speaks against it.", best, number(most))
    if least < 0:
        return Wording("Most against it: “{0}” ({1}). No word speaks for it.", worst, number(least))
    return ""


def total(answer: Mapping[str, Any]) -> str:
    """Whether the shares of integrated gradients add up to what they must."""
    value, start, share = answer["value"], answer["start"], answer["error_share"]
    if share is None:
        return Wording(
            "The baseline gives the same answer as the sentence ({0}), so there is nothing to "
            "share out.",
            number(value),
        )
    missed = "< 0.01\u00a0%" if share < 0.00005 else f"{100 * share:.2f}\u00a0%"
    said = Wording(
        "The shares add up to {0}. From the baseline ({1}) to the sentence ({2}) the answer "
        "changes by {3}: the sum misses it by {4}.",
        *(number(answer["sum"]), number(start), number(value), number(value - start), missed),
    )
    if share <= MISSED:
        return Wording("✓ {0}", said)
    if answer["steps"] < STEPS[1]:
        return Wording("✗ {0} {1}", said, Wording("Take more steps."))
    more = Wording("No more steps can be taken; another baseline may be nearer to the sentence.")
    return Wording("✗ {0} {1}", said, more)


def agreement_table(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Rank correlation of each two methods."""
    caption = Wording(
        "Spearman\u2019s rank correlation of the strengths that two methods give to the {0} "
        "pieces: 1 = the same order, 0 = no relation",
        answer["pieces_read"],
    )
    if answer["pieces_read"] < FEWEST:
        caption = Wording("With fewer than three words there is nothing to compare.")
    return table(
        caption,
        ["", *TITLES.values()],
        [
            [TITLES[name], *map(cell, row)]
            for name, row in zip(METHODS, answer["agreement"], strict=True)
        ],
    )


def check_table(found: Mapping[str, Any]) -> dict[str, Any]:
    """How alike the explanations stay while the model forgets, from the top."""
    return table(
        Wording(
            "How alike the explanation stays when the top of the model is drawn anew (rank "
            "correlation with the trained model, draw {0})",
            found["seed"],
        ),
        [Wording("Drawn anew"), *TITLES.values()],
        [
            [forgotten(stage["blocks"]), *(cell(stage["alike"][name]) for name in METHODS)]
            for stage in found["stages"]
        ],
    )


def forgotten(blocks: int) -> str:
    """What was drawn anew."""
    if blocks == 0:
        return Wording("the head alone")
    if blocks == 1:
        return Wording("the head and the last block")
    return Wording("the head and the last {0} blocks", blocks)


def verdict(found: Mapping[str, Any]) -> str:
    """Which methods stay alike although everything was forgotten."""
    last = {
        name: value for name, value in found["stages"][-1]["alike"].items() if value is not None
    }
    if not last:
        return Wording("There are too few words to compare.")
    same = [TITLES[name] for name in METHODS if last.get(name, 0) >= ALIKE]
    if not same:
        return Wording(
            "With every layer drawn anew no explanation stays: they depend on what the model has "
            "learnt. With few words a chance likeness is common; draw again."
        )
    listed = same[0]
    for name in same[1:]:
        listed = Wording("{0}, {1}", listed, name)
    return Wording(
        "Even with every layer drawn anew this stays alike: {0}. Here it may speak of the "
        "words\u2019 vectors rather than of what the layers learnt. With few words chance can "
        "do that, too; draw again.",
        listed,
    )


def cell(value: float | None) -> Any:
    """A rank correlation in a table."""
    return None if value is None else [value, f"{value:.2f}".replace("-", "\u2212")]


def number(value: float, *, signed: bool = True) -> str:
    """A number as people read it, with its sign where it has one."""
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 3
    shown = f"{size:.0e}".replace("e-0", "e-") if 0 < size < 0.0005 else f"{size:.{digits}f}"
    if float(shown) == 0:
        return shown
    return f"\u2212{shown}" if value < 0 else f"+{shown}" if signed else shown


def percent(probability: float) -> str:
    """A probability, as everywhere on the page."""
    value = 100 * probability
    if value >= 99.95:
        return "100\u00a0%" if value >= 99.9995 else f"{min(value, 99.99):.2f}\u00a0%"
    digits = 1 if value >= 1 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f}\u00a0%" if value >= 0.001 else "< 0.001\u00a0%"
