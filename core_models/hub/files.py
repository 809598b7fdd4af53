"""One file of a repository of the Hugging Face hub into the hub's own cache."""

import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    WeakFileLock,
    build_hf_headers,
    get_session,
    hf_raise_for_status,
    silent_tqdm,
)

from core_models.errors import InputError

Token = str | bool
"""A token of the hub, or False to send none."""
TRIES = 5
"""How often a file is asked for that does not come at all."""
TIMEOUT = 10.0
"""Seconds to wait for the hub before saying that it cannot be reached."""
_WAIT = 0.5
"""Seconds between two looks whether somebody else has fetched a file."""
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
BUSY = (408, 429)
"""Answers below 500 that say nothing of a model: too slow, and asked too often."""
STRANGE: tuple[type[Exception], ...] = (ImportError, LookupError, TypeError, ValueError)
"""What comes of a page to log in, or of a proxy of a kind that is not known, in the hub's place."""


class UnreachableError(InputError):
    """The hub cannot answer: there is no network, or what answers is busy, broken or no hub.

    Args:
        message: for people.
        why: the same in a word or a number.
    """

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(frozen=True)
class File:
    """A file of a repository, as the hub lists it."""

    name: str
    size: int
    sha256: str | None = None
    """Of a large file's content."""


def fetch_file(
    name: str, commit: str, file: File, token: Token, report: Callable[[int], None]
) -> None:
    """One file into the cache, telling its bytes. Large ones go on where an attempt stopped.

    Raises:
        InputError: it is not the file that was listed, which is asked before anything comes.
    """
    place = storage(name) / "snapshots" / commit / file.name
    here = place.exists()
    if here and size_of(place) == file.size:
        return
    where = endpoint()
    url = hf_hub_url(name, file.name, revision=commit, endpoint=where)
    found = get_hf_file_metadata(url, token=token, timeout=TIMEOUT, endpoint=where)
    if found.size not in (None, file.size) or (file.sha256 and found.etag != file.sha256):
        raise _another(name, file)
    if file.sha256:
        part = part_of(name, file)
        blob = part.with_suffix("")
        part.parent.mkdir(parents=True, exist_ok=True)
        if not blob.exists():
            with _alone(name, file, report):
                if not blob.exists():
                    _grow(part, url, name, file, token, report)
                    part.replace(blob)
    hf_hub_download(
        name,
        file.name,
        revision=commit,
        token=token,
        endpoint=where,
        etag_timeout=TIMEOUT,
        tqdm_class=silent_tqdm,
        force_download=here,  # what lies there has another size
    )
    if size_of(place) != file.size:
        raise _another(name, file)


def _another(name: str, file: File) -> InputError:
    return InputError(
        f"{file.name} of {name!r} is not the file that the hub has listed; look once more."
    )


@contextmanager
def _alone(name: str, file: File, report: Callable[[int], None]) -> Iterator[None]:
    """One of all processes that share the cache: the lock is that of huggingface_hub itself."""
    lock = Path(constants.HF_HUB_CACHE) / ".locks" / storage(name).name / f"{file.sha256}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        waits = True
        while waits:
            report(size_of(part_of(name, file)))  # as far as the other one is
            with suppress(TimeoutError):  # of another one that fetches it
                held.enter_context(WeakFileLock(lock, timeout=_WAIT))
                waits = False
        yield


def _grow(
    part: Path, url: str, name: str, file: File, token: Token, report: Callable[[int], None]
) -> None:
    with part.open("ab") as out:
        _stream(url, out, file, token, report)
    with part.open("rb") as content:
        same = hashlib.file_digest(content, "sha256").hexdigest() == file.sha256
    if not same:
        part.unlink()
        raise InputError(f"{file.name} of {name!r} came damaged; fetch it again.")


def _stream(
    url: str, out: BinaryIO, file: File, token: Token, report: Callable[[int], None]
) -> None:
    """What is missing of a file, written as it comes: huggingface_hub drops what was cut."""
    tries, most = 0, out.tell()
    while (here := out.tell()) < file.size:
        if tries >= TRIES:
            raise InputError(
                f"{file.name} ends before the {file.size:,} bytes that the hub has listed. Try "
                "again in a while."
            )
        headers = build_hf_headers(token=token) | {"accept-encoding": "identity"}
        if here:
            headers["range"] = f"bytes={here}-"
        tries += 1
        report(here)  # who has cancelled does not wait for what does not come
        try:
            with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT) as response:
                hf_raise_for_status(response)
                if here and response.status_code != 206:  # the whole file comes
                    out.seek(0)
                    out.truncate()
                for piece in response.iter_raw():
                    out.write(piece)
                    if out.tell() > most:
                        tries, most = 0, out.tell()
                    if out.tell() > file.size:
                        raise InputError(
                            f"{file.name} is larger than the {file.size:,} bytes that the hub has "
                            "listed; it is not fetched further."
                        )
                    report(out.tell())
        except FAILURES as error:
            if tries >= TRIES or isinstance(error, HfHubHTTPError):
                raise
            time.sleep(1)


def part_of(name: str, file: File) -> Path:
    """Where a large file grows until it is whole."""
    return storage(name) / "blobs" / f"{file.sha256}.incomplete"


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none, or none any more."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def storage(name: str) -> Path:
    """The folder of a repository in the hub's cache."""
    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model")


def endpoint() -> str | None:
    """The address of the hub; None = the public one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def failed(name: str, error: Exception) -> InputError:
    """What went wrong between the hub and a model, without addresses and without a token.

    An :class:`UnreachableError` where the hub has said nothing of the model.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(f"The disk is full: {name!r} has no place in {constants.HF_HUB_CACHE}.")
    if isinstance(error, OSError) and error.filename is not None:
        return InputError(
            f"{name!r} cannot be kept in {constants.HF_HUB_CACHE} ({error.strerror}); name a "
            "folder that can be written as HF_HUB_CACHE."
        )
    if isinstance(error, RevisionNotFoundError):
        return InputError(
            f"The model {name!r} has no such commit on the hub; look at those that its page lists."
        )
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, GatedRepoError) or status == 403:
        return InputError(
            f"The model {name!r} is gated: accept its terms on the hub, and give a token of "
            "that account: HF_TOKEN for the page, token=True for cm.load."
        )
    if isinstance(error, RepositoryNotFoundError) or status in (401, 404):
        return InputError(
            f"The hub has no model {name!r}, or does not show it to everybody. Look at how it is "
            "spelt: owner/model, as in google-bert/bert-base-uncased."
        )
    if status is not None:
        told = (
            f"The model {name!r} could not be fetched from the hub, which answered {status}. Try "
            "again in a while."
        )
        busy = status >= 500 or status in BUSY
        return UnreachableError(told, str(status)) if busy else InputError(told)
    why = type(error).__name__
    if isinstance(error, STRANGE) and not isinstance(error, OSError):
        return UnreachableError(
            f"The model {name!r} could not be fetched from the hub ({why}). What "
            "answers in the hub's place is none, or the proxy that the environment names cannot "
            "be used.",
            why,
        )
    return UnreachableError(
        f"The model {name!r} could not be fetched from the hub ({why}); without "
        "network use a shipped model or a folder.",
        why,
    )
