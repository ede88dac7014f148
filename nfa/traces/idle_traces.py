"""Traces that end because of the idle timeout (a session gap in event time)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.arena import grown, power_above
from nfa.errors import StateFormatError
from nfa.kernels import idle as kernel
from nfa.kernels.idle import EMPTY, HEAPED, N_COUNTERS, USED, IdleEnds, IdleState
from nfa.traces.table import checked
from streams import zeros_of

_LEAST_SLOTS = 64
_LATEST_US = 2**60  # long after the year 9999
_LEAST_ENDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTraces:
    """Traces that end without an end event, in order.

    Attributes:
        rows: Row of the batch before which each trace ends.
        keys: Hashed key of each trace.
        times_us: Time at which each trace ends.
    """

    rows: NDArray[np.int64]
    keys: NDArray[np.uint64]
    times_us: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)


class IdleTraces:
    """The open traces with the times of their newest events, from which the idle timeout counts.

    A trace ends when event time is ``timeout_us`` past its newest event. It ends before the first row with such a time,
    even if this row is in another trace. Results therefore do not depend on the division into batches.
    """

    def __init__(self, timeout_us: int) -> None:
        self.timeout_us = timeout_us
        self._state = _empty(_LEAST_SLOTS, _LEAST_SLOTS)
        self._ends = zeros_of(IdleEnds, _LEAST_ENDS, filled=1)

    def __len__(self) -> int:
        return int(self._state.counters[USED])

    def advance(
        self, keys: NDArray[np.uint64], times_us: NDArray[np.int64], is_last: NDArray[np.bool_], newest_us: int
    ) -> EndedTraces:
        """Advance event time by the rows of a batch and return the traces that the idle timeout ends.

        A row with ``is_last`` ends its own trace. ``newest_us`` is the newest time before the batch.
        """
        self._make_room(len(keys))
        self._ends.filled[0] = 0
        row: kernel.Int = 0
        newest: kernel.Int = newest_us
        columns = (
            np.array(keys, np.uint64),
            np.array(times_us, np.int64),
            is_last,
        )  # kernels only accept writable arrays
        while row < len(keys):
            row, newest = kernel.advance(self._state, self._ends, *columns, self.timeout_us, newest, row)
            if row < len(keys):
                self._widen()
        return self._ended()

    def pass_time(self, now_us: int) -> EndedTraces:
        self._ends.filled[0] = 0
        while not kernel.expire(self._state, self._ends, self.timeout_us, now_us, 0):
            self._widen()
        return self._ended()

    def keys(self) -> NDArray[np.uint64]:
        """Return the hashed keys of the open traces, in any order."""
        keys: NDArray[np.uint64] = self._state.keys[self._state.last != EMPTY]
        return keys

    def forget(self, keys: NDArray[np.uint64]) -> None:
        kernel.forget(self._state, keys)

    def dump_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the traces as arrays ``idle_key`` and ``idle_last``, in any order.

        They are not sorted, because sorting would cost more than saving.
        """
        used = np.flatnonzero(self._state.last != EMPTY)
        return {"idle_key": self._state.keys[used], "idle_last": self._state.last[used]}

    def load_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of ``dump_arrays``.

        Wrong types or lengths, impossible times and repeated keys are rejected.
        """
        keys = checked(arrays, "idle_key", np.uint64)
        last = checked(arrays, "idle_last", np.int64, len(keys))
        if np.any(np.abs(last) > _LATEST_US):
            raise StateFormatError("saved state: idle_last holds a time that no event has")
        order = np.lexsort((keys, last))
        keys, last = keys[order], last[order]
        dues = last + self.timeout_us
        state = _empty(power_above(2 * len(keys), _LEAST_SLOTS), max(_LEAST_SLOTS, 2 * len(keys)))
        if not kernel.fill(state, keys, last, dues):
            raise StateFormatError("saved state: idle_key holds a key twice")
        state.heap_due[: len(keys)], state.heap_key[: len(keys)] = dues, keys  # a sorted array is a heap
        state.counters[HEAPED] = len(keys)
        self._state = state

    def _make_room(self, rows: int) -> None:
        """Make room for ``rows`` more rows, so that at most three quarters of the slots are in use."""
        state = self._state
        needed = len(self) + rows
        if 4 * needed > 3 * len(state.keys):
            used = np.flatnonzero(state.last != EMPTY)
            larger = _empty(power_above(2 * needed, _LEAST_SLOTS), 0)
            kernel.fill(larger, state.keys[used], state.last[used], state.queued[used])
            self._state = state = state._replace(keys=larger.keys, last=larger.last, queued=larger.queued)
        entries = int(state.counters[HEAPED]) + rows
        if entries > len(state.heap_due):
            self._state = state._replace(
                heap_due=grown(state.heap_due, 2 * entries), heap_key=grown(state.heap_key, 2 * entries)
            )

    def _widen(self) -> None:
        ends, size = self._ends, 2 * len(self._ends.rows)
        self._ends = IdleEnds(grown(ends.rows, size), grown(ends.keys, size), grown(ends.times, size), ends.filled)

    def _ended(self) -> EndedTraces:
        filled = int(self._ends.filled[0])
        ends = self._ends
        return EndedTraces(
            rows=ends.rows[:filled].copy(), keys=ends.keys[:filled].copy(), times_us=ends.times[:filled].copy()
        )


def _empty(slots: int, entries: int) -> IdleState:
    last = np.full(slots, EMPTY, np.int64)
    return zeros_of(IdleState, slots, last=last, heap_due=entries, heap_key=entries, counters=N_COUNTERS)
