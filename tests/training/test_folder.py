"""The run folder: readers that survive torn files, writers that survive being killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core_models.errors import InputError
from core_models.training import durable
from core_models.training.durable import Identity
from core_models.training.folder import RunFolder, remember_process, runs

RECORDS = [{"step": step, "loss": 1.0 / step, "note": "äöü\u2028"} for step in (5, 10, 15)]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", {"steps": 3})


def test_needs_neither_torch_nor_gradio() -> None:
    code = (
        "import sys; import core_models.training.folder, core_models.training.settings;"
        "sys.exit(any(name in sys.modules for name in ('torch', 'gradio', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_metrics_torn_at_every_byte(run: RunFolder) -> None:
    for record in RECORDS:
        run.append_metrics(record)
    path = run.path / "metrics.jsonl"
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        complete = RECORDS[: sum(end <= size for end in ends)]
        assert run.metrics() == complete
        after = {"step": 20, "loss": 0.5}
        run.append_metrics(after)
        # A line that lacked nothing but its end is whole again once the next one is written.
        rescued = RECORDS[: sum(end <= size + 1 for end in ends)]
        assert run.metrics() in ([*complete, after], [*rescued, after])


def test_of_very_many_reports_each_second_one_is_given(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_models.training.folder.MOST_REPORTS", 100)
    for step in range(1, 152):
        held_out = {"validation_loss": 1.0} if step % 50 == 0 else {}
        run.append_metrics({"step": step, "loss": 1.0 / step} | held_out)
    steps = [record["step"] for record in run.metrics()]
    assert steps == sorted(set(steps))
    assert 50 <= len(steps) <= 101
    assert {50, 100, 150, 151} <= set(steps), "the last report, and those with held-out figures"


def test_metrics_are_read_on_from_where_the_reader_stopped(run: RunFolder) -> None:
    assert run.read_metrics() == ([], 0)
    run.append_metrics(RECORDS[0])
    first, offset = run.read_metrics()
    path = run.path / "metrics.jsonl"
    with path.open("ab") as file:
        file.write(b'{"step": 10, "lo')
    assert run.read_metrics(offset) == ([], offset)
    with path.open("ab") as file:
        file.write(b'ss": 0.1}\n')
    second, _ = run.read_metrics(offset)
    assert first == RECORDS[:1]
    assert second == [{"step": 10, "loss": 0.1}]


def test_damage_in_the_middle_costs_one_record(run: RunFolder) -> None:
    for record in RECORDS:
        run.append_metrics(record)
    path = run.path / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\xff\x00garbage\n" + b"[1, 2]\n" + lines[2])
    assert run.metrics() == [RECORDS[0], RECORDS[2]]


def test_reports_repeated_after_a_resume_replace_the_earlier_ones(run: RunFolder) -> None:
    for step, loss in ((5, 1.0), (10, 2.0), (15, 3.0), (10, 2.5), (15, 3.5)):
        run.append_metrics({"step": step, "loss": loss})
    assert [(r["step"], r["loss"]) for r in run.metrics()] == [(5, 1.0), (10, 2.5), (15, 3.5)]


def test_states(run: RunFolder) -> None:
    assert run.state() == "new"
    run.write_status({"state": "running", "process": remember_process()})
    assert run.state() == "running"
    for state in ("stopped", "finished", "failed"):
        run.write_status({"state": state})
        assert run.state() == state


@pytest.mark.parametrize(
    "change", [{"pid": 2**22 - 1}, {"started": 1}, {"boot": "another"}, {"pid": "x"}]
)
def test_another_process_with_the_number_or_another_boot_is_a_crash(
    run: RunFolder, change: dict[str, object]
) -> None:
    run.write_status({"state": "running", "process": remember_process() | change})
    assert run.state() == "crashed"


@pytest.mark.parametrize("status", ['{"state": "running"}', '{"state": "odd"}', "{}"])
def test_a_status_without_a_process_is_not_running(run: RunFolder, status: str) -> None:
    (run.path / "status.json").write_text(status)
    assert run.state() != "running"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_killed_child_is_a_crash_even_before_its_parent_has_noticed(run: RunFolder) -> None:
    waits = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE) as child:
        run.write_status({"state": "running", "process": Identity.current(child.pid).to_json()})
        assert run.state() == "running"
        os.kill(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead but not reaped: a zombie
        assert run.state() == "crashed"


def test_status_is_replaced_whole(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    run.write_status({"state": "running", "step": 1})

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        run.write_status({"state": "running", "step": 2})
    assert run.status()["step"] == 1


def test_stop_is_a_file(run: RunFolder) -> None:
    assert not run.stop_requested()
    run.request_stop()
    assert (run.path / "stop").exists()
    assert run.stop_requested()
    run.clear_stop()
    assert not run.stop_requested()


def test_two_writers_are_kept_apart(run: RunFolder) -> None:
    with (
        run.lock(),
        pytest.raises(InputError, match="already training"),
        RunFolder(run.path).lock(),
    ):
        pass
    with run.lock():
        pass


def test_a_folder_holds_one_run(run: RunFolder) -> None:
    with pytest.raises(InputError, match="already holds a run"):
        RunFolder.create(run.path, {})
    assert [found.path for found in runs(run.path.parent)] == [run.path]
    assert json.loads(run.config_path.read_text()) == {"steps": 3}


def fill(content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "model").mkdir()
        (folder / "model" / "weights").write_bytes(content)
        (folder / "state").write_bytes(content[::-1])

    return write


class KilledError(BaseException):
    """Stands for the death of the process: nothing catches it."""


def test_killed_at_every_system_call_a_checkpoint_is_whole_or_absent(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.save(1, fill(b"one"))
    names = ("fsync", "replace", "rename", "mkdir", "open", "unlink", "rmdir")
    originals = {name: getattr(os, name) for name in names}
    died = 0
    for moment in range(1, 200):
        calls = 0

        def wrapped(name: str, moment: int = moment) -> Callable[..., object]:
            def call(*arguments: object, **options: object) -> object:
                nonlocal calls
                calls += 1
                if calls == moment:
                    raise KilledError
                return originals[name](*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            for name in names:
                patch.setattr(os, name, wrapped(name))
            try:
                run.save(2, fill(b"two"))
                run.prune(1)
            except KilledError:
                died += 1
            else:
                break
        last = run.last_checkpoint()
        assert last is not None
        assert durable.verify(last.path) is None
        expected = {1: b"one", 2: b"two"}[last.step]
        assert (last.path / "model" / "weights").read_bytes() == expected
        run.sweep()
        assert not list(run.path.glob("checkpoints/.*"))
        run.save(1, fill(b"one"))
        if len(run.checkpoints()) == 2:
            durable.remove_folder(run.checkpoints()[1].path)
    assert died > 10
    assert [c.step for c in run.checkpoints()] == [2]


def test_a_sweep_leaves_what_somebody_writes_right_now(run: RunFolder) -> None:
    """The page's server writes launch.json while the process that it has started sweeps."""
    new, old = (run.path / f".launch.json.{name}{durable.ASIDE}" for name in ("new", "old"))
    for path in (new, old):
        path.write_text("{}")
    long_ago = time.time() - 3600
    os.utime(old, (long_ago, long_ago))
    half = run.path / f".model{durable.ASIDE}"
    half.mkdir()
    run.sweep()
    assert new.exists()
    assert not old.exists()
    assert not half.exists(), "folders are the holder's own"


@pytest.mark.parametrize("damage", ["cut", "flip", "missing", "manifest"])
def test_a_damaged_checkpoint_is_passed_over(run: RunFolder, damage: str) -> None:
    run.save(1, fill(b"one"))
    last = run.save(2, fill(b"two two"))
    weights = last.path / "model" / "weights"
    if damage == "cut":
        weights.write_bytes(b"two")
    elif damage == "flip":
        weights.write_bytes(b"two twp")
    elif damage == "missing":
        weights.unlink()
    else:
        (last.path / durable.MANIFEST).write_text("{")
    good = run.last_checkpoint()
    assert good is not None
    assert good.step == 1
    assert "step 2 is damaged" in (run.path / "log.txt").read_text()
    run.save(2, fill(b"new"))
    again = run.last_checkpoint()
    assert again is not None
    assert (again.path / "model" / "weights").read_bytes() == b"new"


def test_what_is_held_while_older_ones_go_stays(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run begins with it after prune has looked, and before its name is gone."""
    for step in (1, 2):
        run.save(step, fill(b"x"))
    replace = Path.replace

    def held_first(path: Path, target: Path) -> Path:
        if path.name == "step-1":
            run.hold(1)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", held_first)
    run.prune(1)
    assert [c.step for c in run.checkpoints()] == [1, 2]


def test_prune_keeps_the_newest(run: RunFolder) -> None:
    for step in (2, 10, 9, 100):
        run.save(step, fill(b"x"))
    run.prune(2)
    assert [c.step for c in run.checkpoints()] == [10, 100]
