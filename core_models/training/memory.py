"""The memory of earlier segments of all rows."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from accelerate import Accelerator

Memory = tuple[Tensor, ...]
"""Inputs of every step, each [B, M', D]."""


def whole_memory(own: Memory, accelerator: "Accelerator") -> Memory:
    """The memory of all rows in their order; process r of n holds the rows r, r + n, r + 2n, ...

    The last processes may have a row less than the first ones.
    """
    count = int(accelerator.num_processes)
    if count == 1:
        return own
    whole = []
    for part in own:
        rows = int(accelerator.gather(torch.tensor([len(part)], device=part.device)).sum())
        missing = -(-rows // count) - len(part)
        even = torch.cat([part, part.new_zeros(missing, *part.shape[1:])])
        shares = accelerator.gather(even).unflatten(0, (count, -1))  # process, row of the process
        whole.append(shares.transpose(0, 1).flatten(0, 1)[:rows])
    return tuple(whole)
