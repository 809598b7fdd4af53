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
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.ask import clean_name, read_revision, whole_number
from app.serving.session import Session
from core_models import InputError
from viz.meaning import Path, paths_svg
from viz.records import records_csv
from viz.svg import Wording

WAYS = ("raw", "centred")


class Controls(NamedTuple):
    """What the tab consists of."""

    meaning: gr.HTML
    """Asks with ``ask`` (paths), ``near`` (neighbours) and ``save`` (a file)."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("meaning", events=["ask", "near", "save"], module="labs/meaning/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    corpus = Corpus(session)
    replies = {
        name: partial(reply, session, corpus)
        for name, reply in (("ask", show), ("near", near), ("save", export))
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
    return {"rev": revision, "error": None, "kind": "near", **found}


async def export(session: Session, corpus: Corpus, question: Mapping[str, Any]) -> dict[str, Any]:
    """A file: ``what`` "svg" (the paths) or "csv" (a row for each sentence and layer)."""
    kind, way = read_file_kind(question.get("what")), question.get("way", "centred")
    if way not in tuple(WAYS):
        raise InputError(f"way is {str(way)[:40]!r}; it must be one of {', '.join(WAYS)}.")
    layer = whole_number(question.get("layer", 0), "layer", 0, 10_000)
    answer = await show(session, corpus, question)
    if answer["error"]:
        return answer
    layer = min(layer, answer["steps"] + 1)
    text = _csv(answer) if kind == "csv" else _svg(answer, question, way, layer)
    return file_answer(question, "cloze-meaning", kind, text)


def layer_name(number: int) -> Wording:
    """What a layer is called in files: 0 is the static embedding, 1 the input."""
    first = (Wording("embedding"), Wording("input"))
    return first[number] if number < len(first) else Wording("layer {0}", number - 1)


def _svg(answer: Mapping[str, Any], question: Mapping[str, Any], way: str, layer: int) -> str:
    found = answer["ways"][way]
    paths = [
        Path(
            label=f"{used['number'] + 1}. {question['sentences'][used['number']]}",
            points=[(x, y) for x, y in points],
        )
        for used, points in zip(answer["used"], found["points"], strict=True)
    ]
    return paths_svg(
        paths,
        layer=layer,
        title=Wording("{0}: “{1}”, {2}", answer["model"], answer["word"], layer_name(layer)),
        shares=(found["shares"][0], found["shares"][1]),
    )


def _csv(answer: Mapping[str, Any]) -> str:
    rows = []
    for n, used in enumerate(answer["used"]):
        for layer in range(answer["steps"] + 2):
            rows.append(
                [
                    used["number"] + 1,
                    layer_name(layer),
                    *answer["ways"]["raw"]["points"][n][layer],
                    *answer["ways"]["centred"]["points"][n][layer],
                    *answer["cosines"]["raw"][layer][n],
                    *answer["cosines"]["centred"][layer][n],
                ]
            )
    numbers = [used["number"] + 1 for used in answer["used"]]
    header = ["sentence", "layer", "x", "y", "x_centred", "y_centred"]
    header += [f"cosine_{number}" for number in numbers]
    header += [f"cosine_centred_{number}" for number in numbers]
    return records_csv(header, rows)
