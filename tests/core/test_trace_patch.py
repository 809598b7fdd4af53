"""Patching sites without positions, tables of one row, and positions that are not there."""

from dataclasses import replace

import pytest
import torch

import core_models as cm
from core_models.network.trace import INPUT_SITES, STEP_SITES
from tests.core.tiny_models import new, ordered_batch, tiny

WORDS = ["red fox sees small dog", "red fox sees old dog"]


@pytest.fixture(scope="module")
def model() -> cm.Model:
    return new(tiny("bert-base"))


def segments(model: cm.Model, batch: cm.Batch) -> torch.Tensor:
    trace = cm.Trace(["embedding:segments"])
    model.encoder(batch, trace=trace)
    return trace["embedding:segments", None]


def test_segments_are_patched_with_and_without_ids(model: cm.Model) -> None:
    plain = replace(model.batch(WORDS), segment_ids=None)
    second = torch.zeros_like(plain.input_ids)
    second[:, 2] = 1
    wanted = model.encoder(replace(plain, segment_ids=second)).hidden
    ones = segments(model, replace(plain, segment_ids=torch.ones_like(second)))
    row = segments(model, plain)
    assert row.dim() == 1
    for batch in (plain, replace(plain, segment_ids=torch.zeros_like(second))):
        edit = cm.patch("embedding:segments", None, ones, [2])
        torch.testing.assert_close(
            model.encoder(batch, trace=cm.Trace(edits=[edit])).hidden, wanted
        )
    # One row as the source: position 2 back to the first segment.
    edit = cm.patch("embedding:segments", None, row, [2])
    found = model.encoder(replace(plain, segment_ids=second), trace=cm.Trace(edits=[edit]))
    torch.testing.assert_close(found.hidden, model.encoder(plain).hidden)
    edit = cm.patch("embedding:segments", None, row, [2])
    with pytest.raises(ValueError, match="give the batches segment_ids"):
        model.encoder(plain, trace=cm.Trace(edits=[edit]))


def test_sites_without_positions_are_refused(model: cm.Model) -> None:
    trace = cm.Trace([*STEP_SITES, *INPUT_SITES])
    batch = model.batch(WORDS)
    model.encoder(batch, trace=trace)
    for site in (*STEP_SITES, *INPUT_SITES):
        step = None if site in INPUT_SITES else 0
        by_position = trace[site, step].shape[1] == batch.shape[1] and trace[site, step].dim() == 3
        if by_position:
            edit = cm.patch(site, step, trace[site, step], [1])
            model.encoder(batch, trace=cm.Trace(edits=[edit]))
        else:
            with pytest.raises(ValueError, match=f"'{site}' is not .* no positions"):
                cm.patch(site, step, trace[site, step], [1])
    with pytest.raises(ValueError, match="no positions"):
        cm.patch("term:c2p", 0, torch.zeros(1, 2, 3, 3), [1])


def test_positions_beyond_either_text_are_refused(model: cm.Model) -> None:
    trace = cm.Trace(["residual"])
    short = model.batch(["red fox"])
    model.encoder(short, trace=trace)
    for place, length in ((99, 7), (5, 4), (-6, 4)):
        edit = cm.patch("residual", 0, trace["residual", 0], [place])
        with pytest.raises(ValueError, match=f"no position {place} in 'residual': it has {length}"):
            model.encoder(model.batch(WORDS), trace=cm.Trace(edits=[edit]))
    edit = cm.patch("residual", 0, trace["residual", 0], [-1])
    model.encoder(short, trace=cm.Trace(edits=[edit]))


@pytest.mark.parametrize("stream", ["content", "query"])
def test_an_edit_of_one_stream_leaves_the_other_as_it_is(stream: str) -> None:
    """Keys and values of each stream come from what that stream starts from."""
    model = new(tiny("xlnet-base"))
    whole = ordered_batch()
    alone = replace(whole, targets=None, target_visibility=None, target_labels=None)
    edit = cm.Edit("residual_in", lambda x: x * 0.5 + 0.1, 1, stream)
    plain = model.encoder(whole)
    edited = model.encoder(whole, trace=cm.Trace(edits=[edit]))
    if stream == "content":  # the last step: the query stream has read its input already
        torch.testing.assert_close(edited.streams["query"], plain.streams["query"])
        wanted = model.encoder(alone, trace=cm.Trace(edits=[edit])).hidden
        torch.testing.assert_close(edited.hidden, wanted)
        assert not torch.allclose(edited.hidden, plain.hidden, atol=1e-2)
    else:
        torch.testing.assert_close(edited.hidden, plain.hidden)
        assert not torch.allclose(edited.streams["query"], plain.streams["query"], atol=1e-2)


@pytest.mark.parametrize("name", ["bert-base", "xlnet-base", "deberta-base"])
@torch.no_grad()
def test_an_edit_of_any_site_changes_what_follows(name: str) -> None:
    model = new(tiny(name))
    batch = model.batch(WORDS)
    before = model.encoder(batch).hidden
    listener = cm.Trace([*STEP_SITES, *INPUT_SITES, "term:*"])
    model.encoder(batch, trace=listener)
    for site, step, _ in listener.records:
        if step not in (None, 0):
            continue
        # A shift by a wave: softmax and norms would swallow a constant.
        edit = cm.Edit(site, lambda x: x + torch.arange(x.numel()).view(x.shape).sin(), step)
        after = model.encoder(batch, trace=cm.Trace(edits=[edit])).hidden
        assert not torch.allclose(after, before, atol=1e-2), site


@pytest.mark.parametrize("shape", [(3, 7, 8), (2, 7, 4)])
def test_a_source_of_other_rows_or_width_is_refused(
    model: cm.Model, shape: tuple[int, ...]
) -> None:
    batch = model.batch(WORDS)
    edit = cm.patch("residual", 0, torch.zeros(shape), [1])
    with pytest.raises(ValueError, match=r"source is \[.*'residual' is \[2, 7, .*source one row"):
        model.encoder(batch, trace=cm.Trace(edits=[edit]))
    one = torch.zeros(1, *batch.shape[1:], model.config.width)
    model.encoder(batch, trace=cm.Trace(edits=[cm.patch("residual", 0, one, [1])]))
