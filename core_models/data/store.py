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
import secrets
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
from core_models.tokenizer.reading import read_json

_FORMAT = 1
_ARRAYS = ("tokens", "starts", "sentences", "documents")
_KEYS = (
    "tokenizer",
    "documents",
    "sentences",
    "tokens",
    "examples",
    "longest",
    "layout",
    "settings",
)


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
        missing = [name for name in _KEYS if name not in self.metadata]
        if missing:
            raise _damaged(folder, f"metadata.json lacks {', '.join(missing)}")
        examples = self.metadata["examples"]
        if not isinstance(examples, dict):
            raise _damaged(folder, f"metadata.json counts examples as {examples!r}")
        if split not in examples:
            known = ", ".join(examples)
            raise InputError(f"No split {split!r} in {folder.name}; it has {known}.")
        try:
            self.corpus = Corpus(*(_array(folder, name) for name in _ARRAYS))
            self.places = _load(folder, split)
            """All examples of the split."""
            self.layout = Layout.from_json(self.metadata["layout"])
            self._check_sizes()
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise _damaged(folder, str(error)) from error

    def _check_sizes(self) -> None:
        """Refuse arrays that are not those the store was written with."""
        corpus, places, told = self.corpus, self.places, self.metadata
        expected = {
            "tokens.npy": (len(corpus.tokens), told["tokens"]),
            "starts.npy": (len(corpus.starts), told["tokens"]),
            "sentences.npy": (len(corpus.sentences), told["sentences"] + 1),
            "documents.npy": (len(corpus.documents), told["documents"] + 1),
            f"examples-{self.split}.npy": (len(places.rows), told["examples"][self.split]),
        }
        further = told.get("further")  # stores built before it was counted lack it
        if further is not None:
            expected[f"further-{self.split}.npy"] = (len(places.runs), further[self.split])
        if len(places.runs):
            name = f"further-offsets-{self.split}.npy"
            expected[name] = (len(places.offsets), len(places.rows) + 1)
            last = int(places.offsets[-1])
            expected[f"the end of {name}"] = (last, len(places.runs))
        for name, (found, wanted) in expected.items():
            if found != wanted:
                raise ValueError(f"{name} holds {found} instead of {wanted}")

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
        target.parent.mkdir(parents=True, exist_ok=True)
        # A name of its own: threads of one process may build the same store, too.
        aside = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
        aside.mkdir()
        try:
            layout = Layout.of(tokenizer)
            counts: dict[str, int] = {}
            further: dict[str, int] = {}
            longest = 0
            for split, items in examples.items():
                places = _places(items)
                if not len(places.rows):
                    raise InputError(
                        f"No examples for split {split!r}: no part of the text makes one of the "
                        "wanted kind. Give more text, or documents of more sentences, or raise "
                        "data.max_length."
                    )
                _save(places, aside, split)
                counts[split], further[split] = len(places.rows), len(places.runs)
                longest = max(longest, int(layout.lengths(places).max()))
            for name in _ARRAYS:
                _write(aside / f"{name}.npy", getattr(corpus, name))
            metadata = _metadata(corpus, tokenizer, counts, longest, settings)
            metadata["further"] = further
            (aside / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")
            try:
                aside.rename(target)
            except OSError:
                if not target.exists():
                    raise  # a disk that fails, and not another process that was faster
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
            InputError: An example is longer than ``length``, there is no such example, or none is
                asked for.
        """
        chosen = np.asarray(indices)
        if not chosen.size:
            raise InputError("A batch needs one example at least.")
        if chosen.min() < 0 or chosen.max() >= len(self):
            raise InputError(
                f"The examples {chosen.min()} to {chosen.max()} were asked for; this split has 0 "
                f"to {len(self) - 1}."
            )
        return self.layout.pack(self.corpus, self.places.take(chosen), length)


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


def _write(path: Path, array: np.ndarray) -> None:
    """As ``np.save``, which tells of a full disk in words of its own and not as the system does."""
    plain = np.ascontiguousarray(array)
    with path.open("wb") as file:
        header = np.lib.format.header_data_from_array_1_0(plain)
        np.lib.format.write_array_header_1_0(file, header)
        file.write(plain.data)


def _save(places: Places, folder: Path, split: str) -> None:
    _write(folder / f"examples-{split}.npy", places.rows)
    if len(places.runs):
        _write(folder / f"further-offsets-{split}.npy", places.offsets)
        _write(folder / f"further-{split}.npy", places.runs)


def _load(folder: Path, split: str) -> Places:
    rows = _array(folder, f"examples-{split}")
    names = f"further-offsets-{split}", f"further-{split}"
    if not any((folder / f"{name}.npy").exists() for name in names):
        return Places(rows, np.zeros(1, dtype=np.int64), np.zeros((0, 2), dtype=np.int64))
    return Places(rows, *(_array(folder, name) for name in names))


def _array(folder: Path, name: str) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r")
    except Exception as error:  # numpy reads the header as Python, which fails in many ways
        raise ValueError(f"{name}.npy is cut off or no array ({error})") from error
    return found


def _damaged(folder: Path, why: str) -> InputError:
    return InputError(
        f"The token store {folder.name} is damaged: {why}; delete the folder and build it again."
    )


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
