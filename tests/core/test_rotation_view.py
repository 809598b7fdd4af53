"""One query and one key at every distance: by hand, and against what the model itself computes."""

import math
from dataclasses import replace

import pytest
import torch

from core_models import InputError
from core_models.network.trace import Trace
from core_models.prediction.rotation_view import (
    REACH,
    layer_of,
    look_at_rotation,
    score_at,
    wavelengths,
)
from tests.core.tiny_models import new, tiny

TEXT = "red fox sees small dog likes old house"
SIZES = ("modernbert-base", "eurobert-210m", "neobert")


def built(size, **attention):
    config = tiny(size, layers=4, width=16)
    config = replace(config, attention=replace(config.attention, **attention))
    model = new(config).eval()
    (encoding,) = model.encode([TEXT])
    return model, encoding


def test_two_values_by_hand():
    # (1, 2).(3, -1) = 1; 1 * -1 - 2 * 3 = -7: cos(r) - 7 sin(r).
    found = score_at(torch.tensor([1.0, 2.0]), torch.tensor([3.0, -1.0]), [0, 1, -1, 3], theta=50.0)
    wanted = [1.0, -5.349994, 6.430599, -1.977833]
    assert found.tolist() == pytest.approx(wanted, abs=1e-5)
    half = score_at(torch.tensor([1.0, 2.0]), torch.tensor([3.0, -1.0]), [1], theta=50.0, scale=0.5)
    assert half.tolist() == pytest.approx([-2.674997], abs=1e-5)


def test_slower_pairs_by_hand():
    # Values 0 and 2 turn by 1 a token, values 1 and 3 by 100^(-1/2) = 1/10.
    q, k = torch.tensor([0.0, 1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0, 0.0])
    found = score_at(q, k, [0, 10, 20], theta=100.0)
    assert found.tolist() == pytest.approx([1, math.cos(1), math.cos(2)], abs=1e-9)
    assert wavelengths(4, 100.0) == pytest.approx([2 * math.pi, 20 * math.pi])


@pytest.mark.parametrize("size", SIZES)
def test_the_true_distance_has_the_score_of_the_model(size):
    model, encoding = built(size)
    trace = Trace(["content_score", "q", "k", "q_unturned", "k_unturned"])
    with torch.inference_mode():
        model.encoder(model.collate([encoding]), trace)
    for step in range(4):
        for head, query, key in ((0, 2, 5), (1, 6, 1), (1, 4, 4)):
            found = look_at_rotation(model, encoding, step=step, head=head, query=query, key=key)
            row = trace["content_score", step][0, head, query]
            assert found.turned == pytest.approx(row.tolist(), abs=1e-5)
            assert found.distance == query - key
            at = found.distances.index(found.distance)
            assert found.curve[at] == pytest.approx(float(row[key]), abs=1e-5)
            assert found.curve[found.distances.index(0)] == pytest.approx(found.unturned[key])
            q = trace["q_unturned", step][0, head, query]
            plain = trace["k_unturned", step][0, head] @ q / math.sqrt(len(q))
            assert found.unturned == pytest.approx(plain.tolist(), abs=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_a_key_elsewhere_in_a_longer_text_has_the_score_of_the_curve(size):
    model, encoding = built(size)
    found = look_at_rotation(model, encoding, step=0, query=7, key=2)
    # The first layer's keys know no neighbours, so the same piece has the same key anywhere.
    moved = replace(encoding, ids=[*encoding.ids])
    moved.ids[5] = encoding.ids[2]
    other = look_at_rotation(model, moved, step=0, query=7, key=5)
    assert found.curve[found.distances.index(2)] == pytest.approx(other.turned[5], abs=1e-5)
    assert found.turned[2] != pytest.approx(other.turned[5], abs=1e-3)


def test_layers_have_their_kind_window_and_theta():
    model, encoding = built("modernbert-base", window=2)
    for step, kind in enumerate(model.config.kinds):
        found = look_at_rotation(model, encoding, step=step, query=4, key=5)
        local = kind == "local"
        assert found.kind == kind
        assert found.window == (2 if local else None)
        assert found.theta == (10_000 if local else 160_000)
        assert found.visible == tuple(not local or abs(4 - n) <= 2 for n in range(len(encoding)))
        assert found.wavelengths == wavelengths(8, found.theta)
        assert found.wavelengths[0] == pytest.approx(2 * math.pi)
        assert list(found.wavelengths) == sorted(found.wavelengths)
    assert {"global", "local"} == set(model.config.kinds)


def test_distances_reach_as_far_as_asked_or_as_the_text():
    model, encoding = built("neobert")
    assert look_at_rotation(model, encoding).distances == tuple(range(-REACH, REACH + 1))
    assert look_at_rotation(model, encoding, reach=3).distances == tuple(range(-3, 4))
    (longer,) = model.encode([" ".join([TEXT] * 9)])
    assert look_at_rotation(model, longer).distances[-1] == len(longer) - 1 > REACH


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"step": 4}, "layer is 4"),
        ({"step": -1}, "layer is -1"),
        ({"head": 2}, "head is 2"),
        ({"query": 99}, "query is 99"),
        ({"key": -1}, "key is -1"),
    ],
)
def test_what_does_not_exist_is_said(values, said):
    model, encoding = built("modernbert-base")
    with pytest.raises(InputError, match=said):
        look_at_rotation(model, encoding, **values)


def test_other_positions_are_refused():
    model, encoding = built("bert-base-uncased")
    with pytest.raises(InputError, match="not rotary"):
        look_at_rotation(model, encoding)
    with pytest.raises(InputError, match="not rotary"):
        layer_of(model.config, 0)
