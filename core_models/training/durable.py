"""Writing files so that a crash at any moment leaves either the old state or the new one."""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core_models import plain_files

try:
    import fcntl
except ImportError:  # Windows: two writers in one folder are then not kept apart.
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"
ASIDE = ".aside"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Identity:
    """A process: its number alone may be given to another one later."""

    pid: int
    started: int | None
    """Start time in clock ticks since boot; None where the system does not tell."""
    boot: str | None
    """Boot id of the machine; None where the system does not tell."""

    @classmethod
    def current(cls, pid: int) -> "Identity":
        """What process ``pid`` looks like now."""
        return cls(pid, _started(pid), _boot())

    @classmethod
    def from_json(cls, values: Any) -> "Identity":
        """Read :meth:`to_json`; anything else gives an identity that is not alive."""
        if not isinstance(values, dict) or not isinstance(values.get("pid"), int):
            return cls(-1, None, None)
        started = values.get("started")
        return cls(values["pid"], started if isinstance(started, int) else None, values.get("boot"))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def alive(self) -> bool:
        """Whether exactly this process still runs. A zombie does not."""
        if self.pid <= 0 or self.boot != _boot():
            return False
        if Path("/proc/self/stat").exists():
            return self.started is not None and _started(self.pid) == self.started
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file in one step; what fails leaves nothing: on a full disk room is needed."""
    # A name of its own: of two who write the same at once, neither takes the other's away.
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}{ASIDE}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def append_line(path: Path, line: str) -> None:
    """Append a line in one write. A torn line before it is closed, so that it stays alone."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        if size:
            os.lseek(descriptor, size - 1, os.SEEK_SET)
            torn = os.read(descriptor, 1) != b"\n"
        else:
            torn = False
        content = ("\n" if torn else "").encode() + line.encode() + b"\n"
        while content:
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Wait until a file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Make a folder whose final name appears only when it is complete and on the disk.

    ``write`` fills a folder beside it. A complete folder of that name is left as it is; a damaged
    one is replaced. What fails half-way is removed: on a full disk the room is needed to say so.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        if verify(path) is None:
            return
        remove_folder(path)
    aside = path.with_name(f".{path.name}{ASIDE}")
    if aside.exists():
        shutil.rmtree(aside)
    aside.mkdir()
    try:
        write(aside)
        _seal(aside)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    aside.replace(path)
    _sync_folder(path.parent)


def _seal(folder: Path) -> None:
    """Bring every file to the disk, and write the manifest: it tells a whole folder from a part."""
    files = {}
    for file in sorted(item for item in folder.rglob("*") if item.is_file()):
        sync_file(file)
        name = file.relative_to(folder).as_posix()
        files[name] = {"bytes": file.stat().st_size, "sha256": _sha256(file)}
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps({"files": files}, indent=2) + "\n", encoding="utf-8")
    sync_file(manifest)
    for inner in [item for item in folder.rglob("*") if item.is_dir()]:
        _sync_folder(inner)
    _sync_folder(folder)


def remove_folder(path: Path, unless: Callable[[], bool] = lambda: False) -> None:
    """Remove a folder; its name is gone before its first file is.

    Args:
        path: of the folder.
        unless: asked once the name is gone; True brings the folder back.
    """
    aside = path.with_name(f".{path.name}.removed{ASIDE}")
    if aside.exists():
        shutil.rmtree(aside)
    path.replace(aside)
    if unless():
        aside.replace(path)
    else:
        shutil.rmtree(aside)


def verify(path: Path) -> str | None:
    """What is wrong with a folder made by :func:`write_folder`, in words; None when it is whole."""
    try:
        files = json.loads(plain_files.read(path / MANIFEST))["files"]
        for name, expected in files.items():
            size = plain_files.check(path / name)
            if size != expected["bytes"]:
                return f"{name} has {size} bytes instead of {expected['bytes']}"
            if _sha256(path / name) != expected["sha256"]:
                return f"{name} does not match its checksum"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"the manifest cannot be read ({error})"
    return None


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Hold a file lock; gives False where another process holds it."""
    with path.open("a") as file:
        if fcntl is None:
            yield True
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _started(pid: int) -> int | None:
    try:
        content = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name in brackets may hold spaces and brackets, so fields are counted after the last one.
    fields = content.rpartition(")")[2].split()
    return None if len(fields) < 20 or fields[0] in "ZX" else int(fields[19])


def uptime() -> float:
    """Seconds of this machine, which go on as they did when somebody sets the clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def process_start() -> float:
    """When this process was started, in seconds since 1970; roughly now where nobody tells."""
    ticks = _started(os.getpid())
    if ticks is None or not hasattr(time, "CLOCK_BOOTTIME"):
        return time.time()
    age = uptime() - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


def _boot() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _sync_folder(path: Path) -> None:
    # Some file systems refuse to open or sync a folder; the rename itself is then all there is.
    with contextlib.suppress(OSError):
        sync_file(path)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
