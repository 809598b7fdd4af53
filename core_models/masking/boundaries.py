"""Hidden spans as rows and labels of the span-boundary objective (SpanBERT, arXiv 1907.10529)."""

import torch
from torch import Tensor
from torch.nn import functional

from core_models.masking.spans import SpanMasked
from core_models.masking.tokens import IGNORED


def boundary_rows(masked: SpanMasked, maskable: Tensor, *, most: int = 15) -> tuple[Tensor, Tensor]:
    """What `SpanBoundaryHead.boundaries` needs, and the pieces it has to find.

    Spans next to a special piece or the edge of the row are left out; of longer spans the first
    ``most`` pieces are used. The pieces around a span are never masked, as touching spans merge.

    Args:
        masked: A masked input.
        maskable: Bool, shape of the ids, as given to the masking.
        most: Pieces used per span, at most the head's places.

    Returns:
        int64 [N, 4] (row, position before the span, position after it, place from 0), and the
        pieces int64 [N].
    """
    labels = masked.labels.reshape(-1, masked.labels.shape[-1])
    # A closed column on either side, so that spans at the edge need no case of their own.
    open_ = functional.pad(maskable.reshape(labels.shape), (1, 1))
    row, start, stop = masked.spans.unbind(1)
    inside = open_[row, start] & open_[row, stop + 1]  # columns are moved by one
    row, start, stop = row[inside], start[inside], stop[inside]
    places = torch.arange(most, device=row.device)
    used, place = (places < (stop - start)[:, None]).nonzero().unbind(1)
    found = torch.stack([row[used], start[used] - 1, stop[used], place], 1)
    return found, labels[row[used], start[used] + place]


def boundary_fields(
    masked: SpanMasked, maskable: Tensor, *, most: int = 15
) -> tuple[Tensor, Tensor]:
    """`boundary_rows` as fields of a `core_models.Batch`: boundaries and boundary_labels.

    Args:
        masked: A masked input [B, L].
        maskable: Bool [B, L], as given to the masking.
        most: Pieces used per span, at most the head's places.

    Returns:
        int64 [B, S, 3] (position before the span, position after it, place from 0) and the pieces
        int64 [B, S]; rows with fewer end with zeros and -100. S is at least 1.
    """
    found, pieces = boundary_rows(masked, maskable, most=most)
    row = found[:, 0]
    counts = torch.bincount(row, minlength=len(maskable))
    # Sorted by row, so a row's entries are neighbours.
    column = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
    width = max([1, *counts.tolist()])
    places = found.new_zeros(len(maskable), width, 3)
    labels = found.new_full((len(maskable), width), IGNORED)
    places[row, column] = found[:, 1:]
    labels[row, column] = pieces
    return places, labels
