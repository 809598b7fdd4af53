"""Names of a folder's tensors: today's and older ones, and the heads that they tell of."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from torch import Tensor

from core_models.checkpoints.table import Format
from core_models.checkpoints.weights import read_headers, same
from core_models.errors import InputError


def present_heads(form: Format, names: Iterable[str]) -> tuple[str, ...]:
    """A task's head, and heads of which a file holds tensors beyond those that may stand alone.

    In the order of the format's rows: a file gives its tensors in no fixed order, and the order of
    parameters decides how a gradient norm rounds.
    """
    alone = {a for pattern in form.alone for a in (pattern.replace("*", w) for w in _SUFFIXES)}
    found = {ours[0] for name in names if name not in alone and (ours := form.to_ours(name))}
    heads = {name.split(".")[1] for name in found if name.startswith("heads.")}
    task = () if form.task is None else (form.task.head,)
    known = dict.fromkeys([*task, *(row.head for row in form.rows if row.head)])
    kept = heads.union(task)
    return tuple(h for h in known if h in kept and form.leftovers.get(h) not in heads)


_SUFFIXES = ("weight", "bias")


def their_names(form: Format, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors under today's names: gamma and beta renamed, the encoder's prefix added.

    Raises:
        InputError: A tensor is there under two names, with different values.
    """
    result: dict[str, Tensor] = {}
    before: dict[str, str] = {}
    for old, name in _today(form, tensors).items():
        if not same(result.setdefault(name, tensors[old]), tensors[old]):
            raise twice(old, before[name])
        before.setdefault(name, old)
    return result


def _today(form: Format, names: Iterable[str]) -> dict[str, str]:
    """Names in a file -> today's."""
    renamed = {
        name: name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        )
        for name in names
    }
    if any(name.startswith(form.prefix) for name in renamed.values()):
        return renamed
    return {
        old: name if form.to_ours(name) or form.ignores(name) else form.prefix + name
        for old, name in renamed.items()
    }


def spelling(form: Format, folder: Path, name: str) -> str:
    """One of today's names, or of a part of a packed tensor, as the folder's files spell it."""
    whole = name.partition(":")[0]
    found = _today(form, read_headers(folder)).items()
    return next((old for old, today in found if today == whole), whole)


def twice(name: str, other: str) -> InputError:
    """The error of a tensor that is there under two names."""
    return InputError(
        f"The tensors {name!r} and {other!r} are the same one under two names, but their values "
        "differ; keep the right one only."
    )
