"""The trace table of one shard, which maps keys to open traces.

Each trace has a number and a monitor state. Engines address a trace by its number and never look up keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nfa.arena import grown, power_above
from nfa.conditions.filter_index import NO_CELL, FilterIndex
from nfa.errors import StateFormatError
from nfa.guards.tables import GuardTables
from nfa.kernels import traces as kernel
from nfa.kernels.mixed_traces import advance_mixed
from nfa.kernels.traces import DEVIANT, FAILED, NIL, UNGUARDED, Advance, Columns, TraceState, VisitColumns, Wants
from streams import zeros_of

_LEAST_SLOTS = 64
_LEAST_SWEEP = 4_096
_MANY_ROWS = 1_024  # for this many rows or more, a table of places is faster than a binary search
_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)
Item = TypeVar("Item", bound=np.generic)
EARLIEST = int(np.iinfo(np.int64).min)
SAVED_COUNTERS = (
    kernel.DEVIATIONS,
    kernel.GUARD_STEPS,
    kernel.OUT_OF_ORDER,
    kernel.VIOLATIONS_IGNORED,
    kernel.NEWEST,
    kernel.SWEEP_AT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A step of a pattern as the trace table sees it.

    The table looks up only traces of events to which some step listens.

    Attributes:
        predicate: Row of ``Columns.passed`` that must be true for an event.
        opens: Whether the step matters in a trace that is not in the table yet. It does if the step may bind the first
            event of a match, or if an engine keeps data about the event (for a NOT or a counter). If no such step can
            take an event, the event opens no trace.
        cell: Cell of the filter index to which the step listens. ``NO_CELL`` means every event of its type.
    """

    type_code: int
    predicate: int
    opens: bool
    cell: int = NO_CELL


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """The relevant rows of a batch, in order, as arrays with one element for each relevant row.

    The arrays are views, valid until the next call of ``advance``.

    Attributes:
        traces: Trace numbers, constant while the trace is open.
        before: Monitor state before the event, or ``UNGUARDED`` without a guard.
        after: Monitor state after the event.
        kill: Index of a list of kills: the states of automata and the NOTs that can no longer complete after the event.
        column: Column of the event in the guard's tables. If all columns are the class numbers, the array is empty.
        classes: Class number of each row of the batch, not only of the relevant rows.
        ends: Whether the trace ends with the event. The event still belongs to the trace.
    """

    rows: NDArray[np.int32]
    traces: NDArray[np.int32]
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    kill: NDArray[np.int32]
    column: NDArray[np.int32]
    classes: NDArray[np.int32]
    ends: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def places_of(self, rows: NDArray[Any]) -> NDArray[np.intp]:
        if len(self.rows) and self.rows[-1] == len(self.rows) - 1:  # every row is relevant
            return rows.astype(np.intp)
        if len(rows) < _MANY_ROWS:
            return np.searchsorted(self.rows, rows)
        place_of = np.empty(int(self.rows[-1]) + 1, np.intp)
        place_of[self.rows] = np.arange(len(self.rows))
        places: NDArray[np.intp] = place_of[rows]
        return places

    def columns_of(self, places: NDArray[np.intp]) -> NDArray[np.int32]:
        return self.column[places] if len(self.column) else self.classes[self.rows[places]]

    def following(self, moves: Moves, places: NDArray[np.intp]) -> Visits:
        """Return these visits with the monitor states of other traces, which are in ``moves``.

        ``places`` has for each row its index in ``moves``, or ``NIL`` if the row does not change the state of its
        trace.
        """
        indices = places[self.rows]
        before, after, kill, column = (
            array[indices] for array in (moves.before, moves.after, moves.kill, moves.column)
        )
        if len(stays := np.flatnonzero(indices == NIL)):
            order = np.argsort(self.traces, kind="stable")
            previous = np.full(len(self), NIL, np.intp)
            is_same = self.traces[order[1:]] == self.traces[order[:-1]]
            previous[order[1:][is_same]] = order[:-1][is_same]
            latest = previous[stays]
            before[stays] = after[stays] = np.where(latest == NIL, self.after[stays], after[latest])
        return replace(self, before=before, after=after, kill=kill, column=column)

    def deviations(self) -> NDArray[np.intp]:
        """Return the indices of the visits whose event breaks a constraint for the first time in its trace."""
        return np.flatnonzero(is_deviant(self.after) & (self.before != self.after))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The transitions of monitors at the events of a batch. Other traces can follow these monitors.

    The last element of each array is for rows that are not events.

    Attributes:
        before: Monitor state before the event.
        after: Monitor state after the event.
        column: Column of the event in the guard's tables.
        kill: Index of the list of kills.
    """

    before: NDArray[np.int32]
    after: NDArray[np.int32]
    column: NDArray[np.int32]
    kill: NDArray[np.int32]

    @classmethod
    def of(cls, visits: Visits, is_event: NDArray[np.bool_]) -> Moves:
        """Return the monitor transitions at the events of a batch, with empty lists of kills.

        ``is_event`` is a mask of the rows. An event that is not a relevant row counts as unguarded.
        """
        event_visits = np.flatnonzero(is_event[visits.rows])
        places = (np.cumsum(is_event) - 1)[visits.rows[event_visits]]
        size = int(is_event.sum()) + 1
        before, after = np.full(size, UNGUARDED, np.int32), np.full(size, UNGUARDED, np.int32)
        column = np.zeros(size, np.int32)
        before[places], after[places] = visits.before[event_visits], visits.after[event_visits]
        column[places] = visits.columns_of(event_visits)
        return cls(before=before, after=after, column=column, kill=np.full(size, kernel.NOTHING_ENDS, np.int32))

    @property
    def matters(self) -> NDArray[np.bool_]:
        """A mask of the events that make a state dead or break a constraint, so that engines must process them."""
        is_broken = (self.before != self.after) & (self.after < kernel.RESERVED)
        is_relevant: NDArray[np.bool_] = (self.kill != kernel.NOTHING_ENDS) | is_broken
        return is_relevant


def is_deviant(monitors: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return a mask of the monitor states of traces that have broken a constraint."""
    is_broken: NDArray[np.bool_] = (monitors == DEVIANT) | (monitors == FAILED)
    return is_broken


class TraceTable:
    """The open traces of a shard, by key.

    Trace numbers are below ``capacity``. The number of an ended trace is reused after ``release_closed``. If events
    with equal timestamps are simultaneous, the table also keeps the newest time of each trace.
    """

    def __init__(self, *, is_simultaneous: bool = False) -> None:
        counters = np.zeros(kernel.N_COUNTERS, np.int64)
        counters[kernel.NEWEST] = EARLIEST
        counters[kernel.SWEEP_AT] = _LEAST_SWEEP
        self._is_simultaneous = is_simultaneous
        self._state = self._empty(_LEAST_SLOTS, counters)
        self._wants = _wants_of([], 1, frozenset(), tracks_all=False, index=FilterIndex())
        self._tracks_all = False
        self._visits = _visit_columns(0, is_simultaneous=is_simultaneous)
        self._closed = np.zeros(0, np.int32)
        self._picked = np.empty(kernel.BLOCK, np.int32)

    def configure(
        self,
        *,
        types: int,
        wants: Iterable[Want],
        end_types: Iterable[int],
        tracks_all: bool,
        end_mark: int | None = None,
        index: FilterIndex | None = None,
    ) -> None:
        """Set which rows of a batch are looked up in the table.

        ``types`` is the number of type codes, including the code for all other types. ``wants`` are the steps of all
        patterns of both engines. With ``tracks_all`` every event is looked up and opens its trace. A guard needs this,
        because an event of any type may change a monitor state. A guard that is set later needs it to leave traces with
        earlier events unguarded. Rows with the code ``end_mark`` are not events. They end their trace if it is open.
        ``index`` is the filter index with the cells of ``wants``. Without an index there are no cells.
        """
        self._tracks_all = tracks_all
        filter_index = index or FilterIndex()
        self._wants = _wants_of(list(wants), types, frozenset(end_types), tracks_all=tracks_all, index=filter_index)
        if end_mark is not None:
            self._wants.of_type[end_mark] = kernel.ENDS

    @property
    def capacity(self) -> int:
        """A number above all trace numbers. A call of ``advance`` may raise it."""
        return len(self._state.free)

    @property
    def counters(self) -> Mapping[str, int]:
        """Counts of open traces, deviations, monitor transitions, ignored violations and events out of order."""
        counters = self._state.counters
        return {
            "open": int(counters[kernel.TRACES]),
            "deviations": int(counters[kernel.DEVIATIONS]),
            "guard_steps": int(counters[kernel.GUARD_STEPS]),
            "ignored": int(counters[kernel.VIOLATIONS_IGNORED]),
            "out_of_order": int(counters[kernel.OUT_OF_ORDER]),
        }

    def forget_counts(self) -> None:
        """Reset the counters to 0, except the count of open traces."""
        self._state.counters[
            [kernel.DEVIATIONS, kernel.GUARD_STEPS, kernel.VIOLATIONS_IGNORED, kernel.OUT_OF_ORDER]
        ] = 0

    @property
    def newest_us(self) -> int:
        """The newest event time so far, or the smallest int64 before the first event."""
        return int(self._state.counters[kernel.NEWEST])

    def clocks(self, times_us: NDArray[np.int64], is_mark: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return, for each row of the next batch, the newest time of all traces up to the row.

        Rows of ``is_mark`` do not advance time, because they are not events but ends of idle traces.
        """
        seen = times_us if is_mark is None or not is_mark.any() else np.where(is_mark, EARLIEST, times_us)
        clocks: NDArray[np.int64] = np.maximum(seen, self.newest_us)
        if np.all(clocks[1:] >= clocks[:-1]):  # in most batches; accumulating takes ten times as long
            return clocks
        return np.maximum.accumulate(clocks, out=clocks)

    def pass_time(self, now_us: int) -> None:
        """Advance event time without an event. Events older than ``now_us`` then count as out of order."""
        counters = self._state.counters
        counters[kernel.NEWEST] = max(int(counters[kernel.NEWEST]), now_us)

    @property
    def released(self) -> NDArray[np.int32]:
        """For each trace number, how many bound events were dropped because of the guard.

        The engines write to this array.
        """
        return self._state.released

    @property
    def no_visits(self) -> Visits:
        return self._filled_visits(0, np.zeros(0, np.int32))

    def advance(self, columns: Columns, guards: GuardTables) -> Visits:
        """Look up the traces of a batch, advance their monitors, and return the relevant rows.

        Traces are closed at their ends. Closed traces keep their numbers until ``release_closed``, so that engines can
        still use the numbers.
        """
        if len(self._closed):
            raise RuntimeError("release_closed() was not called after the last batch")
        rows = len(columns.types)
        if len(self._visits.rows) < rows:
            self._visits = _visit_columns(rows, is_simultaneous=self._is_simultaneous)
        self._visits.filled[0] = 0
        guards.bits.begin(rows, self.capacity)
        row: kernel.Int = 0
        is_mixed = False
        while True:
            arrays = Advance(self._wants, guards.tables, self._state, columns, self._visits, self._picked)
            if is_mixed:
                status, row = advance_mixed(arrays, guards.fallback, row)
            else:
                status, row = kernel.advance_batch(arrays, row)
            if status == kernel.DONE:
                break
            if status == kernel.UNDER_BITS:
                is_mixed = True
                continue
            if status == kernel.MISSING_GUARD:
                counters = self._state.counters
                guards.build(int(counters[kernel.STOP_MONITOR]), int(counters[kernel.STOP_CLASS]))
            elif status == kernel.TRACES_FULL:
                self._grow()
                guards.bits.arena.reach(self.capacity)
            else:
                guards.bits.resolve(int(status), guards)
        filled = int(self._visits.filled[0])
        visits = self._filled_visits(filled, columns.classes)
        self._closed = visits.traces[visits.ends]
        return visits

    def release_closed(self, guards: GuardTables) -> None:
        """Release the numbers of traces that ended in the last batch, and the guard's data about these traces."""
        guards.bits.arena.release(self._closed)
        self._release(self._closed)
        self._closed = np.zeros(0, np.int32)

    def keys(self) -> NDArray[np.uint64]:
        """Return the hashed keys of the open traces, in any order."""
        return self.open_traces()[0]

    def numbers(self) -> NDArray[np.int32]:
        """Return the numbers of the open traces, ascending."""
        return np.sort(self.open_traces()[1])

    def monitors(self) -> NDArray[np.int32]:
        """Return, for each open trace, the number of its monitor state. The order is that of ``numbers``."""
        _, numbers, monitors = self.open_traces()
        return monitors[np.argsort(numbers)]

    def renumber_monitors(self, numbers: NDArray[np.int32]) -> None:
        """Replace the monitor state of every open trace by a new number.

        ``numbers`` has the new number of each state.
        """
        index = self._state.slots
        used = np.flatnonzero(index[:, 1])
        monitors = numbers[(index[used, 1] >> _HIGH).astype(np.int64)].astype(np.uint64)
        index[used, 1] = (index[used, 1] & _LOW) | (monitors << _HIGH)

    def note_deviant(self, visits: Visits) -> None:
        """Store the monitor states of the open traces that deviated in ``visits``.

        This is necessary for traces that follow the monitors of other traces.
        """
        traces = visits.traces[is_deviant(visits.after)]
        if len(traces):
            is_open = ~np.isin(traces, visits.traces[visits.ends])
            self.set_monitors(traces[is_open], visits.after[is_deviant(visits.after)][is_open])

    def set_monitors(self, traces: NDArray[np.int32], monitors: NDArray[np.int32]) -> None:
        index = self._state.slots
        used = np.flatnonzero(index[:, 1])
        place_of = np.full(self.capacity, NIL, np.int64)
        place_of[(index[used, 1] & _LOW).astype(np.int64) - 1] = used
        places = place_of[traces]
        index[places, 1] = (index[places, 1] & _LOW) | (monitors.astype(np.uint64) << _HIGH)

    @property
    def is_worth_sweeping(self) -> bool:
        """Whether a call of ``forget_idle`` is worthwhile, because enough traces were opened since the last one."""
        counters = self._state.counters
        return not self._tracks_all and bool(counters[kernel.TRACES] >= counters[kernel.SWEEP_AT])

    def forget_idle(self, is_held: NDArray[np.bool_], start: int | None) -> None:
        """Remove the open traces that do not differ from new traces.

        For such a trace, no engine retains data, and the monitor is in the state ``start``. If ``start`` is None, any
        state is accepted. ``is_held`` says, for each trace number, whether an engine retains data.
        """
        keys, numbers, monitors = self.open_traces()
        idle = ~is_held[numbers] & (start is None or monitors == start)
        kernel.remove_keys(self._state.slots, keys[idle])
        counters = self._state.counters
        counters[kernel.TRACES] -= int(idle.sum())
        counters[kernel.SWEEP_AT] = max(_LEAST_SWEEP, 2 * counters[kernel.TRACES])
        self._release(numbers[idle])

    def dump_arrays(self) -> tuple[dict[str, NDArray[Any]], NDArray[np.int32]]:
        """Return the open traces as arrays for a snapshot, and an array that maps old to new trace numbers.

        New numbers are dense. An unused old number becomes ``NIL``. The arrays are ``trace_key`` uint64,
        ``trace_monitor`` int32 (a number of ``GuardTables``, which the caller must replace), ``trace_released`` int32,
        ``trace_newest`` int64 and ``trace_counters`` int64.
        """
        keys, numbers, monitors = self.open_traces()
        order = np.argsort(numbers)
        dense = np.full(self.capacity, NIL, np.int32)
        dense[numbers[order]] = np.arange(len(order), dtype=np.int32)
        arrays: dict[str, NDArray[Any]] = {
            "trace_key": keys[order],
            "trace_monitor": monitors[order],
            "trace_released": self._state.released[numbers[order]],
            "trace_newest": self._state.newest[numbers[order]] if self._is_simultaneous else self._state.newest,
            "trace_counters": self._state.counters[list(SAVED_COUNTERS)],
        }
        return arrays, dense

    def load_arrays(self, arrays: Mapping[str, NDArray[Any]], *, monitors: int) -> None:
        """Restore the result of ``dump_arrays``.

        Monitor states must be below ``monitors``. Arrays of another type or length, repeated keys and numbers out of
        range are rejected.
        """
        keys = checked(arrays, "trace_key", np.uint64)
        trace_monitors = checked(arrays, "trace_monitor", np.int32, len(keys))
        released = checked(arrays, "trace_released", np.int32, len(keys))
        newest = checked(arrays, "trace_newest", np.int64, len(keys) if self._is_simultaneous else 0)
        saved = checked(arrays, "trace_counters", np.int64, len(SAVED_COUNTERS))
        if len(trace_monitors) and (trace_monitors.min() < 0 or trace_monitors.max() >= monitors):
            raise StateFormatError(f"saved state: trace_monitor points outside 0 to {monitors - 1}")
        if np.any(saved[:4] < 0) or saved[5] < 1 or np.any(released < 0):
            raise StateFormatError("saved state: a counter of the traces is out of range")
        size = power_above(2 * len(keys), _LEAST_SLOTS)
        counters = np.zeros(kernel.N_COUNTERS, np.int64)
        counters[list(SAVED_COUNTERS)] = saved
        counters[kernel.TRACES] = counters[kernel.FRESH] = len(keys)
        index = np.zeros((size, 2), np.uint64)
        values = (trace_monitors.astype(np.uint64) << _HIGH) | np.arange(1, len(keys) + 1, dtype=np.uint64)
        if not kernel.fill_slots(index, keys, values):
            raise StateFormatError("saved state: trace_key holds a key twice")
        self._state = self._empty(size, counters)._replace(slots=index)
        self._state.released[: len(keys)] = released
        self._state.newest[: len(newest)] = newest
        self._closed = np.zeros(0, np.int32)

    def _empty(self, size: int, counters: NDArray[np.int64]) -> TraceState:
        newest = size if self._is_simultaneous else 0
        return zeros_of(TraceState, size, slots=(size, 2), newest=newest, counters=counters)

    def open_traces(self) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]:
        """Return keys, numbers and monitor states of the open traces, in the order of the index."""
        entries = self._state.slots[self._state.slots[:, 1] != 0]
        numbers = (entries[:, 1] & _LOW).astype(np.int64) - 1
        return entries[:, 0].copy(), numbers.astype(np.int32), (entries[:, 1] >> _HIGH).astype(np.int32)

    def _release(self, numbers: NDArray[np.int32]) -> None:
        counters = self._state.counters
        first = int(counters[kernel.FREE])
        self._state.free[first : first + len(numbers)] = numbers
        counters[kernel.FREE] += len(numbers)

    def _filled_visits(self, filled: int, classes: NDArray[np.int32]) -> Visits:
        names = (name for name in VisitColumns._fields if name != "filled")
        return Visits(**{name: getattr(self._visits, name)[:filled] for name in names}, classes=classes)

    def _grow(self) -> None:
        state = self._state
        slots = len(state.slots)
        if state.counters[kernel.TRACES] >= slots - slots // 4:
            entries = state.slots[state.slots[:, 1] != 0]
            larger = np.zeros((2 * slots, 2), np.uint64)
            kernel.fill_slots(larger, entries[:, 0].copy(), entries[:, 1].copy())
            self._state = state._replace(slots=larger)
        else:
            size = 2 * len(state.free)
            self._state = state._replace(
                free=grown(state.free, size),
                released=grown(state.released, size),
                newest=grown(state.newest, size) if self._is_simultaneous else state.newest,
            )


def checked(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: type[Item], length: int | None = None
) -> NDArray[Item]:
    """Return a one-dimensional array of saved state by name.

    A missing array, and an array of another type or length, is rejected.
    """
    array = arrays.get(name)
    if array is None or array.ndim != 1 or array.dtype != dtype or (length is not None and len(array) != length):
        form = "missing" if array is None else f"{array.ndim}-dimensional {array.dtype} of {array.shape}"
        expected_form = np.dtype(dtype).name if length is None else f"{np.dtype(dtype).name} of length {length}"
        raise StateFormatError(f"saved state: {name} is {form} instead of {expected_form}")
    return np.ascontiguousarray(array, dtype)


def _wants_of(
    wants: Sequence[Want], types: int, end_types: frozenset[int], *, tracks_all: bool, index: FilterIndex
) -> Wants:
    of_type = np.full(types, kernel.ALWAYS if tracks_all else 0, np.uint8)
    of_type[sorted(end_types)] |= kernel.ENDS
    opens_by_place: dict[tuple[int, int, int], bool] = {}
    for want in wants:
        place = want.cell, want.type_code, want.predicate
        opens_by_place[place] = opens_by_place.get(place, False) or want.opens
    rows = sorted(opens_by_place)
    for cell, code, predicate in rows:
        is_plain = predicate == kernel.TRUE and opens_by_place[cell, code, predicate]
        of_type[code] |= kernel.FINDS if cell != NO_CELL else kernel.ALWAYS if is_plain else kernel.ASKS
    cells = np.array([cell for cell, _, _ in rows], np.int32)
    codes = np.array([code for cell, code, _ in rows if cell == NO_CELL], np.int32)
    cell_begin, cell_end = index.ranges(cells)
    return Wants(
        of_type=of_type,
        ask_from=np.searchsorted(codes, np.arange(types + 1)).astype(np.int32),
        predicates=np.array([predicate for _, _, predicate in rows], np.int32),
        opens=np.array([opens_by_place[row] for row in rows], np.bool_),
        cell_begin=cell_begin,
        cell_end=cell_end,
    )


def _visit_columns(rows: int, *, is_simultaneous: bool) -> VisitColumns:
    return zeros_of(VisitColumns, rows, column=rows if is_simultaneous else 0, filled=1)


__all__ = ["DEVIANT", "FAILED", "UNGUARDED", "Columns", "TraceTable", "Visits", "Want"]
