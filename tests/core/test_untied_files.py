"""Files where ``tie_word_embeddings`` is false: a matrix of the head's own scores pieces."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertLMHeadModel,
    DebertaConfig,
    DebertaForMaskedLM,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    ElectraConfig,
    ElectraForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    XLNetConfig,
    XLNetLMHeadModel,
)

import core_models as cm
from core_models.checkpoints.files import read_json
from core_models.counting.counts import count
from core_models.errors import InputError
from core_models.joint import share
from core_models.objectives.build import build
from tests.core import parity
from tests.core.conformance import narrow, tokenizer
from tests.core.parity import VOCABULARY

SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 41,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
RELATIVE = {
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": "c2p|p2c",
    "type_vocab_size": 2,
}
DISTIL = {
    "vocab_size": VOCABULARY,
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 41,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
XL = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "n_layer": 2,
    "n_head": 4,
    "d_inner": 48,
    "dropout": 0.0,
}
FIXED = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
MASKED = {"masked_token": "logits"}
CASES: dict[str, tuple[Any, Any, dict[str, Any], Any, dict[str, str]]] = {
    "bert": (BertConfig, BertForMaskedLM, SHAPE, AutoModelForMaskedLM, MASKED),
    "bert, with pairs": (
        BertConfig,
        BertForPreTraining,
        SHAPE,
        AutoModelForPreTraining,
        {"masked_token": "prediction_logits", "next_sentence": "seq_relationship_logits"},
    ),
    "bert, left to right": (
        BertConfig,
        BertLMHeadModel,
        SHAPE | {"is_decoder": True},
        AutoModelForCausalLM,
        {"causal": "logits"},
    ),
    "roberta": (RobertaConfig, RobertaForMaskedLM, SHAPE | FIXED, AutoModelForMaskedLM, MASKED),
    "albert": (
        AlbertConfig,
        AlbertForMaskedLM,
        SHAPE | {"embedding_size": 12},
        AutoModelForMaskedLM,
        MASKED,
    ),
    "electra": (
        ElectraConfig,
        ElectraForMaskedLM,
        SHAPE | {"embedding_size": 12},
        AutoModelForMaskedLM,
        MASKED,
    ),
    "distilbert": (DistilBertConfig, DistilBertForMaskedLM, DISTIL, AutoModelForMaskedLM, MASKED),
    "deberta": (
        DebertaConfig,
        DebertaForMaskedLM,
        SHAPE | RELATIVE,
        AutoModelForMaskedLM,
        MASKED,
    ),
    "deberta v2": (
        DebertaV2Config,
        DebertaV2ForMaskedLM,
        SHAPE | RELATIVE,
        AutoModelForMaskedLM,
        MASKED,
    ),
    "modernbert": (
        ModernBertConfig,
        ModernBertForMaskedLM,
        {k: v for k, v in SHAPE.items() if "prob" not in k} | FIXED | {"cls_token_id": 1},
        AutoModelForMaskedLM,
        MASKED,
    ),
    "modernbert, without a bias": (
        ModernBertConfig,
        ModernBertForMaskedLM,
        {k: v for k, v in SHAPE.items() if "prob" not in k}
        | FIXED
        | {"cls_token_id": 1, "decoder_bias": False},
        AutoModelForMaskedLM,
        MASKED,
    ),
    "xlnet": (XLNetConfig, XLNetLMHeadModel, XL, AutoModelForCausalLM, {"permutation": "logits"}),
}
TWINS = ("bert", "bert, with pairs", "bert, left to right", "roberta", "albert", "deberta")
"""Classes that hold a second bias, which they do not read."""


def theirs(case: str, **values: Any) -> Any:
    config, cls, shape, _, _ = CASES[case]
    return parity.randomised(cls(config(**shape, tie_word_embeddings=False, **values)))


def segments(case: str) -> int:
    return 1 if case.startswith(("roberta", "distilbert", "modernbert", "xlnet")) else 2


@pytest.mark.filterwarnings("ignore:.*keeps for saving")
@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_those_of_transformers(tmp_path: Path, case: str) -> None:
    reference = theirs(case)
    table = reference.get_input_embeddings().weight
    assert not torch.equal(reference.get_output_embeddings().weight, table)
    model = parity.written(reference, tmp_path)
    assert model.config.masked_token_style == "untied"
    heads = CASES[case][4]
    for (length, pad), traced in [((11, "none"), 0), ((13, "left"), 1), ((38, "right"), 0)]:
        values = parity.inputs(length, pad, segments=segments(case))
        parity.check_outputs(model, reference, values, heads, traced=bool(traced))
    values = parity.inputs(21, "right", segments=segments(case))
    if case != "xlnet":
        parity.check_gradients(model, reference, values, heads)
        return
    real = values["attention_mask"].bool()  # what its query stream has gets no gradient here
    reference.train()(**values).logits[real].square().mean().backward()
    model.train().logits(parity.batch_of(values))["permutation"][real].square().mean().backward()
    for name in ("weight", "bias"):
        ours = model.get_parameter(f"heads.permutation.scores.{name}").grad
        torch.testing.assert_close(ours, reference.get_parameter(f"lm_loss.{name}").grad)


@pytest.mark.filterwarnings("ignore:.*keeps for saving")
@pytest.mark.parametrize("case", CASES)
def test_files_come_back_bit_for_bit(tmp_path: Path, case: str) -> None:
    model = parity.check_round_trip(theirs(case), CASES[case][3], tmp_path)
    assert read_json(tmp_path / "ours" / "config.json")["tie_word_embeddings"] is False
    for head in model.heads.values():
        assert not hasattr(head, "tie")


@pytest.mark.filterwarnings("ignore:.*keeps for saving")
@pytest.mark.parametrize("case", CASES)
def test_counts_are_those_of_the_file(tmp_path: Path, case: str) -> None:
    reference = theirs(case)
    model = parity.written(reference, tmp_path)
    config = model.config
    twin = VOCABULARY if case.startswith(TWINS) else 0
    own = sum(p.numel() for p in reference.parameters()) - twin
    found = count(config)
    if case in ("bert, left to right", "bert, with pairs"):
        assert found.pretraining == own
    else:
        assert found.masked == own
    tied = count(replace(config, masked_token_style="tied"))
    assert found.gap_head - tied.gap_head == VOCABULARY * config.embeddings.width
    assert found.flops(11).heads == tied.flops(11).heads
    held = sum(p.numel() for p in model.parameters())
    assert cm.inspect(tmp_path).parameters == held


def test_a_file_of_transformers_4_has_the_bias_under_its_other_name(tmp_path: Path) -> None:
    reference = theirs("bert")
    reference.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    used = tensors.pop("cls.predictions.decoder.bias")
    save_file(tensors | {"cls.predictions.bias": used}, path, metadata={"format": "pt"})
    model = parity.read(tmp_path)
    assert model.spare == {}
    assert cm.inspect(tmp_path).parameters == sum(p.numel() for p in model.parameters())
    parity.check_outputs(model, reference, parity.inputs(12, "right"), MASKED)


def test_a_file_without_the_matrix_is_refused_by_its_name(tmp_path: Path) -> None:
    theirs("electra").save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    del tensors["generator_lm_head.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"generator_lm_head\.weight"):
        parity.read(tmp_path)


def untied(case: str, **values: Any) -> cm.Model:
    config = replace(narrow(case), masked_token_style="untied", **values)
    generator = torch.Generator().manual_seed(1)
    return cm.Model.new(config, tokenizer(config.family), generator=generator)


@pytest.mark.parametrize("case", ["bert", "albert", "modernbert", "distilbert"])
def test_training_moves_table_and_matrix_apart_and_saves_both(tmp_path: Path, case: str) -> None:
    model = untied(case)
    objective = build("masked_token", model)
    batch = model.batch(["The red fox sees the small dog."])
    assert batch.input_ids is not None
    labels = torch.full_like(batch.input_ids, -100)
    labels[0, 2] = batch.input_ids[0, 2]
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    objective(model.encoder, replace(batch, labels=labels)).total.backward()
    optimizer.step()
    for name in ("encoder.embeddings.pieces.weight", "heads.masked_token.scores.weight"):
        assert not torch.equal(model.get_parameter(name), before[name]), name
    model.eval().save(tmp_path / "tuned")
    again = cm.load(tmp_path / "tuned")
    assert again.config.masked_token_style == "untied"
    for name, parameter in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], parameter), name


def test_a_generator_that_shares_its_tables_keeps_a_matrix_of_its_own() -> None:
    generator = untied("electra, generator")
    discriminator = cm.Model.new(
        replace(narrow("electra, discriminator"), embeddings=generator.config.embeddings),
        generator.tokenizer,
    )
    own = generator.get_parameter("heads.masked_token.scores.weight")
    share(generator, discriminator, "tied")
    pieces = discriminator.encoder.embeddings.pieces.weight
    assert generator.encoder.embeddings.pieces.weight is pieces
    assert generator.get_parameter("heads.masked_token.scores.weight") is own
    assert own is not pieces


def test_a_permutation_model_learns_with_a_matrix_of_its_own() -> None:
    model = untied("xlnet")
    built = type(build("permutation", model)).build(model.config, model.encoder)
    assert [name for name, _ in built.named_parameters()] == [
        "head.scores.weight",
        "head.scores.bias",
    ]


def test_the_lost_table_is_named_where_a_family_knows_no_such_files() -> None:
    with pytest.raises(InputError, match="masked_token_style"):
        untied("neobert").save("/nowhere")
