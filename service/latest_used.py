"""Values that took long to compute, kept for the most recently used keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LatestUsed(Generic[_Key, _Value]):
    """Computed values of the latest used keys. If two threads request a new key at once, both compute its value."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: _Key, compute: Callable[[], _Value]) -> _Value:
        """The value of a key, computed unless it is kept; it must depend on the key alone."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = compute()
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._kept:
                self._values.popitem(last=False)
        return value
