"""Write what the code knows of each family into docs/families, between the pages' markers.

``python -m benchmarks.families`` rewrites every page whose part is out of date. Nothing is
measured: differences come from the configs, counts from modules built on the meta device.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core_models.config import Config, Masking, diff
from core_models.counting.counts import Count, count, joint
from core_models.families import FAMILIES, electra, size
from core_models.families.family import Family

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "families"
OVERVIEW = "README"
BASE = "bert-base-uncased"
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"
PAIRS = {"electra": electra.PAIRS}
"""Generators and discriminators whose sum is shown."""

CAUSAL = "causal"
"""Page of the objective that needs another direction, not another family."""
LEFT_TO_RIGHT = replace(
    size(BASE),
    attention=replace(size(BASE).attention, direction="left"),
    objectives=("causal",),
    masking=Masking(kind="none"),
)
"""BERT base as a language model."""

LEGEND = """\
"Base" is the encoder, with its pooler where the released classes have one. "Pretraining" adds the
pretraining heads and leaves out a pooler that none of them trains. Shared tensors count once."""
DECODER = """\
The sums leave out the mask decoder's table of positions, as the published figures do."""


def base_of(family: Family) -> str:
    """The size that stands for a family: its base size, or the first where it has none."""
    names = [name for name in family.sizes if not name.endswith("-generator")]
    return next((name for name in names if "-base" in name), names[0])


def page(family: Family) -> str:
    """The generated part of a family's page."""
    parts = [sizes_table(family)]
    if base_of(family) != BASE:
        parts.insert(0, difference_table(base_of(family), size(base_of(family))))
    if family.name in PAIRS:
        parts.append(joint_table(PAIRS[family.name]))
    return "\n\n".join(parts)


def difference_table(name: str, config: Config) -> str:
    """Every value in which a config differs from BERT base."""
    found = diff(size(BASE), config)
    rows = [(f"`{d.path}`", show(d.path, d.left), show(d.path, d.right)) for d in found]
    return f"**Every value that differs**\n\n{table(('value', BASE, name), rows, 'lll')}"


def sizes_table(family: Family) -> str:
    """Every published size with its counts."""
    columns = ("size", "steps", "width", "heads", "vocabulary", "base", "pretraining", "embeddings")
    counts = {name: count(config) for name, config in family.sizes.items()}
    rows = [_size_row(name, config, counts[name]) for name, config in family.sizes.items()]
    legend = LEGEND.replace("\n", " ")
    if any(found.mask_decoder for found in counts.values()):
        legend += f"\n{DECODER}"
    text = table((*columns, "one block"), rows, "l" + "r" * len(columns))
    return f"**Published sizes and their parameters**\n\n{text}\n\n{wrap(legend)}"


def _size_row(name: str, config: Config, found: Count) -> tuple[str, ...]:
    shape = (config.steps, config.width, config.attention.heads, config.embeddings.vocabulary)
    sums = (found.base, found.pretraining, found.embedding_block, found.one_block)
    return (f"`{name}`", *(f"{n:,}" for n in (*shape, *sums)))


def joint_table(pairs: dict[str, tuple[str, str]]) -> str:
    """Generators and discriminators as they are trained together."""
    rows = []
    for name, (generator, discriminator) in pairs.items():
        found = joint(size(generator), size(discriminator))
        sums = (found.total, found.without_heads, found.untied)
        rows.append((f"`{name}`", *(f"{n:,}" for n in sums)))
    columns = ("pair", "trained together", "without heads", "if nothing were shared")
    return f"**Generator and discriminator together**\n\n{table(columns, rows, 'lrrr')}"


def overview() -> str:
    """The generated part of the overview."""
    columns = ("family", "paper", "stands for it", "base parameters", "positions", "objectives")
    rows = []
    for family in FAMILIES.values():
        name = base_of(family)
        config = size(name)
        paper = re.search(r"\d{4}\.\d{5}", family.paper)
        assert paper is not None, f"{family.name} names no arXiv paper"
        rows.append(
            (
                f"[{family.title}]({family.name}.md)",
                f"arXiv {paper.group()}",
                f"`{name}`",
                f"{count(config).base:,}",
                _positions(config),
                show("objectives", list(config.objectives)),
            )
        )
    return table(columns, rows, "lllrll")


def _positions(config: Config) -> str:
    """How attention knows where a token stands."""
    kind = config.attention.terms.kind
    if config.attention.rotary is not None:
        return "turned queries and keys"
    return "table at the input" if kind == "plain" else f"score terms: {show('', kind)}"


def show(path: str, value: Any) -> str:
    """A config's value for people."""
    if value is None:
        return "-"
    if path == "schedule":
        blocks = len(set(value))
        return f"block 0, {len(value)} times" if blocks == 1 else f"blocks 0 to {blocks - 1}"
    if isinstance(value, list):
        return ", ".join(show("", item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("_", " ")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> str:
    """A Markdown table; ``sides`` has ``l`` or ``r`` for each column."""
    rules = ["---:" if side == "r" else "---" for side in sides]
    return "\n".join("| " + " | ".join(row) + " |" for row in (columns, rules, *rows))


def wrap(text: str, width: int = 138) -> str:
    """Lines of at most ``width`` characters."""
    lines = [""]
    for word in text.split():
        fits = len(lines[-1]) + len(word) < width
        lines[-1:] = [f"{lines[-1]} {word}".strip()] if fits else [lines[-1], word]
    return "\n".join(lines)


def insert(document: str, part: str) -> str:
    """The document with the text between its markers replaced."""
    found = re.search(f"{re.escape(BEGIN)}.*?{re.escape(END)}", document, re.DOTALL)
    if found is None:
        raise ValueError(f"The page lacks the markers {BEGIN} and {END}")
    return f"{document[: found.start()]}{BEGIN}\n{part}\n{END}{document[found.end() :]}"


def parts() -> dict[str, str]:
    """The generated part of every page, by the page's file name."""
    pages = {f"{name}.md": page(family) for name, family in FAMILIES.items()}
    pages[f"{CAUSAL}.md"] = difference_table("left to right", LEFT_TO_RIGHT)
    return {f"{OVERVIEW}.md": overview(), **pages}


def main() -> None:
    """Rewrite the pages that are out of date."""
    for name, part in parts().items():
        file = FOLDER / name
        old = file.read_text("utf-8")
        new = insert(old, part)
        if new != old:
            file.write_text(new, "utf-8")
            sys.stdout.write(f"{name} rewritten\n")


if __name__ == "__main__":
    main()
