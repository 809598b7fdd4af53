"""A run's model as a zip that plain transformers opens: weights, tokenizer, card. No Gradio in it.

Nothing is computed and no PyTorch is loaded: a run folder already holds its models in the format of
transformers. Weights that lie in several files there are put into one, tensor for tensor.
"""

import asyncio
import errno
import json
import logging
import re
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from app.runs import damage, room
from app.runs import models as run_models
from app.runs import process as run_process
from app.runs.export import card as run_card
from app.runs.names import stays
from app.runs.runs import Runs
from core_models import InputError, plain_files
from core_models.training import durable
from core_models.training.folder import RunFolder
from core_models.training.race_folder import RaceFolder

GENERATOR = "generator"
WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
_LEFT_OUT = (durable.MANIFEST, "README.md", INDEX, run_card.RECIPE)
_CHUNK = 1 << 20
STALLED = 120.0
"""Seconds in which a browser takes something of a download; its file waits on the disk."""
_MOST_BESIDE = 100_000_000
"""Bytes of a file beside the weights."""
_TRIES = 3
_NO_ROOM = "The server has no room to pack this model at the moment. Try again later."
_LOG = logging.getLogger("cloze.train")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
"""Names that Windows keeps for devices."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A model that lies in a run folder, and its generator where one lies beside it."""

    step: int
    model: Path
    generator: Path | None
    final: bool
    """Whether it is the model of a finished run."""

    @property
    def folders(self) -> dict[str, Path]:
        """Both folders that there are."""
        beside = {} if self.generator is None else {GENERATOR: self.generator}
        return {"model": self.model} | beside


def saved(folder: RunFolder, step: int | None = None) -> Saved:
    """The model that would be exported now.

    Args:
        folder: of a run.
        step: a snapshot's; None = the finished model, else that of the last checkpoint.

    Raises:
        InputError: a race, no model yet, or no such snapshot.
    """
    if isinstance(folder, RaceFolder):
        raise InputError(
            "A race has several models, so there is no one to export. Train the one that you want "
            "as a run of its own and export that."
        )
    part = "" if step is None else f"step-{step}"
    path = run_models.model_path(folder, part)
    if path == folder.model_path:
        known, final = int(folder.status().get("step") or 0), True
    else:
        owner = path if step is not None else path.parent
        known, final = int(owner.name.removeprefix("step-")), False
    generator = path.parent / GENERATOR
    there = step is None and (generator / "config.json").is_file()
    return Saved(step=known, model=path, generator=generator if there else None, final=final)


def available(folder: RunFolder) -> dict[str, int] | None:
    """Step and bytes of what could be exported now; None where there is nothing."""
    try:
        found = saved(folder)
        sizes = [path.stat().st_size for each in found.folders.values() for path in _files(each)]
    except (InputError, OSError):
        return None  # nothing yet, or replaced this very moment
    return {"step": found.step, "bytes": sum(sizes)}


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A zip in a file that has no name any more: it is gone when it is closed."""

    file: IO[bytes]
    name: str
    bytes: int


def pack(runs: Runs, run: str, step: int | None = None) -> Packed:
    """Write the zip; takes as long as copying the model does.

    Args:
        runs: the service.
        run: id of a run.
        step: see :func:`saved`.

    Raises:
        InputError: there is nothing to export, or no room for it.
    """
    folder = runs.folder(run)
    for _ in range(_TRIES):
        file = _aside()
        try:
            found = saved(folder, step)
            name = stem(str(runs.config(run).get("name") or ""), run)
            name += "" if found.final else f"-step-{found.step}"
            _write(file, runs, folder, found, name)
        except FileNotFoundError:
            file.close()  # a checkpoint was replaced by the next one while it was read
        except OSError as error:
            file.close()
            if room.is_full(error) or error.errno == errno.EFBIG:
                raise InputError(_NO_ROOM) from None
            raise
        except BaseException:
            file.close()
            with damage.readable(run):
                raise
        else:
            size = file.tell()
            file.seek(0)
            return Packed(file=file, name=f"{name}.zip", bytes=size)
    raise InputError("The model was replaced by a newer one each time it was packed. Try again.")


def _aside() -> IO[bytes]:
    """A file without a name; InputError where the folder of temporary files takes none."""
    try:
        return tempfile.TemporaryFile(prefix="cloze-export-")
    except OSError:
        _LOG.warning("no temporary file", exc_info=True)
        raise InputError(_NO_ROOM) from None


def stem(name: str, run: str) -> str:
    """A name for people as one that every system takes for a file and a folder."""
    plain = re.sub(r"[^\w.-]+", "-", name[:60]).strip("-_.")
    if not plain or plain.lower() == GENERATOR or _RESERVED.fullmatch(plain):
        return run
    return plain


def _write(file: IO[bytes], runs: Runs, folder: RunFolder, found: Saved, name: str) -> None:
    card = run_card.Card.of(runs, folder, found.step, final=found.final)
    # Weights hardly shrink, and a stored file is written as fast as it is read.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for kind, source in found.folders.items():
            top = name if kind == "model" else kind
            config = run_process.read_json(source / "config.json")
            text = card.text(config, top, generator=kind != "model", beside=found.folders.keys())
            _add_bytes(archive, f"{top}/README.md", text.encode())
            _check_links(source, folder.path)
            _add_folder(archive, top, source)
        recipe = json.dumps(card.recipe, indent=2, ensure_ascii=False) + "\n"
        _add_bytes(archive, f"{name}/{run_card.RECIPE}", recipe.encode())


def _files(folder: Path) -> list[Path]:
    """What of a model folder goes into a zip."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and path.name not in _LEFT_OUT and not path.name.startswith(".")
    )


def _check_links(model: Path, run: Path) -> None:
    """InputError where a file of a model lies outside its run: it may be any of this machine."""
    for path in _files(model):
        if not stays(path, run):
            raise InputError(
                f"{path.name} of this model is a link that leads out of the run, so it cannot be "
                "packed. Put the file itself there."
            )


def _add_folder(archive: zipfile.ZipFile, top: str, folder: Path) -> None:
    weights = _weights(folder)
    for path in _files(folder):
        if path.suffix != ".safetensors":
            _add_bytes(archive, f"{top}/{path.name}", plain_files.read(path, _MOST_BESIDE))
    size, chunks = _whole(weights)
    _add(archive, f"{top}/{WEIGHTS}", size, chunks)


def _weights(folder: Path) -> list[Path]:
    """The files of weights: those that the index lists, where there is one.

    Raises:
        InputError: one of them is missing.
        FileNotFoundError: the folder is gone.
    """
    places = run_process.read_json(folder / INDEX).get("weight_map")
    names = {str(name) for name in places.values()} if isinstance(places, dict) else {WEIGHTS}
    there = {path.name: path for path in _files(folder)}
    if missing := sorted(names - there.keys()):
        raise _damaged(missing[0])
    return [there[name] for name in sorted(names)]


def _damaged(name: str) -> InputError:
    return InputError(f"{name} of this model is damaged, so it cannot be packed.")


def _add_bytes(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    _add(archive, name, len(content), [content])


def _add(archive: zipfile.ZipFile, name: str, size: int, chunks: Iterable[bytes]) -> None:
    about = zipfile.ZipInfo(name, time.localtime()[:6])
    about.external_attr = 0o644 << 16
    about.file_size = size  # decides whether the entry needs the form for large files
    with archive.open(about, "w") as entry:
        for chunk in chunks:
            entry.write(chunk)


def _whole(paths: list[Path]) -> tuple[int, Iterator[bytes]]:
    """Size and content of one safetensors file with the tensors of all: headers joined, data after.

    The format: 8 bytes with the length of the header, the header as JSON, the data
    (https://github.com/huggingface/safetensors#format).
    """
    joined: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    begin, starts = 0, []
    for path in paths:
        length, header = _head(path)
        starts.append(8 + length)
        for name, about in header.items():
            if name != "__metadata__":
                offsets = [begin + place for place in about["data_offsets"]]
                joined[name] = about | {"data_offsets": offsets}
        begin += path.stat().st_size - starts[-1]
    text = json.dumps(joined, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)

    def content() -> Iterator[bytes]:
        yield len(text).to_bytes(8, "little") + text
        for path, start in zip(paths, starts, strict=True):
            with path.open("rb") as file:
                file.seek(start)
                while chunk := file.read(_CHUNK):
                    yield chunk

    return 8 + len(text) + begin, content()


def _head(path: Path) -> tuple[int, Mapping[str, Any]]:
    """Length and content of the header of a file of weights."""
    with plain_files.opened(path) as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if length <= plain_files.MOST_JSON else b""
    try:
        header = json.loads(text)
        offsets = [about["data_offsets"] for about in header.values() if "data_offsets" in about]
    except (ValueError, RecursionError, AttributeError, TypeError):
        header, offsets = {}, []
    if not offsets:
        raise _damaged(path.name)
    return length, header


class Download(StreamingResponse):
    """A packed model on its way to a browser; its file is closed however that ends."""

    def __init__(self, packed: Packed) -> None:
        """Nothing is read yet."""
        plain = packed.name.encode("ascii", "ignore").decode().lstrip("-_.")
        plain = plain if plain not in ("", "zip") else "model.zip"
        headers = {
            "content-length": str(packed.bytes),
            "content-disposition": f'attachment; filename="{plain}"; '
            f"filename*=UTF-8''{quote(packed.name)}",
            "cache-control": "no-store",
        }
        super().__init__(_chunks(packed.file), media_type="application/zip", headers=headers)
        self._file = packed.file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; whoever takes nothing of it for a while has gone."""
        stalled = False

        async def patient(message: Message) -> None:
            nonlocal stalled
            try:
                await asyncio.wait_for(send(message), STALLED)
            except TimeoutError:
                stalled = True
                raise

        try:
            await super().__call__(scope, receive, patient)
        except (TimeoutError, ClientDisconnect):
            if not stalled:
                raise
        finally:
            self._file.close()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Read by a thread, chunk for chunk."""
    while chunk := file.read(_CHUNK):
        yield chunk
