"""Text to pieces and back: one wrapper for WordPiece, byte-level BPE and unigram vocabularies.

The work is done by the ``tokenizers`` library. Truncation, templates and word groups are done
here, because the library keeps truncation and padding as state of the shared object, which two
threads would overwrite for each other. A `Tokenizer` is never changed after construction and may
be used by any number of threads.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import tokenizers
from numpy.typing import NDArray

from core_models.errors import InputError, listed
from core_models.tokenizer import checks, files, reading, training
from core_models.tokenizer.encoding import (
    MARKERS,
    Encoding,
    PlainPart,
    begins_word,
    blanks_for,
    check_text,
    check_unicode,
    longest_first,
    lowercases,
    shown,
    spell_masks,
    with_marks,
)
from core_models.tokenizer.words import (
    begins_chinese,
    blind_to_specials,
    is_mark,
    join_chinese,
    part_chinese,
    word_starts,
)
from core_models.tokenizer.writing import hash_of, write_folder

_KINDS = {
    "WordPiece": "wordpiece",
    "BPE": "byte_bpe",
    "Unigram": "unigram",
    "WordLevel": "word_level",
}


class Tokenizer:
    """A vocabulary with its rules. Immutable, safe for threads."""

    def __init__(
        self, backend: tokenizers.Tokenizer, settings: Mapping[str, Any] | None = None
    ) -> None:
        """Wrap a backend of the ``tokenizers`` library.

        Args:
            backend: Taken over; its truncation and padding are switched off.
            settings: The content of tokenizer_config.json; None = worked out from the pieces.

        Raises:
            InputError: The kind is not supported, or a special piece is missing.
        """
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        vocabulary = checks.vocabulary_of(backend)
        self._definition = backend.to_str()
        parsed = json.loads(self._definition)
        try:
            self.kind: str = _KINDS[parsed["model"]["type"]]
        except KeyError:
            raise InputError(
                f"Tokenizers of kind {parsed['model'].get('type')!r} are not supported; "
                f"allowed: {', '.join(_KINDS)}. For work with ids leave it out: "
                "cm.load(folder, tokenizer=False)."
            ) from None
        if self.kind == "byte_bpe" and not checks.is_byte_level(parsed):
            self.kind = "bpe"
        checks.check_rules(parsed)
        self._pieces = [""] * (max(vocabulary.values()) + 1)
        for piece, index in vocabulary.items():
            self._pieces[index] = piece
        given = dict(settings or {})
        checks.check_side(given)
        self.specials = files.specials_from(given, vocabulary)
        self.template = files.template_from(
            parsed.get("post_processor"),
            self.specials,
            pad_segment=checks.pad_segment(given),
        )
        checks.check_template(self.template, vocabulary)
        self.pad_id, self.unknown_id, self.cls_id, self.sep_id, self.mask_id = (
            vocabulary[name] for name in self.specials.names()
        )
        self._ids = vocabulary
        slots = {slot.content for slot in (*self.template.single, *self.template.pair)}
        around = {vocabulary[name] for name in slots - {files.FIRST, files.SECOND}}
        around -= {self.mask_id, self.unknown_id}
        self.special_ids = frozenset({self.pad_id, self.cls_id, self.sep_id} | around)
        self._marker = MARKERS[self.kind]
        # Unigram and Gemma's BPE tie a comma to the word before it; the other kinds never do.
        tied = self.kind in ("unigram", "bpe")
        self._marks = np.array([tied and is_mark(piece) for piece in self._pieces])
        # Gemma's rules make signs of blanks first, so that nothing parts the words of a text.
        gemma = self.kind == "bpe"
        self._begins = np.array(
            [gemma and begins_word(piece, self._marker) for piece in self._pieces]
        )
        self._blanks = blanks_for(parsed["model"], vocabulary)
        self._settings = given or files.settings_for(
            backend, self.specials, self.template, lowercase=lowercases(parsed["normalizer"])
        )

    # --- making and keeping -----------------------------------------------------------------

    @classmethod
    def from_folder(cls, path: str | Path) -> Self:
        """Read a folder in transformers format.

        Raises:
            InputError: The folder is missing, or holds no readable tokenizer.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder; give the one that holds tokenizer.json.")
        return cls(*reading.read_folder(folder))

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a single tokenizer.json.

        Raises:
            InputError: The file is missing or damaged.
        """
        if not Path(path).is_file():
            raise InputError(f"{path} is not a file; give the path of a tokenizer.json.")
        return cls(reading.read_backend(Path(path)))

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        vocabulary: int,
        kind: str = "wordpiece",
        lowercase: bool = True,
        template: files.Template | None = None,
    ) -> Self:
        """Learn a vocabulary from texts.

        The same texts give the same tokenizer.

        Args:
            texts: Sentences or paragraphs.
            vocabulary: Number of pieces wanted, special pieces included. Small corpora give fewer;
                "wordpiece" gives more where single characters alone are more.
            kind: "wordpiece" (BERT), "byte_bpe" (RoBERTa) or "unigram" (ALBERT, XLNet).
            lowercase: Lower-case the text (byte_bpe never does).
            template: Where special pieces go; None = the usual place for the kind.

        Raises:
            InputError: The kind is unknown, ``vocabulary`` is too small for it or for the
                characters of the texts, or the texts are empty.
        """
        backend, settings = training.train(
            texts, vocabulary=vocabulary, kind=kind, lowercase=lowercase, template=template
        )
        return cls(backend, settings)

    def save(self, folder: str | Path) -> None:
        """Write the files that transformers' AutoTokenizer reads.

        Args:
            folder: Made if missing. Gets tokenizer.json, tokenizer_config.json,
                special_tokens_map.json and, for WordPiece, vocab.txt.
        """
        names = files.settings_for(self._backend, self.specials, self.template, lowercase=False)
        tokens = {k: v for k, v in names.items() if k.endswith("_token")}
        pieces = self._pieces if self.kind == "wordpiece" else None
        write_folder(Path(folder), self._definition, self._settings, tokens, pieces)

    @property
    def fingerprint(self) -> str:
        """Short hash of the whole definition: equal for equal tokenizers, on every machine."""
        return hash_of(self._definition)

    @property
    def vocabulary(self) -> int:
        """Number of pieces V."""
        return len(self._pieces)

    # --- text to pieces ---------------------------------------------------------------------

    def encode(self, text: str, pair: str | None = None, *, max_length: int = 512) -> Encoding:
        """Encode one text, or two, with special pieces.

        Args:
            text: At most 20,000 characters, not blank. A gap may be written [MASK] or <mask>,
                whatever the vocabulary calls it. Line breaks and tabs are blanks to a unigram
                vocabulary that has no piece for them.
            pair: The second text, same limits.
            max_length: Most pieces to keep, special pieces included. Longer inputs lose pieces
                at the end of the longer text and are marked as truncated.

        Raises:
            InputError: A text is blank, too long or not valid Unicode, or ``max_length`` leaves
                no room for a piece.
        """
        for part in (text,) if pair is None else (text, pair):
            check_text(part)
        extra = self.template.extra(pair=pair is not None)
        if not isinstance(max_length, Integral):
            raise InputError(f"max_length is {repr(max_length)[:40]}; it must be a whole number.")
        room = max_length - extra
        if room < (1 if pair is None else 2):
            raise InputError(
                f"max_length {max_length} leaves no room for text beside {extra} special pieces."
            )
        texts = {files.FIRST: text} | ({} if pair is None else {files.SECOND: pair})
        own = self._pieces[self.mask_id]
        parts = {}
        for name, part in texts.items():
            spelled, origins = spell_masks(part, own)
            with checks.readable():
                found = self._backend.encode(self._spaced(spelled), add_special_tokens=False)
            if not found.ids:
                raise InputError(
                    "The text holds only characters that cannot be shown; write a word."
                )
            offsets = [(origins[start], origins[end]) for start, end in found.offsets]
            parts[name] = PlainPart(found.ids, found.word_ids, offsets)
        keep = longest_first([len(part.ids) for part in parts.values()], room)
        return self._assemble(parts, dict(zip(parts, keep, strict=True)), text, pair)

    def encode_batch(
        self, inputs: Sequence[str | tuple[str, str]], *, max_length: int = 512
    ) -> list[Encoding]:
        """Encode several inputs, each a text or a (first, second) tuple; see `encode`."""
        pairs: list[Any] = [
            item if isinstance(item, tuple | list) and len(item) == 2 else (item, None)
            for item in listed(inputs, "inputs")
        ]
        return [self.encode(first, second, max_length=max_length) for first, second in pairs]

    def encode_plain(
        self, texts: Sequence[str], segment: Callable[[str], frozenset[int]] | None = None
    ) -> list[tuple[NDArray[np.int32], NDArray[np.bool_]]]:
        """Encode corpus sentences without special pieces, without limits, on every core.

        What looks like a special piece in a sentence ("[MASK]") is text like any other.

        Args:
            texts: The sentences.
            segment: Gives the characters at which words begin; None = Chinese ones all do.

        Returns:
            Per text its ids [n] and, for each piece, whether it starts a word [n].

        Raises:
            InputError: The texts are no list, or one is no string or not valid Unicode.
        """
        texts = [check_unicode(text) for text in listed(texts, "texts")]
        result = []
        with checks.readable():
            encoded = self._blind.encode_batch(
                [self._spaced(text) for text in texts], add_special_tokens=False
            )
        for text, found in zip(texts, encoded, strict=True):
            ids = np.asarray(found.ids, dtype=np.int32)
            starts = self._starts(PlainPart(found.ids, found.word_ids, found.offsets), text)
            if segment is not None:
                join_chinese(starts, text, found.offsets, segment(text))
            result.append((ids, starts))
        return result

    def _spaced(self, text: str) -> str:
        """The text with blanks for what is one, character by character."""
        return text.translate(self._blanks) if self._blanks else text

    @cached_property
    def _blind(self) -> tokenizers.Tokenizer:
        return blind_to_specials(self._definition)

    def _starts(self, part: PlainPart, text: str) -> NDArray[np.bool_]:
        """Whether each piece of a text starts a word [n]; marks are words of their own."""
        starts = word_starts(part.word_ids, self._marks[part.ids])
        starts |= self._begins[part.ids]
        if self.kind != "wordpiece":  # which parts Chinese characters itself, if it is to
            part_chinese(starts, text, part.offsets)
        return starts

    def pieces_of(self, word: str) -> list[int]:
        """Ids of a word as it stands inside a sentence, without special pieces.

        A blank stands before it, unless it begins with a Chinese character.

        Raises:
            InputError: It is no string, or not valid Unicode.
        """
        check_unicode(word)
        word = word.strip()
        chinese = begins_chinese(word)
        if self.kind == "byte_bpe":
            return self._bare(word if chinese else f" {word}")
        if self.kind == "unigram" and chinese:
            # What follows a mask piece directly has no blank of its own.
            mask, *found = self._bare(self._pieces[self.mask_id] + word)
            return found if mask == self.mask_id else self._bare(word)
        found = self._bare(word)
        lone = self.kind == "bpe" and bool(found) and not self._begins[found[0]]
        if lone and word[:1].isalnum() and not chinese:
            return self._bare(f" {word}")  # Gemma's rules put no blank before a text
        return found

    def _bare(self, text: str) -> list[int]:
        """Ids of a text as it stands, without special pieces."""
        with checks.readable():
            return list(self._backend.encode(text, add_special_tokens=False).ids)

    def _assemble(
        self,
        parts: Mapping[str, PlainPart],
        keep: Mapping[str, int],
        text: str,
        pair: str | None,
    ) -> Encoding:
        ids: list[int] = []
        segment_ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        words: list[int | None] = []
        group = -1
        for slot in self.template.of(pair=pair is not None):
            if slot.content not in parts:
                ids.append(self._ids[slot.content])
                segment_ids.append(slot.segment)
                offsets.append((0, 0))
                words.append(None)
                continue
            part, count = parts[slot.content], keep[slot.content]
            own = text if slot.content == files.FIRST else pair or ""
            ids += part.ids[:count]
            offsets += with_marks(own, part.offsets)[:count]
            segment_ids += [slot.segment] * count
            begins = self._starts(part, own)
            for index, begin in zip(part.ids[:count], begins[:count].tolist(), strict=True):
                if index in self.special_ids:
                    words.append(None)
                    continue
                group += begin
                words.append(group)
        return Encoding(
            ids=ids,
            segment_ids=segment_ids,
            pieces=[self._pieces[i] for i in ids],
            offsets=offsets,
            words=words,
            special=[i in self.special_ids for i in ids],
            text=text,
            pair=pair,
            truncated=any(keep[name] < len(part.ids) for name, part in parts.items()),
        )

    # --- pieces to text ---------------------------------------------------------------------

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some ids, special pieces and [MASK] left out.

        Raises:
            InputError: The ids are no list, or one is outside 0..V-1.
        """
        found = listed(ids, "ids")
        last = len(self._pieces) - 1
        for index in found:
            if not hasattr(index, "__index__") or not 0 <= index <= last:
                raise InputError(f"Piece id {repr(index)[:40]} is outside 0..{last}.")
        return str(self._backend.decode(list(map(int, found)), skip_special_tokens=True))

    def piece(self, index: int) -> str:
        """The raw piece of an id ("##ing").

        Raises:
            InputError: The id is outside 0..V-1.
        """
        if not hasattr(index, "__index__") or index not in range(len(self._pieces)):
            shown = repr(index)[:40]
            raise InputError(f"Piece id {shown} is outside 0..{len(self._pieces) - 1}.")
        return self._pieces[index]

    def id(self, piece: str) -> int | None:
        """The id of a raw piece, None where the vocabulary lacks it."""
        return self._ids.get(piece)

    def display(self, index: int) -> str:
        """A piece as people read it ("ing"): no marks of the vocabulary's own.

        Of a piece that is nothing but space there would be nothing to see, so it has signs ("␣").
        """
        piece = self.piece(index)
        if index in self.special_ids or index in {self.mask_id, self.unknown_id}:
            return piece
        return shown(piece, self._marker)

    def starts_word(self, index: int) -> bool:
        """Whether a piece, seen alone, starts a word; special pieces do.

        Where an `Encoding` is at hand its ``words`` are exact; this reads the piece alone, and
        byte-level and unigram vocabularies do not mark the first word of a text. To them, too, a
        word begins at every Chinese character.
        """
        piece = self.piece(index)
        if index in self.special_ids or index in {self.mask_id, self.unknown_id}:
            return True
        if begins_word(piece, self._marker):
            return True
        return not self._marker.continuation and begins_chinese(self.display(index))
