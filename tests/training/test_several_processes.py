"""Several processes of one run: nodes with other folders, lost ones, rows that do not divide."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from core_models.errors import InputError
from core_models.objectives import Options, build
from core_models.objectives.weighted import Weighted
from core_models.training import durable
from core_models.training.folder import RunFolder
from core_models.training.memory import whole_memory
from core_models.training.pretraining import Pretraining
from core_models.training.process import explain, train
from core_models.training.settings import parse, read
from core_models.training.several import LostError, check_same, check_shares, lost
from tests.core.tiny_models import new, tiny
from tests.training.conftest import forget_accelerator, quiet
from tests.waiting import until

MakeRun = Callable[..., RunFolder]
ROOT = Path(__file__).parents[2]
TWO = SimpleNamespace(num_processes=2)


@pytest.mark.parametrize(
    "words",
    [
        "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:29317",
        "Read error [127.0.0.1]:62188: Connection reset by peer",
        "NCCL communicator was aborted on rank 1.",
    ],
)
def test_a_lost_process_is_told_in_plain_words(words: str) -> None:
    told = lost(RuntimeError(words), 2)
    assert isinstance(told, LostError)
    assert explain(told) == str(told)
    assert "Another process of this run is gone" in str(told)
    assert lost(RuntimeError(words), 1) is None
    assert lost(RuntimeError("shapes do not match"), 2) is None
    assert lost(InputError(words), 2) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"step": 7}, "step 0 and step 7"),
        ({"data": "another"}, "other data"),
        ({"seed": 9}, "config.json: seed"),
        ({"validate_every": 3}, "config.json: validate_every"),
        ({"threads": 4}, None),
    ],
)
def test_processes_that_see_different_runs_are_refused(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], reason: str | None
) -> None:
    run = make_run()
    run.data_path.mkdir()
    (run.data_path / durable.MANIFEST).write_text("{}")

    def gather(own: list[dict[str, Any]]) -> list[dict[str, Any]]:
        other = dict(own[0])
        for name, value in change.items():
            if name in other:
                other[name] = value
            else:
                other["settings"] = other["settings"] | {name: value}
        return [own[0], other]

    monkeypatch.setattr("accelerate.utils.gather_object", gather)
    settings = read(run.config_path)
    if reason is None:
        check_same(TWO, run, settings, None)  # type: ignore[arg-type]
        return
    with pytest.raises(InputError, match=rf"process 2 of 2 .*\({reason}\).* disk that they"):
        check_same(TWO, run, settings, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "learns"), [("next_sentence", False), ("masked_token", True)])
def test_a_mask_decoder_that_nothing_asks_does_not_hold_up_other_processes(
    name: str, learns: bool
) -> None:
    """Each waits for the gradients of all that learns."""
    model = new(tiny("deberta-base"), heads=(name,))
    beside = SimpleNamespace(process_index=0, num_processes=2, prepare=lambda module: module)
    values = {"model": {"size": "deberta-base"}, "data": {"texts": ["a.txt"]}, "steps": 1}
    training = Pretraining(
        settings=parse(values),
        plan=SimpleNamespace(objectives={name: 1.0}),
        model=model,
        objective=Weighted([(1.0, build(name, model, Options()))]),
        stream=SimpleNamespace(place=lambda: None),
        validation=None,
        accelerator=beside,
    )
    assert any("mask_decoder" in each for each in training.names) is learns
    assert any("feed_forward" in each for each in training.names)


def test_every_process_needs_an_example() -> None:
    check_shares(1, 1, 1)
    check_shares(4, 4, 9)
    with pytest.raises(InputError, match=r"smallest batches: 3\. But 4 processes"):
        check_shares(4, 3, 100)
    with pytest.raises(InputError, match=r"Examples in all: 2\. But 4 processes"):
        check_shares(4, 32, 2)


def test_a_memory_of_rows_that_do_not_divide_is_put_together() -> None:
    """Six rows in four processes: two, two, one and one."""
    whole = torch.arange(6.0)[:, None, None].expand(6, 3, 2)
    parts = [whole[rank::4] for rank in range(4)]

    def gathers(rank: int) -> Iterator[torch.Tensor]:
        yield torch.tensor([len(part) for part in parts])
        yield torch.cat([torch.cat([p, p.new_zeros(2 - len(p), 3, 2)]) for p in parts])

    for rank in range(4):
        answers = gathers(rank)
        shapes = []

        def gather(part: torch.Tensor, answers=answers, shapes=shapes) -> torch.Tensor:  # type: ignore[no-untyped-def]
            shapes.append(tuple(part.shape))
            return next(answers)

        fake = SimpleNamespace(num_processes=4, gather=gather)
        (found,) = whole_memory((parts[rank],), fake)  # type: ignore[arg-type]
        assert torch.equal(found, whole)
        assert shapes == [(1,), (2, 3, 2)], "every process must send as much"


def _nodes(config: Path, how: list[str]) -> list[subprocess.Popen[str]]:
    """Two nodes of one process each, both on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "accelerate.commands.launch", *how]
    command += ["--num_machines=2", "--num_processes=2", "--main_process_ip=127.0.0.1"]
    command += [f"--main_process_port={port}"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    module = ["--module", "core_models.training", str(config)]
    return [
        subprocess.Popen(
            [*command, f"--machine_rank={rank}", *module],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]


def _worker(node: subprocess.Popen[str]) -> int:
    """The training process that the launcher of a node has started."""
    children = Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().split()
    for child in children:
        if b"core_models.training" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("no worker")


def _await(condition: Callable[[], bool]) -> None:
    assert until(condition, 90)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the worker in /proc")
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("how", [["--multi_gpu"], ["--use_fsdp", "--fsdp_version=2"]], ids=str)
def test_two_nodes_survive_the_loss_of_one(
    make_run: MakeRun, toy: Callable[..., dict[str, Any]], how: list[str]
) -> None:
    """Kill -9 of the second; from what they saved a single process goes on with equal losses."""
    changes = {
        "model": toy()["model"] | {"dropout": 0.0},
        "precision": "fp32",
        "steps": 60,
        "report_every": 3,
        "validate_every": 60,
        "checkpoints": {"every": 9},
    }
    alone, run = make_run("alone", **changes), make_run("nodes", **changes)
    nodes = _nodes(run.config_path, how)  # both write the same folder
    _await(lambda: bool(run.checkpoints()))
    os.kill(_worker(nodes[1]), signal.SIGKILL)
    said = [node.communicate(timeout=120)[0] for node in nodes]
    assert all(node.returncode for node in nodes)
    assert run.state() == "failed"
    assert "Another process of this run is gone" in run.status()["reason"]
    assert "Another process of this run is gone" in said[0]
    assert run.status()["processes"] == 2
    for each in (run, alone):
        forget_accelerator()
        assert train(each.config_path, quiet) == "finished"
    for mine, theirs in zip(alone.metrics(), run.metrics(), strict=True):
        assert mine["step"] == theirs["step"]
        for name in (name for name in mine if name.endswith("_loss")):
            assert theirs[name] == pytest.approx(mine[name], abs=1e-4), name
    assert json.loads((run.path / "evaluation.json").read_text())["steps"] == 60
