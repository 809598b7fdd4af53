"""What a full disk refuses to the writers of libraries, told as the system does, in a sentence."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import core_models as cm
from core_models import plain_files
from core_models.checkpoints.weights import write_tensors
from core_models.data import store
from core_models.errors import InputError, refused
from core_models.training import __main__ as command
from core_models.training import process
from core_models.training.folder import RunFolder

MakeRun = Callable[..., RunFolder]
FULL = Path("/dev/full")
"""Takes no byte: as a full disk."""
full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


@full
def test_arrays(tmp_path: Path) -> None:
    """NumPy says "100 requested and 0 written", which is no word of the system's."""
    with pytest.raises(OSError, match="No space left") as failed:
        store._write(FULL, np.arange(100_000))
    assert failed.value.errno == errno.ENOSPC
    for array in (np.arange(7), np.zeros((0, 5), np.int64), np.arange(6).reshape(2, 3).T):
        store._write(tmp_path / "ours.npy", array)
        np.save(tmp_path / "theirs.npy", np.ascontiguousarray(array))
        assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


@full
def test_tensors(tmp_path: Path) -> None:
    """A link to a device that is full, in the place of the file."""
    path = tmp_path / "model.safetensors"

    def write() -> None:
        with plain_files.written(path):
            raise RuntimeError("Error while serializing: I/O error: it (os error 28)")

    with pytest.raises(OSError, match="No space left") as failed:
        write()
    assert (failed.value.errno, failed.value.filename) == (errno.ENOSPC, str(path))
    with pytest.raises(RuntimeError, match="another"), plain_files.written(path):
        raise RuntimeError("another")
    with pytest.raises(OSError, match="No such file") as failed:
        write_tensors({"a": torch.zeros(4)}, tmp_path / "no" / "model.safetensors")
    assert failed.value.errno == errno.ENOENT


@pytest.mark.parametrize("most", [4 << 10, 60 << 10, 100 << 10])
def test_the_command_says_so_without_a_traceback_and_goes_on_later(
    make_run: MakeRun, most: int
) -> None:
    """No file may grow beyond ``most``, as on a disk that fills up at the store or at a save."""
    run = make_run(steps=8, checkpoints={"every": 2, "keep": 2})

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    arguments = [sys.executable, "-m", "core_models.training", str(run.config_path)]
    found = subprocess.run(arguments, capture_output=True, text=True, preexec_fn=limit)
    assert found.returncode == 2, found.stderr
    assert "Traceback" not in found.stderr
    assert "File too large" in found.stderr
    assert "File too large" in str(run.status()["reason"])
    assert command.main([str(run.config_path)]) == 0
    assert run.state() == "finished"


def test_a_run_that_could_not_be_made_leaves_no_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "there").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("core_models.training.durable.write_text", no_room)
        for name in ("new", "there"):
            with pytest.raises(OSError, match="No space left"):
                RunFolder.create(tmp_path / name, {})
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_run_that_is_there_says_how_it_goes_on(make_run: MakeRun) -> None:
    run = make_run()
    with pytest.raises(InputError, match=r"Go on with it: python -m core_models\.training /.*json"):
        RunFolder.create(run.path, {})


def test_a_model_that_found_no_room_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the command that trains and saves refuses it next time: it "exists already"."""
    model = cm.load("bert-mini")

    def no_room(tensors: object, path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("core_models.checkpoints.files.write_tensors", no_room)
    with pytest.raises(OSError, match="No space left"):
        model.save(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(OSError, match="No space left"):
        model.save(tmp_path / "mine")
    assert list((tmp_path / "mine").iterdir()) == []


@full
@pytest.mark.parametrize("what", ["--preview", "--estimate"])
def test_what_is_printed_and_not_taken_is_an_error(make_run: MakeRun, what: str) -> None:
    run = make_run()
    with FULL.open("w") as target:
        found = subprocess.run(
            [sys.executable, "-m", "core_models.training", what, str(run.config_path)],
            stdout=target,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (found.returncode, found.stderr) == (
        2,
        "The disk is full; make room and ask again.\n",
    )


def test_words_of_the_system(make_run: MakeRun) -> None:
    assert refused(OSError(errno.ENOSPC, "full", "/a/b")) == (
        "The disk is full: no room for /a/b; make room and ask again."
    )
    assert "Input/output error" in refused(OSError(errno.EIO, os.strerror(errno.EIO)))
    with pytest.raises(OSError, match="a defect"):
        refused(OSError("a defect"))
    assert process.explain(OSError(errno.ENOSPC, "full", "/a/b")).startswith("The disk is full.")
