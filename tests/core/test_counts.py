"""Exact parameter counts of every published size, against the figures of the real checkpoints.

Columns: encoder with the pooler of the released class, encoder with the masked-token head, encoder
with every pretraining head, embedding block, one block, all blocks. None: the released class has
no such head. Sizes of families with relative positions stand in test_counts_relative.py.
"""

from dataclasses import replace

import pytest
import torch

from core_models.config import Config
from core_models.counting.counts import count, joint
from core_models.errors import InputError
from core_models.families import electra, size, sizes
from core_models.heads.pretraining import build_head
from core_models.network.encoder import Encoder
from tests.core.tiny_models import new, tiny

BASE, LARGE, NARROW = 7_087_872, 12_596_224, 789_760
"""One block of 768/3072, of 1024/4096 and of 256/1024."""
FIGURES: dict[str, tuple[int, int | None, int, int, int, int]] = {
    "bert-base-uncased": (109482240, 109514298, 110106428, 23837184, BASE, 85054464),
    "bert-base-cased": (108310272, 108340804, 108932934, 22665216, BASE, 85054464),
    "bert-large-uncased": (335141888, 335174458, 336226108, 31782912, LARGE, 302309376),
    "bert-large-cased": (333579264, 333610308, 334661958, 30220288, LARGE, 302309376),
    "bert-base-chinese": (102267648, 102290312, 102882442, 16622592, BASE, 85054464),
    "bert-base-multilingual-cased": (177853440, 177974523, 178566653, 92208384, BASE, 85054464),
    "bert-base-multilingual-uncased": (167356416, 167463831, 168055961, 81711360, BASE, 85054464),
    "chinese-bert-wwm": (102267648, 102290312, 102882442, 16622592, BASE, 85054464),
    "chinese-bert-wwm-ext": (102267648, 102290312, 102882442, 16622592, BASE, 85054464),
    "chinese-macbert-base": (102267648, 102290312, 102882442, 16622592, BASE, 85054464),
    "chinese-macbert-large": (325522432, 325545608, 326597258, 22163456, LARGE, 302309376),
    # trained without next sentence, so all pretraining heads are the masked-token head
    "chinese-roberta-wwm-ext": (102267648, 102290312, 102290312, 16622592, BASE, 85054464),
    "chinese-roberta-wwm-ext-large": (
        325522432,
        325545608,
        325545608,
        22163456,
        LARGE,
        302309376,
    ),
    "roberta-base": (124645632, 124697433, 124697433, 39000576, BASE, 85054464),
    "distilroberta-base": (82118400, 82170201, 82170201, 39000576, BASE, 42527232),
    "roberta-large": (355359744, 355412057, 355412057, 52000768, LARGE, 302309376),
    "xlm-roberta-base": (278043648, 278295186, 278295186, 192398592, BASE, 85054464),
    "xlm-roberta-large": (559890432, 560142482, 560142482, 256531456, LARGE, 302309376),
    "camembert-base": (110621952, 110655493, 110655493, 24976896, BASE, 85054464),
    "camembert-large": (336661504, 336695557, 336695557, 33302528, LARGE, 302309376),
    # no pooler
    "distilbert-base-uncased": (66362880, 66985530, 66985530, 23835648, BASE, 42527232),
    "distilbert-base-cased": (65190912, 65812036, 65812036, 22663680, BASE, 42527232),
    "distilbert-base-multilingual-cased": (
        134734080,
        135445755,
        135445755,
        92206848,
        BASE,
        42527232,
    ),
    "albert-base": (11683584, 11221680, 11813810, 3906048, BASE, BASE),
    "albert-large": (17683968, 16795824, 17847474, 3906048, LARGE, LARGE),
    "albert-xlarge": (58724864, 54821040, 59021490, 3906048, 50358272, 50358272),
    "albert-xxlarge": (222595584, 206368944, 223158450, 3906048, 201379840, 201379840),
    # with the boundary head that no released class has: 1,959,676 and 3,388,668
    "spanbert-base-cased": (108310272, 108340804, 110300480, 22665216, BASE, 85054464),
    "spanbert-large-cased": (333579264, 333610308, 336998976, 30220288, LARGE, 302309376),
    "electra-small-discriminator": (13483008, None, 13549057, 3972864, NARROW, 9477120),
    "electra-base-discriminator": (108891648, None, 109483009, 23837184, BASE, 85054464),
    "electra-large-discriminator": (334092288, None, 335142913, 31782912, LARGE, 302309376),
    "electra-small-generator": (13483008, 13546682, 13546682, 3972864, NARROW, 9477120),
    "electra-small-paper-generator": (4580928, 4620026, 4620026, 3972864, 49984, 599808),
    "electra-base-generator": (33511168, 33740602, 33740602, 23837184, NARROW, 9477120),
    "electra-large-generator": (50999552, 51295290, 51295290, 31782912, NARROW, 18954240),
    # no biases; the first block has one norm, the last norm is counted with the blocks
    "modernbert-base": (149014272, 149655232, 149655232, 38683392, 5014272, 110330880),
    "modernbert-large": (394781696, 395881664, 395881664, 51577856, 12256256, 343203840),
    "ettin-encoder-17m": (16797440, 16913600, 16913600, 12894464, 557312, 3902976),
    "ettin-encoder-32m": (31883136, 32081344, 32081344, 19341696, 1253760, 12541440),
    "ettin-encoder-68m": (68144640, 68457664, 68457664, 25788928, 2228736, 42355712),
    "ettin-encoder-1b": (1028050688, 1031314112, 1031314112, 90261248, 33490688, 937789440),
    "mmbert-small": (140493696, 140897536, 140897536, 98304384, 1917312, 42189312),
    # no pooler; the scores are a layer of its own
    "eurobert-210m": (211766016, 310266624, 310266624, 98500608, 9438720, 113265408),
    "eurobert-610m": (607874688, 755625600, 755625600, 147750912, 17697024, 460123776),
    "eurobert-2.1b": (2107590912, 2403092736, 2403092736, 295501824, 56627712, 1812089088),
    "neobert": (221665536, 245136954, 245136954, 23440896, 7079424, 198224640),
    "mmbert-base": (306939648, 307786240, 307786240, 196608768, 5014272, 110330880),
}

MINIS = {
    2: (4385920, 9591040, 22458880, 38603520),
    4: (4782464, 11170560, 28763648, 52779264),
    6: (5179008, 12750080, 35068416, 66955008),
    8: (5575552, 14329600, 41373184, 81130752),
    10: (5972096, 15909120, 47677952, 95306496),
    12: (6368640, 17488640, 53982720, 109482240),
}
"""Encoder with pooler of the BERT minis, at widths 128, 256, 512 and 768."""

SAME = {
    "albert-base-v1": "albert-base",
    "albert-large-v1": "albert-large",
    "albert-xlarge-v1": "albert-xlarge",
    "bert-large-uncased-whole-word-masking": "bert-large-uncased",
    "bert-large-cased-whole-word-masking": "bert-large-cased",
    "ettin-encoder-150m": "modernbert-base",
    "ettin-encoder-400m": "modernbert-large",
}
"""Sizes that differ in values without parameters."""

OWN = ("bert", "roberta", "albert", "spanbert", "electra", "macbert")
OWN += ("modernbert", "distilbert", "eurobert", "neobert")
"""Families whose sizes this file must name."""


@pytest.mark.parametrize("name", FIGURES)
def test_published_sizes_to_the_parameter(name: str) -> None:
    base, masked, pretraining, embeddings, block, blocks = FIGURES[name]
    found = count(size(name))
    assert found.base == base
    assert found.pretraining == pretraining
    assert ("masked_token" in found.heads) == (masked is not None)
    assert masked is None or found.masked == masked
    assert found.embedding_block == embeddings
    assert found.one_block == block
    assert found.all_blocks == blocks


@pytest.mark.parametrize("layers", MINIS)
def test_minis(layers: int) -> None:
    for width, base in zip((128, 256, 512, 768), MINIS[layers], strict=True):
        assert count(size(f"bert-{layers}x{width}")).base == base


@pytest.mark.parametrize(
    ("name", "base"),
    [("rbt3", 38476800), ("rbt4", 45564672), ("rbt6", 59740416), ("rbtl3", 61001728)],
)
def test_shortened_chinese_sizes(name: str, base: int) -> None:
    assert count(size(name)).base == base


def test_every_size_has_a_figure() -> None:
    minis = {f"bert-{layers}x{width}" for layers in MINIS for width in (128, 256, 512, 768)}
    known = set(FIGURES) | set(SAME) | minis | {"rbt3", "rbt4", "rbt6", "rbtl3"}
    assert {name for name, config in sizes().items() if config.family in OWN} == known
    for name, other in SAME.items():
        assert count(size(name)) == count(size(other))


@pytest.mark.parametrize(
    ("pair", "total", "without_heads", "untied"),
    [
        ("electra-small-paper", 14196219, 14091072, 18169083),
        ("electra-small", 23122875, 22993152, 27095739),
        ("electra-base", 119386427, 118565632, 143223611),
        ("electra-large", 354655291, 353308928, 386438203),
    ],
)
def test_generator_and_discriminator_together(
    pair: str, total: int, without_heads: int, untied: int
) -> None:
    generator, discriminator = (size(name) for name in electra.PAIRS[pair])
    found = joint(generator, discriminator)
    assert (found.total, found.without_heads, found.untied) == (total, without_heads, untied)
    assert found.to_json()["total"] == total
    assert found.to_json()["without_heads"] == without_heads
    assert _unique_when_shared(generator, discriminator) == total


def _unique_when_shared(generator: Config, discriminator: Config) -> int:
    """The same figure from two real encoders that share their tables."""
    with torch.device("meta"):
        small, large = Encoder(generator), Encoder(discriminator)
        for part in ("pieces", "positions", "segments", "norm"):
            setattr(small.embeddings, part, getattr(large.embeddings, part))
        heads = [
            build_head("masked_token", generator, small.embeddings),
            build_head("replaced_token", discriminator, large.embeddings),
        ]
    parameters = {id(p): p for module in (small, large, *heads) for p in module.parameters()}
    return sum(p.numel() for p in parameters.values())


def test_tables_of_different_width_cannot_be_shared() -> None:
    with pytest.raises(InputError, match="same tables"):
        joint(size("electra-base-generator"), size("electra-small-discriminator"))


def test_parts_add_up() -> None:
    assert count(size("albert-base")).projection == 99072
    assert count(size("albert-xxlarge")).projection == 528384
    assert count(size("electra-small")).projection == 33024
    assert count(size("electra-large-generator")).projection == 262400
    assert count(size("spanbert-base")).heads["span_boundary"] == 1959676
    values = count(size("roberta-base")).to_json()
    assert values["pooler"] == 0
    assert values["untrained_pooler"] == 590592
    assert values["bytes_float32"] == 4 * values["pretraining"]
    assert values["bytes_bfloat16"] == 2 * values["pretraining"]


@pytest.mark.parametrize("name", ["bert-mini", "albert-base", "xlnet-base", "deberta-base"])
def test_all_that_is_trained_is_all_that_a_new_model_holds(name: str) -> None:
    """The mask decoder's positions included, as pretraining moves them."""
    config = tiny(name)
    assert count(config).trained == sum(p.numel() for p in new(config).parameters())


@pytest.mark.parametrize("name", ["modernbert-base", "bert-mini", "xlnet-base", "deberta-base"])
@pytest.mark.parametrize("schedule", [(0,), (0, 0, 1), (0, 1, 2, 3), (0, 1, 0, 2, 2), (1, 0, 2)])
def test_every_block_counts_once_in_any_schedule(name: str, schedule: tuple[int, ...]) -> None:
    config = replace(tiny(name), schedule=schedule)
    found, model = count(config), new(config)
    assert found.trained == sum(p.numel() for p in model.parameters())
    terms = [block.get_submodule("attention.terms") for block in model.encoder.blocks]
    assert found.terms == sum(p.numel() for part in terms for p in part.parameters())


def test_two_heads_that_read_pairs_have_a_pooler_each() -> None:
    config = replace(tiny("bert-mini"), objectives=("next_sentence", "sentence_order"))
    found = count(config)
    assert found.pooler == 2 * (8 * 8 + 8)
    assert found.pretraining == sum(p.numel() for p in new(config).parameters())
