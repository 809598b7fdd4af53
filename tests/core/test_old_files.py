"""What older files hold beside a model: copies of shared tensors, names without a prefix."""

from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

import core_models as cm
from core_models.checkpoints.files import WEIGHTS, read_tensors
from core_models.checkpoints.formats import FORMATS
from core_models.errors import InputError
from tests.core.tiny_models import new, tiny

SIZES = {
    "bert": "bert-mini",
    "roberta": "roberta-base",
    "albert": "albert-base",
    "electra": "electra-small-generator",
    "xlnet": "xlnet-base",
    "modernbert": "modernbert-base",
    "distilbert": "distilbert-base",
}
COPIES = [
    ("bert", "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
    ("bert", "cls.predictions.decoder.bias", "cls.predictions.bias"),
    ("roberta", "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"),
    ("roberta", "lm_head.decoder.bias", "lm_head.bias"),
    ("albert", "predictions.decoder.weight", "albert.embeddings.word_embeddings.weight"),
    ("albert", "predictions.decoder.bias", "predictions.bias"),
    ("electra", "generator_lm_head.weight", "electra.embeddings.word_embeddings.weight"),
    ("xlnet", "lm_loss.weight", "transformer.word_embedding.weight"),
    ("distilbert", "vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"),
    ("modernbert", "decoder.weight", "model.embeddings.tok_embeddings.weight"),
]
"""Kind, a name that older files hold, and the tensor that it repeats."""
RENAMED = ("xlm-roberta", "camembert")
"""RoBERTa's files by another kind."""


def write(folder: Path, tensors: dict[str, Tensor]) -> None:
    values = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    safetensors.torch.save_file(values, folder / WEIGHTS)


def test_every_copy_stands_here() -> None:
    listed = {
        (kind, entry.theirs, entry.same_as)
        for kind, form in FORMATS.items()
        for entry in form.ignored
        if entry.same_as and kind not in RENAMED
    }
    assert listed == set(COPIES)


@pytest.mark.parametrize(("kind", "copy", "own"), COPIES)
def test_a_copy_may_stay_but_not_say_otherwise(
    tmp_path: Path, kind: str, copy: str, own: str
) -> None:
    model = new(tiny(SIZES[kind]))
    model.save(tmp_path)
    tensors = read_tensors(tmp_path)
    write(tmp_path, tensors | {copy: tensors[own]})
    found = cm.load(tmp_path).state_dict()
    assert all(torch.equal(tensor, found[name]) for name, tensor in model.state_dict().items())
    write(tmp_path, tensors | {copy: tensors[own] + 1})
    with pytest.raises(InputError, match=f"'{copy}' differs from '{own}'"):
        cm.load(tmp_path)


@pytest.mark.parametrize(("kind", "copy", "own"), COPIES)
def test_names_without_a_prefix_are_read_beside_those_of_a_head(
    tmp_path: Path, kind: str, copy: str, own: str
) -> None:
    model = new(tiny(SIZES[kind]))
    model.save(tmp_path)
    tensors = read_tensors(tmp_path)
    tensors[copy] = tensors[own]
    prefix = FORMATS[kind].prefix
    assert any(name.startswith(prefix) for name in tensors)
    write(tmp_path, {name.removeprefix(prefix): tensor for name, tensor in tensors.items()})
    again = cm.load(tmp_path)
    assert list(again.heads) == list(model.heads)
    found = again.state_dict()
    assert all(torch.equal(tensor, found[name]) for name, tensor in model.state_dict().items())


def test_a_listed_model_counts_nothing_that_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers, copies and a pooler that nothing trained are no parameters of the model."""
    config = replace(tiny("roberta-base"), objectives=("masked_token",))
    model = new(config)
    model.save(tmp_path / "mine")
    tensors = read_tensors(tmp_path / "mine")
    extra = {
        "lm_head.decoder.bias": tensors["lm_head.bias"],
        "roberta.embeddings.position_ids": torch.arange(20)[None],
        "roberta.pooler.dense.weight": torch.zeros(8, 8),
    }
    write(tmp_path / "mine", tensors | extra)
    monkeypatch.setenv("CLOZE_MODELS", str(tmp_path))
    info = next(info for info in cm.models() if info.name == "mine")
    assert info.parameters == sum(p.numel() for p in model.parameters())
