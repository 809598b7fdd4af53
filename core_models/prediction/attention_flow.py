"""What attention maps add up to: heads combined, rollout, flow, norms of what a key gives.

Pure functions on arrays. Letters: S steps, H heads, L tokens, d head size, D width; a row of
[..., L, L] is the token that looks. Run a model with a trace to get the inputs::

    trace = cm.Trace(["probabilities", "v"])
    model.encoder(model.batch([text]), trace=trace)
    rolled = rollout(trace.stack("probabilities")[:, 0].numpy())
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from core_models.errors import InputError

Floats = NDArray[np.floating]

RESIDUAL = 0.5
"""Share of a token's own state in each step (arXiv 2005.00928, section 2)."""
MOST_FLOW_TOKENS = 16
"""A flow solves one problem for each token; above this it takes seconds."""
UNIT = 10**7
"""Whole numbers that a capacity of 1 stands for: the solver takes no fractions."""
WAYS = ("mean", "max")


def combine(probabilities: Floats, heads: Sequence[tuple[int, int]], how: str = "mean") -> Floats:
    """Any set of heads as one map.

    Args:
        probabilities: [S, H, L, L].
        heads: (step, head) of each, counted from 0; at least one.
        how: ``mean`` (rows still sum to 1) or ``max`` (the strongest link among the heads; rows
            may sum to more).

    Returns:
        [L, L].

    Raises:
        InputError: no head, one that is not there, or another way.
    """
    steps, count = probabilities.shape[:2]
    if how not in WAYS:
        raise InputError(f"Heads are combined by {str(how)[:40]!r}; it must be mean or max.")
    if len(heads) == 0:
        raise InputError("No head is chosen. Choose at least one.")
    for step, head in heads:
        if not (0 <= step < steps and 0 <= head < count):
            raise InputError(
                f"There is no head {head} in layer {step}: this model has layers 0 to {steps - 1} "
                f"with heads 0 to {count - 1}."
            )
    chosen = probabilities[[step for step, _ in heads], [head for _, head in heads]]
    return np.asarray(chosen.mean(axis=0) if how == "mean" else chosen.max(axis=0))


def with_residual(probabilities: Floats, residual: float = RESIDUAL) -> Floats:
    """Heads averaged, the residual stream added: ``residual * 1 + (1 - residual) * mean``.

    Args:
        probabilities: [S, H, L, L].
        residual: share of a token's own state, 0 to 1.

    Returns:
        [S, L, L]; rows sum to 1 where those of the attention do.
    """
    if not 0 <= residual <= 1:
        raise InputError(f"residual is {residual}; it must be between 0 and 1.")
    mean = probabilities.mean(axis=1, dtype=np.float64)
    return np.asarray(residual * np.eye(mean.shape[-1]) + (1 - residual) * mean)


def rollout(probabilities: Floats, residual: float = RESIDUAL) -> Floats:
    """Attention followed through the steps: products of the maps with the residual added.

    Args:
        probabilities: [S, H, L, L].
        residual: see :func:`with_residual`.

    Returns:
        [S, L, L]: after each step, how much of each input token (column) is in each token (row).
        Source: Abnar and Zuidema 2020 (arXiv 2005.00928), attention rollout.
    """
    steps = with_residual(probabilities, residual)
    rolled = np.empty_like(steps)
    before = np.eye(steps.shape[-1])
    for number, step in enumerate(steps):
        before = rolled[number] = step @ before
    return rolled


def flow(probabilities: Floats, position: int, residual: float = RESIDUAL) -> Floats:
    """The most that can flow from one token after the last step to each input token.

    Tokens of every level are nodes, the maps with the residual added are capacities of the edges
    between levels. Each input token is a problem of its own, so the flows do not sum to 1. The
    solver works on whole numbers: a flow is exact to about 1e-6.

    Args:
        probabilities: [S, H, L, L], at most 16 tokens.
        position: of the token after the last step.
        residual: see :func:`with_residual`.

    Returns:
        [L]. Source: Abnar and Zuidema 2020 (arXiv 2005.00928), attention flow.

    Raises:
        InputError: too many tokens, or a position that is not there.
    """
    length = probabilities.shape[-1]
    if length > MOST_FLOW_TOKENS:
        raise InputError(
            f"Attention flow is computed for up to {MOST_FLOW_TOKENS} tokens; this text has "
            f"{length}. Use a shorter one, or the rollout."
        )
    if not 0 <= position < length:
        raise InputError(f"Position {position} is beyond the text, which has {length} tokens.")
    # Only here: the import takes a third of a second, and every page imports this file.
    from scipy.sparse import coo_array  # noqa: PLC0415
    from scipy.sparse.csgraph import maximum_flow  # noqa: PLC0415

    maps = with_residual(probabilities, residual)
    steps = len(maps)
    # Node of a token at a level: level * L + position; level 0 is the input.
    level, looks, looked = np.meshgrid(*map(np.arange, maps.shape), indexing="ij")
    above, below = (level + 1) * length + looks, level * length + looked
    capacities = np.rint(maps * UNIT).astype(np.int32)
    nodes = (steps + 1) * length
    edges = (above.ravel(), below.ravel())
    graph = coo_array((capacities.ravel(), edges), shape=(nodes, nodes)).tocsr()
    source = steps * length + position
    flows = [maximum_flow(graph, source, target).flow_value for target in range(length)]
    return np.asarray(flows, dtype=np.float64) / UNIT


def moved_values(v: Floats, output: Floats) -> Floats:
    """Each value after the head's part of the output projection: f(x) of Kobayashi et al.

    Args:
        v: values of one step with their bias [H, L, d] (the trace's site ``v``).
        output: weight of the output projection [D, H * d].

    Returns:
        [H, L, D].
    """
    heads, _, size = v.shape
    parts = output.reshape(output.shape[0], heads, size)  # [D, H, d]
    return cast(Floats, np.einsum("hkd,Dhd->hkD", v, parts, optimize=True))


def head_norms(probabilities: Floats, moved: Floats) -> Floats:
    """How much each key gives to each query through each head: ``||alpha * f(x)||``.

    Args:
        probabilities: of one step [H, Q, K].
        moved: :func:`moved_values` [H, K, D].

    Returns:
        [H, Q, K], in units of the residual stream. Source: Kobayashi et al. 2020
        (arXiv 2004.10102), section 2.2.
    """
    return np.asarray(probabilities * np.linalg.norm(moved, axis=-1)[:, None, :])


def layer_norms(probabilities: Floats, moved: Floats) -> Floats:
    """The same for all heads of a step together: ``||sum over heads of alpha * f(x)||``.

    Args:
        probabilities: of one step [H, Q, K].
        moved: :func:`moved_values` [H, K, D].

    Returns:
        [Q, K]. Vectors of different heads may cancel, so this is at most the sum of
        :func:`head_norms`.
    """
    # By inner products of the heads' vectors: the vectors of all pairs would be Q * K * D numbers.
    inner = np.einsum("hkD,gkD->khg", moved, moved, optimize=True).astype(np.float64)
    squares = np.einsum("hqk,khg,gqk->qk", probabilities, inner, probabilities, optimize=True)
    return np.asarray(np.sqrt(np.maximum(squares, 0)))
