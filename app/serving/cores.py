"""How many cores a forward pass takes. No Gradio in it."""

import ctypes
import threading
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

import core_models as cm

SHORT = 2e9
"""Operations of a pass below which one core is at least as fast as two.

A BERT of 4 x 256 on two cores, in a process with other threads that have computed, as a server
always is: 32 tokens take 6 ms on one core and 10 on two, 256 tokens (1.6e9 operations) 21 and 21,
512 tokens 38 and 31. The helpers of so many threads sleep between two operations, and to wake them
costs more than a short operation takes.
"""


def _mkl() -> ctypes.CDLL | None:
    """The library of matrix products inside of torch, where torch has this one.

    Once torch.set_num_threads was called, by whichever thread, torch tells MKL a number of its own
    in every new thread. Where OpenMP has another one, helpers end and begin at each step from one
    to the other: a short pass took five times as long.
    """
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    except OSError:
        return None
    return library if hasattr(library, "MKL_Set_Num_Threads_Local") else None


_MKL = _mkl()


class Cores:
    """Lets short passes keep to one core, in the threads that asked for it."""

    def __init__(self) -> None:
        self._most = torch.get_num_threads()
        # torch.set_num_threads would change other threads, too; OpenMP's own number does not.
        self._libraries = ThreadpoolController().select(user_api="openmp").lib_controllers
        self._thread = threading.local()

    def choose_here(self) -> None:
        """From now on passes of watched models choose in the calling thread."""
        torch.get_num_threads()  # sets the thread's number, which its first operation would do
        if _MKL is not None:
            _MKL.MKL_Set_Num_Threads_Local(0)
        self._thread.chooses = True

    def watch(self, model: cm.Model) -> None:
        """Choose before every pass of the model, and of copies that are made of it."""
        if self._most == 1 or model.encoder.embeddings.pieces.weight.device.type != "cpu":
            return
        config = model.config
        weights = sum(p.numel() for p in model.encoder.blocks.parameters())
        per_token = 2 * weights * config.steps / config.blocks
        most, libraries, thread = self._most, self._libraries, self._thread

        # No bound method: a deep copy of the model would copy the object that it is bound to.
        def choose(encoder: torch.nn.Module, given: tuple[Any, ...]) -> None:
            if getattr(thread, "chooses", False):
                rows, length = given[0].shape
                cores = 1 if rows * length * per_token < SHORT else most
                for library in libraries:
                    library.set_num_threads(cores)

        model.encoder.register_forward_pre_hook(choose)
