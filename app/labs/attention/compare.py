"""Two models side by side in the Attention tab. No Gradio in it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import viz
from app.labs.attention import code
from app.labs.attention.answers import Figure, labels_of, read_heads
from app.labs.attention.scene import Lab, describe, second_of
from app.serving.ask import Ask, Mark, clean_name
from app.serving.session import AttentionResult
from core_models import InputError, attention_flow
from viz.attention_grid import Grid
from viz.svg import Wording


async def compared(lab: Lab, ask: Ask, data: Mapping[str, Any]) -> Figure:
    """Two models on the same text: ``other``, ``what`` (mean, head or rollout), ``places``."""
    what = data.get("what", "mean")
    if what not in ("mean", "head", "rollout"):
        raise InputError(f"what is {str(what)[:40]!r}; it must be mean, head or rollout.")
    choices = [
        {"name": name, "title": title} for title, name in lab.session.choices() if name != ask.model
    ]
    if not choices:
        return Figure(title="", values={"alone": True, "choices": []})
    other = clean_name(data.get("other") or choices[0]["name"])
    result = await lab.attention(ask)
    theirs = await carry(lab, ask, result, other)
    found = await lab.attention(theirs)
    places = data.get("places") or [None, None]
    if not isinstance(places, Sequence) or isinstance(places, str) or len(places) != 2:
        raise InputError("places must be a place for each of the two models.")
    sides = [
        await asyncio.to_thread(_side, each, seen, what, place)
        for each, seen, place in ((ask, result, places[0]), (theirs, found, places[1]))
    ]
    return Figure(
        title=Wording("{0} and {1}", ask.model, other),
        grids=[grid for _, grid in sides],
        code="\n".join(
            code.one_head(each, None, None)
            if what == "mean"
            else code.one_head(each, *side["place"])
            if what == "head"
            else code.rolled_whole(each)
            for each, (side, _) in zip((ask, theirs), sides, strict=True)
        ),
        values={"choices": choices, "other": other, "sides": [side for side, _ in sides]},
    )


async def carry(lab: Lab, ask: Ask, result: AttentionResult, other: str) -> Ask:
    """The question for another model: hidden words are found again by their characters."""
    sentence = await lab.session.tokenize(ask.text, other)
    spans = [
        (result.tokens[mark.position].start, result.tokens[mark.position].end)
        for mark in ask.marks
        if mark.case == "mask" and mark.position < len(result.tokens)
    ]
    marks = tuple(
        Mark(position=token.position)
        for token in sentence.tokens
        if not token.special
        and any(token.start < end and start < token.end for start, end in spans)
    )
    values = {"text": ask.text, "model": other, "marks": marks}
    second = second_of(ask)
    return type(ask)(**values, **({"second": second} if second else {}))


def _side(ask: Ask, result: AttentionResult, what: str, place: Any) -> tuple[dict[str, Any], Grid]:
    tokens = describe(result.tokens, result.seen, ask)
    layers, heads = result.probabilities.shape[:2]
    chosen: tuple[int, int] = viz.clearest_head(
        result.probabilities, [token["special"] for token in tokens]
    )
    if place is not None:
        ((layer, head),) = read_heads([place], "places")
        # Another model may have had more layers or heads.
        chosen = min(layer, layers - 1), min(head, heads - 1)
    if what == "mean":
        weights = viz.head_weights(result.probabilities, None, None)
    elif what == "head":
        weights = viz.head_weights(result.probabilities, *chosen)
    else:
        weights = attention_flow.rollout(result.probabilities)[-1]
    words = labels_of(tokens)
    name = {
        "mean": Wording("mean over all heads"),
        "head": Wording("layer {0}, head {1}", chosen[0] + 1, chosen[1] + 1),
        "rollout": Wording("rollout"),
    }[what]
    side = {
        "model": ask.model,
        "tokens": tokens,
        "layers": layers,
        "heads": heads,
        "place": chosen,
    }
    title = Wording("{0}, {1}", ask.model, name)
    grid = Grid(title=title, values=weights, rows=words, columns=words, top=1.0, share=True)
    return side, grid
