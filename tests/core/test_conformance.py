"""One suite over all families: what every model promises, whatever differs inside."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import core_models as cm
from core_models.batch import Batch
from core_models.families import FAMILIES
from core_models.families import size as size_of
from core_models.network.trace import STEP_SITES, Trace
from tests.core.conformance import (
    EVERYTHING,
    LENGTH,
    ROWS,
    SIZES,
    TEXTS,
    answers,
    close,
    inputs,
    narrow,
    new,
    storages,
    tokenizer,
)

cases = pytest.mark.parametrize("case", SIZES)


def test_every_family_is_covered() -> None:
    assert {size_of(name).family for name in SIZES.values()} == set(FAMILIES)
    assert len({narrow(case).attention.terms for case in SIZES}) == 4
    heads = {head for case in SIZES for head in narrow(case).objectives}
    assert heads == {
        "masked_token",
        "next_sentence",
        "sentence_order",
        "span_boundary",
        "replaced_token",
        "permutation",
        "causal",
    }


@cases
@torch.no_grad()
def test_shapes(case: str) -> None:
    model = new(case)
    vocabulary = model.config.embeddings.vocabulary
    expected = {
        "hidden": (ROWS, LENGTH, 32),
        "query": (ROWS, 2, 32),
        "masked_token": (ROWS, LENGTH, vocabulary),
        "causal": (ROWS, LENGTH, vocabulary),
        "next_sentence": (ROWS, 2),
        "sentence_order": (ROWS, 2),
        "replaced_token": (ROWS, LENGTH),
        "permutation": (ROWS, 2, vocabulary),
        "span_boundary": (3, vocabulary),
    }
    found = answers(model, inputs(model))
    assert set(found) >= {"hidden", *model.config.objectives}
    for name, answer in found.items():
        assert answer.shape == expected[name], name
        assert answer.isfinite().all(), name
        assert answer.std(0).mean() > 0.01, f"{name} hardly depends on the input"


@cases
@pytest.mark.parametrize("pad", ["left", "right"])
@torch.no_grad()
def test_contents_of_padding_are_irrelevant(case: str, pad: str) -> None:
    model = new(case)
    batch = inputs(model, pad=pad)
    assert batch.input_ids is not None
    mask = batch.attention_mask
    assert mask is not None
    other = replace(batch, input_ids=torch.where(mask, batch.input_ids, 9))
    if batch.segment_ids is not None:
        other = replace(other, segment_ids=torch.where(mask, batch.segment_ids, 0))
    for trace in (None, Trace(["scores"])):
        before, after = answers(model, batch, trace), answers(model, other, trace)
        assert not torch.equal(batch.input_ids, other.input_ids)
        for name, answer in before.items():
            per_token = answer.shape[:2] == mask.shape
            keep = mask if per_token else slice(None)
            if per_token or pad == "right" or name not in ("next_sentence", "sentence_order"):
                if name == "replaced_token" and pad == "left":
                    keep = mask.clone()  # version 3 looks at the first token, here a pad
                    keep[1] = False
                assert torch.equal(answer[keep], after[name][keep]), name


@cases
@pytest.mark.parametrize("pad", ["left", "right"])
@torch.no_grad()
def test_padding_does_not_move_the_text(case: str, pad: str) -> None:
    model = new(case)
    batch = inputs(model, pad=pad)
    assert batch.input_ids is not None
    mask = batch.attention_mask
    assert mask is not None
    parts = model.config.embeddings
    if pad == "left" and parts.positions is not None and not parts.first_position:
        pytest.skip("positions are counted from the left edge")
    real = mask[1]
    segments = None if batch.segment_ids is None else batch.segment_ids[1:2, real]
    short = Batch(input_ids=batch.input_ids[1:2, real], segment_ids=segments)
    close(model.encoder(batch).hidden[1, real], model.encoder(short).hidden[0])


@cases
@torch.no_grad()
def test_every_step_is_recorded_once(case: str) -> None:
    model = new(case)
    trace = Trace(EVERYTHING)
    found = answers(model, inputs(model), trace)
    steps = list(range(model.config.steps))
    for stream in ("content", *(["query"] if model.config.query_stream else [])):
        for site in STEP_SITES:
            assert trace.recorded_steps(site, stream) == steps, (site, stream)
    decoder = model.config.mask_decoder
    passes = list(range(decoder.steps)) if decoder and "masked_token" in model.heads else []
    assert trace.recorded_steps("residual", "mask_decoder") == passes
    assert torch.equal(model.encoder.final_norm(trace["residual", steps[-1]]), found["hidden"])
    maps = trace.stack("probabilities")
    assert not any(torch.allclose(maps[a], maps[a + 1], atol=1e-3) for a in steps[:-1])


@cases
@pytest.mark.parametrize("pad", ["", "left", "right"])
@torch.no_grad()
def test_a_trace_changes_nothing(case: str, pad: str) -> None:
    model = new(case)
    batch = inputs(model, pad=pad)
    fast, traced = answers(model, batch), answers(model, batch, Trace(EVERYTHING))
    real = torch.ones(ROWS, LENGTH, dtype=torch.bool)
    real = real if batch.attention_mask is None else batch.attention_mask
    for name, answer in fast.items():
        keep = real if answer.shape[:2] == real.shape else slice(None)
        close(traced[name][keep], answer[keep])


@cases
@torch.no_grad()
def test_saved_and_loaded_is_bit_equal(case: str, tmp_path: Path) -> None:
    model = new(case)
    model.save(tmp_path / "fox")
    again = cm.load(tmp_path / "fox")
    assert list(again.heads) == list(model.heads)
    expected = model.state_dict()
    assert again.state_dict().keys() == expected.keys()
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    batch = inputs(model)
    found = answers(again, batch)
    for name, answer in answers(model, batch).items():
        assert torch.equal(found[name], answer), name
    again.save(tmp_path / "again")
    for file in (tmp_path / "fox").glob("*.safetensors"):
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name
    for text in TEXTS:
        assert again.tokenizer.encode(text).ids == model.tokenizer.encode(text).ids
    config = (tmp_path / "fox" / "config.json").read_text()
    assert (tmp_path / "again" / "config.json").read_text() == config


@cases
def test_gradients_reach_every_parameter(case: str) -> None:
    model = new(case, dropout=0.0).train()
    sum(answer.square().mean() for answer in answers(model, inputs(model)).values()).backward()
    silent = [
        name for name, p in model.named_parameters() if p.grad is None or not bool(p.grad.any())
    ]
    assert silent == []


@cases
def test_no_gradient_reaches_the_row_of_padding_from_the_input(case: str) -> None:
    model = new(case)
    batch = inputs(model, pad="right")
    assert batch.input_ids is not None
    assert batch.attention_mask is not None
    pad = model.config.embeddings.pad_id
    ids = torch.where(batch.attention_mask, batch.input_ids, pad)
    model.encoder(replace(batch, input_ids=ids)).hidden.square().mean().backward()
    table = model.encoder.embeddings.pieces.weight.grad
    assert table is not None
    assert not table[pad].any()
    assert table[ids[0, 0]].any()


@cases
def test_a_seed_repeats_a_new_model(case: str) -> None:
    config = narrow(case)

    def fresh(seed: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return cm.Model.new(config, tokenizer(config.family), generator=generator).state_dict()

    first = fresh(1)
    torch.manual_seed(99)  # of no effect
    again, other = fresh(1), fresh(2)
    for name, tensor in first.items():
        assert torch.equal(tensor, again[name]), name
        constant = tensor.unique().numel() == 1  # biases 0, norms 1
        assert torch.equal(tensor, other[name]) == constant, name
    table = first["encoder.embeddings.pieces.weight"]
    assert not table[config.embeddings.pad_id].any()


@cases
@pytest.mark.parametrize("pad", ["", "right"])
@torch.no_grad()
def test_rows_of_the_table_equal_ids(case: str, pad: str) -> None:
    model = new(case)
    batch = inputs(model, pad=pad)
    rows = model.encoder.embeddings.pieces(batch.input_ids)
    found = answers(model, replace(batch, input_ids=None, embeddings=rows))
    for name, answer in answers(model, batch).items():
        assert torch.equal(found[name], answer), name


@cases
@torch.no_grad()
def test_a_clone_shares_nothing(case: str) -> None:
    model = new(case)
    batch = inputs(model)
    before = answers(model, batch)  # fills what is kept between passes
    copy = model.clone()
    assert not set(storages(model)) & set(storages(copy))
    assert len(list(copy.parameters())) == len(list(model.parameters()))  # tied as before
    for name, answer in answers(copy, batch).items():
        assert torch.equal(answer, before[name]), name
    for p in copy.parameters():
        p.add_(1.0)
    for name, answer in answers(model, batch).items():
        assert torch.equal(answer, before[name]), name


@cases
@torch.no_grad()
def test_train_mode_differs_by_dropout_alone(case: str) -> None:
    batch = inputs(new(case))
    silent = new(case, dropout=0.0)
    expected = answers(silent, batch)
    for name, answer in answers(silent.train(), batch).items():
        close(answer, expected[name])
    noisy = new(case, dropout=0.3)
    before = answers(noisy, batch)
    for name, answer in answers(noisy.train(), batch).items():
        assert not torch.allclose(answer, before[name], atol=1e-2), name
    for name, answer in answers(noisy.eval(), batch).items():
        close(answer, before[name], 1e-6)


@cases
@torch.no_grad()
def test_a_batch_of_one_equals_its_row(case: str) -> None:
    model = new(case)
    whole = inputs(model)
    first = Batch(
        **{name: value[:1] for name, value in vars(whole).items() if isinstance(value, Tensor)}
    )
    found = answers(model, whole)
    for name, answer in answers(model, first).items():
        close(answer, found[name][: len(answer)])


@cases
@torch.no_grad()
def test_bfloat16_runs_and_stays_near(case: str) -> None:
    model = new(case)
    batch = inputs(model, pad="right")
    expected = model.encoder(batch).hidden[batch.attention_mask]
    half = model.clone().to(torch.bfloat16)
    for trace in (None, Trace(EVERYTHING)):
        out = answers(half, batch, trace)
        assert all(answer.dtype == torch.bfloat16 for answer in out.values())
        assert all(answer.isfinite().all() for answer in out.values())
        apart = (out["hidden"][batch.attention_mask].float() - expected).abs()
        assert float(apart.mean()) < 0.05
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model.encoder(batch).hidden[batch.attention_mask]
    assert float((mixed.float() - expected).abs().mean()) < 0.05


@pytest.mark.gpu
@cases
@torch.no_grad()
def test_a_gpu_gives_the_same(case: str) -> None:
    model = new(case)
    batch = inputs(model, pad="right")
    expected = model.encoder(batch).hidden[batch.attention_mask]
    device = torch.device("cuda")
    model = model.to(device)
    moved = batch.to(device)
    for trace in (None, Trace(EVERYTHING)):
        found = model.encoder(moved, trace).hidden[moved.attention_mask]
        close(found.cpu(), expected, 1e-4)


@torch.no_grad()
def test_left_to_right_sees_nothing_later() -> None:
    model = new("bert, left to right")
    batch = inputs(model)
    assert batch.input_ids is not None
    ids = batch.input_ids.clone()
    ids[:, 9] = (ids[:, 9] + 1) % model.config.embeddings.vocabulary
    for trace in (None, Trace(["scores"])):
        before = model.encoder(batch, trace).hidden
        after = model.encoder(replace(batch, input_ids=ids), trace).hidden
        assert torch.equal(before[:, :9], after[:, :9])
        assert not torch.allclose(before[:, 9:], after[:, 9:], atol=1e-3)
