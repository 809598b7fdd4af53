"""Opening a folder of a transformers model that is not of our families.

Weights are read by transformers' own ``from_pretrained``, after the headers have been compared with
what config.json describes, and strictly: a tensor that is missing in the encoder, does not fit or
has no place is an error, never a random or forgotten one.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core_models.checkpoints.files import read_headers
from core_models.config import ForeignConfig
from core_models.errors import InputError
from core_models.foreign.config import read_config
from core_models.foreign.lock import transformers
from core_models.network.initialise import without_values


def load_whole(folder: Path) -> tuple[Any, bool, ForeignConfig]:
    """A transformers model with its masked-token head, and whether the files hold that head.

    Raises:
        InputError: what the folder holds is no such model, or parts of it do not fit.
    """
    theirs, config = read_config(folder)
    headers = read_headers(folder)
    with transformers() as library:
        made = library.AutoModelForMaskedLM
        _compare_size(_on_meta(made, theirs), headers)
        try:
            whole, found = made.from_pretrained(
                folder,
                config=theirs,
                local_files_only=True,
                use_safetensors=True,
                dtype=torch.float32,
                attn_implementation="eager",
                output_loading_info=True,
            )
        except Exception as error:  # of any kind, by what a file holds
            raise InputError(
                f"{folder}: transformers {library.__version__} cannot build a {config.family} of "
                f"these files ({type(error).__name__}); they do not fit their config.json."
            ) from None
    headed = _check_found(folder, whole, found)
    _check_types(whole, headers)
    for name, tensor in whole.state_dict().items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise InputError(f"The tensor {name!r} holds NaN or infinite values.")
    return whole.eval().requires_grad_(False), headed, config


def _on_meta(made: Any, theirs: Any) -> nn.Module:
    try:
        with without_values():
            model: nn.Module = made.from_config(theirs)
    except Exception as error:
        raise InputError(
            f"config.json: no {theirs.model_type} can be built of it ({type(error).__name__})."
        ) from None
    return model


def _compare_size(model: Any, headers: dict[str, Tensor]) -> None:
    """InputError, before anything is allocated, where the files are far from what is described."""
    needed = sum(p.numel() for p in model.base_model.parameters())
    held = sum(t.numel() for t in headers.values())
    if needed > held:
        raise InputError(
            f"config.json describes an encoder of {needed:,} parameters; the files hold "
            f"{held:,} numbers."
        )


def _check_found(folder: Path, whole: Any, found: Any) -> bool:
    """Whether the head was there; InputError where a part of the encoder was not."""
    prefix = f"{whole.base_model_prefix}."
    missing = sorted(found["missing_keys"])
    lacking = [name for name in missing if name.startswith(prefix)]
    if lacking:
        raise InputError(
            f"{folder} lacks tensors of the encoder ({len(lacking)}), first {lacking[0]!r}."
        )
    unfit = [str(entry[0]) for entry in found.get("mismatched_keys", ())]
    if unfit:
        raise InputError(f"The tensor {unfit[0]!r} has another shape than config.json asks for.")
    buffers = {name.rpartition(".")[2] for name, _ in whole.named_buffers()}
    spare = [n for n in sorted(found["unexpected_keys"]) if n.rpartition(".")[2] not in buffers]
    inside = {name for name, _ in whole.base_model.named_children()}
    odd = [n for n in spare if n.removeprefix(prefix).partition(".")[0] in inside]
    if odd:
        raise InputError(
            f"{folder} holds the tensor {odd[0]!r}, which has no place in a model of this "
            "config.json."
        )
    if spare:
        warnings.warn(
            f"{folder} holds tensors that this model does not use ({len(spare)}): "
            f"{', '.join(spare[:8])}.",
            stacklevel=4,
        )
    return not missing


def _check_types(whole: Any, headers: dict[str, Tensor]) -> None:
    """InputError for weights that are whole numbers."""
    for name, _ in whole.named_parameters():
        held = headers.get(name)
        if held is not None and not held.is_floating_point():
            raise InputError(f"The tensor {name!r} holds whole numbers; expected floating-point.")


def layers_of(base: nn.Module, config: ForeignConfig) -> nn.ModuleList:
    """The list of a base model's layers.

    Raises:
        InputError: there is none of as many modules as the config has layers.
    """
    lists: Sequence[nn.ModuleList] = [
        part
        for part in base.modules()
        if isinstance(part, nn.ModuleList) and len(part) == config.steps
    ]
    if not lists or _several(lists):
        raise InputError(
            f"A {config.family} is not built of {config.steps} layers that follow each other, so "
            "it cannot be looked into. Choose another model."
        )
    return lists[0]


def _several(lists: Sequence[nn.ModuleList]) -> bool:
    """Whether there is another list beside the first, not inside it."""
    within = set(lists[0].modules())
    return any(other not in within for other in lists[1:])
