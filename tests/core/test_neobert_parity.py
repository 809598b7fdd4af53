"""NeoBERT against a plain forward pass written here from its paper and its files' layout.

transformers has no such class. Neighbours of a head are turned as complex numbers, queries, keys
and values lie head by head, and scores are written out; nothing of ours takes part.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import core_models as cm
from core_models.checkpoints.files import save_checkpoint, to_their_tensors
from core_models.checkpoints.formats import FORMATS
from core_models.errors import InputError
from core_models.training.settings import parse
from core_models.training.shape import build_config
from tests.core.parity import VOCABULARY, Bare, batch_of, inputs, read
from tests.core.tiny_models import new, tiny

WIDTH, HEADS, LAYERS, INNER, EPSILON = 24, 3, 3, 16, 1e-5
RELEASED = {
    "architectures": ["NeoBERTLMHead"],
    "auto_map": {
        "AutoConfig": "model.NeoBERTConfig",
        "AutoModelForMaskedLM": "model.NeoBERTLMHead",
    },
    "classifier_init_range": 0.02,
    "decoder_init_range": 0.02,
    "dim_head": 64,
    "embedding_init_range": 0.02,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "kwargs": {"classifier_init_range": 0.02, "trust_remote_code": True},
    "max_length": 4096,
    "model_type": "neobert",
    "norm_eps": 1e-05,
    "num_attention_heads": 12,
    "num_hidden_layers": 28,
    "pad_token_id": 0,
    "pretrained_model_name_or_path": "google-bert/bert-base-uncased",
    "torch_dtype": "float32",
    "transformers_version": "4.48.2",
    "trust_remote_code": True,
    "vocab_size": 30522,
}
"""Fields of the released file."""
SMALL = RELEASED | {
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "intermediate_size": 24,
    "vocab_size": VOCABULARY,
}


def drawn() -> dict[str, Tensor]:
    """Weights under the names of the released file."""
    shapes = {
        "model.encoder.weight": (VOCABULARY, WIDTH),
        "model.layer_norm.weight": (WIDTH,),
        "decoder.weight": (VOCABULARY, WIDTH),
        "decoder.bias": (VOCABULARY,),
    }
    for layer in range(LAYERS):
        name = f"model.transformer_encoder.{layer}."
        shapes |= {
            f"{name}qkv.weight": (3 * WIDTH, WIDTH),
            f"{name}wo.weight": (WIDTH, WIDTH),
            f"{name}ffn.w12.weight": (2 * INNER, WIDTH),
            f"{name}ffn.w3.weight": (WIDTH, INNER),
            f"{name}attention_norm.weight": (WIDTH,),
            f"{name}ffn_norm.weight": (WIDTH,),
        }
    source = torch.Generator().manual_seed(4)
    return {
        name: torch.randn(shape, generator=source) * 0.17 + ("norm" in name)
        for name, shape in shapes.items()
    }


def rms(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + EPSILON).sqrt() * weight


def turned(x: Tensor) -> Tensor:
    """[B, L, H, d]: neighbours as complex numbers, turned by the position."""
    length, width = x.shape[1], x.shape[3]
    rates = 10_000.0 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * rates
    numbers = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    found = numbers * torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.view_as_real(found).flatten(-2)


def reference(w: dict[str, Tensor], ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states [B, L, D] and scores [B, L, V]."""
    x = w["model.encoder.weight"][ids]
    for layer in range(LAYERS):
        name = f"model.transformer_encoder.{layer}."
        packed = rms(x, w[f"{name}attention_norm.weight"]) @ w[f"{name}qkv.weight"].T
        each = packed.reshape(*x.shape[:2], HEADS, 3 * WIDTH // HEADS)
        q, k, v = each.split(WIDTH // HEADS, -1)
        scores = torch.einsum("blhd,bmhd->bhlm", turned(q), turned(k)) / (WIDTH // HEADS) ** 0.5
        scores = scores.masked_fill(~mask[:, None, None].bool(), float("-inf"))
        mixed = torch.einsum("bhlm,bmhd->blhd", scores.softmax(-1), v).flatten(2)
        x = x + mixed @ w[f"{name}wo.weight"].T
        inner = rms(x, w[f"{name}ffn_norm.weight"]) @ w[f"{name}ffn.w12.weight"].T
        first, second = inner.split(INNER, -1)
        x = x + (first * first.sigmoid() * second) @ w[f"{name}ffn.w3.weight"].T
    hidden = rms(x, w["model.layer_norm.weight"])
    return hidden, hidden @ w["decoder.weight"].T + w["decoder.bias"]


def write(folder: Path, tensors: dict[str, Tensor], **values: Any) -> Bare:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(SMALL | values))
    save_file(
        {n: t.detach().contiguous() for n, t in tensors.items()}, folder / "model.safetensors"
    )
    return read(folder)


CASES = [(11, "none"), (12, "right"), (13, "left"), (38, "none"), (1, "none")]


@pytest.mark.parametrize(("length", "pad"), CASES)
def test_outputs_equal(tmp_path: Path, length: int, pad: str) -> None:
    tensors = drawn()
    model = write(tmp_path, tensors)
    values = inputs(length, pad, segments=1)
    real = values["attention_mask"].bool()
    hidden, scores = reference(tensors, values["input_ids"], values["attention_mask"])
    for trace in (None, cm.Trace(["scores"])):
        with torch.no_grad():
            found = model.encoder(batch_of(values), trace).hidden
            torch.testing.assert_close(found[real], hidden[real], atol=1e-5, rtol=0)
            ours = model.heads["masked_token"](found)
        torch.testing.assert_close(ours[real], scores[real], atol=1e-5, rtol=0)


def test_gradients_equal(tmp_path: Path) -> None:
    tensors = {name: t.requires_grad_() for name, t in drawn().items()}
    model = write(tmp_path, tensors).train()
    values = inputs(12, "right", segments=1)
    real = values["attention_mask"].bool()
    _, scores = reference(tensors, values["input_ids"], values["attention_mask"])
    scores[real].square().mean().backward()
    model.logits(batch_of(values))["masked_token"][real].square().mean().backward()
    grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    found = to_their_tensors(model.form, grads, model.config)
    assert found.keys() == tensors.keys()
    for name, grad in found.items():
        torch.testing.assert_close(grad, tensors[name].grad, atol=1e-4, rtol=1e-4)


def test_round_trip_is_bit_equal(tmp_path: Path) -> None:
    tensors = drawn()
    model = write(tmp_path / "theirs", tensors)
    save_checkpoint(model, FORMATS["neobert"], model.config, tmp_path / "ours")
    again = load_file(tmp_path / "ours" / "model.safetensors")
    assert again.keys() == tensors.keys()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in again.items())
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert written["architectures"] == ["NeoBERTLMHead"]
    assert (written["intermediate_size"], written["dim_head"]) == (24, 8)
    assert "auto_map" not in written
    assert read(tmp_path / "ours").config == model.config


def test_a_text_is_classified_from_its_first_token(tmp_path: Path) -> None:
    source = torch.Generator().manual_seed(6)
    own = {
        "dense.weight": torch.randn(WIDTH, WIDTH, generator=source) * 0.3,
        "dense.bias": torch.randn(WIDTH, generator=source),
        "classifier.weight": torch.randn(3, WIDTH, generator=source),
        "classifier.bias": torch.randn(3, generator=source),
    }
    tensors = {name: t for name, t in drawn().items() if not name.startswith("decoder")}
    labels = {"0": "a", "1": "b", "2": "c"}
    model = write(
        tmp_path,
        tensors | own,
        architectures=["NeoBERTForSequenceClassification"],
        id2label=labels,
        label2id={name: int(number) for number, name in labels.items()},
    )
    task = model.config.task
    assert task is not None
    assert (task.dropout, task.dropout_before, task.activation) == (0.1, True, "tanh")
    values = inputs(12, "right", segments=1)
    hidden, _ = reference(drawn(), values["input_ids"], values["attention_mask"])
    dense = torch.tanh(hidden[:, 0] @ own["dense.weight"].T + own["dense.bias"])
    expected = dense @ own["classifier.weight"].T + own["classifier.bias"]
    found = model.heads["classify"].answer(model.encoder, batch_of(values))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_bare_encoder_has_no_prefix(tmp_path: Path) -> None:
    tensors = {n.removeprefix("model."): t for n, t in drawn().items() if n[:7] != "decoder"}
    assert "encoder.weight" in tensors
    assert not list(write(tmp_path, tensors, architectures=["NeoBERT"]).heads)


def test_the_released_file_is_read_and_its_code_is_not_run(tmp_path: Path) -> None:
    assert FORMATS["neobert"].read_config(RELEASED) == cm.size("neobert")
    model = new(tiny("neobert", width=16))
    assert model.config.masking.split == (1.0, 0.0, 0.0)
    with pytest.raises(InputError, match=r"feed_forward.width is 12.*a multiple of 8"):
        model.save(tmp_path)
    write(tmp_path, drawn())
    (tmp_path / "model.py").write_text("raise SystemExit('was run')")
    opened = cm.load(tmp_path, tokenizer=False)
    assert type(opened) is cm.Model
    assert cm.inspect(tmp_path).family == "neobert"
    with pytest.raises(InputError, match="NeoBERTLMHead"):
        cm.proof(opened, tmp_path, "red")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rope": False}, "rope is False; only True"),
        ({"ngpt": True}, "ngpt is True; only False"),
        ({"rms_norm": False}, "rms_norm is False"),
        ({"hidden_act": "gelu"}, "only 'SwiGLU' is supported"),
        ({"num_attention_heads": 5}, "not a multiple"),
        ({"num_hiden_layers": 4}, "did you mean 'num_hidden_layers'"),
    ],
)
def test_what_cannot_be_read_is_said(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FORMATS["neobert"].read_config(RELEASED | values)


def test_tensors_of_another_shape_are_named(tmp_path: Path) -> None:
    name = "model.transformer_encoder.0.qkv.weight"
    tensors = drawn()
    with pytest.raises(InputError, match="its first size must be 72"):
        write(tmp_path, tensors | {name: tensors[name][:70]})
    name = "model.transformer_encoder.0.ffn.w12.weight"
    with pytest.raises(InputError, match="must be a multiple of 2"):
        write(tmp_path, tensors | {name: tensors[name][:31]})


def test_a_fresh_one_of_another_width_can_be_saved() -> None:
    values = {"model": {"size": "neobert", "overrides": {"width": 256}}, "steps": 1}
    config = build_config(parse(values | {"data": {"texts": ["text.txt"]}}), 500, 0)
    assert (config.attention.heads, config.feed_forward.width) == (4, 680)
    written = FORMATS["neobert"].write_config(config)
    assert FORMATS["neobert"].read_config(written).feed_forward == config.feed_forward
