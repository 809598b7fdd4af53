"""A hub on this machine: what huggingface_hub asks of the real one, over folders of a test.

It speaks HTTP on localhost; ``HF_ENDPOINT`` names it. Each repository may misbehave in one way.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from huggingface_hub import constants

COMMIT = "c0ffee" + "0" * 34
CONVERTED = "facade" + "0" * 34
PATIENCE = 60.0


@dataclass(kw_only=True)
class Repository:
    """A folder as a repository of the hub, and what is wrong with it."""

    folder: Path
    status: int = 200
    """What the hub answers instead of the list of files."""
    error: str | None = None
    """The hub's code of that error, as ``GatedRepo``."""
    token: str | None = None
    """Who has it is let in."""
    counted: bool = True
    """Whether the list tells how many parameters the weights have."""
    cuts: int = 0
    """How often the weights still break off in the middle."""
    held: threading.Event | None = None
    """Where there is one, the second half of the weights comes when it is set."""
    claimed: dict[str, int] = field(default_factory=dict)
    """Sizes that the list tells, by file; a file that is not there is listed, too."""
    short: bool = False
    """Whether half of the weights is all that ever comes, and is told to be all."""
    conversion: Path | None = None
    """What the hub's own pull request has, with safetensors in place of pickles."""
    older: dict[str, Path] = field(default_factory=dict)
    """Commits before the newest one, with their folders."""


@dataclass
class Hub:
    """The repositories, and what was asked for."""

    address: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and range of every request."""
    tokens: set[str] = field(default_factory=set)
    instead: bytes | None = None
    """What is answered to whatever is asked, as a network does that one has to log in to."""

    def add(self, name: str, folder: Path, **wrong: Any) -> Repository:
        """Serve a folder under ``owner/model``."""
        self.repositories[name] = Repository(folder=folder, **wrong)
        return self.repositories[name]

    def fetched(self, ending: str) -> list[str | None]:
        """The ranges of the requests for files of this ending; None for a whole file."""
        return [part for how, path, part in self.asked if how == "GET" and path.endswith(ending)]


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub that serves until the end of the block."""
    hub = Hub()

    class Handler(_Handler):
        pass

    Handler.hub = hub
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield hub
    for each in hub.repositories.values():
        if each.held:
            each.held.set()
    server.shutdown()
    server.server_close()


@contextmanager
def stand_in(patch: pytest.MonkeyPatch, cache: Path) -> Iterator[Hub]:
    """A hub in the place of the public one, and a cache of its own."""
    patch.setattr(constants, "HF_HUB_OFFLINE", False)
    patch.setattr(constants, "HF_HUB_CACHE", str(cache))
    with serving() as hub:
        patch.setenv("HF_ENDPOINT", hub.address)
        yield hub


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        parts = urlsplit(self.path)
        self.hub.asked.append((self.command, parts.path, self.headers.get("Range")))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.hub.tokens |= {token} - {""}
        path = parts.path.strip("/").removeprefix("api/models/").split("/")
        name, rest = "/".join(path[:2]), path[2:]
        twice = b" //" in self.raw_requestline  # Python's server takes one of two slashes away
        found = None if twice else self.hub.repositories.get(name)
        if self.hub.instead is not None:
            self._send(200, self.hub.instead, {})
        elif found is None:
            self._send(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        elif found.status != 200 and (not found.token or token != found.token):
            self._send(found.status, {}, {"X-Error-Code": found.error} if found.error else {})
        elif parts.path.startswith("/api/models/"):
            self._send(200, self._told(name, found, rest, parse_qs(parts.query)), {})
        else:
            self._file(found, rest[1], "/".join(rest[2:]), body=body)

    def _told(self, name: str, found: Repository, rest: list[str], query: Any) -> Any:
        if rest[:1] == ["discussions"]:
            pull = {
                "title": "Adding `safetensors` variant of this model",
                "num": 7,
                "author": {"name": "SFconvertbot"},
                "repo": {"name": name, "type": "model"},
                "isPullRequest": True,
                "status": "open",
                "createdAt": "2024-01-01T00:00:00.000Z",
            }
            first = query.get("p", ["0"]) == ["0"]
            pulls = [pull] if found.conversion and first else []
            return {"discussions": pulls, "count": len(pulls), "start": 0}
        if rest[:1] == ["commits"]:
            return [
                {"id": each, "authors": [], "date": "2024-01-01T00:00:00.000Z", "title": "t"}
                | {"message": ""}
                for each in (CONVERTED, COMMIT)
            ]
        pulled = rest[:1] == ["revision"] and found.conversion is not None
        folder = found.conversion if pulled and found.conversion else found.folder
        commit = CONVERTED if pulled else COMMIT
        if rest[:1] == ["revision"] and rest[1] in found.older:
            commit = rest[1]
            folder = found.older[commit]
        return {
            "id": name,
            "sha": commit,
            "siblings": [*_listed(folder, found.claimed)],
            **({"safetensors": _counted(folder)} if found.counted else {}),
        }

    def _file(self, found: Repository, commit: str, file: str, *, body: bool) -> None:
        folder = found.conversion if commit == CONVERTED else found.older.get(commit, found.folder)
        path = (folder or found.folder) / file
        if not path.is_file():
            self._send(404, {}, {"X-Error-Code": "EntryNotFound"})
            return
        content = path.read_bytes()
        large = file.endswith(".safetensors")
        etag = hashlib.sha256(content).hexdigest() if large else _git_id(content)
        start = int((self.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        if found.short and large and body:
            content, start = content[: len(content) // 2], 0
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if not body:
            return
        half = max(start, len(content) // 2)
        self.wfile.write(content[start:half])
        self.wfile.flush()
        if large and found.cuts:
            found.cuts -= 1
            self.close_connection = True
            return
        if large and found.held:
            found.held.wait(PATIENCE)
        self.wfile.write(content[half:])

    def _send(self, status: int, told: Any, headers: dict[str, str]) -> None:
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _listed(folder: Path, claimed: dict[str, int]) -> Iterator[dict[str, Any]]:
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    for name in sorted({*names, *claimed}):
        there = (folder / name).is_file() and ".." not in name
        content = (folder / name).read_bytes() if there else b""
        size = claimed.get(name, len(content))
        large = {"lfs": {"size": size, "sha256": hashlib.sha256(content).hexdigest()}}
        large["lfs"]["pointerSize"] = 134
        yield {"rfilename": name, "size": size, "blobId": _git_id(content)} | (
            large if name.endswith(".safetensors") else {}
        )


def _counted(folder: Path) -> dict[str, Any]:
    total = 0
    for path in folder.glob("*.safetensors"):
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        try:
            header = json.loads(content[8 : 8 + length])
        except ValueError:
            continue
        for tensor in header.values():
            shape = tensor.get("shape")
            if shape is not None:
                count = 1
                for each in shape:
                    count *= each
                total += count
    return {"parameters": {"F32": total}, "total": total}


def _git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
