"""One query of a head against every key, dimension by dimension. No Gradio in it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import core_models as cm
from app.labs.attention import code
from app.labs.attention.asked import (
    LINK,
    Asked,
    Shown,
    place_name,
    read_place,
    read_token,
    tokens_to_choose,
)
from app.labs.attention.scene import read
from app.parts.plain import table
from app.serving.ask import Ask
from viz import percent, quote, strongest
from viz.attention_parts import products
from viz.svg import Wording

MOST_KEYS = 24
"""Keys whose products are shown: those with the largest probability."""
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


async def multiplied(asked: Asked) -> Shown:
    """One query against every key, dimension by dimension: ``layer``, ``head``, ``query``."""
    layer, head = read_place(asked)
    layer, head = asked.shape[0] - 1 if layer is None else layer, head or 0
    masked = [token["position"] for token in asked.tokens if token["masked"]]
    plain = [token["position"] for token in asked.tokens if not token["special"]]
    usual = next(iter([*masked, *plain]), 0)
    query = read_token(asked, "query", usual)
    if asked.values["query"] == LINK:
        link = strongest(asked.result.probabilities[layer, head], 1, keep=plain)
        query = link[0].source if link else usual
    found = await asked.lab.ask(
        asked.ask,
        "products",
        (layer, head, query),
        lambda each: _products(each, asked.ask, layer, head, query),
    )
    labels, names = asked.labels, found["names"]
    words = [labels[key] for key in found["keys"]]
    shares = [row["share"] for row in found["rows"]]
    best = int(np.argmax(shares))
    title = Wording("{0}, query {1}", place_name(layer, head), labels[query])
    said = Wording(
        "{0} looks most at {1} ({2}); dimension {3} adds the most to that score.",
        quote(labels[query]),
        quote(words[best]),
        percent(shares[best]),
        int(found["products"][best].argmax()) + 1,
    )
    return {
        "at": (layer, head),
        "said": Wording("{0}: {1}", place_name(layer, head), said),
        "note": say_scale(found),
        "first": products(found["products"], shares, words, title=title),
        "steps": table(
            Wording("From sum to share"),
            [Wording("key"), *(STEPS.get(name, name) for name in names)],
            [
                [word, *(_cell(row[name], name) for name in names)]
                for word, row in zip(words, found["rows"], strict=True)
            ],
        ),
        "code": code.products(asked.load, asked.ask, layer, head, query),
        "query": tokens_to_choose(asked, query, usual),
    }


def say_scale(found: Mapping[str, Any]) -> Wording:
    """The factor of the sums, and how many keys are shown."""
    scale, keys = f"{found['scale']:.4f}", len(found["keys"])
    if keys == found["count"]:
        return Wording("scale = {0} for {1} dimensions.", scale, found["size"])
    return Wording(
        "scale = {0} for {1} dimensions. The {2} keys with the largest shares of {3} are shown.",
        scale,
        found["size"],
        keys,
        found["count"],
    )


def _cell(value: float | None, name: str) -> Any:
    """A number and how it is shown."""
    if value is None:
        return None
    signed = f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
    return [value, percent(value) if name == "share" else signed]


def _products(model: cm.Model, ask: Ask, layer: int, head: int, query: int) -> dict[str, Any]:
    """Products [keys, d] of the query with the keys it looks at most, and what follows from them.

    ``rows`` has for each key ``sum`` (of the products), ``scaled``, every score term by name,
    ``score`` and ``share``. A family that adds a bias to its queries (XLNet) has that as a term.
    """
    trace = cm.Trace(
        ["q", "k", "content_score", "term:*", "scores", "probabilities"], steps=[layer]
    )
    model.encoder(model.collate([read(model, ask).encoding]), trace)
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
    # Large scores are rounded by more than a small number, so it is a share of what is added up.
    if float(bias.abs().max()) > 1e-5 * scale * float(products.abs().sum(-1).max()):
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
