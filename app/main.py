"""Builds the page and starts its server."""

import contextlib
import gc
import os
import signal
import socket
import sys
from functools import partial
from threading import Event, Thread
from typing import NamedTuple

import gradio as gr

from app.page import places, sentence
from app.page.theme import theme
from app.parts import figure
from app.parts.views import view
from app.runs import shipped as shipped_runs
from app.runs.reports.reports import Reports
from app.runs.routes import RunRoutes
from app.runs.runs import Runs
from app.serving import api, calls, metrics, pages, server, sign_in
from app.serving.opened import suggestions
from app.serving.opened.library import Opened
from app.serving.session import Session
from app.serving.settings import Settings
from core_models import InputError

SCRIPTS = (
    "page/language.js",
    "page/gradio.js",
    "page/shell.js",
    "page/frame.js",
    "page/share.js",
    "page/link.js",
    "page/offline.js",
    "page/chips.js",
    "page/model-card.js",
    "parts/controls.js",
    "page/tools.js",
    "page/open-model.js",
)
SESSIONS = 500
"""Pages that Gradio remembers (pages.py). By itself it would keep ten thousand,
closed ones too. A forgotten page loses nothing, as handlers keep nothing for a visitor."""
STOPPING_SECONDS = 8.0
"""Most time for saving runs: containers wait ten seconds."""
TURN_SECONDS = 0.0005
"""For which a thread computes in Python while another waits for its turn: ten times as often as by
itself, because each answer changes between the threads of requests and of models."""
FILES = 10_240
"""Connections and files that may be open at once; macOS takes no larger number. A browser opens six
connections, so a class of 300 has more than the 1,024 that Linux gives a program by itself."""
QUEUE_SECONDS = 0.02
"""Between two looks at the queue, which holds only what is answered one at a time (views.py)."""
# Gradio may be there before our scripts are, which it does not wait for: a link would be forgotten.
OPENING = """async (text, model) => {
  await window.Cloze.loaded;
  return window.Cloze.opening?.(text, model) ?? [text, model];
}"""
STYLES = ("page/page.css",)


class Page(NamedTuple):
    """The page and the parts of it that change while it is served."""

    blocks: gr.Blocks
    shared: sentence.Shared

    def renew(self, session: Session) -> None:
        """Offer the models that came since, of runs and of others; before the page is sent."""
        lists = [(self.shared.model, session.choices())]
        if self.shared.opening and session.opened:
            lists.append((self.shared.opening.named, suggestions.choices(session.opened)))
        if any(choices != part.choices for part, choices in lists):
            for part, choices in lists:
                part.choices = choices
            self.blocks.config = self.blocks.get_config_file()


def build(session: Session, settings: Settings, reports: Reports | None = None) -> Page:
    """The page: every lab is laid out first, then wired, so that labs may listen to all of it."""
    with calls.Blocks(title="Cloze", fill_width=True, analytics_enabled=False) as page:
        # While the page is empty: Gradio writes down all that is on it each time it is asked.
        page.queue(api_open=False, max_size=64)
        view("header")
        with gr.Column(elem_id="frame", min_width=0):
            shared = sentence.build(session, settings)
            parts = places.build(shared)
        places.outside(shared, session)
        sentence.wire(shared, session)
        places.wire(parts, shared, session)
        api.add(session, reports)
        # Open with the text and model of the address (link.js), without asking Python.
        opening = [shared.text, shared.model]
        page.load(None, opening, opening, js=OPENING)
    # Gradio's own thousand looks a second are a tenth of a processor at rest.
    page._queue.sleep_when_free = QUEUE_SECONDS
    return Page(page, shared)


def launch(settings: Settings | None = None) -> None:
    """Start the server and stay until it is interrupted."""
    stop = Event()
    # Before anything trains or answers: by itself the signal ends the process, unsaved.
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        settings = settings or Settings.from_environment()
        allow_files()
        check_host(settings.host)
        pass_proxies_by(settings.host)
        shipped_runs.install(settings.runs)
        opened = Opened(settings.opening)
        runs = Runs(
            settings.runs,
            slots=settings.slots,
            enabled=settings.training,
            shared=settings.shared,
            limits=settings.limits,
            command=settings.command,
            others=opened,
        )
        session = Session(threads=settings.threads, library=runs, opened=opened)
        check_model(settings, session)
        page, address = start(session, settings, runs)
    except InputError as error:
        raise SystemExit(str(error)) from None
    except OSError as error:
        if error.errno:
            raise SystemExit(f"The page could not start: {error}") from None
        # Gradio's word for a port that is taken.
        raise SystemExit(
            f"The page could not start: port {settings.port or 7860} is taken by another program. "
            "Choose another one with PORT=."
        ) from None
    sys.setswitchinterval(TURN_SECONDS)
    # What the libraries made stays; to look at all of it would hold answers up for half a second.
    gc.collect()
    gc.freeze()
    gc.enable()
    if settings.lines:
        metrics.write_lines()
    sys.stdout.write(f"Cloze is open at {address} (stop it with Ctrl+C)\n")
    sys.stdout.flush()
    _stay(page, runs, stop)


def allow_files() -> None:
    """Let this program have as many connections as a class needs, where the system allows it."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows knows no such limit
        import resource  # noqa: PLC0415

        now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
        if now != resource.RLIM_INFINITY and now < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def check_host(host: str | None) -> None:
    """InputError for an address that is none of this machine's, for which Gradio blames ports."""
    if host is None:
        return
    try:
        found = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.bind(address)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name"
        raise InputError(
            f"CLOZE_HOST is {host!r}, on which this machine cannot listen ({reason}); it must be "
            "127.0.0.1, 0.0.0.0 (all other machines may come), or another address of this machine."
        ) from None


def pass_proxies_by(host: str | None) -> None:
    """Gradio asks the page once when it starts: that goes through no proxy of the network."""
    own = (host or os.environ.get("GRADIO_SERVER_NAME", "")).strip("[]")
    past = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    names = [past, "localhost", "127.0.0.1", own]
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(filter(None, names))


def check_model(settings: Settings, session: Session) -> None:
    """InputError where the page was to open with a model that is not here."""
    known = [name for _, name in session.choices()]
    if known and settings.model not in (Settings.model, *known):
        raise InputError(
            f"CLOZE_MODEL is {settings.model!r}; it must be one of {', '.join(known)}. The folder "
            "that holds another model's folder goes into CLOZE_MODELS."
        )


def _stay(page: gr.Blocks, runs: Runs, stop: Event) -> None:
    """Serve until somebody interrupts; whoever sends SIGTERM ends the runs as well, saved.

    That is what containers and service managers send, which then end every process.
    """
    with contextlib.suppress(KeyboardInterrupt):
        stop.wait()
    if stop.is_set() and runs.enabled:
        # Another server of the same folder may be doing it, and a disk may be full.
        with contextlib.suppress(InputError, OSError):
            runs.rest(STOPPING_SECONDS)
    page.close()


def _warm(session: Session, model: str) -> None:
    """What the first visitor would wait for."""
    session.warm(model)
    figure.warm()


def start(session: Session, settings: Settings, runs: Runs) -> tuple[gr.Blocks, str]:
    """Start the server in the background; returns the page and its address."""
    reports = Reports(runs)
    page = build(session, settings, reports)
    # Before a thread computes: a setting that is no good ends the process.
    around = server.app_kwargs(
        (*SCRIPTS, *places.scripts()),
        STYLES,
        routes=RunRoutes(runs, reports, session).routes(),
        before=partial(page.renew, session),
    )
    Thread(target=_warm, args=(session, settings.model), name="cloze-warm", daemon=True).start()
    _, address, _ = page.blocks.launch(
        theme=theme(),
        app_kwargs=around,
        server_name=settings.host,
        server_port=settings.port,
        share=False,
        prevent_thread_lock=True,
        quiet=True,
        show_error=False,
        auth=settings.register.admits if settings.register else None,
        auth_message=sign_in.MESSAGE if settings.register else None,
        footer_links=[],
        run_history=False,
        enable_monitoring=False,
        max_file_size="1mb",
        state_session_capacity=SESSIONS,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
    )
    pages.remember_little(page.blocks)
    return page.blocks, str(address)
