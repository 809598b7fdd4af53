"""Operations by formula equal those of real modules, product by product."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import core_models as cm
from core_models.batch import Batch
from core_models.catalogue import count as count_name
from core_models.config import Config, Disentangled, TransformerXL
from core_models.counting.counts import count
from core_models.counting.flops import flops
from core_models.errors import InputError
from core_models.families import size
from core_models.heads.pretraining import build_head
from core_models.network.encoder import Encoder
from core_models.network.trace import Trace

NAMES = [
    "bert-base-uncased",
    "roberta-base",
    "albert-base",
    "spanbert-base-cased",
    "electra-small-discriminator",
    "electra-small-generator",
    "xlnet-base",
    "deberta-base",
    "deberta-v2-xlarge",
    "deberta-v3-base",
    "modernbert-base",
    "eurobert-610m",
]


def tiny(name: str) -> Config:
    config = size(name)
    terms = config.attention.terms
    if isinstance(terms, Disentangled):
        terms = replace(terms, span=9, buckets=terms.buckets and 12)
    return replace(
        config,
        width=20,
        embeddings=replace(
            config.embeddings,
            vocabulary=31,
            pad_id=min(config.embeddings.pad_id, 5),
            width=12 if config.embeddings.width != config.width else 20,
        ),
        attention=replace(config.attention.with_heads(3, 8), terms=terms),
        feed_forward=replace(config.feed_forward, width=28),
        schedule=(0, 0, 0) if name == "albert-base" else (0, 1, 2),
    )


def measured(module: nn.Module, *arguments: object, **named: object) -> int:
    with FlopCounterMode(display=False) as counter:
        module(*arguments, **named)
    return counter.get_total_flops()


@pytest.mark.parametrize("length", [1, 5, 16])
@pytest.mark.parametrize("name", NAMES)
def test_formula_equals_what_runs(name: str, length: int) -> None:
    """Gradients on, so that nothing relative is kept and rows beyond the pass are not projected."""
    config = tiny(name)
    encoder = Encoder(config).eval()
    heads = {n: build_head(n, config, encoder.embeddings) for n in config.objectives}
    ids = torch.arange(length)[None] + 5
    one_segment = config.embeddings.segments == 1
    batch = Batch(input_ids=ids, segment_ids=None if one_segment else ids % 2)
    trace = Trace(["scores"])  # fused attention on a CPU is unknown to the counter
    found = flops(config, length)
    assert measured(encoder, batch, trace=trace) == found.encoder
    out = encoder(batch)
    with FlopCounterMode(display=False) as counter:
        encoder.decode(batch, out)
    # known to the counter where the bias has a gradient, as then it is not fused
    assert counter.get_total_flops() == found.mask_decoder
    for head, module in heads.items():
        hidden = out.hidden
        if head == "span_boundary":
            hidden = torch.zeros(length, 2 * config.width + 200)
        assert measured(module, hidden) == found.heads[head]


@pytest.mark.parametrize(("name", "reach"), [("deberta-base", 9), ("deberta-v2-xlarge", 7)])
def test_rows_are_projected_as_needed_up_to_the_exact_reach(name: str, reach: int) -> None:
    """Span 9 and 12 buckets: exact distances end at 8 and 6; then the whole table is projected."""
    config = tiny(name)
    encoder = Encoder(config).eval()
    terms = config.attention.terms
    assert isinstance(terms, Disentangled)
    table = 2 * (terms.buckets or terms.span)
    for length, rows in ((reach, 2 * reach - 1), (reach + 1, table), (reach + 2, table)):
        found = flops(config, length)
        assert found.relative_rows == config.steps * 2 * 2 * rows * 20 * 24
        batch = Batch(input_ids=torch.arange(length)[None] + 5)
        assert measured(encoder, batch, trace=Trace(["scores"])) == found.encoder


@pytest.mark.parametrize("name", ["bert-base-uncased", "deberta-v2-xlarge", "xlnet-base"])
def test_backward_costs_twice_the_forward(name: str) -> None:
    """Up to the products whose inputs need no gradient: with embeddings given, none."""
    config = replace(tiny(name), mask_decoder=None, objectives=())
    encoder = Encoder(config).train()
    rows = torch.randn(1, 6, config.embeddings.width, requires_grad=True)
    batch = Batch(embeddings=rows, segment_ids=torch.tensor([[0, 0, 0, 1, 1, 1]]))
    with FlopCounterMode(display=False) as counter:
        encoder(batch, trace=Trace(["scores"])).hidden.sum().backward()
    found = flops(config, 6)
    assert found.training == 3 * found.forward == 3 * found.encoder
    constant = found.relative_rows if isinstance(config.attention.terms, TransformerXL) else 0
    assert counter.get_total_flops() == found.training - constant  # sinusoids need no gradient


def test_by_hand() -> None:
    """BERT base, 128 tokens: 12 steps of 8 L D^2, 4 L^2 D and 16 L D^2."""
    found = count_name("bert-base-uncased").flops(128)
    assert found.attention_projections == 12 * 8 * 128 * 768**2
    assert found.attention == 12 * 4 * 128**2 * 768
    assert found.feed_forward == 12 * 16 * 128 * 768**2
    assert found.encoder == 22_347_251_712
    assert found.per_token == found.encoder / 128
    assert found.projection == found.relative == found.convolution == found.mask_decoder == 0
    assert found.heads["masked_token"] == 2 * 128 * 768 * (768 + 30522)
    assert found.heads["next_sentence"] == 2 * 768 * (768 + 2)
    assert found.to_json()["training"] == 3 * found.forward


def test_albert_costs_what_bert_costs() -> None:
    albert, bert = size("albert-base"), size("bert-base-uncased")
    assert flops(albert, 100).feed_forward == flops(bert, 100).feed_forward
    assert flops(albert, 100).projection == 2 * 100 * 128 * 768


def test_lengths_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="1 to 512"):
        count(size("roberta-base")).flops(513)
    with pytest.raises(InputError, match="length is 0"):
        count(size("xlnet-base")).flops(0)
    assert count(size("xlnet-base")).flops(2000).encoder > 0


def test_a_length_that_does_not_fit_names_the_model() -> None:
    for called in ("roberta-base", "bert-mini"):
        with pytest.raises(InputError, match=f"length is 600; {called} takes 1 to "):
            count_name(called).flops(600)
    with pytest.raises(InputError, match="length is 600; bert-mini takes 1 to 128 tokens"):
        count_name(cm.load("bert-mini")).flops(600)
    with pytest.raises(InputError, match="length is 513; this RoBERTa takes 1 to 512 tokens"):
        flops(size("roberta-base"), 513)
    with pytest.raises(InputError, match="length is 0; xlnet-base takes 1 token or more"):
        count_name("xlnet-base").flops(0)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 6, 40])
def test_local_layers_cost_the_pairs_within_their_window(length: int) -> None:
    config = size("modernbert-base")
    config = replace(config, attention=replace(config.attention, window=2), schedule=(0, 1, 2, 3))
    places = torch.arange(length)
    pairs = int(((places[:, None] - places[None]).abs() <= 2).sum())
    assert flops(config, length).attention == 4 * 768 * (2 * length**2 + 2 * pairs)


@pytest.mark.parametrize("length", [None, "x", 1.5, float("nan"), True, [3]])
def test_a_length_is_a_whole_number(length: object) -> None:
    with pytest.raises(cm.InputError, match=r"length is .*takes 1 to 512 tokens"):
        cm.count("bert-base").flops(length)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [None, "x", [3], True])
def test_rows_and_names_of_another_kind_are_refused(rows: object) -> None:
    with pytest.raises(cm.InputError, match=r"embeddings\.vocabulary is"):
        cm.size("bert-tiny").with_vocabulary(rows)  # type: ignore[arg-type]
    for name in (None, [3]):
        with pytest.raises(cm.InputError, match="is named by a text"):
            cm.count(name)  # type: ignore[arg-type]
