"""Spans by both heads: the losses of the objectives, a head worked out by hand, bad spans."""

import json
import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

import core_models as cm
from core_models.errors import InputError
from core_models.masking import spans as span_masking
from core_models.masking.boundaries import boundary_fields
from core_models.objectives import MaskedToken, SpanBoundary
from core_models.prediction import fill, fill_spans, shift
from core_models.prediction.spans import loss_of
from core_models.tokenizer import Tokenizer
from tests.core.tiny_models import narrow

TEXT = "The river was very cold in the morning and the birds were quiet."


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> cm.Model:
    config = cm.size("spanbert-base").with_vocabulary(tokenizer.vocabulary)
    config = narrow(config, width=16, inner=32, initial_std=0.4)
    return cm.Model.new(config, tokenizer, generator=torch.Generator().manual_seed(2)).eval()


def test_losses_are_those_of_both_objectives(model: cm.Model) -> None:
    """A draw of the masking itself, with every case among its spans."""
    (encoding,) = model.encode([TEXT])
    ids = torch.tensor([encoding.ids])
    maskable = ~torch.tensor([encoding.special])
    for seed in range(40):
        masked = span_masking.spans(
            ids,
            maskable,
            generator=torch.Generator().manual_seed(seed),
            mask_id=model.tokenizer.mask_id,
            vocabulary=model.tokenizer.vocabulary,
            rate=0.3,
            split=(1.0, 0.0, 0.0),
        )
        spans = [(start, stop) for _, start, stop in masked.spans.tolist()]
        inner = [s for s in spans if s[0] > 1 and s[1] < len(encoding) - 1]
        if len(inner) > 1 and len(inner) < len(spans):
            break
    else:
        pytest.fail("no seed gave spans inside and at the edge")
    boundaries, labels = boundary_fields(masked, maskable)
    batch = replace(
        model.batch([TEXT]),
        input_ids=masked.inputs,
        labels=masked.labels,
        boundaries=boundaries,
        boundary_labels=labels,
    )
    with torch.inference_mode():
        own = MaskedToken(model.heads["masked_token"])(model.encoder, batch)
        told = SpanBoundary(model.heads["span_boundary"])(model.encoder, batch)
    pieces = [piece for span in fill_spans(model, TEXT, spans) for piece in span.pieces]
    first = [loss_of(piece.masked_token) for piece in pieces]
    second = [loss for piece in pieces if (loss := loss_of(piece.span_boundary)) is not None]
    assert len(second) == int(told.counts["span_boundary"])
    assert sum(first) / len(first) == pytest.approx(float(own.total), rel=1e-5)
    assert sum(second) / len(second) == pytest.approx(float(told.total), rel=1e-5)
    # Equation 1: the sum of both, for every piece.
    total = sum(piece.loss or 0 for piece in pieces)
    assert total == pytest.approx(sum(first) + sum(second))


def test_the_boundary_head_worked_out_step_by_step(model: cm.Model) -> None:
    (encoding,) = model.encode([TEXT])
    (span,) = fill_spans(model, TEXT, [(3, 6)], top_k=4)
    assert (span.before, span.after, span.edge) == (2, 6, False)
    ids = list(encoding.ids)
    ids[3:6] = [model.tokenizer.mask_id] * 3
    head = model.heads["span_boundary"]
    with torch.inference_mode():
        hidden = model.encoder(model.collate([replace(encoding, ids=ids)])).hidden[0]
        for place, piece in enumerate(span.pieces):
            state = torch.cat([hidden[2], hidden[6], head.place.weight[place]])
            for dense, norm in (
                (head.boundary_dense, head.boundary_norm),
                (head.dense, head.norm),
            ):
                state = functional.gelu(dense.weight @ state + dense.bias)
                state = functional.layer_norm(state, (16,), norm.weight, norm.bias, norm.eps)
            table = model.encoder.embeddings.pieces.weight
            chances = (table @ state + head.decoder.bias).softmax(0)
            found = piece.span_boundary
            assert found is not None
            assert found.original is not None
            assert found.original.probability == pytest.approx(
                float(chances[encoding.ids[3 + place]]), rel=1e-4
            )
            assert [c.id for c in found.candidates] == chances.topk(4).indices.tolist()


def test_the_masked_head_says_what_fill_says(model: cm.Model) -> None:
    (span,) = fill_spans(model, TEXT, [(4, 7)], masks=[9])
    expected = fill(model, TEXT, masks=[4, 5, 6, 9]).predictions[:3]
    for piece, wanted in zip(span.pieces, expected, strict=True):
        assert [c.id for c in piece.masked_token.candidates] == [c.id for c in wanted.candidates]
        assert wanted.original is not None
        assert loss_of(piece.masked_token) == pytest.approx(
            -math.log(wanted.original.probability), rel=1e-5
        )


def test_pieces_in_the_span_reach_the_boundary_head_through_the_encoder_only(
    model: cm.Model,
) -> None:
    deaf = model.clone()  # attention adds nothing: no state hears of another position
    for block in deaf.encoder.blocks:
        torch.nn.init.zeros_(block.attention.output.weight)
        torch.nn.init.zeros_(block.attention.output.bias)
    other = {3: 7, 4: 8, 5: 9}
    (hidden,) = fill_spans(deaf, TEXT, [(3, 6)])
    (changed,) = fill_spans(deaf, TEXT, [(3, 6)], replaced=other)
    for a, b in zip(hidden.pieces, changed.pieces, strict=True):
        assert a.span_boundary is not None
        assert b.span_boundary is not None
        assert a.span_boundary.candidates == b.span_boundary.candidates
        assert a.masked_token.candidates != b.masked_token.candidates
    still = shift(deaf, TEXT, (3, 6), replaced=other)
    assert (still.before, still.after) == (0, 0)
    assert still.inside > 0.1
    moved = shift(model, TEXT, (3, 6), replaced=other)
    assert moved.before > 1e-3
    assert moved.after > 1e-3
    kept = [loss_of(p.masked_token) for p in fill_spans(model, TEXT, [(3, 6)], kept=True)[0].pieces]
    wanted = fill(model, TEXT, kept=[3, 4, 5]).predictions
    assert kept == [pytest.approx(-math.log(p.original.probability)) for p in wanted if p.original]


def test_edges_and_late_places_have_no_boundary_answer(model: cm.Model) -> None:
    (edge,) = fill_spans(model, TEXT, [(1, 3)])
    assert edge.edge
    assert all(piece.span_boundary is None for piece in edge.pieces)
    assert edge.pieces[0].loss == loss_of(edge.pieces[0].masked_token)
    last = len(model.encode([TEXT])[0]) - 1
    (right,) = fill_spans(model, TEXT, [(last - 2, last)])
    assert right.edge
    assert all(piece.span_boundary is None for piece in right.pieces)
    text = " ".join(["river"] * 20)
    length = len(model.encode([text])[0])
    (long,) = fill_spans(model, text, [(2, length - 2)])
    told = [piece.place for piece in long.pieces if piece.span_boundary is not None]
    assert told == list(range(15))
    (gap,) = fill_spans(model, "The river was [MASK] cold in the morning.", [(4, 6)])
    assert gap.pieces[0].loss is None
    assert gap.pieces[0].span_boundary is not None


@pytest.mark.parametrize(
    ("spans", "values", "word"),
    [
        ([(0, 3)], {}, "behind position 0"),
        ([(4, 4)], {}, "must hold"),
        ([(3, 5), (5, 7)], {}, "join them"),
        ([(3, 6), (4, 7)], {}, "join them"),
        ([(3, 5)], {"replaced": {9: 7}}, "stands in no span"),
        ([(3, 5)], {"replaced": {3: 10**6}}, "piece id"),
        ([(3, 5)], {"masks": [5]}, "hidden, too"),
        ([(3, 16)], {}, "stands for no word"),
        ([(300, 301)], {}, "whole number from 0"),
        ([(3, 5)], {"top_k": 0}, "top_k"),
    ],
)
def test_spans_that_do_not_fit_are_explained(model, spans, values, word) -> None:
    with pytest.raises(InputError, match=word):
        fill_spans(model, TEXT, spans, **values)


def test_a_model_without_the_head_is_named(model: cm.Model) -> None:
    plain = cm.Model.new(model.config, model.tokenizer, heads=["masked_token"]).eval()
    with pytest.raises(InputError, match="no span_boundary head"):
        fill_spans(plain, TEXT, [(3, 5)])
    with pytest.raises(InputError, match="training mode"):
        fill_spans(model.clone().train(), TEXT, [(3, 5)])


def test_a_shift_by_hand(model: cm.Model) -> None:
    """How far each state moves, by the length that it had while the span was hidden."""
    model = model.clone()
    with torch.no_grad():  # else a norm makes all states equally long
        model.encoder.blocks[-1].feed_forward_norm.weight[:8] *= 9
    (encoding,) = model.encode([TEXT])
    ids = torch.tensor([encoding.ids] * 2)
    ids[0, 3:6] = model.tokenizer.mask_id
    ids[1, 3:6] = torch.tensor([7, 8, 9])
    with torch.inference_mode():
        old, new = model.encoder(cm.Batch(input_ids=ids)).hidden
    moved = ((new - old).norm(dim=1) / old.norm(dim=1)).tolist()
    found = shift(model, TEXT, (3, 6), replaced={3: 7, 4: 8, 5: 9})
    assert found.before == pytest.approx(moved[2], rel=1e-4)
    assert found.after == pytest.approx(moved[6], rel=1e-4)
    assert found.inside == pytest.approx(sum(moved[3:6]) / 3, rel=1e-4)


def test_spans_are_plain_json(model: cm.Model) -> None:
    (found,) = fill_spans(model, TEXT, [(3, 6)], top_k=2)
    values = found.to_json()
    assert json.loads(json.dumps(values)) == values
    assert values["pieces"][1] == found.pieces[1].to_json()
    assert values["pieces"][1]["masked_token"]["position"] == 4
    moved = shift(model, TEXT, (3, 6), replaced={3: 7, 4: 8, 5: 9})
    assert moved.to_json() == {
        "before": moved.before,
        "after": moved.after,
        "inside": moved.inside,
    }


@pytest.mark.parametrize("spans", [None, 3, "ab", [None], [(2,)], [(2, 4, 6)], [(2.0, 4.0)]])
def test_what_is_no_span_is_refused(model: cm.Model, spans: object) -> None:
    with pytest.raises(InputError, match=r"spans must be a list|must be two positions"):
        fill_spans(model, TEXT, spans)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be two positions"):
        shift(model, TEXT, spans)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values",
    [{"replaced": 3}, {"replaced": [3]}, {"masks": None}, {"masks": [None]}, {"masks": [[]]}],
)
def test_places_that_are_none_are_refused(model: cm.Model, values: dict[str, object]) -> None:
    with pytest.raises(InputError):
        fill_spans(model, TEXT, [(2, 4)], **values)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        shift(model, TEXT, (2, 4), **values)  # type: ignore[arg-type]
