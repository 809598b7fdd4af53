"""What a training process has of its machine: signals that end it, cores and an accelerator."""

import contextlib
import math
import os
import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from core_models.errors import InputError
from core_models.training.folder import RunFolder

if TYPE_CHECKING:
    from accelerate import Accelerator

_WORLD = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
_RANK = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
"""What torchrun and the MPIs call the number of processes, and that of this one."""

_OTHERS = ("DEEPSPEED", "MEGATRON_LM")
_UNDONE = ("FSDP_OFFLOAD_PARAMS", "FSDP_ACTIVATION_CHECKPOINTING")
"""What a launcher may ask for, beside sharding itself, that is not done here."""


CGROUPS = Path("/sys/fs/cgroup")
_MEMORY = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)
"""Of both versions: what may be taken, what is, and of that what gives way (cgroups(7))."""


def container_memory() -> tuple[float, float]:
    """Bytes of memory that a container may take, and those that are left; no limit without one."""
    for limit, taken, facts, idle in _MEMORY:
        with contextlib.suppress(OSError, ValueError, LookupError):
            most, now = (int((CGROUPS / name).read_text("ascii")) for name in (limit, taken))
            lines = (CGROUPS / facts).read_text("ascii").splitlines()
            spare = dict(line.split() for line in lines)[idle]
            return most, max(0, most - now + int(spare))
    return math.inf, math.inf


def processes() -> int:
    """How many processes were started together; InputError where a launcher started too few."""
    # `accelerate launch --cpu --num_processes 2` without MPI names a port where processes would
    # meet, and then starts a single one (accelerate 1.15, prepare_simple_launcher_cmd_env).
    launched = "ACCELERATE_MIXED_PRECISION" in os.environ
    named = any(name in os.environ for name in _WORLD)
    if not named and launched and "MASTER_PORT" in os.environ:
        raise InputError(
            "accelerate launch was asked for several processes and started one. Give it "
            "--multi_gpu, in place of --cpu where that stands (without a GPU the processes then "
            "use CPUs), or take python -m torch.distributed.run; see docs/training.md."
        )
    for name in _OTHERS:
        if _set(f"ACCELERATE_USE_{name}"):
            raise InputError(
                f"accelerate is set up for {name}, which is not supported. Choose multi-GPU or "
                "FSDP with version 2 in accelerate config."
            )
    sharded()
    return asked_for()


def sharded() -> bool:
    """Whether the model is to be cut over several processes, as Accelerate's launcher was told.

    Raises:
        InputError: in a way that is not done.
    """
    if not _set("ACCELERATE_USE_FSDP"):
        return False
    if os.environ.get("FSDP_VERSION", "1") != "2":
        raise InputError(
            "accelerate is set up for version 1 of FSDP; give it --fsdp_version 2, or fsdp_version "
            "2 in accelerate config."
        )
    for name in _UNDONE:
        if _set(name):
            raise InputError(
                f"accelerate is set up for FSDP with {name.lower()}, which is not supported; "
                "switch it off."
            )
    return asked_for() > 1


def _set(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true")


def asked_for() -> int:
    """The number of processes that the launcher tells of; 1 where there is none."""
    count = next((os.environ[name] for name in _WORLD if name in os.environ), "1")
    return int(count) if count.isdigit() else 1


def meet() -> None:
    """Wait for the other processes before anything else, where there are some with an address.

    From then on each notices when another one ends. One that was refused before it met the others,
    because its folder is taken or its file is missing, would leave them waiting for half an hour.
    """
    if asked_for() > 1 and "MASTER_ADDR" in os.environ:
        # Imported late: a page that looks at a labelled set need not wait for it.
        from accelerate import PartialState  # noqa: PLC0415

        PartialState(cpu=not torch.accelerator.is_available())


def rank() -> int:
    """Number of this process among those that were started together, from 0."""
    number = next((os.environ[name] for name in _RANK if name in os.environ), "0")
    return int(number) if number.isdigit() else 0


def is_main() -> bool:
    """Whether this is the only process, or the first of several that were started together."""
    return rank() == 0


class Stop:
    """Whether to stop: the file ``stop``, SIGTERM or Ctrl-C."""

    def __init__(self, run: RunFolder) -> None:
        """Take both signals from now on."""
        self._run = run
        self._signal: int | None = None
        self.reason = ""
        self._take()

    def _take(self) -> None:
        signal.signal(signal.SIGTERM, self._note)
        signal.signal(signal.SIGINT, self._note)

    def take_back(self) -> None:
        """Take both signals from who took them since, with one that came meanwhile."""
        other = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
        if isinstance(other, Stop):
            self._signal = self._signal or other._signal
        self._take()

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._signal = number

    def requested(self) -> bool:
        """Whether anybody asked so far; :attr:`reason` then says who."""
        if self._signal is not None:
            self.reason = f"by signal {signal.Signals(self._signal).name}"
        elif self._run.stop_requested():
            self.reason = "by request"
        return bool(self.reason)


def threads(wanted: int | None, before: int | None) -> int:
    """CPU threads: as asked for, else as many as before a resume, else one for each core."""
    if wanted is not None or before is not None:
        return wanted or before or 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def together() -> "Accelerator | None":
    """The processes that were started together; None where this one is alone."""
    if asked_for() == 1 and "ACCELERATE_MIXED_PRECISION" not in os.environ:
        return None
    # Imported late: one process alone need not wait for it.
    from accelerate import Accelerator  # noqa: PLC0415

    # Without an accelerator several processes would stay strangers, were they not told.
    return Accelerator(mixed_precision="no", cpu=not torch.accelerator.is_available())


def on() -> torch.device:
    """The accelerator where there is one, else the CPU."""
    # A CUDA build of PyTorch names "cuda" on machines without such a device, too.
    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


def put_back(generator: torch.Generator, state: Tensor, *, anew: tuple[int, ...]) -> None:
    """Let a generator go on from where a saved one stood.

    A run may go on where there is no GPU, or where there is one now: the states of generators are
    of other lengths there, and none can take another's.

    Args:
        generator: Of this machine's device.
        state: As `torch.Generator.get_state` gave it; bytes.
        anew: Of what it is seeded where it cannot go on.
    """
    if len(state) == len(generator.get_state()):
        generator.set_state(state)
    else:
        generator.manual_seed(hash(anew) & 0x7FFF_FFFF)
