"""XLNet against transformers: both streams, memory, directions, both checkpoint ways."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, AutoModelForCausalLM, XLNetConfig, XLNetLMHeadModel, XLNetModel

from benchmarks import parity_models
from core_models.batch import Batch
from core_models.checkpoints.files import to_their_tensors
from core_models.checkpoints.formats import FORMATS
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import STEP_SITES, Trace
from tests.core.parity import (
    LENGTHS,
    VOCABULARY,
    Bare,
    check_epsilon,
    check_outputs,
    check_round_trip,
    inputs,
    randomised,
    written,
)

FORM = FORMATS["xlnet"]
SHAPES = [
    {"d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 48},
    {"d_model": 24, "n_layer": 1, "n_head": 2, "d_inner": 7, "ff_activation": "relu"},
]
PAD = 5


def theirs(cls: Any = XLNetLMHeadModel, *, shape: int = 0, **values: Any) -> Any:
    return randomised(cls(XLNetConfig(vocab_size=VOCABULARY, **{**SHAPES[shape], **values})))


def two_streams(
    length: int, pad: str = "none", segments: int = 2
) -> tuple[dict[str, Tensor], Batch]:
    return parity_models.two_streams(length, pad, pad_id=PAD, segments=segments)


def run(model: Bare, batch: Batch, *, traced: bool = False) -> tuple[EncoderOutput, Tensor]:
    """Our output and the head's logits on the query stream, or on the content stream without."""
    with torch.no_grad():
        out = model.encoder(batch, Trace(STEP_SITES) if traced else None)
        return out, model.heads["permutation"](out.streams.get("query", out.hidden))


def close(ours: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(ours, expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("shape", [0, 1])
@pytest.mark.parametrize("segments", [1, 2])
def test_outputs_equal(tmp_path: Path, shape: int, segments: int) -> None:
    reference = theirs(shape=shape)
    model = written(reference, tmp_path)
    for length, pad in [*LENGTHS, (150, "left")][: 5 if shape == 0 else 2]:
        values = inputs(length, pad, pad_id=PAD, segments=segments)
        for traced in (False, True):
            check_outputs(model, reference, values, {"permutation": "logits"}, traced=traced)


def test_small_weights_show_the_epsilon_of_norms(tmp_path: Path) -> None:
    config = XLNetConfig(vocab_size=VOCABULARY, **SHAPES[0], layer_norm_eps=1e-5)
    reference = randomised(XLNetLMHeadModel(config), scale=3e-3)
    values = inputs(11, "none", pad_id=PAD)
    check_epsilon(written(reference, tmp_path), reference, values, {"permutation": "logits"})


@pytest.mark.parametrize("shape", [0, 1])
@pytest.mark.parametrize("segments", [1, 2])
def test_both_streams_equal(tmp_path: Path, shape: int, segments: int) -> None:
    reference = theirs(shape=shape)
    model = written(reference, tmp_path)
    for length, pad in [*LENGTHS, (150, "right")][: 5 if shape == 0 else 2]:
        values, batch = two_streams(length, pad, segments)
        with torch.no_grad():
            expected = reference(**values, use_mems=False, output_hidden_states=True)
        content, query = expected.hidden_states[-2:]
        real = values["attention_mask"].bool()
        seen = real.gather(1, batch.targets)  # their padded rows see themselves, ours nothing
        for traced in (False, True):
            out, logits = run(model, batch, traced=traced)
            close(out.hidden[real], content[real])
            close(out.streams["query"][seen], query[seen])
            close(logits[seen], expected.logits[seen])


@pytest.mark.parametrize(
    "values",
    [{"attn_type": "uni"}, {"clamp_len": 5}, {"bi_data": True}],
    ids=lambda v: next(iter(v)),
)
@pytest.mark.parametrize("remembered", [0, 7])
def test_directions_and_clamping(tmp_path: Path, values: dict[str, Any], remembered: int) -> None:
    reference = theirs(**values, mem_len=9)
    model = written(reference, tmp_path)
    ids = inputs(11, "none")["input_ids"]
    ids = torch.cat([ids, ids[:1].flip(1)])  # an even number of rows: half run backwards
    memory = tuple(torch.randn(remembered, 4, 32) for _ in range(3)) if remembered else ()
    backward = torch.tensor([False, False, True, True]) if "bi_data" in values else None
    batch = Batch(
        input_ids=ids,
        memory=tuple(m.transpose(0, 1) for m in memory),
        reversed=backward,
    )
    with torch.no_grad():
        mems = {"mems": list(memory)} if memory else {}
        close(run(model, batch)[1], reference(ids, **mems).logits)
        hidden, targets = parity_models.order(11, 4)
        mapping = torch.nn.functional.one_hot(targets, 11).float()
        rows = [slice(0, 4)] if "bi_data" in values else [slice(r, r + 1) for r in range(4)]
        expected = torch.cat(  # they cannot mask several rows of a left-to-right model at once
            [
                reference(
                    ids[r],
                    perm_mask=hidden[r].float(),
                    target_mapping=mapping[r],
                    **{name: [m[:, r] for m in value] for name, value in mems.items()},
                ).logits
                for r in rows
            ]
        )
    full = Batch(
        input_ids=ids,
        memory=batch.memory,
        reversed=backward,
        visibility=~hidden | torch.eye(11, dtype=torch.bool),
        targets=targets,
        target_visibility=(~hidden).gather(1, targets[..., None].expand(-1, -1, 11)),
    )
    sees = full.target_visibility.any(-1)
    if "attn_type" in values:  # their rows that see nothing attend to everything
        earlier = torch.arange(11) <= targets[..., None]
        sees = (full.target_visibility & earlier).any(-1) | bool(remembered)
    close(run(model, full)[1][sees], expected[sees])


@pytest.mark.parametrize("reuse", [None, 6])
def test_memory_of_three_segments(tmp_path: Path, reuse: int | None) -> None:
    reference = theirs(mem_len=13, reuse_len=reuse)
    model = written(reference, tmp_path)
    theirs_memory: Any = None
    ours_memory: tuple[Tensor, ...] = ()
    for step in range(3):
        values = inputs(11 + step, "none", pad_id=PAD)
        batch = Batch(
            input_ids=values["input_ids"],
            segment_ids=values["token_type_ids"],
            memory=ours_memory,
            remember=13,
            reuse=reuse,
        )
        with torch.no_grad():
            expected = reference(
                values["input_ids"],
                token_type_ids=values["token_type_ids"],
                mems=theirs_memory,
                use_mems=True,
            )
        out = model.encoder(batch)
        close(model.heads["permutation"](out.hidden), expected.logits)
        assert len(out.memory) == 3
        for ours, wanted in zip(out.memory, expected.mems, strict=True):
            assert not ours.requires_grad
            close(ours.transpose(0, 1), wanted)
        theirs_memory, ours_memory = expected.mems, out.memory


def test_a_remembered_segment_is_a_longer_text() -> None:
    """Left to right and without segments, memory changes nothing about the second half."""
    encoder = Encoder(FORM.read_config({"vocab_size": 97, **SHAPES[0], "attn_type": "uni"})).eval()
    randomised_weights(encoder)
    ids = inputs(20, "none")["input_ids"]
    with torch.no_grad():
        whole = encoder(Batch(input_ids=ids)).hidden[:, 10:]
        first = encoder(Batch(input_ids=ids[:, :10], remember=10))
        second = encoder(Batch(input_ids=ids[:, 10:], memory=first.memory)).hidden
    close(second, whole, 2e-6)


def randomised_weights(module: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.3)


def test_gradients_equal_in_train_mode(tmp_path: Path) -> None:
    reference = theirs(dropout=0.0).train()
    model = written(reference, tmp_path).train()
    values, batch = two_streams(12, "right")
    real = values["attention_mask"].bool().gather(1, batch.targets)
    reference(**values).logits[real].square().mean().backward()
    out = model.encoder(batch)
    model.heads["permutation"](out.streams["query"])[real].square().mean().backward()
    ours = to_their_tensors(FORM, {n: p.grad for n, p in model.named_parameters()}, model.config)
    wanted = {n: p.grad for n, p in reference.named_parameters()}
    assert ours.keys() == wanted.keys()
    for name, grad in ours.items():
        torch.testing.assert_close(grad, wanted[name], atol=1e-4, rtol=1e-4, msg=name)


def test_round_trip_is_bit_equal(tmp_path: Path) -> None:
    model = check_round_trip(theirs(clamp_len=4), AutoModelForCausalLM, tmp_path)
    assert model.heads["permutation"].decoder.weight is model.encoder.embeddings.pieces.weight


def test_bare_encoder_round_trip(tmp_path: Path) -> None:
    reference = theirs(XLNetModel, attn_type="uni")
    model = check_round_trip(reference, AutoModel, tmp_path)
    assert list(model.heads) == []
    ids = inputs(12, "none")["input_ids"]
    with torch.no_grad():
        close(model.encoder(Batch(input_ids=ids)).hidden, reference(ids)[0])


def test_embeddings_in_place_of_ids(tmp_path: Path) -> None:
    reference = theirs()
    model = written(reference, tmp_path)
    values = inputs(11, "none", segments=1)
    with torch.no_grad():
        rows = model.encoder.embeddings.pieces(values["input_ids"])
        ours = model.encoder(Batch(embeddings=rows)).hidden
        assert torch.equal(ours, model.encoder(Batch(input_ids=values["input_ids"])).hidden)
        close(ours, reference.transformer(inputs_embeds=rows)[0])


def test_a_query_knows_its_place_but_not_its_contents(tmp_path: Path) -> None:
    model = written(theirs(), tmp_path)
    _, batch = two_streams(12)
    before, _ = run(model, batch)
    row, target = 1, int(batch.targets[1, 0])
    ids = batch.input_ids.clone()
    ids[row, target] = (ids[row, target] + 1) % VOCABULARY
    _, changed = two_streams(12)
    object.__setattr__(changed, "input_ids", ids)
    after, _ = run(model, changed)
    close(after.streams["query"][row, 0], before.streams["query"][row, 0], 0.0)
    assert not torch.allclose(after.hidden[row, target], before.hidden[row, target])


def test_a_query_without_a_key_attends_to_nothing(tmp_path: Path) -> None:
    """Released XLNet code gives such a query the mean of all keys, its own target among them."""
    model = written(theirs(), tmp_path)
    _, batch = two_streams(12)
    visibility = batch.target_visibility.clone()
    visibility[1, 2] = False
    object.__setattr__(batch, "target_visibility", visibility)
    outputs = []
    for sites in ((), ("scores", "attention_output")):
        trace = Trace(sites)
        with torch.no_grad():
            outputs.append(model.encoder(batch, trace).streams["query"])
    close(outputs[0], outputs[1])
    assert not trace.get("attention_output", 0, "query")[1, 2].any()
    assert trace.get("attention_output", 0, "query")[1, 1].any()


def test_terms_are_recorded_and_add_up(tmp_path: Path) -> None:
    model = written(theirs(), tmp_path)
    _, batch = two_streams(12)
    trace = Trace(["content_score", "term:*", "scores"])
    with torch.no_grad():
        model.encoder(batch, trace)
    for stream, rows in (("content", 12), ("query", 4)):
        position = trace.get("term:position", 1, stream)
        segment = trace.get("term:segment", 1, stream)
        total = trace.get("content_score", 1, stream) + position + segment
        assert total.shape == (3, 4, rows, 12)
        scores = trace.get("scores", 1, stream)
        visible = scores > torch.finfo(scores.dtype).min
        close(total[visible], scores[visible], 1e-6)


def test_without_segments_there_is_no_segment_term(tmp_path: Path) -> None:
    model = written(theirs(), tmp_path)
    trace = Trace(["term:*"])
    model.encoder(Batch(input_ids=inputs(9, "none")["input_ids"]), trace)
    assert {site for site, _, _ in trace.records} == {"term:position"}
