"""What each token may see, in four ways of reading, and which of them a model has. No Gradio in it.

The masks are those of the forward pass (:mod:`core_models.prediction.visibility_view`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from app.labs.attention import code
from app.labs.attention.asked import one_of
from app.labs.attention.scene import describe, read, read_scene
from app.parts.plain import sentences, table
from app.serving.session import Session
from core_models.config import Config
from core_models.prediction.visibility_view import (
    WAYS,
    WINDOW,
    VisibilityView,
    drawn_order,
    learnt_ways,
    look_at_visibility,
    ways_of,
)
from core_models.tokenizer import Encoding
from viz import quote
from viz.svg import Wording
from viz.visibility import ranges, seen_map, step

ORDERS = {"drawn": "drawn", "again": "another draw", "text": "of the text", "end": "from the end"}
WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)
USUAL = -1
"""In place of a token and a window: a hidden word or the one in the middle; the model's own."""
MOST_NAMED = 24
"""Tokens that the table names of a row."""
SAYS = {
    ("full",): "{0} has full attention in {1}: every token sees every token.",
    ("causal",): "{0} has causal attention in {1}: a token sees itself and those before it.",
    ("local",): "{0} has local attention in {1}: a token sees {2} tokens on each side.",
    ("causal", "local"): "{0} has local and causal attention in {1}: a token sees itself and the "
    "{2} tokens before it.",
}
FOREIGN = Wording("This model is run by transformers, which alone decides what its tokens see.")
LEARNT = {
    "permuted": Wording(
        "In pretraining it was permuted: what was asked was predicted from the pieces before it in "
        "an order that was drawn."
    ),
    "causal": Wording(
        "In pretraining a share of the texts was causal; a text that it reads now is not."
    ),
}
AS_TEXT = Wording(
    "In the order of the text permuted is causal, but for special pieces, which come first."
)
LEGEND = Wording(
    "Rows look at columns. Strong colour: seen. Weak colour, in the permuted grid: the piece "
    "itself, which the content stream sees and the query stream, which is to predict it, does not."
)


def look(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Four masks of a sentence.

    Args:
        session: the page's service.
        question: ``sentence``, ``second``, ``hide`` (special pieces), ``row`` (a token), ``window``
            (of local attention), ``order`` (of permuted; one of :data:`ORDERS`).

    Returns:
        ``said``, ``grids`` (one for each of ``WAYS``), ``note``, ``table``, ``code``; choices of
        ``row`` and ``window``, in which what is shown has the value that was asked for.
    """
    ask = read_scene({**question["sentence"], "second": question["second"]})
    model = session.model(ask.model)
    found = read(model, ask)
    tokens, encoding, config = describe(found.tokens, found.seen, ask), found.encoding, model.config
    own = config.attention.window or WINDOW
    window = question["window"] if question["window"] in WINDOWS else own
    order = one_of(question, "order", list(ORDERS))
    view = look_at_visibility(model, encoding, window=window, order=order_of(encoding, order))
    row = row_of(question["row"], tokens)
    labels = [str(token["label"]) for token in tokens]
    hidden = question["hide"] is True
    keep = [n for n, special in enumerate(encoding.special) if not (hidden and special)]
    every = step(len(keep))
    return {
        "said": say_ways(ask.model, config, len(encoding)),
        "grids": grids(view, config, labels, row, keep),
        "note": sentences(
            LEGEND,
            AS_TEXT if order == "text" else None,
            Wording("One token in {0} is drawn.", every) if every > 1 else None,
        ),
        "table": row_table(view, labels, row),
        "code": code.visible(session.loadable(ask.model), ask, view.window, view.order),
        "row": [
            (f"{n}  {token['original'] or token['label']}", question["row"] if n == row else n)
            for n, token in enumerate(tokens)
        ],
        "window": [
            (str(n), question["window"] if n == window else n) for n in sorted({*WINDOWS, own})
        ],
    }


def row_of(wanted: Any, tokens: Sequence[Mapping[str, Any]]) -> int:
    """The position of a token; of one that is not there, a hidden word or one in the middle."""
    if type(wanted) is int and 0 <= wanted < len(tokens):
        return wanted
    plain = [n for n, token in enumerate(tokens) if not token["special"]] or [0]
    masked = [n for n in plain if tokens[n]["masked"]]
    return next(iter(masked), plain[len(plain) // 2])


def grids(
    view: VisibilityView, config: Config, labels: Sequence[str], row: int, keep: Sequence[int]
) -> list[go.Figure | None]:
    """A grid for each way of reading; nothing where no token is left."""
    marks = marks_of(config)
    return [
        seen_map(
            view.masks[way],
            labels,
            title=title_of(way, view.window),
            mark=marks[way] or Wording("not this model"),
            used=marks[way] is not None,
            queries=view.queries if way == "permuted" else None,
            row=row,
            keep=keep,
        )
        if keep
        else None
        for way in WAYS
    ]


def order_of(encoding: Encoding, name: str) -> list[int]:
    """The positions of a text in one of :data:`ORDERS`, special pieces first."""
    if name in ("drawn", "again"):
        return list(drawn_order(encoding, 1 if name == "drawn" else 2))
    special = [n for n, flag in enumerate(encoding.special) if flag]
    plain = [n for n, flag in enumerate(encoding.special) if not flag]
    return special + (plain if name == "text" else plain[::-1])


def title_of(way: str, window: int) -> Wording:
    """What stands above a grid."""
    if way == "local":
        return Wording("Local: {0} on each side", window)
    return {
        "full": Wording("Full"),
        "causal": Wording("Causal"),
        "permuted": Wording("Permuted"),
    }[way]


def marks_of(config: Config) -> dict[str, Wording | None]:
    """Which layers of a model read in each way; None = none does."""
    own = ways_of(config)
    if own is None:
        return dict.fromkeys(WAYS)
    found: dict[str, Wording | None] = {}
    learnt = learnt_ways(config)
    for way in WAYS:
        layers = [way in each for each in own]
        found[way] = None
        if any(layers):
            found[way] = Wording("this model, in {0}", _which(layers))
        elif way in learnt:
            found[way] = Wording("this model, in pretraining")
    return found


def _which(layers: list[bool]) -> Wording:
    if all(layers):
        return Wording("every layer")
    text = "layer {0}" if sum(layers) == 1 else "layers {0}"
    return Wording(text, ranges(n for n, own in enumerate(layers, 1) if own))


def say_ways(name: str, config: Config, length: int) -> str:
    """How a model reads, layer by layer, and how pretraining made it read beside."""
    own = ways_of(config)
    if own is None:
        return FOREIGN
    said: list[str] = []
    for ways in dict.fromkeys(own):
        layers = [each == ways for each in own]
        text = SAYS[tuple(way for way in WAYS if way in ways)]
        said.append(Wording(text, name, _which(layers), config.attention.window))
    if config.attention.window is not None and length <= config.attention.window + 1:
        said.append(Wording("This whole text fits into the window."))
    said += [LEARNT[way] for way in WAYS if way in learnt_ways(config)]
    return sentences(*said)


def row_table(view: VisibilityView, labels: Sequence[str], row: int) -> dict[str, Any]:
    """What one token sees, way by way."""
    masks = [(title_of(way, view.window), view.masks[way][row]) for way in WAYS]
    masks.append((Wording("Permuted, query stream"), view.queries[row]))
    rows = []
    for title, seen in masks:
        places = np.flatnonzero(seen).tolist()
        named = " ".join(labels[n] for n in places[:MOST_NAMED])
        more = len(places) > MOST_NAMED
        rows.append([title, len(places), f"{named} …" if more else named])
    caption = Wording("What {0} sees", quote(labels[row]))
    columns = [Wording("Way of reading"), Wording("Tokens seen"), Wording("Which")]
    return table(caption, columns, rows)
