"""The folder of a tokenizer, written as transformers' AutoTokenizer reads it."""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core_models.tokenizer.files import CONFIG_FILE, TOKENIZER_FILE, VOCABULARY_FILE

_TOKENS_FILE = "special_tokens_map.json"


def hash_of(definition: str) -> str:
    """Short hash of the content of tokenizer.json."""
    # Scores of unigram pieces lose their last digits when the library reads them back.
    parsed = json.loads(definition, parse_float=lambda digits: round(float(digits), 5))
    canonical = json.dumps(parsed, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def write_folder(
    target: Path,
    definition: str,
    settings: Mapping[str, Any],
    tokens: Mapping[str, str],
    pieces: Sequence[str] | None,
) -> None:
    """Write all files, each at once.

    Args:
        target: Made if missing.
        definition: Content of tokenizer.json.
        settings: Content of tokenizer_config.json.
        tokens: Special pieces by role, as "cls_token".
        pieces: All of them by id, for vocab.txt; None = no such file.
    """
    target.mkdir(parents=True, exist_ok=True)
    pretty = json.dumps(json.loads(definition), ensure_ascii=False, indent=1)
    _write_text(target / TOKENIZER_FILE, pretty)
    _write_text(target / CONFIG_FILE, json.dumps(settings, ensure_ascii=False, indent=2))
    _write_text(target / _TOKENS_FILE, json.dumps(tokens, indent=2))
    if pieces is not None:
        _write_text(target / VOCABULARY_FILE, "\n".join(pieces))


def _write_text(path: Path, text: str) -> None:
    """Write a file beside its place and rename it, so that no reader sees half of it."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        # Half a character, which only JSON can spell, is spelled as there: \ud83d.
        aside.write_text(text + "\n", "utf-8", errors="backslashreplace", newline="\n")
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
