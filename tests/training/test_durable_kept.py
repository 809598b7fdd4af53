"""A checkpoint is on the disk before it has its name: every file, the list of them, the folders."""

import time
from pathlib import Path

import pytest

from core_models.training import durable
from core_models.training.folder import RunFolder


def test_everything_is_on_the_disk_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    final = tmp_path / "checkpoints" / "step-7"
    synced: list[tuple[str, bool]] = []
    sync = durable.sync_file

    def noted(path: Path) -> None:
        sync(path)
        synced.append((path.name, final.exists()))

    def write(folder: Path) -> None:
        (folder / "model").mkdir()
        (folder / "model" / "weights").write_bytes(b"w" * 100)
        (folder / "progress").write_text("{}")

    monkeypatch.setattr(durable, "sync_file", noted)
    durable.write_folder(final, write)
    before = [name for name, renamed in synced if not renamed]
    files = {"weights", "progress", durable.MANIFEST}
    assert files <= {*before}
    assert {"model", f".step-7{durable.ASIDE}"} <= {*before}
    # A list that is there before what it lists would call a torn file whole.
    assert before.index(durable.MANIFEST) > max(before.index(n) for n in ("weights", "progress"))
    # The name itself is in the folder around it.
    assert synced[-1] == ("checkpoints", True)
    assert durable.verify(final) is None


def test_only_a_stop_that_was_asked_for_before_is_forgotten(tmp_path: Path) -> None:
    """A process forgets what was asked of the one before it, and obeys what came while it began."""
    run = RunFolder(tmp_path)
    run.request_stop()
    run.clear_stop(before=time.time() - 10)
    assert run.stop_requested()
    run.clear_stop(before=time.time() + 10)
    assert not run.stop_requested()
    run.clear_stop()  # of nothing
