"""DeBERTa v1, v2 and v3 against transformers, and the quirks of released files."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    DebertaConfig,
    DebertaForMaskedLM,
    DebertaModel,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    DebertaV2Model,
)

from core_models.batch import Batch
from core_models.checkpoints.files import (
    to_their_tensors,
)
from core_models.config import Disentangled
from core_models.network.trace import Trace
from tests.core.parity import (
    VOCABULARY,
    batch_of,
    check_epsilon,
    check_outputs,
    check_round_trip,
    inputs,
    randomised,
    written,
)

HEADS = {"masked_token": "logits"}
RELATIVE = {
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": "c2p|p2c",
    "layer_norm_eps": 1e-7,
    "legacy": False,
}
SHAPES = [
    {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48},
    {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 7},
]
BUCKETS = {"max_position_embeddings": 64, "position_buckets": 8, "norm_rel_ebd": "layer_norm"}
CONV = {"conv_kernel_size": 3, "conv_act": "gelu"}
CASES: dict[str, tuple[type, type, dict[str, Any]]] = {
    "v1, span above L": (DebertaConfig, DebertaForMaskedLM, {"max_position_embeddings": 200}),
    "v1, span 6": (DebertaConfig, DebertaForMaskedLM, {"max_relative_positions": 6}),
    "v1, segments": (DebertaConfig, DebertaForMaskedLM, {"type_vocab_size": 2}),
    "v2, shared": (DebertaV2Config, DebertaV2ForMaskedLM, BUCKETS | {"share_att_key": True}),
    "v2, own projections": (DebertaV2Config, DebertaV2ForMaskedLM, BUCKETS),
    "v2, convolution": (
        DebertaV2Config,
        DebertaV2ForMaskedLM,
        BUCKETS | CONV | {"share_att_key": True},
    ),
    "v2, no buckets, no norm, kernel 5": (
        DebertaV2Config,
        DebertaV2ForMaskedLM,
        {"max_relative_positions": 9, "conv_kernel_size": 5, "conv_act": "tanh"},
    ),
    "v3, published buckets": (
        DebertaV2Config,
        DebertaV2ForMaskedLM,
        {"position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True},
    ),
}


def theirs(case: str, shape: int = 0, *, scale: float = 1.0, **values: Any) -> Any:
    config, cls, own = CASES[case]
    return randomised(
        cls(config(vocab_size=VOCABULARY, **RELATIVE, **SHAPES[shape], **own, **values)),
        scale=scale,
    )


@pytest.mark.parametrize("case", CASES)
def test_outputs_equal(tmp_path: Path, case: str) -> None:
    for shape in (0, 1):
        reference = theirs(case, shape)
        model = written(reference, tmp_path)
        segments = reference.config.type_vocab_size or 1
        longest = 300 if case.startswith("v3") else 150  # beyond every span and every block
        lengths = [(11, "none"), (12, "right"), (13, "left"), (38, "right"), (longest, "right")]
        for length, pad in lengths if shape == 0 else lengths[1:3]:
            values = inputs(length, pad, segments=segments)
            for traced in (False, True):
                check_outputs(model, reference, values, HEADS, traced=traced)


@pytest.mark.parametrize("case", ["v1, span 6", "v2, convolution"])
def test_small_weights_show_the_epsilon_of_norms(tmp_path: Path, case: str) -> None:
    reference = theirs(case, scale=3e-3)
    model = written(reference, tmp_path)
    assert model.config.norm_epsilon == 1e-7
    check_epsilon(model, reference, inputs(11, "none", segments=1), HEADS)


@pytest.mark.parametrize("case", CASES)
def test_gradients_equal_in_train_mode(tmp_path: Path, case: str) -> None:
    reference = theirs(case, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).train()
    model = written(reference, tmp_path).train()
    values = inputs(21, "right", segments=reference.config.type_vocab_size or 1)
    real = values["attention_mask"].bool()
    reference(**values).logits[real].square().mean().backward()
    model.logits(batch_of(values))["masked_token"][real].square().mean().backward()
    grads = {n: p.grad for n, p in model.named_parameters()}
    ours = to_their_tensors(model.form, grads, model.config)
    wanted = {n: p.grad for n, p in reference.named_parameters()}
    assert ours.keys() == wanted.keys()
    for name, grad in ours.items():
        torch.testing.assert_close(grad, wanted[name], atol=1e-4, rtol=1e-4, msg=name)


@pytest.mark.parametrize("case", CASES)
def test_round_trip_is_bit_equal(tmp_path: Path, case: str) -> None:
    check_round_trip(theirs(case), AutoModelForMaskedLM, tmp_path)


@pytest.mark.parametrize("case", ["v1, span 6", "v2, convolution"])
def test_bare_encoder_round_trip(tmp_path: Path, case: str) -> None:
    cls = {DebertaConfig: DebertaModel, DebertaV2Config: DebertaV2Model}[CASES[case][0]]
    reference = randomised(cls(theirs(case).config))
    model = check_round_trip(reference, AutoModel, tmp_path)
    assert list(model.heads) == []
    values = inputs(12, "right", segments=1)
    real = values["attention_mask"].bool()
    with torch.no_grad():
        ours = model.encoder(batch_of(values)).hidden[real]
        torch.testing.assert_close(ours, reference(**values)[0][real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", ["v1, span 6", "v2, shared"])
def test_embeddings_in_place_of_ids(tmp_path: Path, case: str) -> None:
    reference = theirs(case)
    model = written(reference, tmp_path)
    values = inputs(11, "right", segments=1)
    mask = values["attention_mask"].bool()
    with torch.no_grad():
        rows = model.encoder.embeddings.pieces(values["input_ids"])
        ours = model.encoder(Batch(embeddings=rows, attention_mask=mask)).hidden
        assert torch.equal(ours, model.encoder(batch_of(values)).hidden)
        their = reference.deberta(inputs_embeds=rows, attention_mask=values["attention_mask"])[0]
    torch.testing.assert_close(ours[mask], their[mask], atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", ["v1, span 6", "v2, shared"])
@pytest.mark.parametrize("length", [12, 140])
def test_terms_are_recorded_and_add_up(tmp_path: Path, case: str, length: int) -> None:
    model = written(theirs(case), tmp_path)
    trace = Trace(["q", "k", "content_score", "term:*", "scores"])
    with torch.no_grad():
        model.encoder(batch_of(inputs(length, "none", segments=1)), trace)
    assert {site for site, _, _ in trace.records if site.startswith("term:")} == {
        "term:c2p",
        "term:p2c",
    }
    q, k = trace["q", 1], trace["k", 1]
    content = q @ k.transpose(-1, -2) / (3 * q.shape[-1]) ** 0.5
    torch.testing.assert_close(trace["content_score", 1], content)
    total = trace["content_score", 1] + trace["term:c2p", 1] + trace["term:p2c", 1]
    torch.testing.assert_close(total, trace["scores", 1])
    terms = model.config.attention.terms
    assert isinstance(terms, Disentangled)
    if terms.buckets is None:  # both terms by the definition, key position seen from the query
        block, table = model.encoder.blocks[1].attention, model.encoder.table
        places = torch.arange(length)
        rows = table.relative.weight[table.index(places[:, None] - places)]  # [L, L, D]
        shape = (length, length, 4, -1)
        keys = block.terms.position_key(rows).view(shape)
        queries = block.terms.position_query(rows).view(shape)
        c2p = torch.einsum("bhid,ijhd->bhij", q, keys) * block.terms.scale
        p2c = torch.einsum("bhjd,ijhd->bhij", k, queries) * block.terms.scale
        torch.testing.assert_close(trace["term:c2p", 1], c2p, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(trace["term:p2c", 1], p2c, atol=1e-5, rtol=1e-5)


def test_packed_projections_are_read_head_by_head(tmp_path: Path) -> None:
    reference = theirs("v1, span 6")
    model = written(reference, tmp_path)
    packed = reference.state_dict()["deberta.encoder.layer.1.attention.self.in_proj.weight"]
    attention = model.encoder.blocks[1].attention
    for head in range(4):
        for part, layer in enumerate((attention.query, attention.key, attention.value)):
            rows = packed[(3 * head + part) * 8 : (3 * head + part + 1) * 8]
            assert torch.equal(layer.weight[head * 8 : (head + 1) * 8], rows)
    assert attention.key.bias is None
