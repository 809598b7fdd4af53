"""Figures from numbers: numpy arrays and strings in; small payloads, CSV and SVG text out.

Nothing here imports torch, gradio or ``core_models``, so every function also serves a notebook:

    import viz
    viz.head_svg(weights, labels, title="Layer 3, head 2")    # weights [L, L]
"""

from viz.attention import (
    MEAN,
    Overview,
    Pair,
    check_place,
    clearest_head,
    head_numbers,
    head_weights,
    overview,
    strongest,
    thumbnail_side,
    without_special,
)
from viz.encoding import block_maximum, from_bytes, quantise, restore, to_base64
from viz.lines import Focus, head_svg
from viz.table import csv_text, guard_cell
from viz.words import favourite, percent, quote, sentences, shares, summary

__all__ = [
    "MEAN",
    "Focus",
    "Overview",
    "Pair",
    "block_maximum",
    "check_place",
    "clearest_head",
    "csv_text",
    "favourite",
    "from_bytes",
    "guard_cell",
    "head_numbers",
    "head_svg",
    "head_weights",
    "overview",
    "percent",
    "quantise",
    "quote",
    "restore",
    "sentences",
    "shares",
    "strongest",
    "summary",
    "thumbnail_side",
    "to_base64",
    "without_special",
]
