"""Heads switched off: the prediction without them, the worth of each. No Gradio in it."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import torch

import core_models as cm
from app.labs.attention import code
from app.labs.attention.asked import (
    Asked,
    Head,
    Shown,
    place_name,
    read_heads,
    read_token,
    tokens_to_choose,
    written,
)
from app.labs.attention.scene import Look, read
from core_models import InputError
from core_models.prediction import ablation
from core_models.prediction.passes import head_name
from viz import percent, quote
from viz.attention_parts import Chance, chances
from viz.maps import Map, draw
from viz.svg import Wording

MOST_NAMED = 8
"""Heads that are named one by one."""
WORST = "worst"
OWN = Wording("the word of the text")
FIRST = Wording("the model\N{RIGHT SINGLE QUOTATION MARK}s first choice")
FAINT = 0.1
"""Nats: the largest damage has the strongest colour from here on."""
TOP = 5


async def switched(asked: Asked) -> Shown:
    """The prediction of a hidden word without some heads: ``off``, ``gap``, ``shared``, ``sweep``.

    ``off`` names the heads; ``worst`` is the one without which the word loses most. A sweep adds
    one layer to its map with each question, so that it shows its progress, can be stopped, and
    other visitors' questions come in between.
    """
    model = await asyncio.to_thread(asked.lab.session.model, asked.ask.model)
    head_name(model)
    look = await asyncio.to_thread(read, model, asked.ask)
    gaps = [token["position"] for token in asked.tokens if token["masked"]]
    if not gaps:
        raise InputError(
            "No word is hidden, so there is nothing to predict. Hide one above, or try an example."
        )
    position = read_token(asked, "gap", gaps[0])
    position = position if position in gaps else gaps[0]
    shared = asked.values["shared"] is not False
    worst = asked.values["off"] == WORST
    off = tuple([] if worst else read_heads(asked.values, "off", asked.shape))
    found = await asked.lab.ask(
        asked.ask,
        "off",
        (off, position, shared),
        lambda each: _switched(each, look, position, off, shared=shared),
    )
    shown: Shown = {
        "chosen": {"cells": written(found["hit"]), "own": written(off), "kind": "off"},
        "said": say_target(found, some_off=bool(off)),
        "switched": say_off(off, found["hit"]),
        "first": chances(
            [Chance(**row) for row in found["rows"]],
            some_off=bool(off),
        ),
        "code": code.off(
            asked.load, asked.ask, off, position, found["target"]["id"], shared=shared
        ),
        "gap": tokens_to_choose(asked, position, gaps[0], gaps),
        "shared": {"visible": len(set(model.config.schedule)) < len(model.config.schedule)},
    }
    if worst or asked.values["sweep"] is True:
        shown |= await swept(asked, look, position, found["target"]["display"], shared=shared)
    return shown


async def swept(asked: Asked, look: Look, position: int, word: str, *, shared: bool) -> Shown:
    """The damage of every head alone, as far as it is known with one layer more."""
    layers, heads = asked.shape
    rows: list[np.ndarray] = []
    fresh = 0
    while len(rows) < layers and not fresh:
        row, fresh = await sweep_row(asked, look, len(rows), position, shared=shared)
        rows.append(row)
    # A change comes; a loss is shown, as damage should be above zero.
    damage = np.full((layers, heads), np.nan, dtype=np.float32)
    damage[: len(rows)] = 0 - np.stack(rows)
    done = len(rows) == layers
    layer, head = (int(n) for n in np.unravel_index(np.nanargmax(damage), damage.shape))
    loss = float(damage[layer, head])
    shown: Shown = {
        "swept": Wording("layer {0} of {1}", len(rows), layers)
        if not done
        else Wording(
            "{0} matters most: without it {1} loses {2} nats.",
            place_name(layer, head),
            quote(word),
            nats(loss),
        )
        if loss > 0
        else Wording(
            "No single head is needed here: without any one of them {0} gets no less probable.",
            quote(word),
        ),
        "second_map": draw(
            Map(
                title=Wording("Damage of each head: log-probability (nats) lost without it"),
                values=damage,
                rows=[Wording("layer {0}", n + 1) for n in range(layers)],
                columns=[Wording("head {0}", n + 1) for n in range(heads)],
                says=Wording("{0}, {1} off: {2} nats", "%{y}", "%{x}", "%{z:.3f}"),
                signed=True,
                top=max(FAINT, float(np.nanmax(np.abs(damage)))),
                corner=Wording("layer \\ head"),
            )
        ),
        "note": Wording(
            "How much log-probability (nats) the word loses when this head alone is off. Above "
            "zero (orange): the prediction suffers. Below zero (blue): it gets better."
        ),
        "more": not done,
    }
    if done and asked.values["off"] == WORST:
        shown |= {"off": {"value": f"{layer}.{head}"}, "more": True}
    return shown


def nats(change: float) -> str:
    """A change of log-probability; a small one is not none."""
    if 0 < abs(change) < 0.005:
        return Wording("under {0}", "0.01")
    return f"{change:.2f}".replace("-", "\N{MINUS SIGN}")


def say_target(found: Mapping[str, Any], *, some_off: bool) -> Wording:
    """What becomes of the word that is watched."""
    target = found["target"]
    role = OWN if target["own"] else FIRST
    before, after = (percent(float(np.exp(target[name]))) for name in ("before", "after"))
    ranks = target["ranks"]
    if not some_off:
        return Wording(
            "{0} ({1}): {2} with all heads, rank {3}. Switch a head off to see what changes.",
            quote(target["display"]),
            role,
            before,
            ranks[0],
        )
    change = nats(target["after"] - target["before"])
    return Wording(
        "{0} ({1}): {2} with all heads, {3} without these; {4} nats, rank {5} → {6}.",
        quote(target["display"]),
        role,
        before,
        after,
        change,
        *ranks,
    )


def say_off(off: Sequence[Head], hit: Sequence[Head]) -> str:
    """Which heads are off."""
    if not off:
        return ""
    listed = reduce(partial(Wording, "{0}, {1}"), [place_name(*head) for head in off])
    if len(off) > MOST_NAMED:
        listed = Wording("{0} heads", len(off))
    if len(hit) > len(off):
        return Wording(
            "Off: {0}. The layers share their weights, so {1} heads of the stack are off at once.",
            listed,
            len(hit),
        )
    return Wording("Off: {0}.", listed)


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
                "word": tokenizer.display(n),
                "before": float(chances[0, n]),
                "after": float(chances[1, n]),
                "own": n == piece,
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
        "hit": sorted(hit),
    }


def target(look: Look, position: int, before: torch.Tensor) -> int:
    """The piece whose probability is watched: the text's own, or in a gap the model's first."""
    token = look.tokens[position]
    return int(before.argmax()) if token.masked else token.id


async def sweep_row(
    asked: Asked, look: Look, layer: int, position: int, *, shared: bool
) -> tuple[np.ndarray, bool]:
    """The damage [H] of the heads of one layer, each alone, and whether it had to be computed."""
    model = await asyncio.to_thread(asked.lab.session.model, asked.ask.model)
    # Steps with the same weights are one question.
    step = ablation.steps_of(model.config, layer)[0] if shared else layer
    values = (step, position, shared)

    def work(each: cm.Model) -> np.ndarray:
        before = ablation.without_heads(each, look.encoding, position, [()])[0]
        piece = target(look, position, before)
        found = ablation.damage(each, look.encoding, position, piece, steps=[step], shared=shared)
        return found[0].cpu().numpy()

    fresh = not await asked.lab.knows(asked.ask, "damage", values)
    found: np.ndarray = await asked.lab.ask(asked.ask, "damage", values, work)
    return found, fresh
