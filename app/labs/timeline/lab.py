"""The Timeline lab: one text masked epoch by epoch, span lengths, and RoBERTa's input formats.

The text and the vocabulary come from the sentence block.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

from app.labs.timeline import answers as timeline
from app.labs.timeline import formats as cutting
from app.page.sentence import Shared
from app.parts.controls import NEXT_SEED, OpenNumber, OpenSlider, answer, remember
from app.parts.figure import Figure
from app.parts.plain import Code, Heading, Line, SentenceInput, Table, sentences, table
from app.serving.ask import MOST_SEED, clean_name, clean_text
from app.serving.session import Session
from viz.spans import lengths as span_lengths
from viz.svg import Wording, listed
from viz.timeline import cuts, growth, masks
from viz.words import percent

REGIMES = {"static": Wording("Static"), "copies": Wording("Copies"), "dynamic": Wording("Dynamic")}
CHOSEN = ("kind", "epochs", "copies", "regime")
PRESETS: dict[str, tuple[str, int, int, str]] = {
    "BERT: ten copies, 40 epochs": ("uniform", 40, 10, "copies"),
    "RoBERTa: afresh": ("uniform", 40, 10, "dynamic"),
    "SpanBERT's spans": ("span", 20, 10, "dynamic"),
    "MacBERT: similar words": ("similar_word", 20, 10, "dynamic"),
}
"""The values of CHOSEN."""
ABOUT = """\
BERT drew its masks once, when the data were written: ten copies of each text, the same ones in \
every epoch. RoBERTa draws afresh at each visit, so a piece is asked in ever new contexts."""
COUNTS = """\
asked: in how many epochs the piece is to be predicted. contexts: in how many different inputs it \
is."""
LENGTHS = """\
Published are the shares of the paper, drawn are lengths from the same sampler. Found are runs of \
hidden words in masked text of the Primer: spans that touch merge, a budget cuts or skips, and a \
text ends, so they need not agree."""
FORMATS = """\
Six documents of the Primer, cut as RoBERTa's authors compared it. A number and a colour stand for \
a document, hatching for the second text of a pair; what is left of a bar is special pieces and \
padding. Behind each bar: pieces, special ones included, and the label of a pair."""
MOST_PAIRS = 6
KNOWN = json.dumps(PRESETS)
SETS = f"name => ({KNOWN})[name]"
"""Without a request, so that no answer comes later than the next choice."""
SHOWS = f"""(...values) => [
  Object.entries({KNOWN}).find(([, sets]) => String(sets) === String(values))?.[0] ?? null,
  ...{list(REGIMES)}.map((each) => (
    {{ __type__: 'update', visible: ['all', each].includes(values[3]) }})),
]"""
"""Which preset it is, and which regimes are seen."""


class Controls(NamedTuple):
    """What the lab consists of."""

    sentence: SentenceInput
    preset: gr.Radio
    chosen: dict[str, Component]
    """By what a link calls them: ``kind``, ``epochs``, ``copies``, ``regime`` and ``seed``."""
    again: gr.Button
    problem: Line
    columns: list[gr.Column]
    """One for each regime, with its picture and a line."""
    pictures: list[Component]
    said: Line
    note: Line
    counted: list[Component]
    """Tables of the regimes and of each piece, and how contexts grow."""
    lengths: list[Component]
    code: Code
    cut: "Cut"


class Cut(NamedTuple):
    """The formats: nothing is asked before they are first seen."""

    model: SentenceInput
    length: gr.Slider
    problem: Line
    facts: Table
    pictures: list[Component]


def build(shared: Shared) -> Controls:
    """Lay the lab out: what is chosen, the pictures, and folds for all else."""
    Heading("What is hidden, epoch by epoch?")
    with gr.Row(elem_classes=["choices"]):
        preset = gr.Radio(list(PRESETS), label="What to try", scale=7, min_width=300)
        kinds = [(kind.label, name) for name, kind in timeline.KINDS.items()]
        chosen: dict[str, Component] = {
            "kind": gr.Dropdown(
                kinds, value="uniform", label="Masking", filterable=False, scale=2, min_width=170
            ),
            "epochs": _slider(1, timeline.MOST_EPOCHS, 20, "Epochs", scale=2),
        }
    problem, sentence = Line(problem=True), SentenceInput(["text", "model"])
    columns, pictures = [], []
    with gr.Column(elem_classes=["answers"]):
        with gr.Row():
            for name in REGIMES:
                with gr.Column(min_width=320) as column:
                    pictures += [Figure(elem_id=f"timeline-{name}", main=True), Line()]
                columns.append(column)
        said = Line()
    with gr.Accordion("Regime, copies and seed", open=False):
        with gr.Row(elem_classes=["choices"]):
            chosen["regime"] = gr.Radio(
                [("Side by side", "all"), *((str(text), name) for name, text in REGIMES.items())],
                value="all",
                label="Regime",
                scale=3,
                min_width=300,
            )
            chosen["copies"] = _slider(1, timeline.MOST_COPIES, 10, "Copies")
            chosen["seed"] = OpenNumber(
                1, label="Seed", precision=0, minimum=0, maximum=MOST_SEED, min_width=120
            )
            again = gr.Button("Next seed", size="sm", scale=0, min_width=140)
        note = Line()
    with gr.Accordion("How many contexts does a piece get?", open=False, elem_classes=["answers"]):
        Line(COUNTS)
        counted = [
            Table(elem_id="timeline-regimes"),
            Figure(elem_id="timeline-growth"),
            Table(elem_id="timeline-pieces"),
        ]
    with gr.Accordion("How long are the spans?", open=False, elem_classes=["answers"]):
        lengths = [Line(LENGTHS), Figure(elem_id="timeline-lengths")]
    with gr.Accordion("Four ways to cut documents", open=False):
        cut = Cut(
            SentenceInput(["model"]),
            _slider(*cutting.LENGTHS, 96, "Longest example", step=16),
            Line(problem=True),
            Table(elem_id="timeline-formats"),
            [],
        )
        with gr.Row():
            for name in cutting.FORMATS:
                with gr.Column(min_width=420):
                    cut.pictures.append(Figure(elem_id=f"timeline-{name}"))
        Line(FORMATS)
    with gr.Accordion("What this shows", open=False):
        Line(ABOUT)
    parts = (columns, pictures, said, note, counted, lengths, Code(), cut)
    return Controls(sentence, preset, chosen, again, problem, *parts)


def _slider(least: int, most: int, value: int, label: str, **more: Any) -> gr.Slider:
    common = {"step": 1, "buttons": [], "min_width": 150, **more}
    return OpenSlider(least, most, value=value, label=label, **common)


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; which regimes are seen needs no request."""
    c, parts, cut = controls, controls.chosen, controls.cut
    outputs = [*c.pictures, c.said, c.note, *c.counted, *c.lengths, c.code]
    asked = {"sentence": c.sentence, **{name: parts[name] for name in (*CHOSEN[:3], "seed")}}
    # Presets and links write these, too.
    moved = [part.change for part in asked.values()]
    answer(moved, partial(show, session), asked, outputs, c.problem)
    chosen = [parts[name] for name in CHOSEN]
    c.preset.input(None, c.preset, chosen, js=SETS)
    shown = [c.preset, *c.columns]
    gr.on([part.change for part in chosen], None, chosen, shown, js=SHOWS, queue=False)
    c.again.click(None, parts["seed"], parts["seed"], js=NEXT_SEED)
    answer(
        [cut.model.change, cut.length.input, parts["seed"].change],
        partial(show_formats, session),
        {"model": cut.model, "length": cut.length, "seed": parts["seed"]},
        [cut.facts, *cut.pictures],
        cut.problem,
    )
    remember("timeline", {**parts, "length": cut.length})


# --- answers: plain values in, plain values out ---------------------------------------------------


def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """Every epoch of every regime, what they come to, lengths of spans, and the code."""
    if not isinstance(sentence := question["sentence"], Mapping):
        return [gr.skip()] * 14
    text, name = clean_text(sentence.get("text")), clean_name(sentence.get("model"))
    setting = timeline.read_setting(question)
    tokenizer = session.model(name).tokenizer
    found = timeline.describe(tokenizer, text, setting)
    pictures: list[Any] = []
    for regime, seen in found.regimes.items():
        counts = {"asked": seen["asked"], "contexts": seen["contexts"]}
        pictures += [
            masks(seen["visits"], found.pieces, title=REGIMES[regime], **counts),
            caption(regime, setting),
        ]
    last = {regime: f"{seen['growth'][-1]:.1f}" for regime, seen in found.regimes.items()}
    return [
        *pictures,
        sentences(
            said(setting.epochs, last["dynamic"], last["copies"], last["static"]),
            put(setting.kind, found),
        ),
        note(setting.kind, found),
        regimes(found),
        growth({REGIMES[name]: seen["growth"] for name, seen in found.regimes.items()}),
        pieces(found),
        *lengths(timeline.lengths(tokenizer, setting.kind, setting.seed)),
        timeline.code_lines(session.loadable(name), text, setting),
    ]


def caption(regime: str, setting: timeline.Setting) -> str:
    """What a regime does."""
    copies, epochs = setting.copies, setting.epochs
    if regime == "static" or (regime == "copies" and copies == 1):
        return Wording(
            "One copy: every epoch asks the same pieces, and the others are never asked."
        )
    if regime == "dynamic":
        return Wording(
            "A new draw at each visit. On a short text two draws may be alike by chance."
        )
    if epochs <= copies:
        return Wording(
            "A copy comes round again every {0} epochs. So far no mask has come twice.", copies
        )
    least, most = epochs // copies, -(-epochs // copies)
    if least == most:
        return Wording(
            "A copy comes round again every {0} epochs. In {1} epochs each mask is seen {2} times.",
            copies,
            epochs,
            least,
        )
    return Wording(
        "A copy comes round again every {0} epochs. In {1} epochs each mask is seen {2} to {3} "
        "times.",
        copies,
        epochs,
        least,
        most,
    )


def said(epochs: int, *means: str) -> str:
    """What it comes to."""
    if epochs == 1:
        return Wording(
            "Different contexts in which a piece has been asked after 1 epoch: {0} with dynamic "
            "masking, {1} with copies, {2} with one mask.",
            *means,
        )
    return Wording(
        "Different contexts in which a piece has been asked after {0} epochs: {1} with dynamic "
        "masking, {2} with copies, {3} with one mask.",
        epochs,
        *means,
    )


def put(kind: str, found: timeline.Drawn) -> str | None:
    """What stands in the place of the first pieces that give way to similar ones."""
    if kind != "similar_word":
        return None
    if pairs := [f"{piece} → {seen}" for piece, seen in found.replaced()[:MOST_PAIRS]]:
        return Wording("Dynamic masking puts similar words: {0}.", listed(pairs))
    return Wording("No similar word is put here: random pieces stand for words without one.")


def note(kind: str, found: timeline.Drawn) -> str:
    """The masking, and whether all of the text is used."""
    used = Wording("The text is long: this lab uses its first {0} pieces.", len(found.pieces))
    return sentences(
        timeline.KINDS[kind].note,
        Wording("{0} of the input are asked.", percent(found.rate)),
        used if found.truncated else None,
    )


def regimes(found: timeline.Drawn) -> dict[str, Any]:
    """What the regimes come to."""
    count = len(found.pieces)
    return table(
        Wording("Regimes compared"),
        [
            Wording("Regime"),
            Wording("Different masked inputs"),
            Wording("Pieces ever asked"),
            Wording("Times asked, mean"),
            Wording("Contexts per piece, mean"),
        ],
        [
            [
                REGIMES[name],
                seen["inputs"],
                Wording("{0} of {1}", sum(map(bool, seen["asked"])), count),
                *(
                    [mean := sum(seen[what]) / count, f"{mean:.2f}"]
                    for what in ("asked", "contexts")
                ),
            ]
            for name, seen in found.regimes.items()
        ],
    )


def pieces(found: timeline.Drawn) -> dict[str, Any]:
    """How often each piece is asked, and in how many contexts."""
    counts = [seen[what] for seen in found.regimes.values() for what in ("asked", "contexts")]
    columns = [
        Wording("{0}: {1}", REGIMES[name], what)
        for name in found.regimes
        for what in (Wording("asked"), Wording("contexts"))
    ]
    rows = [[piece, *each] for piece, *each in zip(found.pieces, *counts, strict=True)]
    return table(Wording("Each piece"), [Wording("Piece"), *columns], rows)


def lengths(found: Mapping[str, Any] | None) -> list[Any]:
    """How long the spans are, where the masking has a law of lengths."""
    if found is None:
        return [Wording("This masking has no law of lengths; n-grams and spans have one."), None]
    counts, means = found["counts"], found["means"]
    names = {
        "published": Wording("Published share"),
        "drawn": Wording("Drawn ({0})", f"{counts['drawn']:,}"),
        "found": Wording("Runs found ({0})", f"{counts['found']:,}"),
    }
    shares = {name: list(found[kind]) for kind, name in names.items()}
    shares[names["found"]].append(found["longer"])
    told = {name: means[kind] for kind, name in names.items()}
    return [LENGTHS, span_lengths(shares, last=Wording("longer"), means=told)]


def show_formats(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """The first documents of the Primer in each of the four formats."""
    if not isinstance(asked := question["model"], Mapping):
        return [gr.skip()] * (1 + len(cutting.FORMATS))
    length, seed = cutting.read_formats(question)
    tokenizer = session.model(clean_name(asked.get("model"))).tokenizer
    found = cutting.formats(tokenizer, length, seed).values()
    facts = table(
        Wording("At most {0} pieces each", length),
        [
            Wording("Format"),
            Wording("Examples, number"),
            Wording("Pieces of one, mean"),
            Wording("Length used"),
            Wording("Random pairs"),
            Wording("Across the end of a document"),
        ],
        [
            [
                each.title,
                each.examples,
                [each.mean, f"{each.mean:.1f}"],
                [each.filled, percent(each.filled)],
                None if each.random is None else [each.random, percent(each.random)],
                each.crossing,
            ]
            for each in found
        ],
    )
    return [facts, *(cuts(each.shown, length=length, title=each.title) for each in found)]
