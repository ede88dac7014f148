"""The events of a window as columns in a ring, linked into the partitions of a configuration.

A search follows the chain of a partition down to a sequence number only. Therefore removing the oldest events needs no
change of links: ``first`` is raised. Source: the IMP index of the specification of parameterised group-by, section 3.2,
and its migration, section 3.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregates.asking.costs import CostModel
from aggregates.kernels.asking import NEVER, Layout, link_rows, move_rows, probe_rows, scan_rows, unlink_rows

LEAST_ROOM = 64
_LANES = 32  # chains that are followed concurrently
_SPARE = 16  # a growing ring gets one spare slot per this number of events


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Events in the order of time: their times, the codes of their attributes, and the values of their measures.

    The code of an attribute is the number of its value (``ValueCodes``).
    """

    times_us: NDArray[np.int64]
    codes: NDArray[np.int32]  # (events, attributes)
    values: NDArray[np.float64]  # (measures, events); NaN is null

    def __len__(self) -> int:
        return len(self.times_us)

    def at(self, places: NDArray[np.intp] | slice) -> EventColumns:
        return EventColumns(self.times_us[places], self.codes[places], self.values[:, places])


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """The events that a question selects, as slots of the ring, and the work of finding them.

    ``compared`` is the number of events compared, and ``visited`` the number of partitions visited.
    """

    slots: NDArray[np.int32]
    compared: int
    visited: int


class EventRing:
    """The stored events of a question index as columns of a ring, linked into partitions.

    Events have consecutive sequence numbers, from ``first`` up to ``end`` (exclusive). ``bits`` has the number of
    address bits of each attribute. During a move to another configuration, the partitions of the new configuration have
    the events from number ``_border`` up. Older events are still in the old partitions.
    """

    def __init__(self, attributes: int, measures: int) -> None:
        self.first = self.end = 0
        self.bits = (0,) * attributes
        self.times_us = np.zeros(LEAST_ROOM, np.int64)
        self.rows = np.zeros((LEAST_ROOM, attributes + 1), np.int32)
        self.values = [np.zeros(LEAST_ROOM, np.float64) for _ in range(measures)]
        self._layout, self._lanes = layout_of(self.bits), np.empty((_LANES, 2), np.int64)
        self._old: Layout | None = None
        self._old_bits = self.bits
        self._border = 0

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def room(self) -> int:
        """The number of events for which the ring has slots."""
        return len(self.times_us)

    @property
    def unmoved(self) -> int:
        """The number of events that a running move to another configuration has not reached yet."""
        return 0 if self._old is None else max(0, self._border - self.first)

    @property
    def size_bytes(self) -> int:
        """Bytes of columns, chains and partitions."""
        layouts = [self._layout] if self._old is None else [self._layout, self._old]
        tables = sum(layout.tails.nbytes + layout.heads.nbytes for layout in layouts)
        return self.room * (12 + 4 * len(self.bits) + 8 * len(self.values)) + tables

    @property
    def column_bytes(self) -> int:
        """Return the bytes of the columns alone: times, codes and values of the events."""
        return len(self) * (8 + 4 * len(self.bits) + 8 * len(self.values))

    def number_after(self, time_us: int) -> int:
        """Return the number of the first event that is later than ``time_us``, or ``end`` without such an event."""
        place = self.first % self.room
        before, wrapped = self.times_us[place : place + len(self)], max(0, place + len(self) - self.room)
        count = np.searchsorted(before, time_us, "right")
        if count == len(before):
            count += np.searchsorted(self.times_us[:wrapped], time_us, "right")
        return self.first + int(count)

    def columns(self, begin: int, end: int) -> EventColumns:
        """Return a copy of the events with the sequence numbers ``begin`` up to ``end`` (exclusive)."""
        values = np.empty((len(self.values), end - begin), np.float64)
        for place, column in enumerate(self.values):
            values[place] = self._held(column, begin, end)
        return EventColumns(self._held(self.times_us, begin, end), self._held(self.rows, begin, end)[:, 1:], values)

    def append(self, events: EventColumns) -> None:
        """Append events. The caller has sorted them by time, and none is older than an event in the ring."""
        count = len(events)
        if count > self.room - len(self):
            self._resize(len(self) + count)
        put_numbered(self.times_us, self.end, events.times_us)
        put_numbered(self.rows[:, 1:], self.end, events.codes)
        for column, values in zip(self.values, events.values, strict=True):
            put_numbered(column, self.end, values)
        link_rows(self.rows, self._layout, self.end, self.end + count)
        self.end += count

    def expire(self, first: int) -> None:
        """Remove the events before the sequence number ``first``. A ring with many unused slots shrinks."""
        self.first = max(self.first, first)
        if self.room > LEAST_ROOM and len(self) * 2 < self.room:
            self._resize(len(self))

    def take_from(self, number: int) -> EventColumns:
        """Remove and return all events from the sequence number ``number`` on."""
        self.move(self.unmoved)
        columns = self.columns(number, self.end)
        unlink_rows(self.rows, self._layout, number, self.end)
        self.end = number
        return columns

    def codes_in_use(self, attribute: int, size: int) -> NDArray[np.bool_]:
        """Return a mask over the codes below ``size`` of an attribute: true if an event in the ring has the code."""
        is_used = np.zeros(size, np.bool_)
        is_used[self._held(self.rows[:, attribute + 1], self.first, self.end)] = True
        return is_used

    def recode(self, attribute: int, renamed: NDArray[np.int32]) -> None:
        """Replace each code of an attribute by the entry of ``renamed`` at this index, and link all events again."""
        self.move(self.unmoved)
        column = self.rows[:, attribute + 1]
        put_numbered(column, self.first, renamed[self._held(column, self.first, self.end)])
        self._layout = layout_of(self.bits)
        link_rows(self.rows, self._layout, self.first, self.end)

    def begin_move(self, bits: tuple[int, ...]) -> None:
        """Begin to move all events to the configuration ``bits``. New events are added to it."""
        self.move(self.unmoved)
        self._old, self._old_bits, self._border, self.bits = self._layout, self.bits, self.end, bits
        self._layout = layout_of(bits, is_moving=True)
        self.move(0)

    def move(self, most: int) -> None:
        """Move at most ``most`` of the remaining events to the new configuration, newest first."""
        if self._old is None:
            return
        begin = max(self.first, self._border - most)
        move_rows(self.rows, self._old, self._layout, begin, self._border)
        self._border = begin
        if self.unmoved == 0:
            self._old = None
            self._layout = self._layout._replace(heads=np.zeros(0, np.int64))

    def find(self, columns: NDArray[np.int64], codes: NDArray[np.int32], start: int, model: CostModel) -> FoundEvents:
        """Find the events from number ``start`` up whose attributes ``columns`` (indexes) have the values ``codes``.

        The search is a probe of the index or a scan. ``model`` estimates which of them costs less.
        """
        rows, old_rows = self.end - start, max(0, self._border - start) if self._old is not None else 0
        parts = ((self.bits, rows - old_rows), (self._old_bits, old_rows))
        chosen, probing = columns.tolist(), 0.0
        for bits, count in parts if old_rows else parts[:1]:
            fixed = sum(bits[column] for column in chosen)
            probing += model.probing(count, fixed, sum(bits) - fixed)
        if probing >= rows * model.scanning:
            return self.scan(columns, codes, start)
        return self.probe(columns, codes, start)

    def scan(self, columns: NDArray[np.int64], codes: NDArray[np.int32], start: int) -> FoundEvents:
        """Find the same events as ``find`` by comparing all events in order."""
        slots = np.empty(self.end - start + 1, np.int32)
        count = int(scan_rows(self.rows, columns, codes, slots, start, self.end))
        return FoundEvents(slots[:count], self.end - start, 0)

    def probe(self, columns: NDArray[np.int64], codes: NDArray[np.int32], start: int) -> FoundEvents:
        """Find the same events as ``find`` by following the chains of the partitions that can contain such events."""
        slots = np.empty(self.end - start + 1, np.int32)
        count = compared = visited = 0
        for layout in [self._layout] if self._old is None else [self._layout, self._old]:
            counts = probe_rows(self.rows, layout, columns, codes, self._lanes, slots, start, count)
            count, compared, visited = int(counts[0]), compared + int(counts[1]), visited + int(counts[2])
        return FoundEvents(slots[:count], compared, visited)

    def _held(self, column: NDArray[Any], begin: int, end: int) -> NDArray[Any]:
        """Return a copy of a column for the sequence numbers ``begin`` up to ``end`` (exclusive)."""
        place, count = begin % self.room, end - begin
        return np.concatenate([column[place : place + count], column[: max(0, place + count - self.room)]])

    def _resize(self, count: int) -> None:
        """Give the ring room for ``count`` events and some more.

        Links between events are distances, so they stay valid.
        """
        room = max(LEAST_ROOM, count + count // _SPARE)

        def moved(column: NDArray[Any]) -> NDArray[Any]:
            larger = np.zeros((room, *column.shape[1:]), column.dtype)
            put_numbered(larger, self.first, self._held(column, self.first, self.end))
            return larger

        rows, values = moved(self.rows), [moved(column) for column in self.values]
        self.times_us, self.rows, self.values = moved(self.times_us), rows, values


def put_numbered(column: NDArray[Any], number: int, values: NDArray[Any]) -> None:
    """Write the values of consecutive events into a column of a ring. The first event has the number ``number``."""
    place = number % len(column)
    fitting = len(column) - place
    column[place : place + len(values)] = values[:fitting]
    column[: max(0, len(values) - fitting)] = values[fitting:]


def layout_of(bits: tuple[int, ...], *, is_moving: bool = False) -> Layout:
    """Return the empty partitions of the configuration ``bits``. With ``is_moving``, each also has its oldest event."""
    widths = np.array(bits, np.int64)
    size = 1 << int(widths.sum())
    return Layout(
        tails=np.full(size, NEVER, np.int64),
        heads=np.full(size if is_moving else 0, NEVER, np.int64),
        masks=(np.int64(1) << widths) - 1,
        shifts=np.cumsum(widths) - widths,
    )
