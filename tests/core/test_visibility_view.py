"""What tokens may see, as it is shown, against the attention that models really pay."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import core_models as cm
from core_models import InputError
from core_models.masking.orderings import paper
from core_models.network.trace import Trace
from core_models.prediction.visibility_view import (
    WINDOW,
    drawn_order,
    learnt_ways,
    look_at_visibility,
    ways_of,
)
from tests.core.tiny_models import new, tiny

TEXT = "red fox sees small dog likes old house"


def attended(model, encoding, **more):
    """Bool [steps, L, L] of each stream: some head puts weight on the column."""
    batch = replace(model.collate([encoding]), **more)
    trace = Trace(["probabilities"])
    with torch.inference_mode():
        model.encoder(batch, trace)
    streams = ["content"] + (["query"] if batch.targets is not None else [])
    return {
        stream: (trace.stack("probabilities", stream=stream)[:, 0].amax(1) > 0).numpy()
        for stream in streams
    }


def built(size, *, layers=3, **attention):
    config = tiny(size, layers=layers, width=16)
    config = replace(config, attention=replace(config.attention, **attention))
    model = new(config).eval()
    (encoding,) = model.encode([TEXT])
    return model, encoding


@pytest.mark.parametrize(
    ("size", "attention", "ways"),
    [
        ("bert-base-uncased", {}, ["full"] * 3),
        ("albert-base-v2", {}, ["full"] * 3),
        ("deberta-v3-base", {}, ["full"] * 3),
        ("xlnet-base-cased", {}, ["full"] * 3),
        ("bert-base-uncased", {"direction": "left"}, ["causal"] * 3),
        ("modernbert-base", {"window": 2}, ["full", "local", "local"]),
        ("modernbert-base", {"window": 1}, ["full", "local", "local"]),
    ],
)
def test_each_layer_attends_to_what_its_way_of_reading_shows(size, attention, ways):
    model, encoding = built(size, **attention)
    view = look_at_visibility(model, encoding)
    assert ways_of(model.config) == tuple(frozenset([way]) for way in ways)
    for step, way in enumerate(ways):
        found = attended(model, encoding)["content"][step]
        assert (found == view.masks[way]).all(), (step, way)
    assert len({view.masks[way].tobytes() for way in view.masks}) == len(view.masks)


def test_a_layer_may_be_local_and_causal():
    model, encoding = built("modernbert-base", window=2, direction="left")
    first, second = (sorted(ways) for ways in ways_of(model.config)[:2])
    assert (first, second) == (["causal"], ["causal", "local"])
    view = look_at_visibility(model, encoding)
    found = attended(model, encoding)["content"]
    assert (found[0] == view.masks["causal"]).all()
    assert (found[1] == (view.masks["causal"] & view.masks["local"])).all()


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_both_streams_of_a_permutation_attend_to_what_is_shown(seed):
    model, encoding = built("xlnet-base-cased")
    view = look_at_visibility(model, encoding, order=drawn_order(encoding, seed))
    plain = [n for n, special in enumerate(encoding.special) if not special]
    ordering = paper(torch.tensor([view.order]), torch.tensor([len(plain)]))
    fields = ("visibility", "targets", "target_visibility")
    found = attended(model, encoding, **{name: getattr(ordering, name) for name in fields})
    targets = ordering.targets[0].tolist()
    assert sorted(targets) == plain
    for step in range(3):
        assert (found["content"][step] == view.masks["permuted"]).all()
        assert (found["query"][step] == view.queries[targets]).all()
    # The streams differ in the pieces themselves, and nowhere else.
    ring = view.masks["permuted"] & ~view.queries
    assert (ring == np.diag([n in plain for n in range(len(encoding))])).all()


def test_the_order_of_the_text_is_causal_but_for_special_pieces():
    model, encoding = built("xlnet-base-cased")
    special = [n for n, flag in enumerate(encoding.special) if flag]
    plain = [n for n, flag in enumerate(encoding.special) if not flag]
    view = look_at_visibility(model, encoding, order=[*special, *plain])
    both = np.ix_(plain, plain)
    assert (view.masks["permuted"][both] == view.masks["causal"][both]).all()


def test_the_window_is_the_models_own_or_a_small_one():
    model, encoding = built("modernbert-base", window=3)
    assert look_at_visibility(model, encoding).window == 3
    assert look_at_visibility(model, encoding, window=1).masks["local"].sum(1).max() == 3
    bert, read = built("bert-base-uncased")
    assert look_at_visibility(bert, read).window == WINDOW
    wide = look_at_visibility(bert, read, window=len(read))
    assert wide.masks["local"].all()


def test_what_pretraining_alone_makes_a_model_do():
    assert learnt_ways(cm.size("bert-base-uncased")) == frozenset()
    assert learnt_ways(cm.size("xlnet-base-cased")) == {"permuted"}
    both = replace(cm.size("bert-base-uncased"), objectives=("causal",))
    assert learnt_ways(both) == {"causal"}
    left = replace(both, attention=replace(both.attention, direction="left"))
    assert learnt_ways(left) == frozenset()


def test_what_cannot_be_shown_is_refused():
    model, encoding = built("bert-base-uncased")
    with pytest.raises(InputError, match="window is 0"):
        look_at_visibility(model, encoding, window=0)
    for order in ([0, 1], [0] * len(encoding), [*range(1, len(encoding) + 1)]):
        with pytest.raises(InputError, match="each of the 10 positions once"):
            look_at_visibility(model, encoding, order=order)
    with pytest.raises(InputError, match="begin with the special pieces, which stand at 0, 9"):
        look_at_visibility(model, encoding, order=range(10))
