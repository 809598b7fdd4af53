"""How the list of models names them."""

from collections.abc import Sequence

import core_models as cm

HEADS = {
    "masked_token": "gaps",
    "permutation": "gaps in any order",
    "causal": "next token",
    "span_boundary": "spans",
    "next_sentence": "next sentence",
    "sentence_order": "sentence order",
    "replaced_token": "judges tokens",
    "classify": "labels of texts",
    "multilabel": "several labels of texts",
    "regress": "scores of texts",
    "tag": "labels of words",
    "span": "answers in texts",
    "similarity": "likeness of texts",
}
"""What a head answers, for the list of models."""


def title_of(info: cm.ModelInfo) -> str:
    """The title of a model, or its name and the heads that it has."""
    if info.title != info.name:
        return info.title
    return with_heads(info.name, info.heads, leftward=info.left_to_right)


def with_heads(name: str, heads: Sequence[str], *, leftward: bool) -> str:
    """A name, and what its heads answer, of a model that reads from left to right or both ways."""
    known = HEADS if leftward else HEADS | {"causal": "gaps from the place before"}
    return f"{name} · {', '.join(known.get(head, head) for head in heads) or 'no head'}"
