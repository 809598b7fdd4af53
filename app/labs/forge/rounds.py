"""A round of the Forge lab: who judges, what is forged, and what becomes of it. No Gradio in it."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import core_models as cm
from app.labs.forge import answers as forge
from app.serving.ask import clean_marks, clean_name
from app.serving.names import FOLDER_PREFIX, GENERATOR, RUN_PREFIX
from app.serving.session import Session
from core_models import InputError


class Detective(NamedTuple):
    """A model that judges tokens."""

    name: str
    title: str
    generator: bool
    """Its generator is there, too."""


def last_of(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was answered last, as the page sends it along."""
    return question["last"] if isinstance(question["last"], Mapping) else {}


def detectives(session: Session) -> list[Detective]:
    """Every model here that judges tokens: those with a generator come first, and of them ELECTRA.

    It answers first, and the lab is about its way of learning.
    """
    found = [
        Detective(info.name, info.title, session.has_generator(info.name))
        for info in sorted(session.models(), key=lambda info: info.family != "electra")
        if "replaced_token" in info.heads
    ]
    for name, title in session.opened.models() if session.opened else []:
        with contextlib.suppress(InputError, OSError):  # it was replaced or deleted a moment ago
            if "replaced_token" in session.inspected(name).heads:
                found.append(Detective(name, title, session.has_generator(name)))
    # Only runs of this kind keep a generator; their heads are in files that are not read here.
    runs = session.library.models() if session.library else []
    found += [Detective(name, title, True) for name, title in runs if session.has_generator(name)]
    return sorted(found, key=lambda detective: not detective.generator)


def chosen(found: Sequence[Detective], question: Mapping[str, Any], model: str) -> Detective:
    """Who judges: what the visitor has chosen last, in the lab or in the sentence block."""
    names = [model, model.removesuffix(GENERATOR)]
    here = [str(question["detective"])]
    before = last_of(question).get("model", model)
    by_name = {detective.name: detective for detective in found}
    order = [*names, *here] if model != before or here == [""] else [*here, *names]
    return next((by_name[name] for name in order if name in by_name), found[0])


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


def generator_path(session: Session, judge: str) -> str:
    """What ``cm.load`` takes for the generator of a discriminator that has one."""
    if judge.startswith((RUN_PREFIX, FOLDER_PREFIX)):
        return str(PurePosixPath(session.loadable(judge)).with_name("generator"))
    return f"{judge}{GENERATOR}"


async def play(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A round as plain values (``answers.play``), and whose it is.

    Raises:
        InputError: No model judges tokens, or what was asked cannot be used.
    """
    sentence = question["sentence"]
    model = clean_name(sentence.get("model"))
    game = forge.read_game(sentence.get("text"), question)
    found = await asyncio.to_thread(detectives, session)
    if not found:
        raise InputError(
            "No model that judges tokens is installed here. A discriminator and its generator come "
            "from one training run: choose ELECTRA in the Train tab, or run python -m "
            "zoo build electra-mini."
        )
    judge = chosen(found, question, model)
    discriminator = await asyncio.to_thread(session.model, judge.name)
    generator = None
    if judge.generator:
        generator = await asyncio.to_thread(session.generator_of, judge.name)
    if marks := clean_marks(sentence.get("marks", ())):
        # The sentence block may cut the text into other pieces: what is hidden are characters.
        tokens = (await session.tokenize(game.text, model)).tokens
        spans = [
            (tokens[mark.position].start, tokens[mark.position].end)
            for mark in marks
            if mark.position < len(tokens) and not tokens[mark.position].special
        ]
        game = replace(game, spans=tuple(spans))
    whole = game.text
    if generator is not None:
        game = replace(game, text=readable(whole, discriminator, generator))
    result = await session.compute(
        lambda: forge.play(discriminator, generator, game), discriminator
    )
    result["truncated"] |= game.text != whole
    twin = None if generator is None else generator_path(session, judge.name)
    opened = judge.name.startswith(FOLDER_PREFIX)
    return {
        "detectives": found,
        "chosen": judge,
        # The path of an opened folder is not told; its generator's is always called the same.
        "generator": "generator" if twin and opened else twin,
        "text": game.text,
        "seed": game.seed,
        **result,
        "code": forge.code_lines(session.loadable(judge.name), twin, game, result),
    }
