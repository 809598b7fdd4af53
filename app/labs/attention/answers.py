"""What the modes of the Attention tab compute, apart from single heads. No Gradio in it.

Every function takes the ``Lab``, the sentence and the values of an event and gives a
:class:`Figure`: the maps that the page draws and that its files hold.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import core_models as cm
import viz
from app.labs.attention import code
from app.labs.attention.scene import Lab, Look, describe, filtered, read, read_filter
from app.serving.ask import Ask, whole_number
from app.serving.session import AttentionResult
from core_models import InputError, attention_flow
from viz.attention_grid import Grid, grids_csv, grids_svg
from viz.svg import Wording

MOST_HEADS = 4_096
MOST_POSITION = 2**31
MOST_KEYS = 24
"""Keys whose products are sent: those with the largest probability."""
Head = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What a mode shows."""

    title: str
    """Of the files."""
    grids: Sequence[Grid] = ()
    code: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else the page draws from."""
    draw: Callable[[], str] | None = None
    """Makes the SVG where that is not the maps. The page draws from ``values`` then, and the maps,
    a third of a megabyte for 512 tokens, are not sent."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for the browser."""
        grids = [] if self.draw else [grid.to_json() for grid in self.grids]
        return {"grids": grids, "code": self.code, **self.values}

    def svg(self) -> str:
        """The picture as a file."""
        return self.draw() if self.draw else grids_svg(self.grids, title=self.title)

    def csv(self) -> str:
        """The numbers as a file."""
        return grids_csv(self.grids)


def labels_of(tokens: Sequence[Mapping[str, Any]]) -> list[str]:
    """The words of described tokens."""
    return [str(token["label"]) for token in tokens]


def shown(tokens: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> list[int]:
    """The positions that are not hidden."""
    hide = data.get("hide") is True
    return [token["position"] for token in tokens if not (hide and token["special"])]


def read_heads(value: Any, name: str) -> tuple[Head, ...]:
    """A list of [layer, head] pairs, without repetitions, in order."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) > MOST_HEADS:
        raise InputError(f"{name} must be a list of up to {MOST_HEADS} heads.")
    found = set()
    for entry in value:
        if not isinstance(entry, Sequence) or isinstance(entry, str) or len(entry) != 2:
            raise InputError(f"Each of {name} must be a layer and a head.")
        layer, head = (whole_number(number, name, 0, MOST_HEADS) for number in entry)
        found.add((layer, head))
    return tuple(sorted(found))


def read_position(value: Any, length: int) -> int:
    """The position of a token."""
    return whole_number(value, "position", 0, length - 1)


def layer_of(data: Mapping[str, Any], layers: int, name: str = "layer") -> int:
    """A layer that the model has."""
    return whole_number(data.get(name), name, 0, layers - 1)


# --- several heads --------------------------------------------------------------------------------


async def combined(lab: Lab, ask: Ask, data: Mapping[str, Any]) -> Figure:
    """Any set of heads as one map: ``picks``, ``how`` (mean or max), ``part``, ``hide``."""
    heads = read_heads(data.get("picks", ()), "picks")
    how = data.get("how", "mean")
    part = read_filter(data)
    result = await lab.attention(ask)
    return await asyncio.to_thread(_combined, ask, result, heads, how, part, data)


def _combined(
    ask: Ask, result: AttentionResult, heads: tuple[Head, ...], how: str, part: str, data: Any
) -> Figure:
    tokens = describe(result.tokens, result.seen, ask)
    weights = attention_flow.combine(result.probabilities, heads, how)
    weights = filtered(weights.astype(np.float32), tokens, part)
    labels, special = labels_of(tokens), [token["special"] for token in tokens]
    keep = shown(tokens, data)
    title = (
        Wording("{0}, maximum of {1} heads", ask.model, len(heads))
        if how == "max"
        else Wording("{0}, mean of {1} heads", ask.model, len(heads))
    )
    words = [labels[position] for position in keep]
    return Figure(
        title=title,
        grids=[Grid(title=title, values=weights[np.ix_(keep, keep)], rows=words, columns=words)],
        code=code.combined(ask, heads, how),
        values={
            "tokens": tokens,
            "numbers": viz.head_numbers(weights),
            "summary": viz.sentences(weights, labels, special),
            "summary_plain": viz.sentences(weights, labels, special, hide=True),
        },
        draw=lambda: viz.head_svg(
            weights,
            labels,
            title=title,
            marked=[token["position"] for token in tokens if token["masked"]],
            keep=keep,
        ),
    )


# --- rollout and flow -----------------------------------------------------------------------------


async def rolled(lab: Lab, ask: Ask, data: Mapping[str, Any]) -> Figure:
    """What one token is made of: ``position`` (None = [CLS]), ``layers`` (None = all)."""
    result = await lab.attention(ask)
    layers = len(result.probabilities)
    upto = (
        layers if data.get("layers") is None else whole_number(data["layers"], "layers", 1, layers)
    )
    position = data.get("position")
    if position is None:
        position = whole_of(result)
    position = read_position(position, len(result.tokens))
    return await asyncio.to_thread(_rolled, ask, result, upto, position)


def whole_of(result: AttentionResult) -> int:
    """The position of [CLS], whatever the family calls it; 0 without one."""
    names = {"[CLS]", "<s>", "<cls>"}
    return next((token.position for token in result.tokens if token.piece in names), 0)


def _rolled(ask: Ask, result: AttentionResult, upto: int, position: int) -> Figure:
    tokens = describe(result.tokens, result.seen, ask)
    labels = labels_of(tokens)
    maps = result.probabilities[:upto]
    after = attention_flow.rollout(maps)[:, position]  # [layers, L]
    raw = maps[-1].mean(axis=0)[position]
    flows = None
    if len(tokens) <= attention_flow.MOST_FLOW_TOKENS:
        flows = attention_flow.flow(maps, position)
    names = [Wording("after layer {0}", number + 1) for number in range(upto)]
    rows = [Wording("attention of layer {0}", upto), Wording("rollout")]
    ways = [raw, after[-1]]
    if flows is not None:
        rows.append(Wording("flow"))
        ways.append(flows)
    word = viz.quote(labels[position])
    return Figure(
        title=Wording("{0}: what {1} is made of", ask.model, word),
        grids=[
            Grid(
                title=Wording("Three ways to ask what {0} is made of", word),
                values=np.stack(ways),
                rows=rows,
                columns=labels,
                top=1.0,
                share=True,
                corner="way / token",
            ),
            Grid(
                title=Wording("Rollout after each layer"),
                values=after,
                rows=names,
                columns=labels,
                top=1.0,
                share=True,
                corner="layer / token",
            ),
        ],
        code=code.rolled(ask, position, upto, flows=flows is not None),
        values={
            "tokens": tokens,
            "position": position,
            "layers": len(result.probabilities),
            "upto": upto,
            "flow": flows is not None,
            "most": attention_flow.MOST_FLOW_TOKENS,
        },
    )


# --- norms ----------------------------------------------------------------------------------------


async def norms(lab: Lab, ask: Ask, data: Mapping[str, Any]) -> Figure:
    """Weights beside what they really move: ``layer``, ``head`` (None = all of the layer)."""
    model = await asyncio.to_thread(lab.session.model, ask.model)
    layer = layer_of(data, len(model.config.schedule))
    head = data.get("head")
    if head is not None:
        head = whole_number(head, "head", 0, model.config.attention.heads - 1)
    found = await lab.ask(ask, "norms", (layer, head), lambda each: _norms(each, ask, layer, head))
    look: Look = found["look"]
    tokens = describe(look.tokens, look.seen, ask)
    keep = shown(tokens, data)
    words = [tokens[position]["label"] for position in keep]
    special = [token["special"] for token in tokens]
    title = (
        Wording("{0}, layer {1}, all heads", ask.model, layer + 1)
        if head is None
        else Wording("{0}, layer {1}, head {2}", ask.model, layer + 1, head + 1)
    )
    shares = {
        name: float(found[name][:, special].sum() / max(float(found[name].sum()), 1e-9))
        for name in ("weights", "norms")
    }
    both = np.ix_(keep, keep)
    return Figure(
        title=title,
        grids=[
            Grid(
                title=Wording("Attention"),
                values=found["weights"][both],
                rows=words,
                columns=words,
                top=1.0,
                share=True,
            ),
            Grid(
                title=Wording("Norm of what is given"),
                values=found["norms"][both],
                rows=words,
                columns=words,
            ),
        ],
        code=code.norms(ask, layer, model.config.schedule[layer], head),
        values={"tokens": tokens, "layer": layer, "head": head, "shares": shares},
    )


def _norms(model: cm.Model, ask: Ask, layer: int, head: int | None) -> dict[str, Any]:
    look = read(model, ask)
    trace = cm.Trace(["probabilities", "v"], steps=[layer])
    model.encoder(model.collate([look.encoding]), trace)
    block: Any = model.encoder.blocks[model.config.schedule[layer]]
    weights = trace["probabilities", layer][0].float().cpu().numpy()
    output = block.attention.output.weight.detach().float().cpu().numpy()
    moved = attention_flow.moved_values(trace["v", layer][0].float().cpu().numpy(), output)
    if head is None:
        given = attention_flow.layer_norms(weights, moved)
        return {"look": look, "weights": weights.mean(axis=0), "norms": given}
    given = attention_flow.head_norms(weights[head : head + 1], moved[head : head + 1])[0]
    return {"look": look, "weights": weights[head], "norms": given}
