"""Results that were computed before, within a bound of memory."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any


class Cache:
    """A thread-safe least-recently-used cache, bounded by the total cost of its values.

    A value that alone costs more than the bound is not kept.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.cost = 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> Any | None:
        """The value under a key, which then counts as just used; None if there is none."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: Any, cost: int) -> None:
        """Keep a value of the given cost (bytes) and drop the oldest ones beyond the bound."""
        with self._lock:
            if key in self._values:
                self.cost -= self._values.pop(key)[1]
            if cost > self.most:
                return
            self._values[key] = (value, cost)
            self.cost += cost
            while self.cost > self.most:
                self.cost -= self._values.popitem(last=False)[1][1]
