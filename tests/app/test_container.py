"""The container: what is in it; with CLOZE_CONTAINER=1 it is built, answers, rests and goes on."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.request
from contextlib import suppress
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from time import monotonic
from uuid import uuid4

import pytest
import yaml
from gradio_client import Client

from app.runs.data import sources as run_sources
from app.serving.settings import Settings
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
IGNORED = ROOT / ".dockerignore"
STOPPING_SECONDS = 10.0
"""What Docker waits for before it kills."""
BUILDING_SECONDS = 3000
FIRST_ANSWER_SECONDS = 300
MAKE = """
from pathlib import Path
from app.runs.runs import Runs
model = {"size": "bert-mini", "overrides": {"layers": 2, "width": 32, "heads": 2}}
data = {"texts": ["primer/english-*.txt"]}
config = {"model": model, "tokenizer": {"vocabulary": 100}, "data": data, "steps": 100000}
print(Runs(Path("/runs")).create(config))
"""
"""Makes a run in the container that does not end by itself, and prints its id."""


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = (line.partition(" ") for line in text.splitlines() if line and line[0] != "#")
    return [(word, rest.strip()) for word, _, rest in lines]


def goes_in(path: str) -> bool:
    """Whether a file is sent to the build: the last pattern of .dockerignore that fits decides."""
    found = True
    for line in IGNORED.read_text("utf-8").splitlines():
        pattern = line.removeprefix("!")
        if not pattern or line[0] == "#":
            continue
        parts = path.split("/")
        if pattern.startswith("**/"):
            fits = any(fnmatch(part, pattern.removeprefix("**/")) for part in parts)
        else:
            fits = fnmatch(parts[0], pattern)
        found = line[0] == "!" if fits else found
    return found


def kept() -> list[str]:
    """What .dockerignore lets in, of the first level."""
    return re.findall(r"^!(\S+)$", IGNORED.read_text("utf-8"), re.M)


def files_that_go_in() -> set[str]:
    found = (file for name in kept() for file in (ROOT / name, *(ROOT / name).rglob("*")))
    names = {file.relative_to(ROOT).as_posix() for file in found if file.is_file()}
    return {name for name in names if goes_in(name)}


def test_what_the_image_copies_is_there():
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY"]
    names = [name for part in copied for name in part if not name.startswith("--")]
    assert "requirements.txt" in names
    assert [name for name in (*names, *kept()) if not (ROOT / name).exists()] == []
    assert [name for name in names if name != "." and not goes_in(name)] == []


def test_the_image_has_the_page_and_nothing_else():
    scripts, data = (ROOT / "app").rglob("*.js"), (ROOT / "assets").rglob("*.json")
    for path in (ROOT / "app.py", *scripts, *data):
        assert goes_in(path.relative_to(ROOT).as_posix()), path
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packages = set(project["tool"]["importlinter"]["root_packages"]) - {"zoo"}
    assert all(goes_in(f"{package}/__init__.py") for package in packages)
    for path in (
        ".git/config",
        ".venv/bin/python",
        ".env",
        ".mypy_cache/x",
        "names",  # who may sign in
        "runs/first/config.json",
        "shared/data.txt",
        "tests/conftest.py",
        "app/__pycache__/main.cpython-311.pyc",
        "app/labs/mask/__pycache__/lab.cpython-311.pyc",
        "app/.gradio/x",
    ):
        assert not goes_in(path), path


def test_the_container_and_compose_speak_of_the_same_places():
    words = dict(instructions())
    service = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["cloze"]
    assert words["USER"].isdigit()
    assert int(words["USER"]) > 0
    assert service["volumes"] == [f"runs:{words['VOLUME']}"]
    assert service["ports"] == [f"${{PORT:-{words['EXPOSE']}}}:{words['EXPOSE']}"]
    assert service["stop_grace_period"] == f"{STOPPING_SECONDS:.0f}s"
    assert f"PORT={words['EXPOSE']} CLOZE_RUNS={words['VOLUME']}" in words["ENV"]
    assert r"127.0.0.1:{os.environ[\"PORT\"]}/health" in words["HEALTHCHECK"]


def test_what_the_image_compiles_is_in_it():
    """compileall says nothing of a name that is not there but a line, and succeeds."""
    (compiled,) = (rest for word, rest in instructions() if "compileall" in rest)
    names = compiled.partition("-q ")[2].split()
    sources = {file.partition("/")[0] for file in files_that_go_in() if file.endswith(".py")}
    assert set(names) == sources


def test_compose_hands_on_every_setting_that_is_not_the_images_own():
    service = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["cloze"]
    text = (ROOT / "docs" / "hosting.md").read_text("utf-8")
    settings = re.findall(r"^\| `([A-Z_]+)` \|", text, re.M)
    own = {
        pair.partition("=")[0]
        for word, rest in instructions()
        if word == "ENV"
        for pair in rest.split()
    }
    assert {"PORT", "CLOZE_HOST", "CLOZE_RUNS"} <= own
    handed = {name: f"${{{name}:-}}" for name in settings if name not in own}
    assert service["environment"] == handed


def test_an_empty_setting_is_none():
    """As compose.yaml hands on what nobody set."""
    service = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["cloze"]
    empty = dict.fromkeys(service["environment"], "")
    assert Settings.from_environment(empty) == Settings.from_environment({})
    assert run_sources.is_local(empty) == run_sources.is_local({})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_a_server_that_is_told_to_end_while_it_starts_ends_at_once(tmp_path):
    """The first process of a container ignores signals that it did not ask for."""
    command = [sys.executable, str(ROOT / "app.py")]
    settings = os.environ | {"CLOZE_RUNS": str(tmp_path)}
    with subprocess.Popen(command, env=settings, stderr=subprocess.DEVNULL) as process:
        try:
            assert until(lambda: asked_for(process.pid, signal.SIGTERM), 20)
            process.terminate()
            assert process.wait(STOPPING_SECONDS) == 128 + signal.SIGTERM
        finally:
            process.kill()


def asked_for(process: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    text = Path(f"/proc/{process}/status").read_text("ascii")
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)$", text, re.M)
    return bool(int(caught, 16) >> (number - 1) & 1)


# --- built and started ----------------------------------------------------------------------------


@cache
def engine() -> str | None:
    """Docker or Podman, whichever works here."""
    for name in filter(shutil.which, ("docker", "podman")):
        if subprocess.run([name, "info"], capture_output=True).returncode == 0:
            return name
    return None


def ask(*words: str, seconds: float = 120) -> str:
    """What the engine prints; its error where it cannot."""
    command = [str(engine()), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


class Container:
    """One container at a time over one volume of runs."""

    def __init__(self, image: str) -> None:
        self.image = image
        self.name = self.volume = f"cloze-test-{uuid4().hex[:12]}"
        self.address = ""

    def start(self) -> None:
        places = ("-p", "127.0.0.1::7860", "-v", f"{self.volume}:/runs")
        # As the platforms do that trust an image least: nothing but /runs and /tmp is written.
        strict = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL")
        shared = ("-e", "CLOZE_TRAIN=shared")
        ask("run", "-d", "--name", self.name, *places, *strict, *shared, self.image)
        self.address = f"http://{ask('port', self.name, '7860/tcp').splitlines()[0]}"

    def healthy(self) -> bool:
        """Whether the command of HEALTHCHECK succeeds in it."""
        assert self.inspect("State.Running") == "true", ask("logs", self.name)
        command = json.loads(dict(instructions())["HEALTHCHECK"].partition("CMD ")[2])
        with suppress(AssertionError):
            ask("exec", self.name, *command)
            return True
        return False

    def inspect(self, value: str) -> str:
        return ask("inspect", self.name, "--format", f"{{{{.{value}}}}}")

    def stop(self) -> float:
        """End it as `docker stop` does; how long it took."""
        begun = monotonic()
        ask("kill", "--signal", "TERM", self.name)
        ask("wait", self.name)
        taken = monotonic() - begun
        assert self.inspect("State.ExitCode") == "0", ask("logs", self.name)
        ask("rm", self.name)
        return taken

    def remove(self) -> None:
        for words in (("rm", "-f", self.name), ("volume", "rm", self.volume)):
            subprocess.run([str(engine()), *words], capture_output=True)


@pytest.fixture
def image():
    if engine() is None:
        pytest.skip("needs Docker or Podman with an engine that works")
    name = "localhost/cloze-test"  # it stays, so that the next build finds its layers
    # Podman's own format has no HEALTHCHECK.
    form = ["--format", "docker"] if engine() == "podman" else []
    ask("build", *form, "-t", name, str(ROOT), seconds=BUILDING_SECONDS)
    return name


@pytest.fixture
def container(image):
    container = Container(image)
    yield container
    container.remove()


@pytest.mark.container
@pytest.mark.timeout(BUILDING_SECONDS + 600)
def test_a_container_answers_trains_rests_and_goes_on(container):
    container.start()
    assert until(container.healthy, FIRST_ANSWER_SECONDS)
    with urllib.request.urlopen(container.address, timeout=60) as page:
        assert page.status == 200
    client = Client(container.address, verbose=False)
    answer = client.predict("The capital of France is [MASK].", api_name="/fill")
    assert answer["predictions"][0]["candidates"][0]["display"] == "paris"
    assert ask("exec", container.name, "id", "-u") == dict(instructions())["USER"]
    files = ("find", ".", "-type", "f", "-not", "-name", "*.pyc", "-printf", "%P\\n")
    held = ask("exec", container.name, *files)
    assert set(held.splitlines()) == files_that_go_in()

    run = ask("exec", container.name, "python", "-c", MAKE).splitlines()[-1]
    send(container, f"/train/runs/{run}/start")
    assert until(lambda: (look(client, run)["step"] or 0) >= 20, FIRST_ANSWER_SECONDS)
    assert container.stop() < STOPPING_SECONDS

    container.start()
    assert until(container.healthy, FIRST_ANSWER_SECONDS)
    client = Client(container.address, verbose=False)
    saved = look(client, run)
    assert saved["state"] in ("queued", "starting", "running")
    assert saved["step"] >= 20
    assert until(lambda: look(client, run)["step"] > saved["step"] + 10, FIRST_ANSWER_SECONDS)
    assert container.stop() < STOPPING_SECONDS


def send(container: Container, path: str) -> None:
    url = container.address + path
    request = urllib.request.Request(url, data=b"{}", headers={"x-cloze": "train"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert "error" not in json.load(answer)


def look(client: Client, run: str) -> dict:
    (found,) = (each for each in client.predict(api_name="/runs") if each["id"] == run)
    return found
