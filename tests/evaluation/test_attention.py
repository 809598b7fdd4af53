"""How widely attention looks: counts by hand, and padding that changes nothing."""

import math
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.evaluation import attention
from core_models.evaluation.attention import evaluate_attention, plain_texts
from core_models.model import SHIPPED
from core_models.network.trace import Trace
from tests.core.foreign_models import saved
from tests.core.tiny_models import new, tiny

TEXTS = ["the cat sees a dog.", "a dog.", "the dog and the cat see a cat."]


@pytest.mark.parametrize("name", ["bert-mini", "xlnet-base", "albert-base", "ettin-17m"])
def test_figures_are_those_of_each_sentence_alone(name: str) -> None:
    model = new(tiny(name))
    found = evaluate_attention(model, TEXTS)
    spread, square, looks, tokens = 0.0, 0.0, 0, 0
    for text in TEXTS:
        trace = Trace(("probabilities", "residual"))
        with torch.no_grad():
            model.encoder(model.collate([model.tokenizer.encode(text)]), trace)
        shares = trace.records["probabilities", 1, "content"][0]
        spread -= sum(p * math.log(p) for p in shares.flatten().tolist() if p > 0)
        states = trace.records["residual", 1, "content"][0]
        square += float(states.square().mean(-1).sum())
        looks, tokens = looks + shares.shape[0] * shares.shape[1], tokens + states.shape[0]
    assert len(found.entropy) == len(found.residual) == model.config.steps
    assert found.entropy[1] == pytest.approx(spread / looks, abs=1e-6)
    assert found.residual[1] == pytest.approx(math.sqrt(square / tokens), rel=1e-5)


def test_attention_that_looks_at_all_alike_or_at_one_token() -> None:
    model = new(tiny("bert-mini"))
    attention = model.encoder.blocks[0].attention
    with torch.no_grad():
        attention.query.weight.zero_()
        attention.query.bias.zero_()
    length = len(model.tokenizer.encode(TEXTS[0]).ids)
    assert evaluate_attention(model, TEXTS[:1]).entropy[0] == pytest.approx(math.log(length))
    with torch.no_grad():
        attention.query.bias.fill_(1e6)
    assert evaluate_attention(model, TEXTS[:1]).entropy[0] < 0.01


@pytest.mark.parametrize("kind", ["convbert", "mobilebert"])
def test_a_model_that_reads_padding_sees_none(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(kind, tmp_path)
    model = cm.load(tmp_path)
    found = evaluate_attention(model, TEXTS)
    monkeypatch.setattr(attention, "_ROWS", 1)
    alone = evaluate_attention(model, TEXTS)
    assert found.entropy == pytest.approx(alone.entropy, abs=1e-5)
    assert found.residual == pytest.approx(alone.residual, rel=1e-5)


def test_no_sentence_is_refused() -> None:
    with pytest.raises(InputError, match="there is none"):
        evaluate_attention(new(tiny("bert-mini")), [])
    for texts in (None, "The cat.", [3]):
        with pytest.raises(InputError, match="texts must"):
            evaluate_attention(new(tiny("bert-mini")), texts)  # type: ignore[arg-type]


def test_the_default_model_looks_at_several_tokens() -> None:
    model = cm.load(SHIPPED / "bert-mini")
    found = evaluate_attention(model, plain_texts("en"))
    assert min(found.entropy) > 0.5
    assert max(found.residual) < 10
