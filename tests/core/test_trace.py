"""The trace: its sites are those of docs/trace.md, and reading and editing do what they say."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import core_models as cm
from core_models.batch import Batch
from core_models.config import Disentangled, TransformerXL
from core_models.network.trace import (
    INPUT_SITES,
    MEMORY_SITE,
    ROTARY_SITES,
    STEP_SITES,
    Edit,
    Trace,
    patch,
    switch_off_heads,
    switch_off_term,
)
from tests.core.conformance import LENGTH, ROWS, SIZES, answers, close, inputs, new

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "trace.md"
REMEMBERED = 4

cases = pytest.mark.parametrize("case", SIZES)


class Listener(Trace):
    """Records whatever is offered, known or not."""

    def keeps(self, site: str, step: int | None) -> bool:
        return True


def documented() -> dict[str, str]:
    """Site -> shape, from the tables of the document."""
    rows = re.findall(r"^\| `([\w:<>]+)` \| ([^|]+?) \|", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == len(dict(rows))
    return dict(rows)


def remembering(model: cm.Model) -> Batch:
    """A batch with whatever the family can take: a memory in XLNet."""
    batch = inputs(model, pad="right")
    if not isinstance(model.config.attention.terms, TransformerXL):
        return batch
    generator = torch.Generator().manual_seed(5)
    memory = [torch.randn(ROWS, REMEMBERED, 32, generator=generator) for _ in range(3)]
    return replace(batch, memory=tuple(memory))


def sites_of(model: cm.Model) -> set[str]:
    """What the family has by the document's words."""
    config, terms = model.config, model.config.attention.terms
    sites = set(STEP_SITES) | {"embedding:pieces", "embedding"}
    if isinstance(terms, Disentangled):
        sites |= {"term:c2p", "term:p2c"}
    if isinstance(terms, TransformerXL):
        sites |= {"term:position", "term:segment", MEMORY_SITE}
    if config.attention.rotary is not None:
        sites |= {*ROTARY_SITES}
    if config.embeddings.positions is not None:
        sites.add("embedding:positions")
    if config.embeddings.segments:
        sites.add("embedding:segments")
    return sites


def fits(shape: torch.Size, text: str, sizes: dict[str, int]) -> bool:
    """Whether a shape is what the document says: ``B, L, E or E``, ``1 or B, L, E``."""
    broadcast = text.startswith("broadcastable to ")
    text = text.removeprefix("broadcastable to ")
    wholes = [part.split(", ") for part in text.split(" or ")]
    if text.startswith("1 or "):
        wholes = [["1", *wholes[1][1:]], wholes[1]]
    options = [[int(s) if s.isdigit() else sizes[s] for s in whole] for whole in wholes]
    if broadcast:
        ends = zip(reversed(shape), reversed(options[0]), strict=False)
        return len(shape) <= len(options[0]) and all(size in (1, most) for size, most in ends)
    return list(shape) in options


def test_the_document_lists_every_site_once() -> None:
    listed = {*STEP_SITES, *ROTARY_SITES, *INPUT_SITES, MEMORY_SITE, "term:<name>"}
    assert set(documented()) == listed


@cases
@torch.no_grad()
def test_the_document_says_what_each_family_offers(case: str) -> None:
    model = new(case)
    config, trace = model.config, Listener()
    answers(model, remembering(model), trace)
    assert {site for site, _, _ in trace.records} == sites_of(model)
    shapes = documented()
    memory = REMEMBERED if MEMORY_SITE in sites_of(model) else 0
    for (site, step, stream), tensor in trace.records.items():
        sizes = {
            "B": ROWS,
            "L": LENGTH,
            "Q": 2 if stream == "query" else LENGTH,
            "K": LENGTH + memory,
            "M": memory,
            "H": config.attention.heads,
            "d": config.attention.head_width,
            "D": config.width,
            "E": config.embeddings.width,
            "F": config.feed_forward.width,
        }
        text = shapes["term:<name>" if site.startswith("term:") else site]
        assert fits(tensor.shape, text, sizes), (site, stream, tensor.shape, text)
        assert (step is None) == (site in INPUT_SITES), site


def test_a_shape_that_does_not_fit_is_noticed() -> None:
    sizes = {"B": 3, "L": 7, "E": 5}
    assert fits(torch.Size([1, 7, 5]), "1 or B, L, E", sizes)
    assert fits(torch.Size([5]), "B, L, E or E", sizes)
    assert not fits(torch.Size([2, 7, 5]), "1 or B, L, E", sizes)
    assert not fits(torch.Size([3, 2]), "broadcastable to B, L", sizes)


@torch.no_grad()
def test_memory_is_read_and_edited() -> None:
    model = new("xlnet")
    batch = remembering(model)
    trace = Trace([MEMORY_SITE])
    before = answers(model, batch, trace)
    for step, memory in enumerate(batch.memory):
        assert torch.equal(trace[MEMORY_SITE, step], memory)
    other = replace(batch, memory=tuple(torch.zeros_like(m) for m in batch.memory))
    edited = answers(model, batch, Trace(edits=[Edit(MEMORY_SITE, torch.zeros_like)]))
    for name, answer in answers(model, other).items():
        close(edited[name], answer)
        assert not torch.allclose(answer, before[name], atol=1e-3)
    without = Trace([MEMORY_SITE])
    answers(model, inputs(model), without)
    assert without.records == {}


def nudge(place: tuple[int, ...], amount: float) -> Edit:
    """An edit of the probabilities of step 1 at one place."""

    def nudged(tensor: Tensor) -> Tensor:
        result = tensor.clone()
        result[place] += amount
        return result

    return Edit("probabilities", nudged, 1)


@cases
def test_gradients_are_those_of_small_changes(case: str) -> None:
    model = new(case).double()
    batch = inputs(model, pad="right")
    trace = Trace(["probabilities", "embedding:pieces"], gradients=True)
    model.encoder(batch, trace).hidden[1, 3].square().sum().backward()
    maps, rows = trace["probabilities", 1].grad, trace["embedding:pieces", None].grad
    assert maps is not None
    assert rows is not None

    def value(edit: Edit) -> float:
        with torch.no_grad():
            return float(model.encoder(batch, Trace(edits=[edit])).hidden[1, 3].square().sum())

    for place in ((1, 0, 2, 5), (1, 3, 7, 0)):
        slope = (value(nudge(place, 1e-5)) - value(nudge(place, -1e-5))) / 2e-5
        assert slope == pytest.approx(float(maps[place]), rel=1e-4, abs=1e-6)
    assert not maps[0].any()  # another row of the batch
    change = torch.zeros_like(rows)
    change[1, 4, 2] = 1e-5
    up, down = (
        value(Edit("embedding:pieces", lambda x, sign=sign: x + sign * change)) for sign in (1, -1)
    )
    assert (up - down) / 2e-5 == pytest.approx(float(rows[1, 4, 2]), rel=1e-4, abs=1e-6)


def test_without_gradients_records_are_detached() -> None:
    model = new("bert")
    trace = Trace(["probabilities"])
    model.encoder(inputs(model), trace)
    assert not trace["probabilities", 0].requires_grad


@cases
@torch.no_grad()
def test_patching_carries_what_another_pass_knew(case: str) -> None:
    model = new(case)
    batch = inputs(model)
    assert batch.input_ids is not None
    other = replace(batch, input_ids=batch.input_ids.roll(3, 1))
    trace = Trace(["residual", "embedding"])
    before, source = model.encoder(batch).hidden, model.encoder(other, trace).hidden
    whole = patch("residual", 1, trace["residual", 1], range(LENGTH))
    close(model.encoder(batch, Trace(edits=[whole])).hidden, source)
    one = patch("residual", 2, trace["residual", 2], [4])
    found = model.encoder(batch, Trace(edits=[one])).hidden
    assert torch.equal(found[:, 4], source[:, 4])
    rest = [i for i in range(LENGTH) if i != 4]
    close(found[:, rest], before[:, rest])
    early = patch("embedding", None, trace["embedding", None], [4])
    found = model.encoder(batch, Trace(edits=[early])).hidden
    assert not torch.allclose(found[:, 5], before[:, 5], atol=1e-3)


TERMS = [
    (case, name)
    for case, names in (
        ("deberta", ("c2p", "p2c")),
        ("deberta v2", ("c2p", "p2c")),
        ("deberta v3", ("c2p", "p2c")),
        ("xlnet", ("position", "segment")),
    )
    for name in names
]


@pytest.mark.parametrize(("case", "name"), TERMS)
@torch.no_grad()
def test_a_term_switched_off_is_left_out_of_the_sum(case: str, name: str) -> None:
    model = new(case)
    batch = inputs(model, pad="right")
    plain = Trace(["content_score", "term:*", "v", "head_output"])
    before = model.encoder(batch, plain).hidden
    edited = Trace(["head_output", "probabilities"], edits=[switch_off_term(name)])
    after = model.encoder(batch, edited).hidden
    names = {site for site, _, _ in plain.records if site.startswith("term:")}
    rest = [plain[site, 0] for site in names - {f"term:{name}"}]
    scores = plain["content_score", 0] + sum(rest)
    assert batch.attention_mask is not None
    scores = scores.masked_fill(~batch.attention_mask[:, None, None], float("-inf"))
    close(edited["probabilities", 0], scores.softmax(-1))
    close(edited["head_output", 0], scores.softmax(-1) @ plain["v", 0])
    assert not torch.allclose(after, before, atol=1e-2)
    all_off = model.encoder(batch, Trace(edits=[switch_off_term("*")])).hidden
    both = [switch_off_term(site.removeprefix("term:")) for site in names]
    close(model.encoder(batch, Trace(edits=both)).hidden, all_off)


WEIGHTS = {
    ("deberta", "c2p"): ("position_key.weight",),
    ("deberta", "p2c"): ("position_query.weight", "position_query.bias"),
    ("xlnet", "position"): ("position_key.weight",),
    ("xlnet", "segment"): ("segment_vectors",),
}
"""Parameters of a block without which a term is zero."""


@pytest.mark.parametrize(("case", "name"), WEIGHTS)
@torch.no_grad()
def test_a_term_switched_off_equals_a_model_without_its_weights(case: str, name: str) -> None:
    model = new(case)
    batch = inputs(model)
    streams = ("content", "query") if case == "xlnet" else ("content", "mask_decoder")
    trace = Trace(edits=[switch_off_term(name, stream=stream) for stream in streams])
    edited = answers(model, batch, trace)
    for block in model.encoder.blocks:
        for weight in WEIGHTS[case, name]:
            block.get_submodule("attention.terms").get_parameter(weight).zero_()
    for site, answer in answers(model, batch).items():
        close(edited[site], answer)


@cases
@torch.no_grad()
def test_heads_and_weighted_values_add_up_to_the_output(case: str) -> None:
    """What each key gives to each query in each head can be recomputed from the sites."""
    model = new(case)
    trace = Trace(["probabilities", "v", "head_output", "attention_output"])
    model.encoder(inputs(model, pad="right"), trace)
    step = 2
    weights, values = trace["probabilities", step], trace["v", step]
    output = model.encoder.blocks[model.config.schedule[step]].attention.output
    parts = output.weight.unflatten(1, values.shape[1::2])  # [D, H, d]
    moved = torch.einsum("bhkd,Dhd->bhkD", values, parts)  # each value after the projection
    given = weights[..., None] * moved[:, :, None]  # [B, H, Q, K, D]
    close(torch.einsum("bhqd,Dhd->bhqD", trace["head_output", step], parts), given.sum(3))
    total = given.sum((1, 3)) + (0 if output.bias is None else output.bias)
    close(total, trace["attention_output", step])
    norms = weights * moved.norm(dim=-1)[:, :, None]
    close(norms, given.norm(dim=-1))


@torch.no_grad()
def test_a_head_switched_off_gives_nothing() -> None:
    model = new("albert")
    batch = inputs(model)
    trace = Trace(["head_output"], edits=[switch_off_heads(1, [2])])
    model.encoder(batch, trace)
    assert not trace["head_output", 1][:, 2].any()
    assert trace["head_output", 0][:, 2].any()  # the same block in another step


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (switch_off_term("c2pp"), "No score term 'term:c2pp'.*term:c2p, term:p2c"),
        (switch_off_heads(99, [0]), "No step 99 to edit"),
        (Edit("residual", torch.zeros_like, 0, "contnt"), "No stream 'contnt'"),
        (Edit("q_unturned", torch.zeros_like), "No q_unturned in this model"),
        (Edit("embedding:positions", torch.zeros_like), "No embedding:positions in this model"),
        (Edit("embedding", torch.zeros_like, 0), "comes before the first step.*not at step 0"),
        (Edit("embedding", torch.zeros_like, None, "query"), "in the content stream.*stream query"),
    ],
)
def test_an_edit_that_would_change_nothing_is_refused(edit: Edit, message: str) -> None:
    encoder = new("deberta").encoder
    batch = cm.Batch(input_ids=torch.tensor([[2, 9, 3]]))
    with pytest.raises(ValueError, match=message):
        encoder(batch, trace=Trace(edits=[edit]))


def test_what_is_no_site_edit_or_step_is_refused() -> None:
    model = new("bert")
    batch = cm.Batch(input_ids=torch.tensor([[1, 2, 3]]))
    for values in ({"sites": None}, {"sites": "q"}, {"edits": ["x"]}, {"steps": 3}):
        with pytest.raises(cm.InputError, match="must"):
            cm.Trace(**values)  # type: ignore[arg-type]
    for heads in (None, "0"):
        with pytest.raises(cm.InputError, match="heads must be a list"):
            cm.switch_off_heads(0, heads)  # type: ignore[arg-type]
    for edit in (cm.switch_off_heads("x", [0]), cm.switch_off_heads(0, [None])):  # type: ignore
        with pytest.raises(cm.InputError, match=r"No (step|head)"):
            model.encoder(batch, trace=cm.Trace(edits=[edit]))
    with pytest.raises(cm.InputError, match="source is NoneType"):
        cm.patch("residual", 0, None, [1])  # type: ignore[arg-type]


def test_what_was_not_recorded_is_named() -> None:
    trace = cm.Trace(["residual"], steps=[1])
    for look in (lambda: trace.stack("residual"), lambda: trace["residual", 1]):
        with pytest.raises(KeyError, match="recorded: nothing"):
            look()
    new("bert").encoder(cm.Batch(input_ids=torch.tensor([[1, 2, 3]])), trace=trace)
    with pytest.raises(KeyError, match="q/content was recorded at no step; recorded: residual@1"):
        trace.stack("q")
