"""The prediction after every layer: what the head makes of states taken from the encoder itself."""

import math
from dataclasses import replace

import pytest
import torch

import core_models as cm
from core_models.config import Config
from core_models.errors import InputError
from core_models.prediction import fill, lens
from core_models.tokenizer import Tokenizer
from tests.core.tiny_models import narrow

TEXT = "The river was very cold in the morning."


def tiny(name: str, tokenizer: Tokenizer, **attention: object) -> Config:
    config = cm.size(name).with_vocabulary(tokenizer.vocabulary, pad_id=tokenizer.pad_id)
    config = narrow(config, width=32, inner=64, layers=3)
    return replace(config, attention=replace(config.attention, **attention))  # type: ignore[arg-type]


def loud(config: Config, tokenizer: Tokenizer, head: str) -> cm.Model:
    made = cm.Model.new(config, tokenizer, heads=[head], generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(4.0)
    return made.eval()


@pytest.fixture(scope="module")
def deberta(tokenizer: Tokenizer) -> cm.Model:
    return loud(tiny("deberta-base", tokenizer), tokenizer, "masked_token")


@pytest.fixture(scope="module")
def causal(tokenizer: Tokenizer) -> cm.Model:
    return loud(tiny("bert-tiny", tokenizer, direction="left"), tokenizer, "causal")


@pytest.fixture(scope="module")
def xlnet(sentences: list[str]) -> cm.Model:
    unigram = Tokenizer.train(sentences[:3000], vocabulary=1500, kind="unigram")
    return loud(tiny("xlnet-base-cased", unigram), unigram, "permutation")


def test_each_row_is_the_head_on_that_state(model: cm.Model) -> None:
    result = lens(model, TEXT, 2, masks=[5], watch=["lake", "rain"])
    ids = list(model.encode([TEXT])[0].ids)
    word = ids[2]
    ids[2] = ids[5] = model.tokenizer.mask_id
    with torch.inference_mode():
        out = model.encoder(cm.Batch(input_ids=torch.tensor([ids])), every_step=True)
        logs = model.heads["masked_token"](torch.stack(out.states)[:, 0, 2]).log_softmax(-1)
    assert [(row.stream, row.number) for row in result.layers] == [
        ("content", n) for n in range(len(logs))
    ]
    for row, log in zip(result.layers, logs, strict=True):
        assert [c.id for c in row.prediction.candidates] == log.topk(3).indices.tolist()
        assert row.prediction.original is not None
        assert row.prediction.original.rank == int((log > log[word]).sum()) + 1
        for watched in row.prediction.watched:
            index = model.tokenizer.id(watched.word)
            assert watched.rank == int((log > log[index]).sum()) + 1
            assert watched.probability == pytest.approx(math.exp(float(log[index])), rel=1e-4)
    assert result.note is None


@pytest.mark.parametrize("name", ["model", "deberta", "causal", "xlnet"])
def test_the_last_row_is_the_answer_of_the_model(name: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    last = lens(model, TEXT, 4, masks=[2], top_k=5).layers[-1].prediction
    own = fill(model, TEXT, masks=[2, 4], top_k=5).predictions[1]
    assert [c.id for c in last.candidates] == [c.id for c in own.candidates]
    assert [c.probability for c in last.candidates] == pytest.approx(
        [c.probability for c in own.candidates], rel=1e-4
    )


def test_deberta_shows_its_decoder_apart(deberta: cm.Model) -> None:
    result = lens(deberta, TEXT, 4)
    steps = deberta.config.mask_decoder.steps  # type: ignore[union-attr]
    assert [(row.stream, row.number) for row in result.layers] == [
        *(("content", n) for n in range(4)),
        *(("mask_decoder", n + 1) for n in range(steps)),
    ]
    assert result.note is not None
    assert "mask decoder" in result.note


def test_a_query_starts_from_nothing(xlnet: cm.Model) -> None:
    """Before the first step XLNet's answer is the same in every sentence and at every place."""
    rows = [
        lens(xlnet, text, position).layers
        for text, position in ((TEXT, 4), ("Rain fell on the old town.", 2))
    ]
    first, other = (row[0].prediction.candidates for row in rows)
    assert [c.probability for c in first] == pytest.approx([c.probability for c in other])
    assert {row.stream for row in rows[0]} == {"query"}
    assert len(rows[0]) == 4
    assert rows[0][3].prediction.candidates != rows[1][3].prediction.candidates


def test_a_causal_row_never_sees_the_right(causal: cm.Model) -> None:
    one = lens(causal, TEXT, 4)
    other = lens(causal, TEXT.replace("morning", "evening"), 4)
    assert [r.prediction.candidates for r in one.layers] == [
        r.prediction.candidates for r in other.layers
    ]


def test_what_keeps_earlier_rows_from_being_predictions_is_said(
    causal: cm.Model, xlnet: cm.Model
) -> None:
    for model, words in ((causal, "the position before the gap"), (xlnet, "its query stream")):
        note = lens(model, TEXT, 4).note
        assert note is not None
        assert words in note


def test_the_place_itself_may_be_named_among_the_hidden(model: cm.Model) -> None:
    assert lens(model, TEXT, 4, masks=[4, 2]) == lens(model, TEXT, 4, masks=[2])


def test_rivals_of_several_pieces_have_a_note(model: cm.Model) -> None:
    row = lens(model, TEXT, 2, watch=["grandmothers"]).layers[0]
    assert row.prediction.watched[0].rank is None
    assert row.prediction.watched[0].note


def test_bad_positions_are_refused(model: cm.Model) -> None:
    for position in (0, 99, -1):
        with pytest.raises(InputError):
            lens(model, TEXT, position)
