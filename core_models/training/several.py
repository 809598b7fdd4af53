"""Several processes as one run: whether they look at the same folder, and when one is lost."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core_models.errors import InputError
from core_models.training import durable
from core_models.training.checkpoint import Saved
from core_models.training.folder import RunFolder
from core_models.training.settings import Settings

if TYPE_CHECKING:
    from accelerate import Accelerator

_OWN = frozenset({"name", "description", "threads"})
"""Settings that processes may differ in. When to report, measure and save is done together."""
_GONE = (
    "closed by peer",
    "reset by peer",
    "broken pipe",
    "remote worker",
    "tcpstore",
    "waiting for recv",
    "waiting for send",
    "nccl communicator was aborted",
    "remote process exited",
)
"""What Gloo, NCCL and the store in which processes meet say when the other end is gone."""


class LostError(Exception):
    """Another process of the run is gone; the message is for people."""


def lost(error: BaseException, processes: int) -> LostError | None:
    """What to say instead where an error only tells that another process is gone.

    Args:
        error: as raised here.
        processes: how many were started together.
    """
    text = str(error).lower()
    if processes < 2 or not isinstance(error, RuntimeError) or not any(w in text for w in _GONE):
        return None
    return LostError(
        "Another process of this run is gone: it failed, was killed, or its machine cannot be "
        "reached. log.txt may say why. Start all of them again; the run goes on where it was saved."
    )


def check_same(
    accelerator: "Accelerator", run: RunFolder, settings: Settings, saved: Saved | None
) -> None:
    """InputError in every process where they do not go on from the same place in the same run.

    Nodes that do not share the folder would begin anew where the first one continues, and each
    would train a model of its own without anybody noticing.
    """
    if accelerator.num_processes == 1:
        return
    own = {
        "settings": settings.model_dump(mode="json"),
        "step": 0 if saved is None else saved.progress.step,
        "data": _digest(run),
    }
    from accelerate.utils import gather_object  # noqa: PLC0415

    first, *others = gather_object([own])
    for number, other in enumerate(others, start=1):
        if differ := _differences(first, other):
            raise InputError(
                f"The first process and process {number + 1} of {accelerator.num_processes} do not "
                f"see the same run ({differ}). All nodes need one run folder on a disk that they "
                "share."
            )


def check_shares(processes: int, batch_size: int, examples: int) -> None:
    """InputError where a process would get nothing of a batch.

    Args:
        processes: of the run.
        batch_size: examples that the smallest batch has.
        examples: that there are; a batch holds no more.
    """
    if min(batch_size, examples) < processes:
        what = f"Examples in the smallest batches: {batch_size}"
        if examples < batch_size:
            what = f"Examples in all: {examples}"
        raise InputError(
            f"{what}. But {processes} processes share each batch: start no more processes than a "
            "batch has examples, or give more."
        )


def _differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """In which respects two processes differ, in words; "" where they agree."""
    found = []
    left, right = first["settings"], other["settings"]
    if names := [name for name in left if left[name] != right[name] and name not in _OWN]:
        found.append(f"config.json: {', '.join(names)}")
    if first["step"] != other["step"]:
        found.append(f"step {first['step']} and step {other['step']}")
    if first["data"] != other["data"]:
        found.append("other data")
    return "; ".join(found)


def _digest(run: RunFolder) -> str:
    """Hash of the hashes of the data."""
    return hashlib.sha256((run.data_path / durable.MANIFEST).read_bytes()).hexdigest()
