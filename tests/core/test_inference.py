"""Packed linear layers: the same answers, a stated error, no training."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.config import Config
from core_models.errors import InputError
from core_models.families import size
from core_models.heads.pretraining import build_head
from core_models.network.encoder import Encoder
from core_models.network.inference import PackedLinear, optimization, optimize_for_inference
from core_models.network.initialise import initialise
from core_models.network.trace import STEP_SITES, Edit, Trace, switch_off_heads

NAMES = ["bert-base-uncased", "albert-base", "electra-small-discriminator", "xlnet-base"]
NAMES += ["deberta-base", "deberta-v3-base", "deberta-v2-xlarge", "modernbert-base"]
ERRORS = {torch.float32: 1e-5, torch.bfloat16: 0.05}
"""Largest difference of normed hidden states, whose spread is 1."""

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this build of PyTorch has no oneDNN"
)
BFLOAT16 = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
TYPES = [
    torch.float32,
    pytest.param(
        torch.bfloat16, marks=pytest.mark.skipif(not BFLOAT16, reason="no bfloat16 products")
    ),
]


class Predictor(nn.Module):
    """Encoder and tied decoder."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.encoder = Encoder(config)
        self.head = build_head("masked_token", config, self.encoder.embeddings)

    def forward(self, batch: Batch) -> Tensor:
        logits: Tensor = self.head(self.encoder(batch).hidden)
        return logits


def tiny(name: str) -> Config:
    config = size(name)
    narrow = 24 if config.embeddings.width != config.width else 32
    return replace(
        config,
        width=32,
        embeddings=replace(config.embeddings, vocabulary=60, width=narrow, pad_id=0),
        attention=config.attention.with_heads(4, 8),
        feed_forward=replace(config.feed_forward, width=48),
        schedule=(0, 0) if name == "albert-base" else (0, 1),
    )


def built(name: str) -> Predictor:
    model = Predictor(tiny(name))
    initialise(model, 0.2, torch.Generator().manual_seed(0))
    return model.eval()


def batch(length: int) -> Batch:
    ids = torch.randint(5, 60, (2, length), generator=torch.Generator().manual_seed(length))
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[1, -3:] = False
    return Batch(input_ids=ids, segment_ids=(ids > 30).long(), attention_mask=mask)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_the_error_is_the_stated_one(name: str, dtype: torch.dtype) -> None:
    model = built(name)
    fast = optimize_for_inference(model, dtype)
    with torch.no_grad():
        for length in (1 + 4, 33, 150):
            inputs = batch(length)
            real = inputs.attention_mask
            ours = fast.encoder(inputs).hidden[real]
            expected = model.encoder(inputs).hidden[real]
            assert ours.dtype == torch.float32
            assert float((ours - expected).abs().max()) < ERRORS[dtype]
            logits, wanted = fast(inputs)[real], model(inputs)[real]
            assert float((logits - wanted).abs().max()) < ERRORS[dtype] * float(wanted.std()) * 2
            if dtype == torch.bfloat16:
                assert not torch.equal(ours, expected)
                off = (ours - expected).square().mean().sqrt()
                assert float(off) < 0.01 * float(expected.std())


def test_everything_is_packed_and_the_original_stays() -> None:
    model = built("deberta-base")
    before = copy.deepcopy(model.state_dict())
    fast = optimize_for_inference(model)
    report = optimization(fast)
    assert report is not None
    assert not report.left
    assert "encoder.blocks.1.attention.terms.position_query" in report.packed
    assert "head.decoder" in report.packed
    assert len(report.packed) == sum(isinstance(m, nn.Linear) for m in model.modules())
    assert not any(isinstance(m, nn.Linear) for m in fast.modules())
    assert optimization(model) is None
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert str(report) == f"{len(report.packed)} linear layers packed in float32, 0 left"
    with torch.no_grad():
        first = fast(batch(9))
        for p in model.parameters():
            p.mul_(1.5)
        assert torch.equal(fast(batch(9)), first)


def test_what_is_not_packed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    report = optimization(optimize_for_inference(built("bert-base-uncased").double()))
    assert report is not None
    assert not report.packed
    assert set(report.left.values()) == {"of type torch.float64, and only torch.float32 is packed"}
    assert str(report).startswith("0 linear layers packed in float32, ")
    assert "torch.float64" in str(report)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    model = built("bert-base-uncased")
    fast = optimize_for_inference(model)
    report = optimization(fast)
    assert report is not None
    assert not report.packed
    assert set(report.left.values()) == {"this build of PyTorch has no oneDNN"}
    with torch.no_grad():
        assert torch.equal(fast(batch(9)), model(batch(9)))
    with pytest.raises(InputError, match="bfloat16"):
        optimize_for_inference(model, torch.bfloat16)


@pytest.mark.parametrize("name", ["bert-base-uncased", "deberta-v3-base"])
def test_traces_see_the_same_sites_and_edits_work(name: str) -> None:
    model = built(name)
    fast = optimize_for_inference(model)
    traces = Trace([*STEP_SITES, "term:*"]), Trace([*STEP_SITES, "term:*"])
    edit = switch_off_heads(1, [0, 2])
    with torch.no_grad():
        ours = fast.encoder(batch(12), trace=traces[0]).hidden
        model.encoder(batch(12), trace=traces[1])
        torch.testing.assert_close(ours, fast.encoder(batch(12)).hidden, atol=1e-5, rtol=0)
        edited = fast.encoder(batch(12), trace=Trace(edits=[edit])).hidden
        wanted = model.encoder(batch(12), trace=Trace(edits=[edit])).hidden
    assert traces[0].records.keys() == traces[1].records.keys()
    for key, expected in traces[1].records.items():
        torch.testing.assert_close(traces[0].records[key], expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(edited, wanted, atol=1e-5, rtol=0)
    assert not torch.allclose(edited, ours)
    assert torch.equal(fast.encoder.output_weight(1), model.encoder.output_weight(1))
    doubled = Edit("feed_forward_activation", lambda x: 2 * x)
    with torch.no_grad():
        ours = fast.encoder(batch(12), trace=Trace(edits=[doubled])).hidden
        wanted = model.encoder(batch(12), trace=Trace(edits=[doubled])).hidden
    torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=0)


def test_inference_only() -> None:
    fast = optimize_for_inference(built("bert-base-uncased"))
    with pytest.raises(InputError, match="cannot be trained"):
        fast.train()
    assert not any(m.training for m in fast.modules())
    assert fast.eval() is fast
    assert isinstance(fast, Predictor)
    with pytest.raises(InputError, match="cannot be saved"):
        fast.state_dict()
    rows = torch.zeros(1, 5, 32, requires_grad=True)
    with pytest.raises(InputError, match="no gradients"):
        fast.encoder(Batch(embeddings=rows))
    assert not fast(batch(9)).requires_grad
    assert not any(p.requires_grad for p in fast.parameters())
    with pytest.raises(InputError, match="runs on the CPU"):
        fast.head.decoder(torch.zeros(2, 32, device="meta"))
    again = copy.deepcopy(fast)
    with torch.no_grad():
        assert torch.equal(again(batch(9)), fast(batch(9)))
    assert optimization(again) == optimization(fast)
    with pytest.raises(InputError, match="float16"):
        optimize_for_inference(built("bert-base-uncased"), torch.float16)
    with pytest.raises(InputError, match="already"):
        optimize_for_inference(fast)


@pytest.mark.parametrize("activation", [None, "gelu", "gelu_tanh", "relu", "silu", "tanh"])
@pytest.mark.parametrize("shape", [(3, 5, 8), (0, 8), (1, 8), (8,)])
def test_a_packed_layer_is_the_layer(shape: tuple[int, ...], activation: str | None) -> None:
    from core_models.network.layer import FUNCTIONS

    generator = torch.Generator().manual_seed(0)
    layer = nn.Linear(8, 6, bias=activation != "relu")
    initialise(layer, 1.0, generator)
    x = torch.randn(shape, generator=generator)
    with torch.no_grad():
        expected = layer(x) if activation is None else FUNCTIONS[activation](layer(x))
        packed = PackedLinear(layer, torch.float32, activation)
        found = packed(x)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(packed.weight, layer.weight)  # some code of transformers reads it
    assert packed.bias is layer.bias is None or torch.equal(packed.bias, layer.bias)
