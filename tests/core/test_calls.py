"""Calling a model, and the small things that a first hour with the library meets."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy
import pandas
import pytest
import torch

import core_models as cm
from core_models.hub import fetch as hub
from core_models.prediction.passes import hidden_at
from core_models.training.settings import ASSETS
from tests.core.tiny_models import WORDS, new, tiny, tokenizer

TEXTS = ["red fox [MASK] small dog", "old [MASK] [MASK] in the tree and river"]
SIZES = {
    "bert-base": "masked_token",
    "deberta-base": "masked_token",
    "deberta-v3-base-generator": "masked_token",
    "xlnet-base": "permutation",
}


def model_of(name: str, **values: object) -> cm.Model:
    return new(tiny(name, **values), heads=None).eval()


@pytest.mark.parametrize("name", SIZES)
def test_a_call_answers_by_the_way_of_its_family(name: str) -> None:
    """As `fill` does: the mask decoder, the query stream; and nothing sees a hidden piece."""
    model = model_of(name)
    with torch.no_grad():
        output = model(TEXTS)
        encodings = model.encode(TEXTS)
        longest = max(map(len, encodings))
        for row, encoding in enumerate(encodings):
            for place in range(len(encoding)):
                state = hidden_at(model, encodings, [(row, place)])
                expected = model.heads[SIZES[name]](state)[0]
                column = place + (longest - len(encoding)) * model.tokenizer.template.pad_left
                found = output.logits[SIZES[name]][row, column]
                torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", SIZES)
def test_a_model_can_be_exported(name: str) -> None:
    """`torch.export` once refused a batch, whatever was in it."""
    model = model_of(name)
    batch = model.batch(TEXTS)
    with torch.no_grad():
        found = torch.export.export(model, (batch,)).module()(batch)
        expected = model(batch)
    torch.testing.assert_close(found.hidden, expected.hidden)
    torch.testing.assert_close(found.logits, expected.logits)


def test_a_causal_head_speaks_of_the_piece_after_each_place() -> None:
    model = cm.Model.new(
        replace(
            tiny("bert-base", objectives=("causal",)),
            attention=replace(tiny("bert-base").attention, direction="left"),
        ),
        tokenizer(),
        generator=torch.Generator().manual_seed(1),
    ).eval()
    with torch.no_grad():
        logits = model("red fox [MASK] small dog").logits["causal"]
        (encoding,) = model.encode("red fox [MASK] small dog")
        for place in range(1, len(encoding)):
            state = hidden_at(model, [encoding], [(0, place)])
            expected = model.heads["causal"](state)[0]
            torch.testing.assert_close(logits[0, place - 1], expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_query_sees_no_more_than_its_place_may_see() -> None:
    model = model_of("xlnet-base")
    batch = model.batch("red fox sees small dog")
    earlier = torch.ones(*batch.shape, batch.shape[1], dtype=torch.bool).tril()
    other = batch.input_ids.clone()
    other[0, 3] = model.tokenizer.id("river")
    found, changed = (
        model(replace(batch, input_ids=ids, visibility=earlier)).logits["permutation"][0]
        for ids in (batch.input_ids, other)
    )
    torch.testing.assert_close(changed[1:4], found[1:4])
    assert not torch.allclose(changed[4:], found[4:], atol=1e-3)


def test_all_heads_attention_and_gradients_of_one_call() -> None:
    model = model_of("bert-base")
    output = model([("red fox", "small dog"), ("old house", "river")], attention=True)
    assert set(output.logits) == {"masked_token", "next_sentence"}
    rows, length = output.batch.shape
    assert output.logits["next_sentence"].shape == (rows, 2)
    assert output.hidden.shape == (rows, length, 8)
    assert [each.shape for each in output.attention] == [(rows, 2, length, length)] * 2
    torch.testing.assert_close(output.attention[0].sum(-1), torch.ones(rows, 2, length))
    plain = model(output.batch)
    assert plain.attention == ()
    torch.testing.assert_close(plain.hidden, output.hidden, atol=1e-5, rtol=1e-5)
    output.logits["masked_token"].sum().backward()
    assert all(p.grad is not None for p in model.encoder.parameters())


def test_fine_tuned_heads_and_those_that_ask_more_than_a_text() -> None:
    model = model_of("bert-base")
    tagger = model.with_head("tag", ["a", "b"], every_step=True).eval()
    assert tagger("red fox").logits["tag"].shape == (1, len(tagger.encode("red fox")[0]), 2)
    assert model.with_head("classify", ["a", "b", "c"]).eval()("red").logits["classify"].shape == (
        1,
        3,
    )
    assert set(model_of("spanbert-base").eval()("red fox").logits) == {"masked_token"}


def test_a_text_alone_is_one_row() -> None:
    model = model_of("bert-base")
    assert model.batch("red fox").shape == model.batch(["red fox"]).shape == (1, 4)
    assert model.batch(("red", "fox")).shape[0] == 2
    columns = (numpy.array(["red", "fox"]), pandas.Series(["red", "fox"]))  # have no truth
    assert all(model.batch(column).shape[0] == 2 for column in columns)
    for nothing in ([], (), columns[0][:0]):
        with pytest.raises(cm.InputError, match="No text was given"):
            model(nothing)
    with pytest.raises(cm.InputError, match="texts must be a list, not NoneType"):
        model(None)


def test_masks_of_zeros_and_ones_are_booleans() -> None:
    model = model_of("bert-base")
    batch = model.batch(["red fox", "red fox sees small dog"])
    assert batch.attention_mask is not None
    whole = replace(batch, attention_mask=batch.attention_mask.long())
    torch.testing.assert_close(model(whole).hidden, model(batch).hidden)
    for wrong in (batch.attention_mask.long() * 2, batch.attention_mask.float()):
        with pytest.raises(cm.InputError, match=r"attention_mask is of type .* 1 is real"):
            replace(batch, attention_mask=wrong)


def test_vectors_of_texts() -> None:
    model = model_of("bert-base")
    texts = ["red fox sees small dog", "old house", "red"]
    with torch.no_grad():
        expected = torch.stack([model(text).hidden[0].mean(0) for text in texts])
        first = torch.stack([model(text).hidden[0, 0] for text in texts])
    torch.testing.assert_close(cm.embed(model, texts), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(cm.embed(model, texts, pooling="token"), first, atol=1e-5, rtol=0)
    assert cm.embed(model, "red").shape == (8,)
    lengths = cm.embed(model, texts, normalize=True).norm(dim=-1)
    torch.testing.assert_close(lengths, torch.ones(3))
    config = tiny("bert-base", objectives=("causal",))
    attention = replace(config.attention, direction="left")
    leftward = new(replace(config, attention=attention)).eval()
    with pytest.raises(cm.InputError, match="its first token sees nothing of the text"):
        cm.embed(leftward, texts, pooling="token")
    with pytest.raises(cm.InputError, match="No pooling 'max'"):
        cm.embed(model, texts, pooling="max")
    with pytest.raises(cm.InputError, match="training mode"):
        cm.embed(copy.deepcopy(model).train(), texts)
    with pytest.raises(cm.InputError, match="No text was given"):
        cm.embed(model, [])


def test_xlnets_text_is_its_last_token() -> None:
    model = cm.load(ASSETS / "models" / "xlnet-mini")  # by its folder, whatever ran before
    texts = ["The capital of France is Paris.", "Bees make honey."]
    with torch.no_grad():
        expected = torch.stack([model(text).hidden[0, -1] for text in texts])
    torch.testing.assert_close(cm.embed(model, texts, pooling="token"), expected, atol=1e-4, rtol=0)


def test_names_complete_and_stay_functions() -> None:
    import core_models.prediction.fill  # noqa: F401 - what an import of the module leaves behind

    assert set(cm.__all__) <= set(dir(cm))
    assert all(callable(getattr(cm, name)) for name in ("family_names", "fill", "score", "embed"))


def test_count_and_diff_take_models_configs_and_the_names_that_load_takes() -> None:
    model = cm.load("bert-mini")
    assert cm.count("bert-mini") == cm.count(model) == cm.count(model.config)
    assert cm.count("bert-mini").trained == sum(p.numel() for p in model.parameters())
    assert cm.count("bert-4x256") == cm.count(cm.size("bert-mini")) != cm.count("bert-mini")
    paths = {each.path for each in cm.diff("bert-mini", "bert-4x256")}
    assert paths >= {"embeddings.vocabulary"}
    assert cm.diff(model, "bert-mini") == []
    assert cm.diff(model.config, model) == []
    with pytest.raises(cm.InputError, match="No published size 'bert-huge'"):
        cm.count("bert-huge")


def test_what_was_saved_loads_by_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = model_of("bert-base")
    model.save("mine")
    for name in ("mine", "./mine", Path("mine")):
        torch.testing.assert_close(cm.load(name)("red").hidden, model("red").hidden)
    with pytest.raises(cm.InputError, match="No model 'yours'"):
        cm.load("yours")


def test_a_hub_that_cannot_be_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import HfHubHTTPError

    (transport,) = (kind for kind in HfHubHTTPError.__mro__ if kind.__name__ == "HTTPError")

    class Unreachable:
        def __init__(self, **_: object) -> None: ...

        def model_info(self, *_: object, **__: object) -> None:
            raise transport("Name or service not known")

    monkeypatch.setattr(hub, "HfApi", Unreachable)
    with pytest.raises(cm.InputError, match="could not be fetched from the hub"):
        cm.load("somebody/nothing-like-this")


def test_wrong_heads_and_sites_are_named() -> None:
    model = model_of("bert-base")
    trace = cm.Trace(["embedding"], edits=[cm.switch_off_heads(1, [99])])
    with pytest.raises(cm.InputError, match="No head 99; this model has 0 to 1"):
        model.encoder(model.batch("red"), trace)
    trace = cm.Trace(["embedding", "residual"])
    model.encoder(model.batch("red"), trace)
    assert trace["embedding"].shape == trace["residual", 0].shape
    with pytest.raises(KeyError, match="residual@None/content was not recorded"):
        trace["residual"]


def test_an_odd_width_has_no_sine_waves() -> None:
    with pytest.raises(cm.InputError, match="width is 9; the sine waves"):
        tiny("xlnet-base", width=9)


@pytest.mark.parametrize("name", ["deberta-base", "deberta-v3-base", "xlnet-base"])
def test_weights_written_through_data_are_noticed(name: str) -> None:
    """As an average of weights in eval mode writes them."""
    model = model_of(name)
    other = new(tiny(name), seed=2).eval()
    batch = model.batch(WORDS)
    with torch.no_grad():
        before = model.encoder(batch).hidden
        for mine, theirs in zip(
            model.encoder.parameters(), other.encoder.parameters(), strict=True
        ):
            mine.data.mul_(0.5).add_(theirs.data, alpha=0.5)
        found = model.encoder(batch).hidden
        fresh = copy.deepcopy(model).encoder(batch).hidden
    assert not torch.allclose(found, before, atol=1e-3)
    torch.testing.assert_close(found, fresh, atol=1e-6, rtol=0)
