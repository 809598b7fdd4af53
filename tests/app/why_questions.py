"""Questions to the Why tab, asked as its page does, and models of every head to ask them of."""

import asyncio
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

import core_models as cm
from app.labs.why import lab as tab
from app.serving.session import Session

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


def ask(explainer, answer=tab.show, visitor="me", **values):
    """Ask as the page does, again and again until there is an answer."""
    question = {"rev": 7, "text": TEXT, "model": MODEL, "marks": [], **values}

    async def poll():
        while (found := await answer(explainer, question, visitor)).get("state") == "working":
            pass
        return found

    return asyncio.run(poll())


def finish(desk):
    """Wait until nobody works at the desk."""
    limit = time.monotonic() + 20
    while desk.busy():
        assert time.monotonic() < limit
        time.sleep(0.005)
