"""Builds the page and starts its server."""

import json
import sys
from threading import Thread

import gradio as gr

from app import api, sentence, server
from app.session import Session
from app.settings import Settings
from app.tabs import attention, mask
from app.theme import theme
from app.views import view
from core_models import InputError

TABS = (("Mask", mask), ("Attention", attention))
SCRIPTS = (
    "shell.js",
    "frame.js",
    "link.js",
    "chips.js",
    "tools.js",
    "guess.js",
    "predictions.js",
    "attention.js",
)
OPENING = "(text, model) => window.Cloze.opening?.(text, model, %s) ?? [text, model]"
STYLES = ("cloze.css", "attention.css")


def build(session: Session, settings: Settings) -> gr.Blocks:
    """The page: every tab is laid out first, then wired, so that tabs may listen to all of it."""
    with gr.Blocks(title="Cloze", fill_width=True, analytics_enabled=False) as page:
        view("header")
        shared = sentence.build(session, settings)
        controls = []
        with gr.Tabs(elem_id="tabs"):
            for label, tab in TABS:
                with gr.Tab(label, elem_id=f"tab-{label.lower()}"):
                    controls.append(tab.build(shared))
        sentence.wire(shared, session)
        for (_, tab), parts in zip(TABS, controls, strict=True):
            tab.wire(parts, shared, session)
        api.add(session)
        _follow_links(page, shared, session)
    page.queue(api_open=False, max_size=64)
    return page


def _follow_links(page: gr.Blocks, shared: sentence.Shared, session: Session) -> None:
    """Open with the text and model of the address (link.js), without asking Python."""
    parts = [shared.text, shared.model]
    names = json.dumps([info.name for info in session.models()])
    page.load(None, parts, parts, js=OPENING % names)


def launch(settings: Settings | None = None) -> None:
    """Start the server and stay until it is interrupted."""
    try:
        settings = settings or Settings.from_environment()
        page, address = start(Session(threads=settings.threads), settings)
    except InputError as error:
        raise SystemExit(str(error)) from None
    except OSError:  # Gradio's word for a port that is taken
        raise SystemExit(
            f"The page could not start: port {settings.port or 7860} is taken by another program. "
            "Choose another one with PORT=."
        ) from None
    sys.stdout.write(f"Cloze is open at {address} (stop it with Ctrl+C)\n")
    sys.stdout.flush()
    page.block_thread()


def start(session: Session, settings: Settings) -> tuple[gr.Blocks, str]:
    """Start the server in the background; returns the page and its address."""
    page = build(session, settings)
    Thread(target=session.warm, args=(settings.model,), name="cloze-warm", daemon=True).start()
    _, address, _ = page.launch(
        theme=theme(),
        app_kwargs=server.app_kwargs(SCRIPTS, STYLES),
        server_name=settings.host,
        server_port=settings.port,
        share=False,
        prevent_thread_lock=True,
        quiet=True,
        show_error=False,
        footer_links=[],
        run_history=False,
        enable_monitoring=False,
        max_file_size="1mb",
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
    )
    return page, str(address)
