"""Exact counts and differences of the families with relative positions.

Counts are those of the released checkpoints as transformers builds them (encoder; with the
masked-token head; embedding block; one block; all blocks with relative table, its norm and the
convolution). transformers drops the mask decoder's position table; a faithful pretraining model has
512 D parameters more, counted apart.
"""

from dataclasses import replace
from typing import Any

import pytest

from core_models.catalogue import diff
from core_models.counting.counts import count
from core_models.families import family, size

FIGURES = {
    "xlnet-base-cased": (116718336, 116750336, 24576768, 7678464, 92141568),
    "xlnet-large-cased": (360268800, 360300800, 32769024, 13645824, 327499776),
    "deberta-base": (138601728, 139244121, 38605056, 8267520, 99996672),
    "deberta-large": (405163008, 406264921, 51473408, 14693376, 353689600),
    "deberta-xlarge": (757804032, 758905945, 51473408, 14693376, 706330624),
    "deberta-v2-xlarge": (884593152, 887085156, 196764672, 28331520, 687828480),
    "deberta-v2-xxlarge": (1564549632, 1567041636, 196764672, 28331520, 1367784960),
    "deberta-v3-xsmall": (70682112, 70958820, 49191168, 1774464, 21490944),
    "deberta-v3-small": (141304320, 142024548, 98382336, 7087872, 42921984),
    "deberta-v3-base": (183831552, 184551780, 98382336, 7087872, 85449216),
    "deberta-v3-large": (434012160, 435191908, 131176448, 12596224, 302835712),
    "mdeberta-v3-base": (278218752, 279061880, 192769536, 7087872, 85449216),
}


@pytest.mark.parametrize("name", FIGURES)
def test_published_counts(name: str) -> None:
    config = size(name)
    head = "permutation" if config.query_stream else "masked_token"
    found = count(replace(config, objectives=(head,)))
    figures = (
        found.base,
        found.pretraining,
        found.embedding_block,
        found.one_block,
        found.all_blocks,
    )
    assert figures == FIGURES[name]
    assert count(config).masked == FIGURES[name][1]


def test_every_size_has_a_figure() -> None:
    names = {
        name
        for kind in ("xlnet", "deberta", "deberta_v2", "deberta_v3")
        for name in family(kind).sizes
        if not name.endswith("-generator")
    }
    assert names == set(FIGURES)


@pytest.mark.parametrize(
    ("name", "width"),
    [("deberta-base", 768), ("deberta-xlarge", 1024), ("deberta-v2-xxlarge", 1536)],
)
def test_the_mask_decoder_is_counted_apart(name: str, width: int) -> None:
    found = count(size(name))
    assert found.mask_decoder == 512 * width
    assert found.base == FIGURES[name][0]


def test_the_replaced_token_head_of_version_3() -> None:
    """Norm 2 D, dense D D + D, one score D + 1."""
    found = count(size("deberta-v3-base"))
    assert found.mask_decoder == 0
    assert found.heads == {"replaced_token": 768 * 768 + 4 * 768 + 1}
    assert found.pretraining == found.base + found.heads["replaced_token"]


@pytest.mark.parametrize(
    ("name", "layers"), [("xsmall", 6), ("small", 3), ("base", 6), ("large", 12)]
)
def test_generators_of_version_3_are_half_as_deep(name: str, layers: int) -> None:
    generator, discriminator = size(f"deberta-v3-{name}-generator"), size(f"deberta-v3-{name}")
    assert generator.steps == layers == discriminator.steps // 2
    assert generator.embeddings == discriminator.embeddings
    assert count(generator).heads.keys() == {"masked_token"}
    assert count(generator).mask_decoder == 512 * generator.width


POSITIONS = {"embeddings.positions": None, "embeddings.segments": 0}
DISENTANGLED = {
    "attention.terms.kind": "disentangled",
    "attention.terms.kinds": ["c2p", "p2c"],
    "attention.terms.span": 512,
    "attention.terms.buckets": None,
    "attention.terms.shared_projections": False,
    "attention.terms.position_key_bias": False,
    "attention.terms.normed": False,
}
DEBERTA = {
    "embeddings.vocabulary": 50265,
    **POSITIONS,
    "embeddings.projected_first": True,
    "embeddings.blank_padding": True,
    "attention.key_bias": False,
    **DISENTANGLED,
    "norm_epsilon": 1e-7,
    "objectives": ["masked_token"],
    "masking.kind": "windowed_ngram",
    "masking.longest": 3,
    "masking.dynamic": True,
    "mask_decoder": None,
    "mask_decoder.steps": 2,
    "mask_decoder.positions": 512,
}
VERSION_2 = {
    "embeddings.vocabulary": 128100,
    "attention.key_bias": True,
    "attention.terms.buckets": 256,
    "attention.terms.shared_projections": True,
    "attention.terms.normed": True,
}
DIFFERENCES: dict[tuple[str, str], dict[str, Any]] = {
    ("bert-base", "xlnet-base"): {
        "embeddings.vocabulary": 32000,
        **POSITIONS,
        "embeddings.pad_id": 5,
        "embeddings.normed": False,
        "attention.query_bias": False,
        "attention.key_bias": False,
        "attention.value_bias": False,
        "attention.output_bias": False,
        "attention.terms.kind": "transformer_xl",
        "attention.terms.clamp": None,
        "attention.terms.direction": "both",
        "attention.terms.segments": True,
        "feed_forward.inner_dropout": True,
        "objectives": ["permutation"],
        "masking.kind": "permutation",
        "masking.rate": 85 / 512,
        "masking.split": [0.0, 0.0, 1.0],
        "masking.longest": 5,
        "query_stream": True,
        "output_dropout": True,
    },
    ("bert-base", "deberta-base"): DEBERTA,
    ("deberta-xlarge", "deberta-v2-xxlarge"): VERSION_2
    | {
        "embeddings.width": 1536,
        "width": 1536,
        "attention.heads": 24,
        "feed_forward.width": 6144,
        "convolution": None,
        "convolution.kernel": 3,
        "convolution.activation": "gelu",
    },
    ("deberta-base", "deberta-v3-base"): VERSION_2
    | {
        "objectives": ["replaced_token"],
        "masking.longest": 1,
        "masking.split": [1.0, 0.0, 0.0],
        "replaced_token_style": "token_and_first",
        "mask_decoder": None,
        "mask_decoder.steps": None,
        "mask_decoder.positions": None,
    },
}


@pytest.mark.parametrize(("left", "right"), DIFFERENCES)
def test_what_differs(left: str, right: str) -> None:
    found = {d.path: d.right for d in diff(left, right)}
    expected = DIFFERENCES[left, right]
    # A part that one side lacks is None there and a set of values on the other.
    absent = {path for path, value in expected.items() if value is None and path not in found}
    assert found == {path: value for path, value in expected.items() if path not in absent}
