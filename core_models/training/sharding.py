"""A model that is cut over the processes that train it, for one that no device holds whole.

Each process keeps its 1/N of every parameter, of its gradient and of what the optimizer remembers
of it. A block is put together for the time of its pass, what is outside of blocks for the time of
an update (FSDP, arXiv 2304.11277, section 3; its second version, which cuts every parameter by its
rows, is PyTorch's ``torch.distributed.fsdp.fully_shard``).

Not by ``Accelerator.prepare``: Accelerate 1.15 shards on GPUs only, looks for embeddings and scores
by methods of transformers, and wants the optimizer made before.
"""

import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from core_models.errors import InputError
from core_models.model import Model
from core_models.network.initialise import without_values
from core_models.network.layer import Layer
from core_models.network.terms.disentangled import DisentangledTable
from core_models.network.terms.transformer_xl import TransformerXLTable

if TYPE_CHECKING:
    from accelerate import Accelerator

_OLDEST = "2.13"
"""PyTorch that finds the tensors inside of our dataclasses, with which blocks are called."""


def shard(module: nn.Module, accelerator: "Accelerator") -> None:
    """Cut every block and the rest of a module in place; nothing else of it need be on the device.

    Parameters that several parts share must lie outside of blocks.

    Raises:
        InputError: PyTorch is too old.
    """
    if torch.__version__ < _OLDEST:
        raise InputError(f"A sharded run needs PyTorch {_OLDEST}; this is {torch.__version__}.")
    # Imported late: one process alone need not wait for it.
    from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method  # noqa: PLC0415

    # Keys and values that several passes share are views; nothing writes into them.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module", UserWarning)
    mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
    for block in [part for part in module.modules() if isinstance(part, Layer)]:
        fully_shard(block, mesh=mesh)
        register_fsdp_forward_method(block, "source")
    fully_shard(module, mesh=mesh)
    for part in module.modules():
        if isinstance(part, DisentangledTable | TransformerXLTable):
            part.keeps = False  # to keep is to look at parameters, whose memory comes and goes here
    module.to(accelerator.device)  # what is no parameter: a teacher


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor that may be cut over processes; then all of them must ask for it."""
    full = getattr(tensor, "full_tensor", None)
    found: Tensor = tensor if full is None else full()
    return found


def cut(tensor: Tensor, like: Tensor) -> Tensor:
    """The share of a whole tensor, known to every process, that this one has of another; or all."""
    placements = getattr(like, "placements", None)
    if placements is None:
        return tensor.to(like.device)
    from torch.distributed.tensor import DTensor, distribute_tensor  # noqa: PLC0415

    assert isinstance(like, DTensor)
    return distribute_tensor(tensor, like.device_mesh, placements, src_data_rank=None)


@torch.no_grad()
def whole_model(model: Model, *, keep: bool) -> Model:
    """A copy in main memory with whole tensors, put together one at a time.

    All processes must ask; where they do not ``keep`` it, it has no values.
    """
    with without_values():
        copied = type(model)(model.config, model.tokenizer, model.heads)
    copied.spare = model.spare
    copied.spare_fields = model.spare_fields
    values = model.state_dict(keep_vars=True)
    found: dict[int, Tensor] = {}  # a table that a head shares is put together once
    for tensor in values.values():
        if id(tensor) not in found:
            full = whole(tensor.detach())
            found[id(tensor)] = full.cpu() if keep else full.to("meta")
    copied.load_state_dict({name: found[id(t)] for name, t in values.items()}, assign=True)
    return copied
