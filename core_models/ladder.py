"""From BERT to ModernBERT, one change at a time: a ladder of configs.

Each rung is the config of the rung before with one change, so that ``cm.diff`` of neighbours says
what changed, and the last one differs from a ModernBERT of the same shape in nothing. What each
change buys is measured by ``python -m benchmarks.ladder`` (docs/ladder.md).

Two of ModernBERT's changes are no rungs: StableAdamW, because all rungs share one optimizer, and
unpadding, because it changes the speed of a GPU and nothing that is computed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from core_models.config import Config, Masking, Rotary
from core_models.families import size

MEASURED = Path(__file__).resolve().parents[1] / "assets" / "ladder" / "ladder.json"
"""What the rungs reached, as ``python -m benchmarks.ladder`` wrote it."""
WINDOW = 8
"""Tokens on each side that local layers see, for examples of 64; ModernBERT: 64 for 1,024."""


@dataclass(frozen=True)
class Rung:
    """One step on the way."""

    name: str
    title: str
    why: str
    """What changed, and what for."""
    source: str
    """arXiv number."""
    config: Config
    decay: str
    """How the learning rate falls: ``schedule.decay`` of a run's settings."""


def ground() -> Config:
    """The shape of the shipped bert-mini: 4 layers of width 256, 8,000 pieces, no dropout."""
    config = size("bert-mini").with_vocabulary(8000).with_dropout(0.0)
    return replace(config, embeddings=replace(config.embeddings, positions=128))


def rungs(base: Config | None = None) -> tuple[Rung, ...]:
    """The ground and the eight rungs above it; ``base``: a BERT, None = :func:`ground`."""
    config = base or ground()
    found = []
    for name, title, why, source, change in _STEPS:
        config = change(config)
        decay = "stable" if name == _LAST else "linear"
        found.append(Rung(name, title, why, source, config, decay))
    return tuple(found)


def _same(config: Config) -> Config:
    return config


def _no_pairs(config: Config) -> Config:
    tables = replace(config.embeddings, segments=0)
    return replace(config, objectives=("masked_token",), embeddings=tables)


def _more_hidden(config: Config) -> Config:
    return replace(config, masking=Masking(rate=0.3, dynamic=True))


def _no_biases(config: Config) -> Config:
    attention = replace(
        config.attention, query_bias=False, key_bias=False, value_bias=False, output_bias=False
    )
    inner = replace(config.feed_forward, bias=False)
    return replace(
        config, attention=attention, feed_forward=inner, norm_bias=False, head_bias=False
    )


def _norms_before(config: Config) -> Config:
    return replace(config, norm_place="before", norm_epsilon=1e-5, initial_by_depth=True)


def _gated(config: Config) -> Config:
    width = round(config.feed_forward.width * 2 / 3 / 16) * 16
    return replace(config, feed_forward=replace(config.feed_forward, width=width, gated=True))


def _rotary(config: Config) -> Config:
    tables = replace(config.embeddings, positions=None)
    return replace(config, embeddings=tables, attention=replace(config.attention, rotary=Rotary()))


def _local(config: Config) -> Config:
    attention = replace(config.attention, rotary=Rotary(theta=160_000.0), window=WINDOW)
    return replace(config, attention=attention, layer_kinds=("global", "local", "local"))


_LAST = "schedule"
_STEPS: tuple[tuple[str, str, str, str, Callable[[Config], Config]], ...] = (
    (
        "bert",
        "BERT",
        "The ground: masked tokens and next sentence, 15 % hidden, a table of positions, and norms "
        "behind the branches.",
        "1810.04805",
        _same,
    ),
    (
        "no-pairs",
        "No next sentence",
        "Pairs of texts and their segments go: every example is running text.",
        "1907.11692",
        _no_pairs,
    ),
    (
        "hidden-30",
        "30 % hidden",
        "Twice as much to guess in each pass, drawn anew at each visit.",
        "2202.08005",
        _more_hidden,
    ),
    (
        "no-biases",
        "No biases",
        "Linear layers and norms lose their biases, so that all parameters stand in matrices.",
        "2412.13663",
        _no_biases,
    ),
    (
        "norms-before",
        "Norms before the branches",
        "A norm before each branch leaves a straight way from the input to the end, so that deep "
        "models train without a long warm-up.",
        "2002.04745",
        _norms_before,
    ),
    (
        "geglu",
        "Gated feed-forward (GeGLU)",
        "A third matrix gates the feed-forward network, which gets two thirds as wide so that the "
        "number of parameters stays.",
        "2002.05202",
        _gated,
    ),
    (
        "rotary",
        "Rotary positions",
        "Queries and keys are turned by their position, so that a score knows the distance; the "
        "table of positions goes.",
        "2104.09864",
        _rotary,
    ),
    (
        "local",
        "Local layers",
        "Two layers of three see their neighbours only, so that long texts become affordable.",
        "2408.00118",
        _local,
    ),
    (
        _LAST,
        "Stable rate, then down",
        "The learning rate stays at its peak and falls at the end only, so that a run can go on "
        "from any point before.",
        "2404.06395",
        _same,
    ),
)
