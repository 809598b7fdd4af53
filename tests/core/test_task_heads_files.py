"""Files of fine-tuned models that are broken, foreign or hold more than the task."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import core_models as cm
from tests.core.test_task_heads_model import inputs, pretrained


def change_config(folder: Path, change: dict[str, Any]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"id2label": {"0": "a", "2": "b"}}, "number its 2 names from 0 without gaps; it has 0, 2"),
        ({"id2label": ["a", "b"]}, "id2label must map numbers to names"),
        ({"id2label": {"0": "a", "1": 5}}, "id2label must map numbers to names"),
        ({"id2label": {"0": "a", "1": "a"}}, "Labels must differ"),
        (
            {"id2label": {"0": "a", "1": "b", "2": "c"}},
            r"has shape \[2.*; config.json asks for \[3",
        ),
        ({"problem_type": "multi_label"}, "problem_type is 'multi_label'; supported are single_"),
        ({"problem_type": ["regression"]}, "problem_type is "),
        ({"problem_type": "regression"}, "a regression has 2 outputs"),
        ({"classifier_dropout": "0.1"}, "classifier_dropout is '0.1'; expected a number"),
        ({"classifier_dropout": 2}, "classifier_dropout is 2; expected 0 to 1"),
        ({"architectures": ["BertForTokenClassification"]}, "pooler"),
        ({"architectures": ["BertForQuestionAnswering"]}, "holds the tensor 'classifier"),
        ({"architectures": ["BertForMultipleChoice"]}, "BertForMultipleChoice, whose head is not"),
        ({"architectures": ["BertModel"]}, "holds the tensor 'classifier"),
        ({"cloze_task": {"head": "span"}}, "holds the tensor 'classifier"),
    ],
)
def test_bad_fields_of_a_fine_tuned_file(
    tmp_path: Path, change: dict[str, Any], match: str
) -> None:
    pretrained().with_head("classify", ("a", "b")).save(tmp_path)
    change_config(tmp_path, change)
    if match == "pooler":  # a tag head leaves the pooler aside
        assert list(cm.load(tmp_path).heads) == ["tag"]
        return
    with pytest.raises(cm.InputError, match=match):
        cm.load(tmp_path)


@pytest.mark.parametrize(
    ("family", "change", "match"),
    [
        ("xlnet", {"summary_type": "mean"}, "summary_type is 'mean'; only 'last' is supported"),
        ("xlnet", {"summary_activation": "mish"}, "summary_activation is 'mish'"),
        ("deberta", {"pooler_dropout": 0.5}, "pooler_dropout is 0.5; only 0 is supported"),
        ("xlnet", {"architectures": ["XLNetForQuestionAnswering"]}, "whose head is not supported"),
    ],
)
def test_other_styles_of_a_head_are_refused(
    tmp_path: Path, family: str, change: dict[str, Any], match: str
) -> None:
    pretrained(family).with_head("classify", ("a", "b")).save(tmp_path)
    change_config(tmp_path, change)
    with pytest.raises(cm.InputError, match=match):
        cm.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "options", "tensor"),
    [
        ("classify", {"labels": ("a", "b")}, "classifier.weight"),
        ("classify", {"labels": ("a", "b")}, "bert.pooler.dense.bias"),
        ("regress", {}, "classifier.bias"),
        ("tag", {"labels": ("a", "b")}, "classifier.weight"),
        ("tag", {"labels": ("a", "b"), "every_step": True}, "cloze_tag.weights"),
        ("span", {}, "qa_outputs.weight"),
        ("similarity", {}, "bert.embeddings.LayerNorm.weight"),
    ],
)
def test_bad_files_name_what_is_wrong(
    tmp_path: Path, name: str, options: dict[str, Any], tensor: str
) -> None:
    pretrained().with_head(name, **options).save(tmp_path)
    path = tmp_path / "model.safetensors"
    good = load_file(path)

    def broken(tensors: dict[str, torch.Tensor], match: str) -> None:
        save_file(tensors, path)
        with pytest.raises(cm.InputError, match=match):
            cm.load(tmp_path)

    broken({n: t for n, t in good.items() if n != tensor}, f"lacks 1 of .*'{tensor}'")
    broken(good | {tensor: torch.zeros(3, 3)}, rf"{tensor}' has shape \[3, 3\]")
    broken(good | {tensor: torch.full_like(good[tensor], float("inf"))}, f"{tensor}' holds NaN")
    broken(good | {"score.weight": torch.zeros(2, 2)}, "holds the tensor 'score.weight'")
    save_file(good, path)
    whole = path.read_bytes()
    for cut in (0, 100, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(cm.InputError, match="cut off"):
            cm.load(tmp_path)
    path.unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(cm.InputError, match="pickle"):
        cm.load(tmp_path)


def test_a_leftover_pretraining_head_beside_a_task(tmp_path: Path) -> None:
    """A file may still hold the masked-token head; next sentence has given its pooler away."""
    base = pretrained()
    base.with_head("classify", ("a", "b")).save(tmp_path)
    base.save(tmp_path / "base")
    left = {
        name: tensor
        for name, tensor in load_file(tmp_path / "base" / "model.safetensors").items()
        if name.startswith("cls.")
    }
    assert "cls.seq_relationship.weight" in left
    path = tmp_path / "model.safetensors"
    save_file(load_file(path) | left, path)
    model = cm.load(tmp_path)
    assert set(model.heads) == {"classify", "masked_token"}
    hidden = model.encoder(inputs()).hidden
    assert torch.equal(model.heads["masked_token"](hidden), base.heads["masked_token"](hidden))
