"""The adapter: any masked-token encoder that transformers knows, behind our Model."""

import copy
import threading
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.prediction.ablation import damage, without_heads
from core_models.prediction.attention_flow import moved_values
from core_models.prediction.fill import fill_many
from core_models.prediction.lens import lens
from core_models.prediction.meaning import word_vectors
from core_models.prediction.passes import seen_with
from core_models.prediction.results import FillRequest
from core_models.prediction.targets import Target, TargetFunction, frozen_copy, redrawn
from tests.core.foreign_models import BLIND, TEXT, UNFIT, WHOLE, saved

TEXTS = [TEXT, "birds [MASK]"]


def both(kind, folder, texts, **wanted):
    """Our model, their answer to the same ids, and where real tokens stand."""
    theirs = saved(kind, folder)
    model = cm.load(folder)
    batch = model.batch(texts)
    given = {"input_ids": batch.input_ids}
    if batch.attention_mask is not None:
        given["attention_mask"] = batch.attention_mask.long()
    with torch.no_grad():
        expected = theirs(**given, output_hidden_states=True, **wanted)
    mask = batch.attention_mask
    real = torch.ones(batch.shape, dtype=torch.bool) if mask is None else mask
    return model, batch, expected, real


@pytest.mark.parametrize("texts", [TEXTS[:1], TEXTS], ids=["single", "padded"])
@pytest.mark.parametrize("kind", WHOLE)
def test_everything_is_what_transformers_gives(kind, texts, tmp_path):
    model, batch, expected, real = both(kind, tmp_path, texts, output_attentions=True)
    out = model(batch, attention=True)
    torch.testing.assert_close(out.logits["masked_token"][real], expected.logits[real])
    states = model.encoder(batch, every_step=True).states
    assert len(states) == len(expected.hidden_states) == model.config.steps + 1
    for ours, theirs in zip(states, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours[real], theirs[real])
    for ours, theirs in zip(out.attention, expected.attentions, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("kind", BLIND)
def test_what_attends_in_another_way_predicts_and_says_so(kind, tmp_path):
    model, batch, expected, real = both(kind, tmp_path, TEXTS[:1])
    torch.testing.assert_close(model(batch).logits["masked_token"][real], expected.logits[real])
    assert len(lens(model, TEXT, 5).layers) == model.config.steps + 1
    with pytest.raises(cm.InputError, match=f"{kind} attends in a way of its own"):
        model(batch, attention=True)
    with pytest.raises(cm.InputError, match=f"{kind} attends in a way of its own"):
        without_heads(model, model.encode(TEXT)[0], 5, [[(0, 0)]])


@pytest.mark.parametrize("kind", UNFIT)
def test_what_cannot_be_looked_into_is_refused(kind, tmp_path):
    saved(kind, tmp_path)
    with pytest.raises(cm.InputError, match=f"{kind}.*Choose another model"):
        cm.load(tmp_path)


@pytest.mark.parametrize("kind", ["mpnet", "esm"])
def test_predictions_scores_and_vectors(kind, tmp_path):
    saved(kind, tmp_path)
    model = cm.load(tmp_path)
    found = cm.fill(model, TEXT, top_k=3)
    position = found.predictions[0].position
    logits = model(TEXT).logits["masked_token"][0, position]
    best = int(logits[: model.tokenizer.vocabulary].argmax())
    assert found.predictions[0].candidates[0].id == best
    assert cm.score(model, ["red fox"])[0].total < 0
    assert cm.embed(model, TEXTS).shape == (2, 16)


@pytest.mark.parametrize("kind", ["convbert", "mobilebert", "fnet", "esm"])
def test_longer_texts_beside_a_text_change_nothing(kind, tmp_path):
    saved(kind, tmp_path)
    model = cm.load(tmp_path)
    texts = ["birds", "the red fox sees a small dog", "the red fox", "birds sing"]
    vectors = torch.stack([cm.embed(model, text) for text in texts])
    torch.testing.assert_close(cm.embed(model, texts), vectors)
    alone = [cm.score(model, text)[0].total for text in texts]
    assert [each.total for each in cm.score(model, texts)] == pytest.approx(alone, abs=1e-4)
    requests = [FillRequest(f"{text} [MASK]") for text in texts]
    for request, found in zip(requests, fill_many(model, requests), strict=True):
        best = found.predictions[0].candidates[0]
        expected = cm.fill(model, request.text).predictions[0].candidates[0]
        assert best.probability == pytest.approx(expected.probability, abs=1e-5)


@pytest.mark.parametrize("kind", ["convbert", "fnet", "esm"])
def test_vectors_of_words_do_not_hang_on_other_sentences(kind, tmp_path):
    saved(kind, tmp_path)
    model = cm.load(tmp_path)
    encodings = model.encode(["birds", "the red fox sees a small dog", "birds sing"])
    words = torch.cat([word_vectors(model, [each], [(0, [1])]) for each in encodings])
    every = word_vectors(model, encodings, [(row, [1]) for row in range(3)])
    torch.testing.assert_close(every, words)


@pytest.mark.parametrize("kind", WHOLE)
def test_a_gradient_reaches_the_vectors_and_adds_up(kind, tmp_path):
    saved(kind, tmp_path)
    model = cm.load(tmp_path)
    encoding = model.encode(TEXT)[0]
    place = encoding.ids.index(model.tokenizer.mask_id)
    best = cm.fill(model, TEXT).predictions[0].candidates[0]
    function = TargetFunction(frozen_copy(model), encoding, Target(kind="piece", position=place))
    answers = function.given[0].log_softmax(-1)
    assert answers[best.id].exp() == pytest.approx(best.probability, rel=1e-4)
    vectors = function.vectors.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(vectors).sum(), vectors)
    step = 1e-3 * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        moved = float(function(vectors + step) - function(vectors - step)) / 2
    assert moved == pytest.approx(float((gradient * step).sum()), rel=0.05, abs=1e-5)


@pytest.mark.parametrize("kind", WHOLE)
def test_heads_switched_off(kind, tmp_path):
    saved(kind, tmp_path)
    model = cm.load(tmp_path)
    encoding = model.encode(TEXT)[0]
    heads = model.config.attention.heads
    whole, none, one = without_heads(
        model, encoding, 5, [[], [(1, head) for head in range(heads)], [(1, 0)]]
    )
    assert (whole - none).abs().max() > 1e-4
    assert (whole - one).abs().max() > 1e-5
    assert damage(model, encoding, 5, 7).shape == (model.config.steps, heads)


@pytest.mark.parametrize("kind", WHOLE)
def test_heads_write_what_the_output_projection_says(kind, tmp_path):
    """Values through the output projection are what switching all other heads off leaves."""
    saved(kind, tmp_path)
    model = cm.load(tmp_path)
    trace = cm.Trace(["probabilities", "v", "head_output"])
    model.encoder(model.batch(TEXT), trace)
    mixed = trace["probabilities", 0] @ trace["v", 0]
    torch.testing.assert_close(mixed, trace["head_output", 0])
    output = model.encoder.output_weight(0)
    heads, width = trace["v", 0].shape[1], trace["v", 0].shape[3]
    assert output.shape[1] >= heads * width
    if output.shape[1] == heads * width:
        assert moved_values(trace["v", 0][0].numpy(), output.numpy()).shape[0] == heads


@pytest.mark.parametrize("kind", ["mpnet", "esm", "roformer"])
def test_words_on_their_way_and_a_model_that_forgot(kind, tmp_path):
    saved(kind, tmp_path)
    model = cm.load(tmp_path)
    (encoding,) = model.encode(TEXT)
    found = word_vectors(model, [encoding], [(0, [2])])
    assert found.shape == (1, model.config.steps + 2, 16)
    before = model(TEXT).logits["masked_token"].clone()
    forgot = redrawn(model, 1, torch.Generator().manual_seed(0))
    assert (forgot(TEXT).logits["masked_token"] - before).abs().max() > 1e-3
    assert torch.equal(model(TEXT).logits["masked_token"], before)


def test_passes_of_threads_do_not_meet(tmp_path):
    saved("mpnet", tmp_path)
    model = cm.load(tmp_path)
    alone = [model(text, attention=True) for text in TEXTS]
    found = [[], []]

    def ask(place):
        for _ in range(20):
            found[place].append(model(TEXTS[place], attention=True))

    threads = [threading.Thread(target=ask, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place in (0, 1):
        assert len(found[place]) == 20
        for out in found[place]:
            pairs = zip(out.attention, alone[place].attention, strict=True)
            assert all(torch.equal(a, b) for a, b in pairs)


def test_loads_in_threads_give_the_same_model(tmp_path):
    saved("mpnet", tmp_path)
    expected = cm.load(tmp_path)(TEXT).hidden
    found: list[torch.Tensor] = []
    threads = [
        threading.Thread(target=lambda: found.append(cm.load(tmp_path)(TEXT).hidden))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(torch.equal(hidden, expected) for hidden in found)


@pytest.mark.parametrize("kind", ["mpnet", "mobilebert"])  # whose head reads weights itself
def test_copies_and_packed_models_answer_alike(kind, tmp_path):
    saved(kind, tmp_path)
    model = cm.load(tmp_path)
    expected = model(TEXT, attention=True)
    for other in (model.clone(), copy.deepcopy(model), cm.optimize_for_inference(model)):
        out = other(TEXT, attention=True)
        torch.testing.assert_close(out.hidden, expected.hidden, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(out.attention[0], expected.attention[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(out.logits, expected.logits, atol=1e-5, rtol=1e-4)
        assert torch.equal(other.encoder.output_weight(1), model.encoder.output_weight(1))


def test_edits_of_the_residual_stream_reach_the_prediction(tmp_path):
    saved("esm", tmp_path)
    model = cm.load(tmp_path)
    batch = model.batch(TEXT)
    trace = cm.Trace(["residual"])
    model.encoder(batch, trace)
    other = cm.Trace(edits=[cm.patch("residual", 1, trace["residual", 1] * 0, [2])])
    changed = model.encoder(batch, other).hidden
    assert (changed - model.encoder(batch).hidden).abs().max() > 1e-4


@pytest.mark.parametrize(
    ("sites", "words"),
    [
        (["content_score"], "does not hand out the parts of a score"),
        (["term:*"], "does not hand out the parts of a score"),
        (["feed_forward_activation"], "does not show feed_forward_activation"),
    ],
)
def test_sites_that_it_does_not_give(sites, words, tmp_path):
    saved("mpnet", tmp_path)
    model = cm.load(tmp_path)
    with pytest.raises(cm.InputError, match=f"run by transformers, which {words}"):
        model.encoder(model.batch(TEXT), cm.Trace(sites))


def test_what_is_for_our_own_families(tmp_path):
    saved("mpnet", tmp_path)
    model = cm.load(tmp_path)
    for ask in (
        lambda: model.with_head("classify", ["a", "b"]),
        lambda: model.save(tmp_path / "copy"),
        lambda: cm.count(model),
        lambda: cm.Encoder(model.config),
    ):
        with pytest.raises(cm.InputError, match="mpnet"):
            ask()
    assert cm.diff(model, "bert-base-uncased")


def test_ids_that_there_are_not_are_named(tmp_path):
    saved("megatron-bert", tmp_path)
    model = cm.load(tmp_path)
    ids = model.batch(TEXT).input_ids
    rows = model.config.embeddings.vocabulary
    with pytest.raises(cm.InputError, match=f"input_ids has the value {rows} at row 0, place 0"):
        model(cm.Batch(input_ids=ids + rows - ids[0, 0]))
    with pytest.raises(cm.InputError, match=r"segment_ids has the value 99 .*; allowed is 0 to"):
        model(cm.Batch(input_ids=ids, segment_ids=torch.full_like(ids, 99)))


def test_an_input_that_is_too_long(tmp_path):
    saved("mpnet", tmp_path)
    model = cm.load(tmp_path)
    assert model.longest == 38  # two rows of the table are for padding and below
    assert len(model.encode("fox " * 100)[0]) == 38
    with pytest.raises(cm.InputError, match="39 tokens; this model takes at most 38"):
        model(cm.Batch(input_ids=torch.full((1, 39), 7)))


def test_without_a_tokenizer_ids_are_answered(tmp_path):
    saved("mpnet", tmp_path)
    expected = cm.load(tmp_path)(TEXT).hidden
    ids = cm.load(tmp_path).batch(TEXT).input_ids
    model = cm.load(tmp_path, tokenizer=False)
    assert torch.equal(model(cm.Batch(input_ids=ids)).hidden, expected)
    with pytest.raises(cm.InputError, match=r"without a tokenizer.*cm.Batch"):
        model(TEXT)


def test_without_a_head_nothing_is_made_up(tmp_path):
    theirs = saved("mpnet", tmp_path)
    theirs.base_model.save_pretrained(tmp_path)
    model = cm.load(tmp_path)
    assert list(model.heads) == []
    assert model(TEXT).logits == {}
    with pytest.raises(cm.InputError, match="no head that predicts pieces"):
        cm.fill(model, TEXT)


def test_a_folder_from_outside(tmp_path, monkeypatch):
    theirs = saved("mpnet", tmp_path / "mine")
    found = cm.inspect(tmp_path / "mine")
    assert (found.family, found.made_for) == ("mpnet", "MPNetForMaskedLM")
    assert found.adapter
    assert found.config is None
    assert found.parameters == theirs.num_parameters()
    assert found.bytes == 4 * found.parameters
    monkeypatch.setenv("CLOZE_MODELS", str(tmp_path))
    (info,) = [info for info in cm.models() if info.name == "mine"]
    assert info.heads == ("masked_token",)
    assert info.parameters == found.parameters


def test_a_folder_of_ours_from_outside():
    found = cm.inspect(Path("assets/models/bert-mini"))
    assert not found.adapter
    assert found.config == cm.load("bert-mini").config
    assert found.heads == tuple(cm.load("bert-mini").heads)


def test_a_changed_place_is_read(tmp_path):
    saved("mpnet", tmp_path)
    model = cm.load(tmp_path)
    (encoding,) = model.encode(TEXT)
    other = seen_with(encoding, {2: model.tokenizer.mask_id})
    assert not torch.equal(
        model(model.collate([encoding])).hidden, model(model.collate([other])).hidden
    )
