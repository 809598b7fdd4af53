"""The text of the set: repeated documents of the project and a sample of a folder."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core_models.checkpoints.aside import alone
from core_models.data import documents
from core_models.errors import InputError
from core_models.tasks.words import is_chinese
from core_models.training import durable
from core_models.training.settings import ASSETS
from zoo.recipe import Repeated, Sampled, TextRecipe

TRAIN, HELD_OUT, OPEN = "train.txt", "held-out.txt", "held-out-open.txt"
_FACTS = "text.json"
_IDEOGRAPH = re.compile("[\u4e00-\u9fff]")
_LOOK = 10
"""Sentences that tell a document's language."""
_LONG = 60
"""Characters from which a sentence in two documents means that one holds a part of the other."""


@dataclass(frozen=True)
class Text:
    """Two files, one sentence a line and a blank line between documents."""

    train: Path
    held_out: Path
    open: Path
    """The held-out documents of the sampled sources alone; empty where there are none."""
    facts: list[dict[str, int | str]]
    """For each part of the recipe: pattern, documents, words, held-out documents, times."""


def of(recipes: Mapping[str, TextRecipe], name: str, folder: Path, data: Path | None) -> Text:
    """A text in ``folder/NAME``, and before it the one from which it keeps apart.

    One that holds nothing out itself is asked about what the other one holds out.

    Raises:
        InputError: as in :func:`build`.
    """
    recipe = recipes[name]
    other = None
    if recipe.apart_from is not None:
        other = of(recipes, recipe.apart_from, folder, data)
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder):  # whoever builds another model beside this one wants the same text
        made = build(folder / name, recipe, data, None if other is None else other.held_out)
    if other is None:
        return made
    if any(part.held_out for part in (*recipe.repeated, *recipe.sampled)):
        return made
    return replace(made, held_out=other.held_out, open=other.open)


def build(folder: Path, recipe: TextRecipe, data: Path | None, without: Path | None = None) -> Text:
    """Write the files unless they are there.

    Args:
        folder: Where they go.
        recipe: What they hold.
        data: Folder that ``sampled`` patterns are looked up in; None where there are none.
        without: Documents that share a long sentence with this file are left out.

    Raises:
        InputError: a pattern matches nothing, or the folder holds another recipe's text.
    """
    wanted: dict[str, Any] = {"recipe": recipe.model_dump(mode="json")}
    if without is not None:  # its documents may be others than when this text was written
        wanted["without"] = hashlib.sha256(without.read_bytes()).hexdigest()
    if folder.exists():
        there = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        if {name: there.get(name) for name in wanted} != wanted:
            durable.remove_folder(folder)
    durable.write_folder(folder, lambda new: _write(new, recipe, data, without, wanted))
    facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))["parts"]
    return Text(folder / TRAIN, folder / HELD_OUT, folder / OPEN, facts)


def _write(
    folder: Path,
    recipe: TextRecipe,
    data: Path | None,
    without: Path | None,
    wanted: Mapping[str, Any],
) -> None:
    apart = _Apart(without)
    train: list[list[str]] = []
    held: list[list[str]] = []
    sampled: list[list[str]] = []
    facts = []
    parts: list[Repeated | Sampled] = [*recipe.repeated, *recipe.sampled]
    for part in parts:
        texts, times = _read(part, data, apart)
        chosen: Sequence[int] = range(len(texts))
        kept: Sequence[int] = ()
        if part.held_out:
            chosen, kept = documents.split_texts(texts, part.held_out, recipe.seed)
        train += [texts[i] for i in chosen] * times
        held += [texts[i] for i in kept]
        if isinstance(part, Sampled):
            sampled += [texts[i] for i in kept]
        facts.append(
            {
                "pattern": part.pattern,
                "documents": len(chosen),
                "words": _words(texts[i] for i in chosen),
                "held_out_documents": len(kept),
                "held_out_words": _words(texts[i] for i in kept),
                "times": times,
            }
        )
    _save(folder / TRAIN, _shuffled(train, recipe.seed))
    _save(folder / HELD_OUT, held)
    _save(folder / OPEN, sampled)
    text = json.dumps({**wanted, "parts": facts}, indent=2)
    (folder / _FACTS).write_text(text + "\n", encoding="utf-8")


class _Apart:
    """Documents that are held out elsewhere."""

    def __init__(self, file: Path | None) -> None:
        texts = [] if file is None else list(documents.read([file]))
        self._whole = {tuple(text) for text in texts}
        self._long = {sentence for text in texts for sentence in text if len(sentence) >= _LONG}

    def allows(self, text: list[str]) -> bool:
        """Whether it is none of them and shares no long sentence with one."""
        return tuple(text) not in self._whole and self._long.isdisjoint(text)


def _read(
    part: Repeated | Sampled, data: Path | None, apart: _Apart
) -> tuple[list[list[str]], int]:
    """Documents of a part, and how often they are taken."""
    if isinstance(part, Repeated):
        texts = documents.read(_files(ASSETS, part.pattern))
        return [text for text in texts if apart.allows(text)], part.times
    if data is None:
        raise InputError(f"The recipe samples {part.pattern}; give the folder with --data.")
    return list(_sample(data, part, apart)), 1


def _sample(folder: Path, part: Sampled, apart: _Apart) -> Iterator[list[str]]:
    """Whole documents up to a number of words, the same share of each file."""
    paths = _files(folder, part.pattern)
    for path in paths:
        left = part.words // len(paths)
        for document in documents.read([path], paragraphs=True):
            if not apart.allows(document):
                continue
            left -= _words([document])
            if left < 0:
                break
            yield document


def _files(root: Path, pattern: str) -> list[Path]:
    found = sorted(root.glob(pattern))
    if not found:
        raise InputError(f"Nothing matches {pattern} in {root}.")
    return found


def _words(texts: Iterable[Sequence[str]]) -> int:
    """Blank-separated words; of a Chinese text characters, as it has no blanks."""
    return sum(
        len(_IDEOGRAPH.findall(sentence)) if chinese else len(sentence.split())
        for text in texts
        for chinese in [is_chinese(text[:_LOOK])]
        for sentence in text
    )


def _shuffled(texts: list[list[str]], seed: int) -> list[list[str]]:
    """In an order that depends on number and seed only, on every version of Python."""
    keys = [hashlib.sha256(f"{seed},{i}".encode()).digest() for i in range(len(texts))]
    return [texts[i] for i in sorted(range(len(texts)), key=keys.__getitem__)]


def _save(path: Path, texts: list[list[str]]) -> None:
    blocks = ("\n".join(text) + "\n" for text in texts)
    path.write_text("\n".join(blocks), encoding="utf-8")
