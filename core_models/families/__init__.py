"""The registry of families and released sizes."""

from dataclasses import replace

from core_models.config import Config
from core_models.errors import InputError
from core_models.families import (
    albert,
    bert,
    chinese,
    deberta,
    deberta_v2,
    deberta_v3,
    distilbert,
    electra,
    eurobert,
    modernbert,
    neobert,
    roberta,
    spanbert,
    xlnet,
)
from core_models.families.family import Family

_ALL = (
    replace(bert.FAMILY, sizes={**bert.FAMILY.sizes, **chinese.SIZES}),
    roberta.FAMILY,
    distilbert.FAMILY,
    albert.FAMILY,
    spanbert.FAMILY,
    electra.FAMILY,
    chinese.FAMILY,
    xlnet.FAMILY,
    deberta.FAMILY,
    deberta_v2.FAMILY,
    deberta_v3.FAMILY,
    modernbert.FAMILY,
    eurobert.FAMILY,
    neobert.FAMILY,
)

FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""Every family by name."""


def family(name: str) -> Family:
    """The family of a name; InputError lists the known ones."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise InputError(f"No family {name!r}; known are {', '.join(FAMILIES)}.") from None


def sizes() -> dict[str, Config]:
    """Every published size of every family by name."""
    return {name: config for f in FAMILIES.values() for name, config in f.sizes.items()}


def size(name: str) -> Config:
    """The config of a published size such as ``bert-base-uncased``; InputError names close ones."""
    if not isinstance(name, str):
        raise InputError(f"A size is named by a text, not by {type(name).__name__}.")
    known = sizes()
    for f in FAMILIES.values():
        name = f.aliases.get(name, name)
    if name in known:
        return known[name]
    stem = str(name).split("-", maxsplit=1)[0]
    close = [other for other in known if other.startswith(stem)] or list(known)
    raise InputError(f"No published size {name!r}; there are {', '.join(close)}.")
