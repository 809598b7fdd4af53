"""Whose run it is: a name where visitors sign in, else a secret that the browser keeps.

The run folder holds a hash of it. Whoever clears the browser's storage can no longer change the
run, and the keeper of the server can still stop it by hand.
"""

import hashlib
import hmac
import re
from pathlib import Path
from typing import Any

from core_models import plain_files
from core_models.training import durable

USER = "cloze.user"
"""Of a request's scope: the name that a visitor has signed in with."""
_SECRET = re.compile(r"[0-9a-f]{32,64}")
_NAME = "name "
_FILE = "owner"


def of(user: str | None, secret: Any) -> str | None:
    """The token of a visitor: their name, which no browser can send, else its secret."""
    if user is not None:
        return _NAME + user
    return secret if isinstance(secret, str) and _SECRET.fullmatch(secret) else None


def note(path: Path, token: Any) -> None:
    """Keep the hash of a token in a run folder; nothing for what is no token."""
    if _is(token):
        durable.write_text(path / _FILE, _digest(token))


def owns(path: Path, token: Any) -> bool:
    """Whether a token is that of the run; False for a run that no page made."""
    try:
        kept = plain_files.read(path / _FILE, 200).decode("ascii").strip()
    except (OSError, ValueError):
        return False
    return _is(token) and hmac.compare_digest(kept, _digest(token))


def _is(token: Any) -> bool:
    return isinstance(token, str) and bool(token.startswith(_NAME) or _SECRET.fullmatch(token))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
