"""Values that took long to compute, kept for the keys that were asked for last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LatestUsed(Generic[_Key, _Value]):
    """What was computed for some keys; of two threads that ask at once for a new one, both compute it.

    Args:
        kept: Values of so many keys are kept.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: _Key, compute: Callable[[], _Value]) -> _Value:
        """The value of a key, which depends on nothing else; computed unless it is kept."""
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
