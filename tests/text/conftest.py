"""A vocabulary learnt from the Primer and a tiny model, made once per run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.data import documents
from core_models.tokenizer import Tokenizer

KINDS = ("wordpiece", "byte_bpe", "unigram")
PRIMER = Path(__file__).parents[2] / "assets" / "primer"


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """The tensors are tiny: threads would only wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def english() -> list[Path]:
    return sorted(PRIMER.glob("english-*.txt"))


@pytest.fixture(scope="session")
def sentences(english: list[Path]) -> list[str]:
    return [sentence for document in documents.read(english) for sentence in document]


@pytest.fixture(scope="session")
def tokenizer(sentences: list[str]) -> Tokenizer:
    return Tokenizer.train(sentences, vocabulary=3000)


@pytest.fixture(scope="session")
def model(tokenizer: Tokenizer) -> cm.Model:
    config = cm.size("bert-tiny").with_vocabulary(tokenizer.vocabulary)
    made = cm.Model.new(config, tokenizer, generator=torch.Generator().manual_seed(3))
    # Random weights say nearly the same everywhere; larger ones make mistakes visible.
    with torch.no_grad():
        made.encoder.embeddings.pieces.weight.mul_(6.0)
    return made.eval()


@pytest.fixture(scope="session", params=KINDS)
def any_kind(request: pytest.FixtureRequest, sentences: list[str]) -> Tokenizer:
    return Tokenizer.train(sentences[:3000], vocabulary=1500, kind=request.param)


@pytest.fixture(scope="session")
def awkward() -> list[str]:
    """Texts that tend to break offsets, word groups and files."""
    return [
        "Hello, world!",
        "The ]cat[ sat on <it>.",
        "👩‍👩‍👧 smiled 🙂🙂",
        "שלום עולם and مرحبا",
        "e\u0301 é ﬁ ½ \u200bzero\u00a0width",
        "我们去北京 today。",
        "don't re-enter 3.14 a_b <script>alert(1)</script>",
        "\ttabs\nand lines  ",
    ]
