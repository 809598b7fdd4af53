"""Tiny models over every kind of tokenizer, and small labelled sets."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.data import documents
from core_models.tasks import sets
from core_models.tokenizer import Tokenizer
from core_models.tokenizer.files import Specials, Template

PRIMER = Path(__file__).parents[2] / "assets" / "primer"
FAMILIES = {
    "bert": ("bert-tiny", "wordpiece"),
    "roberta": ("roberta-base", "byte_bpe"),
    "albert": ("albert-base-v2", "unigram"),
    "xlnet": ("xlnet-base-cased", "trailing"),
}
"""Size and tokenizer: each kind of tokenizer and template once."""


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """The tensors are tiny: threads would only wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tokenizers() -> dict[str, Tokenizer]:
    files = sorted(PRIMER.glob("*-world.txt"))  # English and Chinese
    texts = [s for d in documents.read(files) for s in d]
    some = [*texts[:700], *texts[-300:]]
    angled = Specials(pad="<pad>", unknown="<unk>")
    return {
        "wordpiece": Tokenizer.train(some, vocabulary=2500),
        "byte_bpe": Tokenizer.train(some, vocabulary=1500, kind="byte_bpe"),
        "unigram": Tokenizer.train(some, vocabulary=2500, kind="unigram"),
        "trailing": Tokenizer.train(
            some, vocabulary=2500, kind="unigram", template=Template.trailing(angled)
        ),
    }


def tiny(family: str, tokenizers: dict[str, Tokenizer], *, layers: int = 2) -> cm.Model:
    size, kind = FAMILIES[family]
    tokenizer = tokenizers[kind]
    base = cm.size(size).with_vocabulary(tokenizer.vocabulary, pad_id=tokenizer.pad_id)
    table = base.embeddings
    config = replace(
        base,
        width=32,
        initial_std=0.1,  # larger than published: so small a model would learn too slowly
        embeddings=replace(
            table,
            width=16 if table.width < base.width else 32,
            positions=table.positions and 130,
            first_position=table.first_position and tokenizer.pad_id + 1,  # as files have it
        ),
        attention=replace(base.attention, heads=2, head_width=16),
        feed_forward=replace(base.feed_forward, width=64),
        schedule=(0,) * layers if base.blocks == 1 else tuple(range(layers)),
    )
    made = cm.Model.new(config, tokenizer, generator=torch.Generator().manual_seed(5))
    made.name = f"tiny-{family}"
    return made.eval()


@pytest.fixture(scope="session", params=FAMILIES)
def model(request: pytest.FixtureRequest, tokenizers: dict[str, Tokenizer]) -> cm.Model:
    """A tiny model of each family in :data:`FAMILIES`."""
    return tiny(request.param, tokenizers)


@pytest.fixture(scope="session")
def bert(tokenizers: dict[str, Tokenizer]) -> cm.Model:
    return tiny("bert", tokenizers)


def first_rows(name: str, train: int = 8, dev: int = 8) -> sets.TaskSet:
    """The first rows of a shipped set."""
    whole = sets.load(name)
    return replace(whole, train=whole.train[:train], dev=whole.dev[:dev])
