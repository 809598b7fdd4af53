"""Fetching a checkpoint from the Hugging Face hub: safetensors, JSON and vocabularies only."""

import re
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from core_models.errors import InputError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
PATTERNS = ["config.json", "*.safetensors", "*.safetensors.index.json", "vocab*", "merges.txt"]
PATTERNS += ["tokenizer*.json", "special_tokens_map.json", "spiece.model", "spm.model"]
FAILURES: tuple[type[Exception], ...] = (
    LocalEntryNotFoundError,
    OSError,
    # HfHubHTTPError, and what its transport raises: httpx's, or httpx2's from huggingface_hub 2 on.
    *(
        kind
        for kind in HfHubHTTPError.__mro__
        if issubclass(kind, Exception) and kind is not Exception
    ),
)
"""What stands between the hub and a model."""
TIMEOUT = 10.0
"""Seconds to wait for the hub before saying that it cannot be reached."""


def is_hub_id(name: str) -> bool:
    """Whether a name has the form ``owner/model`` (never a path)."""
    return bool(HUB_ID.fullmatch(name)) and ".." not in name and "--" not in name


def fetch(name: str) -> Path:
    """The local snapshot folder of a hub id; the commit is resolved first and no token is sent."""
    try:
        commit = HfApi(token=False).model_info(name, timeout=TIMEOUT).sha
        return Path(
            snapshot_download(
                name,
                revision=commit,
                allow_patterns=PATTERNS,
                token=False,
                etag_timeout=TIMEOUT,
            )
        )
    except FAILURES as error:
        cached = _cached(name)
        if cached is not None:
            return cached
        raise InputError(
            f"The model {name!r} could not be fetched from the hub "
            f"({type(error).__name__}); without network use a shipped model or a folder."
        ) from None


def _cached(name: str) -> Path | None:
    try:
        return Path(snapshot_download(name, allow_patterns=PATTERNS, local_files_only=True))
    except (LocalEntryNotFoundError, OSError):
        return None
