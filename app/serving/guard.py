"""What stands in front of every request: by which name it came, from whose page, how large.

A page of another site must neither read nor start anything here. Browsers send its requests all the
same, so two things are looked at: the name that the request came by (another site's name may point
to this machine: DNS rebinding), and the page that it came from.
"""

import contextlib
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from starlette.requests import cookie_parser
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.runs import routes as run_routes
from app.runs.data import texts as run_texts
from app.runs.owner import USER
from core_models import InputError

MOST_BYTES = 1 << 20
UPLOADS = ("/gradio_api/upload", "/upload")
"""Where Gradio takes files, and where older ones did; runs may be called so, too."""

POLICY = "; ".join(
    (
        "default-src 'self'",
        # Gradio compiles the scripts of gr.HTML with `new Function`.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        # Spaces show the page in a frame of these hosts.
        "frame-ancestors 'self' https://huggingface.co https://*.hf.space",
    )
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


@dataclass(frozen=True)
class Names:
    """The names by which a server may be called.

    Numbers (``192.168.1.5``) and ``localhost`` are always among them: no other site's name is.
    """

    own: frozenset[str] = frozenset()
    """In small letters; ``*.example.org`` stands for every name below it."""
    all: bool = False
    """Whether every name is answered to."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """This machine's names and those of ``CLOZE_HOSTS``; ``*`` there is every name.

        A Space is reached through its host alone, whatever name that writes.

        Raises:
            InputError: something in ``CLOZE_HOSTS`` is no name.
        """
        listed = [*map(_named, environment.get("CLOZE_HOSTS", "").replace(",", " ").split())]
        machine = socket.gethostname().lower()
        own = {*listed, machine, f"{machine}.local", environment.get("SPACE_HOST", "").lower()}
        everything = "*" in listed or bool(environment.get("SPACE_ID") and not listed)
        return cls(frozenset(own - {"", "*"}), everything)

    def among(self, name: str) -> bool:
        """Whether a name was given to this server, or is of its machine."""
        below = {name[at:] for at, letter in enumerate(name) if letter == "."}
        return name in self.own or any(f"*{part}" in self.own for part in below)

    def answer(self, name: str) -> bool:
        """Whether this server answers to a name."""
        if self.all or name == "localhost" or name.endswith(".localhost") or self.among(name):
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


class Guard:
    """Security headers on every answer; refuses other sites, uploads, large bodies and strangers.

    A plain ASGI class: the base class for HTTP middleware would buffer Gradio's event streams.
    """

    def __init__(self, app: ASGIApp, names: Names) -> None:
        self.app = app
        self.names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # nothing here speaks it
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refusal = _foreign(headers, self.names) or _refusal(scope, headers) or _strange(scope)
        await (refusal or self.app)(scope, receive, guarded)


def _foreign(headers: Mapping[bytes, str], names: Names) -> JSONResponse | None:
    """Refuses what comes by another name, or from a page of another site."""
    host = headers.get(b"host", "")
    if not names.answer(_name(host)):
        text = (
            f"This server does not answer to the name {host[:100]!r}. If it is one of its names, "
            "whoever runs it adds it to the variable CLOZE_HOSTS."
        )
        return JSONResponse({"detail": text, "error": text}, 421)
    origin = headers.get(b"origin")
    if origin is None:
        return None
    scheme, _, place = origin.lower().partition("://")
    asked = (host.lower(), headers.get(b"x-forwarded-host", "").lower())
    known = scheme in ("http", "https") and (place in asked or names.among(_name(place)))
    if known:
        return None
    text = f"Pages of {origin[:100]!r} may ask nothing of this server."
    return JSONResponse({"detail": text, "error": text}, 403)


def _name(host: str) -> str:
    """The name in a Host header, without its port and a last full stop."""
    name, _, port = host.lower().rpartition(":")
    name = name if name and port.isdigit() else host.lower()
    return name.rstrip(".")


def _named(text: str) -> str:
    """A name in ``CLOZE_HOSTS`` as browsers send it, also where a whole address is written."""
    place = text.rpartition("://")[2]
    name = _name(place.partition("/")[0])
    with contextlib.suppress(UnicodeError):
        if name:
            return name.encode("idna").decode()
    raise InputError(
        f"CLOZE_HOSTS names {text!r}; it must be names such as school.example.org or "
        "*.example.org, with commas or spaces between."
    )


def _refusal(scope: Scope, headers: Mapping[bytes, str]) -> JSONResponse | None:
    if _path(scope).startswith(UPLOADS):
        return JSONResponse({"detail": "This page takes no files."}, 403)
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return None
    length = headers.get(b"content-length", "")
    # Beside chunks a length says nothing: the server reads the chunks (RFC 9112, section 6.3).
    if b"transfer-encoding" in headers or not length.isdigit():
        return JSONResponse({"detail": "A length is required."}, 411)
    most = run_texts.MOST_BYTES if _path(scope) == run_routes.TEXTS else MOST_BYTES
    if int(length) > most:
        text = f"At most {most:,} bytes go in one request."
        return JSONResponse({"detail": text, "error": text}, 413)
    return None


def _path(scope: Scope) -> str:
    """The path that routes see: without the one that the server lies under behind a proxy."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    below = path.removeprefix(root) if path.startswith(f"{root}/") else path
    return "/" + below.lstrip("/")  # below a root of "/cloze/" routes see one of two slashes


def _strange(scope: Scope) -> JSONResponse | None:
    """Refuses our own routes to whoever has not signed in; Gradio looks after its own."""
    gradio = scope["app"]
    if gradio.auth is None:
        return None
    scope[USER] = _user(scope, gradio)
    if scope[USER] is None and _path(scope).startswith((run_routes.PREFIX, "/metrics")):
        return JSONResponse({"error": "Sign in first: load the page again."}, 401)
    return None


def _user(scope: Scope, gradio: Any) -> str | None:
    """Who has signed in with Gradio's page."""
    cookies: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name == b"cookie":
            # As Gradio reads them: other programs of this host may have set some of any form.
            cookies |= cookie_parser(value.decode("latin-1"))
    for kind in ("access-token", "access-token-unsecure"):
        found = cookies.get(f"{kind}-{gradio.cookie_id}")
        if found in gradio.tokens:
            return str(gradio.tokens[found])
    return None
