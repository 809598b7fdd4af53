"""The Forge tab: a generator fills gaps and a discriminator judges every token (ELECTRA).

The view is drawn by forge.js. The sentence and what is hidden come from the sentence bar; the pair
of models is the bar's own where it is a discriminator or a generator, else the first installed one.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

import core_models as cm
from app.labs.forge import answers as forge
from app.page.sentence import Shared
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.ask import clean_marks, clean_name, read_revision
from app.serving.names import GENERATOR, RUN_PREFIX, loadable
from app.serving.session import Session
from core_models import InputError
from viz.records import records_csv
from viz.svg import Wording
from viz.verdicts import Judged, verdicts_svg


class Controls(NamedTuple):
    """What the tab consists of."""

    forge: gr.HTML
    """Asks with ``ask`` (a round) and ``save`` (its file)."""


class Detective(NamedTuple):
    """A model that judges tokens."""

    name: str
    title: str
    generator: bool
    """Its generator is there, too."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("forge", events=["ask", "save"], module="labs/forge/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    listen(controls.forge, {"ask": partial(show, session), "save": partial(export, session)})


async def show(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A round for the page, with the revision of its question."""
    revision = read_revision(question)
    try:
        return {"rev": revision, "error": None, **await _play(session, question)}
    except InputError as error:
        return {"rev": revision, "error": str(error)}


async def export(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The round as a file: ``what`` "svg" (the judged sentence) or "csv" (a row per token)."""
    kind = read_file_kind(question.get("what"))
    answer = await show(session, question)
    if answer["error"]:
        return answer
    if answer["kind"] != "game":
        raise InputError("There is nothing to save yet.")
    text = _csv(answer) if kind == "csv" else _svg(answer)
    return file_answer(question, "cloze-forge", kind, text)


def _csv(answer: Mapping[str, Any]) -> str:
    nothing = [None] * len(answer["tokens"])
    gaps = {gap["position"]: gap for gap in answer["gaps"]}
    mine = answer["mine"] or {"fakes": [], "verdicts": nothing}
    fakes = {fake["position"]: fake["word"] for fake in mine["fakes"] if fake["id"] is not None}
    after = answer["after"] or nothing
    rows = []
    for token in answer["tokens"]:
        position = token["position"]
        gap = gaps.get(position)
        rows.append(
            [
                position,
                token["piece"],
                answer["before"][position],
                gap["sample"]["piece"] if gap else None,
                int(gap["lucky"]) if gap else None,
                after[position],
                fakes.get(position),
                mine["verdicts"][position],
            ]
        )
    header = ("position", "piece", "replaced_untouched", "forged", "lucky", "replaced_forged")
    return records_csv((*header, "mine", "replaced_mine"), rows)


def _svg(answer: Mapping[str, Any]) -> str:
    gaps = {gap["position"]: gap for gap in answer["gaps"]}
    tokens = []
    for token, chance in zip(answer["tokens"], answer["after"] or answer["before"], strict=True):
        text, note = token["text"], ""
        if gap := gaps.get(token["position"]):
            text = gap["sample"]["display"]
            note = Wording("lucky") if gap["lucky"] else Wording("was {0}", token["text"])
        tokens.append(Judged(text=text, chance=chance, note=note))
    title = Wording("{0}: probability that each token was replaced", answer["chosen"]["name"])
    return verdicts_svg(tokens, title=title, threshold=answer["threshold"])


def detectives(session: Session) -> list[Detective]:
    """Every model here that judges tokens; those with a generator come first."""
    found = [
        Detective(info.name, info.title, session.has_generator(info.name))
        for info in session.models()
        if "replaced_token" in info.heads
    ]
    # Only runs of this kind keep a generator; their heads are in files that are not read here.
    runs = session.library.models() if session.library else []
    found += [Detective(name, title, True) for name, title in runs if session.has_generator(name)]
    return sorted(found, key=lambda detective: not detective.generator)


def _chosen(found: list[Detective], question: Mapping[str, Any], model: str) -> Detective:
    names = (question.get("detective"), model, model.removesuffix(GENERATOR))
    by_name = {detective.name: detective for detective in found}
    return next((by_name[name] for name in names if name in by_name), found[0])


def readable(text: str, *models: cm.Model) -> str:
    """As much of a text as all of these models read, up to the end of a word.

    Args:
        text: Of any length.
        models: Of one vocabulary. DeBERTa v3's generator has a table of absolute positions, its
            discriminator has none: they need not read equally far.
    """
    longest = min(model.longest for model in models)
    encoding = models[0].tokenizer.encode(text, max_length=longest)
    if not encoding.truncated:
        return text
    words = [place for place, word in enumerate(encoding.words) if word is not None]
    last = encoding.words[words[-1]]
    # The last word may have been cut in two: it goes, unless nothing else would stay.
    kept = [place for place in words if encoding.words[place] != last] or words
    return text[: encoding.offsets[kept[-1]][1]]


async def _play(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    model = clean_name(question.get("model"))
    found = await asyncio.to_thread(detectives, session)
    if not found:
        return {"kind": "missing"}
    chosen = _chosen(found, question, model)
    discriminator = await asyncio.to_thread(session.model, chosen.name)
    generator = None
    if chosen.generator:
        generator = await asyncio.to_thread(session.generator_of, chosen.name)
    marks = clean_marks(question.get("marks", ()))
    game = forge.read_game(question, ())
    if marks:
        # The sentence bar may cut the text into other pieces: what is hidden are characters.
        tokens = (await session.tokenize(game.text, model)).tokens
        spans = [
            (tokens[mark.position].start, tokens[mark.position].end)
            for mark in marks
            if mark.position < len(tokens) and not tokens[mark.position].special
        ]
        game = forge.read_game(question, spans)
    whole = game.text
    if generator is not None:
        game = replace(game, text=readable(whole, discriminator, generator))
    answer = await session.compute(lambda: forge.play(discriminator, generator, game))
    answer["truncated"] |= game.text != whole
    twin = None
    if generator is not None:
        twin = f"{chosen.name}{GENERATOR}"
        if chosen.name.startswith(RUN_PREFIX):
            twin = str(Path(loadable(chosen.name)).with_name("generator"))
    return {
        "kind": "game",
        "detectives": [detective._asdict() for detective in found],
        "chosen": chosen._asdict(),
        "generator": twin,
        "by": [chosen.name],
        **answer,
        "code": forge.code_lines(loadable(chosen.name), twin, game, answer),
    }
