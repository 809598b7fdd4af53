"""The sentence block: text, model, the chips and how they are drawn. Labs look at what it holds.

The browser keeps the sentence and its marks (``Cloze.sentence`` in shell.js); a tab's view asks
Python with all of it in the event, so no handler needs anything from an earlier one.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.page import open_model, proof
from app.parts.controls import OpenDropdown
from app.parts.views import listen, view
from app.serving.ask import clean_name, clean_rate, whole_number
from app.serving.draws import LAWS, Draw
from app.serving.examples import CHINESE, DEFAULT, EXAMPLES
from app.serving.languages import READERS, reader_of, script_of
from app.serving.pieces import Sentence, unread_note, unread_of
from app.serving.session import Session
from app.serving.settings import Settings
from core_models import InputError


class Shared(NamedTuple):
    """The components that every lab may listen to."""

    text: gr.Textbox
    model: gr.Dropdown
    chips: gr.HTML
    """Value: see :func:`describe`; drawn by chips.js, which feeds ``Cloze.sentence``."""
    tools: gr.HTML
    opening: open_model.Controls | None
    """Where a visitor opens a model; None where nobody may."""
    proved: proof.Controls


def build(session: Session, settings: Settings) -> Shared:
    """Lay the block out; the opening sentence is cut into pieces at once, so it shows at once."""
    models = session.choices()
    names = [name for _, name in models]
    chosen = settings.model if settings.model in names else next(iter(names), None)
    chinese = READERS["zh"]
    openings = {"zh": [CHINESE[0]["text"], chinese]} if chinese in names else {}
    with gr.Column(elem_id="sentence", min_width=0):
        with gr.Row(elem_id="sentence-top", equal_height=False):
            text = gr.Textbox(
                DEFAULT,
                label="Sentence",
                show_label=False,
                lines=1,
                max_lines=4,
                elem_id="sentence-text",
                scale=5,
                min_width=320,
                placeholder="Type a sentence",
                html_attributes=gr.InputHTMLAttributes(spellcheck=False, autocorrect="off"),
            )
            model = OpenDropdown(
                models,
                value=chosen,
                label="Model",
                show_label=False,
                elem_id="sentence-model",
                scale=1,
                min_width=170,
                filterable=False,
            )
            if session.opened and session.opened.policy.opens:
                view("opener")
            view("answering")
        chips = view("chips", read(session, DEFAULT, chosen), elem_id="cloze-chips")
        tools = view("tools", events=["draw", "choose"])
        gr.Number(
            1,
            label="Seed",
            precision=0,
            minimum=0,
            elem_id="sentence-seed",
            min_width=80,
            interactive=True,
        )
        view("examples", {"examples": list(EXAMPLES), "openings": openings})
        view("model-card")
        proved = proof.build()
        opening = open_model.build(session)
        view("notes")
    return Shared(text, model, chips, tools, opening, proved)


def wire(shared: Shared, session: Session) -> None:
    """Read the text when it or the model changes; draw a masking when asked; choose a model."""

    async def on_read(text: str, model: str) -> dict[str, Any]:
        return await asyncio.to_thread(read, session, text, model)

    # Not `input`: the text box sends that on key presses only, so pasting would go unnoticed.
    gr.on(
        [shared.text.change, shared.model.change],
        on_read,
        [shared.text, shared.model],
        shared.chips,
        show_progress="hidden",
        show_progress_on=[],
        trigger_mode="always_last",
        concurrency_limit=None,
        queue=False,
        api_visibility="private",
    )
    # In the page alone: an answer of the server could come after that to a later choice.
    shared.tools.choose(None, None, shared.model, js="() => Cloze.chosenModel")
    listen(shared.tools, {"draw": partial(draw, session)})
    proof.wire(shared.proved, shared.text, shared.model, session)
    if shared.opening:
        open_model.wire(shared.opening, shared.model, session)


def read(session: Session, text: str, model: str | None) -> dict[str, Any]:
    """The chips of a text, or the reason why there are none."""
    try:
        found = session.sentence(text, clean_name(model))
        card = session.card(found.model)
        return {
            **describe(found),
            "card": card,
            "advice": advise(session, text, card["language"]),
            "script": script_of(text),
        }
    except InputError as error:
        return {"text": str(text)[:200], "model": model, "tokens": [], "error": str(error)}


def advise(session: Session, text: str, language: str) -> dict[str, Any] | None:
    """Who reads a text in a script that the model does not read; None where it does.

    ``model``: the first installed one that fills gaps in that script, or None; ``language``: the
    model's own; ``example``: a sentence of that language with what to hide in it.
    """
    script = script_of(text)
    if script in (None, language):
        return None
    example = CHINESE[0] if language == "zh" else EXAMPLES[0]
    return {"model": reader_of(session, script), "language": language, "example": example}


def describe(sentence: Sentence) -> dict[str, Any]:
    """A sentence as chips.js wants it: text, model, tokens, notes, error."""
    notes = []
    if sentence.truncated:
        # What the bar counts are the pieces of the text.
        own = sum(not token.special for token in sentence.tokens)
        notes.append(
            f"This text is longer than {sentence.model} reads at once: it is cut after {own} "
            f"pieces. With {len(sentence.tokens) - own} special ones that is the most it reads."
        )
    if unread := unread_note(sentence.model, unread_of(sentence.tokens)):
        notes.append(unread)
    if sentence.blank:
        notes.append(sentence.blank)
    tokens = [asdict(token) for token in sentence.tokens]
    return {
        "text": sentence.text,
        "model": sentence.model,
        "tokens": tokens,
        "notes": notes,
        "error": None,
    }


async def draw(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A random masking for the page."""
    drawn = await session.random_mask(
        question.get("text"),
        clean_name(question.get("model")),
        seed=whole_number(question.get("seed"), "seed", 0, 2**31 - 1),
        rate=clean_rate(question.get("rate", 0.15)),
        kind=question.get("kind", "uniform"),
    )
    return describe_draw(drawn)


def describe_draw(drawn: Draw) -> dict[str, Any]:
    """A random masking as plain values."""
    marks = [
        {"position": mark.position, "case": mark.case, "piece": mark.piece, "shown": shown}
        for mark, shown in zip(drawn.marks, drawn.shown, strict=True)
    ]
    return {
        "text": drawn.sentence.text,
        "model": drawn.sentence.model,
        "marks": marks,
        "kind": drawn.kind,
        "seed": drawn.seed,
        "lengths": list(drawn.lengths),
        "law": list(LAWS.get(drawn.kind, ())),
    }
