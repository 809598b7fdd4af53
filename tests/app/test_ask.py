"""What a visitor may send, and the environment's settings."""

import errno
import inspect
import runpy
import sys
import tempfile
from pathlib import Path

import pytest

from app import main
from app.main import build, launch
from app.serving.ask import (
    Ask,
    Mark,
    clean_rate,
    clean_text,
    clean_words,
    read_ask,
    read_revision,
    whole_number,
)
from app.serving.opened.policy import Policy
from app.serving.settings import Settings
from core_models import InputError


def test_a_good_question_is_read_whole():
    question = {
        "text": "a b",
        "model": "m",
        "marks": [{"position": 2, "case": "random", "piece": 7}, {"position": 1.0}],
        "words": [" x ", "", "x"],
    }
    assert read_ask(question) == Ask(
        text="a b",
        model="m",
        marks=(Mark(position=1), Mark(position=2, case="random", piece=7)),
        words=("x",),
    )


@pytest.mark.parametrize("text", [None, 5, "", " \n\t", [], {}])
def test_no_text_is_refused(text):
    with pytest.raises(InputError, match="no text yet"):
        clean_text(text)


def test_long_text_is_refused_with_its_length():
    assert clean_text("x" * 20_000)
    with pytest.raises(InputError, match="100,000"):
        clean_text("x" * 100_000)


@pytest.mark.parametrize("value", [None, "2", 1.5, True, -1, 11, float("nan"), float("inf"), []])
def test_a_whole_number_is_nothing_else(value):
    with pytest.raises(InputError, match="from 0 to 10"):
        whole_number(value, "n", 0, 10)


def test_a_number_box_without_a_number_is_empty():
    with pytest.raises(InputError, match="n is empty; it must be a whole number from 0 to 10"):
        whole_number(None, "n", 0, 10)


@pytest.mark.parametrize("value", [0, -0.1, 1.1, True, "0.15", None, float("nan")])
def test_a_rate_is_a_share(value):
    with pytest.raises(InputError):
        clean_rate(value)


@pytest.mark.parametrize("value", ["word", 5, ["x" * 65], [f"w{n}" for n in range(17)], [None]])
def test_words_are_a_short_list(value):
    with pytest.raises(InputError):
        clean_words(value)


@pytest.mark.parametrize(
    ("payload", "revision"), [({"rev": 3}, 3), ({}, 0), ({"rev": "3"}, 0), ({"rev": -1}, 0)]
)
def test_a_revision_is_a_number_or_nought(payload, revision):
    assert read_revision(payload) == revision


def test_settings_come_from_the_environment():
    assert Settings.from_environment({}) == Settings()
    environment = {
        "PORT": "8000",
        "CLOZE_HOST": "0.0.0.0",
        "CLOZE_MODEL": "m",
        "CLOZE_THREADS": "2",
    }
    assert Settings.from_environment(environment) == Settings(
        port=8000, host="0.0.0.0", model="m", threads=2, opening=Policy(mode="list")
    )


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_address_of_ipv6_is_written_as_in_a_browser(host):
    """Gradio reads the last part of ``::1:7860`` as no port, and ends the start."""
    assert Settings.from_environment({"CLOZE_HOST": host}).host == "[::1]"


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "x"), ("PORT", "0"), ("PORT", "70000"), ("CLOZE_THREADS", "0")],
)
def test_a_wrong_setting_is_named(name, value):
    with pytest.raises(InputError, match=name):
        Settings.from_environment({name: value})


def test_a_wrong_setting_ends_the_start_with_its_message(monkeypatch):
    monkeypatch.setenv("PORT", "abc")
    with pytest.raises(SystemExit, match="PORT is 'abc'"):
        launch()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("Cannot find empty port in range: 7860-7860."), "port 7860 is taken by another"),
        (OSError(errno.EROFS, "Read-only file system", "/x"), "Read-only file system"),
    ],
)
def test_what_keeps_a_server_from_starting_is_said(monkeypatch, tmp_path, error, said):
    def start(*_):
        raise error

    monkeypatch.setattr(main, "start", start)
    with pytest.raises(SystemExit, match=said):
        launch(Settings(runs=tmp_path))


def test_without_a_folder_for_temporary_files_the_start_says_so(monkeypatch):
    def none():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    monkeypatch.setattr(sys, "argv", ["app.py"])
    with pytest.raises(SystemExit, match="TMPDIR=, or give a container one"):
        runpy.run_path(str(Path(__file__).resolve().parents[2] / "app.py"), run_name="__main__")


def test_a_server_at_rest_looks_at_its_queue_now_and_then(session):
    """Gradio's own thousand looks a second are a tenth of a processor."""
    queue = build(session, Settings()).blocks._queue
    assert queue.sleep_when_free >= 0.02
    assert "asyncio.sleep(self.sleep_when_free)" in inspect.getsource(queue.start_processing)
