"""Questions to the Why lab, and models of every head to ask them of."""

import asyncio
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

import core_models as cm
from app.labs.why import answers as why
from app.labs.why import replies as tab
from app.labs.why.service import Progress
from app.parts.controls import InsteadError
from app.serving.session import Session
from core_models import InputError
from tests.waiting import PATIENCE, until

MODEL = "bert-mini"
TEXT = "The capital of France is Paris."
MARKS = [{"position": 6, "case": "mask"}]
LINES = [TEXT, "Bees make honey , and the bees fly from flower to flower ."] * 4


@contextmanager
def open_session(folder):
    """The service over small random models with heads that the shipped one lacks."""
    tokenizer = cm.Tokenizer.train(LINES, vocabulary=150)
    config = replace(cm.size("bert-tiny").with_vocabulary(tokenizer.vocabulary), initial_std=0.2)
    start = cm.Model.new(config, tokenizer, heads=[], generator=torch.Generator().manual_seed(1))
    small = cm.size("electra-small-discriminator").with_vocabulary(tokenizer.vocabulary)
    sleuth = replace(small, schedule=(0, 1), initial_std=0.1)
    cm.Model.new(sleuth, tokenizer, heads=["replaced_token"]).save(folder / "sleuth")
    start.with_head("classify", ("sad", "glad")).save(folder / "mood")
    start.with_head("tag", ("O", "PLACE")).save(folder / "names")
    start.with_head("span").save(folder / "reader")
    start.with_head("regress").save(folder / "grader")
    start.with_head("similarity").save(folder / "twins")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(folder))
        session = Session()
        yield session
        session.close()


def question(**values):
    """What the lab's controls hold; the sentence's own values by their names."""
    sentence = {"text": TEXT, "model": MODEL, "marks": [], "language": "en"}
    sentence |= {name: values.pop(name) for name in tuple(values) if name in sentence}
    more = {"visitor": "me", "sentence": sentence, "of": sentence, "shown": None, "given_up": None}
    return {**more, **tab.FIRST, **values}


def without_end(attribute, gate):
    """A method that goes on until a gate is opened, or nobody waits for it."""

    def waits(method, function, *rest):
        while not gate.wait(0.01):
            function.tell(0.5)
        return attribute(method, function, *rest)

    return waits


def ask(explainer, *, seed=None, **values):
    """Ask again and again until there is an explanation, or with a seed a check, or an error."""
    asked = question(**values)

    async def poll():
        try:
            model, planned, scene = await explainer.plan(why.read(asked))
            async with asyncio.timeout(PATIENCE):
                while isinstance(found := await look(model, planned), Progress):
                    pass
        except InputError as error:
            return {"error": str(error), **await explainer.able(asked["sentence"]["model"])}
        code = explainer.code(scene, planned)
        return {"error": None, "scene": scene, "code": code, "answer": found}

    async def look(model, planned):
        if seed is None:
            return await explainer.explain(model, planned, "me")
        return await explainer.check(model, planned, seed, "me")

    return asyncio.run(poll())


def told(explainer, answering=tab.show, **values):
    """What the lab shows, by the names of its parts, with what went wrong as ``problem``."""
    problem = ""
    try:
        found = asyncio.run(answering(explainer, question(**values)))
    except InsteadError as error:
        problem, found = str(error), error.values
    return {**dict(zip(tab.TOLD, found, strict=True)), "problem": problem}


def finish(desk):
    """Wait until nobody works at the desk."""
    assert until(lambda: not desk.busy())
