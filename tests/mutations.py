"""Files that were changed at random, and what reading one may cost."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

from core_models.errors import InputError

SECONDS = 2.0
"""Most processor time for one file: a busy machine does not lengthen it."""
MEGABYTES = 256
ODD = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\r\n",
    b'"',
    b"null",
    b"{",
    b"]" * 50,
    b"[" * 2000,
    b"-1",
    b"1e999",
    b"NaN",
    b"9" * 30,
    b"2147483648",
    "\u202e\U0001f642".encode(),
    b"\xed\xa0\x80",
    b"../../x",
)
NUMBERS = (0, -1, 1, 2, 7, 1 << 31, 1 << 40, 10**30, -(10**18), 0.5, 1e308, float("nan"))
VALUES = (None, True, False, "", "x", "\ud800", [], {}, [[]], {"a": 1}, "gelu", [0, 1], *NUMBERS)


def mutated(raw: bytes, draw: Random) -> bytes:
    """The bytes after one to four changes; most keep what surrounds them readable."""
    found = bytearray(raw)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        _change(found, draw)
    return bytes(found)


def _change(found: bytearray, draw: Random) -> None:
    at = draw.randrange(len(found) + 1)
    # Heads, and the first bytes of lists of lengths, say most of what follows.
    at = draw.choice((at, at, min(at, draw.randrange(300))))
    end = min(len(found), at + draw.choice((1, 1, 2, 8, 100, 5000)))
    kind = draw.randrange(6)
    if kind == 0 and at < len(found):
        found[at] ^= 1 << draw.randrange(8)
    elif kind == 1:
        del found[at:]
    elif kind == 2:
        del found[at:end]
    elif kind == 3:
        found[at:at] = draw.choice(ODD)
    elif kind == 4:
        found[at:end] = draw.choice(ODD)
    else:
        found[at:at] = found[at:end] * draw.choice((1, 2, 50))


def mutated_json(text: str, draw: Random) -> str:
    """An object in which one or two values, wherever they stand, are others."""
    whole = json.loads(text)
    for _ in range(draw.choice((1, 1, 2))):
        places = [*_places(whole)]
        holder, key = draw.choice(places)
        if draw.random() < 0.15:
            del holder[key]
        else:
            holder[key] = deepcopy(draw.choice(VALUES))
        if not [*_places(whole)]:
            break
    return json.dumps(whole)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from _places(inner)


def spoil(folder: Path, draw: Random, whole: dict[str, bytes]) -> str:
    """Change one file of a folder whose files were ``whole``; its name."""
    name = draw.choice(sorted(whole))
    for each, raw in whole.items():
        (folder / each).write_bytes(raw)
    raw = whole[name]
    if name.endswith(".json") and draw.random() < 0.6:
        (folder / name).write_text(mutated_json(raw.decode(), draw))
    else:
        (folder / name).write_bytes(mutated(raw, draw))
    return name


def typed(read: Callable[[], object]) -> bool:
    """Whether something can be read; what cannot is an InputError, soon and in little room."""
    with bounded():
        try:
            read()
        except InputError:
            return False
    return True


@contextlib.contextmanager
def bounded(seconds: float = SECONDS, megabytes: float = MEGABYTES) -> Iterator[None]:
    """Fail where a piece of work takes too long, or too much memory at any moment."""
    began, held = time.process_time(), _mark()
    yield
    took, most = time.process_time() - began, _highest()
    assert took <= seconds, f"{took:.1f} s"
    assert most - held <= megabytes, f"{most - held:.0f} MB more"


def _mark() -> float:
    """Forget the highest memory so far; what is held now, in MB."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _highest()


def _highest() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:  # the bound is looked at where the system tells
        return 0.0
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
