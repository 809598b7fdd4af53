"""The Terms lab: attention scores taken apart into their named terms, and terms switched off.

The sentence, the model and what is hidden come from the sentence block. A model whose scores have
several terms is looked at in place of one that has nothing to take apart.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

import core_models as cm
from app.labs.terms import answers as terms
from app.labs.terms import said as say
from app.labs.terms import scene, turned
from app.labs.terms import tables as terms_tables
from app.labs.terms.maps import TermMaps, maps, name_of
from app.labs.terms.scene import STREAMS, Looked, look
from app.page.sentence import Shared
from app.parts.controls import OpenDropdown, OpenSlider, answer, new_value, offer, remember
from app.parts.figure import Figure
from app.parts.plain import (
    Code,
    Files,
    Heading,
    Kept,
    Line,
    SentenceInput,
    Table,
    sentences,
)
from app.serving.ask import whole_number
from app.serving.session import Session
from core_models import InputError
from viz.distances import table_rows
from viz.svg import Wording

SCOPES = {"this head": "head", "this layer": "layer", "the whole model": "model"}
# Telling with deberta-mini (app/serving/demonstrations.py): without positions "America" falls from
# 95 to 1 %, without contents "Paris" from 71 to 1 %.
MEXICO, SPANISH = "Mexico lies in North America.", "The language of Argentina is Spanish."
CAPITAL = "The capital of France is Paris."
PLAIN: dict[str, Any] = {"off": [], "scope": "head", "stream": "content", "reach": 16}
PLAIN |= {"layer": 0, "head": 0, "gap": -1, "first": 0, "query": -1, "key": -1}
POSITIONS = ["c2p", "p2c", "position"]
EXAMPLES: dict[str, dict[str, Any]] = {
    "Without positions": {"text": MEXICO, "hide": ["america"], "off": POSITIONS, "scope": "model"},
    "Without contents": {"text": CAPITAL, "hide": ["paris"], "off": ["content"]}
    | {"scope": "model"},
    "One term in one head": {"text": SPANISH, "hide": ["spanish"], "off": ["p2c", "segment"]},
    "Two equal places": {"text": "The old [MASK] stands behind the old [MASK]."}
    | {"stream": "mask_decoder"},
}
SHOWN = 25
"""How many values an answer has."""
ABOUT = """\
DeBERTa keeps what a piece is apart from where it stands: each score is a sum of content to \
content, content to position and position to content. Take one head apart, switch a term off, and \
watch its map and the prediction."""
WORTH = """\
Distance: place of the looking piece less place of the one looked at. Dots are means over the \
pairs of this sentence; lines are what these queries and keys would give to any distance."""
ROWS = """\
A table of learned rows cannot have one for every distance. The first version clips; v2 and v3 let \
buckets grow with the logarithm. Shaded: distances with a row of their own; thin line: one row for \
each, without a limit. No model is needed for this."""


class Controls(NamedTuple):
    """What the lab consists of."""

    sentence: SentenceInput
    example: gr.Radio
    kept: dict[str, Any]
    """What a link keeps and a question holds, by name."""
    problem: Line
    maps: TermMaps
    notes: Line
    row: gr.Dropdown
    numbers: Table
    files: Files
    judged: gr.Accordion
    """The fold of what the model makes of it."""
    said: Line
    prediction: Figure
    decoded: Line
    decoder: Figure
    distances: Figure
    edges: Line
    turned: turned.Turned
    about: Line
    code: Code
    rows: "Rows"


class Rows(NamedTuple):
    """The table of distances of a size."""

    size: gr.Dropdown
    distance: gr.Number
    problem: Line
    chart: Figure
    said: Line
    formula: Code


def build(shared: Shared) -> Controls:
    """Lay the lab out: what to try and what is looked at, the maps, folds for all else."""
    Heading("What is a score made of?")
    with gr.Row(elem_classes=["choices"]):
        example = gr.Radio(list(EXAMPLES), label="What to try", scale=14, min_width=300)
        kept: dict[str, Any] = {
            "reader": OpenDropdown([("", "")], value="", label="Model", scale=2, min_width=150)
        }
        for name, label in (("layer", "Layer"), ("head", "Head")):
            kept[name] = OpenDropdown([("1", 0)], value=0, label=label, scale=1, min_width=80)
    kept["off"] = Kept([])
    sentence, problem = SentenceInput(), Line(problem=True)
    with gr.Column(elem_classes=["answers"]):
        turns = turned.build(kept)
        shown = TermMaps(elem_id="terms-maps", main=True)
        with gr.Row(elem_classes=["choices"]):
            kept["scope"] = gr.Radio(
                list(SCOPES.items()),
                value="head",
                label="Switched off in",
                visible="hidden",
                scale=3,
                min_width=300,
            )
            kept["stream"] = gr.Dropdown(
                [("content stream", "content"), *((str(v), k) for k, v in STREAMS.items())],
                value="content",
                label="Stream",
                filterable=False,
                visible="hidden",
                scale=1,
                min_width=150,
            )
        kept["first"] = OpenSlider(
            0, 1, value=0, step=1, label="First piece of the maps", buttons=[], visible="hidden"
        )
        notes = Line()
        with gr.Accordion("What the model makes of it", open=False) as judged:
            kept["gap"] = OpenDropdown([("", -1)], value=-1, label="Hidden word", visible="hidden")
            said, prediction = Line(), Figure(elem_id="terms-prediction")
            decoded, decoder = Line(), Figure(elem_id="terms-decoder")
        with gr.Accordion("What a distance is worth", open=False):
            kept["reach"] = gr.Dropdown(
                list(terms.REACHES), value=16, label="Distances up to", filterable=False
            )
            distances, edges = Figure(elem_id="terms-distances"), Line()
            Line(WORTH)
            waves = Table(elem_id="terms-waves")
            rows = _rows(kept)
        with gr.Accordion("The numbers of one row", open=False):
            row = OpenDropdown([("", 0)], value=0, label="Query", elem_id="terms-row")
            numbers, files = Table(elem_id="terms-row-numbers"), Files("cloze-terms")
        with gr.Accordion("What this shows", open=False):
            Line(ABOUT)
            about = Line()
            Table(scene.families(), elem_id="terms-families")
        code = Code()
    return Controls(
        sentence,
        example,
        kept,
        problem,
        shown,
        notes,
        row,
        numbers,
        files,
        judged,
        said,
        prediction,
        decoded,
        decoder,
        distances,
        edges,
        turned.Turned(*turns, waves),
        about,
        code,
        rows,
    )


def _rows(kept: dict[str, Any]) -> Rows:
    with gr.Row(elem_classes=["choices"]):
        kept["size"] = OpenDropdown([("", "")], value="", label="Published size", min_width=200)
        distance = gr.Number(0, label="Distance", precision=0, elem_id="terms-distance")
    problem = Line(problem=True)
    chart, said = Figure(elem_id="terms-table"), Line()
    Line(ROWS)
    return Rows(kept["size"], distance, problem, chart, said, Code())


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; examples and switches are set without a request."""
    c, k, rows = controls, controls.kept, controls.rows
    asked = {"sentence": c.sentence, **{n: part for n, part in k.items() if n != "size"}}
    asked["row"] = c.row
    outputs = [k[name] for name in ("reader", "layer", "head", "scope", "stream", "first", "gap")]
    outputs += [c.maps, c.notes, c.row, c.numbers, c.said, c.prediction, c.decoded, c.decoder]
    outputs += [c.distances, c.edges, k["query"], k["key"], *c.turned, c.about, c.code]
    changed = [part.change for name, part in asked.items() if name != "row"]
    # Gradio 6.31 forgets what is to be seen in a fold that was never open.
    triggers = [*changed, c.row.input, c.judged.expand]
    answer(triggers, partial(show, session), asked, outputs, c.problem)
    answer([c.files.ask], partial(save, session), asked, [c.files], c.problem)
    sets = {name: k[name] for name in PLAIN}
    offer(c.example, EXAMPLES, c.sentence, sets, PLAIN)
    c.maps.turn(None, c.maps, k["off"], js="maps => [maps.wish]")
    # Another model begins with all its terms; so does the one that a step of the tour shows.
    k["reader"].input(None, None, [k["off"], k["stream"]], js="() => [[], 'content']")
    told = "() => [Cloze.kept('terms')?.reader ?? '', [], 'content']"
    c.maps.told(None, None, [k["reader"], k["off"], k["stream"]], js=told)
    sized = {"size": rows.size, "distance": rows.distance}
    answered = [rows.size, rows.chart, rows.said, rows.formula]
    triggers = [rows.size.change, rows.distance.change]
    answer(triggers, partial(show_rows, session), sized, answered, rows.problem, first=True)
    remember("terms", k)


# --- answers: plain values in, plain values out ---------------------------------------------------


async def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """Maps, predictions and distances of one head."""
    if not isinstance(question["sentence"], Mapping):
        return [gr.skip()] * SHOWN
    looked = await look(session, question)
    found = looked.found
    row = question["row"] if isinstance(question["row"], int) else 0
    row = min(max(0, row), len(found["rows"]) - 1)
    off = [name_of(found["names"], name) for name in found["off"]]
    titles = [Wording("Before"), Wording("After")] if off else [Wording("Now")]
    return [
        *fitted(looked, question),
        maps(found, by=session.languages(looked.reader)),
        say.notes(looked),
        gr.Dropdown(choices=queries(found), **new_value(row, question["row"])),
        scene.row_table(found, row),
        say.prediction(looked),
        scene.prediction(looked, titles),
        say.decoder(found),
        scene.decoder(looked),
        scene.distances(looked.reader, found, looked.setting.reach),
        say.distances(looked),
        *turned.shown(found, question),
        say.about(found),
        terms_tables.code_lines(session.loadable(looked.reader), looked.setting.text, found),
    ]


def fitted(looked: Looked, question: Mapping[str, Any]) -> list[Any]:
    """The controls with what this model has; a value that is right already is not sent."""
    found, tokens = looked.found, looked.found["tokens"]

    def part(kind: Any, name: str, value: Any, **more: Any) -> Any:
        return kind(**more, **new_value(value, question[name]))

    others = [n for n in dict.fromkeys([looked.bar, *looked.offered]) if n != looked.usual]
    names = [(looked.usual, ""), *((n, n) for n in others)]
    reader = "" if looked.reader == looked.usual else looked.reader
    pieces = len(tokens)
    gaps = [(f"{n} {tokens[n]['own']}", n) for n in found["gaps"]]
    gap = question["gap"] if question["gap"] in found["gaps"] else -1
    shown = len(found["columns"])
    return [
        part(gr.Dropdown, "reader", reader, choices=names),
        part(gr.Dropdown, "layer", found["layer"], choices=numbered(found["layers"])),
        part(gr.Dropdown, "head", found["head"], choices=numbered(found["heads"])),
        gr.Radio(visible=bool(found["off"]) or "hidden"),
        gr.update(
            visible=len(found["streams"]) > 1 or "hidden",
            **new_value(found["stream"], question["stream"]),
        ),
        part(
            gr.Slider,
            "first",
            found["first"],
            maximum=max(1, pieces - shown),
            visible=shown < pieces or "hidden",
        ),
        part(
            gr.Dropdown,
            "gap",
            gap,
            choices=gaps if gap >= 0 else [(gaps[0][0] if gaps else "", -1), *gaps[1:]],
            visible=len(gaps) > 1 or "hidden",
        ),
    ]


def numbered(count: int) -> list[tuple[str, int]]:
    """Choices 1, 2, ... for the numbers from 0."""
    return [(str(n + 1), n) for n in range(count)]


def queries(found: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The rows of the maps, to choose from."""
    tokens = found["tokens"]
    return [
        (f"{position} {tokens[position]['text']}", n) for n, position in enumerate(found["rows"])
    ]


def show_rows(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """The table of distances of a published size or of an installed model."""
    known = terms_tables.published()
    installed = [i.name for i in session.models() if terms_tables.has_table(i.family)]
    name = question["size"] or known[0]
    if name in known:
        config = cm.size(name)
    elif name in installed:
        config = session.model(name).config
    else:
        raise InputError(f"There is no size {str(name)[:40]!r} with a table of distances.")
    found = terms_tables.table(config)
    sizes = [(known[0], ""), *((n, n) for n in dict.fromkeys([*known[1:], *installed]))]
    chart = table_rows(
        found["rows"],
        reach=found["reach"],
        count=found["count"],
        exact=found["exact"],
        title=name,
    )
    distance = whole_number(question["distance"], "distance", -(10**9), 10**9)
    said = sentences(
        Wording(
            "{0} rows. Each distance from {1} to {2} has a row of its own.",
            f"{found['count']:,}",
            *map(say.signed, found["exact"]),
        ),
        say.row(found["rows"], found["reach"], distance),
    )
    return [gr.Dropdown(choices=sizes), chart, said, found["formula"]]


async def save(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """The maps that are shown as a drawing."""
    return [scene.drawing(await look(session, question))]
