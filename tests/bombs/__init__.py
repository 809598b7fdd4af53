"""Bombs: files small on the disk that would fill the memory, or never end, when they are read."""

from tests.bombs import models, runs, texts, vocabularies
from tests.bombs.kind import Bomb

BOMBS: dict[str, Bomb] = {
    f"{part.KIND}: {make.__name__.replace('_', ' ')}": Bomb(part.KIND, make)
    for part in (models, vocabularies, texts, runs)
    for make in part.MAKERS
}
"""Every bomb by what it is."""
