"""What a model costs: parameters by part, bytes, operations and time. No Gradio in it.

Parameters are counted by :func:`core_models.counting.counts.count` from the module built on the
meta device; times are measured by :mod:`app.labs.budget.timing`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import core_models as cm
from app.serving.ask import whole_number
from core_models import Config, Count, InputError
from core_models.counting.counts import count
from viz.svg import Wording

OWN = "own size"
MOST_SIZES = 8
MOST_LENGTH = 512
PARTS = {
    "pieces": Wording("Pieces"),
    "positions": Wording("Positions"),
    "segments": Wording("Segments"),
    "projection": Wording("Projection"),
    "attention": Wording("Attention"),
    "feed_forward": Wording("Feed-forward"),
    "norms": Wording("Norm layers"),
    "relative": Wording("Relative terms"),
    "other": Wording("Convolution, query start"),
    "head": Wording("Pooler and heads"),
}
"""Parts of a bar in the order in which they are stacked."""
SHARINGS = ("none", "all", "groups")
LIMITS = {
    "vocabulary": (100, 300_000),
    "embedding": (8, 4096),
    "width": (8, 4096),
    "layers": (1, 64),
    "heads": (1, 64),
    "inner": (8, 16_384),
    "groups": (1, 64),
}


# --- sizes ----------------------------------------------------------------------------------------


def values(config: Config) -> dict[str, Any]:
    """The values of a config that a visitor may change."""
    blocks, steps = config.blocks, config.steps
    return {
        "vocabulary": config.embeddings.vocabulary,
        "embedding": config.embeddings.width,
        "width": config.width,
        "layers": steps,
        "heads": config.attention.heads,
        "inner": config.feed_forward.width,
        "sharing": "none" if blocks == steps else "all" if blocks == 1 else "groups",
        "groups": blocks,
    }


def read_names(value: Any, known: Collection[str] = ()) -> tuple[str, ...]:
    """Names of published sizes and of ``known`` models, each once.

    Raises:
        InputError: there is no such size, or there are more than the page shows.
    """
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError("sizes must be a list of names.")
    names = tuple(dict.fromkeys(str(name)[:100] for name in value))
    if len(names) > MOST_SIZES:
        raise InputError(f"{len(names)} sizes are chosen; at most {MOST_SIZES} are shown at once.")
    for name in names:
        if name not in known:
            cm.size(name)
    return names


def read_own(value: Any) -> Config:
    """A size of the visitor's own: a published ``base`` with other values.

    Raises:
        InputError: a value is out of range, or the heads do not divide the width.
    """
    if not isinstance(value, Mapping):
        raise InputError("own must be an object with base, vocabulary, embedding and so on.")
    base = cm.size(str(value.get("base"))[:100])
    v = {
        name: whole_number(value.get(name), f"own.{name}", *limits)
        for name, limits in LIMITS.items()
        if name != "groups"
    }
    sharing = value.get("sharing")
    if sharing not in SHARINGS:
        raise InputError(f"own.sharing is {str(sharing)[:40]!r}; it must be {', '.join(SHARINGS)}.")
    if v["width"] % v["heads"]:
        raise InputError(
            f"own.heads is {v['heads']}; it must divide a width of {v['width']}, as each head "
            "needs the same share of it."
        )
    groups = {"none": v["layers"], "all": 1}.get(sharing)
    if groups is None:
        groups = whole_number(value.get("groups"), "own.groups", 1, v["layers"])
    tables = replace(base.embeddings, vocabulary=v["vocabulary"], width=v["embedding"], pad_id=0)
    return replace(
        base,
        embeddings=tables,
        width=v["width"],
        attention=base.attention.with_heads(v["heads"], v["width"] // v["heads"]),
        feed_forward=replace(base.feed_forward, width=v["inner"]),
        schedule=schedule(v["layers"], groups),
    )


def schedule(layers: int, groups: int) -> tuple[int, ...]:
    """Neighbouring layers share a block, as in ALBERT: (0, 0, 1, 1) for four layers, two groups."""
    return tuple(layer * groups // layers for layer in range(layers))


def read_length(value: Any) -> int:
    """Tokens of the sequence whose operations are counted and whose pass is timed."""
    return whole_number(value, "length", 1, MOST_LENGTH)


def mebibytes(size: int) -> str:
    """Bytes as people say them: 440,425,712 is "420 MiB"."""
    if size >= (1 << 30) - (1 << 19):  # what would be 1024 MiB
        return f"{size / (1 << 30):.2f} GiB"
    return f"{size / (1 << 20):.{1 if size < 10**7 else 0}f} MiB"


# --- counting -------------------------------------------------------------------------------------


def parts_of(config: Config) -> dict[str, int]:
    """Parameters by part; they add up to ``count(config).pretraining``."""
    found = counted(config)
    return {
        "pieces": found.pieces,
        "positions": found.positions,
        "segments": found.segments,
        "projection": found.projection,
        "attention": found.attention - found.terms,
        "feed_forward": found.feed_forward,
        "norms": found.embedding_norm + found.norms,
        "relative": found.relative + found.terms,
        "other": found.convolution + found.query_start,
        "head": found.pooler + sum(found.heads.values()),
    }


@lru_cache(maxsize=256)
def counted(config: Config) -> Count:
    """:func:`core_models.counting.counts.count`, remembered."""
    return count(config)


def describe(name: str, config: Config, length: int) -> dict[str, Any]:
    """One row of the page: values, parts, sums, bytes and operations."""
    found = counted(config)
    plain = found.to_json()
    return {
        "name": name,
        **values(config),
        "blocks": config.blocks,
        "parts": parts_of(config),
        "base": found.base,
        "pretraining": found.pretraining,
        "bytes_float32": plain["bytes_float32"],
        "bytes_bfloat16": plain["bytes_bfloat16"],
        "per_token": found.flops(length).per_token,
        "factorisation": factorise(config),
    }


def factorise(config: Config) -> dict[str, Any]:
    """Tables of full width against the model's own ones, with a projection where they are narrow.

    ``break_even`` is the width below which narrow tables save parameters: V E + E D = V D gives
    E = V D / (V + D). Biases of the projection are left out of ``narrow``, as in the formula.
    """
    tables, width = config.embeddings, config.width
    own = counted(config)
    full = tables.vocabulary * width
    narrow = own.pieces + own.projection - (width if own.projection else 0)
    return {
        "full": full,
        "narrow": narrow,
        "factorised": tables.width != width,
        "break_even": tables.vocabulary * width / (tables.vocabulary + width),
    }


def compare(
    rows: Sequence[Mapping[str, Any]], names: Mapping[str, str], times: Mapping[str, float]
) -> str:
    """The leanest against the largest model shown, in one sentence.

    Args:
        rows: As :func:`describe` gives them.
        names: What each is called.
        times: Milliseconds of a pass, of those that were measured.
    """
    if len(rows) < 2:
        return ""
    big = max(rows, key=lambda row: row["pretraining"])
    small = min(rows, key=lambda row: row["pretraining"])
    if big["pretraining"] == small["pretraining"]:
        return Wording("All of them have the same number of parameters.")
    fewer = big["pretraining"] / small["pretraining"]
    cost = hundredths(small["per_token"] / big["per_token"])
    shown = f"{fewer:.1f}" if fewer >= 1.05 else f"{fewer:.5g}"  # 1.0 times would be as many
    told = (names[small["name"]], shown, names[big["name"]], cost)
    if small["name"] in times and big["name"] in times:
        share = hundredths(times[small["name"]] / times[big["name"]])
        return Wording(
            "{0} has {1} times fewer parameters than {2}, but a token costs it {3} % of the "
            "operations and, measured here, {4} % of the time.",
            *told,
            share,
        )
    return Wording(
        "{0} has {1} times fewer parameters than {2}, but a token costs it {3} % of the "
        "operations.",
        *told,
    )


def hundredths(share: float) -> str:
    """A share in percent, which may be far below 1 or above 100: in whole ones from 10 on."""
    return f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"


def read_times(value: Any) -> dict[str, float]:
    """Milliseconds by name that the page was told before; anything else counts as none."""
    if not isinstance(value, Mapping):
        return {}
    return {
        str(name)[:100]: float(spent)
        for name, spent in list(value.items())[: 2 * MOST_SIZES]
        if isinstance(spent, int | float) and 0 < spent < 1e9
    }


def code_lines(
    names: Sequence[str],
    own: tuple[str, Config] | None,
    length: int,
    known: Mapping[str, str] | None = None,
) -> str:
    """Python that computes the numbers of the page again.

    Args:
        names: published sizes.
        own: the visitor's own size and the name of the one that it starts from.
        length: tokens of the sequence.
        known: models by their names here, and what ``cm.load`` takes.
    """
    lines = ["import core_models as cm", "from core_models.counting.counts import count"]
    if own is not None:
        lines.insert(0, "from dataclasses import replace\n")
    lines += ["", f"configs = {{name: cm.size(name) for name in {list(names)!r}}}"]
    for name, loaded in (known or {}).items():
        lines.append(f"configs[{name!r}] = cm.load({loaded!r}).config")
    if own is not None:
        base, c = own
        lines += [
            f"base = cm.size({base!r})",
            f"configs[{OWN!r}] = replace(",
            "    base,",
            f"    width={c.width},",
            f"    embeddings=replace(base.embeddings, vocabulary={c.embeddings.vocabulary}, "
            f"width={c.embeddings.width}, pad_id=0),",
            f"    attention=base.attention.with_heads({c.attention.heads}, "
            f"{c.attention.head_width}),",
            f"    feed_forward=replace(base.feed_forward, width={c.feed_forward.width}),",
            f"    schedule={c.schedule},",
            ")",
        ]
    lines += [
        "for name, config in configs.items():",
        "    found = count(config)",
        f"    print(name, found.to_json(), found.flops({length}).per_token)",
    ]
    return "\n".join(lines)
