"""Two models side by side in the Attention lab. No Gradio in it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import viz
from app.labs.attention import code
from app.labs.attention.asked import (
    Asked,
    Head,
    Shown,
    one_of,
    place_name,
    read_heads,
    read_place,
    written,
)
from app.labs.attention.scene import Lab, describe, second_of
from app.serving.ask import Ask, Mark, clean_name
from app.serving.session import AttentionResult
from core_models import InputError
from core_models.prediction import attention_flow
from viz.maps import Map, draw
from viz.svg import Wording

WAYS = ("mean", "head", "rollout")


async def compared(asked: Asked) -> Shown:
    """Two models on the same text: ``other``, ``what`` (mean, head or rollout), ``place``."""
    what = one_of(asked.values, "what", WAYS)
    choices = await asyncio.to_thread(asked.lab.session.choices)  # reads the folder of each run
    names = [name for _, name in choices if name != asked.ask.model]
    if not names:
        raise InputError(
            "There is only one model here to choose. Train a model in the Train tab, or put "
            "another one into the models folder; it appears here by itself."
        )
    other = clean_name(asked.values["other"] or names[0])
    other = names[0] if other == asked.ask.model else other
    offered = {"other": {"choices": [(name, name) for name in names], "value": other}}
    try:
        theirs = await carry(asked.lab, asked.ask, asked.result, other)
        found = await asked.lab.attention(theirs)
    except InputError as error:  # a link may name a model that is gone: another can be chosen
        return {"said": str(error), **offered}
    first = read_place(asked)
    layers, heads = found.probabilities.shape[:2]
    second: Head = next(
        iter(read_heads(asked.values, "place", (layers, heads))),
        viz.clearest_head(found.probabilities, [token.special for token in found.tokens]),
    )
    if what == "head" and None in first:
        first = viz.clearest_head(asked.result.probabilities, asked.special)
    sides: Sequence[tuple[Ask, AttentionResult, Any]] = (
        (asked.ask, asked.result, first),
        (theirs, found, second),
    )
    maps = [await asyncio.to_thread(_side, *side, what) for side in sides]
    lines = {
        "mean": lambda load, ask, _: code.one_head(load, ask, None, None),
        "head": lambda load, ask, place: code.one_head(load, ask, *place),
        "rollout": lambda load, ask, _: code.rolled_whole(load, ask),
    }[what]
    every = [(layer, head) for layer in range(layers) for head in range(heads)]
    return {
        "at": first,
        "said": say_pieces(asked.ask.model, maps[0].columns, other, maps[1].columns),
        "note": Wording("Square-root scale from 0 to 100 %, the same for both."),
        "first": draw(maps[0]),
        "second_map": draw(maps[1]),
        "code": "\n".join(
            lines(asked.lab.session.loadable(ask.model), ask, place) for ask, _, place in sides
        ),
        **offered,
        "place": {
            "choices": [(f"{layer + 1} · {head + 1}", f"{layer}.{head}") for layer, head in every],
            "value": written([second])[0],
            "visible": what == "head",
        },
    }


def say_pieces(one: str, pieces: Sequence[str], other: str, others: Sequence[str]) -> Wording:
    """Whether two models cut the sentence into the same pieces."""
    if " ".join(pieces) == " ".join(others):
        return Wording("Both models cut the sentence into the same pieces.")
    return Wording(
        "{0} reads {1} pieces, {2} reads {3}: the rows and columns are not the same.",
        one,
        len(pieces),
        other,
        len(others),
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


def _side(ask: Ask, result: AttentionResult, place: Any, what: str) -> Map:
    """The map of one model."""
    if what == "mean":
        name, weights = Wording("mean over all heads"), result.probabilities.mean(axis=(0, 1))
    elif what == "head":
        name, weights = place_name(*place), viz.head_weights(result.probabilities, *place)
    else:
        name, weights = Wording("rollout"), attention_flow.rollout(result.probabilities)[-1]
    words = [token["label"] for token in describe(result.tokens, result.seen, ask)]
    title = Wording("{0}, {1}", ask.model, name)
    return Map(title=title, values=weights, rows=words, columns=words, top=1.0, share=True)
