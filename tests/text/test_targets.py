"""One number of a model as a function of vectors: against the answers of core_models."""

import math
from dataclasses import replace

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.prediction import detect, fill, judge_pair
from core_models.prediction.passes import seen_with
from core_models.prediction.targets import (
    Target,
    TargetFunction,
    baseline,
    frozen_copy,
    kinds,
    names,
    redrawn,
    top_blocks,
)
from core_models.tokenizer import Tokenizer
from tests.core.tiny_models import narrow

TEXT = "The river was very cold in the morning."
SIZES = ("bert-tiny", "roberta-base", "albert-base", "deberta-base", "xlnet-base-cased")


def tiny(name: str, tokenizer: Tokenizer, **changes: object) -> cm.Config:
    config = cm.size(name).with_vocabulary(tokenizer.vocabulary, pad_id=tokenizer.pad_id)
    return narrow(config.with_dropout(0.0), width=32, inner=64, initial_std=0.3, **changes)


def made(name: str, tokenizer: Tokenizer, heads: list[str] | None = None, **changes) -> cm.Model:
    config = tiny(name, tokenizer, **changes)
    generator = torch.Generator().manual_seed(5)
    return cm.Model.new(config, tokenizer, heads=heads, generator=generator).eval()


@pytest.fixture(scope="module")
def bert(tokenizer):
    heads = ["masked_token", "next_sentence", "replaced_token"]
    return made("bert-tiny", tokenizer, heads)


def ask(model, target, hidden=(), text=TEXT):
    (encoding,) = model.encode([text])
    seen = seen_with(encoding, dict.fromkeys(hidden, model.tokenizer.mask_id))
    function = TargetFunction(model, seen, target)
    with torch.no_grad():
        return function, float(function(function.vectors))


@pytest.mark.parametrize("name", [*SIZES, "causal"])
def test_a_piece_has_the_probability_that_fill_gives_it(name, tokenizer):
    if name == "causal":
        attention = replace(tiny("bert-tiny", tokenizer).attention, direction="left")
        config = replace(tiny("bert-tiny", tokenizer), attention=attention)
        model = cm.Model.new(config, tokenizer, heads=["causal"]).eval()
    else:
        model = made(name, tokenizer)
    (first,) = fill(model, TEXT, masks=[3, 5], top_k=3).predictions[:1]
    for candidate in first.candidates:
        target = Target(kind="piece", position=3, answer=candidate.id)
        _, log = ask(model, target, [3, 5])
        assert log == pytest.approx(math.log(candidate.probability), abs=1e-5)
        _, chance = ask(model, replace(target, scale="probability"), [3, 5])
        assert chance == pytest.approx(candidate.probability, abs=1e-6)


@pytest.mark.parametrize("name", SIZES)
def test_the_vectors_of_hidden_words_and_of_others_reach_the_number(name, tokenizer):
    model = made(name, tokenizer)
    function, _ = ask(model, Target(kind="piece", position=3, answer=7), [3])
    vectors = function.vectors.clone().requires_grad_()
    function(vectors).sum().backward()
    strength = vectors.grad[0].norm(dim=-1)
    assert strength[5] > 0
    order = "permutation" in model.heads
    assert (strength[3] == 0) == order  # XLNet does not look at hidden pieces at all


def test_rows_are_independent(bert):
    function, value = ask(bert, Target(kind="piece", position=3, answer=7), [3])
    other = baseline(bert, function.seen, "zero")
    both = function(torch.cat([other, function.vectors]))
    assert both[1].item() == pytest.approx(value, abs=1e-5)
    assert both[0].item() == pytest.approx(function(other).item(), abs=1e-5)


def test_a_contrast_is_the_difference(bert):
    values = [
        ask(bert, Target(kind="piece", position=3, answer=answer, scale=scale), [3])[1]
        for scale in ("logit", "log_probability")
        for answer in (7, 9)
    ]
    _, contrast = ask(bert, Target(kind="piece", position=3, answer=7, against=9), [3])
    assert contrast == pytest.approx(values[0] - values[1], abs=1e-5)
    assert contrast == pytest.approx(values[2] - values[3], abs=1e-5)


def test_a_verdict_is_that_of_detect(bert):
    chance = detect(bert, TEXT).verdicts[4].probability
    for answer, expected in ((1, chance), (0, 1 - chance)):
        target = Target(kind="replaced", position=4, answer=answer, scale="probability")
        assert ask(bert, target)[1] == pytest.approx(expected, abs=1e-6)
    _, logit = ask(bert, Target(kind="replaced", position=4, answer=1, scale="logit"))
    assert logit == pytest.approx(math.log(chance / (1 - chance)), abs=1e-4)


def test_a_pair_is_judged_as_by_judge_pair(bert):
    pair = (TEXT, "Nobody went to swim.")
    chances = judge_pair(bert, *pair).probabilities
    for answer in (0, 1):
        target = Target(kind="class", answer=answer, scale="probability")
        assert ask(bert, target, text=pair)[1] == pytest.approx(chances[answer], abs=1e-6)
    assert names(bert, "class") == ("next", "random")


@pytest.mark.parametrize("name", ["bert-tiny", "xlnet-base-cased", "deberta-base"])
def test_fine_tuned_heads_answer_as_on_ids(name, tokenizer):
    model = made(name, tokenizer)
    labels = ("no", "yes", "perhaps")
    generator = torch.Generator().manual_seed(2)
    batch = model.batch([TEXT])
    for head, kind, read in (
        ("classify", "class", lambda out: out[0, 2]),
        ("regress", "score", lambda out: out[0]),
        ("tag", "tag", lambda out: out[0, 4, 2]),
        ("span", "start", lambda out: out[0, 2, 0]),
        ("span", "end", lambda out: out[0, 2, 1]),
    ):
        tuned = model.with_head(
            head, labels if head in ("classify", "tag") else (), generator=generator
        )
        with torch.no_grad():
            expected = float(read(tuned.heads[head].answer(tuned.encoder, batch)))
        answer = 0 if kind == "score" else 2
        target = Target(kind=kind, position=4, answer=answer, scale="logit")
        assert ask(tuned, target)[1] == pytest.approx(expected, abs=1e-5)
        if kind == "score":  # has no scale
            assert ask(tuned, Target(kind=kind))[1] == pytest.approx(expected, abs=1e-5)
        assert kind in kinds(tuned)
        assert names(tuned, kind) == (labels if kind in ("class", "tag") else ())


def test_tags_from_every_step(tokenizer):
    model = made("bert-tiny", tokenizer).with_head("tag", ("O", "B"), every_step=True)
    with torch.no_grad():
        expected = model.heads["tag"].answer(model.encoder, model.batch([TEXT]))[0, 4, 1]
    _, value = ask(model, Target(kind="tag", position=4, answer=1, scale="logit"))
    assert value == pytest.approx(float(expected), abs=1e-5)


def test_baselines_leave_special_pieces(bert):
    (encoding,) = bert.encode([TEXT])
    table = bert.encoder.embeddings.pieces.weight
    own = table[torch.tensor(encoding.ids)]
    for kind, row in (
        ("mask", table[bert.tokenizer.mask_id]),
        ("pad", table[bert.config.embeddings.pad_id]),
        ("zero", torch.zeros(table.shape[1])),
    ):
        start = baseline(bert, encoding, kind)
        assert start.shape == (1, len(encoding), table.shape[1])
        for place, special in enumerate(encoding.special):
            assert torch.equal(start[0, place], own[place] if special else row)
    with pytest.raises(InputError, match="must be one of mask, pad, zero"):
        baseline(bert, encoding, "noise")


def test_a_frozen_copy_shares_its_numbers_and_asks_for_no_gradient(bert):
    copy = frozen_copy(bert)
    assert all(not p.requires_grad for p in copy.parameters())
    assert all(p.requires_grad for p in bert.parameters())
    pairs = list(zip(copy.parameters(), bert.parameters(), strict=True))
    assert all(a.data_ptr() == b.data_ptr() for a, b in pairs)
    assert copy.heads["masked_token"].decoder.weight is copy.encoder.embeddings.pieces.weight
    assert {id(m) for m in copy.modules()}.isdisjoint({id(m) for m in bert.modules()})
    target = Target(kind="piece", position=3, answer=7)
    assert ask(copy, target, [3])[1] == ask(bert, target, [3])[1]


def test_redrawing_takes_the_top_and_leaves_the_model_alone(bert):
    before = {name: tensor.clone() for name, tensor in bert.state_dict().items()}
    draws = [redrawn(bert, 1, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert all(torch.equal(before[n], t) for n, t in bert.state_dict().items())
    a, b, c = (d.state_dict() for d in draws)
    changed = {name for name in a if not torch.equal(a[name], before[name])}
    assert "encoder.embeddings.pieces.weight" not in changed
    assert not any(name.startswith("encoder.blocks.0") for name in changed)
    assert any(name.startswith("encoder.blocks.1") for name in changed)
    assert any(name.startswith("heads.masked_token.dense") for name in changed)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert any(not torch.equal(a[name], c[name]) for name in a)
    made_ = draws[0]
    assert made_.heads["masked_token"].decoder.weight is made_.encoder.embeddings.pieces.weight
    only = redrawn(bert, 0, torch.Generator().manual_seed(1)).state_dict()
    assert not any(
        name.startswith("encoder.") for name in only if not torch.equal(only[name], before[name])
    )


def test_redrawing_forgets_what_only_the_head_has_learnt(tokenizer):
    xlnet = made("xlnet-base-cased", tokenizer)
    mixed = made("bert-tiny", tokenizer, []).with_head("tag", ["A", "B"], every_step=True)
    with torch.no_grad():
        for model in (xlnet, mixed):
            for parameter in model.heads.parameters():
                parameter += 0.5
    forgot = redrawn(xlnet, 0, torch.Generator().manual_seed(1)).heads["permutation"]
    assert not forgot.decoder.bias.any()
    head = redrawn(mixed, 0, torch.Generator().manual_seed(1)).heads["tag"]
    assert not head.weights.any()
    assert head.scale == 1


def test_shared_blocks_count_once(tokenizer):
    assert top_blocks(made("albert-base", tokenizer), 5) == [0]
    assert top_blocks(made("bert-tiny", tokenizer), 5) == [1, 0]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (Target(kind="colour"), "must be one of piece, replaced"),
        (Target(kind="tag", position=3), "cannot be asked for “tag”"),
        (Target(kind="piece", position=0), "holds no word; words stand at 1 to"),
        (Target(kind="piece", position=99), "holds no word"),
        (Target(kind="piece", position=-2), "Position -2 holds no word"),
        (Target(kind="piece"), "holds no word"),
        (Target(kind="piece", position=3.0), "Position 3.0 holds no word"),
        (Target(kind="piece", position=3, answer=None), "The answer None is out of range"),
        (Target(kind="piece", position=3, answer=None, against=4), "The answer None is out of"),
        (Target(kind="piece", position=3, answer=10**7), "out of range"),
        (Target(kind="piece", position=3, answer=4, against=-1), "out of range"),
        (Target(kind="piece", position=3, answer=4, against=4), "against itself"),
        (Target(kind="piece", position=3, scale="loudness"), "must be one of log_probability"),
    ],
)
def test_what_cannot_be_asked_says_why(bert, target, said):
    with pytest.raises(InputError, match=said):
        ask(bert, target)


def test_models_without_the_head_or_with_dropout_on(tokenizer):
    judge = made("bert-tiny", tokenizer, ["replaced_token"])
    assert kinds(judge) == ("replaced",)
    with pytest.raises(InputError, match="predicts none"):
        ask(judge, Target(kind="piece", position=3))
    with pytest.raises(InputError, match=r"model\.eval"):
        ask(judge.train(), Target(kind="replaced", position=3))


def test_a_causal_head_that_sees_both_sides_reads_what_fill_reads(tokenizer):
    model = made("bert-tiny", tokenizer, heads=["causal"], objectives=("causal",))
    (encoding,) = model.encode([TEXT])
    (first,) = fill(model, TEXT, masks=[3, 6], top_k=1).predictions[:1]
    function, value = ask(
        model, Target(kind="piece", position=3, answer=encoding.ids[3]), hidden=(3, 6)
    )
    assert first.original is not None
    assert math.exp(value) == pytest.approx(first.original.probability, rel=1e-4)
    best = int(function.given[0].argmax())
    assert best == first.candidates[0].id


def test_a_label_among_several_has_a_probability_of_its_own(tokenizer):
    model = made("bert-tiny", tokenizer, heads=[]).with_head("multilabel", ("a", "b", "c")).eval()
    assert kinds(model) == ("class",)
    assert names(model, "class") == ("a", "b", "c")
    function, value = ask(model, Target(kind="class", answer=1, scale="probability"))
    assert value == pytest.approx(float(function.given[0, 1].sigmoid()))
    assert math.log(value) == pytest.approx(ask(model, Target(kind="class", answer=1))[1], abs=1e-5)
