"""Texts that are not sent but lie elsewhere: a data set of a hub, a folder of this machine.

No Gradio in it. Both are read at once into the inbox, where they are looked at, checked and used
like a text that was sent; the run then needs neither network nor folder.

``CLOZE_TRAIN_SOURCES`` says what is allowed: ``datasets`` for names of the `datasets` library, and
folders, each by its absolute path, whose folders may be read; with commas between, or ``off``.
Unset, names are allowed to the local user: a server that only this machine reaches, and that is not
shared. Folders are never read by a server that others reach.
"""

import concurrent.futures
import io
import itertools
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from app.runs.data import tables as run_tables
from app.runs.data.texts import MOST_BYTES, Inbox, Text
from core_models import InputError

VARIABLE = "CLOZE_TRAIN_SOURCES"
DATASETS = "datasets"
_LOCAL = ("", "127.0.0.1", "localhost", "::1")
_OTHERS = ("SPACE_ID", "CLOZE_HOSTS", "GRADIO_ROOT_PATH", "CLOZE_AUTH")
"""Variables of a server that others come to, through a proxy for example."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?")
_WORD = re.compile(r"[\w.-]{1,96}")
_MOST_ROWS = 200_000
_SECONDS = 90.0
"""How long a data set may be read."""
_ONE = Lock()


def allowed(environment: Mapping[str, str] = os.environ) -> tuple[bool, tuple[Path, ...]]:
    """Whether names of data sets may be given, and the folders whose folders may be read.

    Raises:
        InputError: the variable names something else.
    """
    local = is_local(environment)
    given = environment.get(VARIABLE, "").strip()
    if environment.get("CLOZE_TRAIN", "").strip().lower() == "off" or given.lower() == "off":
        return False, ()
    if not given:
        return _is_own(environment), ()
    folders = []
    parts = [part.strip() for part in given.split(",") if part.strip()]
    for part in parts:
        if part == DATASETS:
            continue
        path = Path(part)
        if not path.is_absolute() or not path.is_dir():
            raise InputError(
                f"{VARIABLE} names {part!r}; it must be off, datasets, or absolute paths of "
                "folders, with commas between."
            )
        folders.append(path.resolve())
    return DATASETS in parts, tuple(folders) if local else ()


def is_local(environment: Mapping[str, str]) -> bool:
    """Whether only this machine reaches the server, as far as its settings tell."""
    host = environment.get("CLOZE_HOST") or environment.get("GRADIO_SERVER_NAME") or ""
    others = any(environment.get(name) for name in _OTHERS)
    return host.strip().lower() in _LOCAL and not others


def _is_own(environment: Mapping[str, str]) -> bool:
    """Whether whoever asks is the one who runs the server."""
    shared = environment.get("CLOZE_TRAIN", "").strip().lower() == "shared"
    return is_local(environment) and not shared


def fetch(inbox: Inbox, wanted: Mapping[str, Any]) -> Text:
    """Read what a form names into the inbox.

    Args:
        inbox: where it is kept.
        wanted: ``dataset`` with ``split`` and ``configuration`` (or without), or ``folder``.

    Raises:
        InputError: not allowed here, no such data set or folder, no network, no library.
    """
    names, folders = allowed()
    if not _ONE.acquire(blocking=False):
        raise InputError("Another text is being read right now. Ask again in a moment.")
    try:
        if wanted.get("folder") is not None:
            return _folder(inbox, wanted["folder"], folders)
        if not names:
            raise InputError(
                "This server reads no data sets by name. Send a file, or start a server of your "
                "own with CLOZE_TRAIN_SOURCES=datasets."
            )
        return _dataset(inbox, wanted)
    finally:
        _ONE.release()


# --- a folder -------------------------------------------------------------------------------


def _folder(inbox: Inbox, given: Any, roots: Sequence[Path]) -> Text:
    if not roots:
        raise InputError(
            "This server reads no folders. Send files, or start a server of your own with "
            "CLOZE_TRAIN_SOURCES=/path/to/texts."
        )
    path = Path(given) if isinstance(given, str) and given.strip() and "\0" not in given else Path()
    # A relative path is one of the first folder. Links are followed before the place is judged.
    path = (roots[0] / path).resolve()
    if not any(path.is_relative_to(root) for root in roots):
        listed = ", ".join(map(str, roots))
        raise InputError(f"This server reads folders of {listed} only.")
    if not path.is_dir():
        raise InputError(f"There is no folder {str(given)[:200]!r}.")
    return inbox.save_documents(f"{path.name or 'folder'}.txt", _documents(path, roots))


def _documents(path: Path, roots: Sequence[Path]) -> Iterator[Sequence[str]]:
    """The documents of every text and table of a folder, in order of name."""
    from core_models.data import sources  # noqa: PLC0415

    for file in sources.files([path]):
        if not any(file.resolve().is_relative_to(root) for root in roots):
            raise InputError(f"{file.name} is a link to another folder, which is not read.")
        column = None
        if file.suffix.lower() in (".csv", ".tsv", ".jsonl", ".parquet"):
            seen = run_tables.look(file)
            column = seen["columns"][seen["column"]]
        yield from sources.read_documents(sources.Source(paths=(file,), column=column))


# --- a data set -----------------------------------------------------------------------------


def _dataset(inbox: Inbox, wanted: Mapping[str, Any]) -> Text:
    name = wanted.get("dataset")
    split = wanted.get("split") or "train"
    configuration = wanted.get("configuration") or None
    # A name that is a folder here would be read from this machine's disk.
    if not isinstance(name, str) or not _NAME.fullmatch(name) or Path(name).exists():
        raise InputError(
            f"{str(name)[:80]!r} is no name of a data set. It looks like “imdb” or “owner/name”."
        )
    for value in (split, configuration):
        if value is not None and not (isinstance(value, str) and _WORD.fullmatch(value)):
            raise InputError(f"{str(value)[:80]!r} is no name of a split or a configuration.")
    pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="cloze-datasets")
    try:
        work = pool.submit(_rows, name, configuration, split)
        content = work.result(timeout=_SECONDS * 1.5)
    except concurrent.futures.TimeoutError:
        raise InputError(f"The data set {name!r} does not answer. Try it again later.") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    stem = "-".join(part for part in (name.rsplit("/", 1)[-1], configuration, split) if part)
    return inbox.save(f"{stem}.jsonl", content)


def _rows(name: str, configuration: str | None, split: str) -> bytes:
    """The first rows as JSON Lines: as many as a file that is sent may hold."""
    from core_models.data import tables  # noqa: PLC0415

    ends = time.monotonic() + _SECONDS
    found = io.BytesIO()
    try:
        rows = tables.load(name, configuration, split, login=_is_own(os.environ), inside=True)
        for row in itertools.islice(rows, _MOST_ROWS):
            kept = {key: value for key, value in row.items() if _is_plain(value)}
            line = json.dumps(kept, ensure_ascii=False).encode() + b"\n"
            if found.tell() + len(line) > MOST_BYTES or time.monotonic() > ends:
                break
            found.write(line)
    except InputError:
        raise
    except Exception as error:  # of the hub, the network or the data set: all say so in words
        raise InputError(f"The data set {name!r} cannot be read: {error}") from None
    if not found.tell():
        raise InputError(f"The data set {name!r} holds no rows in {split!r}.")
    return found.getvalue()


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float | bool)
