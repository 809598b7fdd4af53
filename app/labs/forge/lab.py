"""The Forge lab: a generator fills gaps and a discriminator judges every token (ELECTRA).

The sentence and what is hidden come from the sentence block; the pair of models is the block's own
where it is a discriminator or a generator, else the chosen or the first installed one.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import gradio as gr

from app.labs.forge import answers as forge
from app.labs.forge import score as scores
from app.labs.forge import shown
from app.labs.forge.answers import THRESHOLD, flat_note, joined
from app.labs.forge.rounds import last_of, play
from app.labs.forge.verdicts import Verdicts, verdicts
from app.page.sentence import Shared
from app.parts.controls import NEXT_SEED, OpenRadio, OpenSlider, answer, remember
from app.parts.figure import Figure
from app.parts.plain import Code, Files, Heading, Kept, Line, SentenceInput, Table
from app.serving.pieces import unread_of
from app.serving.session import Session
from viz.forge import generated
from viz.svg import Wording
from viz.verdicts import Judged, verdicts_svg


class Try(NamedTuple):
    """A sentence that shows something."""

    text: str
    hide: str
    temperature: float
    fake: str = ""
    """A word to fool the discriminator with."""


TRIES = {
    "Fool it": Try("The capital of France is Paris.", "paris", 1.0, "london"),
    "A hot generator": Try("The heart pumps blood through the body.", "blood", 2.5),
    "Lucky draws": Try("The President of the United States spoke to the nation.", "states", 0.3),
}
SHOWN = 16
"""How many values the answers have."""
ABOUT = """\
ELECTRA and DeBERTa v3 learn as detectives: a small generator fills hidden words with samples of \
its own, and the discriminator says for every token whether it was replaced. The generator is kept \
small on purpose: a perfect forger would leave nothing to learn from."""
BARS = "Bars show the probability “replaced”; the dashed line is 50 %, where it would accuse."
TURN = "Choose a word of the true sentence, type another one and see whether it is noticed."
RULES = """\
Each new roll counts, each new word of yours counts; lucky draws do not. Kept in this browser \
only."""
# A list alone would be taken for the list of all outputs.
FAKE = """(own, word, fakes) => {
  if (!word.trim()) document.querySelector('#forge-word :is(input, textarea)')?.focus();
  return [own?.picked != null && word.trim()
    ? [...fakes.filter((fake) => fake?.[0] !== own.picked), [own.picked, word.trim()]] : fakes];
}"""
UNDO = """(own, fakes) => [fakes.some((fake) => fake?.[0] === own?.picked)
  ? fakes.filter((fake) => fake?.[0] !== own.picked) : fakes.slice(0, -1)]"""
TYPE = "() => document.querySelector('#forge-word :is(input, textarea)')?.focus()"


class Controls(NamedTuple):
    """What the lab consists of."""

    sentence: SentenceInput
    tries: dict[str, gr.Button]
    again: gr.Button
    temperature: gr.Slider
    detective: gr.Radio
    problem: Line
    who: Line
    generated: Figure
    verdicts: Verdicts
    said: Line
    turn: "Turn"
    losses: Figure
    learned: Line
    drawn: Line
    roll: gr.Number
    seed: gr.Number
    elsewhere: gr.Button
    numbers: Table
    files: Files
    code: Code
    last: Kept
    """What was answered last: its text, how that was cut, the block's model, the roll, the
    visitor's words."""


class Turn(NamedTuple):
    """The visitor forges."""

    fold: gr.Accordion
    own: Verdicts
    word: gr.Textbox
    go: gr.Button
    undo: gr.Button
    fakes: Kept
    notes: Table
    board: Table
    reset: gr.Button
    score: gr.BrowserState


def build(shared: Shared) -> Controls:
    """Lay the lab out: what is chosen, the pictures, and folds for all else."""
    with gr.Row(elem_classes=["choices"]):
        Heading("Who wrote this word?")
        tries = {name: gr.Button(name, size="sm", scale=0, min_width=120) for name in TRIES}
    problem, sentence, last = Line(problem=True), SentenceInput(), Kept({})
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            row = Verdicts(elem_id="forge-verdicts", main=True)
            said, who = Line(elem_id="forge-said"), Line()
            with gr.Row(elem_classes=["choices"]):
                again = gr.Button("Roll again", variant="primary", scale=0, min_width=140)
                temperature = OpenSlider(
                    0.1, 3.0, value=1.0, step=0.1, label="Temperature", buttons=[], min_width=220
                )
                detective = OpenRadio([], value="", label="Discriminator", min_width=260)
        with gr.Column(scale=2, min_width=300):
            chart = Figure(elem_id="forge-generated", main=True)
    turn = _turn()
    with gr.Accordion("How many positions teach", open=False):
        bars = Figure(elem_id="forge-losses")
        learned = Line()
    with gr.Accordion("The draw, and all numbers", open=False):
        drawn = Line()
        with gr.Row(elem_classes=["choices"]):
            roll = gr.Number(0, label="Roll of the words", precision=0, min_width=140)
            seed = gr.Number(1, label="Seed of the positions", precision=0, min_width=140)
            elsewhere = gr.Button("Other positions", size="sm", scale=0, min_width=160)
        numbers, files = Table(elem_id="cloze-forge"), Files("cloze-forge")
    with gr.Accordion("What this shows", open=False):
        for text in (ABOUT, BARS):
            Line(text)
    choices = (sentence, tries, again, temperature, detective, problem, who, chart, row, said)
    below = (turn, bars, learned, drawn, roll, seed, elsewhere, numbers, files)
    return Controls(*choices, *below, Code(), last)


def _turn() -> Turn:
    fakes = Kept([])
    score = gr.BrowserState(scores.EMPTY, storage_key="cloze-forge", secret="kept by the browser")
    with gr.Accordion("Your turn: fool it yourself", open=False) as fold:
        Line(TURN)
        own = Verdicts(elem_id="forge-own", choose=True)
        with gr.Row(elem_classes=["choices"]):
            word = gr.Textbox(
                label="Another word",
                max_lines=1,
                max_length=forge.MOST_WORD_CHARACTERS,
                elem_id="forge-word",
                scale=2,
                min_width=180,
                html_attributes=gr.InputHTMLAttributes(
                    spellcheck=False, autocorrect="off", autocapitalize="off"
                ),
            )
            go = gr.Button("Try to fool it", variant="primary", scale=0, min_width=140)
            undo = gr.Button("Undo", scale=0, min_width=90)
        notes = Table(elem_id="forge-fakes")
        board = Table(elem_id="forge-score")
        Line(RULES)
        reset = gr.Button("Reset", size="sm", scale=0)
    return Turn(fold, own, word, go, undo, fakes, notes, board, reset, score)


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; rolls, words and examples change values without a request."""
    c, turn = controls, controls.turn
    kept = {
        "roll": c.roll,
        "seed": c.seed,
        "temperature": c.temperature,
        "detective": c.detective,
        "fakes": turn.fakes,
    }
    asked = {"sentence": c.sentence, **kept, "last": c.last, "score": turn.score}
    # Buttons, examples and links write these, too.
    changed = [part.change for name, part in kept.items() if name != "detective"]
    outputs = [c.last, c.detective, c.who, c.verdicts, c.generated, c.said, c.losses, c.learned]
    outputs += [c.drawn, c.numbers, c.code, turn.own, turn.fakes, turn.notes]
    outputs += [turn.board, turn.score]
    triggers = [c.sentence.change, *changed, c.detective.input]
    answer(triggers, partial(show, session), asked, outputs, c.problem)
    answer([c.files.ask], partial(draw, session), asked, [c.files], c.problem)
    answer([turn.reset.click], reset, {}, [turn.board, turn.score], c.problem)
    c.again.click(None, c.roll, c.roll, js=NEXT_SEED)
    c.elsewhere.click(None, c.seed, c.seed, js=NEXT_SEED)
    for act in (turn.go.click, turn.word.submit):
        act(None, [turn.own, turn.word, turn.fakes], turn.fakes, js=FAKE)
    turn.undo.click(None, [turn.own, turn.fakes], turn.fakes, js=UNDO)
    turn.own.pick(None, None, None, js=TYPE)
    for name, button in c.tries.items():
        written = [c.temperature, turn.word, turn.fold, turn.own]
        button.click(None, turn.own, written, js=_attempt(TRIES[name]))
    remember("forge", kept)


def _attempt(entry: Try) -> str:
    example = json.dumps({"text": entry.text, "hide": [entry.hide]})
    opened = json.dumps({"__type__": "update", **({"open": True} if entry.fake else {})})
    again = "own && { ...own, offer: (own.offer ?? 0) + 1 }"
    values = f"[{entry.temperature}, {json.dumps(entry.fake)}, {opened}, {again}]"
    return f"(own) => {{ Cloze.chooseExample({example}); return {values}; }}"


# --- answers: plain values in, plain values out ---------------------------------------------------


def _stale(question: Mapping[str, Any]) -> bool:
    """Whether the visitor's words belong to another sentence."""
    before = last_of(question).get("text")
    return before is not None and before != question["sentence"].get("text")


def _cut(game: Mapping[str, Any]) -> int:
    """A number for where the pieces of a round stand in its text."""
    return crc32(repr([(token["start"], token["end"]) for token in game["tokens"]]).encode())


async def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """A round as the lab shows it."""
    if not isinstance(question["sentence"], Mapping):
        return [gr.skip()] * SHOWN
    stale = _stale(question)
    question = {**question, "fakes": [] if stale else question["fakes"]}
    game = await play(session, question)
    cut = _cut(game)
    # Another discriminator's pieces would put the visitor's words into other places.
    if question["fakes"] and last_of(question).get("cut", cut) != cut:
        stale, question = True, {**question, "fakes": []}
        game = await play(session, question)
    score = scored(question, game)
    counted = score != scores.read(question["score"]) or not last_of(question)
    above = await _unread(session, question["sentence"], game)
    mine, judge = game["mine"], game["chosen"]
    text = str(question["sentence"]["text"])
    row = verdicts(
        shown.forged_tokens(game),
        Wording("The forged sentence"),
        threshold=THRESHOLD,
        text=text,
        by=session.languages(judge.name),
    )
    own = verdicts(
        shown.own_tokens(game),
        Wording("Your sentence: choose a word"),
        threshold=THRESHOLD,
        text=text,
        cut=cut,
        offered=shown.first_pick(game),
    )
    names = [(each.title.partition(" · ")[0], each.name) for each in game["detectives"]]
    radio: dict[str, Any] = {"choices": names, "visible": len(names) > 1}
    if question["detective"] != judge.name:
        radio["value"] = judge.name
    return [
        {
            "text": text,
            "cut": cut,
            "model": question["sentence"]["model"],
            "roll": question["roll"],
            "fakes": question["fakes"],
        },
        gr.Radio(**radio),
        shown.who(game, above),
        row,
        generated(shown.gaps(game)) if game["gaps"] else None,
        joined(*game["summary"], flat_note(game["after"])),
        shown.learned_from(game),
        shown.learned(game),
        shown.drawn(game),
        shown.numbers(game),
        game["code"],
        own,
        [] if stale else gr.skip(),
        shown.notes(game) if mine else None,
        # A score that has not changed is not sent: the visitor may have put it back meanwhile.
        *([scores.board(score), score] if counted else [gr.skip()] * 2),
    ]


async def _unread(session: Session, sentence: Mapping[str, Any], game: Mapping[str, Any]) -> Any:
    """What the model of the sentence block does not read; the block says so itself."""
    if not shown.unread(game):
        return {}
    return unread_of((await session.tokenize(game["text"], str(sentence["model"]))).tokens)


def reset(_: Mapping[str, Any]) -> list[Any]:
    """No attempt is counted any more."""
    return [scores.board(scores.EMPTY), scores.EMPTY]


async def draw(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """The judged sentence as a drawing."""
    if not isinstance(question["sentence"], Mapping):
        return [gr.skip()]
    game = await play(session, {**question, "fakes": []})
    tokens = [
        Judged(text=each["text"], chance=each["chance"], note=each["note"])
        for each in shown.forged_tokens(game)
    ]
    title = Wording("{0}: probability that each token was replaced", game["chosen"].name)
    return [verdicts_svg(tokens, title=title, threshold=THRESHOLD)]


def scored(question: Mapping[str, Any], game: Mapping[str, Any]) -> dict[str, Any]:
    """The score after this round: new words count, and draws that the visitor asked for."""
    found, last = scores.read(question["score"]), last_of(question)
    if _stale(question) or not last:
        return found
    here = (game["chosen"].name, [token["id"] for token in game["tokens"]])
    if question["fakes"] != last.get("fakes"):
        own = [fake for fake in shown.fakes(game) if fake["id"] is not None]
        chances = game["mine"]["verdicts"] if own else []
        found = scores.count(
            found,
            "human",
            [
                ((here, fake["position"], fake["id"]), chances[fake["position"]] < THRESHOLD)
                for fake in own
            ],
        )
    if question["roll"] != last.get("roll") and game["after"]:
        real = [gap for gap in game["gaps"] if not gap["lucky"] and not gap["written"]]
        found = scores.count(
            found,
            "generator",
            [
                (
                    (here, question["roll"], gap["position"], gap["sample"]["id"]),
                    game["after"][gap["position"]] < THRESHOLD,
                )
                for gap in real
            ],
        )
    return found
