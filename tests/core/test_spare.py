"""What a file holds beside the model is said, and comes back when the model is saved."""

import json
import warnings
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

import core_models as cm
from tests.core.tiny_models import new, tiny, tokenizer

CLASSES = {
    "bert": ("bert.pooler.dense", "pooler.dense"),
    "roberta": ("roberta.pooler.dense", "pooler.dense"),
    "albert": ("albert.pooler", "pooler"),
}


def bare(folder: Path, kind: str) -> tuple[cm.Model, torch.nn.Module]:
    """A plain model of transformers with a pooler, and what we make of its folder."""
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(
        kind,
        vocab_size=tokenizer().vocabulary,
        hidden_size=16,
        embedding_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=40,
        pad_token_id=1 if kind == "roberta" else 0,
    )
    theirs = transformers.AutoModel.from_config(config).eval()
    theirs.save_pretrained(folder)
    tokenizer().save(folder)
    with pytest.warns(UserWarning, match=r"tensors that this model does not use \(2\) and keeps"):
        ours = cm.load(folder)
    return ours, theirs


@pytest.mark.parametrize("kind", CLASSES)
def test_the_pooler_of_a_plain_model_comes_back(tmp_path: Path, kind: str) -> None:
    ours, theirs = bare(tmp_path / "theirs", kind)
    name, attribute = CLASSES[kind]
    assert set(ours.spare) == {f"{name}.weight", f"{name}.bias"}
    ours.clone().save(tmp_path / "ours")
    opened, info = transformers.AutoModel.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not info["missing_keys"]
    for each in ("weight", "bias"):
        wanted = theirs.get_parameter(f"{attribute}.{each}")
        assert torch.equal(opened.get_parameter(f"{attribute}.{each}"), wanted)


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_a_classifier_begins_with_it_as_in_transformers(tmp_path: Path, kind: str) -> None:
    ours, theirs = bare(tmp_path, kind)
    head = ours.with_head("classify", ["a", "b"]).heads["classify"]
    wanted = theirs.get_parameter(f"{CLASSES[kind][1]}.weight")
    assert torch.equal(head.get_parameter("dense.weight"), wanted)


def test_a_trained_pooler_is_written_and_no_spare_one(tmp_path: Path) -> None:
    model = new(tiny("bert-base"))
    name = "bert.pooler.dense.weight"
    model.spare = {name: torch.zeros(8, 8)}
    model.save(tmp_path)
    trained = model.heads["next_sentence"].get_parameter("pooler.dense.weight")
    assert torch.equal(load_file(tmp_path / "model.safetensors")[name], trained)


def test_nothing_is_said_of_models_that_are_whole(tmp_path: Path) -> None:
    new(tiny("bert-base")).save(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cm.load(tmp_path).spare == {}
        assert all(cm.load(info.folder).spare == {} for info in cm.models())


SAID = {
    "modernbert": {"classifier_pooling": "mean", "classifier_dropout": 0.25, "cls_token_id": 7},
    "eurobert": {"classifier_pooling": "mean"},
    "bert": {"classifier_dropout": 0.25, "id2label": {"0": "yes", "1": "no", "2": "both"}},
    "roberta": {"classifier_dropout": 0.25, "bos_token_id": 7, "eos_token_id": 8},
    "distilbert": {"seq_classif_dropout": 0.25, "qa_dropout": 0.3},
    "albert": {"classifier_dropout_prob": 0.25},
    "electra": {"classifier_dropout": 0.25, "summary_last_dropout": 0.3},
    "xlnet": {"summary_type": "first", "summary_last_dropout": 0.3},
    "deberta": {"pooler_dropout": 0.25, "cls_dropout": 0.3},
    "deberta-v2": {"pooler_dropout": 0.25, "cls_dropout": 0.3},
}


SMALL = {
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "hidden_size": 16,
    "intermediate_size": 24,
}
SMALL_OF = {
    "distilbert": {"n_layers": 2, "n_heads": 2, "dim": 16, "hidden_dim": 24},
    "xlnet": {"n_layer": 2, "n_head": 2, "d_model": 16, "d_inner": 24},
}


def _made(made: str, config: transformers.PretrainedConfig) -> transformers.PreTrainedModel:
    kind = getattr(transformers, made)
    return kind.from_config(config) if made.startswith("Auto") else kind(config)


def of_theirs(folder: Path, kind: str, made: str = "AutoModel") -> None:
    """A model of transformers whose config.json says what only other heads read."""
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(
        kind,
        vocab_size=tokenizer().vocabulary,
        pad_token_id=1 if kind == "roberta" else 0,
        **SMALL_OF.get(kind, SMALL),
    )
    _made(made, config).save_pretrained(folder)
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | SAID[kind]))


def told(folder: Path, names: Iterable[str]) -> list[dict[str, object]]:
    """Fields of config.json, as they stand there and as transformers reads them."""
    values = json.loads((folder / "config.json").read_text())
    theirs = transformers.AutoConfig.from_pretrained(folder)
    return [{n: values[n] for n in names}, {n: getattr(theirs, n, None) for n in names}]


@pytest.mark.filterwarnings("ignore:.*tensors that this model does not use")
@pytest.mark.parametrize("made", ["AutoModel", "AutoModelForMaskedLM"])
@pytest.mark.parametrize("kind", SAID)
def test_what_a_config_says_of_other_heads_comes_back(tmp_path: Path, kind: str, made: str) -> None:
    lone = kind == "xlnet" and made == "AutoModelForMaskedLM"
    of_theirs(tmp_path / "theirs", kind, "XLNetLMHeadModel" if lone else made)
    wanted = told(tmp_path / "theirs", SAID[kind])
    assert wanted[0] == SAID[kind]
    ours = cm.load(tmp_path / "theirs")
    for number in range(2):
        ours.clone().save(tmp_path / str(number))
        ours = cm.load(tmp_path / str(number))
        assert told(tmp_path / str(number), SAID[kind]) == wanted


@pytest.mark.filterwarnings("ignore:.*tensors that this model does not use")
def test_an_older_name_of_a_field_comes_back(tmp_path: Path) -> None:
    of_theirs(tmp_path, "eurobert")
    values = json.loads((tmp_path / "config.json").read_text())
    del values["classifier_pooling"]
    (tmp_path / "config.json").write_text(json.dumps(values | {"clf_pooling": "mean"}))
    cm.load(tmp_path).save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "config.json").read_text())["clf_pooling"] == "mean"


@pytest.mark.filterwarnings("ignore:.*tensors that this model does not use")
def test_a_head_of_its_own_comes_before_what_the_file_said(tmp_path: Path) -> None:
    of_theirs(tmp_path, "modernbert")
    model = cm.load(tmp_path).with_head("classify", ["a", "b"], dropout=0.5)
    model.save(tmp_path / "own")
    found = transformers.AutoConfig.from_pretrained(tmp_path / "own")
    assert (found.classifier_pooling, found.classifier_dropout) == ("cls", 0.5)
    tagger = cm.load(tmp_path).with_head("tag", ["a", "b"])
    tagger.save(tmp_path / "tags")
    values = json.loads((tmp_path / "tags" / "config.json").read_text())
    (tmp_path / "tags" / "config.json").write_text(
        json.dumps(values | {"classifier_pooling": "mean"})
    )
    cm.load(tmp_path / "tags").save(tmp_path / "again")
    again = transformers.AutoConfig.from_pretrained(tmp_path / "again")
    assert (again.classifier_pooling, again.architectures) == (
        "mean",
        ["ModernBertForTokenClassification"],
    )
