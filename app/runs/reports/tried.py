"""The box to try a fine-tuned model in, and what such a model says to a text.

Values of components by their names, as in :mod:`app.runs.reports.shown`. No Gradio in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.parts.figure import drawn
from app.runs.reports.told import line, named
from viz import results
from viz.svg import Wording

Parts = dict[str, dict[str, Any]]
MOST_SHARES = 12
MOST_PIECES = 200
HIDDEN = {"visible": False}
EXAMPLES = {
    "classify": ("The evening was a delight from the first song to the last.",),
    "multilabel": ("The evening was a delight from the first song to the last.",),
    "pair": ("A man is playing a guitar on the street.", "Somebody makes music."),
    "regress": ("The children play in the garden.", "Kids are playing outside."),
    "tag": ("Maria Silva flew from Lisbon to the office of the United Nations in Geneva.",),
    "answer": (
        "The river freezes in December and is open again in April. Boats carry wood to the coast "
        "in summer.",
        "When is the river open again?",
    ),
}
CHINESE = {
    "classify": ("这家店的服务很好，我很喜欢。",),  # noqa: RUF001
    "tag": ("张伟从北京飞到上海。",),
}


def try_parts(live: Mapping[str, Any]) -> Parts:
    """The box to try a fine-tuned model in, with an example; the same as long as the run is."""
    task = live["task"]
    if not task or not live["model"]:
        return {"try": HIDDEN}
    kind, paired = task["kind"], task.get("paired")
    text, pair = [*(CHINESE if task.get("chinese") else EXAMPLES).get(kind, ()), "", ""][:2]
    two = kind in ("pair", "regress", "answer") if paired is None else paired
    asks = kind == "answer"
    return {
        "try": {"visible": True},
        "text": {
            "value": text,
            "label": named(
                Wording("A text that holds the answer") if asks else Wording("A sentence")
            ),
        },
        "pair": {
            "value": pair,
            "visible": bool(two),
            "label": named(
                Wording("A question about it") if asks else Wording("A second sentence")
            ),
        },
        **_nothing(),
    }


def _nothing() -> Parts:
    return {
        "found": line(None),
        "shares": HIDDEN,
        "marked": HIDDEN,
        "where": {"value": None},
        "refused": line(None),
    }


def tried(found: Mapping[str, Any]) -> Parts:
    """What a fine-tuned model said to a text (:func:`app.runs.forms.tasks.try_out`)."""
    parts = _nothing()
    kind = found["kind"]
    if kind == "regress":
        low, high = found["scale"]
        score = f"{found['score']:.2f}"
        parts["found"] = line(
            Wording("{0} on a scale from {1} to {2}", score, f"{low:g}", f"{high:g}")
        )
    elif kind == "tag":
        marks = (
            [(each["start"], each["end"], each["type"]) for each in found["entities"]]
            if found["entities_known"]
            else [
                (start, end, tag)
                for (start, end), tag in zip(found["words"], found["tags"], strict=True)
            ]
        )
        if marks:
            parts["marked"] = {"visible": True, "value": _marked(found["text"], marks)}
        else:
            parts["found"] = line(Wording("It finds no name here."))
    elif kind == "answer":
        parts |= _answers(found)
    else:
        parts["shares"] = {"visible": True, "value": _shares(found["probabilities"])}
        if (count := len(found["probabilities"])) > MOST_SHARES:
            parts["found"] = line(Wording("The {0} likeliest of {1} labels.", MOST_SHARES, count))
    if kind == "multilabel":  # each share is one label's own: the first need not hold, others may
        held = ", ".join(found["labels"])
        parts["shares"]["value"]["label"] = held or "\N{EN DASH}"
        if not held:
            parts["found"] = line(Wording("It finds that none of its labels holds."))
    return parts


def _answers(found: Mapping[str, Any]) -> Parts:
    listed = found["answers"]
    parts: Parts = {}
    if found["answer"] and listed:
        best = [(listed[0]["start"], listed[0]["end"], Wording("answer"))]
        parts["marked"] = {"visible": True, "value": _marked(found["text"], best)}
    else:
        none = f"{100 * found['none']:.1f} %"
        said = Wording("It says that the text does not answer this ({0}).", none)
        parts["found"] = line(said)
    if listed:
        chances: dict[str, float] = {}
        for each in listed:  # best first: of words that stand there twice, the likelier place
            chances.setdefault(each["text"], each["probability"])
        parts["shares"] = {"visible": True, "value": _shares(chances)}
    if curve := found["curve"]:
        places = curve["places"][:MOST_PIECES]
        pieces = [found["text"][start:end] or "·" for start, end in places]
        many_ = len(pieces)
        shown = results.answers(pieces, curve["starts"][:many_], curve["ends"][:many_])
        parts["where"] = {"value": drawn(shown)}
    return parts


def _shares(chances: Mapping[str, float]) -> dict[str, Any]:
    """The value of Gradio's ``Label``."""
    ranked = sorted(chances.items(), key=lambda each: -each[1])[:MOST_SHARES]
    confidences = [{"label": label, "confidence": share} for label, share in ranked]
    return {"label": ranked[0][0], "confidences": confidences}


def _marked(text: str, marks: Sequence[tuple[int, int, str]]) -> list[dict[str, Any]]:
    """The value of Gradio's ``HighlightedText``: a text with some stretches of it named."""
    found: list[dict[str, Any]] = []
    at = 0
    for start, end, label in sorted(marks):
        if start < at:
            continue
        found += [
            {"token": text[at:start], "class_or_confidence": None},
            {"token": text[start:end], "class_or_confidence": named(label)},
        ]
        at = end
    rest = [*found, {"token": text[at:], "class_or_confidence": None}]
    return [each for each in rest if each["token"]]
