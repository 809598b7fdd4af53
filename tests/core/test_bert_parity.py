"""BERT against transformers on random tiny models with non-trivial weights."""

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, BertModel

from core_models.batch import Batch
from core_models.checkpoints.files import (
    load_checkpoint,
    present_heads,
    read_tensors,
    save_checkpoint,
    their_names,
)
from core_models.checkpoints.formats import FORMATS
from core_models.config import Config
from core_models.encoder import Encoder
from core_models.errors import InputError
from core_models.heads import MaskedTokenHead, build_head
from core_models.trace import STEP_SITES, Trace

FORM = FORMATS["bert"]
VOCABULARY = 97


class Bare(torch.nn.Module):
    """Encoder and heads as in Model, without a tokenizer."""

    def __init__(self, config: Config, heads: tuple[str, ...]) -> None:
        super().__init__()
        self.encoder = Encoder(config)
        self.heads = torch.nn.ModuleDict(
            {name: build_head(name, config, self.encoder.embeddings) for name in heads}
        )


def read(folder: Path) -> Bare:
    import json

    config = FORM.read_config(json.loads((folder / "config.json").read_text()))
    heads = present_heads(FORM, their_names(FORM, read_tensors(folder)))
    with torch.device("meta"):
        module = Bare(config, heads)
    load_checkpoint(module, FORM, config, folder)
    for head in module.heads.values():
        if isinstance(head, MaskedTokenHead):
            head.tie(module.encoder.embeddings)
    return module


def theirs(shape: dict[str, int], cls: type = BertForPreTraining) -> torch.nn.Module:
    config = BertConfig(vocab_size=VOCABULARY, max_position_embeddings=40, **shape)
    model = cls(config)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in model.parameters():
            mean, std = (0.0, 0.25) if p.dim() > 1 else (0.3, 0.4)
            p.copy_(torch.randn(p.shape, generator=generator) * std + mean)
    model.tie_weights()
    return model.eval()


SHAPES = [
    {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48},
    {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 7},
]


def inputs(length: int, pad: str) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(5, VOCABULARY, (3, length), generator=generator)
    mask = torch.ones(3, length, dtype=torch.long)
    if pad == "right":
        mask[1, -4:] = 0
    if pad == "left":
        mask[1, :4] = 0
    segments = torch.zeros(3, length, dtype=torch.long)
    segments[:, length // 2 :] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


def ours_of(values: dict[str, torch.Tensor]) -> Batch:
    return Batch(
        input_ids=values["input_ids"],
        attention_mask=values["attention_mask"].bool(),
        segment_ids=values["token_type_ids"],
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("length", "pad"), [(11, "none"), (12, "right"), (13, "left"), (40, "no")])
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_equal(
    tmp_path: Path, shape: dict[str, int], length: int, pad: str, traced: bool
) -> None:
    reference = theirs(shape)
    reference.save_pretrained(tmp_path)
    model = read(tmp_path).eval()
    values = inputs(length, pad)
    expected = reference(**values)
    out = model.encoder(ours_of(values), trace=Trace(STEP_SITES) if traced else None)
    real = values["attention_mask"].bool()
    masked = model.heads["masked_token"](out.hidden)
    torch.testing.assert_close(masked[real], expected.prediction_logits[real], atol=1e-5, rtol=0)
    pair = model.heads["next_sentence"](out.hidden)
    keep = real[:, 0]
    torch.testing.assert_close(
        pair[keep], expected.seq_relationship_logits[keep], atol=1e-5, rtol=0
    )


def test_gradients_equal_in_train_mode(tmp_path: Path) -> None:
    shape = SHAPES[0] | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    reference = theirs(shape).train()
    reference.save_pretrained(tmp_path)
    model = read(tmp_path).train()
    values = inputs(12, "right")
    real = values["attention_mask"].bool()
    expected = reference(**values)
    (expected.prediction_logits[real].square().mean()).backward()
    out = model.encoder(ours_of(values))
    model.heads["masked_token"](out.hidden)[real].square().mean().backward()
    grads = {n: p.grad for n, p in reference.named_parameters() if p.grad is not None}
    for name, p in model.named_parameters():
        if p.grad is None:
            assert "next_sentence" in name
            continue
        found = FORM.to_theirs(name)
        assert found is not None
        torch.testing.assert_close(p.grad, grads[found[0]], atol=1e-4, rtol=1e-4)


def test_embeddings_in_place_of_ids(tmp_path: Path) -> None:
    theirs(SHAPES[0]).save_pretrained(tmp_path)
    model = read(tmp_path).eval()
    batch = ours_of(inputs(12, "right"))
    from_ids = model.encoder(batch).hidden
    rows = model.encoder.embeddings.pieces(batch.input_ids)
    from_rows = model.encoder(
        Batch(embeddings=rows, attention_mask=batch.attention_mask, segment_ids=batch.segment_ids)
    ).hidden
    assert torch.equal(from_ids, from_rows)


def test_round_trip_is_bit_equal(tmp_path: Path) -> None:
    reference = theirs(SHAPES[0])
    reference.save_pretrained(tmp_path / "theirs")
    model = read(tmp_path / "theirs")
    save_checkpoint(model, FORM, model.encoder.config, tmp_path / "ours")
    again = BertForPreTraining.from_pretrained(tmp_path / "ours")
    expected = reference.state_dict()
    assert again.state_dict().keys() == expected.keys()
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    third = read(tmp_path / "ours")
    assert third.encoder.config == model.encoder.config
    for name, tensor in third.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name


def test_decoder_stays_tied_after_loading(tmp_path: Path) -> None:
    theirs(SHAPES[0]).save_pretrained(tmp_path)
    model = read(tmp_path)
    assert model.heads["masked_token"].decoder.weight is model.encoder.embeddings.pieces.weight


def test_heads_follow_the_file(tmp_path: Path) -> None:
    theirs(SHAPES[0], BertForMaskedLM).save_pretrained(tmp_path / "masked")
    assert set(read(tmp_path / "masked").heads) == {"masked_token"}
    theirs(SHAPES[0], BertModel).save_pretrained(tmp_path / "bare")
    assert set(read(tmp_path / "bare").heads) == set()


def test_old_norm_names_are_read(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    theirs(SHAPES[0]).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    old = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        if "LayerNorm" in n
        else n: t
        for n, t in tensors.items()
    }
    before = read(tmp_path).state_dict()
    save_file(old, tmp_path / "model.safetensors")
    after = read(tmp_path).state_dict()
    assert all(torch.equal(before[n], after[n]) for n in before)


def test_bad_files_name_what_is_wrong(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    theirs(SHAPES[0]).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    good = load_file(path)
    name = "bert.encoder.layer.1.output.dense.weight"

    def broken(tensors: dict[str, torch.Tensor], match: str) -> None:
        save_file({n: t.contiguous() for n, t in tensors.items()}, path)
        with pytest.raises(InputError, match=match):
            read(tmp_path)

    broken({n: t for n, t in good.items() if n != name}, "lacks 1 of .*layer.1.output.dense.weight")
    broken(good | {"gpt.h.0.weight": torch.zeros(2)}, "gpt.h.0.weight")
    broken(good | {name: torch.zeros(3, 3)}, r"shape \[3, 3\]")
    broken(good | {name: torch.full_like(good[name], float("nan"))}, "NaN")
    broken(good | {name: good[name].to(torch.int32)}, "floating-point")
    broken(good | {"cls.predictions.decoder.weight": torch.zeros(VOCABULARY, 32)}, "shares it")
    save_file(good, path)
    whole = path.read_bytes()
    for cut in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"cut off|not a safetensors"):
            read(tmp_path)
    path.unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match="pickle"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", 33),
        ("hidden_size", "32"),
        ("num_hidden_layers", 100_000),
        ("vocab_size", 2_000_000_000),
        ("num_attention_heads", 0),
        ("hidden_act", "swish"),
        ("layer_norm_eps", None),
        ("hidden_dropout_prob", -1),
    ],
)
def test_hostile_config_fields(tmp_path: Path, field: str, value: object) -> None:
    good = theirs(SHAPES[0]).config.to_dict()
    with pytest.raises(InputError, match=field):
        FORM.read_config(good | {field: value})
