"""How the forms say numbers, and what a pretraining learns. No Gradio in it."""

from collections.abc import Iterable, Mapping
from typing import Any

from core_models.training.data_schema import FORMATS, MASKINGS
from viz.svg import Wording

OBJECTIVES = {
    "masked_token": Wording("masked tokens"),
    "masked_diffusion": Wording("masked diffusion"),
    "masked_next_token": Wording("masked next token"),
    "next_sentence": Wording("next sentence"),
    "sentence_order": Wording("sentence order"),
    "span_boundary": Wording("span boundary"),
    "permutation": Wording("permutation"),
    "replaced_token": Wording("replaced tokens"),
    "causal": Wording("next token"),
    "distillation": Wording("distillation"),
}
ours = Wording
"""Of a text that stands in a table elsewhere; the catalogue has it from there."""
_GUESSED = ("masked_token", "masked_next_token", "span_boundary", "distillation")
_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def sentences(parts: Iterable[str]) -> str:
    """Texts one after the other; Chinese has no blanks between them."""
    return joined("{0} {1}", [part for part in parts if part])


def listed(parts: Iterable[str]) -> str:
    """Texts with the comma of the language between them."""
    return joined("{0}, {1}", list(parts))


def joined(key: str, parts: list[str]) -> str:
    """Texts one after the other, two by two as the key says."""
    if len(parts) < 2:
        return parts[0] if parts else ""
    return Wording(key, parts[0], joined(key, parts[1:]))


def many(number: float) -> str:
    """A large number as people say it: "4.9 million"."""
    if number < 1e6:
        return f"{round(number):,}"
    if number < 1e9:
        return Wording("{0} million", f"{number / 1e6:.1f}".removesuffix(".0"))
    return Wording("{0} billion", f"{number / 1e9:,.1f}".removesuffix(".0"))


def layers(number: int) -> str:
    """How deep a model is."""
    return Wording("1 layer") if number == 1 else Wording("{0} layers", number)


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return Wording("{0} s", max(1, round(seconds)))
    if seconds < 5400:
        return Wording("{0} min", round(seconds / 60))
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 48:
        return Wording("{0} h {1} min", hours, minutes)
    return Wording("{0} days", round(seconds / 86_400))


def size(count: float) -> str:
    """Bytes as people say them."""
    return f"{max(1, round(count / 1024))} KB" if count < 1e6 else f"{count / 2**20:.1f} MB"


def operations(count: float) -> str:
    """Operations as people write them: "2.3e12" with a power of ten."""
    digits, power = f"{count:.1e}".split("e")
    return f"{digits} \N{MULTIPLICATION SIGN} 10{str(int(power)).translate(_DIGITS)}"


def taught(found: Mapping[str, Any]) -> list[str]:
    """What a pretraining learns, and from what: each objective hides something else, or nothing."""
    goals = [
        Wording("{0} (\N{MULTIPLICATION SIGN} {1})", OBJECTIVES.get(name, name), f"{weight:g}")
        if weight != 1
        else OBJECTIVES.get(name, name)
        for name, weight in found["objectives"].items()
    ]
    examples = found["format"]
    examples = ours(FORMATS[examples]) if examples in FORMATS else examples
    return [Wording("Learns: {0}. Examples: {1}.", listed(goals), examples), *hidden(found)]


def hidden(found: Mapping[str, Any]) -> list[str]:
    """What is hidden, and from what it has to be guessed."""
    masking, objectives = found["masking"], found["objectives"]
    rate, longest = f"{100 * masking['rate']:.0f}\N{NO-BREAK SPACE}%", masking["longest"]
    split = "/".join(f"{100 * share:.0f}" for share in masking["split"])
    kind = MASKINGS.get(masking["kind"])
    how = masking["kind"] if kind is None else ours(kind)
    most = Wording("At most {0} words at a time.", longest) if (longest or 0) > 1 else ""
    anew = masking["dynamic"]
    if "causal" in objectives:
        return [Wording("Nothing is hidden: every piece is guessed from those to its left.")]
    if "permutation" in objectives:
        return [
            Wording(
                "Nothing is replaced: {0} of the pieces are guessed in an order that is drawn, "
                "each from those before it in that order.",
                rate,
            ),
            Wording("The order is drawn anew each time.")
            if anew
            else Wording("The order is drawn once for each example."),
            most,
        ]
    if "replaced_token" in objectives:
        return [
            Wording(
                "A generator fills {0} of the text, {1}; the model says of every piece whether it "
                "stood there before.",
                rate,
                how,
            ),
            Wording("What is filled is drawn anew each time.")
            if anew
            else Wording("What is filled is drawn once for each example."),
            most,
        ]
    if "masked_diffusion" in objectives:
        return [
            Wording(
                "Of each example another share is hidden, from nothing to all of it; the fewer are "
                "hidden, the more each counts."
            )
        ]
    if not any(name in objectives for name in _GUESSED):
        return [Wording("Nothing is hidden.")]
    teacher = Wording("What has to be said there is what the teacher says.")
    told = teacher if "distillation" in objectives else ""
    if masking.get("leftward"):
        told = Wording(
            "Each is told from the place before it; {0} of the examples hide nothing and are read "
            "from left to right.",
            f"{100 * masking['leftward']:.3g}\N{NO-BREAK SPACE}%",
        )
    if masking["kind"] == "similar_word":
        similar = (
            Wording(
                "{0} of the text gives way to similar words, drawn anew each time ({1} "
                "similar/random/kept).",
                rate,
                split,
            )
            if anew
            else Wording(
                "{0} of the text gives way to similar words, drawn once ({1} similar/random/kept).",
                rate,
                split,
            )
        )
        return [similar, most, told]
    hides = (
        Wording("Hides {0}, drawn anew each time: {1} ({2} hidden/random/kept).", rate, how, split)
        if anew
        else Wording("Hides {0}, drawn once: {1} ({2} hidden/random/kept).", rate, how, split)
    )
    return [hides, most, told]
