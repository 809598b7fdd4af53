"""What the modes of the Attention lab show, apart from predictions and scores. No Gradio in it.

Every mode takes what is ``Asked`` and gives values by the name of the part that shows them; of a
control these are its properties. A part that is not named has nothing to show.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import core_models as cm
import viz
from app.labs.attention import code
from app.labs.attention.asked import (
    Asked,
    Shown,
    joined,
    one_of,
    place_name,
    read_heads,
    read_place,
    read_token,
    tokens_to_choose,
    whole,
    written,
)
from app.labs.attention.scene import Look, filtered, read, read_filter
from app.serving.ask import Ask
from app.serving.session import AttentionResult
from core_models.prediction import attention_flow
from viz.attention_parts import ways
from viz.maps import GIVES, MADE_OF, Map, draw
from viz.svg import Wording, told

# --- one head, and several ------------------------------------------------------------------------


async def one_head(asked: Asked) -> Shown:
    """One head, or a mean: ``layer``, ``head``, ``part``, ``hide``, ``own``."""
    layer, head = read_place(asked)
    weights = viz.head_weights(asked.result.probabilities, layer, head)
    found = await asyncio.to_thread(_links, asked, weights, place_name(layer, head))
    return {**found, "at": (layer, head), "code": code.one_head(asked.load, asked.ask, layer, head)}


async def combined(asked: Asked) -> Shown:
    """Any set of heads as one map: ``picks``, ``how`` (mean, max), ``part``, ``hide``, ``own``."""
    how = one_of(asked.values, "how", ("mean", "max"))
    picks = {**asked.values, "picks": asked.values["picks"] or "last"}
    heads = read_heads(picks, "picks", asked.shape)
    if not heads and picks["picks"] != "none":  # a model or a link has others
        heads = read_heads({"picks": "last"}, "picks", asked.shape)
    cells = {"cells": written(heads), "own": written(heads), "kind": "picked"}
    if not heads:
        return {"chosen": cells, "said": Wording("Pick a head to begin.")}
    weights = attention_flow.combine(asked.result.probabilities, heads, how)
    title = Wording("Mean of {0} heads", len(heads))
    if len(heads) == 1:
        title = place_name(*heads[0])
    elif how == "max":
        title = Wording("Maximum of {0} heads", len(heads))
    found = await asyncio.to_thread(_links, asked, weights, title)
    return {**found, "chosen": cells, "code": code.combined(asked.load, asked.ask, heads, how)}


def _links(asked: Asked, weights: viz.encoding.Weights, title: Wording) -> Shown:
    """The lines and the map of some weights [L, L]."""
    part = read_filter(asked.values)
    of = None if part == "all" else weights
    weights = filtered(weights.astype(np.float32), asked.tokens, part)
    hide = asked.values["hide"] is True
    said = joined(viz.sentences(weights, asked.labels, asked.special, hide=hide, of=of))
    keep = asked.shown
    if not keep:
        return {"said": said}
    shown = weights[np.ix_(keep, keep)]
    names = ("label", "original", "position", "word", "special", "masked")
    tokens = [{name: asked.tokens[position][name] for name in names} for position in keep]
    words = [asked.labels[position] for position in keep]
    found = Map(
        title=title,
        values=shown,
        rows=words,
        columns=words,
        share=True,
        top=max(float(shown.max()), 1e-6) if asked.values["own"] is True else 1.0,
    )
    return {
        "said": Wording("{0}: {1}", title, said),
        "lines": {"tokens": tokens, "title": told(title), **viz.head_numbers(shown)},
        "first": draw(found, note=Wording("Rows look at columns; numbers are percent.")),
    }


# --- rollout and flow -----------------------------------------------------------------------------


async def rolled(asked: Asked) -> Shown:
    """What one token is made of: ``token``, ``upto`` (layers; -1 = all)."""
    return await asyncio.to_thread(_rolled, asked)


def whole_of(result: AttentionResult) -> int:
    """The position of [CLS], whatever the family calls it, if nobody typed it; 0 without one."""
    names = {"[CLS]", "<s>", "<cls>"}
    added = (token for token in result.tokens if token.start == token.end)
    return next((token.position for token in added if token.piece in names), 0)


def _rolled(asked: Asked) -> Shown:
    layers, usual = asked.shape[0], whole_of(asked.result)
    position, upto = read_token(asked, "token", usual), whole(asked.values, "upto")
    upto = upto if 1 <= upto <= layers else layers
    maps, labels = asked.result.probabilities[:upto], asked.labels
    after = attention_flow.rollout(maps)[:, position]  # [layers, L]
    names = [Wording("attention of layer {0}", upto), Wording("rollout")]
    shares = [maps[-1].mean(axis=0)[position], after[-1]]
    flows = len(labels) <= attention_flow.MOST_FLOW_TOKENS
    if flows:
        names.append(Wording("flow"))
        shares.append(attention_flow.flow(maps, position))
    word, best = viz.quote(labels[position]), [viz.quote(labels[row.argmax()]) for row in shares]
    return {
        "said": Wording(
            "{0}: the attention of layer {1} points most at {2}, the rollout at {3}, the flow at "
            "{4}.",
            word,
            upto,
            *best,
        )
        if flows
        else Wording(
            "{0}: the attention of layer {1} points most at {2}, the rollout at {3}.",
            word,
            upto,
            *best,
        ),
        "note": Wording(
            "Attention and rollout add up to 100 %. Each flow is a problem of its own and all are "
            "large: their axis begins near the smallest, {0}.",
            viz.percent(float(shares[-1].min())),
        )
        if flows
        else Wording(
            "Flow is computed for up to {0} tokens; this text has {1}.",
            attention_flow.MOST_FLOW_TOKENS,
            len(labels),
        ),
        "first": ways(
            names,
            np.stack(shares),
            labels,
            title=Wording("Three ways to ask what {0} is made of", word)
            if flows
            else Wording("Two ways to ask what {0} is made of", word),
            flow=flows,
        ),
        "second_map": draw(
            Map(
                title=Wording("Rollout after each layer"),
                values=after,
                rows=[Wording("after layer {0}", number + 1) for number in range(upto)],
                columns=labels,
                says=MADE_OF,
                top=1.0,
                share=True,
                corner=Wording("layer \\ token"),
            )
        ),
        "code": code.rolled(asked.load, asked.ask, position, upto, flows=flows),
        "token": tokens_to_choose(asked, position, usual),
        "upto": {
            "choices": [(str(n), n if n < layers else -1) for n in range(1, layers + 1)],
            "value": upto if upto < layers else -1,
        },
    }


# --- norms ----------------------------------------------------------------------------------------


async def norms(asked: Asked) -> Shown:
    """Weights beside what they really move: ``layer``, ``head`` (the mean = all of the layer)."""
    layer, head = read_place(asked)
    layer = asked.shape[0] - 1 if layer is None else layer
    ask, keep = asked.ask, asked.shown
    found = await asked.lab.ask(
        ask, "norms", (layer, head), lambda model: _norms(model, ask, layer, head)
    )
    name = (
        Wording("Layer {0} · all heads together", layer + 1)
        if head is None
        else place_name(layer, head)
    )
    shown: Shown = {
        "at": (layer, head),
        "code": code.norms(asked.load, ask, layer, head),
    }
    if not keep:
        empty = "Every token of this sentence is a special one; there is nothing left to show."
        return {**shown, "said": empty}
    words, both = [asked.labels[position] for position in keep], np.ix_(keep, keep)
    title = Wording("Norm of what is given")
    return {
        **shown,
        "said": Wording("{0}: {1}", name, say_shares(found, asked.special)),
        "note": Wording(
            "Norms are in units of the hidden state; their colours run to the largest one "
            "(square-root scale). The norm of a layer is that of the sum over its heads, whose "
            "vectors may cancel."
        ),
        "first": draw(
            Map(
                title=Wording("Attention"),
                values=found["weights"][both],
                rows=words,
                columns=words,
                top=1.0,
                share=True,
            )
        ),
        "second_map": draw(
            Map(title=title, values=found["norms"][both], rows=words, columns=words, says=GIVES)
        ),
    }


def say_shares(found: Mapping[str, Any], special: Sequence[bool]) -> Wording:
    """What special tokens get of the attention and give of the norms, and which is more."""
    got, given = (
        float(found[name][:, special].sum() / max(float(found[name].sum()), 1e-9))
        for name in ("weights", "norms")
    )
    shares = viz.percent(got), viz.percent(given)
    if given < got:
        return Wording(
            "The special tokens get {0} of the attention, but give only {1} of all norms.", *shares
        )
    return Wording(
        "The special tokens get {0} of the attention and give {1} of all norms: not less than they "
        "are looked at.",
        *shares,
    )


def _norms(model: cm.Model, ask: Ask, layer: int, head: int | None) -> dict[str, Any]:
    look: Look = read(model, ask)
    trace = cm.Trace(["probabilities", "v"], steps=[layer])
    model.encoder(model.collate([look.encoding]), trace)
    weights = trace["probabilities", layer][0].float().cpu().numpy()
    output = model.encoder.output_weight(layer).detach().float().cpu().numpy()
    moved = attention_flow.moved_values(trace["v", layer][0].float().cpu().numpy(), output)
    if head is None:
        given = attention_flow.layer_norms(weights, moved)
        return {"weights": weights.mean(axis=0), "norms": given}
    given = attention_flow.head_norms(weights[head : head + 1], moved[head : head + 1])[0]
    return {"weights": weights[head], "norms": given}
