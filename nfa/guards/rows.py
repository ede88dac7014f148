"""Storage for rows of liveness and lists of kills. Each is stored once, because many monitor states share them."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from nfa.arena import grown
from nfa.kernels.shared.tables import EVERY_TERM as _EVERY_TERM
from nfa.kernels.traces import ALL_LIVE, NONE_LIVE

Row: TypeAlias = NDArray[np.uint32]
Item = TypeVar("Item", bound=np.generic)

EVERY_TERM = np.uint32(_EVERY_TERM)


class LiveRows:
    """The distinct rows of liveness, by index. The rows ``ALL_LIVE`` and ``NONE_LIVE`` always exist.

    A row has, for each column, the terms that can still complete, as bits. A column is a state of a pattern's automaton
    or a trailing NOT.
    """

    def __init__(self, columns: int) -> None:
        self._numbers: dict[bytes, int] = {}
        self._rows = np.zeros((8, columns), np.uint32)
        for number, fill in ((ALL_LIVE, EVERY_TERM), (NONE_LIVE, np.uint32(0))):
            self._rows[number] = fill
            self._numbers.setdefault(self._rows[number].tobytes(), number)
        self._count = 2

    def __len__(self) -> int:
        return self._count

    @property
    def array(self) -> NDArray[np.uint32]:
        """The rows as an array (rows, columns), with spare capacity. The array is replaced as it grows."""
        return self._rows

    def number(self, row: Row) -> int:
        """Return the index of a row. A new row is added."""
        content = row.tobytes()
        number = self._numbers.get(content)
        if number is not None:
            return number
        if self._count == len(self._rows):
            self._rows = grown(self._rows, 2 * self._count)
        self._rows[self._count] = row
        self._numbers[content] = self._count
        self._count += 1
        return self._count - 1


class KillLists:
    """Lists of columns that die at an event, stored as ranges of one array. List 0 is empty.

    A column is a state of a pattern's automaton or a trailing NOT. It dies when it can no longer complete.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {b"": 0}
        self._from = np.zeros(16, np.int32)
        self._columns = np.zeros(64, np.int32)
        self._count = 1

    @property
    def ranges(self) -> NDArray[np.int32]:
        """The bounds of the lists: list ``n`` is ``columns[ranges[n]:ranges[n + 1]]``. The array has spare capacity."""
        return self._from

    @property
    def columns(self) -> NDArray[np.int32]:
        """The columns of all lists, sorted within each list. The array has spare capacity."""
        return self._columns

    def number(self, before: Row, after: Row, *, by_term: bool) -> int:
        """Return the index of the list of columns that are alive in ``before`` and dead in ``after``.

        A new list is added. With ``by_term``, the list also has columns that lose only some of their terms.
        """
        is_dead = (before & ~after) != 0 if by_term else (before != 0) & (after == 0)
        dead = np.flatnonzero(is_dead).astype(np.int32)
        content = dead.tobytes()
        number = self._numbers.get(content)
        if number is not None:
            return number
        begin = int(self._from[self._count])
        end = begin + len(dead)
        while end > len(self._columns):
            self._columns = grown(self._columns, 2 * len(self._columns))
        if self._count + 2 > len(self._from):
            self._from = grown(self._from, 2 * len(self._from))
        self._columns[begin:end] = dead
        self._from[self._count + 1] = end
        self._numbers[content] = self._count
        self._count += 1
        return self._count - 1
