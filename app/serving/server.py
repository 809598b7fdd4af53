"""What surrounds Gradio: our static files, and the guard in front of every request."""

import asyncio
import contextlib
import gzip
import html
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.parts import figure
from app.serving import locales, metrics
from app.serving.calls import Calls
from app.serving.direct import Direct
from app.serving.guard import Guard, Names
from core_models import InputError

APP = Path(__file__).resolve().parents[1]
STATIC = APP.parent / "assets" / "static"
SERVED = (".js", ".css")
MOUNT = "/cloze"
WORKERS = 40
"""Threads for what blocks. Python's own rule gives two cores six, and six visitors who wait for the
trial of their settings would hold up every other page."""

KEPT_PAGES = 16
"""As they were asked for: by different names of the server, with different links."""
ADDRESSES = (b"host", b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server")
"""Headers from which Gradio takes the page's own address. Proxies add others, of each visitor."""
_LOG = logging.getLogger("cloze.server")
NO_WORD = re.compile(rb'"error": ?null')
WORD = b'"error":"The server could not make anything of this. Its log says why."'
ADVERTISING = re.compile(rb'<meta\s+(?:property|name)="(?:og|twitter):[^>]*>\s*')
FIRST_FONTS = (
    "fonts/source-serif-4-latin-400-normal.woff2",
    "fonts/source-serif-4-latin-600-normal.woff2",
    "fonts/ibm-plex-sans-latin-400-normal.woff2",
    "fonts/ibm-plex-sans-latin-600-normal.woff2",
    "fonts/ibm-plex-mono-latin-600-normal.woff2",
)


class Files(StaticFiles):
    """Static files that browsers keep but ask about each time, so that an update shows at once.

    ``mount``: where they lie. ``suffixes``: the only files that are served; None = all.
    """

    def __init__(
        self, directory: Path, mount: str, suffixes: tuple[str, ...] | None = None
    ) -> None:
        super().__init__(directory=directory)
        self.mount = mount
        self.suffixes = suffixes

    def get_path(self, scope: Scope) -> str:
        """See the base class, which takes a proxy's path off that the proxy has taken off."""
        whole = scope["path"].startswith(scope["root_path"])
        path = scope["path"].removeprefix(scope["root_path"] if whole else self.mount)
        return super().get_path({**scope, "path": path, "root_path": ""})

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
    A page has more than a megabyte, takes Gradio a tenth of a second, and is the same for a whole
    class: it is kept until the configuration changes, and goes packed, a thirteenth of that. One
    page is made at a time: what the first of a class waits for, the others are given.
    """

    def __init__(self, app: ASGIApp, links: str, before: Callable[[], None] = lambda: None) -> None:
        self.app = app
        self.links = links.encode()
        self.before = before
        self._kept: dict[Any, tuple[Any, tuple[Message, ...]]] = {}
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] != "/" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        async with self._making:
            answer = await self._page(scope, receive)
        for message in answer:
            await send({**message})  # who sends it on adds headers

    async def _page(self, scope: Scope, receive: Receive) -> tuple[Message, ...]:
        await to_thread.run_sync(self.before)
        gradio = scope["app"]
        # What Gradio writes into a page depends on its configuration and on how it was asked for.
        asked = [pair for pair in scope["headers"] if pair[0] in ADDRESSES]
        packed = any(n == b"accept-encoding" and b"gzip" in value for n, value in scope["headers"])
        key = (scope["query_string"], scope["scheme"], packed, *sorted(asked))
        if gradio.auth is not None:  # who has signed in stands in the page
            key = None
        config, answer = self._kept.get(key, (None, ()))
        if answer and config is gradio.get_blocks().config:
            return answer
        config = gradio.get_blocks().config
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        await self.app(scope, receive, collect)
        answer = await to_thread.run_sync(self._rewrite, messages, packed)
        if key is not None and messages[0]["status"] == 200:
            if len(self._kept) >= KEPT_PAGES:
                self._kept.clear()
            self._kept[key] = config, answer
        return answer

    def _rewrite(self, messages: list[Message], packed: bool) -> tuple[Message, Message]:
        start = messages[0]
        page = b"".join(message.get("body", b"") for message in messages[1:])
        headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
        if dict(headers).get(b"content-type", b"").startswith(b"text/html"):
            page = ADVERTISING.sub(b"", page).replace(b"</head>", self.links + b"\n</head>", 1)
            headers.append((b"vary", b"accept-encoding"))
            if packed:
                page = gzip.compress(page, 6)
                headers.append((b"content-encoding", b"gzip"))
        headers.append((b"content-length", str(len(page)).encode()))
        return {**start, "headers": headers}, {"type": "http.response.body", "body": page}


class Failures:
    """Puts a sentence where Gradio says ``"error": null``.

    So it answers whatever is no message for visitors: a fault of ours, or values that are not of
    the kind that a component sends. The console has the traceback.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started: list[Message] = []

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                started[:] = [message]
                if message["status"] != 500:
                    await send(message)
                return
            start, body = started[0], message.get("body", b"")
            failed = b'"success":false' in body or body.startswith(b"event: error")
            if start["status"] == 500 or failed:
                body = NO_WORD.sub(WORD, body)
            if start["status"] == 500:
                kept = [pair for pair in start["headers"] if pair[0] != b"content-length"]
                await send({**start, "headers": kept})
                start["status"] = 0  # of a longer body the start is sent once
            await send({**message, "body": body})

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            await self.app(scope, receive, told)
        except Exception:
            if started:
                raise
            _LOG.exception("%s %s", scope["method"], scope["path"])
            answer = Response(b"{%b}" % WORD, 500, media_type="application/json")
            await answer(scope, receive, send)


def app_kwargs(
    scripts: tuple[str, ...],
    styles: tuple[str, ...],
    *,
    routes: Sequence[BaseRoute] = (),
    before: Callable[[], None] = lambda: None,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, Any]:
    """Arguments of the FastAPI app that Gradio makes at launch.

    Args:
        scripts: files of ours in this package, for example "page/shell.js".
        styles: the same.
        routes: further routes.
        before: called before the page is sent.
        environment: names of the server (``CLOZE_HOSTS``) and the path that a proxy shows it under
            (``GRADIO_ROOT_PATH``, a path or a whole address).

    Raises:
        InputError: a name or the path is none.
    """
    below = environment.get("GRADIO_ROOT_PATH", "")
    if below and not below.startswith(("/", "http://", "https://")):
        raise InputError(
            f"GRADIO_ROOT_PATH is {below!r}; it must be a path such as /cloze or an address such "
            "as https://school.example.org/cloze."
        )
    root = html.escape(urlsplit(below).path.rstrip("/"))
    links = _links(scripts, styles, root)
    names = Names.read(environment)
    return {
        "routes": [
            *routes,
            Route("/", _there, methods=["HEAD"]),
            *metrics.routes(),
            *_catalogues(),
            *figure.routes(),
            *_files(),
        ],
        "middleware": [
            Middleware(Guard, names=names),
            Middleware(Head, links=links, before=before),
            Middleware(Failures),
            Middleware(Direct),
            Middleware(Calls),
        ],
        "lifespan": _staffed,
        "openapi_url": None,
    }


class _Workers(ThreadPoolExecutor):
    """Threads for asyncio, which loses a StopIteration: whoever waits for it waits for ever."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        """See the base class."""

        def done() -> Any:
            try:
                return work(*args, **options)
            except StopIteration as error:
                raise LookupError("nothing of this kind is there") from error

        return super().submit(done)


@contextlib.asynccontextmanager
async def _staffed(_: Any) -> AsyncIterator[None]:
    """Threads enough for a class, while the server runs."""
    workers = _Workers(WORKERS, thread_name_prefix="cloze-work")
    asyncio.get_running_loop().set_default_executor(workers)
    try:
        yield
    finally:
        workers.shutdown(wait=False, cancel_futures=True)


def _files() -> list[Mount]:
    """Fonts and pictures, and the scripts and styles that lie beside the Python that they serve."""
    ours = f"{MOUNT}/app"
    return [Mount(ours, Files(APP, ours, SERVED)), Mount(MOUNT, Files(STATIC, MOUNT))]


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


async def _there(_: Request) -> Response:
    """Without making the page: Gradio asks for it when it starts, and gives up after 3 s."""
    return Response(media_type="text/html", headers={"cache-control": "no-cache"})


def _links(scripts: tuple[str, ...], styles: tuple[str, ...], root: str) -> str:
    """Links to our files, never to another host. The first three run before the first paint."""
    mount = root + MOUNT
    first, others = scripts[:3], scripts[3:]
    return "\n".join(
        [
            "<title>Cloze</title>",
            '<meta name="description" content="Hide a word, see what a language model expects.">',
            f'<link rel="icon" type="image/svg+xml" href="{mount}/favicon.svg">',
            *(f'<link rel="stylesheet" href="{mount}/app/{name}">' for name in styles),
            *(
                f'<link rel="preload" as="font" href="{mount}/{name}" crossorigin>'
                for name in FIRST_FONTS
            ),
            *(f'<script src="{mount}/app/{name}"></script>' for name in first),
            *(f'<script defer src="{mount}/app/{name}"></script>' for name in others),
        ]
    )
