"""Names and passwords of a closed class.

``CLOZE_AUTH`` names a file with one line for each name: the name, a salt and a hash of the password
(scrypt, RFC 7914) with colons between. ``python -m app.serving.sign_in NAME`` asks for a password
and prints such a line.
"""

import asyncio
import getpass
import hashlib
import hmac
import re
import secrets
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from core_models import InputError

_LINE = re.compile(r"([^:\s#][^:]{0,63}):([0-9a-f]{32}):([0-9a-f]{64})")
_COST = {"n": 2**14, "r": 8, "p": 1}
"""Of scrypt: 16 MB and some 50 ms for each try, so that nobody tries many."""
MESSAGE = (
    "This page is for a class. Sign in with the name and the password that you were given. "
    "这个页面只供班级使用。请用分到的用户名和密码登录。"
)


class Register:
    """Who may sign in; called with a name and a password it says whether they belong together."""

    def __init__(self, known: dict[str, tuple[bytes, bytes]]) -> None:
        self.known = known
        # One try at a time: a class that signs in, or a stranger who guesses, holds up nobody else.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cloze-names")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file of names; empty lines and those that begin with # say nothing.

        Raises:
            InputError: the file is not there, has no name, or a line is no such line.
        """
        try:
            # Editors of Windows begin a file with a mark.
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"CLOZE_AUTH: {path} cannot be read ({error}).") from None
        known: dict[str, tuple[bytes, bytes]] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            found = _LINE.fullmatch(line.strip())
            name = found[1].strip() if found else ""  # as Gradio takes what is typed
            if found is None or name in known:
                why = "names somebody twice" if found else "is no name with a salt and a hash"
                raise InputError(
                    f"CLOZE_AUTH: line {number} of {path} {why}; "
                    "python -m app.serving.sign_in NAME prints one."
                )
            known[name] = (bytes.fromhex(found[2]), bytes.fromhex(found[3]))
        if not known:
            raise InputError(f"CLOZE_AUTH: {path} names nobody.")
        return cls(known)

    async def admits(self, name: str, password: str) -> bool:
        """The same while the server goes on answering others."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self, name, password)

    def __call__(self, name: str, password: str) -> bool:
        """Whether a password is that of a name; an unknown name takes as long."""
        salt, expected = self.known.get(name, (b"\0" * 16, b""))
        return hmac.compare_digest(_hash(password, salt), expected)


def line_of(name: str, password: str) -> str:
    """The line of a name; InputError for a name with a colon, or an empty password."""
    salt = secrets.token_bytes(16)
    line = f"{name.strip()}:{salt.hex()}:{_hash(password, salt).hex()}"
    if not password or _LINE.fullmatch(line) is None:
        raise InputError(
            "A name has 1 to 64 characters, no colon and no # in front, a password at least one."
        )
    return line


def _hash(password: str, salt: bytes) -> bytes:
    given = password.encode("utf-8", "replace")
    return hashlib.scrypt(given, salt=salt, dklen=32, maxmem=64 << 20, **_COST)


def main(arguments: Sequence[str]) -> None:
    """Print the line of the name that is given."""
    if len(arguments) != 1:
        raise SystemExit("One name is needed: python -m app.serving.sign_in NAME")
    try:
        sys.stdout.write(line_of(arguments[0], getpass.getpass("Password: ")) + "\n")
    except InputError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main(sys.argv[1:])
