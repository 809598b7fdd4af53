"""Figures from numbers: numpy arrays and strings in; charts, small payloads out.

Nothing here imports torch, gradio or ``core_models``, so every function also serves a notebook:

    import viz
    viz.attention_map(weights, labels, title="Layer 3, head 2").show()    # weights [L, L]
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
    staring_head,
    strongest,
    thumbnail_side,
    without_special,
)
from viz.encoding import block_maximum, from_bytes, quantise, restore, to_base64
from viz.maps import attention_map
from viz.words import favourite, percent, quote, sentences, shares, summary

__all__ = [
    "MEAN",
    "Overview",
    "Pair",
    "attention_map",
    "block_maximum",
    "check_place",
    "clearest_head",
    "favourite",
    "from_bytes",
    "head_numbers",
    "head_weights",
    "overview",
    "percent",
    "quantise",
    "quote",
    "restore",
    "sentences",
    "shares",
    "staring_head",
    "strongest",
    "summary",
    "thumbnail_side",
    "to_base64",
    "without_special",
]
