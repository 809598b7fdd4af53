"""What each token of a text may see: everything, what stands before it, a window, an order.

The masks are those of the forward pass (:mod:`core_models.network.visibility`) and of pretraining
(:mod:`core_models.masking.orderings`), asked for one text::

    full      every token sees every token (BERT, arXiv 1810.04805)
    causal    each token sees itself and those before it (section 5.1 there: "LTR")
    local     each token sees a window around it (ModernBERT, arXiv 2412.13663, section 2.1.2)
    permuted  each token sees itself and those before it in an order that is drawn; the query
              stream, which is asked what stands there, not itself (XLNet, arXiv 1906.08237)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core_models.config import Config, ForeignConfig
from core_models.errors import InputError
from core_models.masking.orderings import draw_order, paper
from core_models.model import Model
from core_models.network.visibility import content_visibility, local_visibility, target_visibility
from core_models.tokenizer import Encoding

WAYS = ("full", "causal", "local", "permuted")
WINDOW = 2
"""Tokens on each side that are shown of local attention where the model has none."""

Seen = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class VisibilityView:
    """What L tokens may see, by way of reading."""

    masks: Mapping[str, Seen]
    """Bool [L, L] of each of :data:`WAYS`: the row may see the column."""
    queries: Seen
    """Bool [L, L]: the same as ``permuted``, for the query stream; its rows of pieces that come
    first and are never asked (special ones) are those of ``permuted``."""
    window: int
    """How many tokens on each side ``local`` shows."""
    order: tuple[int, ...]
    """Positions of ``permuted`` in their order, special pieces first."""


def ways_of(config: Config) -> tuple[frozenset[str], ...] | None:
    """How each layer of a model reads a text, of :data:`WAYS`; None where transformers runs it.

    A layer may restrict its tokens in two ways, local and causal.
    """
    if isinstance(config, ForeignConfig):
        return None
    every = {"causal"} if config.left_to_right else set()
    return tuple(
        frozenset(every | ({"local"} if kind == "local" else set()) or {"full"})
        for kind in config.kinds
    )


def learnt_ways(config: Config) -> frozenset[str]:
    """Ways in which pretraining makes a model read that reads otherwise afterwards.

    XLNet's permutation, and the rows that "masked next token" reads from left to right (GPT-BERT,
    arXiv 2410.24159): of a model that sees both sides, only these train a causal head.
    """
    found = set()
    if "permutation" in config.objectives:
        found.add("permuted")
    if "causal" in config.objectives and not config.left_to_right:
        found.add("causal")
    return frozenset(found)


def drawn_order(encoding: Encoding, seed: int) -> tuple[int, ...]:
    """The order that a seed draws over the pieces of a text, its special pieces first."""
    special = torch.tensor([encoding.special])
    source = torch.Generator().manual_seed(seed)
    order = draw_order(1, len(encoding), generator=source, first=special)
    return tuple(order[0].tolist())


def look_at_visibility(
    model: Model,
    encoding: Encoding,
    *,
    window: int | None = None,
    order: Sequence[int] | None = None,
) -> VisibilityView:
    """Ask for the masks of a text; nothing is computed with weights.

    Args:
        model: whose pieces these are.
        encoding: what it reads, L tokens.
        window: tokens on each side of local attention, at least 1; None = those of the model's
            local layers, or :data:`WINDOW` where it has none.
        order: each position once, special pieces first; None = drawn with seed 1.

    Raises:
        InputError: the window is too small, or the order does not hold each position once, special
            pieces first.
    """
    length = len(encoding)
    window = window if window is not None else model.config.attention.window or WINDOW
    if window < 1:
        raise InputError(
            f"The window is {window}; local attention sees at least 1 token on each side."
        )
    order = drawn_order(encoding, 1) if order is None else tuple(order)
    if sorted(order) != list(range(length)):
        raise InputError(f"The order must hold each of the {length} positions once.")
    special = [place for place in range(length) if encoding.special[place]]
    if sorted(order[: len(special)]) != special:
        places = ", ".join(map(str, special))
        raise InputError(f"The order must begin with the special pieces, which stand at {places}.")
    batch = model.collate([encoding])
    drawn = paper(torch.tensor([order]), torch.tensor([length - len(special)]))  # [1, L, L]
    permuted = replace(
        batch,
        visibility=drawn.visibility.to(batch.device),
        targets=drawn.targets.to(batch.device),
        target_visibility=drawn.target_visibility.to(batch.device),
    )
    full = content_visibility(batch)
    masks = {
        "full": full,
        "causal": content_visibility(batch, leftward=True),
        "local": local_visibility(batch, window, full),
        "permuted": content_visibility(permuted),
    }
    found = {way: _square(mask, length) for way, mask in masks.items()}
    queries = found["permuted"].copy()
    of_targets = target_visibility(permuted)
    assert of_targets is not None
    queries[drawn.targets[0].numpy()] = of_targets[0, 0].cpu().numpy()
    return VisibilityView(masks=found, queries=queries, window=window, order=order)


def _square(mask: Tensor | None, length: int) -> Seen:
    """A mask broadcastable to [1, 1, L, L], None = all, as [L, L]."""
    if mask is None:
        return np.ones((length, length), dtype=np.bool_)
    while mask.dim() < 4:
        mask = mask[None]
    found: Seen = mask.expand(1, 1, length, length)[0, 0].cpu().numpy()
    return found
