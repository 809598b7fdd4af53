"""Opening models of others: what one is, fetching it, and where it lies. No Gradio in it."""

import hashlib
import logging
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import constants

from app.serving.names import FOLDER_PREFIX, HUB_PREFIX, called
from app.serving.opened.policy import Policy
from app.serving.shelf import memory_of
from core_models import InputError, inspect
from core_models.hub import fetch as hub
from core_models.hub.files import UnreachableError
from core_models.tokenizer.reading import VOCABULARIES

SPARE_DISK = 512 << 20
"""Bytes that stay free on the disk."""
MOST_TEXT = 4096
MOST_NAME = 60
"""Letters of a folder's name."""
_OF_RUNS = ("model", "generator")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A model that could be opened, as it is told before anything is fetched."""

    name: str
    """In the model picker and in links: ``hub/owner/model`` or ``folder/NAME-NUMBER``."""
    title: str
    size: int
    """Bytes of its files."""
    missing: int
    """Bytes that have to be fetched first."""
    parameters: int
    """Exact where ``counted``, else told from the size of the weights."""
    counted: bool
    folder: Path | None = None
    """None = it comes from the hub, as ``listing`` says."""
    listing: hub.Listing | None = None
    kept: bool = False
    """Whether it is what the hub gave last, because the hub cannot be reached."""


@dataclass(kw_only=True)
class Job:
    """A model on its way into the picker."""

    offer: Offer
    visitor: str
    received: int = 0
    loading: bool = False
    """Whether all of it is here."""
    problem: str | None = None
    """Why it could not be opened."""
    done: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def report(self, received: int) -> None:
        """Bytes that are here; the end of the job where somebody has cancelled it."""
        self.received = received
        if self.cancelled.is_set():
            raise InputError(f"Fetching {self.offer.title} was cancelled; what is here is kept.")


class Opened:
    """The models that were opened here, and the one that is just being opened.

    Args:
        policy: what may be opened.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.job: Job | None = None
        self._found: dict[str, tuple[str, Path]] = {}
        self._lock = threading.Lock()

    # --- the library of a session -----------------------------------------------------------

    def models(self) -> list[tuple[str, str]]:
        """Names and titles of what was opened."""
        return [(name, title) for name, (title, _) in self._found.items()]

    def model_path(self, name: str) -> Path:
        """The folder of a name; InputError for one that was not opened."""
        found = self._found.get(name)
        if found is None:
            raise InputError(
                f"The model “{name[:100]}” is not open here. Open it beside the list of models."
            )
        return found[1]

    def name_of(self, path: str) -> str | None:
        """The name of the folder with this path; None for one that was not opened."""
        return next((name for name, (_, at) in self._found.items() if str(at) == path), None)

    # --- looking ----------------------------------------------------------------------------

    def look(self, text: object) -> Offer:
        """What a hub id or a folder is; nothing but the hub's list of files is fetched.

        Where folders may be opened, one with a config.json wins over a hub id of the same spelling,
        as for ``cm.load``; ``hub/owner/model`` is of the hub alone.

        Raises:
            InputError: it is neither, it may not be opened, or it is too large.
        """
        given = str(text or "").strip()[:MOST_TEXT]
        wanted = given.removeprefix(HUB_PREFIX)
        if not wanted:
            raise InputError("Type a hub id such as google-bert/bert-base-uncased, or a folder.")
        if hub.is_hub_id(wanted) and not (given == wanted and self._is_folder(wanted)):
            return self._look_hub(wanted)
        if self.policy.mode != "any":
            self.policy.check(wanted)
            raise InputError("Folders are opened only where a server has one visitor.")
        try:
            return self._look_folder(Path(wanted).expanduser())
        except RuntimeError:  # "~name", and nobody here is called so
            return self._look_folder(Path(wanted))

    def _is_folder(self, name: str) -> bool:
        """Whether a hub id is also a folder with a model, and folders may be opened."""
        return self.policy.mode == "any" and os.path.isfile(os.path.join(name, hub.CONFIG))

    def _look_hub(self, name: str) -> Offer:
        self.policy.check(name)
        try:
            listing = hub.look(name, token=self.policy.token or False)
        except UnreachableError:
            if (folder := hub.local(name)) is None:
                raise
            with called(name, folder):  # it is here, and the hub is not
                return replace(self._offer(HUB_PREFIX + name, name, folder), kept=True)
        _check_reads(name, [file.name for file in listing.files])
        weights = sum(f.size for f in listing.files if f.name.endswith(".safetensors"))
        parameters = listing.parameters or weights // 4
        self.policy.check_size(name, parameters)
        offer = Offer(
            name=HUB_PREFIX + name,
            title=name,
            size=listing.size,
            missing=listing.missing,
            parameters=parameters,
            counted=listing.parameters is not None,
            listing=listing,
        )
        _check_disk(offer)
        return offer

    def _look_folder(self, path: Path) -> Offer:
        try:
            folder = path.resolve()
            mark = [str(folder), *(f"{f.name}{f.stat().st_mtime_ns}" for f in _of_model(folder))]
        except (OSError, RuntimeError, ValueError):
            mark = []
        if not mark or not (folder / hub.CONFIG).is_file():
            raise InputError(
                f"“{str(path)[:200]}” is no folder with a config.json here, and no hub id "
                "of the form owner/model."
            )
        # What a run leaves is called the same in every run.
        parent = f"{folder.parent.name}/" if folder.name in _OF_RUNS else ""
        title = f"{parent}{folder.name}"
        # A folder that is written anew is another model; labs and links call it by this name.
        told = re.sub(r"[^\w.]+", "-", title)[:MOST_NAME].strip("-.") or "model"
        number = hashlib.sha256(os.fsencode("\n".join(mark))).hexdigest()[:8]
        return self._offer(f"{FOLDER_PREFIX}{told}-{number}", title, folder)

    def _offer(self, name: str, title: str, folder: Path) -> Offer:
        """What lies on the disk, counted in the headers of its weights."""
        parameters = self._checked(title, folder)
        size = sum(file.stat().st_size for file in _of_model(folder))
        return Offer(
            name=name,
            title=title,
            size=size,
            missing=0,
            parameters=parameters,
            counted=True,
            folder=folder,
        )

    def _checked(self, title: str, folder: Path) -> int:
        """The exact number of parameters of a folder that may be loaded."""
        _check_reads(title, [file.name for file in _of_model(folder)])
        for file in _of_model(folder):
            if not file.name.endswith(".safetensors") and file.stat().st_size > hub.MOST_BESIDE:
                raise InputError(
                    f"{file.name} has {file.stat().st_size:,} bytes; at most {hub.MOST_BESIDE:,} "
                    "fit."
                )
        parameters = inspect(folder).parameters
        self.policy.check_size(title, parameters)
        return parameters

    def weigh(self, folder: Path) -> int:
        """Bytes that the model of a folder takes in memory.

        Raises:
            InputError: it is larger than one may be. What was not when it was opened may have been
                written anew since then.
        """
        parameters = inspect(folder).parameters
        self.policy.check_size(str(folder), parameters)
        return memory_of(parameters)

    # --- opening ----------------------------------------------------------------------------

    def begin(self, text: object, visitor: str, load: Callable[[Path], object]) -> Job:
        """Fetch a model and load it; the job tells how far it is.

        One at a time for all visitors: who asks for the same one waits for the same job.

        Args:
            text: as for :meth:`look`.
            visitor: who may cancel it.
            load: loads a folder; an InputError of it is the job's.
        """
        offer = self.look(text)
        with self._lock:
            if self.job and not self.job.done.is_set():
                if self.job.offer.name == offer.name and not self.job.cancelled.is_set():
                    return self.job
                share = self.job.received / max(1, self.job.offer.size)
                raise InputError(
                    f"{self.job.offer.title} is just being fetched here ({share:.0%}), and only "
                    "one model at a time. Try again when it is there."
                )
            job = self.job = Job(offer=offer, visitor=visitor)
        threading.Thread(
            target=self._open, args=(job, load), name="cloze-open", daemon=True
        ).start()
        return job

    def cancel(self, visitor: str) -> None:
        """End the fetching that this visitor began; where one visitor is alone, any."""
        job = self.job
        if job and (self.policy.mode == "any" or job.visitor == visitor):
            job.cancelled.set()

    def _open(self, job: Job, load: Callable[[Path], object]) -> None:
        offer = job.offer
        place = offer.listing.folder if offer.listing else offer.folder
        assert place is not None
        try:
            with called(offer.title, place):
                self._fetch_and_load(job, load)
        except InputError as error:
            told = str(error)
            if offer.listing:  # the name of its folder in the hub's cache
                told = told.replace(offer.listing.commit, offer.title)
            job.problem = told.replace(str(constants.HF_HUB_CACHE), "HF_HUB_CACHE")
        except Exception:
            _log.exception("Opening a model failed")
            job.problem = f"{offer.title} could not be opened: its files are of no kind known here."
        finally:
            job.done.set()

    def _fetch_and_load(self, job: Job, load: Callable[[Path], object]) -> None:
        offer, folder = job.offer, job.offer.folder
        if folder is None:
            token = self.policy.token or False
            folder = hub.fetch(offer.title, listing=offer.listing, token=token, report=job.report)
        job.loading = True
        if self._found.get(offer.name, ("", None))[1] != folder:
            self._checked(offer.title, folder)
            load(folder)
            # What a folder held before it was written anew is gone.
            kept = {name: found for name, found in self._found.items() if found[1] != folder}
            self._found = {**kept, offer.name: (offer.title, folder)}


def _check_reads(title: str, files: Iterable[str]) -> None:
    """InputError where a model has no tokenizer among its files: the page shows what texts do."""
    if not any(fnmatch(file, pattern) for file in files for pattern in VOCABULARIES):
        raise InputError(f"{title} has no tokenizer, so it reads no texts here.")


def _of_model(folder: Path) -> list[Path]:
    """The files of a folder that a model may consist of."""
    patterns = [*hub.PATTERNS, "*.safetensors", "*.safetensors.index.json"]
    found = [path for path in folder.iterdir() if any(fnmatch(path.name, p) for p in patterns)]
    return sorted(path for path in found if path.is_file())


def _check_disk(offer: Offer) -> None:
    place = Path(constants.HF_HUB_CACHE)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if offer.missing and offer.missing + SPARE_DISK > free:
        raise InputError(
            f"{offer.title} needs {offer.missing >> 20:,} MB more on the disk, where "
            f"{free >> 20:,} MB are free and {SPARE_DISK >> 20} MB stay so."
        )
