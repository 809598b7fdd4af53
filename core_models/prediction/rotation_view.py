"""What a distance is worth under rotary positions: one query and one key, set at any distance.

Query and key are turned by their positions before they meet. Pair ``n`` of their d values, (q1, q2)
and (k1, k2), then adds to the score at distance r (position of the query less that of the key)

    scale * ( cos(r * w) * (q1 k1 + q2 k2)  +  sin(r * w) * (q1 k2 - q2 k1) ),   w = theta^(-2n/d)

(RoFormer, arXiv 2104.09864, section 3.2.2, with the pairs of :mod:`core_models.network.rotary`). At
distance 0 nothing is turned: the score is the plain product. ModernBERT (arXiv 2412.13663) has
another theta in its local layers, whose queries see a window of keys only.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core_models.config import Config
from core_models.errors import InputError
from core_models.model import Model
from core_models.network.trace import Trace
from core_models.prediction.passes import ready
from core_models.prediction.terms_view import HIDDEN_SCORE
from core_models.tokenizer import Encoding

REACH = 64
"""Distances that are looked at, each way, unless the text is longer."""


@dataclass(frozen=True, kw_only=True)
class RotationView:
    """One query of one head, with every key of the text and with one key at every distance.

    All scores are scaled as they enter the softmax.
    """

    query: int
    """Position of the query."""
    key: int
    """Position of the key that is set at other distances."""
    kind: str
    """``global`` or ``local``, of the layer."""
    window: int | None
    """How many tokens on each side the layer sees; None = all."""
    theta: float
    """Base of the layer's wavelengths."""
    wavelengths: tuple[float, ...]
    """[d / 2], tokens in which each pair of values turns once, ascending."""
    unturned: tuple[float, ...]
    """[L], score with every key as if nothing were turned."""
    turned: tuple[float, ...]
    """[L], score with every key in the trace, those that the query may not see among them."""
    visible: tuple[bool, ...]
    """[L], which keys the query may see."""
    distances: tuple[int, ...]
    """[2 * reach + 1], position of the query less that of the key, ascending."""
    curve: tuple[float, ...]
    """[2 * reach + 1], score of this query and this key at each distance."""

    @property
    def distance(self) -> int:
        """The distance at which query and key stand in the text."""
        return self.query - self.key


def wavelengths(head_width: int, theta: float) -> tuple[float, ...]:
    """Tokens in which each pair of a head's values turns once: ``2 pi theta^(2n/d)`` [d / 2]."""
    return tuple(2 * math.pi * theta ** (n / head_width) for n in range(0, head_width, 2))


def score_at(
    q: Tensor, k: Tensor, distances: Sequence[int], *, theta: float, scale: float = 1.0
) -> Tensor:
    """Scores [R] of one query [d] and one key [d] at R distances, in float64.

    Args:
        q: before its turn.
        k: before its turn.
        distances: position of the query less that of the key.
        theta: base of the wavelengths.
        scale: factor of the product.
    """
    q1, q2 = q.double().chunk(2)
    k1, k2 = k.double().chunk(2)
    turns = torch.tensor(wavelengths(len(q), theta), dtype=torch.float64, device=q.device)
    places = torch.tensor(list(distances), dtype=torch.float64, device=q.device)
    angles = places[:, None] * (2 * math.pi / turns)  # [R, d / 2]
    return scale * (angles.cos() @ (q1 * k1 + q2 * k2) + angles.sin() @ (q1 * k2 - q2 * k1))


def layer_of(config: Config, step: int) -> tuple[str, int | None, float]:
    """Kind of a layer, what it sees on each side (None = all), and the theta that it turns with.

    Raises:
        InputError: The model's positions are not rotary.
    """
    rotary = config.attention.rotary
    if rotary is None:
        raise InputError("The positions of this model are not rotary: nothing is turned.")
    kind = config.kinds[step]
    if kind == "local":
        return kind, config.attention.window, rotary.local_theta
    return kind, None, rotary.theta


def look_at_rotation(
    model: Model,
    seen: Encoding,
    *,
    step: int = 0,
    head: int = 0,
    query: int = 0,
    key: int = 0,
    reach: int | None = None,
) -> RotationView:
    """Run a model once, and set one key of the text at every distance from one query.

    Args:
        model: In eval mode, with rotary positions.
        seen: What the model reads, L tokens.
        step: Number of the layer.
        head: Number of the head.
        query: Position of the query.
        key: Position of the key.
        reach: Most distance, each way; None = 64, or L - 1 where that is more.

    Raises:
        InputError: The positions are not rotary, or the layer, the head or a position does not
            exist.
    """
    ready(model)
    length, heads, steps = len(seen), model.config.attention.heads, model.config.steps
    for name, value, count in (
        ("layer", step, steps),
        ("head", head, heads),
        ("query", query, length),
        ("key", key, length),
    ):
        if not 0 <= value < count:
            raise InputError(f"The {name} is {value}; this model has 0 to {count - 1} here.")
    kind, window, theta = layer_of(model.config, step)
    trace = Trace(["q_unturned", "k_unturned", "content_score", "scores"], steps=[step])
    with torch.inference_mode():
        model.encoder(model.collate([seen]), trace)
    q = trace["q_unturned", step][0, head, query]  # [d]
    keys = trace["k_unturned", step][0, head]  # [L, d]
    scale = len(q) ** -0.5
    reach = max(REACH, length - 1) if reach is None else reach
    distances = range(-reach, reach + 1)
    return RotationView(
        query=query,
        key=key,
        kind=kind,
        window=window,
        theta=theta,
        wavelengths=wavelengths(len(q), theta),
        unturned=tuple((keys.double() @ q.double() * scale).tolist()),
        turned=tuple(trace["content_score", step][0, head, query].tolist()),
        visible=tuple((trace["scores", step][0, head, query] > HIDDEN_SCORE).tolist()),
        distances=tuple(distances),
        curve=tuple(score_at(q, keys[key], distances, theta=theta, scale=scale).tolist()),
    )
