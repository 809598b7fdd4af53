"""Tokenizer folders: which files there are, and what reads them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from core_models import plain_files
from core_models.config.check import MOST_PIECES
from core_models.errors import InputError, not_json
from core_models.tokenizer import added, checks, sentence_piece
from core_models.tokenizer.files import (
    ANGLED,
    CONFIG_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    Template,
    add_specials,
    specials_from,
    wordpiece,
)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        InputError: The file is no JSON object.
    """
    try:
        value = json.loads(plain_files.read(path))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # ValueError: also numbers beyond reason
        raise InputError(f"{path.name} is not readable as JSON: {not_json(error)}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path.name} holds a {type(value).__name__}, not a JSON object.")
    return value


VOCABULARIES = (TOKENIZER_FILE, VOCABULARY_FILE, CONFIG_FILE, "vocab.json", "*.model")
"""Names of files of which a folder with a tokenizer has one at least."""

_IN_PYTHON = {"word_tokenizer_type", "subword_tokenizer_type", "auto_map"}
_CLASSES_IN_PYTHON = ("BertJapaneseTokenizer", "HerbertTokenizer", "HerbertTokenizerFast")
"""Their files look like BERT's and RoBERTa's, and would be read as those."""


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder holds a vocabulary of any kind."""
    return any(next(folder.glob(name), None) is not None for name in VOCABULARIES)


def read_settings(folder: Path) -> dict[str, Any]:
    """What tokenizer_config.json and special_tokens_map.json say."""
    settings: dict[str, Any] = {}
    for name in ("special_tokens_map.json", CONFIG_FILE):
        if (folder / name).is_file():
            settings |= read_json(folder / name)
    return settings


def read_folder(folder: Path) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """Backend and settings of a folder in transformers format.

    Args:
        folder: Holds tokenizer.json, or vocab.txt (WordPiece), or vocab.json and merges.txt
            (byte-level BPE), or spm.model or spiece.model (SentencePiece's unigram); with or
            without tokenizer_config.json.

    Raises:
        InputError: None of these files is there, or one is damaged.
    """
    checks.check_files(folder)
    settings = read_settings(folder)
    if (folder / TOKENIZER_FILE).is_file():
        backend = read_backend(folder / TOKENIZER_FILE)
        _follow(backend, settings)
        added.declare_named(backend, settings)
        return backend, settings
    if settings.keys() & _IN_PYTHON or settings.get("tokenizer_class") in _CLASSES_IN_PYTHON:
        raise InputError(
            f"The tokenizer in {folder.name} cuts words by a program in Python, which is not run "
            "here; save it as tokenizer.json, or load the model without it: tokenizer=False."
        )
    backend, made = _from_lists(folder, settings)
    listed = folder / added.LIST_FILE
    added.declare(backend, settings, read_json(listed) if listed.is_file() else {})
    added.declare_named(backend, settings)
    return backend, made


def _from_lists(
    folder: Path, settings: dict[str, Any]
) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """Backend and settings where there is no tokenizer.json."""
    if (folder / VOCABULARY_FILE).is_file():
        vocabulary = {piece: i for i, piece in enumerate(_lines(folder / VOCABULARY_FILE))}
        backend = wordpiece(
            vocabulary,
            specials_from(settings, vocabulary),
            lowercase=checks.said(settings, "do_lower_case", True),
            handle_chinese_chars=checks.said(settings, "tokenize_chinese_chars", True),
            strip_accents=checks.flag(settings, "strip_accents"),
        )
        return backend, settings
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        with checks.readable("vocab.json with merges.txt is not a readable tokenizer"):
            model = models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
        return byte_level(model, settings), settings
    for name in sentence_piece.NAMES:
        if (folder / name).is_file():
            return sentence_piece.read(folder / name, settings)
    raise InputError(
        f"No tokenizer in {folder.name}: expected {TOKENIZER_FILE}, {VOCABULARY_FILE}, vocab.json "
        "with merges.txt, spm.model or spiece.model; save it with transformers' save_pretrained "
        "first."
    )


_AS_WRITTEN = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Classes that take a tokenizer.json as it is."""


def _follow(backend: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> None:
    """Clean text as tokenizer_config.json says where it and tokenizer.json differ.

    transformers' BertTokenizer rebuilds itself from the settings and the pieces. What they leave
    out stays as tokenizer.json has it.
    """
    rules = backend.normalizer
    if not isinstance(rules, normalizers.BertNormalizer):
        return
    if settings.get("tokenizer_class") in _AS_WRITTEN:
        return
    made = normalizers.BertNormalizer(
        clean_text=rules.clean_text,
        lowercase=checks.said(settings, "do_lower_case", rules.lowercase),
        strip_accents=checks.flag(settings, "strip_accents")
        if "strip_accents" in settings
        else rules.strip_accents,
        handle_chinese_chars=checks.said(
            settings, "tokenize_chinese_chars", rules.handle_chinese_chars
        ),
    )
    if made.__getstate__() != rules.__getstate__():
        backend.normalizer = made


def _lines(path: Path) -> list[str]:
    found: list[str] = []
    try:
        with path.open(encoding="utf-8") as file:
            while line := file.readline(checks.MOST_LETTERS):
                if len(line) == checks.MOST_LETTERS or len(found) == MOST_PIECES:
                    raise InputError(
                        f"{path.name} is no list of pieces, one a line: line {len(found) + 1:,} "
                        f"is too long, or there are more than {MOST_PIECES:,}."
                    )
                found.append(line.rstrip("\n"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not readable as UTF-8 text: {error}") from error
    return found


def byte_level(model: models.BPE, settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """RoBERTa's tokenizer over ready merges, or DeBERTa's where a text begins with [CLS].

    DeBERTa (v1) was trained on ``[CLS] A [SEP] B [SEP]`` (microsoft/DeBERTa); the class of
    transformers 5 puts a second [SEP] between the texts, as RoBERTa does.
    """
    backend = tokenizers.Tokenizer(model)
    prefix = checks.said(settings, "add_prefix_space", False)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    backend.decoder = decoders.ByteLevel()
    specials = specials_from(settings, backend.get_vocab())
    add_specials(backend, specials, lstrip=True)
    made = Template.doubled if specials.cls == ANGLED.cls else Template.enclosing
    backend.post_processor = made(specials).processor(backend)
    return backend


def read_backend(path: Path) -> tokenizers.Tokenizer:
    """A tokenizers.Tokenizer from tokenizer.json.

    Raises:
        InputError: The file is damaged or of an unknown format.
    """
    checks.check_amount(path)
    with checks.readable(f"{path.name} is not a readable tokenizer"):
        return tokenizers.Tokenizer.from_file(str(path))
