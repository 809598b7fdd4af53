"""What a tokenizer's files may say."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers

from core_models import plain_files
from core_models.config.check import MOST_PIECES
from core_models.errors import InputError
from core_models.tokenizer.files import CONFIG_FILE, FIRST, SECOND, TOKENIZER_FILE, Template

MOST_SEGMENTS = 64
MOST_BYTES = 100_000_000
"""Largest file of a vocabulary; the largest released ones have a third of it."""
MOST_TEXTS = 1_700_000
"""Strings in a tokenizer.json: Gemma's has 262,000 pieces and twice 515,000 of merges."""
MOST_LETTERS = 1 << 16
"""Characters of a piece in a list."""
MOST_SLOTS = 32
"""Special pieces that a template may put around texts, and these."""
_FILES = (
    *("vocab*", "merges.txt", "*.model", "tokenizer*.json"),
    *("special_tokens_map.json", "added_tokens.json"),
)
MOST_GROWTH = 8
"""Characters that a normalizer may put in place of one."""
_NESTED = re.compile(r"\([^()]*[^\\()][+*][^()]*\)[+*{]")


def check_files(folder: Path) -> None:
    """InputError for a file of a vocabulary that is too large to be one, or no file."""
    for pattern in _FILES:
        for path in folder.glob(pattern):
            if not path.is_dir():
                plain_files.check(path, MOST_BYTES)


def check_amount(path: Path) -> None:
    """InputError for a tokenizer.json with more texts than the largest have.

    What the library makes of a text takes a hundred times as much room as its quotes.
    """
    content = path.read_bytes()
    if (slots := content.count(b'"SpecialToken"')) > 4 * MOST_SLOTS:
        raise _too_many_parts(slots)
    if (count := content.count(b'"') // 2) > MOST_TEXTS:
        raise InputError(
            f"{path.name} holds some {count:,} pieces and merges; allowed are {MOST_TEXTS:,}."
        )


def check_rules(parsed: Mapping[str, Any]) -> None:
    """Refuse rules that could make a text endless or reading it so.

    Args:
        parsed: the content of tokenizer.json.

    Raises:
        InputError: replacements that multiply, or a repeated group with a repetition inside.
    """
    growth = 1
    for rule in _rules([parsed.get("normalizer"), parsed.get("pre_tokenizer")]):
        pattern = rule.get("pattern")
        if isinstance(pattern, Mapping) and _NESTED.search(str(pattern.get("Regex", ""))):
            raise InputError(
                f"{TOKENIZER_FILE}: the pattern {str(pattern['Regex'])[:60]!r} repeats a "
                "repetition, which can take for ever on a short text; write it without."
            )
        if rule.get("type") == "Replace":
            growth *= max(1, len(str(rule.get("content", ""))))
        if rule.get("type") == "Prepend":
            growth *= max(1, len(str(rule.get("prepend", ""))))
    if growth > MOST_GROWTH:
        raise InputError(
            f"{TOKENIZER_FILE}: its replacements make up to {growth} characters of one; allowed is "
            f"{MOST_GROWTH}."
        )


def _rules(found: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for entry in found:
        if isinstance(entry, list):
            yield from _rules(entry)
        elif isinstance(entry, Mapping):
            if "type" in entry:
                yield entry
            yield from _rules(v for v in entry.values() if isinstance(v, list))


def is_byte_level(parsed: Mapping[str, Any]) -> bool:
    """Whether pieces are written in signs for bytes, as in GPT-2's vocabulary."""
    parts = _rules([parsed.get("pre_tokenizer"), parsed.get("decoder")])
    return any(rule["type"] == "ByteLevel" for rule in parts)


def vocabulary_of(backend: tokenizers.Tokenizer) -> dict[str, int]:
    """Piece to id, added pieces included.

    Asked for before anything else: the library writes a file with a far id for half a minute.

    Raises:
        InputError: There are no pieces, or an id is beyond what a model's table can have.
    """
    if not backend.get_vocab(with_added_tokens=False):
        raise InputError(f"{TOKENIZER_FILE}: model.vocab is empty; it must list the pieces.")
    vocabulary = backend.get_vocab(with_added_tokens=True)
    piece = max(vocabulary, key=vocabulary.__getitem__)
    if vocabulary[piece] >= MOST_PIECES:
        raise InputError(
            f"{TOKENIZER_FILE}: the piece {piece!r} has the id {vocabulary[piece]}; allowed is 0 "
            f"to {MOST_PIECES - 1}, and less than the rows of the model's table."
        )
    return vocabulary


@contextlib.contextmanager
def readable(
    what: str = "The tokenizer fails at this text; one of its files is damaged",
) -> Iterator[None]:
    """InputError for whatever the library raises at a file, or at a text because of a file.

    It raises bare Exception, and where it panics, Python sees a BaseException.
    """
    try:
        yield
    except InputError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        raise InputError(f"{what}: {error}") from error


def _too_many_parts(count: int) -> InputError:
    return InputError(
        f"{TOKENIZER_FILE}: the post_processor puts {count:,} parts together; allowed are "
        f"{MOST_SLOTS}."
    )


def check_template(template: Template, vocabulary: Mapping[str, int]) -> None:
    """Refuse a template with a special piece that the vocabulary lacks, or with too many."""
    longest = max(len(template.single), len(template.pair))
    if longest > MOST_SLOTS:
        raise _too_many_parts(longest)
    for slot in (*template.single, *template.pair):
        if slot.content not in {FIRST, SECOND} and slot.content not in vocabulary:
            raise InputError(
                f"{TOKENIZER_FILE}: the post_processor adds the piece {slot.content!r}, which is "
                "not in the vocabulary; add it there."
            )


def check_side(settings: Mapping[str, Any]) -> None:
    """InputError where tokenizer_config.json names a side of the padding that is none."""
    side = settings.get("padding_side")
    if side is not None and side != "left" and side != "right":
        raise InputError(f"{CONFIG_FILE}: padding_side is {side!r}; expected left or right.")


def flag(settings: Mapping[str, Any], key: str) -> bool | None:
    """What tokenizer_config.json answers with yes or no; None = it does not say."""
    value = settings.get(key)
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{CONFIG_FILE}: {key} is {value!r}; expected true, false or null.")
    return value


def said(settings: Mapping[str, Any], key: str, otherwise: bool) -> bool:
    """The same, with an answer for where it does not say."""
    value = flag(settings, key)
    return otherwise if value is None else value


def pad_segment(settings: Mapping[str, Any]) -> int | None:
    """Segment id of padding, from tokenizer_config.json; None = it does not say."""
    if "pad_token_type_id" not in settings:
        return None
    value = settings["pad_token_type_id"]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_SEGMENTS:
        raise InputError(
            f"{CONFIG_FILE}: pad_token_type_id is {value!r}; expected a whole number from 0 to "
            f"{MOST_SEGMENTS - 1}."
        )
    return value
