"""What the Terms lab says beside its pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.labs.terms import answers as terms
from app.labs.terms.scene import Looked
from app.parts.plain import sentences
from viz.svg import Wording
from viz.words import percent

WARNING = Wording(
    "Without a decoder the head reads the last layer, which it was never trained on: a worse "
    "answer is no proof that positions were missing. Fairer is the decoder without positions."
)
NONE = Wording(
    "No model with terms of its own is installed. Train a DeBERTa in the Train tab, or run {0}",
    "python -m zoo build deberta-mini",
)


def signed(number: float | str) -> str:
    """A number with the sign that stands for less than nothing, as everywhere on the page."""
    return str(number).replace("-", "\N{MINUS SIGN}")


def _one_product(name: str, turned: bool) -> Wording:
    """Why a single map tells no content from position."""
    if turned:
        return Wording(
            "{0} has one product q·k, of queries and keys turned by their positions: what a "
            "distance is worth depends on both contents, so it is shown for two pieces at a time.",
            name,
        )
    return Wording(
        "{0} has one product q·k, and its absolute positions are in the input, added to the pieces "
        "before the first layer, so no map can tell what comes from content and what from "
        "position.",
        name,
    )


def notes(looked: Looked) -> str:
    """What to know of who is taken apart, and of a long text."""
    found, said = looked.found, list[str]()
    if len(found["names"]) == 1:
        said.append(_one_product(looked.reader, found["turned"]))
        if not looked.offered and not found["turned"]:
            said.append(NONE)
    if looked.reader != looked.bar:
        if looked.reader == looked.usual:
            said.append(_one_product(looked.bar, turned=False))
        text = "{0} is taken apart in place of {1}, with its own pieces."
        said.append(Wording(text, looked.reader, looked.bar))
    if looked.drawn:
        said.append(Wording("Words that are replaced or kept above are hidden here, too."))
    shown, read = len(found["columns"]), len(found["tokens"])
    if found["truncated"]:
        text = "The text is long: {0} reads {1} of its {2} pieces."
        said.append(Wording(text, looked.reader, read, f"{found['whole']:,}"))
    if shown < read:
        text = "The maps show pieces {0} to {1} of {2}."
        said.append(Wording(text, found["first"], found["columns"][-1], read))
    return sentences(*said)


def prediction(looked: Looked) -> str:
    """What a switch changes."""
    found = looked.found
    changed = bool(found["off"])
    several = len(found["names"]) > 1
    if rows := found["prediction"] and found["prediction"]["rows"]:
        if not changed:
            return "All terms are on. Switch one off above." if several else ""
        first, now = (max(rows, key=lambda row: row["chances"][n]) for n in (0, 1))
        if first["id"] == now["id"]:
            text = "The best word stays “{0}”: {1} before, {2} after."
            return Wording(text, first["display"], *map(percent, first["chances"]))
        text = "The best word was “{0}” ({1}), now it is “{2}” ({3})."
        values = (first["display"], percent(first["chances"][0]))
        return Wording(text, *values, now["display"], percent(now["chances"][1]))
    if found["verdicts"]:
        if looked.marked:
            return (
                "This model judges tokens and predicts none: it reads the sentence without gaps. "
                "Below: the probability that each token was replaced."
            )
        return (
            "This model judges tokens and predicts none. Below: the probability that each one was "
            "replaced."
        )
    if found["can_predict"]:
        return (
            "Hide a word above to see what the model would put there, with and without a term."
            if several
            else "Hide a word above to see what the model would put there."
        )
    if several:
        return "This model has no head that predicts or judges words; the maps change all the same."
    return "This model has no head that predicts or judges words."


def decoder(found: Mapping[str, Any]) -> str:
    """What the mask decoder does, if there is one; nothing of a model that predicts no words."""
    if not found["can_predict"]:
        return ""
    if found["decoder"]:
        text = (
            "The decoder runs the last layer {0} more times, from queries that start as position "
            "plus the input of that layer."
        )
        return sentences(Wording(text, found["decoder"]["steps"]), WARNING)
    if "mask_decoder" in found["streams"]:
        return "Hide a word above to compare predictions with the decoder and without."
    return (
        "This model has no mask decoder: masked words are predicted from the last layer. DeBERTa "
        "v1, v2 and the generators of v3 have one, as absolute positions enter there only."
    )


def distances(looked: Looked) -> str:
    """Where rows of the table begin to be shared."""
    found, reach = looked.found, looked.setting.reach
    curves = found["curves"]
    if not curves:
        if "position" in found["names"]:
            return (
                "XLNet has no table and no buckets: every distance is a sinusoid of its own, so "
                "only pairs that occur are drawn."
            )
        return (
            "One product q·k: a mean over distances shows habits of the head, no term of its own."
        )
    wide = max((abs(distance) for distance, *_ in found["distances"]), default=0)
    ticks = Wording("The {0} ticks on the axis are edges of buckets.", len(curves["edges"]))
    none = Wording("Within this range there are no shared rows, so no edges of buckets.")
    return sentences(
        Wording(
            "Each distance from {0} to {1} has a row of its own; beyond, several share one.",
            *map(signed, curves["exact"]),
        ),
        ticks if curves["edges"] else none,
        None if wide >= reach else Wording("The dots end with the sentence; the lines go on."),
    )


def about(found: Mapping[str, Any]) -> str:
    """Colours, cells without a number, and the check of the sum."""
    top = f"{found['top']:.2f}"
    scores = terms.decoded(found["scores"], len(found["columns"]))
    unseen = Wording(
        "Grey cells of the score: the row may not see that piece, as it is hidden from it."
    )
    exact = Wording(
        "Checked: in every cell the terms add up to the score in the trace, without any difference."
    )
    near = Wording(
        "Largest difference between the sum of the terms and the score in the trace: {0}.",
        signed(f"{found['residue']:.1e}"),
    )
    return sentences(
        Wording(
            "One scale for the terms and their sum: orange \N{MINUS SIGN}{0}, paper 0, teal {1}. "
            "The softmax is drawn by its square root.",
            top,
            top,
        ),
        unseen if (scores != scores).any() else None,
        near if found["residue"] else exact,
    )


def row(rows: Sequence[int], reach: int, wanted: int) -> str:
    """Which row a distance reads, and which distances read it, too."""
    distance = max(-reach, min(reach, wanted))
    mine = rows[distance + reach]
    same = [n for n, each in enumerate(rows, -reach) if each == mine]
    if len(same) == 1:
        text = "Distance {0} reads row {1}, and no other distance does."
        return Wording(text, signed(distance), mine)
    text = "Distance {0} reads row {1}, as every distance from {2} to {3} does."
    return Wording(text, signed(distance), mine, signed(same[0]), signed(same[-1]))
