"""DeBERTa's enhanced mask decoder, which transformers lacks, over transformers' own layers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DebertaConfig, DebertaModel, DebertaV2Config, DebertaV2Model

from core_models.batch import Batch
from core_models.config import Config, MaskDecoder
from core_models.errors import InputError
from core_models.families import size
from core_models.network.embeddings import longest_input
from core_models.network.encoder import Encoder
from core_models.network.initialise import initialise
from core_models.network.trace import STEP_SITES, Trace
from tests.core.parity import VOCABULARY, inputs, randomised, written

SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": "c2p|p2c",
    "layer_norm_eps": 1e-7,
}
BUCKETS = {"position_buckets": 8, "norm_rel_ebd": "layer_norm", "max_position_embeddings": 64}
MODELS: dict[str, Any] = {
    "v1": lambda: DebertaModel(DebertaConfig(**SHAPE, max_relative_positions=6)),
    "v2": lambda: DebertaV2Model(DebertaV2Config(**SHAPE, **BUCKETS, share_att_key=True)),
    "v2, convolution": lambda: DebertaV2Model(
        DebertaV2Config(**SHAPE, **BUCKETS, conv_kernel_size=3, conv_act="gelu")
    ),
}


def with_decoder(model: Any, decoder: MaskDecoder | None, table: Tensor | None = None) -> Encoder:
    """The same encoder with a mask decoder of the given positions."""
    encoder = Encoder(replace(model.config, mask_decoder=decoder)).eval()
    missing, unexpected = encoder.load_state_dict(model.encoder.state_dict(), strict=False)
    assert not unexpected
    assert set(missing) <= {"mask_decoder.weight"}
    if decoder is not None and table is not None:
        with torch.no_grad():
            encoder.mask_decoder.weight.copy_(table)
    return encoder


def positions(rows: int) -> Tensor:
    return torch.randn(rows, 32, generator=torch.Generator().manual_seed(2))


def batch_and_values(length: int, pad: str) -> tuple[Batch, dict[str, Tensor]]:
    values = inputs(length, pad, segments=1)
    mask = values["attention_mask"].bool()
    return Batch(input_ids=values["input_ids"], attention_mask=mask), values


def decoded(encoder: Encoder, batch: Batch, **options: Any) -> Tensor:
    with torch.no_grad():
        return encoder.decode(batch, encoder(batch), **options)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("length", "pad"), [(11, "none"), (13, "right"), (30, "left")])
def test_one_step_from_nowhere_is_the_last_layer(
    tmp_path: Path, name: str, length: int, pad: str
) -> None:
    model = written(randomised(MODELS[name]()), tmp_path)
    encoder = with_decoder(model, MaskDecoder(steps=1), torch.zeros(512, 32))
    batch, values = batch_and_values(length, pad)
    real = values["attention_mask"].bool()
    with torch.no_grad():
        last = encoder(batch).hidden
    torch.testing.assert_close(decoded(encoder, batch)[real], last[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["v2", "v2, convolution"])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_equals_transformers_last_layer_from_the_same_queries(
    tmp_path: Path, name: str, steps: int
) -> None:
    """Keys and values are H[n-1]; queries start as positions + H[n-1]; the last layer repeats."""
    reference = randomised(MODELS[name]())
    table = positions(40)
    encoder = with_decoder(written(reference, tmp_path), MaskDecoder(steps=steps), None)
    encoder.mask_decoder = torch.nn.Embedding.from_pretrained(table)
    batch, values = batch_and_values(13, "right")
    mask, body = values["attention_mask"], reference.encoder
    with torch.no_grad():
        states = reference(**values, output_hidden_states=True).hidden_states
        kept = states[-2]
        queries = table[:13] + kept
        for _ in range(steps):
            queries = body.layer[-1](
                kept,
                body.get_attention_mask(mask),
                query_states=queries,
                relative_pos=body.get_rel_pos(kept),
                rel_embeddings=body.get_rel_embedding(),
            )[0]
    real = mask.bool()
    for sites in ((), STEP_SITES):
        ours = decoded(encoder, batch, trace=Trace(sites))
        torch.testing.assert_close(ours[real], queries[real], atol=1e-5, rtol=0)
    assert not torch.allclose(queries[real], states[-1][real], atol=0.1)


def test_version_1_by_hand(tmp_path: Path) -> None:
    """transformers' v1 layer crashes on given queries, so its parts are called one by one."""
    reference = randomised(MODELS["v1"]())
    table = positions(40)
    encoder = with_decoder(written(reference, tmp_path), MaskDecoder(steps=2, positions=40), table)
    batch, values = batch_and_values(13, "none")
    layer, length, span, heads = reference.encoder.layer[-1], 13, 6, 4
    own = layer.attention.self
    with torch.no_grad():
        kept = reference(**values, output_hidden_states=True).hidden_states[-2]
        weights = own.in_proj.weight.view(heads, 3, 8, 32)
        places = torch.arange(length)
        index = (places[:, None] - places + span).clamp(0, 2 * span - 1)
        relative = reference.encoder.rel_embeddings.weight
        position_key = own.pos_proj(relative).view(-1, heads, 8)[index]  # [L, L, H, d]
        position_query = own.pos_q_proj(relative).view(-1, heads, 8)[index]
        queries = table[:length] + kept
        for _ in range(2):
            q = torch.einsum("bld,nhd->blnh", queries, weights[:, 0]) + own.q_bias.view(heads, 8)
            k = torch.einsum("bld,nhd->blnh", kept, weights[:, 1])
            v = torch.einsum("bld,nhd->blnh", kept, weights[:, 2]) + own.v_bias.view(heads, 8)
            scores = torch.einsum("binh,bjnh->bnij", q, k)
            scores = scores + torch.einsum("binh,ijnh->bnij", q, position_key)
            scores = scores + torch.einsum("bjnh,ijnh->bnij", k, position_query)
            weighted = (scores / (3 * 8) ** 0.5).softmax(-1)
            context = torch.einsum("bnij,bjnh->binh", weighted, v).flatten(2)
            attended = layer.attention.output(context, queries)
            queries = layer.output(layer.intermediate(attended), attended)
    torch.testing.assert_close(decoded(encoder, batch), queries, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("restricted", [False, True])
def test_chosen_positions_give_the_same_rows(tmp_path: Path, name: str, restricted: bool) -> None:
    model = written(randomised(MODELS[name]()), tmp_path)
    encoder = with_decoder(model, MaskDecoder(positions=40), positions(40))
    batch, _ = batch_and_values(13, "right")
    if restricted:
        visibility = torch.rand(3, 13, 13, generator=torch.Generator().manual_seed(1)) < 0.6
        batch = replace(batch, visibility=visibility | torch.eye(13, dtype=torch.bool))
    targets = torch.tensor([[3, 11, 0, 7], [8, 2, 2, 1], [12, 0, 5, 6]])
    rows = decoded(encoder, batch).gather(1, targets[..., None].expand(-1, -1, 32))
    for sites in ((), ("scores",)):
        chosen = decoded(encoder, batch, targets=targets, trace=Trace(sites))
        torch.testing.assert_close(chosen, rows, atol=1e-5, rtol=0)


def tiny(**changes: Any) -> Config:
    base = size("deberta-base")
    return replace(
        base,
        width=32,
        embeddings=replace(base.embeddings, vocabulary=VOCABULARY, width=32),
        attention=replace(base.attention, heads=4, head_width=8),
        feed_forward=replace(base.feed_forward, width=48),
        schedule=(0, 1),
        **changes,
    )


def built(config: Config) -> Encoder:
    encoder = Encoder(config)
    initialise(encoder, 0.3, torch.Generator().manual_seed(0))
    return encoder.eval()


def test_without_a_decoder_the_hidden_states_are_used() -> None:
    encoder = built(tiny(mask_decoder=None))
    batch, _ = batch_and_values(9, "none")
    out = encoder(batch)
    assert encoder.decode(batch, out) is out.hidden
    targets = torch.tensor([[1, 4], [0, 8], [3, 3]])
    chosen = encoder.decode(batch, out, targets=targets)
    assert torch.equal(chosen[1, 1], out.hidden[1, 8])


def test_contents_of_padding_do_not_matter() -> None:
    encoder = built(tiny())
    batch, values = batch_and_values(12, "right")
    real = values["attention_mask"].bool()
    other = replace(batch, input_ids=torch.where(real, values["input_ids"], 7))
    assert torch.equal(decoded(encoder, batch)[real], decoded(encoder, other)[real])


def test_the_trace_hears_the_decoder_in_its_own_stream() -> None:
    encoder = built(tiny())
    batch, _ = batch_and_values(9, "none")
    trace = Trace(["probabilities", "term:*"])
    with torch.no_grad():
        encoder.decode(batch, encoder(batch, trace), trace)
    assert trace.recorded_steps("probabilities") == [0, 1]
    assert trace.recorded_steps("probabilities", "mask_decoder") == [0, 1]
    assert trace.recorded_steps("term:p2c", "mask_decoder") == [0, 1]


def test_gradients_reach_the_positions_and_the_shared_layer() -> None:
    encoder = built(tiny(dropout=0.0)).train()
    batch, _ = batch_and_values(9, "none")
    encoder.decode(batch, encoder(batch)).square().sum().backward()
    assert encoder.mask_decoder.weight.grad[:9].abs().sum(1).gt(0).all()
    assert not encoder.mask_decoder.weight.grad[9:].any()
    assert all(p.grad is not None for p in encoder.parameters())


def test_no_position_beyond_the_table_is_decoded(tmp_path: Path) -> None:
    model = written(randomised(MODELS["v1"]()), tmp_path)
    encoder = with_decoder(model, MaskDecoder(positions=12), positions(12))
    for length in (12, 13):
        batch, _ = batch_and_values(length, "right")
        output = encoder(batch)
        if length == 12:
            assert encoder.decode(batch, output).shape[1] == 12
        else:
            with pytest.raises(InputError, match="13 tokens; this model takes at most 12"):
                encoder.decode(batch, output)
    config = encoder.config
    assert longest_input(config) == 12
    both = replace(config, embeddings=replace(config.embeddings, positions=9))
    assert longest_input(both) == 9
