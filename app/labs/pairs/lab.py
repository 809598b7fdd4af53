"""The Pairs lab: next sentence against sentence order, similarity, and the input of two texts.

The first text and the model come from the sentence block; each head answers by that model where it
has it, else by the first installed model that does.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
import plotly.graph_objects as go
from gradio.components import Component

import core_models as cm
from app.labs.pairs import answers as pairs
from app.labs.pairs import words
from app.labs.pairs.reading import Reading
from app.labs.pairs.words import HEADS, KINDS, LABELS
from app.page.sentence import Shared
from app.parts.controls import answer, remember
from app.parts.figure import Figure
from app.parts.plain import Code, Heading, Kept, Line, SentenceInput, sentences
from app.serving.ask import clean_name
from app.serving.session import Session
from core_models.evaluation.language import language_of
from viz.pairs import Cell, Count, Verdict, alike, scores, square, verdicts
from viz.svg import Wording

OWN = "own"
TAUGHT = {
    "next_sentence": ("same_right", "other_right", "other_wrong"),
    "sentence_order": ("same_right", "same_wrong"),
}
"""Cells of the square that stand in a head's training."""
SHOWN = 13
"""How many values an answer has."""
# What an answer found is written into both texts if it is still what is wanted. `at` is the first
# text of an example that has arrived in the sentence block: what stands there instead, is typed.
APPLY = """(found, sentence, kind, second, at) => {
  const keep = { __type__: 'update' };
  if (!found || kind !== found.kind) return [keep, keep];
  if (kind === 'own') return [second === found.was ? found.second : keep, keep];
  const here = sentence?.text === found.first;
  if (!here && at !== found.first) Cloze.write('sentence-text', found.first);
  const arrived = here && at !== found.first ? found.first : keep;
  return [second === found.second ? keep : found.second, arrived];
}"""
# A text that is neither an answer's nor the one that it was asked with is the visitor's own, also
# where an example is under way (Gradio may tell of a change once more, between both). What is right
# already is not written: another choice may have been made meanwhile.
SECOND = """(second, kind, found) =>
  (kind !== 'own' && found && ![found.second, found.was].includes(second)
    ? 'own' : { __type__: 'update' })"""
FIRST = """(sentence, kind, found, at) => {
  const keep = { __type__: 'update' };
  const text = sentence?.text;
  if (kind === 'own') return [keep, at && text !== at ? null : keep];
  if (kind === found?.kind && text === found.first) return [keep, at === text ? keep : text];
  if (found && kind !== found.kind && text !== found.first) return ['own', null];
  return at && kind === found?.kind && at === found.first ? ['own', null] : [keep, keep];
}"""
ANOTHER = (
    f"(number, kind) => [(number + 1) % {pairs.MOST_EXAMPLES}, kind === 'own' ? 'next' : kind]"
)


class Controls(NamedTuple):
    """What the lab consists of."""

    sentence: SentenceInput
    kind: gr.Radio
    another: gr.Button
    second: gr.Textbox
    example: Kept
    """Number of the example that is shown, or -1."""
    found: Kept
    """The texts that an answer is about, for ``APPLY``."""
    at: Kept
    problem: Line
    answers: list[Component]
    """What is shown of two texts (:func:`show`), after ``found``."""
    measure: gr.Button
    measured: list[Component]


def build(shared: Shared) -> Controls:
    """Lay the lab out: what is chosen, the picture, and folds for all else."""
    Heading("Do these two belong together?")
    with gr.Row(elem_classes=["choices"]):
        kind = gr.Radio(
            [*((str(text), name) for name, text in KINDS.items()), ("Your own", OWN)],
            value=OWN,
            label="What to try",
            scale=4,
            min_width=300,
        )
        another = gr.Button("Another example", size="sm", scale=0, min_width=160)
    second = gr.Textbox(
        pairs.OWN["en"].second,
        label="Second text (the first one is the sentence above)",
        max_lines=4,
        elem_id="pairs-second",
    )
    sentence, example = SentenceInput(["text", "model"]), Kept(-1)
    problem = Line(problem=True)
    answers: list[Component] = [Line()]
    with gr.Column(elem_classes=["answers"]):
        answers += [Figure(elem_id="pairs-verdicts", main=True), Line()]
    with gr.Accordion("Topic or order?", open=False, elem_classes=["answers"]):
        answers.append(Line())
        with gr.Row():
            for head in HEADS:
                with gr.Column(min_width=320):
                    answers += [Figure(elem_id=f"pairs-{head}"), Line()]
        answers.append(Line())
        measure = gr.Button("Ask about 24 examples", size="sm")
        Line(words.LITTLE)
        measured = [
            Line(),
            Figure(elem_id="pairs-said"),
            Figure(elem_id="pairs-wins"),
        ]
    with gr.Accordion("How alike, each read alone?", open=False, elem_classes=["answers"]):
        answers += [Figure(elem_id="pairs-alike"), Line()]
        for text in (words.CROSS, words.UNTRAINED, words.BLIND_ORDER):
            Line(text)
    with gr.Accordion("What the model reads", open=False, elem_classes=["answers"]):
        answers.append(Reading())
    with gr.Accordion("What this shows", open=False):
        Line(words.ABOUT)
    answers.append(Code())
    chosen = (sentence, kind, another, second, example, Kept(), Kept())
    return Controls(*chosen, problem, answers, measure, measured)


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; examples are written into both texts where they are still wanted."""
    c = controls
    kept = {"kind": c.kind, "second": c.second, "example": c.example}
    asked = {"sentence": c.sentence, **kept}
    # Before the question: Gradio runs what follows a change one after the other, each to its end,
    # and an answer about the example would take the place of the text that was typed.
    c.second.change(None, [c.second, c.kind, c.found], c.kind, js=SECOND)
    told = [c.sentence, c.kind, c.found, c.at]
    c.sentence.change(None, told, [c.kind, c.at], js=FIRST)
    events = [part.change for part in asked.values()]
    answer(events, partial(show, session), asked, [c.found, *c.answers], c.problem)
    c.another.click(None, [c.example, c.kind], [c.example, c.kind], js=ANOTHER)
    told = [c.found, c.sentence, c.kind, c.second, c.at]
    c.found.change(None, told, [c.second, c.at], js=APPLY)
    measured = partial(measure, session)
    answer([c.measure.click], measured, {"sentence": c.sentence}, c.measured, c.problem, alone=True)
    remember("pairs", kept)


# --- answers: plain values in, plain values out ---------------------------------------------------


async def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """What the models say about a pair."""
    if not isinstance(sentence := question["sentence"], Mapping):
        return [gr.skip()] * (1 + SHOWN)
    name = clean_name(sentence.get("model"))
    model, answering, readers, others = await _readers(session, name)
    language = language_of(model.tokenizer)
    asked = pairs.read_pair({**question, "text": sentence.get("text")}, language)
    found = await session.compute(lambda: pairs.look(model, readers, asked.pair, asked.base), model)
    trust = {}
    for head in readers:
        known = await asyncio.to_thread(session.card, answering[head])
        trust[head] = pairs.reliability(known["text_pairs"])
    heads, cells = found["heads"], found["cells"]
    squares = [
        part
        for head in HEADS
        for part in (
            [square_of(head, heads[head], cells), words.effects(head, heads[head]["effects"])]
            if head in heads
            else [None, None]
        )
    ]
    cosines, blind = similarity(found["similarity"])
    if found["cut"]:
        text = "{0} reads the first {1} pieces of each text; the rest is cut off."
        blind = sentences(blind, Wording(text, name, model.longest))
    reads = {h: session.loadable(n) for h, n in answering.items() if n}
    return [
        {
            "kind": asked.kind,
            "first": asked.pair[0],
            "second": asked.pair[1],
            "was": question["second"],
            "by": {each: language for each in answering.values() if each},
        },
        words.EXPECTED.get(asked.kind),
        verdict_figure(heads, asked.pair),
        sentences(words.notes(trust, answering, others, language), words.cut(readers, heads)),
        words.verdict(heads, trust),
        *squares,
        words.texts_used(asked.kind, asked.base),
        cosines,
        blind,
        {**found["input"], "said": words.reading(name, found["input"])},
        pairs.code_lines(session.loadable(name), reads, asked.pair),
    ]


def verdict_figure(heads: Mapping[str, Any], texts: tuple[str, str]) -> go.Figure | None:
    """What each head says; None where no model judges pairs."""
    said = [
        Verdict(
            head=HEADS[head],
            model=each["model"],
            labels=LABELS[head],
            chance=each["now"]["probabilities"][0],
        )
        for head, each in heads.items()
    ]
    return verdicts(said, texts=texts) if said else None


def square_of(head: str, said: Mapping[str, Any], cells: Mapping[str, Sequence[str]]) -> go.Figure:
    """Topic against order."""
    return square(
        [
            Cell(chance=chance, texts=(cells[c][0], cells[c][1]), taught=c in TAUGHT[head])
            for c, chance in said["cells"].items()
        ],
        title=Wording("{0}: probability “{1}” ({2})", HEADS[head], LABELS[head][0], said["model"]),
    )


def similarity(found: Mapping[str, Mapping[str, float | None]]) -> tuple[go.Figure, str | None]:
    """Cosines of both texts and of the first with another topic, and what cannot be compared."""
    known = {
        words.COSINES[name]: (value, found["other"][name])
        for name, value in found["pair"].items()
        if value is not None
    }
    figure = alike(known, this=Wording("these two"), other=Wording("with another topic"))
    return figure, words.BLIND if len(known) < len(found["pair"]) else None


async def measure(session: Session, question: Mapping[str, Any]) -> AsyncIterator[list[Any]]:
    """How often each head says yes to each kind of pair, over many examples of the Primer."""
    if not isinstance(sentence := question["sentence"], Mapping):
        return
    yield [Wording("Asking…"), gr.skip(), gr.skip()]
    name = clean_name(sentence.get("model"))
    model, answering, readers, _ = await _readers(session, name)
    said: dict[str, list[dict[str, float]]] = {}
    for number in range(pairs.MEASURED):
        found = pairs.example(number, language_of(model.tokenizer))
        # One example at a time, so that other visitors are answered in between.
        given = await session.compute(
            lambda found=found: pairs.scores(model, readers, found), model
        )
        for judge, kinds in given.items():
            said.setdefault(judge, []).append(kinds)
    counts = {
        head: {kind: sum(each[kind] >= pairs.YES for each in said[head]) for kind in pairs.KINDS}
        for head in readers
    }
    won = {judge: pairs.wins(each) for judge, each in said.items()}
    yield [
        words.measured(counts, answering, pairs.MEASURED * len(pairs.KINDS)),
        said_figure(counts, answering) if counts else None,
        wins_figure(won, answering, name),
    ]


def said_figure(
    counts: Mapping[str, Mapping[str, int]], answering: Mapping[str, str | None]
) -> go.Figure:
    """How often each head says yes to each kind of pair."""
    examples = pairs.MEASURED
    judges = {
        Wording("{0} says “{1}”", answering[head], LABELS[head][0]): [
            Count(
                of_all=found[kind],
                said=Wording("{0} of {1}", found[kind], examples),
                right=words.RIGHT[words.SHOULD[head][kind]],
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
        if tied:
            ties = Wording("1 tie") if tied == 1 else Wording("{0} ties", tied)
            said = Wording("{0}, {1}", said, ties)
        return Count(of_all=won + tied / 2, said=said)

    judges = {
        Wording("{0} ({1})", (HEADS | words.COSINES)[judge], answering.get(judge) or name): [
            count(found[kind]["won"], found[kind]["tied"]) for kind in words.ABOVE
        ]
        for judge, found in wins.items()
    }
    title = Wording("The same {0} examples, read together and read alone", examples)
    return scores(judges, list(words.ABOVE.values()), examples=examples, title=title)


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
