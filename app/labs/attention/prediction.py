"""The modes of the Attention tab that watch a prediction or a score. No Gradio in it."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import core_models as cm
from app.labs.attention import code
from app.labs.attention.answers import (
    MOST_KEYS,
    Figure,
    Head,
    labels_of,
    layer_of,
    read_heads,
    read_position,
)
from app.labs.attention.scene import Lab, Look, describe, read
from app.serving.ask import Ask, whole_number
from core_models import InputError, ablation
from core_models.prediction.passes import head_name
from viz.attention_grid import Grid
from viz.svg import Wording

TOP = 5
MASKED_OUT = -1e30
"""Scores below are those of keys that the query may not see."""
STEPS = {
    "sum": Wording("sum"),
    "scaled": Wording("scaled"),
    "bias": Wording("bias"),
    "score": Wording("score"),
    "share": Wording("share"),
}
"""Columns on the way from products to a share; score terms keep their short names."""


# --- heads switched off ---------------------------------------------------------------------------


def hidden_place(look: Look, ask: Ask, wanted: Any) -> int | None:
    """The gap that is watched: the one asked for where it is one, else the first; None = no gap."""
    marked = {mark.position for mark in ask.marks}
    gaps = [t.position for t in look.tokens if t.position in marked or t.masked]
    if wanted in gaps:
        return int(wanted)
    return gaps[0] if gaps else None


def read_shared(data: Mapping[str, Any]) -> bool:
    """Whether a head is switched off in every layer that has its weights; that is the default."""
    return data.get("shared") is not False


async def switched(lab: Lab, ask: Ask, data: Mapping[str, Any]) -> Figure:
    """The prediction of the hidden word without some heads: ``off``, ``position``, ``shared``."""
    off, shared = read_heads(data.get("off", ()), "off"), read_shared(data)
    model = await asyncio.to_thread(lab.session.model, ask.model)
    head_name(model)
    look = await asyncio.to_thread(read, model, ask)
    position = hidden_place(look, ask, data.get("position"))
    tokens = describe(look.tokens, look.seen, ask)
    if position is None:
        return Figure(title="", values={"gap": None, "tokens": tokens})
    found = await lab.ask(
        ask,
        "off",
        (off, position, shared),
        lambda each: _switched(each, look, position, off, shared=shared),
    )
    gaps = [t["position"] for t in tokens if t["masked"]]
    rows = [row["display"] for row in found["rows"]]
    pairs = np.array([[row["before"], row["after"]] for row in found["rows"]])
    return Figure(
        title=Wording("{0}: {1} heads off", ask.model, len(found["hit"])),
        grids=[
            Grid(
                title=Wording("Probability"),
                values=pairs,
                rows=rows,
                columns=[Wording("all heads"), Wording("some off")],
                top=1.0,
                share=True,
                corner="word / heads",
            )
        ],
        code=code.off(ask, off, position, found["target"]["id"], shared=shared),
        values={"gap": position, "gaps": gaps, "tokens": tokens, **found},
    )


def _switched(
    model: cm.Model, look: Look, position: int, off: tuple[Head, ...], *, shared: bool
) -> dict[str, Any]:
    config = model.config
    ablation.check_heads(config, off)
    hit = ablation.spread(config, off) if shared else frozenset(off)
    both = ablation.without_heads(model, look.encoding, position, [(), hit])
    piece = target(look, position, both[0])
    best = [int(n) for row in both for n in row.topk(min(TOP, row.numel())).indices]
    order = list(dict.fromkeys([*best, piece]))
    chances = both.exp()
    tokenizer = model.tokenizer
    return {
        "rows": [
            {
                "id": n,
                "display": tokenizer.display(n),
                "before": float(chances[0, n]),
                "after": float(chances[1, n]),
                "target": n == piece,
            }
            for n in order
        ],
        "target": {
            "id": piece,
            "display": tokenizer.display(piece),
            "own": not look.tokens[position].masked,
            "before": float(both[0, piece]),
            "after": float(both[1, piece]),
            "ranks": [int((row > row[piece]).sum()) + 1 for row in both],
        },
        "hit": [list(head) for head in sorted(hit)],
        "schedule": list(config.schedule),
        "heads": config.attention.heads,
    }


def target(look: Look, position: int, before: torch.Tensor) -> int:
    """The piece whose probability is watched: the text's own, or in a gap the model's first."""
    token = look.tokens[position]
    return int(before.argmax()) if token.masked else token.id


async def damaged(lab: Lab, ask: Ask, data: Mapping[str, Any]) -> Figure:
    """One layer of the sweep: ``layer``, ``position``, ``shared``; the page asks for each in turn.

    So a sweep shows its progress, can be left, and other visitors' questions come in between.
    """
    shared = read_shared(data)
    model = await asyncio.to_thread(lab.session.model, ask.model)
    layers = len(model.config.schedule)
    layer = layer_of(data, layers)
    look = await asyncio.to_thread(read, model, ask)
    position = hidden_place(look, ask, data.get("position"))
    if position is None:
        raise InputError("No word is hidden. Hide one above the tabs first.")
    row = await sweep_row(lab, ask, look, layer, position, shared=shared)
    return Figure(title="", values={"layer": layer, "layers": layers, "row": row.tolist()})


async def sweep_row(
    lab: Lab, ask: Ask, look: Look, layer: int, position: int, *, shared: bool
) -> np.ndarray:
    """The damage [H] of the heads of one layer, each alone; kept."""
    model = await asyncio.to_thread(lab.session.model, ask.model)
    # Steps with the same weights are one question.
    step = ablation.steps_of(model.config, layer)[0] if shared else layer

    def work(each: cm.Model) -> np.ndarray:
        before = ablation.without_heads(each, look.encoding, position, [()])[0]
        piece = target(look, position, before)
        found = ablation.damage(each, look.encoding, position, piece, steps=[step], shared=shared)
        return found[0].cpu().numpy()

    found: np.ndarray = await lab.ask(ask, "damage", (step, position, shared), work)
    return found


async def written(lab: Lab, ask: Ask, data: Mapping[str, Any]) -> Figure:
    """The prediction for its files; with ``sweep``, the damage of every head too."""
    figure = await switched(lab, ask, data)
    gap = figure.values["gap"]
    if gap is None or data.get("sweep") is not True:
        return figure
    model = await asyncio.to_thread(lab.session.model, ask.model)
    look = await asyncio.to_thread(read, model, ask)
    layers, heads = len(model.config.schedule), model.config.attention.heads
    shared = read_shared(data)
    rows = [await sweep_row(lab, ask, look, layer, gap, shared=shared) for layer in range(layers)]
    damage = Grid(
        title=Wording("Damage of each head: log-probability (nats) lost without it"),
        values=0 - np.stack(rows),
        rows=[Wording("layer {0}", n + 1) for n in range(layers)],
        columns=[Wording("head {0}", n + 1) for n in range(heads)],
        signed=True,
        corner="layer / head",
    )
    return replace(figure, grids=[*figure.grids, damage])


# --- one query and its keys -----------------------------------------------------------------------


async def multiplied(lab: Lab, ask: Ask, data: Mapping[str, Any]) -> Figure:
    """One query against every key, dimension by dimension: ``layer``, ``head``, ``query``."""
    model = await asyncio.to_thread(lab.session.model, ask.model)
    layer = layer_of(data, len(model.config.schedule))
    head = whole_number(data.get("head"), "head", 0, model.config.attention.heads - 1)
    look = await asyncio.to_thread(read, model, ask)
    tokens = describe(look.tokens, look.seen, ask)
    query = data.get("query")
    if query is None:
        masked = [token["position"] for token in tokens if token["masked"]]
        plain = [token["position"] for token in tokens if not token["special"]]
        query = next(iter([*masked, *plain]), 0)
    query = read_position(query, len(tokens))
    found = await lab.ask(
        ask,
        "products",
        (layer, head, query),
        lambda each: _products(each, look, layer, head, query),
    )
    labels = labels_of(tokens)
    words = [labels[key] for key in found["keys"]]
    steps = np.array(
        [[np.nan if row[n] is None else row[n] for n in found["names"]] for row in found["rows"]]
    )
    return Figure(
        title=Wording(
            "{0}, layer {1}, head {2}, query {3}", ask.model, layer + 1, head + 1, labels[query]
        ),
        grids=[
            Grid(
                title=Wording("Products in each dimension"),
                values=found["products"],
                rows=words,
                columns=[str(n + 1) for n in range(found["products"].shape[1])],
                signed=True,
                corner="key / dimension",
            ),
            Grid(
                title=Wording("From sum to share"),
                values=steps,
                rows=words,
                columns=[STEPS.get(name, name) for name in found["names"]],
                signed=True,
                corner="key / step",
            ),
        ],
        code=code.products(ask, layer, head, query),
        values={
            "tokens": tokens,
            "layer": layer,
            "head": head,
            "query": query,
            **{key: value for key, value in found.items() if key != "products"},
        },
    )


def _products(model: cm.Model, look: Look, layer: int, head: int, query: int) -> dict[str, Any]:
    """Products [keys, d] of the query with the keys it looks at most, and what follows from them.

    ``rows`` has for each key ``sum`` (of the products), ``scaled``, every score term by name,
    ``score`` and ``share``. A family that adds a bias to its queries (XLNet) has that as a term.
    """
    trace = cm.Trace(
        ["q", "k", "content_score", "term:*", "scores", "probabilities"], steps=[layer]
    )
    model.encoder(model.collate([look.encoding]), trace)
    block: Any = model.encoder.blocks[model.config.schedule[layer]]
    scale = float(block.attention.terms.scale)
    q, k = trace["q", layer][0, head, query], trace["k", layer][0, head]
    shares = trace["probabilities", layer][0, head, query]
    scores = trace["scores", layer]
    keys = sorted(shares.topk(min(MOST_KEYS, len(shares))).indices.tolist())
    products = (q * k)[keys]
    sums = products.sum(-1)
    terms = {}
    bias = trace["content_score", layer][0, head, query, keys] - scale * sums
    if float(bias.abs().max()) > 1e-4:
        terms["bias"] = bias
    for site, step, stream in trace.records:
        if site.startswith("term:") and step == layer and stream == "content":
            wide = trace[site, layer].expand_as(scores)
            terms[site.removeprefix("term:")] = wide[0, head, query, keys]
    columns = {"sum": sums, "scaled": scale * sums, **terms, "score": scores[0, head, query, keys]}
    columns["share"] = shares[keys]
    rows = [
        {name: _seen(float(column[n])) for name, column in columns.items()}
        for n in range(len(keys))
    ]
    return {
        "keys": keys,
        "names": list(columns),
        "rows": rows,
        "scale": scale,
        "size": int(q.shape[0]),
        "count": len(shares),
        "products": products.float().cpu().numpy(),
    }


def _seen(value: float) -> float | None:
    return None if value < MASKED_OUT else value
