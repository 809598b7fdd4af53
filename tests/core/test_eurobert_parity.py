"""EuroBERT against transformers on random tiny models; grouped queries, and layers of their own."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    EuroBertConfig,
    EuroBertForMaskedLM,
    EuroBertForSequenceClassification,
    EuroBertForTokenClassification,
    EuroBertModel,
)

import core_models as cm
from core_models.checkpoints.formats import FORMATS
from core_models.config import Attention as AttentionConfig
from core_models.errors import InputError
from core_models.network.attention import Attention
from core_models.network.encoder import Encoder
from core_models.network.initialise import initialise
from core_models.network.trace import Trace
from tests.core import parity
from tests.core.parity import VOCABULARY, batch_of, inputs
from tests.core.tiny_models import new, tiny

GROUPS = {"num_attention_heads": 6, "num_key_value_heads": 2, "hidden_size": 24}
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "mask_token_id": 3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 250_000.0},
}
ODD = {
    "num_hidden_layers": 1,
    "intermediate_size": 9,
    "hidden_act": "gelu",
    "attention_bias": True,
    "head_dim": 6,
    "num_key_value_heads": 1,
}
SHAPES = [{}, GROUPS, ODD]
HEADS = {"masked_token": "logits"}


def theirs(shape: dict[str, Any], kind: type = EuroBertForMaskedLM, scale: float = 1.0) -> Any:
    return parity.randomised(kind(EuroBertConfig(**SHAPE | shape)), scale=scale)


def everywhere(length: int) -> dict[str, Tensor]:
    """Padding anywhere but at the first token."""
    values = inputs(length, "none", segments=1)
    mask = (torch.rand(3, length, generator=torch.Generator().manual_seed(2)) < 0.6).long()
    mask[:, 0] = 1
    return values | {"attention_mask": mask}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_equal(tmp_path: Path, shape: dict[str, Any], traced: bool) -> None:
    reference = theirs(shape)
    model = parity.written(reference, tmp_path)
    for length, pad in parity.LENGTHS:
        values = inputs(length, pad, pad_id=1, segments=1)
        parity.check_outputs(model, reference, values, HEADS, traced=traced)
    parity.check_outputs(model, reference, everywhere(61), HEADS, traced=traced)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_equal_and_round_trip_is_bit_equal(tmp_path: Path, shape: dict[str, Any]) -> None:
    reference = theirs(shape)
    again = parity.check_round_trip(reference, AutoModelForMaskedLM, tmp_path)
    assert again.config.family == "eurobert"
    parity.check_gradients(again, reference, everywhere(12), HEADS)


def test_small_weights_show_the_epsilon_of_norms(tmp_path: Path) -> None:
    reference = theirs({}, scale=3e-3)
    model = parity.written(reference, tmp_path)
    parity.check_epsilon(model, reference, inputs(11, "none", segments=1), HEADS)


def test_states_and_attention_of_every_layer_equal(tmp_path: Path) -> None:
    """Each head of queries shows the keys that it shares."""
    reference = theirs(GROUPS)
    reference.set_attn_implementation("eager")
    model = parity.written(reference, tmp_path)
    values = everywhere(12)
    real = values["attention_mask"].bool()
    trace = Trace(["probabilities", "k", "v", "k_unturned"])
    with torch.no_grad():
        expected = reference(**values, output_hidden_states=True, output_attentions=True)
        states = model.encoder(batch_of(values), every_step=True).states
        model.encoder(batch_of(values), trace)
    for ours, other in zip(states, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours[real], other[real], atol=1e-5, rtol=0)
    for step, other in enumerate(expected.attentions):
        ours = trace["probabilities", step].permute(0, 2, 1, 3)[real]
        torch.testing.assert_close(ours, other.permute(0, 2, 1, 3)[real], atol=1e-5, rtol=0)
        for site in ("k", "v", "k_unturned"):
            found = trace[site, step]
            assert found.shape == (3, 6, 12, 4)
            assert torch.equal(found[:, 0], found[:, 2])
            assert not torch.equal(found[:, 2], found[:, 3])


def test_a_group_of_one_is_no_group_and_grouped_keys_are_whole_ones_repeated() -> None:
    plain = AttentionConfig(heads=4, head_width=6)
    grouped = replace(plain, key_heads=2)
    few, many = Attention(24, grouped).eval(), Attention(24, plain).eval()
    initialise(few, 0.3, torch.Generator().manual_seed(1))
    repeated = {
        name: tensor.unflatten(0, (2, 6)).repeat_interleave(2, 0).flatten(0, 1)
        if name.startswith(("key.", "value."))
        else tensor
        for name, tensor in few.state_dict().items()
    }
    many.load_state_dict(repeated)
    x = torch.randn(2, 9, 24, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(few(x), many(x), atol=1e-6, rtol=0)
    assert few.key.weight.shape == (12, 24)
    config = cm.size("eurobert-610m")
    same = replace(config, attention=replace(config.attention, key_heads=18))
    assert same.attention.key_heads is None


def test_counts_and_operations_of_groups() -> None:
    config = cm.size("eurobert-610m")
    whole = replace(config, attention=replace(config.attention, key_heads=None))
    assert cm.count(whole).attention - cm.count(config).attention == 26 * 2 * 1152 * (1152 - 384)
    found, dear = cm.count(config).flops(64), cm.count(whole).flops(64)
    assert found.attention == dear.attention
    assert 3 * found.attention_projections == 2 * dear.attention_projections
    head = cm.count("eurobert-210m")
    assert head.heads["masked_token"] == head.pieces  # a layer of its own, as large as the table


def test_other_heads_keep_the_size_of_groups_where_they_can() -> None:
    attention = cm.size("eurobert-610m").attention
    assert attention.with_heads(6, 8).key_heads == 2
    assert attention.with_heads(4, 8).key_heads is None


@pytest.mark.parametrize(
    ("key_heads", "message"),
    [(5, "key_heads is 5, which does not divide the 12 heads"), (13, "allowed is 1 to 12")],
)
def test_groups_that_do_not_go(key_heads: int, message: str) -> None:
    config = cm.size("eurobert-210m")
    with pytest.raises(InputError, match=message):
        replace(config, attention=replace(config.attention, key_heads=key_heads))
    xlnet = cm.size("xlnet-base")
    with pytest.raises(InputError, match="key_heads does not go together with"):
        replace(xlnet, attention=replace(xlnet.attention, key_heads=4))


TASKS = {
    "classify": (EuroBertForSequenceClassification, {"num_labels": 3}),
    "regress": (EuroBertForSequenceClassification, {"num_labels": 1}),
    "tag": (EuroBertForTokenClassification, {"num_labels": 5}),
}


@pytest.mark.parametrize("head", TASKS)
@pytest.mark.parametrize("pooling", ["late", "bos", "mean"])
def test_fine_tuned_heads_equal(tmp_path: Path, head: str, pooling: str) -> None:
    kind, values = TASKS[head]
    reference = theirs(values | {"classifier_pooling": pooling}, kind)
    model = parity.check_round_trip(reference, kind, tmp_path)
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert "cloze_task" not in written
    assert list(model.heads) == [head]
    given = inputs(12, "right", pad_id=1, segments=1)
    real = given["attention_mask"].bool()
    answer = model.heads[head].answer(model.encoder, batch_of(given))
    expected = reference(**given).logits
    expected = expected.squeeze(-1) if head == "regress" else expected
    keep = real if head == "tag" else slice(None)
    torch.testing.assert_close(answer[keep], expected[keep], atol=1e-5, rtol=0)
    answer[keep].square().sum().backward()
    expected[keep].square().sum().backward()
    grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    wanted = {n: p.grad for n, p in reference.named_parameters() if p.grad is not None}
    for name, grad in parity.to_their_tensors(model.form, grads, model.config).items():
        torch.testing.assert_close(grad, wanted.pop(name), atol=1e-4, rtol=1e-4)
    assert not wanted


def test_answers_in_a_text_are_kept_although_transformers_has_no_class(tmp_path: Path) -> None:
    model = new(tiny("eurobert-210m")).with_head("span")
    model.save(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["architectures"] == ["EuroBertModel"]
    again = cm.load(tmp_path)
    assert again.config == model.config
    assert torch.equal(again.heads["span"].classifier.weight, model.heads["span"].classifier.weight)


def test_a_bare_encoder_has_no_head(tmp_path: Path) -> None:
    assert set(parity.written(theirs({}, EuroBertModel), tmp_path).heads) == set()


RELEASED = {
    "architectures": ["EuroBertForMaskedLM"],
    "auto_map": {"AutoModel": "modeling_eurobert.EuroBertModel"},
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token": "<|begin_of_text|>",
    "hidden_act": "silu",
    "hidden_dropout": 0.0,
    "hidden_size": 1152,
    "initializer_range": 0.02,
    "intermediate_size": 4096,
    "mask_token_id": 128002,
    "max_position_embeddings": 8192,
    "model_type": "eurobert",
    "num_attention_heads": 18,
    "num_hidden_layers": 26,
    "num_key_value_heads": 6,
    "pad_token_id": 128001,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 250000,
    "tie_word_embeddings": False,
    "is_decoder": False,
    "vocab_size": 128256,
}
"""Fields of EuroBERT-610m's file."""


def test_the_released_file_is_read_and_its_code_is_not_run(tmp_path: Path) -> None:
    config = FORMATS["eurobert"].read_config(RELEASED)
    assert config == cm.size("eurobert-610m")
    model = new(tiny("eurobert-210m"))
    model.save(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": RELEASED["auto_map"]}))
    (tmp_path / "modeling_eurobert.py").write_text("raise SystemExit('was run')")
    opened = cm.load(tmp_path)
    assert type(opened) is cm.Model
    assert cm.inspect(tmp_path).family == "eurobert"
    assert cm.proof(opened, tmp_path, "red fox sees a [MASK] dog").hidden < 1e-5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling is {'rope_type': 'yarn'}"),
        ({"rope_scaling": "linear"}, "rope_scaling is 'linear'"),
        ({"rope_parameters": {"rope_type": "linear", "rope_theta": 1.0}}, "only an object of rope"),
        ({"tie_word_embeddings": True}, "only False is supported"),
        ({"mlp_bias": True}, "only False is supported"),
        ({"num_key_value_heads": 4}, "not a multiple of num_key_value_heads 4"),
        ({"num_atention_heads": 18}, "did you mean 'num_attention_heads'"),
    ],
)
def test_what_cannot_be_read_is_said(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FORMATS["eurobert"].read_config(RELEASED | values)


def test_the_last_norm_belongs_to_the_encoder() -> None:
    """And the embeddings have none, so that the first attention needs its own."""
    encoder = Encoder(tiny("eurobert-210m"))
    assert type(encoder.final_norm).__name__ == "RMSNorm"
    assert type(encoder.embeddings.norm).__name__ == "Identity"
    assert type(encoder.blocks[0].attention_norm).__name__ == "RMSNorm"
