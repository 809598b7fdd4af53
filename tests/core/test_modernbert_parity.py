"""ModernBERT against transformers on random tiny models, and the traps of its kind."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernBertForMultipleChoice,
    ModernBertForQuestionAnswering,
    ModernBertForSequenceClassification,
    ModernBertForTokenClassification,
    ModernBertModel,
)

import core_models as cm
from core_models.batch import Batch
from core_models.checkpoints.formats import FORMATS
from core_models.config import Rotary
from core_models.errors import InputError
from core_models.network.encoder import Encoder
from core_models.network.initialise import initialise
from core_models.network.trace import Trace
from core_models.network.windows import block_length
from tests.core import parity
from tests.core.parity import VOCABULARY, batch_of, read

WINDOW = 3
"""Tokens on each side that local layers see."""
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "local_attention": 2 * WINDOW,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
ODD = {
    "hidden_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "intermediate_size": 9,
    "hidden_activation": "silu",
    "classifier_activation": "relu",
    "layer_types": ["sliding_attention", "full_attention"],
}
BIASES = {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True}
SHAPES = [{}, ODD, BIASES, {"global_attn_every_n_layers": 1}]
HEADS = {"masked_token": "logits"}
LENGTHS = [1, 3, WINDOW + 1, 12, 13, 38, 61]
"""Below the window, at its border, and far above it, where it is computed in blocks."""
PADDINGS = ["none", "left", "right", "middle", "wide gap", "everywhere"]


def theirs(shape: dict[str, Any], kind: type = ModernBertForMaskedLM, scale: float = 1.0) -> Any:
    return parity.randomised(kind(ModernBertConfig(**SHAPE | shape)), scale=scale)


def inputs(length: int, pad: str) -> dict[str, Tensor]:
    """Three rows, of which the second has padding where ``pad`` says."""
    source = torch.Generator().manual_seed(length)
    ids = torch.randint(5, VOCABULARY, (3, length), generator=source)
    mask = torch.ones(3, length, dtype=torch.long)
    if pad == "everywhere":
        mask = (torch.rand(3, length, generator=source) < 0.6).long()
        mask[:, 0] = 1
    third = length // 3
    places = {
        "left": slice(0, third),
        "right": slice(length - third, length),
        "middle": slice(third, third + 2),
        "wide gap": slice(2, max(2, length - 2)),  # some padding sees no token in its window
    }
    if pad in places:
        mask[1, places[pad]] = 0
    ids[mask == 0] = 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_equal(tmp_path: Path, shape: dict[str, Any], length: int, traced: bool) -> None:
    reference = theirs(shape)
    model = parity.written(reference, tmp_path)
    for pad in PADDINGS:
        parity.check_outputs(model, reference, inputs(length, pad), HEADS, traced=traced)


@pytest.mark.parametrize("length", [12, 38])
@pytest.mark.parametrize("pad", ["none", "left", "everywhere"])
def test_states_of_every_layer_and_attention_equal(tmp_path: Path, length: int, pad: str) -> None:
    reference = theirs({})
    reference.set_attn_implementation("eager")
    model = parity.written(reference, tmp_path)
    values = inputs(length, pad)
    real = values["attention_mask"].bool()
    trace = Trace(["probabilities"])
    with torch.no_grad():
        expected = reference(**values, output_hidden_states=True, output_attentions=True)
        states = model.encoder(batch_of(values), every_step=True).states
        model.encoder(batch_of(values), trace)
    assert len(states) == len(expected.hidden_states) == 6
    for ours, other in zip(states, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours[real], other[real], atol=1e-5, rtol=0)
    for step, other in enumerate(expected.attentions):
        ours = trace["probabilities", step].permute(0, 2, 1, 3)
        torch.testing.assert_close(ours[real], other.permute(0, 2, 1, 3)[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("shape", [{}, BIASES])
@pytest.mark.parametrize(("length", "pad"), [(12, "left"), (38, "everywhere"), (61, "wide gap")])
def test_gradients_equal_in_train_mode(
    tmp_path: Path, shape: dict[str, Any], length: int, pad: str
) -> None:
    reference = theirs(shape)
    model = parity.written(reference, tmp_path)
    parity.check_gradients(model, reference, inputs(length, pad), HEADS)


def test_small_weights_show_the_epsilon_of_norms(tmp_path: Path) -> None:
    reference = theirs({}, scale=3e-3)
    model = parity.written(reference, tmp_path)
    assert model.config.norm_epsilon == 1e-5
    parity.check_epsilon(model, reference, inputs(11, "none"), HEADS)


def test_embeddings_in_place_of_ids(tmp_path: Path) -> None:
    reference = theirs({})
    parity.check_embeddings(parity.written(reference, tmp_path), reference, inputs(38, "none"))


@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip_is_bit_equal(tmp_path: Path, shape: dict[str, Any]) -> None:
    model = parity.check_round_trip(theirs(shape), AutoModelForMaskedLM, tmp_path)
    assert model.config.family == "modernbert"


TASKS = {
    "classify": (ModernBertForSequenceClassification, {"num_labels": 3}),
    "regress": (ModernBertForSequenceClassification, {"num_labels": 1}),
    "tag": (ModernBertForTokenClassification, {"num_labels": 5}),
    "span": (ModernBertForQuestionAnswering, {}),
}


@pytest.mark.parametrize("head", TASKS)
@pytest.mark.parametrize("shape", [{}, BIASES | {"classifier_activation": "silu"}])
def test_fine_tuned_heads_equal(tmp_path: Path, head: str, shape: dict[str, Any]) -> None:
    kind, values = TASKS[head]
    reference = theirs(values | shape, kind)
    model = parity.check_round_trip(reference, kind, tmp_path)
    assert list(model.heads) == [head]
    given = inputs(38, "right")
    real = given["attention_mask"].bool()
    with torch.no_grad():
        expected = reference(**given)
        ours = model.logits(batch_of(given))[head]
    if head == "span":
        logits = torch.stack([expected.start_logits, expected.end_logits], -1)
    else:
        logits = expected.logits.squeeze(-1) if head == "regress" else expected.logits
    per_token = ours.shape[:2] == real.shape
    keep = real if per_token else slice(None)
    torch.testing.assert_close(ours[keep], logits[keep], atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", ["classify", "regress"])
def test_texts_by_the_mean_of_their_tokens(tmp_path: Path, head: str) -> None:
    """The released files say ``classifier_pooling: mean``."""
    kind, values = TASKS[head]
    reference = theirs(values | {"classifier_pooling": "mean"}, kind)
    model = parity.check_round_trip(reference, kind, tmp_path)
    given = inputs(38, "left")
    with torch.no_grad():
        expected = reference(**given).logits
        ours = model.heads[head].answer(model.encoder, batch_of(given))
        first = model.heads[head](model.encoder(batch_of(given)).hidden)
    logits = expected.squeeze(-1) if head == "regress" else expected
    torch.testing.assert_close(ours, logits, atol=1e-5, rtol=0)
    assert not torch.allclose(first[1], logits[1], atol=1e-2)  # padding must not count


def test_a_bare_encoder_has_no_head(tmp_path: Path) -> None:
    assert set(parity.written(theirs({}, ModernBertModel), tmp_path).heads) == set()


def test_several_choices_are_refused(tmp_path: Path) -> None:
    theirs({}, ModernBertForMultipleChoice).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="ModernBertForMultipleChoice, whose head"):
        read(tmp_path)


# --- traps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [12, 38])
def test_a_local_layer_does_not_see_beyond_its_window_on_any_path(length: int) -> None:
    """One local layer alone: what a token gives reaches the window and no further."""
    config = replace(tiny(), schedule=(0,), layer_kinds=("local",))
    encoder = built(config)
    ids = torch.arange(length)[None] % 60 + 7
    other = ids.clone()
    place = length // 2
    other[0, place] = 5
    near = (torch.arange(length) - place).abs() <= WINDOW
    for trace in (None, Trace(["probabilities"])):
        with torch.no_grad():
            before = encoder(Batch(input_ids=ids), trace).hidden[0]
            after = encoder(Batch(input_ids=other), trace).hidden[0]
        moved = (before - after).abs().amax(-1)
        assert bool((moved[near] > 1e-4).all())
        assert bool((moved[~near] == 0).all())
        if trace is not None:
            seen = trace["probabilities", 0][0].sum(0) > 0
            assert torch.equal(seen[place], near)


def test_padding_inside_a_window_has_no_say() -> None:
    encoder = built(tiny())
    ids = torch.arange(38)[None] % 60 + 7
    mask = torch.ones(1, 38, dtype=torch.bool)
    mask[0, [4, 5, 17, 30]] = False
    other = torch.where(mask, ids, 5)
    with torch.no_grad():
        before = encoder(Batch(input_ids=ids, attention_mask=mask)).hidden[mask]
        after = encoder(Batch(input_ids=other, attention_mask=mask)).hidden[mask]
    assert torch.equal(before, after)


def test_a_row_of_padding_alone_gives_no_gradient_that_is_not_a_number() -> None:
    encoder = built(tiny()).train()
    mask = torch.ones(2, 38, dtype=torch.bool)
    mask[1, 3:] = False  # most queries of the second row see no key
    out = encoder(Batch(input_ids=torch.full((2, 38), 7), attention_mask=mask))
    assert bool(out.hidden.isfinite().all())
    out.hidden[mask].square().mean().backward()
    assert all(bool(p.grad.isfinite().all()) for p in encoder.parameters() if p.grad is not None)


def test_blocks_give_what_the_whole_square_gives() -> None:
    encoder = built(tiny(window=8))
    length = 3 * block_length(8) + 5
    mask = torch.rand(3, length, generator=torch.Generator().manual_seed(2)) < 0.8
    batch = Batch(input_ids=torch.arange(3 * length).view(3, -1) % 60 + 7, attention_mask=mask)
    with torch.no_grad():
        fast = encoder(batch).hidden
        whole = encoder(batch, Trace(["scores"])).hidden
        places = torch.tensor([[0, 12, length - 1]]).expand(3, -1)
        local_last = built(replace(tiny(window=8), layer_kinds=("global", "local")))
        every = local_last(batch).hidden
        some = local_last(batch, places=places).hidden
    torch.testing.assert_close(fast[mask], whole[mask], atol=1e-5, rtol=0)
    row = torch.arange(3)[:, None]
    kept = mask[row, places]
    torch.testing.assert_close(some[row, places][kept], every[row, places][kept], atol=1e-5, rtol=0)


def test_the_first_attention_alone_has_no_norm() -> None:
    encoder = built(tiny())
    assert [type(block.attention_norm).__name__ for block in encoder.blocks] == [
        "Identity",
        *["LayerNorm"] * 4,
    ]
    shared = Encoder(replace(tiny(), schedule=(0, 0, 0)))  # its block stands further on, too
    assert type(shared.blocks[0].attention_norm).__name__ == "LayerNorm"
    bare = Encoder(replace(tiny(), embeddings=replace(tiny().embeddings, normed=False)))
    assert type(bare.blocks[0].attention_norm).__name__ == "LayerNorm"


def test_the_base_of_the_turns_is_the_kinds_own(tmp_path: Path) -> None:
    thetas = {"global_rope_theta": 500.0, "local_rope_theta": 20.0}
    reference = theirs(thetas)
    model = parity.written(reference, tmp_path)
    rotary = model.config.attention.rotary
    assert rotary == Rotary(theta=500.0, local_theta=20.0, positions=64)
    parity.check_outputs(model, reference, inputs(38, "left"), HEADS)
    with torch.no_grad():
        given = batch_of(inputs(38, "none"))
        expected = model.encoder(given).hidden
        for own in ({"theta": 20.0}, {"local_theta": 500.0}):
            attention = replace(model.config.attention, rotary=replace(rotary, **own))
            other = Encoder(replace(model.config, attention=attention)).eval()
            other.load_state_dict(model.encoder.state_dict())
            assert float((other(given).hidden - expected).abs().max()) > 1e-3


def test_scores_depend_on_distances_alone_and_a_trace_shows_the_turn() -> None:
    encoder = built(tiny())
    trace = Trace(["q", "k", "q_unturned", "k_unturned", "content_score"])
    with torch.no_grad():
        encoder(Batch(input_ids=torch.full((1, 9), 7)), trace)  # one piece everywhere
    q, k = trace["q", 1][0], trace["k", 1][0]
    torch.testing.assert_close(trace["content_score", 1][0], q @ k.mT / 8**0.5, atol=1e-6, rtol=0)
    before = trace["q_unturned", 1][0]
    torch.testing.assert_close(before, before[:, :1].expand_as(before), atol=1e-6, rtol=0)
    torch.testing.assert_close(q.norm(dim=-1), before.norm(dim=-1), atol=1e-5, rtol=0)
    assert float((q - before)[:, 1:].abs().max()) > 0.1
    scores = trace["content_score", 1][0]
    for distance in range(-8, 9):
        along = scores.diagonal(distance, 1, 2)
        torch.testing.assert_close(along, along[:, :1].expand_as(along), atol=1e-5, rtol=0)
    assert float((scores[:, 0, 3] - scores[:, 3, 0]).abs().max()) > 1e-3


def test_moving_a_text_moves_nothing() -> None:
    """Left padding shifts every position; rotary scores see distances alone."""
    encoder = built(tiny())
    ids = torch.arange(14)[None] + 9
    padded = torch.cat([torch.zeros(1, 11, dtype=torch.long), ids], 1)
    with torch.no_grad():
        alone = encoder(Batch(input_ids=ids)).hidden[0]
        shifted = encoder(Batch(input_ids=padded, attention_mask=padded > 0)).hidden[0, 11:]
    torch.testing.assert_close(alone, shifted, atol=1e-5, rtol=0)


def test_segments_are_not_read() -> None:
    encoder = built(tiny())
    ids = torch.arange(9)[None] + 9
    with torch.no_grad():
        one = encoder(Batch(input_ids=ids)).hidden
        two = encoder(Batch(input_ids=ids, segment_ids=torch.ones_like(ids))).hidden
    assert torch.equal(one, two)


# --- files ----------------------------------------------------------------------------------------

OLD = {
    "model_type": "modernbert",
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "local_rope_theta": 160000.0,
    "local_attention": 128,
    "num_hidden_layers": 7,
    "layer_norm_eps": 1e-5,
    "position_embedding_type": "sans_pos",
    "reference_compile": None,
    "repad_logits_with_grad": False,
    "tokenizer_class": "PreTrainedTokenizerFast",
    "classifier_pooling": "mean",
}
"""Fields as released files of 2024 and 2025 have them."""


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5, 22])
def test_any_depth_comes_back_as_it_was(tmp_path: Path, layers: int) -> None:
    """Below three layers the released pattern is not to be seen in a file."""
    config = replace(tiny(), schedule=tuple(range(layers)))
    cm.Model.new(config, words()).save(tmp_path)
    again = cm.load(tmp_path).config
    assert again == config
    assert again.kinds == cm.size("modernbert-base").kinds[:layers]
    assert (again.attention.window is None) == (layers == 1)


def test_files_of_transformers_4_are_read() -> None:
    config = FORMATS["modernbert"].read_config(OLD)
    assert config.layer_kinds == ("global", "local", "local")
    assert config.kinds == ("global", "local", "local", "global", "local", "local", "global")
    assert config.attention.rotary == Rotary(theta=160000.0, local_theta=160000.0, positions=8192)
    assert config.attention.window == 64


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layer_types": ["full_attention"]}, "must be a list of 7 names"),
        ({"layer_types": ["chunked_attention"] * 7}, "layer_types has 'chunked_attention'"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling is set"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 1.0}}},
            "only an object of rope_type default",
        ),
        ({"rope_parameters": {"rope_theta": 1.0}}, "must be an object with full_attention"),
        ({"mlp_dropout": 0.1}, "only equal ones are supported"),
        ({"tie_word_embeddings": None}, "tie_word_embeddings is None"),
        ({"num_attention_heads": 5}, "not a multiple"),
        ({"local_atention": 128}, "did you mean 'local_attention'"),
    ],
)
def test_what_cannot_be_read_is_said(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FORMATS["modernbert"].read_config(OLD | values)


def test_a_packed_tensor_of_another_shape_is_named(tmp_path: Path) -> None:
    theirs({}).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    name = "model.layers.1.attn.Wqkv.weight"
    for rows, message in ((95, "multiple of 3"), (93, "'model.layers.1.attn.Wqkv.weight' has")):
        save_file(tensors | {name: tensors[name][:rows].contiguous()}, path)
        with pytest.raises(InputError, match=message):
            read(tmp_path)


def test_a_value_that_the_files_cannot_hold_is_refused(tmp_path: Path) -> None:
    config = replace(tiny(), norm_place="after")
    model = cm.Model.new(config, words())
    with pytest.raises(InputError, match="norm_place is 'after', which files of type modernbert"):
        model.save(tmp_path)


def test_saved_and_opened_by_transformers(tmp_path: Path) -> None:
    """With the tokenizer: one text through ``Model`` and through theirs."""
    model = cm.Model.new(tiny(), words(), generator=torch.Generator().manual_seed(3)).eval()
    model.save(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [
        "ModernBertForMaskedLM"
    ]
    again = cm.load(tmp_path)
    assert type(again) is cm.Model
    reference = ModernBertForMaskedLM.from_pretrained(tmp_path).eval()
    batch = again.batch(["red fox sees the small dog", "birds sing"])
    assert batch.input_ids is not None
    assert batch.attention_mask is not None
    with torch.no_grad():
        expected = reference(batch.input_ids, attention_mask=batch.attention_mask.long()).logits
        ours = again(batch).logits["masked_token"]
    real = batch.attention_mask
    torch.testing.assert_close(ours[real], expected[real], atol=1e-5, rtol=0)


def words() -> cm.Tokenizer:
    text = "red fox sees small dog likes old house birds sing in the tree and river"
    return cm.Tokenizer.train([text] * 5, vocabulary=300, kind="byte_bpe")


def tiny(window: int = WINDOW) -> cm.Config:
    """A narrow ModernBERT of five layers."""
    config = cm.size("modernbert-base").with_vocabulary(300, pad_id=words().pad_id)
    return replace(
        config,
        width=32,
        embeddings=replace(config.embeddings, width=32),
        attention=replace(config.attention, heads=4, head_width=8, window=window),
        feed_forward=replace(config.feed_forward, width=48),
        schedule=tuple(range(5)),
        initial_std=0.3,
    )


def built(config: cm.Config) -> Encoder:
    encoder = Encoder(config).eval()
    initialise(encoder, 0.3, torch.Generator().manual_seed(1))
    return encoder
