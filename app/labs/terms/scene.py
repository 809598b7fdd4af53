"""A head taken apart as the Terms lab shows it: who is looked at, its charts, tables and files."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from app.labs.terms import answers as terms
from app.labs.terms import tables as terms_tables
from app.labs.terms import turned
from app.labs.terms.maps import LABELS, name_of
from app.parts.plain import table
from app.serving.ask import clean_marks, clean_name, clean_text
from app.serving.session import Session
from viz.distances import worth
from viz.svg import Wording
from viz.terms import Chance, TermMap, chances, maps_svg

STREAMS = {"query": Wording("query stream"), "mask_decoder": Wording("mask decoder")}
VARIANTS = {
    "decoder": Wording("Decoder with positions"),
    "no_positions": Wording("Decoder without positions"),
    "no_decoder": Wording("No decoder"),
}
LEAST_CHANGE = 0.001
"""Of attention: the largest change has the strongest colour from here on, as in maps.js."""
PRODUCT = Wording("q·k: contents and positions together")
THREE = Wording("content to content, content to position, position to content")
FAMILIES = (
    (
        "BERT, RoBERTa, DistilBERT, ALBERT, SpanBERT, ELECTRA",
        PRODUCT,
        Wording("Absolute, added to the pieces at the input: one product q·k for both."),
    ),
    (
        "DeBERTa",
        THREE,
        Wording(
            "Relative, one row for each distance, clipped at 512; absolute ones enter in the mask "
            "decoder."
        ),
    ),
    (
        "DeBERTa v2, v3",
        THREE,
        Wording(
            "Relative, in logarithmic buckets; the projections of the contents serve the "
            "positions, too."
        ),
    ),
    (
        "XLNet",
        Wording("content to content, content to position, content to segment"),
        Wording(
            "Relative, as sinusoids of the distance; learned biases stand in for the position of "
            "the query."
        ),
    ),
    (
        "ModernBERT, EuroBERT, NeoBERT",
        PRODUCT,
        Wording(
            "Relative, without a table or a term: queries and keys are turned by their positions "
            "before they meet."
        ),
    ),
)


def readers(session: Session) -> list[str]:
    """Installed models whose scores have terms beside the content score."""
    return [i.name for i in session.models() if terms_tables.has_terms(i.family)]


class Looked(NamedTuple):
    """A question, answered."""

    bar: str
    """The model of the sentence block."""
    reader: str
    usual: str
    """Who is taken apart where nobody was chosen: that model, or one with terms in its place."""
    offered: list[str]
    marked: bool
    """Something is hidden in the sentence block."""
    drawn: bool
    """Something there is replaced or kept."""
    found: dict[str, Any]
    setting: terms.Setting


async def look(session: Session, question: Mapping[str, Any]) -> Looked:
    """Take the head that is asked for apart."""
    given = question["sentence"]
    text, bar = clean_text(given.get("text")), clean_name(given.get("model"))
    marks = clean_marks(given.get("marks", ()))
    offered = await asyncio.to_thread(readers, session)
    usual = await asyncio.to_thread(_usual, session, bar, offered)
    name = question["reader"] if question["reader"] in (*offered, bar) else usual
    model = await asyncio.to_thread(session.model, name)
    # What an example or a link switches off, a model without terms cannot show.
    wants = question["off"] or question["stream"] == "mask_decoder"
    if wants and offered and not terms_tables.has_terms(model.config.family):
        name = offered[0]
        model = await asyncio.to_thread(session.model, name)
    spans = []
    if marks:
        # The sentence block may cut the text into other pieces: what is hidden are characters.
        tokens = (await session.tokenize(text, bar)).tokens
        spans = [
            (tokens[mark.position].start, tokens[mark.position].end)
            for mark in marks
            if mark.position < len(tokens) and not tokens[mark.position].special
        ]
    setting = terms.read_setting({**question, "text": text}, spans)

    def examine() -> dict[str, Any]:
        found = terms.examine(model, setting)
        return {**found, "rotation": turned.examine(model, setting, found)}

    found = await session.compute(examine, model)
    drawn = any(mark.case != "mask" for mark in marks)
    return Looked(bar, name, usual, offered, bool(marks), drawn, found, setting)


def _usual(session: Session, bar: str, offered: list[str]) -> str:
    """A model with absolute positions has nothing to take apart: one of its language that has."""
    config = session.model(bar).config
    if terms_tables.has_terms(config.family) or config.attention.rotary is not None:
        return bar
    language = session.card(bar)["language"]
    return next((n for n in offered if session.card(n)["language"] == language), bar)


def row_table(found: Mapping[str, Any], row: int) -> dict[str, Any]:
    """The cells of one query as numbers."""
    tokens, names, columns = found["tokens"], found["names"], found["columns"]
    query = found["rows"][row]
    sent = [*found["terms"], found["scores"], found["probabilities"]]
    headings = [name_of(names, name) for name in names] + [Wording("score"), "Softmax"]
    if found["off"]:
        sent, headings = [*sent, found["before"]], [*headings, Wording("Before")]
    values = [terms.decoded(text, len(columns))[row].tolist() for text in sent]
    rows = []
    for n, key in enumerate(columns):
        cells = [None if each[n] != each[n] else each[n] for each in values]
        rows.append([f"{key} {tokens[key]['text']}", query - key, *cells])
    return table(
        Wording("Query: {0} ({1})", tokens[query]["text"], query),
        [Wording("Looks at"), Wording("Distance"), *headings],
        rows,
    )


def prediction(looked: Looked, titles: list[Wording]) -> go.Figure | None:
    """Candidates, or verdicts of a discriminator, before and after a switch."""
    found, count = looked.found, len(titles)
    if found["prediction"]:
        words = candidates(found["prediction"], count)
        return chances(words, titles, title=Wording("Predictions"))
    if found["verdicts"]:
        judged = [
            Chance(text=token["own"], chances=pair[:count])
            for token, pair in zip(found["tokens"], found["verdicts"], strict=True)
        ]
        return chances(judged, titles, title=Wording("Probability that it was replaced"))
    return None


def candidates(found: Mapping[str, Any], count: int) -> list[Chance]:
    """Rows of a comparison, its first ``count`` columns."""
    return [
        Chance(
            text=row["display"],
            chances=row["chances"][:count],
            ranks=row["ranks"][:count],
            own=row["id"] == found["own"],
        )
        for row in found["rows"]
    ]


def decoder(looked: Looked) -> go.Figure | None:
    """Predictions with the mask decoder, without its positions and past it."""
    found = looked.found["decoder"]
    if not found:
        return None
    names = [VARIANTS[name] for name in found["columns"]]
    words = candidates(found, len(names))
    return chances(words, names, title=Wording("Predictions of the decoder"))


def distances(reader: str, found: Mapping[str, Any], reach: int) -> go.Figure:
    """What a distance is worth to the head that is shown."""
    known = found["curves"] or {}
    place = Wording("layer {0}, head {1}", found["layer"] + 1, found["head"] + 1)
    return worth(
        {int(at): (pairs, means) for at, pairs, *means in found["distances"]},
        {name: name_of(found["names"], name) for name in found["names"]},
        reach=reach,
        curves={name: known[name] for name in ("c2p", "p2c") if known.get(name)},
        edges=known.get("edges", ()),
        title=Wording("{0}: {1}", reader, place),
    )


def drawing(looked: Looked) -> str:
    """The maps that are shown as a document of their own."""
    found, names = looked.found, looked.found["names"]
    columns, tokens = found["columns"], found["tokens"]

    def numbers(text: str) -> list[list[float]]:
        return [[float(value) for value in row] for row in terms.decoded(text, len(columns))]

    def label(number: int, name: str) -> str:
        said = LABELS[name] if len(names) > 1 else Wording("q·k")
        said = Wording("{0} (off)", said) if name in found["off"] else said
        return Wording("+ {0}", said) if number else said

    drawn = [
        TermMap(title=label(number, name), values=numbers(text), top=found["top"])
        for number, (name, text) in enumerate(zip(names, found["terms"], strict=True))
    ]
    scores, weights = numbers(found["scores"]), numbers(found["probabilities"])
    drawn.append(TermMap(title=Wording("= score"), values=scores, top=found["top"]))
    drawn.append(TermMap(title=Wording("softmax: attention"), values=weights, top=1.0, share=True))
    if found["off"]:
        change = terms.decoded(found["probabilities"], len(columns)) - terms.decoded(
            found["before"], len(columns)
        )
        top = max(LEAST_CHANGE, float(np.abs(change).max()))
        title = Wording("\N{GREEK CAPITAL LETTER DELTA} {0}", Wording("change of attention"))
        drawn.append(TermMap(title=title, values=change.tolist(), top=top, share=True))
    place = Wording("layer {0}, head {1}", found["layer"] + 1, found["head"] + 1)
    if stream := STREAMS.get(found["stream"]):
        place = Wording("{0}, {1}", place, stream)
    return maps_svg(
        drawn,
        rows=[tokens[position]["text"] for position in found["rows"]],
        columns=[tokens[position]["text"] for position in columns],
        title=Wording("{0}: {1}", looked.reader, place),
    )


def families() -> dict[str, Any]:
    """The terms of every family."""
    columns = [Wording("Family"), Wording("Terms of the score"), Wording("Where positions are")]
    return table(Wording("Terms of every family"), columns, FAMILIES)
