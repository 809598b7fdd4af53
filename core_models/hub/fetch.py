"""Fetching a checkpoint from the Hugging Face hub: safetensors, JSON and vocabularies only.

What is fetched is known before: :func:`look` asks the hub for names and sizes alone. The files go
into the hub's own cache, which transformers shares, from the small ones to the weights, so that a
model that cannot be opened is refused before its weights are on their way.
"""

import re
import secrets
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants

from core_models.checkpoints.weights import INDEX, PICKLES, WEIGHTS, read_json
from core_models.errors import InputError
from core_models.hub.files import (
    FAILURES,
    STRANGE,
    TIMEOUT,
    File,
    Token,
    UnreachableError,
    endpoint,
    failed,
    fetch_file,
    part_of,
    size_of,
    storage,
)
from core_models.inspection import check_config
from core_models.tokenizer.reading import has_tokenizer

HUB_ID = re.compile(
    r"[A-Za-z0-9](?:[\w.-]{0,94}\w)?/[A-Za-z0-9](?:[\w.-]{0,94}\w)?(?<!\.git)", re.ASCII
)
CONFIG = "config.json"
SHARDS = "model-*-of-*.safetensors"
PATTERNS = [CONFIG, "vocab*", "merges.txt", "tokenizer*.json", "special_tokens_map.json"]
PATTERNS += ["added_tokens.json", "*.model"]
"""Files beside the weights; those of folders inside the repository are left where they are."""
MOST_BESIDE = 64 << 20
"""Bytes of a file beside the weights; the largest published vocabularies have 17 million."""
CONVERTER = "SFconvertbot"
CONVERTED = "Adding `safetensors` variant of this model"
"""The hub's own account that converts weights, and how it names its pull requests."""

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SNAPSHOT = re.compile(rf"/models--([\w.-]+?)--([\w.-]+)/snapshots/({_OID.pattern})$")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What would be fetched of a repository at one commit."""

    name: str
    commit: str
    files: tuple[File, ...]
    """In the order in which they are fetched: config.json first, the weights last."""
    parameters: int | None = None
    """As the hub counted them in the headers of the weights; None where it did not."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def folder(self) -> Path:
        """Where the files are once they are here."""
        return storage(self.name) / "snapshots" / self.commit

    @property
    def missing(self) -> int:
        """Bytes that are not here yet; parts of an earlier attempt count as here."""
        left = 0
        for file in self.files:
            if not (self.folder / file.name).exists():
                left += file.size - (size_of(part_of(self.name, file)) if file.sha256 else 0)
        return max(0, left)


def is_hub_id(name: str) -> bool:
    """Whether a name has the form ``owner/model`` (never a path)."""
    return bool(HUB_ID.fullmatch(name)) and ".." not in name and "--" not in name


def parted(name: str) -> tuple[str, str | None]:
    """Hub id and commit of ``owner/model`` or ``owner/model@commit``, whose commit is whole.

    Raises:
        InputError: it is neither.
    """
    found, _, commit = name.partition("@")
    if not is_hub_id(found) or (found != name and not _OID.fullmatch(commit)):
        raise InputError(f"{name[:100]!r} is not a hub id; it has the form owner/model.")
    return found, commit or None


def pinned(text: str) -> str | None:
    """``owner/model@commit`` of a folder in a cache of the hub; None for any other text."""
    found = _SNAPSHOT.search(text)
    return f"{found[1]}/{found[2]}@{found[3]}" if found else None


def is_weights(file: str) -> bool:
    """Whether :func:`fetch` takes a file of a repository for weights, or for their index."""
    return file in (WEIGHTS, INDEX) or ("/" not in file and fnmatch(file, SHARDS))


def look(name: str, *, token: Token = False) -> Listing:
    """What opening a hub id would fetch; only the hub's list of files is read.

    Where a repository has pickled weights alone, the hub's own conversion of them to safetensors
    is looked for among its pull requests, as transformers does.

    Args:
        name: ``owner/model``, at its newest commit, or ``owner/model@commit``.
        token: for gated and private repositories; False = none is sent.

    Raises:
        InputError: no such model, no access, no network, weights in pickles alone, odd files.
    """
    name, commit = parted(name)
    api = HfApi(endpoint=endpoint(), token=token)
    try:
        info = api.model_info(name, revision=commit, timeout=TIMEOUT, files_metadata=True)
        if not _weights(_files(info)) and (revision := _converted(api, name, info.sha)):
            info = api.model_info(name, revision=revision, timeout=TIMEOUT, files_metadata=True)
        files = _files(info)
    except (*FAILURES, *STRANGE) as error:
        raise failed(name, error) from None
    if not _OID.fullmatch(info.sha or "") or CONFIG not in files:
        raise InputError(f"The model {name!r} has no {CONFIG} on the hub; it is no model here.")
    weights = _weights(files)
    if not weights:
        pickles = [file for file in PICKLES if file in files]
        raise InputError(
            f"The model {name!r} has {pickles[0]} alone, a pickle file, which can run code and is "
            "refused. Its owner can add safetensors: https://huggingface.co/spaces/safetensors/"
            "convert."
            if pickles
            else f"The model {name!r} has no {WEIGHTS} on the hub."
        )
    beside = [file for file in files.values() if any(fnmatch(file.name, p) for p in PATTERNS)]
    for file in beside:
        if file.size > MOST_BESIDE:
            raise InputError(
                f"{file.name} of {name!r} has {file.size:,} bytes; at most {MOST_BESIDE:,} fit."
            )
    beside.sort(key=lambda file: (file.name != CONFIG, file.size))
    found = info.safetensors.total if info.safetensors else None
    return Listing(
        name=name, commit=str(info.sha), files=(*beside, *weights), parameters=found or None
    )


def fetch(
    name: str,
    *,
    listing: Listing | None = None,
    token: Token = False,
    report: Callable[[int], None] = lambda received: None,
) -> Path:
    """The local folder of a hub id; what is missing is fetched, the commit is resolved first.

    A file that was cut goes on where it stopped, in this call and in a later one. Where the hub
    cannot be reached, a model that was fetched before is opened as it is, and a warning says so.
    What the hub refuses is refused: an older copy stands in for nothing.

    Args:
        name: ``owner/model``, or ``owner/model@commit``; once that is here the hub is not asked.
        listing: what :func:`look` found; None = look now.
        token: as for :func:`look`.
        report: told the bytes that are here, of ``listing.size``; what it raises ends the fetch.

    Raises:
        InputError: as for :func:`look`; code of the repository's own; a file that is not what the
            hub has listed.
    """
    hub_id, commit = parted(name)
    # transformers may have fetched the weights alone, into the same cache.
    if commit and (found := local(name)) and has_tokenizer(found):
        return found
    try:
        listing = listing or look(name, token=token)
    except InputError as error:
        if (found := local(name)) is None:
            raise
        if not isinstance(error, UnreachableError):
            raise InputError(
                f"{error} What was fetched before is still here: HF_HUB_OFFLINE=1 opens it."
            ) from None
        warnings.warn(
            f"The hub does not answer ({error.why}), so {name!r} is opened as it was fetched last, "
            f"at commit {found.name[:7]}.",
            stacklevel=3,
        )
        return found
    here = 0
    for file in listing.files:
        try:
            fetch_file(hub_id, listing.commit, file, token, partial(_shifted, report, here))
        except FAILURES as error:
            raise failed(name, error) from None
        here += file.size
        report(here)
        if file.name == CONFIG:
            check_config(read_json(listing.folder / CONFIG))
    if not commit:
        _note(storage(name) / "refs" / "main", listing.commit)
    return listing.folder


def _note(reference: Path, commit: str) -> None:
    """Which commit is opened without a network; a cache that can only be read stays as it is."""
    aside = reference.with_name(f".{reference.name}.{secrets.token_hex(4)}")
    with suppress(OSError):
        reference.parent.mkdir(parents=True, exist_ok=True)
        try:
            aside.write_text(commit, "utf-8")
            aside.replace(reference)
        except OSError:
            aside.unlink(missing_ok=True)
            raise


def local(name: str) -> Path | None:
    """The folder of a hub id that is whole in the hub's cache; None = it has to be fetched.

    Without a commit it is the one that was fetched last.
    """
    with suppress(InputError, OSError, UnicodeDecodeError):
        hub_id, commit = parted(name)
        if commit is None:
            commit = (storage(hub_id) / "refs" / "main").read_text("utf-8").strip()
        folder = storage(hub_id) / "snapshots" / commit
        if _OID.fullmatch(commit) and _is_whole(folder):
            return folder
    return None


def fetched() -> list[str]:
    """Hub ids that :func:`local` finds, the one that was fetched last first."""
    found: list[tuple[float, str]] = []
    for path in Path(constants.HF_HUB_CACHE).glob("models--*--*/refs/main"):
        name = path.parents[1].name.removeprefix("models--").replace("--", "/")
        with suppress(OSError):
            if local(name):
                found.append((path.stat().st_mtime, name))
    return [name for _, name in sorted(found, reverse=True)]


def _is_whole(folder: Path) -> bool:
    if not (folder / CONFIG).exists():
        return False
    if (folder / WEIGHTS).exists():
        return True
    try:
        places = read_json(folder / INDEX, 20_000_000).get("weight_map")
    except InputError:
        return False
    return isinstance(places, dict) and all((folder / str(f)).exists() for f in places.values())


def _files(info: Any) -> dict[str, File]:
    """Files at the top of a repository; whatever else its names mean is not for us."""
    found = {}
    for each in info.siblings or ():
        if re.fullmatch(r"[\w.-]+", each.rfilename) and isinstance(each.size, int):
            sha256 = each.lfs.sha256 if each.lfs else None
            known = sha256 if sha256 and _OID.fullmatch(sha256) else None
            found[each.rfilename] = File(each.rfilename, max(0, each.size), known)
    return found


def _weights(files: dict[str, File]) -> list[File]:
    if WEIGHTS in files:
        return [files[WEIGHTS]]
    if INDEX not in files:
        return []
    return [files[INDEX], *(f for n, f in sorted(files.items()) if fnmatch(n, SHARDS))]


def _converted(api: HfApi, name: str, commit: str | None) -> str | None:
    """The revision with the hub's own conversion of the newest commit, if there is one."""
    for pull in api.get_repo_discussions(name, author=CONVERTER, discussion_type="pull_request"):
        if pull.author == CONVERTER and pull.title == CONVERTED and pull.git_reference:
            commits = api.list_repo_commits(name, revision=pull.git_reference)
            if len(commits) > 1 and commits[1].commit_id == commit:
                return pull.git_reference
    return None


def _shifted(report: Callable[[int], None], before: int, own: int) -> None:
    report(before + own)
