"""Heads switched off: by hand, and against edits made one at a time."""

import pytest
import torch

import core_models as cm
from core_models.prediction import ablation
from tests.core.tiny_models import WORDS, new, tiny

HEADS = {
    "bert-base": "masked_token",
    "albert-base": "masked_token",
    "deberta-base": "masked_token",
    "xlnet-base": "permutation",
}


def build(name, seed=1, layers=3):
    model = new(tiny(name, layers=layers), heads=(HEADS[name],), seed=seed).eval()
    (encoding,) = model.encode([WORDS.replace("small", "[MASK]")])
    return model, encoding, encoding.ids.index(model.tokenizer.mask_id)


@pytest.fixture(params=list(HEADS))
def scene(request):
    return build(request.param)


def one_by_one(model, encoding, position, edits):
    """The same with the parts that everybody uses: one forward pass, explicit edits."""
    from core_models.prediction.passes import head_of, hidden_at

    with torch.no_grad():
        hidden = hidden_at(model, [encoding], [(0, position)], cm.Trace(edits=edits))
        return head_of(model)(hidden)[0].log_softmax(-1)


def test_no_head_off_is_the_model_as_it_is(scene):
    model, encoding, position = scene
    found = ablation.without_heads(model, encoding, position, [(), ()])
    expected = one_by_one(model, encoding, position, [])
    torch.testing.assert_close(found, expected.expand(2, -1), atol=1e-5, rtol=0)


def test_rows_of_a_batch_lose_their_own_heads(scene):
    model, encoding, position = scene
    rows = [[(0, 1)], [(1, 0), (2, 1)], [], [(0, 0), (0, 1)]]
    found = ablation.without_heads(model, encoding, position, rows)
    last = ablation.steps_of(model.config, 2)
    for row, heads in zip(found, rows, strict=True):
        edits = [
            cm.switch_off_heads(step, [head], stream=stream)
            for step, head in heads
            for stream in ("content", "query")
        ]
        edits += [
            cm.Edit("head_output", cm.switch_off_heads(0, [head]).function, None, "mask_decoder")
            for step, head in heads
            if step in last
        ]
        expected = one_by_one(model, encoding, position, edits)
        torch.testing.assert_close(row, expected, atol=1e-5, rtol=0)
    assert (found[0] - found[2]).abs().max() > 1e-4


def test_damage_is_the_difference_of_two_log_probabilities(scene):
    model, encoding, position = scene
    piece = model.tokenizer.id("small")
    seen = []
    damage = ablation.damage(
        model, encoding, position, piece, progress=lambda done, of: seen.append((done, of))
    )
    assert damage.shape == (3, 2)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    off = ablation.spread(model.config, [(1, 0)])
    both = ablation.without_heads(model, encoding, position, [(), off])[:, piece]
    torch.testing.assert_close(damage[1, 0], both[1] - both[0], atol=1e-5, rtol=0)
    some = ablation.damage(model, encoding, position, piece, steps=[2])
    torch.testing.assert_close(some[0], damage[2])


def test_a_head_whose_output_is_zero_does_no_damage():
    model, encoding, position = build("bert-base")
    size = model.config.attention.head_width
    value = model.encoder.blocks[1].attention.value
    with torch.no_grad():
        value.weight[:size] = 0
        value.bias[:size] = 0
    damage = ablation.damage(model, encoding, position, model.tokenizer.id("small"))
    assert abs(float(damage[1, 0])) < 1e-6
    assert damage[1, 1].abs() > 1e-5


def test_shared_weights_lose_the_head_in_every_step():
    model, encoding, position = build("albert-base")
    piece = model.tokenizer.id("small")
    assert ablation.spread(model.config, [(1, 0)]) == {(0, 0), (1, 0), (2, 0)}
    shared = ablation.damage(model, encoding, position, piece)
    torch.testing.assert_close(shared[0], shared[1])
    torch.testing.assert_close(shared[0], shared[2])
    single = ablation.damage(model, encoding, position, piece, shared=False)
    assert (single[0] - single[1]).abs().max() > 1e-5
    all_off = ablation.without_heads(model, encoding, position, [(), [(0, 0), (1, 0), (2, 0)]])[
        :, piece
    ]
    torch.testing.assert_close(shared[1, 0], all_off[1] - all_off[0], atol=1e-5, rtol=0)


def test_what_cannot_be_switched_off():
    model, encoding, position = build("bert-base")
    for head in ((3, 0), (0, 2), (-1, 0)):
        with pytest.raises(cm.InputError, match="There is no head"):
            ablation.without_heads(model, encoding, position, [[head]])
    with pytest.raises(cm.InputError, match="beyond the text"):
        ablation.without_heads(model, encoding, 99, [[]])
    for piece in (None, 10**7, -1):
        with pytest.raises(cm.InputError, match=r"Piece id .* is outside"):
            ablation.damage(model, encoding, position, piece)
    with pytest.raises(cm.InputError, match="no head 0 in layer 9"):
        ablation.damage(model, encoding, position, 5, steps=[9])
    judge = new(tiny("electra-base"), heads=("replaced_token",)).eval()
    with pytest.raises(cm.InputError, match="judges tokens"):
        ablation.without_heads(judge, encoding, position, [[]])
