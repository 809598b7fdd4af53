"""What a visitor of the Attention lab has chosen, read and checked. No Gradio in it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import viz
from app.labs.attention.scene import Lab
from app.serving.ask import Ask, whole_number
from app.serving.session import AttentionResult
from core_models import InputError
from viz.svg import Wording

MEAN, AUTO, STARING = -1, -2, -3
"""In place of a layer or head: the mean over all, the clearest head, the one that looks most at
special tokens."""
GAP, LINK = -2, -3
"""In place of a token: the hidden word, and the token of the head's strongest link; -1 stands for
what a mode begins with."""
MOST = 2**31 - 1
PLACE = re.compile(r"\d{1,3}\.\d{1,3}")
Head = tuple[int, int]
Shown = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A sentence, every head's map over it, and what else the visitor has chosen."""

    lab: Lab
    ask: Ask
    result: AttentionResult
    tokens: Sequence[Mapping[str, Any]]
    values: Mapping[str, Any]

    @property
    def load(self) -> str:
        """What ``cm.load`` takes for the model."""
        return self.lab.session.loadable(self.ask.model)

    @property
    def labels(self) -> list[str]:
        """The words of the tokens."""
        return [str(token["label"]) for token in self.tokens]

    @property
    def special(self) -> list[bool]:
        """Which tokens are special ones."""
        return [bool(token["special"]) for token in self.tokens]

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and heads."""
        layers, heads = self.result.probabilities.shape[:2]
        return layers, heads

    @property
    def shown(self) -> list[int]:
        """The positions that are not hidden."""
        hide = self.values["hide"] is True
        return [token["position"] for token in self.tokens if not (hide and token["special"])]


# --- reading --------------------------------------------------------------------------------------


def whole(values: Mapping[str, Any], name: str) -> int:
    """A whole number; what it may be depends on the sentence and the model."""
    return whole_number(values[name], name, LINK, MOST)


def one_of(values: Mapping[str, Any], name: str, allowed: Sequence[str]) -> str:
    """One of some texts."""
    found = values[name]
    if found not in allowed:
        raise InputError(f"{name} is {str(found)[:40]!r}; it must be one of {', '.join(allowed)}.")
    return str(found)


def read_heads(values: Mapping[str, Any], name: str, shape: tuple[int, int]) -> list[Head]:
    """Heads as "layer.head", blanks between them; those that the model does not have are left out.

    ``all``, ``none`` and ``last`` (of the last layer) stand for what they say.
    """
    text = values[name]
    if not isinstance(text, str):
        raise InputError(f"{name} is {str(text)[:40]!r}; it must be one of all, last, 0.1 2.3.")
    layers, heads = shape
    groups = {"all": range(layers), "none": range(0), "last": range(layers - 1, layers)}
    if text in groups:
        return [(layer, head) for layer in groups[text] for head in range(heads)]
    pairs = [each.split(".") for each in text.split() if PLACE.fullmatch(each)]
    found = {(int(layer), int(head)) for layer, head in pairs}
    return sorted((layer, head) for layer, head in found if layer < layers and head < heads)


def written(heads: Sequence[Head]) -> list[str]:
    """Heads as texts of that form."""
    return [f"{layer}.{head}" for layer, head in heads]


def read_place(asked: Asked) -> tuple[int | None, int | None]:
    """The layer and head to show, None for a mean; the clearest for one that is not there."""
    layer, head = whole(asked.values, "layer"), whole(asked.values, "head")
    layers, heads = asked.shape
    if STARING in (layer, head):
        return viz.staring_head(asked.result.probabilities, asked.special)
    if not (MEAN <= layer < layers and MEAN <= head < heads):
        return viz.clearest_head(asked.result.probabilities, asked.special)
    if layer == MEAN:
        return None, None
    return layer, None if head == MEAN else head


def read_token(asked: Asked, name: str, usual: int) -> int:
    """The position of a token; what this sentence does not have is the usual one."""
    position = whole(asked.values, name)
    if position == GAP:
        return next((token["position"] for token in asked.tokens if token["masked"]), usual)
    return position if 0 <= position < len(asked.tokens) else usual


def tokens_to_choose(asked: Asked, chosen: int, usual: int, among: Sequence[int] = ()) -> Shown:
    """Properties of a control that chooses a token; the usual one has the number -1."""
    places = among or range(len(asked.tokens))
    number = {position: -1 if position == usual else position for position in places}
    written = {token["position"]: token["original"] or token["label"] for token in asked.tokens}
    choices = [(f"{position}  {written[position]}", number[position]) for position in places]
    return {"choices": choices, "value": number[chosen]}


# --- words ----------------------------------------------------------------------------------------


def place_name(layer: int | None, head: int | None) -> Wording:
    """A layer and head in words, counted from 1 as on the page."""
    if layer is None:
        return Wording("Mean over all heads")
    if head is None:
        return Wording("Layer {0} · Mean", layer + 1)
    return Wording("Layer {0} · Head {1}", layer + 1, head + 1)


def joined(texts: Sequence[str]) -> str:
    """Sentences, one after the other."""
    return reduce(partial(Wording, "{0} {1}"), texts)
