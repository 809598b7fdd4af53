"""Which row of DeBERTa's relative table a distance reads, from the config alone."""

import torch
from torch import Tensor

from core_models.config import Disentangled
from core_models.network.terms.disentangled import bucket


def rows_of(terms: Disentangled, distances: Tensor) -> Tensor:
    """Row of the relative table for each distance (query position - key position), any shape.

    Without buckets (v1) ``r + span``, clipped to the table's 2 * span rows; with them (v2, v3)
    ``bucket(r) + buckets``, clipped to 2 * buckets.
    """
    centre = terms.buckets or terms.span
    found = bucket(distances, terms.buckets, terms.span) if terms.buckets else distances
    return (found + centre).clamp(0, 2 * centre - 1)


def edges(terms: Disentangled, furthest: int) -> list[int]:
    """Distances r at which a row ends that several distances read, or such a row begins.

    Rows of r - 1 and r differ there. Where each distance has a row of its own there is no edge.

    Args:
        terms: of the config.
        furthest: looks at distances from -furthest to furthest.
    """
    # One more on each side, or the outermost row would look as if one distance read it.
    distances = torch.arange(-furthest - 1, furthest + 2)
    rows = rows_of(terms, distances)
    same = rows[1:] == rows[:-1]  # r and r - 1 share a row
    shared = torch.zeros(len(rows), dtype=torch.bool)
    shared[1:] |= same
    shared[:-1] |= same
    begins = ~same & (shared[1:] | shared[:-1])
    found: list[int] = distances[1:][begins].tolist()
    return [r for r in found if -furthest < r <= furthest]


def exact_reach(terms: Disentangled) -> tuple[int, int]:
    """First and last distance of the unbroken stretch around 0 whose rows are read by it alone."""
    furthest = 2 * max(terms.span, terms.buckets or 0)
    rows = rows_of(terms, torch.arange(-furthest, furthest + 1))
    counts = torch.bincount(rows)
    alone = (counts[rows] == 1).tolist()
    low = high = furthest
    while low > 0 and alone[low - 1]:
        low -= 1
    while high < 2 * furthest and alone[high + 1]:
        high += 1
    return low - furthest, high - furthest
