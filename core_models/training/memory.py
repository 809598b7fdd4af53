"""The memory of earlier segments of all rows, and the share of one process."""

import torch
from accelerate import Accelerator
from torch import Tensor

Memory = tuple[Tensor, ...]
"""Inputs of every step, each [B, M', D]."""


def whole_memory(own: Memory, accelerator: Accelerator) -> Memory:
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


def part_of_memory(whole: Memory, accelerator: Accelerator) -> Memory:
    """The rows of this process, on its device."""
    rank, count = int(accelerator.process_index), int(accelerator.num_processes)
    device: torch.device = accelerator.device
    return tuple(part[rank::count].to(device) for part in whole)
