"""What surrounds Gradio: our static files and a guard in front of every request."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.parts import figure
from app.runs import routes as run_routes
from app.runs import texts as run_texts
from app.serving import locales

APP = Path(__file__).resolve().parents[1]
STATIC = APP.parent / "assets" / "static"
SERVED = (".js", ".css")
MOUNT = "/cloze"
MOST_BYTES = 1 << 20
WORKERS = 40
"""Threads for what blocks. Python's own rule gives two cores six, and six visitors who wait for the
trial of their settings would hold up every other page."""

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
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
ADVERTISING = re.compile(rb'<meta\s+(?:property|name)="(?:og|twitter):[^>]*>\s*')
FIRST_FONTS = (
    "fonts/source-serif-4-latin-400-normal.woff2",
    "fonts/source-serif-4-latin-600-normal.woff2",
    "fonts/ibm-plex-sans-latin-400-normal.woff2",
    "fonts/ibm-plex-sans-latin-600-normal.woff2",
    "fonts/ibm-plex-mono-latin-600-normal.woff2",
)


class Guard:
    """Security headers on every answer; no uploads, no large bodies.

    A plain ASGI class: the base class for HTTP middleware would buffer Gradio's event streams.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        refusal = _refusal(scope)
        await (refusal or self.app)(scope, receive, guarded)


def _refusal(scope: Scope) -> JSONResponse | None:
    if "/upload" in scope["path"]:
        return JSONResponse({"detail": "This page takes no files."}, 403)
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return None
    length = dict(scope["headers"]).get(b"content-length", b"")
    if not length.isdigit():
        return JSONResponse({"detail": "A length is required."}, 411)
    most = run_texts.MOST_BYTES if scope["path"] == run_routes.TEXTS else MOST_BYTES
    if int(length) > most:
        text = f"At most {most:,} bytes go in one request."
        return JSONResponse({"detail": text, "error": text}, 413)
    return None


class Files(StaticFiles):
    """Static files that browsers keep but ask about each time, so that an update shows at once.

    ``suffixes``: the only files that are served; None = all.
    """

    def __init__(self, directory: Path, suffixes: tuple[str, ...] | None = None) -> None:
        super().__init__(directory=directory)
        self.suffixes = suffixes

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """See the base class."""
        if self.suffixes is not None and not path.endswith(self.suffixes):
            return "", None
        return super().lookup_path(path)

    def file_response(self, *args: Any, **kwargs: Any) -> Any:
        """See the base class."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


class Head:
    """Puts our links into the page that Gradio sends.

    Gradio's own ``head=`` is added by its script, long after the first paint: the page would first
    show in the wrong colours. The tags of Gradio that advertise itself (and name another host) go.
    """

    def __init__(self, app: ASGIApp, links: str, before: Callable[[], None] = lambda: None) -> None:
        self.app = app
        self.links = links.encode()
        self.before = before

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] != "/" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        await to_thread.run_sync(self.before)
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                for answer in self._rewrite(messages):
                    await send(answer)

        await self.app(scope, receive, collect)

    def _rewrite(self, messages: list[Message]) -> tuple[Message, Message]:
        start = messages[0]
        page = b"".join(message.get("body", b"") for message in messages[1:])
        headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
        if dict(headers).get(b"content-type", b"").startswith(b"text/html"):
            page = ADVERTISING.sub(b"", page).replace(b"</head>", self.links + b"\n</head>", 1)
        headers.append((b"content-length", str(len(page)).encode()))
        return {**start, "headers": headers}, {"type": "http.response.body", "body": page}


def app_kwargs(
    scripts: tuple[str, ...],
    styles: tuple[str, ...],
    *,
    routes: Sequence[BaseRoute] = (),
    before: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Arguments of the FastAPI app that Gradio makes at launch.

    Args:
        scripts: files of ours in this package, for example "page/shell.js".
        styles: the same.
        routes: further routes.
        before: called before the page is sent.
    """
    links = _links(scripts, styles)
    return {
        "routes": [*routes, *_catalogues(), *figure.routes(), *_files()],
        "middleware": [Middleware(Guard), Middleware(Head, links=links, before=before)],
        "lifespan": _staffed,
        "openapi_url": None,
    }


@contextlib.asynccontextmanager
async def _staffed(_: Any) -> AsyncIterator[None]:
    """Threads enough for a class, while the server runs."""
    workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="cloze-work")
    asyncio.get_running_loop().set_default_executor(workers)
    try:
        yield
    finally:
        workers.shutdown(wait=False, cancel_futures=True)


def _files() -> list[Mount]:
    """Fonts and pictures, and the scripts and styles that lie beside the Python that they serve."""
    return [Mount(f"{MOUNT}/app", Files(APP, SERVED)), Mount(MOUNT, Files(STATIC))]


def _catalogues() -> list[Route]:
    """The translations, read once: a broken file stops the start and not a visitor."""
    return [
        Route(f"{MOUNT}/locales/{language}.js", _served(locales.script(language)))
        for language in locales.languages()
    ]


def _served(script: str) -> Callable[[Request], Response]:
    def answer(_: Request) -> Response:
        headers = {"cache-control": "no-cache"}
        return Response(script, media_type="text/javascript", headers=headers)

    return answer


def _links(scripts: tuple[str, ...], styles: tuple[str, ...]) -> str:
    """Links to our files, never to another host. The first three run before the first paint."""
    first, others = scripts[:3], scripts[3:]
    return "\n".join(
        [
            "<title>Cloze</title>",
            '<meta name="description" content="Hide a word, see what a language model expects.">',
            f'<link rel="icon" type="image/svg+xml" href="{MOUNT}/favicon.svg">',
            *(f'<link rel="stylesheet" href="{MOUNT}/app/{name}">' for name in styles),
            *(
                f'<link rel="preload" as="font" href="{MOUNT}/{name}" crossorigin>'
                for name in FIRST_FONTS
            ),
            *(f'<script src="{MOUNT}/app/{name}"></script>' for name in first),
            *(f'<script defer src="{MOUNT}/app/{name}"></script>' for name in others),
        ]
    )
