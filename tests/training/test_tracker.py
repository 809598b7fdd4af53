"""Reports of a run in TensorBoard's files, and what is said where a tracker is missing."""

import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from tensorboardX.proto.event_pb2 import Event

from core_models.errors import InputError
from core_models.training.folder import RunFolder
from core_models.training.process import train
from core_models.training.tracker import Tracker
from tests.training.conftest import quiet

MakeRun = Callable[..., RunFolder]


def events(folder: Path) -> Iterator[Event]:
    """What TensorBoard would read: records of length, check, bytes, check."""
    for path in sorted(folder.rglob("events.out.*")):
        content, at = path.read_bytes(), 0
        while at < len(content):
            (length,) = struct.unpack_from("<Q", content, at)
            yield Event.FromString(content[at + 12 : at + 12 + length])
            at += 16 + length


@pytest.mark.usefixtures("in_process")
def test_tensorboard_has_every_report_of_a_run_that_was_stopped(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its files bear the second in their name, and a run may go on within the same.
    monkeypatch.setattr("tensorboardX.event_file_writer.time", Mock(time=lambda: 1_700_000_000.0))
    run = make_run(tracker="tensorboard", steps=20)
    assert train(run.config_path, lambda _: run.request_stop()) == "stopped"
    assert train(run.config_path, quiet) == "finished"
    shown = {
        (value.tag, event.step): value.simple_value
        for event in events(run.path / "tensorboard")
        for value in event.summary.value
    }
    for record in run.metrics():
        for name in ("loss", "masked_token_accuracy", "learning_rate"):
            assert shown[name, record["step"]] == pytest.approx(record[name]), name


@pytest.mark.usefixtures("in_process")
def test_without_a_tracker_nothing_is_written(make_run: MakeRun) -> None:
    run = make_run(steps=8)
    train(run.config_path, quiet)
    assert not list(run.path.rglob("events.out.*"))


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match="needs the package wandb, which is not installed"):
        Tracker("wandb", RunFolder(tmp_path))
