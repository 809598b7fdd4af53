"""The sentence bar: text, model, seed and the chips. Every tab looks at what it holds.

The browser keeps the sentence and its marks (``Cloze.sentence`` in shell.js); a tab's view asks
Python with all of it in the event, so no handler needs anything from an earlier one.
"""

import asyncio
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.parts.views import listen, view
from app.serving.ask import clean_name, clean_rate, read_revision, whole_number
from app.serving.draws import LAWS, Draw
from app.serving.examples import DEFAULT, EXAMPLES
from app.serving.pieces import Sentence
from app.serving.session import Session
from app.serving.settings import Settings
from core_models import InputError


class Shared(NamedTuple):
    """The components that every tab may listen to."""

    text: gr.Textbox
    model: gr.Dropdown
    seed: gr.Number
    chips: gr.HTML
    """Value: see :func:`describe`; drawn by chips.js, which feeds ``Cloze.sentence``."""
    tools: gr.HTML


def build(session: Session, settings: Settings) -> Shared:
    """Lay the bar out; the opening sentence is cut into pieces at once, so it shows at once."""
    models = session.choices()
    names = [name for _, name in models]
    chosen = settings.model if settings.model in names else next(iter(names), None)
    with gr.Column(elem_id="sentence", elem_classes=["card"], min_width=0):
        with gr.Row(elem_id="sentence-top", equal_height=False):
            text = gr.Textbox(
                DEFAULT,
                label="Sentence",
                lines=1,
                max_lines=6,
                elem_id="sentence-text",
                scale=5,
                min_width=240,
                placeholder="Type a sentence",
                html_attributes=gr.InputHTMLAttributes(spellcheck=False, autocorrect="off"),
            )
            model = gr.Dropdown(
                models,
                value=chosen,
                label="Model",
                elem_id="sentence-model",
                scale=1,
                min_width=170,
                filterable=False,
            )
        view("examples", list(EXAMPLES))
        chips = view("chips", read(session, DEFAULT, chosen), elem_id="cloze-chips")
        with gr.Row(elem_id="sentence-tools", equal_height=False):
            tools = view("tools", events=["draw"])
            seed = gr.Number(
                1,
                label="Seed",
                precision=0,
                minimum=0,
                elem_id="sentence-seed",
                min_width=80,
                interactive=True,
            )
        view("model-card")
    return Shared(text, model, seed, chips, tools)


def wire(shared: Shared, session: Session) -> None:
    """Read the text when it or the model changes; draw a masking when asked."""

    async def on_read(text: str, model: str) -> dict[str, Any]:
        return await asyncio.to_thread(read, session, text, model)

    # Not `input`: the text box sends that on key presses only, so pasting would go unnoticed.
    gr.on(
        [shared.text.change, shared.model.change],
        on_read,
        [shared.text, shared.model],
        shared.chips,
        show_progress="hidden",
        trigger_mode="always_last",
        concurrency_limit=None,
        queue=False,
        api_visibility="private",
    )
    listen(shared.tools, {"draw": partial(draw, session)})


def read(session: Session, text: str, model: str | None) -> dict[str, Any]:
    """The chips of a text, or the reason why there are none."""
    try:
        found = session.sentence(text, clean_name(model))
        return {**describe(found), "card": session.card(found.model)}
    except InputError as error:
        return {"text": str(text)[:200], "model": model, "tokens": [], "error": str(error)}


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
    unknown = list(dict.fromkeys(token.text for token in sentence.tokens if token.unknown))
    if unknown:
        some = ", ".join(unknown[:6]) + (" and more" if len(unknown) > 6 else "")
        notes.append(f"{sentence.model} has no piece for {some} and reads [UNK] instead.")
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


async def draw(session: Session, question: Any) -> dict[str, Any]:
    """A random masking for the page, with the revision of its question."""
    revision = read_revision(question)
    try:
        drawn = await session.random_mask(
            question.get("text"),
            clean_name(question.get("model")),
            seed=whole_number(question.get("seed"), "seed", 0, 2**31 - 1),
            rate=clean_rate(question.get("rate", 0.15)),
            kind=question.get("kind", "uniform"),
        )
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {"rev": revision, "error": None, **describe_draw(drawn)}


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
