"""The same sentence through transformers: differences and times."""

import json
from pathlib import Path

import pytest
import torch

import core_models as cm
from tests.core.conformance import LABELS, new
from tests.core.foreign_models import TEXT, saved

SHIPPED = Path("assets/models")
NAMES = ["bert-mini", "albert-mini", "electra-mini", "xlnet-mini", "deberta-mini", "causal-mini"]


@pytest.mark.parametrize("name", NAMES)
def test_families_of_ours(name):
    model = cm.load(SHIPPED / name)
    found = cm.proof(model, SHIPPED / name, ["The capital of France is [MASK].", "It is small."])
    assert found.hidden < 1e-4
    assert set(found.predictions) == set(model.heads)
    assert max(found.predictions.values()) < 1e-4
    assert found.attention is not None
    assert found.attention < 1e-4
    assert found.ours > 0 < found.theirs


@pytest.mark.parametrize(
    ("case", "head"),
    [
        ("macbert", "sentence_order"),
        ("bert", "next_sentence"),
        *(("roberta", head) for head in ("classify", "multilabel", "regress", "tag", "span")),
    ],
)
def test_every_head_that_their_class_has_is_compared(case, head, tmp_path):
    model = new(case)
    if head in model.heads:
        model.heads = torch.nn.ModuleDict(
            {name: part for name, part in model.heads.items() if case == "macbert" or name == head}
        )
    else:
        generator = torch.Generator().manual_seed(1)
        model = model.with_head(head, LABELS.get(head, ()), generator=generator)
    model.save(tmp_path)
    found = cm.proof(cm.load(tmp_path), tmp_path, ["the red fox", "birds"]).predictions
    assert set(found) == set(model.heads)
    assert max(found.values()) < 1e-5


@pytest.mark.parametrize("kind", ["mpnet", "esm"])
def test_what_transformers_runs(kind, tmp_path):
    saved(kind, tmp_path)
    found = cm.proof(cm.load(tmp_path), tmp_path, [TEXT, "birds [MASK]"])
    assert found.hidden < 1e-5
    assert found.predictions["masked_token"] < 1e-5
    assert found.attention is not None
    assert found.attention < 1e-5


def test_attention_of_another_kind(tmp_path):
    saved("fnet", tmp_path)
    assert cm.proof(cm.load(tmp_path), tmp_path, TEXT).attention is None


def test_another_model_is_noticed(tmp_path):
    saved("mpnet", tmp_path)
    model = cm.load(tmp_path)
    model.encoder.output_weight(0).mul_(2)
    assert cm.proof(model, tmp_path, TEXT).hidden > 1e-3


def test_a_class_that_transformers_lacks(tmp_path):
    saved("mpnet", tmp_path)
    model = cm.load(tmp_path)
    path = tmp_path / "config.json"
    for name in ("Nonsuch", "AutoTokenizer", "os"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": [name]}))
        with pytest.raises(cm.InputError, match=f"'{name}', which transformers"):
            cm.proof(model, tmp_path, TEXT)
