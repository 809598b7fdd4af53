"""The Meaning tab: one word in several sentences, layer by layer, and its neighbours in a corpus.

The view is drawn by meaning.js. The model comes from the sentence bar, the sentences are the tab's
own.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.labs.forge.answers import loadable
from app.labs.meaning import answers as meaning
from app.labs.meaning.corpus import Corpus
from app.page.sentence import Shared
from app.parts.figure import drawn
from app.parts.views import listen, view
from app.serving.ask import clean_name, read_revision
from app.serving.session import Session
from core_models import InputError
from viz.meaning import Neighbour, Path, layer_names, likeness, neighbours, paths
from viz.svg import Wording

WAYS = ("raw", "centred")


class Controls(NamedTuple):
    """What the tab consists of."""

    meaning: gr.HTML
    """Asks with ``ask`` (paths) and ``near`` (neighbours)."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("meaning", events=["ask", "near"], module="labs/meaning/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    corpus = Corpus(session)
    replies = {
        name: partial(reply, session, corpus) for name, reply in (("ask", show), ("near", near))
    }
    listen(controls.meaning, replies)


async def show(session: Session, corpus: Corpus, question: Mapping[str, Any]) -> dict[str, Any]:
    """Paths and cosines of every layer, with the revision of the question."""
    revision = read_revision(question)
    try:
        words = meaning.read_words(question)
        name = clean_name(question.get("model"))
        model = await asyncio.to_thread(session.model, name)
        found = await session.compute(lambda: meaning.compare(corpus, model, words))
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {
        "rev": revision,
        "error": None,
        "kind": "paths",
        "model": name,
        **found,
        "figures": {way: figures({"model": name, **found}, words, way) for way in WAYS},
        "code": meaning.code_lines(loadable(name), words),
    }


async def near(session: Session, corpus: Corpus, question: Mapping[str, Any]) -> dict[str, Any]:
    """Neighbours of one occurrence, or how far the index is that they are looked up in."""
    revision = read_revision(question)
    try:
        words = meaning.read_words(question)
        model = await asyncio.to_thread(session.model, clean_name(question.get("model")))
        building = await asyncio.to_thread(corpus.building, model, words.language)
        if (index := building.index) is None:
            progress = min(1.0, building.done / building.of)
            return {"rev": revision, "error": None, "kind": "building", "progress": progress}
        found = await session.compute(
            lambda: meaning.neighbours(corpus, index, model, words, question)
        )
    except InputError as error:
        return {"rev": revision, "error": str(error), "kind": "near"}
    picture = near_figure(found) if found["near"] else None
    return {"rev": revision, "error": None, "kind": "near", **found, "figure": picture}


def figures(answer: Mapping[str, Any], words: meaning.Words, way: str) -> dict[str, Any]:
    """The paths and the likeness at every layer, of vectors as they are or mean subtracted."""
    found, layer = answer["ways"][way], answer["steps"] + 1
    drawn_paths = paths(
        [
            Path(
                number=used["number"] + 1,
                sentence=words.sentences[used["number"]],
                points=[(x, y) for x, y in points],
            )
            for used, points in zip(answer["used"], found["points"], strict=True)
        ],
        layer=layer,
        title=Wording("{0}: “{1}”", answer["model"], answer["word"]),
        shares=(found["shares"][0], found["shares"][1]),
    )
    mine = [mean_of_others(table) for table in answer["cosines"][way]]
    return {
        "paths": drawn(drawn_paths),
        "likeness": drawn(likeness(mine, answer["background"][way], layer=layer)),
    }


def mean_of_others(table: list[list[float]]) -> float:
    """Mean of a square table without its diagonal."""
    count = len(table)
    return (sum(map(sum, table)) - sum(table[n][n] for n in range(count))) / (count * (count - 1))


def near_figure(found: Mapping[str, Any]) -> dict[str, Any]:
    """The neighbours as a picture."""
    listed = [
        Neighbour(
            word=each["sentence"][each["start"] : each["end"]],
            before=each["sentence"][: each["start"]],
            after=each["sentence"][each["end"] :],
            cosine=each["cosine"],
            same=each["same"],
        )
        for each in found["near"]
    ]
    name = layer_names(found["layer"] + 1)[found["layer"]]
    return drawn(neighbours(listed, title=Wording("Sentence {0}: {1}", found["which"] + 1, name)))
