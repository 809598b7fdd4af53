"""A page behind a proxy, under a path, for a class that signs in; and a page of another site."""

import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from urllib.error import URLError

import pytest
from playwright.sync_api import expect

from app.serving.sign_in import line_of
from core_models.training.settings import ASSETS
from tests.app.proxy import proxied
from tests.waiting import PATIENCE, until

PATH = "/class/cloze"
READ = """async ([address, header]) => {
  try {
    const headers = header ? { 'x-cloze': 'train' } : {};
    return await (await fetch(address, { headers, method: header ? 'POST' : 'GET' })).text();
  } catch (error) {
    return `nothing: ${error.name}`;
  }
}"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def hosting(folder):
    """A server as somebody would host it: its process, its address and what it has written."""
    (folder / "names").write_text(line_of("ada", "secret") + "\n")
    port = free_port()
    server = {
        "PORT": str(port),
        "CLOZE_RUNS": str(folder / "runs"),
        "CLOZE_AUTH": str(folder / "names"),
        "CLOZE_HOSTS": "cloze.example.org",
        "CLOZE_LOG": "json",
        "GRADIO_ROOT_PATH": PATH,
    }
    address, output = f"http://127.0.0.1:{port}", folder / "output.txt"

    def healthy():
        try:
            return urllib.request.urlopen(f"{address}/health", timeout=5).status == 200
        except (URLError, OSError):
            return False

    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "app.py"], cwd=ASSETS.parent, env=os.environ | server, stdout=file
        )
        try:
            assert until(lambda: healthy() or process.poll() is not None, 3 * PATIENCE)
            assert process.poll() is None, "it has ended"
            yield process, address, output
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def hosted(tmp_path_factory):
    """One server for the tests that leave it as it is."""
    with hosting(tmp_path_factory.mktemp("hosted")) as found:
        yield found


@pytest.mark.slow
def test_a_class_signs_in_behind_a_proxy(browser, hosted):
    _, address, output = hosted
    with proxied(address, PATH, "cloze.example.org") as front, browser.new_context() as profile:
        page = profile.new_page()
        wrong = []
        page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
        page.on("response", lambda found: found.status >= 400 and wrong.append(found.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{front}/?lang=en#text=Bees+make+honey.&model=bert-mini&marks=3")
        with urllib.request.urlopen(f"{front}/health") as found:
            assert json.load(found) == {"status": "ok"}
        with pytest.raises(URLError, match="401"):
            urllib.request.urlopen(f"{front}/train/runs")
        with pytest.raises(
            URLError, match="401"
        ):  # the proxy takes it off once, and the server, too
            urllib.request.urlopen(f"{front}{PATH}/train/runs")
        page.get_by_label("username").fill("ada")
        page.get_by_label("password").fill("wrong")
        page.get_by_role("button", name="Login").click()
        expect(page.get_by_text("Incorrect Credentials")).to_be_visible()
        wrong.clear()  # that was told as 400
        page.get_by_label("username").fill("ada")
        page.get_by_label("password").fill("secret")
        page.get_by_role("button", name="Login").click()
        expect(page.locator(".guess button.candidate").first).to_be_visible()
        assert page.url.startswith(front)
        page.evaluate("Cloze.openTab('budget')")
        page.wait_for_selector("#tab-budget .figure[data-state=ready] .js-plotly-plot")
        page.evaluate("Cloze.openTab('train')")
        expect(page.get_by_text(re.compile("^finished")).first).to_be_visible()
        assert wrong == []
    lines = [json.loads(row) for row in output.read_text().splitlines() if row.startswith("{")]
    answers = {line["answer"] for line in lines}
    assert {"labs.mask.lab.predict", "runs.routes.RunRoutes.show"} <= answers
    assert "honey" not in output.read_text().lower()


def test_a_page_of_another_site_reads_and_starts_nothing(browser, server):
    """Its requests are sent, and refused; without the refusal the first would be read."""
    handler = http.server.BaseHTTPRequestHandler
    handler = type("Page", (handler,), {"do_GET": _empty, "log_message": lambda *_: None})
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        with browser.new_context() as profile:
            page = profile.new_page()
            page.goto(f"http://127.0.0.1:{other.server_port}/")
            for path, header in (("/config", False), ("/train/runs", False), ("/train/x", True)):
                found = page.evaluate(READ, [server + path, header])
                assert found.startswith("nothing") or "may ask nothing" in found, found
            own = profile.new_page()
            own.goto(f"{server}/health")
            assert "runs" in own.evaluate(READ, [f"{server}/train/runs", False])
    finally:
        other.shutdown()


def _empty(request):
    request.send_response(200)
    request.send_header("content-type", "text/html")
    request.end_headers()
    request.wfile.write(b"<title>Another site</title>")


@pytest.mark.slow
def test_it_ends_when_it_is_told_to(tmp_path):
    with hosting(tmp_path) as (process, _, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
