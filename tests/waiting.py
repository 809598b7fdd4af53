"""Waits for a condition, which end as soon as it holds."""

import asyncio
from collections.abc import Callable
from threading import Event
from time import monotonic

PATIENCE = 60.0
"""Seconds until a wait is in vain: a busy machine takes ten times as long as a quiet one."""
_BETWEEN = 0.005


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether a condition comes to hold; looked at from time to time."""
    end = monotonic() + seconds
    while not condition():
        if monotonic() > end:
            return False
        Event().wait(_BETWEEN)
    return True


async def soon(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """The same in an event loop, which goes on meanwhile."""
    end = monotonic() + seconds
    while not condition():
        if monotonic() > end:
            return False
        await asyncio.sleep(0)
    return True
