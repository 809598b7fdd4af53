"""Examples on disk: built once, memory-mapped, turned into padded tensors in the training loop.

A store is a folder::

    metadata.json       sizes, settings, fingerprint of the tokenizer
    tokens.npy          piece ids of the whole corpus [T]
    starts.npy          whether each piece starts a word [T]
    sentences.npy, documents.npy     offsets, see `core_models.data.corpus.Corpus`
    examples-<split>.npy             places in tokens.npy [N, 5], see `pairs.Example`
    further-<split>.npy, further-offsets-<split>.npy    only where examples have further runs
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from core_models.data.corpus import Corpus
from core_models.data.layout import Layout, Places, TokenBatch
from core_models.data.pairs import Example
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer
from core_models.tokenizer.files import read_json

_FORMAT = 1
_ARRAYS = ("tokens", "starts", "sentences", "documents")


class TokenStore:
    """One split of a store folder. Reading is safe for threads and processes."""

    def __init__(self, folder: Path, split: str) -> None:
        """Open a folder that `build` wrote; use `open`."""
        self.folder = folder
        self.split = split
        self.metadata: dict[str, Any] = read_json(folder / "metadata.json")
        if self.metadata.get("format") != _FORMAT:
            raise InputError(
                f"{folder.name} has store format {self.metadata.get('format')}, not {_FORMAT}; "
                "delete the folder and build it again."
            )
        if split not in self.metadata["examples"]:
            known = ", ".join(self.metadata["examples"])
            raise InputError(f"No split {split!r} in {folder.name}; it has {known}.")
        arrays = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS]
        self.corpus = Corpus(*arrays)
        self.places = _load(folder, split)
        """All examples of the split."""
        self.layout = Layout.from_json(self.metadata["layout"])

    @classmethod
    def build(
        cls,
        folder: str | Path,
        corpus: Corpus,
        examples: Mapping[str, Iterable[Example]],
        tokenizer: Tokenizer,
        *,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a store beside its place and rename it.

        Args:
            folder: Must not exist yet, or hold a finished store with the same tokenizer and
                settings: then nothing is done.
            corpus: All pieces.
            examples: Split ("train", "held_out") to its examples, in the order of their numbers.
            tokenizer: Gives the template and the fingerprint.
            settings: What the examples were made with; kept in the metadata and compared.

        Raises:
            InputError: The folder holds another store, or a split has no example.
        """
        target = Path(folder)
        if target.exists():
            cls.check(target, tokenizer, settings)
            return
        aside = target.with_name(f".{target.name}.{os.getpid()}.part")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        try:
            layout = Layout.of(tokenizer)
            counts = {}
            longest = 0
            for split, items in examples.items():
                places = _places(items)
                if not len(places.rows):
                    raise InputError(f"No examples for split {split!r}: the text is too short.")
                _save(places, aside, split)
                counts[split] = len(places.rows)
                longest = max(longest, int(layout.lengths(places).max()))
            for name in _ARRAYS:
                np.save(aside / f"{name}.npy", getattr(corpus, name))
            metadata = _metadata(corpus, tokenizer, counts, longest, settings)
            (aside / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")
            try:
                aside.rename(target)
            except OSError:  # another process was faster
                cls.check(target, tokenizer, settings)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    @classmethod
    def open(
        cls, folder: str | Path, split: str = "train", *, tokenizer: Tokenizer | None = None
    ) -> Self:
        """Open one split.

        Args:
            folder: What `build` wrote.
            split: "train" or "held_out".
            tokenizer: If given, it must be the one the store was built with.

        Raises:
            InputError: The folder is no store, the split is missing, or the tokenizer differs.
        """
        target = Path(folder)
        if not (target / "metadata.json").is_file():
            raise InputError(f"{target} is no token store: it has no metadata.json.")
        store = cls(target, split)
        if tokenizer is not None and store.metadata["tokenizer"] != tokenizer.fingerprint:
            raise InputError(
                f"{target.name} was built with tokenizer {store.metadata['tokenizer']}, not "
                f"{tokenizer.fingerprint}; build it again in another folder."
            )
        return store

    @classmethod
    def check(cls, folder: Path, tokenizer: Tokenizer, settings: Mapping[str, Any] | None) -> None:
        """Refuse a folder that is not the store one would build.

        Raises:
            InputError: It is no store, or tokenizer or settings differ.
        """
        store = cls.open(folder, _any_split(folder), tokenizer=tokenizer)
        wanted = json.loads(json.dumps(dict(settings or {})))
        if store.metadata["settings"] != wanted:
            raise InputError(
                f"{folder.name} was built with {store.metadata['settings']}, not {wanted}; "
                "build it in another folder."
            )

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.places.rows)

    @property
    def longest(self) -> int:
        """Pieces of the longest example of any split, special ones included."""
        return int(self.metadata["longest"])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Pieces of each example [N], special ones included."""
        return self.layout.lengths(self.places)

    def example(self, index: int) -> Example:
        """The places of one example in ``corpus``."""
        found = self.places.take(np.array([index]))
        a, b, c, d, label = found.rows[0].tolist()
        return Example(a, b, c, d, label, tuple((i, j) for i, j in found.runs.tolist()))

    def batch(
        self, indices: Sequence[int] | NDArray[Any] | Tensor, length: int | None = None
    ) -> TokenBatch:
        """Padded tensors of some examples.

        Args:
            indices: Numbers of the examples, any order, repeats allowed.
            length: L; None = as long as the longest of these.

        Raises:
            InputError: An example is longer than ``length``.
        """
        return self.layout.pack(self.corpus, self.places.take(np.asarray(indices)), length)


def _places(examples: Iterable[Example]) -> Places:
    rows: list[tuple[int, ...]] = []
    runs: list[tuple[int, int]] = []
    offsets = [0]
    for example in examples:
        rows.append(example[:5])
        runs += example.further
        offsets.append(len(runs))
    return Places(
        np.array(rows, dtype=np.int64).reshape(-1, 5),
        np.array(offsets, dtype=np.int64),
        np.array(runs, dtype=np.int64).reshape(-1, 2),
    )


def _save(places: Places, folder: Path, split: str) -> None:
    np.save(folder / f"examples-{split}.npy", places.rows)
    if len(places.runs):
        np.save(folder / f"further-offsets-{split}.npy", places.offsets)
        np.save(folder / f"further-{split}.npy", places.runs)


def _load(folder: Path, split: str) -> Places:
    rows = np.load(folder / f"examples-{split}.npy", mmap_mode="r")
    path = folder / f"further-{split}.npy"
    if not path.exists():
        return Places(rows, np.zeros(1, dtype=np.int64), np.zeros((0, 2), dtype=np.int64))
    offsets = np.load(folder / f"further-offsets-{split}.npy", mmap_mode="r")
    return Places(rows, offsets, np.load(path, mmap_mode="r"))


def _any_split(folder: Path) -> str:
    path = folder / "metadata.json"
    if not path.is_file():
        raise InputError(f"{folder} exists and is no token store; choose another folder.")
    return next(iter(read_json(path).get("examples", {})), "train")


def _metadata(
    corpus: Corpus,
    tokenizer: Tokenizer,
    counts: Mapping[str, int],
    longest: int,
    settings: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "tokenizer": tokenizer.fingerprint,
        "vocabulary": tokenizer.vocabulary,
        "documents": corpus.num_documents,
        "sentences": corpus.num_sentences,
        "tokens": len(corpus.tokens),
        "examples": dict(counts),
        "longest": longest,
        "layout": Layout.of(tokenizer).to_json(),
        "settings": dict(settings or {}),
    }
