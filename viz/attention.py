"""Attention weights made ready for a page: the overview of all heads and the numbers of one head.

Letters: S steps (layers as they run), H heads, L tokens. A "cell" is one thumbnail of the overview.
Cells are ordered step by step, the H heads first and then the mean over the step's heads; the very
last cell is the mean over everything. So a model has S * (H + 1) + 1 cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from viz.check import within
from viz.encoding import Weights, block_maximum, check_weights, quantise, to_base64

MEAN: None = None
"""Stands for "the mean over" in place of a step or a head number."""

LARGEST_SIDE = 48
"""Thumbnails are at most this many values wide."""

LEAST_SIDE = 16
"""And as many at least, whatever the budget says."""

OVERVIEW_BYTES = 450_000
"""Budget for all thumbnails together; base64 makes a third more of it."""

ANSWER_BYTES = 700_000
"""Budget for them and the numbers of one head, so that with the tokens they stay below 1 MB."""

LARGEST_FLOAT_LENGTH = 256
"""Up to this many tokens the numbers of a head travel as float32, above it as 16-bit codes."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One link: the token that looks, the token it looks at, the weight in [0, 1]."""

    source: int
    target: int
    weight: float

    def to_json(self) -> list[float]:
        """``[source, target, weight]``, short because an overview carries one per cell."""
        return [self.source, self.target, round(self.weight, 5)]


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Every cell as a small map, with its strongest link."""

    layers: int
    heads: int
    length: int
    """L: tokens of the sentence, special ones included."""
    side: int
    """Values per row and column of one map."""
    maps: str
    """base64 of uint8 square-root codes, [cells, side, side]."""
    strongest: list[Pair | None]
    """Per cell the strongest link of the tokens shown; None if there is none."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for the browser."""
        return {
            "layers": self.layers,
            "heads": self.heads,
            "length": self.length,
            "side": self.side,
            "maps": self.maps,
            "strongest": [pair and pair.to_json() for pair in self.strongest],
        }


def thumbnail_side(length: int, cells: int) -> int:
    """The side of a thumbnail: the sentence length, unless 48 or the byte budget asks for less."""
    numbers = length**2 * (4 if length <= LARGEST_FLOAT_LENGTH else 2)
    budget = min(OVERVIEW_BYTES, ANSWER_BYTES - numbers)
    affordable = int((max(budget, 0) / max(cells, 1)) ** 0.5)
    return max(1, min(length, LARGEST_SIDE, max(LEAST_SIDE, affordable)))


def without_special(special: Sequence[bool]) -> list[int]:
    """The positions of the tokens that are not special."""
    return [position for position, is_special in enumerate(special) if not is_special]


def overview(
    probabilities: Weights, special: Sequence[bool], *, hide: bool = False, own: bool = False
) -> Overview:
    """Shrink and quantise every head of a sentence.

    Args:
        probabilities: [S, H, L, L] attention weights; row = the token that looks.
        special: L flags, True for tokens such as [CLS] and [SEP].
        hide: leave special tokens out; of a sentence that has no others none.
        own: let the codes of each map run to its own strongest link.

    Raises:
        ValueError: when the shapes do not fit or a weight is not in [0, 1].
    """
    _check_flags(probabilities, special)
    steps, heads, length, _ = probabilities.shape
    check_weights(probabilities)
    cells = steps * (heads + 1) + 1
    side = thumbnail_side(length, cells)
    keep = without_special(special)
    if not hide or not keep:
        keep = list(range(length))
    side = min(side, len(keep))
    maps = np.empty((cells, side, side), dtype=np.uint8)
    links: list[Pair | None] = []
    for index, weights in enumerate(_cells(probabilities)):
        shown = weights[np.ix_(keep, keep)] if len(keep) < length else weights
        small = block_maximum(shown, side)
        if own:
            small = small / max(float(small.max()), 1e-9)
        maps[index] = quantise(small)
        links.append(next(iter(strongest(weights, 1, keep=keep)), None))
    return Overview(
        layers=steps,
        heads=heads,
        length=length,
        side=side,
        maps=to_base64(maps),
        strongest=links,
    )


def _check_flags(probabilities: Weights, special: Sequence[bool]) -> None:
    """Raise ValueError unless weights are [S, H, L, L], none of them 0, and there are L flags."""
    check_place(probabilities, None, None)
    length, columns = probabilities.shape[2:]
    if length != columns or len(special) != length:
        raise ValueError(
            f"weights are {length} x {columns} and {len(special)} tokens are described; "
            "all three must be equal"
        )


def _cells(probabilities: Weights) -> list[Weights]:
    """The [L, L] weights of every cell, in the order of the overview."""
    found: list[Weights] = []
    for step in probabilities:
        found.extend(step)
        found.append(step.mean(axis=0))
    found.append(probabilities.mean(axis=(0, 1)))
    return found


def head_weights(probabilities: Weights, layer: int | None, head: int | None) -> Weights:
    """The weights of one cell.

    Args:
        probabilities: [S, H, L, L].
        layer: 0..S-1, or `MEAN` for the mean over everything (then ``head`` must be `MEAN` too:
            head 3 of one layer has nothing to do with head 3 of another).
        head: 0..H-1, or `MEAN` for the mean over the layer's heads.

    Returns:
        [L, L], row = the token that looks.

    Raises:
        ValueError: for a layer or head that does not exist.
    """
    check_place(probabilities, layer, head)
    if layer is None:
        return np.asarray(probabilities.mean(axis=(0, 1)))
    if head is None:
        return np.asarray(probabilities[layer].mean(axis=0))
    return np.asarray(probabilities[layer, head])


def check_place(probabilities: Weights, layer: int | None, head: int | None) -> None:
    """Raise ValueError unless [S, H, L, L] weights have this layer and head; see `head_weights`."""
    if probabilities.ndim != 4 or not probabilities.size:
        shape = " x ".join(map(str, probabilities.shape))
        raise ValueError(f"weights are {shape}; needed are layers x heads x tokens x tokens")
    steps, heads = probabilities.shape[:2]
    if layer is None and head is not None:
        raise ValueError(
            f"head is {head} but no layer is given; name a layer from 0 to {steps - 1}"
        )
    if layer is not None and not 0 <= layer < steps:
        raise ValueError(f"layer is {layer}; this model has 0 to {steps - 1}")
    if head is not None and not 0 <= head < heads:
        raise ValueError(f"head is {head}; this model has 0 to {heads - 1}")


def clearest_head(probabilities: Weights, special: Sequence[bool]) -> tuple[int, int]:
    """The layer and head with the strongest link between two different tokens that are not special.

    A good first view: such a head does something with the words. (0, 0) without two such tokens.

    Args:
        probabilities: [S, H, L, L].
        special: L flags.
    """
    _check_flags(probabilities, special)
    keep = without_special(special)
    if len(keep) < 2:
        return 0, 0
    both = np.ix_(keep, keep)
    best, place = -1.0, (0, 0)
    # Head by head: one copy of all heads of 512 tokens would be 150 MB.
    for layer, step in enumerate(probabilities):
        for head, weights in enumerate(step):
            part = weights[both]
            np.fill_diagonal(part, 0)
            if (link := float(part.max())) > best:
                best, place = link, (layer, head)
    return place


def staring_head(probabilities: Weights, special: Sequence[bool]) -> tuple[int, int]:
    """The layer and head that gives most of its attention to special tokens.

    Args:
        probabilities: [S, H, L, L].
        special: L flags.
    """
    _check_flags(probabilities, special)
    shares = probabilities[..., np.asarray(special, dtype=bool)].sum(axis=(-1, -2))
    layer, head = np.unravel_index(int(shares.argmax()), shares.shape)
    return int(layer), int(head)


def head_numbers(weights: Weights) -> dict[str, Any]:
    """The true numbers of one head, small enough to send.

    Args:
        weights: [L, L].

    Returns:
        ``{"length", "kind", "data"}``: ``kind`` is "float32" up to 256 tokens, else "sqrt16"
        (square-root codes of 16 bits: at most 1.6e-5 away from the true weight, 0.7 MB for 512
        tokens).
    """
    length = weights.shape[0]
    if length <= LARGEST_FLOAT_LENGTH:
        kind, data = "float32", to_base64(weights.astype(np.float32))
    else:
        kind, data = "sqrt16", to_base64(quantise(weights, bits=16))
    return {"length": length, "kind": kind, "data": data}


def strongest(weights: Weights, count: int, *, keep: Sequence[int] | None = None) -> list[Pair]:
    """The ``count`` strongest links, strongest first; ties go to the earlier row, then column.

    Args:
        weights: [L, L], row = the token that looks.
        count: how many links are wanted; fewer come back when there are fewer.
        keep: positions that may take part, None for all.
    """
    positions = np.arange(weights.shape[0]) if keep is None else np.asarray(keep, dtype=np.intp)
    for end in (positions.min(), positions.max()) if positions.size else ():
        within("a position of keep", int(end), 0, len(weights) - 1)
    part = weights if keep is None else weights[np.ix_(positions, positions)]
    count = min(count, part.size)
    if count < 1:
        return []
    flat = part.ravel()
    if count == 1:
        order = np.array([int(flat.argmax())])
    else:
        order = np.argsort(-flat, kind="stable")[:count]
    rows, columns = np.divmod(order, part.shape[1])
    return [
        Pair(
            source=int(positions[row]),
            target=int(positions[column]),
            weight=float(part[row, column]),
        )
        for row, column in zip(rows, columns, strict=True)
    ]
