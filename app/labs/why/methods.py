"""Four attribution methods over one function of piece vectors, by captum. No Gradio in it.

captum is imported when the first explanation is computed: its import takes seconds.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from app.serving.desk import Tell
from core_models import Model
from core_models.prediction.targets import BASELINES, TargetFunction, baseline, nothing
from core_models.tokenizer import Encoding

METHODS = ("integrated", "gradient", "saliency", "occlusion")
"""Integrated gradients, input x gradient, saliency, occlusion."""
STEPS = (10, 300)
WINDOWS = (1, 8)
_CHUNK = 768
"""Most tokens of one pass: a chunk is what a visitor who gives up still waits for."""
_MOST_ROWS = 64
_BACKWARD = 3
"""A pass with its gradient takes about as long as three without."""
FEWEST = 3
"""A rank correlation of fewer words says nothing."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the methods are run."""

    steps: int = 30
    """Points of the path of integrated gradients (Gauss-Legendre). The bars of six shipped models
    on three sentences then missed what they add up to by 0.12 % at most, with 20 by 2.3 %."""
    baseline: str = BASELINES[0]
    window: int = 1
    """Words that occlusion hides together."""


class Watched:
    """A function that reports how much of the work is done, and stops where nobody waits."""

    def __init__(self, function: TargetFunction, total: int, tell: Tell, done: int = 0) -> None:
        self.function, self.total, self.tell, self.done = function, total, tell, done
        self._gradient: Tensor | None = None

    def __call__(self, vectors: Tensor) -> Tensor:
        """[B, L, E] -> [B]."""
        self.tell(self.done / self.total)
        # Of the gradient only the vectors' own is wanted: the model is frozen.
        self.done += vectors.shape[0] * (_BACKWARD if vectors.requires_grad else 1)
        return self.function(vectors)

    def gradient(self) -> Tensor:
        """Of the function at what the model reads [1, L, E], computed once."""
        if self._gradient is None:
            from captum.attr import Saliency  # noqa: PLC0415

            vectors = self.function.vectors.clone().requires_grad_()
            self._gradient = Saliency(self).attribute(vectors, abs=False)
        return self._gradient


def installed() -> bool:
    """Whether captum is there, without importing it."""
    return find_spec("captum") is not None


def units(method: str, seen: Encoding, options: Options) -> int:
    """How much work a method is, in forward passes of one row."""
    if method == "integrated":
        return _BACKWARD * options.steps + 2
    if method == "occlusion":
        return sum(int(mask.max()) + 2 for mask in hidden_groups(seen, options.window))
    return _BACKWARD


def attribute(
    method: str, function: Watched, model: Model, seen: Encoding, options: Options
) -> dict[str, Any]:
    """The share of each piece by one method.

    Args:
        method: One of `METHODS`.
        function: Of a frozen model.
        model: Whose table is read for what stands in the place of words.
        seen: What the model reads.
        options: Of all methods.

    Returns:
        ``values``, one number for each piece; of integrated gradients also ``start``, the number at
        the baseline.
    """
    vectors = function.function.vectors
    if method == "saliency":
        return {"values": function.gradient().norm(dim=-1)[0].tolist()}
    if method == "gradient":  # what captum's InputXGradient is, without a second pass
        return {"values": (vectors * function.gradient()).sum(-1)[0].tolist()}
    vectors = vectors.clone().requires_grad_()
    if method == "occlusion":
        return {"values": _occlusion(function, vectors, model, seen, options)}
    return _integrated(function, vectors, baseline(model, seen, options.baseline), options)


def _integrated(
    function: Watched, vectors: Tensor, start: Tensor, options: Options
) -> dict[str, Any]:
    from captum.attr import IntegratedGradients  # noqa: PLC0415

    found = IntegratedGradients(function).attribute(
        vectors,
        start,
        n_steps=options.steps,
        internal_batch_size=rows_at_once(vectors.shape[1]),
    )
    with torch.no_grad():
        value = float(function.function(start))
    return {"values": found.sum(-1)[0].tolist(), "start": value}


def _occlusion(
    function: Watched, vectors: Tensor, model: Model, seen: Encoding, options: Options
) -> list[float]:
    """Mean drop of the number over the windows that cover a piece."""
    from captum.attr import FeatureAblation  # noqa: PLC0415

    gap = nothing(model, options.baseline).expand_as(vectors)
    masks = hidden_groups(seen, options.window)
    total = torch.zeros(len(seen), device=vectors.device)
    with torch.no_grad():
        for mask in masks:
            total += FeatureAblation(function).attribute(
                vectors,
                baselines=gap,
                feature_mask=mask[None, :, None].to(vectors.device),
                perturbations_per_eval=rows_at_once(vectors.shape[1]),
            )[0, :, 0]
    return (total / len(masks)).tolist()


def rows_at_once(length: int) -> int:
    """Rows of one pass, so that it takes a fraction of a second."""
    return max(1, min(_MOST_ROWS, _CHUNK // length))


def hidden_groups(seen: Encoding, window: int) -> list[Tensor]:
    """Which pieces are taken away together: for each start of the windows a number per piece [L].

    The pieces of a word go together, and so do ``window`` words in a row. Windows that begin at
    the first word, the second and so on are separate entries, as one entry has no overlaps; every
    word is in exactly ``window`` windows, those at the ends are shorter. Special pieces are alone.
    """
    words: list[list[int]] = []
    for word, pieces in groupby(range(len(seen)), key=lambda place: seen.words[place]):
        if word is None:
            words += [[place] for place in pieces]
        else:
            words.append(list(pieces))
    places = [n for n, pieces in enumerate(words) if not seen.special[pieces[0]]]
    alone = [n for n, pieces in enumerate(words) if seen.special[pieces[0]]]
    masks = []
    for begin in range(min(window, max(1, len(places)))):
        groups = {n: (place - begin) // window for place, n in enumerate(places)}
        groups |= {n: 10**6 + place for place, n in enumerate(alone)}
        numbers = {group: index for index, group in enumerate(sorted(set(groups.values())))}
        mask = torch.empty(len(seen), dtype=torch.long)
        for n, pieces in enumerate(words):
            mask[pieces] = numbers[groups[n]]
        masks.append(mask)
    return masks


def agreement(rows: dict[str, list[float]], kept: list[bool]) -> list[list[float | None]]:
    """Spearman's rank correlation of the strengths that each two methods give to the words.

    Strengths, because saliency has no sign. None where a method gives the same to every word.
    """
    ranks = [strengths(values, kept) for values in rows.values()]
    return [[correlation(a, b) for b in ranks] for a in ranks]


def strengths(values: list[float], kept: list[bool]) -> NDArray[np.float64]:
    """Ranks of the words by strength."""
    # Only here: the import takes a second, and every page imports this file.
    from scipy.stats import rankdata  # noqa: PLC0415

    sizes = np.abs(np.array(values)[kept])
    # Numbers that differ in the last bits only are ties.
    largest = sizes.max(initial=0.0) or 1.0
    found: NDArray[np.float64] = rankdata(np.round(sizes / largest, 6))
    return found


def correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Pearson's correlation of ranks, which is Spearman's; ties share their mean rank."""
    if len(a) < FEWEST or a.std() == 0 or b.std() == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])
