"""The Pairs tab: next sentence against sentence order, similarity, and the input of two texts.

The view is drawn by pairs.js. The first text and the model come from the sentence bar; each head
answers by the bar's model where that has it, else by the first installed model that does.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
import plotly.graph_objects as go

import core_models as cm
from app.labs.pairs import answers as pairs
from app.page.sentence import Shared
from app.parts.figure import drawn
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.ask import clean_name, read_revision, whole_number
from app.serving.names import loadable
from app.serving.session import Session
from core_models import InputError
from core_models.evaluation.language import language_of
from viz.pairs import Count, Square, scores, squares_svg
from viz.records import records_csv
from viz.svg import Wording

CELLS = ("same_right", "same_wrong", "other_right", "other_wrong")

YES = {"next": Wording("next"), "in order": Wording("in order")}
"""The first label of each head."""
LABELS = {"next_sentence": YES["next"], "sentence_order": YES["in order"]}


class Controls(NamedTuple):
    """What the tab consists of."""

    pairs: gr.HTML
    """Asks with ``ask`` (a pair), ``example``, ``measure`` (many examples) and ``save``."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(
        view("pairs", events=["ask", "example", "measure", "save"], module="labs/pairs/view")
    )


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view; measurements queue up, one at a time for all visitors."""
    replies = {
        "ask": partial(show, session),
        "example": partial(example, session),
        "measure": partial(measure, session),
        "save": partial(export, session),
    }
    listen(controls.pairs, replies, one_at_a_time=["measure"])


async def show(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """What the models say about a pair, with the revision of its question."""
    revision = read_revision(question)
    try:
        pair, base = pairs.read_pair(question)
        name = clean_name(question.get("model"))
        model, answering, readers, others = await _readers(session, name)
        found = await session.compute(lambda: pairs.look(model, readers, pair, base))
        for head, said in found["heads"].items():
            known = await asyncio.to_thread(session.card, answering[head])
            said["reliability"] = pairs.reliability(known["text_pairs"])
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {
        "rev": revision,
        "error": None,
        "kind": "pair",
        "model": name,
        "answering": answering,
        "by": [name for name in answering.values() if name],
        "others": others,
        "language": language_of(model.tokenizer),
        **found,
        "code": pairs.code_lines(
            loadable(name), {h: loadable(n) for h, n in answering.items() if n}, pair
        ),
    }


async def example(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Sentences that stand in every relation, in the language of the bar's model."""
    revision = read_revision(question)
    try:
        number = whole_number(question.get("number"), "number", 0, pairs.MOST_EXAMPLES)
        model = await asyncio.to_thread(session.model, clean_name(question.get("model")))
        language = language_of(model.tokenizer)
        found = pairs.shown_example(number, language)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {
        "rev": revision,
        "error": None,
        "kind": "example",
        "language": language,
        **found._asdict(),
    }


async def measure(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """How often each head says yes to each kind of pair, over many examples of the Primer."""
    revision = read_revision(question)
    try:
        name = clean_name(question.get("model"))
        model, answering, readers, _ = await _readers(session, name)
        said: dict[str, list[dict[str, float]]] = {}
        for number in range(pairs.MEASURED):
            found = pairs.example(number, language_of(model.tokenizer))
            # One example at a time, so that other visitors are answered in between.
            given = await session.compute(lambda found=found: pairs.scores(model, readers, found))
            for judge, kinds in given.items():
                said.setdefault(judge, []).append(kinds)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    counts = {
        head: {kind: sum(each[kind] >= pairs.YES for each in said[head]) for kind in pairs.KINDS}
        for head in readers
    }
    asked = pairs.MEASURED * len(pairs.KINDS)
    yes = {head: sum(kinds.values()) for head, kinds in counts.items()}
    return {
        "rev": revision,
        "error": None,
        "kind": "measured",
        "answering": answering,
        "model": name,
        "examples": pairs.MEASURED,
        "counts": counts,
        "asked": asked,
        "constant": [head for head in readers if pairs.constant(yes[head], asked)],
        "wins": (won := {judge: pairs.wins(each) for judge, each in said.items()}),
        "figures": {
            "said": drawn(said_figure(counts, answering)) if counts else None,
            "wins": drawn(wins_figure(won, answering, name)),
        },
    }


KINDS = {
    "next": Wording("Real next"),
    "swapped": Wording("Swapped"),
    "same": Wording("Same topic"),
    "other": Wording("Random"),
}
HEADS = {"next_sentence": Wording("Next sentence"), "sentence_order": Wording("Sentence order")}
RIGHT = {
    True: Wording("right: every time"),
    False: Wording("right: never"),
    None: Wording("no such pair in its training"),
}
SHOULD: dict[str, dict[str, bool | None]] = {
    "next_sentence": {"next": True, "swapped": None, "same": None, "other": False},
    "sentence_order": {"next": True, "swapped": False, "same": None, "other": None},
}
"""Whether a head should say yes to a kind of pair; None = it was never taught."""
ABOVE = {
    "other": Wording("True pair above the random one"),
    "same": Wording("True pair above one of the same topic"),
    "swapped": Wording("True pair above the swapped one"),
}
COSINES = {"cls": Wording("Cosine of [CLS]"), "mean": Wording("Cosine of the means")}


def said_figure(
    counts: Mapping[str, Mapping[str, int]], answering: Mapping[str, str | None]
) -> go.Figure:
    """How often each head says yes to each kind of pair."""
    examples = pairs.MEASURED
    judges = {
        Wording("{0} says “{1}”", answering[head], LABELS[head]): [
            Count(
                of_all=found[kind],
                said=Wording("{0} of {1}", found[kind], examples),
                right=RIGHT[SHOULD[head][kind]],
            )
            for kind in KINDS
        ]
        for head, found in counts.items()
    }
    title = Wording("{0} examples of the Primer: how often each head says yes", examples)
    return scores(judges, list(KINDS.values()), examples=examples, title=title)


def wins_figure(
    wins: Mapping[str, Mapping[str, Mapping[str, int]]],
    answering: Mapping[str, str | None],
    name: str,
) -> go.Figure:
    """How often the true pair scores above another: texts read together, and read alone."""
    examples = pairs.MEASURED

    def count(won: int, tied: int) -> Count:
        said = Wording("{0} of {1}", won, examples)
        ties = Wording("{0} of {1}, {2} ties", won, examples, tied)
        return Count(of_all=won + tied / 2, said=ties if tied else said)

    judges = {
        Wording("{0} ({1})", (HEADS | COSINES)[judge], answering.get(judge) or name): [
            count(found[kind]["won"], found[kind]["tied"]) for kind in ABOVE
        ]
        for judge, found in wins.items()
    }
    title = Wording("The same {0} examples, read together and read alone", examples)
    return scores(judges, list(ABOVE.values()), examples=examples, title=title)


async def export(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A file: ``what`` "svg" (each head's 2 x 2) or "csv" (verdicts and cosines)."""
    kind = read_file_kind(question.get("what"))
    answer = await show(session, question)
    if answer["error"]:
        return answer
    if kind == "svg" and not answer["heads"]:
        raise InputError("No model judges pairs here, so there is nothing to draw.")
    text = _svg(answer) if kind == "svg" else _csv(answer, question)
    return file_answer(question, "cloze-pairs", kind, text)


def _svg(answer: Mapping[str, Any]) -> str:
    return squares_svg(
        [
            Square(
                title=Wording(
                    "{0}: probability “{1}”", said["model"], YES[said["now"]["labels"][0]]
                ),
                chances=[said["cells"][name] for name in CELLS],
            )
            for said in answer["heads"].values()
        ],
        rows=(Wording("Same topic"), Wording("Other topic")),
        columns=(Wording("first → second"), Wording("second → first")),
        title=Wording("Topic or order?"),
        notes=[
            Wording("First: {0}", answer["cells"]["same_right"][0]),
            Wording("Second: {0}", answer["cells"]["same_right"][1]),
            Wording("Other topic: {0}", answer["cells"]["other_right"][1]),
        ],
    )


def _csv(answer: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    first, second = question["text"], question["second"]
    rows: list[list[str | float | None]] = []
    for head, said in answer["heads"].items():
        labels = said["now"]["labels"]
        rows.append([head, said["model"], "pair", first, second, said["now"]["probabilities"][0]])
        rows += [
            [head, said["model"], cell, *answer["cells"][cell], chance]
            for cell, chance in said["cells"].items()
        ]
        rows[-5:] = [[*row, labels[0]] for row in rows[-5:]]
    for kind, cosine in answer["similarity"]["pair"].items():
        rows.append([f"cosine_{kind}", answer["model"], "pair", first, second, cosine, "cosine"])
    header = ("head", "model", "case", "first", "second", "value", "meaning")
    return records_csv(header, rows)


async def _readers(
    session: Session, name: str
) -> tuple[cm.Model, dict[str, str | None], dict[str, cm.Model], dict[str, str]]:
    """The bar's model, who answers for each head, those models, and who could not for its language.

    A model of another language does not stand in; the last of the four names one for each head
    that nobody answers for.
    """
    model = await asyncio.to_thread(session.model, name)
    language = language_of(model.tokenizer)
    answering: dict[str, str | None] = {}
    readers: dict[str, cm.Model] = {}
    others: dict[str, str] = {}
    for head, able in pairs.judges(session.models(), name, list(model.heads)).items():
        answering[head] = None
        for each in able:
            reader = await asyncio.to_thread(session.model, each)
            if language_of(reader.tokenizer) == language:
                answering[head], readers[head] = each, reader
                break
            others.setdefault(head, each)
        if head in readers:
            others.pop(head, None)
    return model, answering, readers, others
