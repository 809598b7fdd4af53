"""Fields of ours in config.json: what transformers' fields cannot tell comes back on loading."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf

import core_models as cm
from core_models.checkpoints.files import read_format, read_json, save_checkpoint
from core_models.checkpoints.formats import BY_FAMILY
from core_models.checkpoints.own_fields import complete
from core_models.config import Config, Masking
from core_models.errors import InputError
from core_models.families import FAMILIES, size
from core_models.network.initialise import initialise
from tests.core import parity
from tests.core.parity import Bare
from tests.core.tiny_models import new
from tests.core.tiny_models import tiny as small


def tiny(config: Config) -> Config:
    """Two narrow steps with everything else as published."""
    parts = config.embeddings
    same = parts.width == config.width
    return replace(
        config,
        width=32,
        embeddings=replace(
            parts, width=32 if same else 12, vocabulary=97, pad_id=min(parts.pad_id, 5)
        ),
        attention=config.attention.with_heads(2, 16),
        feed_forward=replace(config.feed_forward, width=48),
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


def test_a_rate_that_xlnet_has_no_field_for_comes_back(tmp_path: Path) -> None:
    config = tiny(size("xlnet-base-cased"))
    config = replace(config, attention=replace(config.attention, dropout=0.0))
    values = saved(config, tmp_path)
    assert (values["dropout"], values["cloze_attention_dropout"]) == (0.1, 0.0)
    assert parity.read(tmp_path).config == config
    opened = tf.AutoModelForCausalLM.from_pretrained(tmp_path)
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
        ({"cloze_attention_dropout": 1.5}, "cloze_attention_dropout is 1.5; expected 0 to 1"),
        ({"cloze_attention_dropout": "0"}, "cloze_attention_dropout is '0'; expected a number"),
        ({"cloze_maskings": MASKING}, "has the field 'cloze_maskings', which is not known"),
        ({"cloze_task": None}, "cloze_task must be an object with named fields, not None"),
        ({"cloze_task": {}}, "cloze_task lacks the field 'head'"),
        (
            {"cloze_task": {"head": "rank"}},
            "task.head is 'rank'; allowed are classify, multilabel, regress",
        ),
        ({"cloze_task": {"head": "tag", "layers": 3}}, "cloze_task has no field 'layers'"),
        ({"cloze_task": {"head": "classify", "labels": ["a"]}}, "classify is 1; allowed"),
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


# --- configs that no file can hold ------------------------------------------------------------


def part(config: cm.Config, name: str, **values: Any) -> cm.Config:
    inner, _, last = name.partition(".")
    if not last:
        return replace(config, **{name: replace(getattr(config, name), **values)})
    return replace(config, **{inner: part(getattr(config, inner), last, **values)})


def terms(config: cm.Config, **values: Any) -> cm.Config:
    return part(config, "attention.terms", **values)


REFUSED: dict[str, tuple[str, Callable[[cm.Config], cm.Config], str]] = {
    "head activation": (
        "bert-mini",
        lambda c: replace(c, head_activation="tanh"),
        "head_activation is 'tanh', which .* read back as None",
    ),
    "generator's activation": (
        "electra-small-generator",
        lambda c: part(c, "feed_forward", activation="relu"),
        "head_activation is None, which .* read back as 'gelu'",
    ),
    "first position": (
        "bert-mini",
        lambda c: part(c, "embeddings", first_position=3),
        "embeddings.first_position is 3, which",
    ),
    "first position that pad id does not give": (
        "roberta-base",
        lambda c: part(c, "embeddings", first_position=2),
        "embeddings.first_position is 2, which .* read back as 1",
    ),
    "clamp": ("xlnet-base-cased", lambda c: terms(c, clamp=0), "attention.terms.clamp is 0"),
    "segments": (
        "xlnet-base-cased",
        lambda c: terms(c, segments=False),
        "attention.terms.segments is False",
    ),
    "blank padding": (
        "bert-mini",
        lambda c: part(c, "embeddings", blank_padding=True),
        "embeddings.blank_padding is True",
    ),
    "inner dropout": (
        "bert-mini",
        lambda c: part(c, "feed_forward", inner_dropout=True),
        "feed_forward.inner_dropout is True",
    ),
    "shared layers": ("bert-mini", lambda c: replace(c, schedule=(0, 0)), r"schedule is \[0, 0\]"),
    "no norm": (
        "bert-mini",
        lambda c: part(c, "embeddings", normed=False),
        "embeddings.normed is False",
    ),
    "no bias": (
        "bert-mini",
        lambda c: part(c, "attention", query_bias=False),
        "attention.query_bias is False",
    ),
    "head width": (
        "bert-mini",
        lambda c: part(c, "attention", head_width=3),
        "attention.head_width is 3, which .* read back as 4",
    ),
    "no positions": (
        "bert-mini",
        lambda c: part(c, "embeddings", positions=None),
        "embeddings.positions is None",
    ),
    "no segments": (
        "bert-mini",
        lambda c: part(c, "embeddings", segments=0),
        "embeddings.segments is 0",
    ),
    "table width": (
        "bert-mini",
        lambda c: part(c, "embeddings", width=6),
        "embeddings.width is 6, which .* read back as 8",
    ),
    "query stream": ("bert-mini", lambda c: replace(c, query_stream=True), "query_stream is True"),
    "equal widths without a projection": (
        "albert-base",
        lambda c: part(c, "embeddings", width=8, square_projection=False),
        "embeddings.square_projection is False, which .* read back as True",
    ),
    "key bias of v1": (
        "deberta-base",
        lambda c: terms(c, position_key_bias=True),
        "position_key_bias is True",
    ),
    "key bias of v2": (
        "deberta-v2-xlarge",
        lambda c: terms(c, shared_projections=False, position_key_bias=False),
        "position_key_bias is False",
    ),
    "convolution of v1": (
        "deberta-base",
        lambda c: replace(c, convolution=cm.size("deberta-v2-xlarge").convolution),
        "convolution.kernel is 3",
    ),
    "positions of the input beside a mask decoder": (
        "deberta-base",
        lambda c: part(c, "embeddings", positions=20),
        "cannot be saved as deberta.*position_biased_input",
    ),
    "norm before the projection of v1": (
        "deberta-base",
        lambda c: part(c, "embeddings", width=6, projected_first=False),
        "embeddings.projected_first is False, which .* read back as True",
    ),
    "style of v3": (
        "deberta-v3-base",
        lambda c: replace(c, replaced_token_style="token"),
        "replaced_token_style is 'token'",
    ),
    "style of ELECTRA": (
        "electra-small-discriminator",
        lambda c: replace(c, replaced_token_style="token_and_first"),
        "replaced_token_style is 'token_and_first'",
    ),
    "terms of XLNet": (
        "deberta-base",
        lambda c: part(c, "attention", terms=cm.size("xlnet-base-cased").attention.terms),
        "attention.terms.kind is 'transformer_xl'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_config_that_no_file_can_hold_is_refused_before_anything_is_written(
    tmp_path: Path, case: str
) -> None:
    name, change, match = REFUSED[case]
    model = new(change(small(name)), heads=())
    with pytest.raises(InputError, match=match):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_head_that_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    model = new(small("bert-mini"), heads=("masked_token", "permutation"))
    with pytest.raises(InputError, match=r"have no place for the tensor 'heads\.permutation"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
