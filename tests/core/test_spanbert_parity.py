"""SpanBERT: encoder against transformers, boundary head against the released rule."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
)

from core_models.checkpoints.files import read_json, save_checkpoint
from core_models.checkpoints.formats import BY_FAMILY, FORMATS
from core_models.checkpoints.table import FAMILY_FIELD
from core_models.config import Config
from core_models.errors import InputError
from core_models.families import size
from core_models.heads.pretraining import SpanBoundaryHead
from tests.core import parity
from tests.core.parity import VOCABULARY, Bare, read

SHAPE = {
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 40,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}


def tiny(family: str = "spanbert", name: str = "spanbert-base-cased") -> Config:
    config = FORMATS["bert"].read_config(SHAPE)
    parts = size(name)
    return replace(config, family=family, objectives=parts.objectives, masking=parts.masking)


def built(config: Config) -> Bare:
    model = Bare(config, config.objectives, BY_FAMILY[config.family])
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.3)
    return model.eval()


def mark(folder: Path, family: object) -> None:
    values = read_json(folder / "config.json")
    (folder / "config.json").write_text(json.dumps(values | {FAMILY_FIELD: family}))


@pytest.mark.parametrize(("length", "pad"), parity.LENGTHS)
def test_masked_token_outputs_equal(tmp_path: Path, length: int, pad: str) -> None:
    reference = parity.randomised(BertForMaskedLM(BertConfig(**SHAPE)))
    reference.save_pretrained(tmp_path)
    mark(tmp_path, "spanbert")
    model = read(tmp_path)
    assert model.config == tiny()
    values = parity.inputs(length, pad)
    parity.check_outputs(model, reference, values, {"masked_token": "logits"})


def test_the_untrained_pooler_of_released_files_is_known(tmp_path: Path) -> None:
    for kind in (BertForPreTraining, BertModel):
        parity.randomised(kind(BertConfig(**SHAPE))).save_pretrained(tmp_path / kind.__name__)
        mark(tmp_path / kind.__name__, "spanbert")
        heads = set(read(tmp_path / kind.__name__).heads)
        assert heads == ({"masked_token"} if kind is BertForPreTraining else set())


def test_a_folder_without_the_field_is_read_as_bert(tmp_path: Path) -> None:
    reference = parity.randomised(BertForMaskedLM(BertConfig(**SHAPE)))
    model = parity.written(reference, tmp_path)
    assert model.config.family == "bert"
    assert model.config.objectives == ("masked_token", "next_sentence")


@pytest.mark.parametrize("family", ["roberta", "nobody", 3, None, ["spanbert"]])
def test_a_family_of_another_format_is_refused(tmp_path: Path, family: object) -> None:
    parity.randomised(BertForMaskedLM(BertConfig(**SHAPE))).save_pretrained(tmp_path)
    mark(tmp_path, family)
    with pytest.raises(InputError, match=f"{FAMILY_FIELD} is .* for bert it may be bert, spanbert"):
        read(tmp_path)


def released(head: SpanBoundaryHead, hidden: Tensor, pairs: Tensor) -> Tensor:
    """The released rule: boundaries [B, N, 2] -> scores of all 15 places [B, N, 15, V]."""
    batch, count, _ = pairs.shape
    left, right = (
        torch.gather(hidden, 1, side[..., None].expand(-1, -1, hidden.shape[-1]))
        for side in pairs.unbind(-1)
    )
    parts = [side[:, :, None].expand(-1, -1, 15, -1) for side in (left, right)]
    places = head.place.weight.expand(batch, count, -1, -1)
    x = torch.cat([*parts, places], -1)
    for dense, norm in ((head.boundary_dense, head.boundary_norm), (head.dense, head.norm)):
        x = F.gelu(F.linear(x, dense.weight, dense.bias))
        centred = x - x.mean(-1, keepdim=True)
        x = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
        x = x * norm.weight + norm.bias
    return x @ head.decoder.weight.T + head.decoder.bias


def test_boundary_head_follows_the_released_rule() -> None:
    model = built(tiny())
    head = model.heads["span_boundary"]
    hidden = model.encoder(parity.batch_of(parity.inputs(12, "none"))).hidden
    # row 0: span 2..4 between 1 and 5; row 1: span 1..1 between 0 and 2; row 2: span 8..10
    pairs = torch.tensor([[[1, 5]], [[0, 2]], [[7, 11]]])
    expected = released(head, hidden, pairs)
    spans = torch.tensor(
        [[0, 1, 5, 0], [0, 1, 5, 1], [0, 1, 5, 2], [1, 0, 2, 0], [2, 7, 11, 0], [2, 7, 11, 2]]
    )
    found = head(head.boundaries(hidden, spans))
    assert found.shape == (6, VOCABULARY)
    wanted = torch.stack([expected[row, 0, place] for row, _, _, place in spans.tolist()])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_boundary_head_sees_only_the_two_boundaries() -> None:
    head = built(tiny()).heads["span_boundary"]
    hidden = torch.randn(1, 9, 32, generator=torch.Generator().manual_seed(1))
    spans = torch.tensor([[0, 2, 6, 1]])
    before = head(head.boundaries(hidden, spans))
    inside = hidden.clone()
    inside[:, 3:6] += 1
    assert torch.equal(head(head.boundaries(inside, spans)), before)
    for boundary in (2, 6):
        moved = hidden.clone()
        moved[:, boundary] += 1
        assert not torch.equal(head(head.boundaries(moved, spans)), before)


def test_gradients_reach_the_head_the_encoder_and_the_shared_table() -> None:
    model = built(tiny())
    head = model.heads["span_boundary"]
    assert head.decoder.weight is model.encoder.embeddings.pieces.weight
    batch = parity.batch_of(parity.inputs(12, "none"))
    spans = torch.tensor([[0, 1, 5, 0], [0, 1, 5, 1]])
    hidden = model.encoder(batch).hidden
    F.cross_entropy(head(head.boundaries(hidden, spans)), torch.tensor([7, 8])).backward()
    assert all(p.grad is not None and p.grad.any() for p in head.parameters())
    assert all(p.grad is not None for p in model.encoder.parameters())
    assert not head.place.weight.grad[2:].any()


@pytest.mark.parametrize(
    ("family", "name", "auto", "kind"),
    [
        ("spanbert", "spanbert-base-cased", AutoModelForMaskedLM, BertForMaskedLM),
        ("macbert", "chinese-macbert-base", AutoModelForPreTraining, BertForPreTraining),
    ],
)
def test_saved_folder_opens_in_transformers_and_comes_back(
    tmp_path: Path, family: str, name: str, auto: Any, kind: type
) -> None:
    model = built(tiny(family, name))
    save_checkpoint(model, model.form, model.config, tmp_path)
    theirs, info = auto.from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs) is kind
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    assert all(n.startswith("cls.pair_target_predictions.") for n in info["unexpected_keys"])
    values = parity.inputs(12, "right")
    real = values["attention_mask"].bool()
    out = theirs(**values)
    logits = out.logits if "logits" in out else out.prediction_logits
    hidden = model.encoder(parity.batch_of(values)).hidden
    ours = model.heads["masked_token"](hidden)
    torch.testing.assert_close(ours[real], logits[real], atol=1e-5, rtol=0)
    if family == "macbert":
        pair = model.heads["sentence_order"](hidden)
        torch.testing.assert_close(pair, out.seq_relationship_logits, atol=1e-5, rtol=0)
    again = read(tmp_path)
    assert again.config == model.config
    assert again.state_dict().keys() == model.state_dict().keys()
    for key, tensor in again.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[key]), key
    table = again.encoder.embeddings.pieces.weight
    tied = [head.decoder.weight for head in again.heads.values() if hasattr(head, "decoder")]
    assert all(weight is table for weight in tied)
    theirs.save_pretrained(tmp_path / "theirs")
    assert read_json(tmp_path / "theirs" / "config.json")[FAMILY_FIELD] == family


def test_boundary_tensors_in_a_plain_bert_are_named(tmp_path: Path) -> None:
    model = built(tiny())
    save_checkpoint(model, model.form, model.config, tmp_path)
    values = read_json(tmp_path / "config.json")
    del values[FAMILY_FIELD]
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"cls.pair_target_predictions"):
        read(tmp_path)
