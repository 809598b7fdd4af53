"""A model that is cut over its processes: the losses and weights of one, and files that are whole.

The processes are told what Accelerate's launcher tells them with ``--use_fsdp --fsdp_version 2``;
the launcher itself starts those of the last test.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

import core_models as cm
from core_models.errors import InputError
from core_models.training import host, muon, pretraining_run, process
from core_models.training.folder import RunFolder
from core_models.training.learning import Learning
from core_models.training.process import train
from core_models.training.settings import read
from tests.training import test_processes
from tests.training.conftest import forget_accelerator, quiet, text
from tests.training.several import ROOT, launch
from tests.training.test_resume import SMALL
from tests.waiting import until

MakeRun = Callable[..., RunFolder]
Toy = Callable[..., dict[str, Any]]
FSDP = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "ACCELERATE_MIXED_PRECISION": "no",
}


def local(tensors: "list[Tensor | None]") -> int:
    """Numbers that this process holds of some tensors."""
    return sum(t.to_local().numel() for t in tensors if t is not None)  # type: ignore[operator]


def work(configs: list[Path]) -> None:
    """Train several runs as one of several processes; each notes beside a run what it held."""
    os.environ.update(FSDP)
    apply = Learning.apply
    held: dict[str, int] = {}

    def noting(self: Learning, measured: Mapping[str, Tensor]) -> None:
        held["units"] = sum(isinstance(part, FSDPModule) for part in self.module.modules())
        held["parameters"] = local(list(self.names.values()))
        held["gradients"] = local([p.grad for p in self.names.values()])
        apply(self, measured)
        states = [state for each in self.optimizers for state in each.state.values()]
        held["averages"] = local([s[k] for s in states for k in s if k.startswith("exp_avg")])

    Learning.apply = noting  # type: ignore[method-assign]
    for config in configs:
        test_processes.work([config])
        (config.parent / f"held-{host.rank()}.json").write_text(json.dumps(held))


def kinds(toy: Toy) -> dict[str, dict[str, Any]]:
    """Settings of runs in which parts of a model are shared in different ways."""
    text_alone = {"texts": ["../text.txt"], "held_out": 0.3, "max_length": 24}
    pieces = {"data": text_alone, "tokenizer": {"vocabulary": 300}}

    def model(size: str, **overrides: int) -> dict[str, Any]:
        return {"model": {"size": size, "overrides": SMALL | overrides, "dropout": 0.0}}

    tied = {"model": toy()["model"] | {"dropout": 0.0}, "data": toy()["data"]}
    tied["data"]["texts"] = ["../text.txt"]
    found = {
        # Of two processes one has five rows, the other four: five parts for the first alone.
        "bert": tied | {"accumulation": 5, "batch_size": 9},
        "albert": model("albert-base", embedding_width=16, layers=3) | pieces,
        "electra": model("electra-small", embedding_width=32)
        | {"data": text_alone, "generator": {"width": 16, "heads": 2, "inner": 32}},
        "xlnet": model("xlnet-base") | pieces | {"batch_size": 4},
        "deberta": model("deberta-v3-base") | pieces,
        "muon": tied | {"optimizer": {"kind": "muon"}},
    }
    saved = {"every": 6, "keep": 2, "snapshots": True}
    usual = {"precision": "fp32", "steps": 12, "checkpoints": saved}
    return {name: toy(**usual | values) for name, values in found.items()}


def made(run: RunFolder, values: dict[str, Any], data: Path | None = None) -> RunFolder:
    run.path.mkdir()
    run.config_path.write_text(json.dumps(values))
    if data is not None:
        shutil.copytree(data, run.data_path)
    return run


def halfway(run: RunFolder, name: str) -> RunFolder:
    """A copy of a finished run as if its processes had been killed after step 6."""
    copied = RunFolder(shutil.copytree(run.path, run.path.with_name(name)))
    for gone in ("checkpoints/step-12", "model", "generator"):
        shutil.rmtree(copied.path / gone, ignore_errors=True)
    copied.write_status(copied.status() | {"state": "failed"})
    return copied


def assert_equal(mine: RunFolder, theirs: RunFolder) -> None:
    """Losses, norms, and every tensor of every file but the states of generators."""
    assert theirs.state() == "finished", theirs.status()
    for one, other in zip(mine.metrics(), theirs.metrics(), strict=True):
        for name, value in one.items():
            if name.endswith("_loss") or name == "gradient_norm":
                assert other[name] == pytest.approx(value, abs=1e-5, rel=1e-5), name
    files = {
        path.relative_to(mine.path)
        for path in mine.path.rglob("*.safetensors")
        if path.name != "random.safetensors" and "data" not in path.parts
    }
    assert len(files) >= 4
    for file in sorted(files):
        one, other = load_file(mine.path / file), load_file(theirs.path / file)
        assert one.keys() == other.keys(), file
        for name, tensor in one.items():
            torch.testing.assert_close(other[name], tensor, atol=1e-5, rtol=0, msg=f"{file} {name}")


def assert_shared_out(run: RunFolder, processes: int) -> None:
    """Each process held 1/N of parameters, gradients and averages; every block is a unit."""
    held = [json.loads((run.path / f"held-{n}.json").read_text()) for n in range(processes)]
    models = (run.path / name for name in ("model", "generator"))
    blocks = sum(cm.load(folder).config.blocks for folder in models if folder.is_dir())
    assert [each["units"] for each in held] == [blocks + 1] * processes
    own = load_file(run.checkpoints()[-1].path / "optimizer.safetensors")
    whole = sum(tensor.numel() for name, tensor in own.items() if name.endswith("|exp_avg"))
    for name, times in (("parameters", 1), ("gradients", 1), ("averages", 2)):
        shares = [each[name] / (times * whole) for each in held]
        assert sum(shares) == pytest.approx(1), name
        assert shares == pytest.approx([1 / processes] * processes, abs=0.03), name


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("processes", "names"),
    [
        (2, ["bert"]),
        pytest.param(2, ["albert", "electra", "xlnet", "deberta", "muon"], marks=pytest.mark.slow),
        pytest.param(4, ["bert", "albert", "electra"], marks=pytest.mark.slow),
        pytest.param(4, ["xlnet", "deberta", "muon"], marks=pytest.mark.slow),
    ],
)
def test_a_model_that_is_cut_learns_the_same_and_goes_on_in_one_process_and_back(
    tmp_path: Path,
    toy: Toy,
    monkeypatch: pytest.MonkeyPatch,
    processes: int,
    names: list[str],
) -> None:
    # Where Muon's steps are taken in bfloat16, they round the sums of parts to other values.
    monkeypatch.setattr(muon, "precision", lambda _: torch.float32)
    (tmp_path / "text.txt").write_text(text(40))
    alone, cut = {}, {}
    for name in names:
        values = kinds(toy)[name]
        alone[name] = made(RunFolder(tmp_path / f"{name}-alone"), values)
        forget_accelerator()
        train(alone[name].config_path, quiet)
        cut[name] = made(RunFolder(tmp_path / f"{name}-cut"), values, alone[name].data_path)
    on = {name: halfway(run, f"{name}-on") for name, run in alone.items()}
    configs = [run.config_path for run in (*cut.values(), *on.values())]
    done = launch(lambda: work(configs), processes)
    assert done.returncode == 0, done.stderr
    for name, run in cut.items():
        assert_equal(alone[name], run)
        assert_equal(alone[name], on[name])
        if name != "muon":
            assert_shared_out(run, processes)
        back = halfway(run, f"{name}-back")
        forget_accelerator()
        train(back.config_path, quiet)
        assert_equal(alone[name], back)


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"FSDP_VERSION": "1"}, "--fsdp_version 2"),
        ({"FSDP_OFFLOAD_PARAMS": "true"}, "fsdp_offload_params, which is not supported"),
        ({"FSDP_ACTIVATION_CHECKPOINTING": "true"}, "fsdp_activation_checkpointing, which"),
        ({"ACCELERATE_USE_DEEPSPEED": "true"}, "set up for DEEPSPEED, which is not supported"),
    ],
)
@pytest.mark.usefixtures("in_process")
def test_what_the_launcher_asks_for_beside_is_refused(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], reason: str
) -> None:
    for name, value in (FSDP | variables).items():
        monkeypatch.setenv(name, value)
    run = make_run("sharded", steps=2)
    with pytest.raises(InputError, match=reason):
        train(run.config_path, quiet)
    assert run.state() == "failed"


def test_one_process_alone_is_not_cut_and_several_neither_compile_nor_fine_tune(
    make_run: MakeRun, make_task: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in FSDP.items():
        monkeypatch.setenv(name, value)
    assert not host.sharded()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert host.sharded()
    run = make_run("compiled", compile=True)
    with pytest.raises(InputError, match="set compile to false"):
        pretraining_run.begin(run, read(run.config_path), None)
    with pytest.raises(InputError, match="Fine-tuning runs in one process"):
        process._train(make_task("task"), quiet)


def _workers(launcher: "subprocess.Popen[str]") -> list[int]:
    """The training processes of a launcher, in the order of their ranks."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    named = {n: Path(f"/proc/{n}/cmdline").read_bytes() for n in children}
    return [int(n) for n, line in named.items() if b"core_models.training" in line]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
@pytest.mark.usefixtures("in_process")
def test_the_launcher_starts_it_and_a_killed_process_ends_it_in_time(
    make_run: MakeRun, toy: Toy
) -> None:
    """Kill -9 of the second; two processes that hold all of the model go on with equal losses."""
    changes = {
        "model": toy()["model"] | {"dropout": 0.0},
        "precision": "fp32",
        "steps": 60,
        "validate_every": 60,
        "checkpoints": {"every": 9},
    }
    alone, run = make_run("alone", **changes), make_run("cut", **changes)
    options = ["--use_fsdp", "--fsdp_version=2", "--num_processes=2", "--main_process_port=0"]
    command = [sys.executable, "-m", "accelerate.commands.launch", *options]
    launcher = subprocess.Popen(
        [*command, "--module", "core_models.training", str(run.config_path)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert until(lambda: bool(run.checkpoints()), 90)
    os.kill(_workers(launcher)[1], signal.SIGKILL)
    said = launcher.communicate(timeout=120)[0]
    assert launcher.returncode, said
    assert run.state() == "failed", said
    assert "Another process of this run is gone" in run.status()["reason"]
    done = launch(lambda: test_processes.work([run.config_path]), 2)
    assert done.returncode == 0, done.stderr
    forget_accelerator()
    train(alone.config_path, quiet)
    assert run.state() == "finished"
    for mine, theirs in zip(alone.metrics(), run.metrics(), strict=True):
        for name in (name for name in mine if name.endswith("_loss")):
            assert theirs[name] == pytest.approx(mine[name], abs=1e-4), name
