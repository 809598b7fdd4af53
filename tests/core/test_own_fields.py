"""Fields of ours in config.json: what transformers' fields cannot tell comes back on loading."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf

from core_models.checkpoints.files import read_format, read_json, save_checkpoint
from core_models.checkpoints.formats import BY_FAMILY
from core_models.checkpoints.own_fields import complete
from core_models.config import Config, FeedForward, Masking
from core_models.encoder import initialise
from core_models.errors import InputError
from core_models.families import FAMILIES, size
from tests.core import parity
from tests.core.parity import Bare


def tiny(config: Config) -> Config:
    """Two narrow steps with everything else as published."""
    parts = config.embeddings
    same = parts.width == config.width
    return replace(
        config,
        width=32,
        embeddings=replace(parts, width=32 if same else 12, vocabulary=97),
        attention=replace(config.attention, heads=2, head_width=16),
        feed_forward=FeedForward(
            width=48,
            activation=config.feed_forward.activation,
            inner_dropout=config.feed_forward.inner_dropout,
        ),
        schedule=(0, 0) if config.blocks == 1 else (0, 1),
    )


def saved(config: Config, folder: Path, heads: tuple[str, ...] | None = None) -> dict[str, Any]:
    """A random model of ``config``, written; its config.json."""
    form = BY_FAMILY[config.family]
    model = Bare(config, config.objectives if heads is None else heads, form)
    initialise(model, 0.1, torch.Generator().manual_seed(3))
    save_checkpoint(model, form, config, folder)
    return read_json(folder / "config.json")


@pytest.mark.parametrize("name", [n for f in FAMILIES.values() for n in f.sizes])
def test_every_published_size_survives_its_file(name: str) -> None:
    config = size(name)
    form = BY_FAMILY[config.family]
    heads = set(config.objectives)
    written = next(c for needed, c in form.architectures.items() if set(needed) <= heads)
    values = {
        "model_type": form.model_type,
        "architectures": [written],
        **form.write_config(config),
    }
    values = json.loads(json.dumps(values | complete(form, config, values)))
    assert read_format(values).read_config(values) == config


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("bert-base-uncased", set()),
        ("chinese-bert-wwm", {"cloze_masking"}),
        ("chinese-roberta-wwm-ext", {"cloze_masking", "cloze_objectives"}),
        ("electra-base-discriminator", set()),
        ("electra-large-discriminator", {"cloze_masking"}),
        ("electra-large-generator", {"cloze_masking"}),
        ("xlnet-base-cased", set()),
        ("deberta-v3-base", {"cloze_family"}),
    ],
)
def test_only_what_the_family_does_not_tell_is_written(
    tmp_path: Path, name: str, fields: set[str]
) -> None:
    config = tiny(size(name))
    values = saved(config, tmp_path)
    assert {key for key in values if key.startswith("cloze_")} == fields
    assert parity.read(tmp_path).config == config


def test_a_trained_models_own_recipe_comes_back(tmp_path: Path) -> None:
    config = replace(
        tiny(size("bert-base-uncased")),
        objectives=("masked_token", "sentence_order"),
        masking=Masking(kind="span", rate=0.2, split=(1, 0, 0), longest=10, dynamic=True),
    )
    values = saved(config, tmp_path, ("masked_token",))
    assert values["cloze_masking"]["rate"] == 0.2
    assert parity.read(tmp_path).config == config
    opened = tf.AutoModelForMaskedLM.from_pretrained(tmp_path)
    opened.save_pretrained(tmp_path / "theirs")
    assert parity.read(tmp_path / "theirs").config == config


MASKING = {
    "kind": "span",
    "rate": 0.15,
    "split": [0.8, 0.1, 0.1],
    "longest": 10,
    "dynamic": True,
}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"cloze_masking": 3}, "cloze_masking must be an object with named fields, not 3"),
        ({"cloze_masking": MASKING | {"ratio": 1}}, "cloze_masking has no field 'ratio'; known"),
        ({"cloze_masking": MASKING | {"rate": "0.2"}}, r"masking.rate must be float, not '0.2'"),
        ({"cloze_masking": MASKING | {"rate": 1.5}}, "masking.rate is 1.5; allowed is 0 to 1"),
        ({"cloze_masking": MASKING | {"rate": float("nan")}}, "masking.rate is nan"),
        ({"cloze_masking": MASKING | {"kind": "words"}}, "masking.kind is 'words'; allowed are"),
        ({"cloze_masking": MASKING | {"split": [0.8, 0.2]}}, "masking.split must have 3 items"),
        ({"cloze_masking": MASKING | {"split": [0.8, 0.2, 0.1]}}, "sum of masking.split is 1.1"),
        ({"cloze_masking": MASKING | {"split": [1.1, -0.1, 0]}}, r"masking.split.0 is 1.1"),
        ({"cloze_masking": MASKING | {"longest": 0}}, "masking.longest is 0; allowed is 1"),
        ({"cloze_masking": MASKING | {"dynamic": 1}}, "masking.dynamic must be bool, not 1"),
        ({"cloze_objectives": "masked_token"}, "cloze_objectives must be a list"),
        ({"cloze_objectives": ["masking"]}, "names 'masking'; known are masked_token, causal"),
        ({"cloze_objectives": [["causal"]]}, r"cloze_objectives must be str, not \['causal'\]"),
        ({"cloze_objectives": []}, "must name at least one objective"),
        ({"cloze_objectives": ["causal", "causal"]}, "each once"),
        ({"cloze_maskings": MASKING}, "has the field 'cloze_maskings', which is not known"),
        ({"cloze_task": None}, "cloze_task must be an object with named fields, not None"),
        ({"cloze_task": {}}, "cloze_task lacks the field 'head'"),
        ({"cloze_task": {"head": "rank"}}, "task.head is 'rank'; allowed are classify, regress"),
        ({"cloze_task": {"head": "tag", "layers": 3}}, "cloze_task has no field 'layers'"),
        ({"cloze_task": {"head": "classify", "labels": ["a"]}}, "classify has 1 labels; allowed"),
        ({"cloze_task": {"head": "tag", "labels": ["a", "a"]}}, "Labels must differ"),
        ({"cloze_task": {"head": "similarity", "pooling": "max"}}, "task.pooling is 'max'"),
    ],
)
def test_broken_fields_are_named(tmp_path: Path, change: dict[str, Any], match: str) -> None:
    saved(tiny(size("bert-base-uncased")), tmp_path)
    parity.read(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=match):
        parity.read(tmp_path)
