"""Whose run it is: a secret that the browser keeps, of which the run folder holds a hash.

No account and no cookie: whoever clears the browser's storage can no longer change the run, and
the keeper of the server can still stop it by hand.
"""

import hashlib
import hmac
import re
from pathlib import Path
from typing import Any

from core_models.training import durable

_TOKEN = re.compile(r"[0-9a-f]{32,64}")
_FILE = "owner"


def note(path: Path, token: Any) -> None:
    """Keep the hash of a token in a run folder; nothing for what is no token."""
    if isinstance(token, str) and _TOKEN.fullmatch(token):
        durable.write_text(path / _FILE, _digest(token))


def owns(path: Path, token: Any) -> bool:
    """Whether a token is that of the run; False for a run that no page made."""
    try:
        kept = (path / _FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return False
    given = token if isinstance(token, str) and _TOKEN.fullmatch(token) else ""
    return hmac.compare_digest(kept, _digest(given)) and bool(given)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("ascii")).hexdigest()
