"""Rounds of the Forge lab, and small models that play them."""

import asyncio
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

import core_models as cm
from app.labs.forge import lab as tab
from app.serving.session import Session

TEXT = "The capital of France is Paris."
LINES = [TEXT, "Bees make honey , and the bees fly from flower to flower ."] * 4


def save_models(folder):
    """A detective with its generator, and one without; all small and random."""
    tokenizer = cm.Tokenizer.train(LINES, vocabulary=150)
    config = replace(
        cm.size("electra-small-discriminator").with_vocabulary(tokenizer.vocabulary),
        initial_std=0.1,
    )
    named = {"sleuth": ["replaced_token"], "alone": ["replaced_token"]}
    named["sleuth-generator"] = ["masked_token"]
    for seed, (name, heads) in enumerate(named.items()):
        generator = torch.Generator().manual_seed(seed)
        cm.Model.new(config, tokenizer, heads=heads, generator=generator).save(folder / name)
    return folder


@contextmanager
def open_session(models, **libraries):
    """The service over the models of a folder, and those of other libraries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(models))
        session = Session(**libraries)
        yield session
        session.close()


def question(text=TEXT, model="sleuth", marks=(), **values):
    """What the lab's components hold."""
    sentence = {"text": text, "model": model, "marks": list(marks)}
    plain = {"roll": 3, "seed": 1, "temperature": 1, "detective": "", "fakes": []}
    return {"sentence": sentence, **plain, "last": {}, "score": None, **values}


def ask(session, **values):
    """The answer to a question."""
    return asyncio.run(tab.play(session, question(**values)))


def hide(*positions):
    """Marks that hide these positions."""
    return [{"position": position, "case": "mask"} for position in positions]
