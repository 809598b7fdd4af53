"""Families and published sizes by name."""

from core_models.config import Difference
from core_models.config import diff as diff_configs
from core_models.counts import Count
from core_models.counts import count as count_config
from core_models.families import FAMILIES, size, sizes

__all__ = ["count", "diff", "families", "size", "sizes"]


def families() -> list[str]:
    """Names of the families that can be built."""
    return list(FAMILIES)


def count(name: str) -> Count:
    """Exact parameter counts of a published size, from the built module."""
    return count_config(size(name))


def diff(left: str, right: str) -> list[Difference]:
    """What differs between two published sizes, value by value."""
    return diff_configs(size(left), size(right))
