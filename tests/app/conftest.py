"""One server and one browser for all tests of the page, one page per test."""

import asyncio
import os
import shutil
import socket
import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote_plus

import pytest

os.environ.setdefault("GRADIO_TEMP_DIR", tempfile.mkdtemp(prefix="cloze-gradio-"))

import gradio as gr
import torch
from playwright.sync_api import expect, sync_playwright

import core_models as cm
import core_models.model as shipped
from app.labs.why.service import Explainer
from app.main import start
from app.page.theme import theme
from app.runs import process as run_process
from app.runs.runs import Runs
from app.serving import server as server_parts
from app.serving.opened.library import Opened
from app.serving.opened.policy import Policy
from app.serving.session import Session
from app.serving.settings import Settings
from benchmarks.page import chromium
from tests.app import forge_rounds
from tests.app.attention_lab import open_lab
from tests.app.forks import Forks
from tests.app.late import late
from tests.app.visitors import PATIENCE, Cloze, leave, new_page
from tests.app.waits import look_often
from tests.app.why_questions import open_session
from tests.core.tiny_models import new, tiny
from tests.stand_in_hub import stand_in

START, NICE = run_process.start, run_process.NICE
MODEL = "bert-mini"
SENTENCE = "The capital of France is Paris."
NOTHING_HIDDEN = f"#text={quote_plus(SENTENCE)}&model={MODEL}"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # In place of Playwright's own list. The popups of the address bar are pages, too: half of what
    # opening a window costs.
    "--disable-features=HttpsUpgrades,MediaRouter,OptimizationHints,PaintHolding,"
    "WebUIOmniboxAimPopup,WebUIOmniboxPopup",
)


@pytest.fixture(scope="session", autouse=True)
def one_shipped_model(tmp_path_factory):
    """The default model alone, so that what the page says of absent families stays to be tested."""
    folder = tmp_path_factory.mktemp("shipped")
    (folder / MODEL).symlink_to(shipped.SHIPPED / MODEL, target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shipped, "SHIPPED", folder)
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_trainings():
    """The page's trainings are forked, but where a test asks for ``real_processes``.

    They have the priority of the tests, which wait for them: at the lowest one, what other tests
    leave of a busy machine is not enough for any of them.
    """
    if not hasattr(os, "fork"):
        yield
        return
    forks = Forks()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_process, "start", forks.start)
        patch.setattr(run_process, "NICE", 0)
        yield
    forks.close()


@pytest.fixture
def real_processes(monkeypatch):
    """Trainings start as for visitors."""
    monkeypatch.setattr(run_process, "start", START)
    monkeypatch.setattr(run_process, "NICE", NICE)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The runs folder of the page, empty at first."""
    runs = Runs(tmp_path_factory.mktemp("runs"), seconds=0.1, others=Opened(Policy()))
    yield runs
    runs.close()
    for run in runs.ids():
        if runs.state(run) in ("starting", "running"):
            runs.folder(run).request_stop()


@pytest.fixture
def make_runs(tmp_path):
    """Makes services over one folder that start nothing: ``make_runs(**options)``."""
    made = []

    def make(**options):
        made.append(Runs(tmp_path / "runs", seconds=60, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def session(runs):
    """The service behind the page, over the shipped models."""
    if MODEL not in [info.name for info in cm.models()]:
        pytest.fail(f"No model {MODEL} in assets/models; name another folder with CLOZE_MODELS.")
    threads = torch.get_num_threads()
    session = Session(threads=min(2, threads), library=runs, opened=runs.others)
    yield session
    session.close()
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", name="lab")
def attention_lab(tmp_path_factory):
    """The modes of the Attention tab over tiny random models."""
    with open_lab(tmp_path_factory.mktemp("attention")) as lab:
        yield lab


@pytest.fixture(scope="module")
def forge_models(tmp_path_factory):
    """A folder with small random models for the Forge tab."""
    return forge_rounds.save_models(tmp_path_factory.mktemp("forge-models"))


@pytest.fixture
def forge_session(forge_models):
    """The service behind the Forge tab over them."""
    with forge_rounds.open_session(forge_models) as session:
        yield session


@pytest.fixture(scope="module")
def why_session(tmp_path_factory):
    """The service behind the Why tab over tiny random models of every head."""
    with open_session(tmp_path_factory.mktemp("why")) as session:
        yield session


@pytest.fixture
def explainer(why_session):
    """The Why tab without its page."""
    return Explainer(why_session)


@pytest.fixture(scope="session", autouse=True)
def late_answers(request):
    """With ``--late``, much of what the page asks for comes late, and in another order."""
    milliseconds = request.config.getoption("--late")
    if not milliseconds:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_parts, "app_kwargs", late(server_parts.app_kwargs, milliseconds))
        yield


@pytest.fixture(scope="session")
def server(session, runs):
    """The address of a running page."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    page, address = start(session, Settings(host="127.0.0.1", port=port, model=MODEL), runs)
    yield address.rstrip("/")
    page.close()
    shutil.rmtree(os.environ["GRADIO_TEMP_DIR"], ignore_errors=True)


def launched(page: gr.Blocks) -> str:
    """Serve a page of a few parts with the scripts that all parts need; its address."""
    scripts = ("page/language.js", "page/gradio.js", "page/shell.js")
    _, address, _ = page.launch(
        theme=theme(),
        app_kwargs=server_parts.app_kwargs(scripts, ("page/page.css",)),
        prevent_thread_lock=True,
        quiet=True,
    )
    return address


PLAYWRIGHT = {"loop": None}
"""The event loop that Playwright leaves open in the thread of the tests."""


def show_loop(shown: bool = True) -> None:
    """Playwright needs its loop to be the running one; asyncio.run is refused beside it."""
    asyncio._set_running_loop(PLAYWRIGHT["loop"] if shown else None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hide Playwright's loop from tests without a browser."""
    show_loop("browser" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def browser():
    """Chromium, for all tests of a process: what it has compiled is compiled for all."""
    path = chromium()
    with pytest.MonkeyPatch.context() as patch:
        look_often(patch)
        with sync_playwright() as playwright:
            expect.set_options(timeout=PATIENCE)
            PLAYWRIGHT["loop"] = asyncio.get_running_loop()
            browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
            yield browser
            show_loop()
            browser.close()


@pytest.fixture(scope="session")
def profile(browser):
    """A profile of the browser that keeps what it has fetched and compiled, and nothing else."""
    with browser.new_context(accept_downloads=True) as context:
        yield context
        show_loop()


@pytest.fixture
def visit(browser, profile, server):
    """Opens the page for a new visitor: ``visit(width=390, dark=True, link="#text=a")``.

    Without a link it is one to the sentence with nothing hidden; ``link="?"`` is the bare address.
    Who comes while another is there has a profile of their own.
    """
    visits = []

    def visit(width: int = 1280, height: int = 800, *, dark: bool = False, link: str = "") -> Cloze:
        own = browser.new_context(accept_downloads=True) if visits else profile
        opened = link or NOTHING_HIDDEN
        visits.append(new_page(own, server, (width, height), dark=dark, link=opened))
        return visits[-1]

    yield visit
    for cloze in visits:
        leave(cloze, profile)
    assert [problem for cloze in visits for problem in cloze.problems] == []


@pytest.fixture
def phone(browser, server):
    """Opens the page on a phone, where fingers touch it: ``phone("#text=a")``."""
    visits = []

    def phone(link: str = NOTHING_HIDDEN) -> Cloze:
        own = browser.new_context(has_touch=True, is_mobile=True, accept_downloads=True)
        visits.append(new_page(own, server, (390, 844), dark=False, link=link))
        return visits[-1]

    yield phone
    for cloze in visits:
        cloze.page.context.close()
    assert [problem for cloze in visits for problem in cloze.problems] == []


@pytest.fixture(scope="module")
def module_page(browser, server):
    """One page for all tests of a module that ask for it."""
    with browser.new_context(accept_downloads=True) as context:
        yield new_page(context, server, (1280, 800), dark=False, link=NOTHING_HIDDEN)
        show_loop()


@pytest.fixture
def cloze(visit):
    """The page on a desktop."""
    return visit()


@pytest.fixture(scope="session")
def model(session):
    """The model that the page uses, for comparison."""
    return session.model(MODEL)


@pytest.fixture
def detective(session, monkeypatch, tmp_path):
    """A small random discriminator and its generator of one layer, added to the page's models."""
    tokenizer = session.model("bert-mini").tokenizer
    config = replace(
        cm.size("electra-small-discriminator").with_vocabulary(tokenizer.vocabulary),
        initial_std=0.1,
    )
    added = {
        "zz-detective": ("replaced_token", config),
        "zz-detective-generator": ("masked_token", replace(config, schedule=(0,))),
    }
    for seed, (name, (head, shape)) in enumerate(added.items()):
        generator = torch.Generator().manual_seed(seed)
        cm.Model.new(shape, tokenizer, heads=[head], generator=generator).save(tmp_path / name)
    monkeypatch.setenv("CLOZE_MODELS", str(tmp_path))
    before = dict(session._infos)
    session._infos.clear()
    for name in added:  # so that no late question loads one whose folder is gone
        session.model(name)
    yield session.model("zz-detective")
    session._infos.clear()
    session._infos.update(before)


@pytest.fixture(scope="session")
def static_folder():
    return Path(__file__).resolve().parents[2] / "app"


@pytest.fixture(name="there")
def hub_here(tmp_path, monkeypatch):
    """A hub on this machine, and an empty cache."""
    with stand_in(monkeypatch, tmp_path / "cache") as hub:
        yield hub


@pytest.fixture
def folder(tmp_path):
    """A small random BERT."""
    new(tiny("bert-mini")).save(tmp_path / "bert")
    return tmp_path / "bert"


@pytest.fixture(name="open_with")
def sessions():
    """A session for a policy; ``open_with(mode="list", ids=...)``."""
    made = []

    def make(**policy) -> Session:
        made.append(Session(opened=Opened(Policy(**policy))))
        return made[-1]

    yield make
    for session in made:
        session.close()
