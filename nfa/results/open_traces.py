"""The data of each open trace besides its monitor: key, times, number of events, and newest type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nfa.arena import grown
from nfa.errors import StateFormatError
from nfa.kernels import open_traces as kernel
from nfa.kernels.open_traces import CLOSED, UNKNOWN, OpenTimes
from nfa.kernels.traces import Columns
from nfa.results.event_store import read_texts, saved_texts
from nfa.traces.table import TraceTable, Visits, checked
from streams import EventBatch, column_of, shown_texts

_SLACK = 1_024  # up to this number of keys of ended traces, a cleanup is not worthwhile


class OpenTraces:
    """Keys and times of the open traces, by their number in a ``TraceTable`` that visits every event."""

    def __init__(self) -> None:
        self._times = _room(0)
        self._place = np.zeros(0, np.int32)  # for each trace, the index of its key in all parts together
        self._parts: list[pa.Array] = []
        self._stored = 0
        self._types = {"": 0}  # numbers of types by name

    @property
    def times(self) -> OpenTimes:
        """Arrays with the first and newest time, number of events and newest type of each trace.

        They are valid until the next ``note``.
        """
        return self._times

    def number_of(self, event_type: str) -> int:
        """Return the number of a type in ``times.last``, or -1 if the type is unknown."""
        return self._types.get(event_type, -1)

    def last_types(self, traces: NDArray[np.int32]) -> list[str]:
        """Return the type of the newest event of each given open trace, or an empty text if it is unknown."""
        names = list(self._types)
        return [names[number] for number in self._times.last[traces].tolist()]

    def count_by_last_type(self, traces: NDArray[np.int32]) -> dict[str, int]:
        """Count the open traces in ``traces`` by the type of their newest event. The type is empty if it is unknown."""
        names = list(self._types)
        numbers, counts = np.unique(self._times.last[traces], return_counts=True)
        return dict(sorted(zip((names[number] for number in numbers.tolist()), counts.tolist(), strict=True)))

    def note(self, visits: Visits, columns: Columns, batch: EventBatch, *, mark: int, table: TraceTable) -> None:
        """Record the events of a batch in their traces.

        A row with the type code ``mark`` is not an event. It ends its trace.
        """
        self._reach(table.capacity)
        opened = np.empty(len(visits), np.int32)
        columns_of = visits.rows, visits.traces, visits.ends
        names = self._numbers(batch.type_names)[batch.type_codes]
        count = int(kernel.note(self._times, columns_of, columns.types, columns.times, names, mark, opened))
        traces = visits.traces[opened[:count]]
        is_open = self._times.events[traces] != CLOSED  # the other traces have already ended in this batch
        if is_open.any():
            rows = visits.rows[opened[:count][is_open]]
            self._enter(traces[is_open], shown_texts(batch.columns.column("key").take(column_of(rows))))
            if self._stored > 2 * table.counters["open"] + _SLACK:
                self._forget_closed()

    def keys_of(self, traces: NDArray[np.int32]) -> list[str]:
        """Return the correlation keys of the given open traces. Unknown keys are empty texts."""
        return [str(key) for key in self._keys_of(traces).to_pylist()]

    def dump_arrays(self, numbers: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """Return the open traces as plain arrays, sorted by new trace number.

        ``numbers`` has the new number for each old number, or ``NIL``. New numbers have the order of the old.
        """
        self._reach(len(numbers))
        traces = np.flatnonzero(numbers >= 0).astype(np.int32)
        times = {f"open_{name}": array[traces] for name, array in self._times._asdict().items()}
        used, last = np.unique(self._times.last[traces], return_inverse=True)
        type_names = list(self._types)
        names = sorted(type_names[number] for number in used.tolist())
        places = np.array([names.index(type_names[number]) for number in used.tolist()], np.int32)
        times["open_last"] = places[last]
        types = pa.array(names, pa.large_string())
        return {**times, **saved_texts("open_key", self._keys_of(traces)), **saved_texts("open_type", types)}

    def load_arrays(self, arrays: Mapping[str, NDArray[Any]], *, traces: int) -> None:
        """Restore the open traces from the arrays of ``dump_arrays``.

        If an earlier release saved the state, keys and times remain unknown. Arrays of another type or length, and
        invalid values, raise StateFormatError, ValueError or KeyError.
        """
        self._times = _room(traces)
        self._place = np.zeros(traces, np.int32)
        if "open_events" not in arrays:
            self._times.events[:] = UNKNOWN
            return
        first, newest = (checked(arrays, f"open_{name}", np.int64, traces).copy() for name in ("first", "newest"))
        events = _narrow(arrays, "open_events", traces).copy()
        self._times = OpenTimes(first, newest, events, self._loaded_types(arrays, traces))
        keys = read_texts(arrays, "open_key", pa.large_string())
        if len(keys) != traces or np.any(self._times.events < kernel.UNCOUNTED):
            raise StateFormatError("saved state: open traces are not listed as they should be")
        keys.validate(full=True)
        self._enter(np.arange(traces, dtype=np.int32), keys)

    def _loaded_types(self, arrays: Mapping[str, NDArray[Any]], traces: int) -> NDArray[np.int32]:
        if "open_last" not in arrays:
            return np.zeros(traces, np.int32)
        last = _narrow(arrays, "open_last", traces)
        names = read_texts(arrays, "open_type", pa.large_string())
        if traces and not 0 <= last.min() <= last.max() < len(names):
            raise StateFormatError("saved state: open traces have types that are not listed")
        return self._numbers([str(name) for name in names.to_pylist()])[last]

    def _numbers(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Return the number of each type, and a last 0 for rows without a type. New types get the next numbers."""
        numbers = [self._types.setdefault(name, len(self._types)) for name in names]
        return np.array([*numbers, 0], np.int32)

    def _reach(self, capacity: int) -> None:
        if capacity > len(self._place):
            times = self._times
            self._times = OpenTimes(
                grown(times.first, capacity),
                grown(times.newest, capacity),
                grown(times.events, capacity),
                grown(times.last, capacity),
            )
            self._place = grown(self._place, capacity)

    def _enter(self, traces: NDArray[np.int32], keys: pa.Array) -> None:
        """Store the keys of new traces. Small arrays of keys are joined, so that there are only a few arrays."""
        self._parts.append(keys.cast(pa.large_string()))
        self._place[traces] = np.arange(self._stored, self._stored + len(traces))
        self._stored += len(traces)
        while len(self._parts) > 1 and len(self._parts[-2]) < 2 * len(self._parts[-1]):
            self._parts[-2:] = [pa.concat_arrays(self._parts[-2:])]

    def _forget_closed(self) -> None:
        """Drop the keys of ended traces. This is so rare that the cost for each opened trace is constant."""
        events = self._times.events
        traces = np.flatnonzero((events != CLOSED) & (events != UNKNOWN))
        self._parts = [self._joined().take(column_of(self._place[traces]))]
        self._place[traces] = np.arange(len(traces))
        self._stored = len(traces)
        used, last = np.unique(self._times.last[traces], return_inverse=True)
        names = list(self._types)
        self._types = {
            name: number
            for number, name in enumerate(["", *(names[type_number] for type_number in used.tolist() if type_number)])
        }
        self._times.last[traces] = last + (0 if len(used) and used[0] == 0 else 1)

    def _joined(self) -> pa.Array:
        return pa.concat_arrays(self._parts) if self._parts else pa.array([], pa.large_string())

    def _keys_of(self, traces: NDArray[np.int32]) -> pa.Array:
        self._parts = [self._joined()]
        is_unknown = self._times.events[traces] == UNKNOWN
        places = pa.array(self._place[traces], mask=is_unknown)
        return self._parts[0].take(places).fill_null("")


def _room(traces: int) -> OpenTimes:
    first, newest = np.zeros(traces, np.int64), np.zeros(traces, np.int64)
    return OpenTimes(first, newest, np.zeros(traces, np.int32), np.zeros(traces, np.int32))


def _narrow(arrays: Mapping[str, NDArray[Any]], name: str, traces: int) -> NDArray[np.int32]:
    """Return a saved array of numbers as int32. Earlier releases saved these numbers with 64 bits."""
    array = arrays.get(name)
    if array is None or array.dtype != np.int64:
        return checked(arrays, name, np.int32, traces)
    return np.clip(checked(arrays, name, np.int64, traces), -kernel.MOST_COUNTED, kernel.MOST_COUNTED).astype(np.int32)
