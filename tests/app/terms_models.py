"""Tiny models with terms, and one with rotary positions, for the tests of the Terms tab."""

from dataclasses import replace
from pathlib import Path

import torch

import core_models as cm
from core_models.tokenizer.files import Specials, Template
from tests.core.tiny_models import narrow

PRIMER = Path(__file__).resolve().parents[2] / "assets" / "primer" / "english-world.txt"
MODELS = {
    "deberta-tiny": ("deberta-base", "byte_bpe"),
    "deberta-v2-tiny": ("deberta-v2-xlarge", "unigram"),
    "deberta-v3-tiny": ("deberta-v3-base", "unigram"),
    "deberta-v3-tiny-generator": ("deberta-v3-base-generator", "unigram"),
    "xlnet-tiny": ("xlnet-base-cased", "unigram"),
    "modernbert-tiny": ("modernbert-base", "byte_bpe"),
}
WINDOW = 3
"""Pieces on each side that local layers see."""


def save_tiny_models(folder: Path) -> None:
    """Write every model into a folder of models."""
    lines = PRIMER.read_text(encoding="utf-8").splitlines()[:120]
    for name, (size, kind) in MODELS.items():
        trailing = Template.trailing(Specials(pad="<pad>", unknown="<unk>"))
        more = {"template": trailing} if "xlnet" in name else {}
        tokenizer = cm.Tokenizer.train(lines, vocabulary=400, kind=kind, **more)
        config = cm.size(size).with_vocabulary(tokenizer.vocabulary, pad_id=tokenizer.pad_id)
        config = narrow(config, width=16, inner=24, initial_std=0.3)
        if config.attention.window:
            config = replace(config, attention=replace(config.attention, window=WINDOW))
        generator = torch.Generator().manual_seed(4)
        cm.Model.new(config, tokenizer, generator=generator).save(folder / name)
