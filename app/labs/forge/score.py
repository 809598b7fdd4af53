"""Who fooled the discriminator how often; the browser keeps it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from app.parts.plain import table
from viz.svg import Wording
from viz.verdicts import whole

SIDES = {"human": Wording("You"), "generator": Wording("Generator")}
EMPTY: dict[str, Any] = {**{side: [0, 0] for side in SIDES}, "counted": []}
"""Attempts and successes of each side, and which attempts were counted."""
MOST_COUNTED = 200


def read(value: Any) -> dict[str, Any]:
    """A score as a browser kept it; anything else is none."""
    found = dict(value) if isinstance(value, Mapping) else {}
    pairs = {side: found.get(side) for side in SIDES}
    counted = found.get("counted")
    if not isinstance(counted, list) or not all(_is_pair(pair) for pair in pairs.values()):
        return EMPTY
    return {**pairs, "counted": counted[-MOST_COUNTED:]}


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(n, int) for n in value)


def count(
    score: Mapping[str, Any], side: str, attempts: Iterable[tuple[Sequence[Any], bool]]
) -> dict[str, Any]:
    """The score after attempts, each what it was and whether it fooled; the same counts once."""
    tried, fooled = score[side]
    counted = list(score["counted"])
    for what, success in attempts:
        key = crc32(repr((side, what)).encode())
        if key not in counted:
            counted.append(key)
            tried, fooled = tried + 1, fooled + success
    return {**score, side: [tried, fooled], "counted": counted[-MOST_COUNTED:]}


def board(score: Mapping[str, Any]) -> dict[str, Any]:
    """The score as a table."""
    return table(
        Wording("Score"),
        [Wording("Who"), Wording("Attempts"), Wording("Fooled it")],
        [
            [
                label,
                score[side][0],
                [score[side][1], _share(*score[side])] if score[side][0] else None,
            ]
            for side, label in SIDES.items()
        ],
    )


def _share(tried: int, fooled: int) -> str:
    return f"{fooled} ({whole(fooled / tried)})"
