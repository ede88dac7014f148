"""A table of bounded size that evicts the keys stored least recently."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LatestUsed(OrderedDict[_Key, _Value]):
    """A table that keeps the ``kept`` most recently stored keys. Threads that share a table must use a lock."""

    def __init__(self, kept: int) -> None:
        super().__init__()
        self._kept = kept

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._kept:
            self.popitem(last=False)
