"""The time at which each event of a batch takes effect, and the events that may be retracted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggregates.columns import COUNTS, ENDS, RETRACTS, EventColumns, group_hash
from aggregates.document import AggregateBody
from aggregates.kernels.tables import COUNT, END, RETRACT
from aggregates.known_groups import EVERY, KnownGroups
from aggregates.window_tables import BatchRows

_MOST_PLACED = 1_000_000
_HASH_OF_ALL = group_hash(EVERY)
_NONE = np.zeros(0, np.int64)


class KeptEvent(NamedTuple):
    """An event in a window, which is stored because it may be retracted, or because derived events list it.

    If events are never retracted, ``key_hash`` and ``group`` are 0, and ``id`` is empty.

    Attributes:
        time_us: The event's time.
        key_hash: Hash of the event's key.
        id: The event's id. Retractions find the event by its key and id.
        group: The hash of the event's group.
        shown: The members of the event, as derived events list it.
    """

    time_us: int
    key_hash: int
    id: str
    group: int
    shown: Mapping[str, Any] | None


class Placed(NamedTuple):
    """Rows for the kernel, made from events. An event has a row for each of its fixed windows.

    Attributes:
        rows: The rows.
        hashes: The hash of each row's group.
        starts: The beginning of each row's window, if windows are fixed. Otherwise None.
        is_of_all: Mask of the rows of the group of all events. None if values over all groups are not read.
        late: The indexes of the events that came too late for every fixed window, sorted.
    """

    rows: BatchRows
    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64] | None
    is_of_all: NDArray[np.bool_] | None
    late: NDArray[np.int64]


class Placing:
    """Converts events to rows for the kernel of windows, and numbers events in the order of their arrival.

    Attributes:
        kept: Events in windows that may be retracted or listed, by arrival number.
        number: The arrival number of the next event.
    """

    def __init__(self, body: AggregateBody, groups: KnownGroups, *, is_revocable: bool) -> None:
        self._body, self._groups, self._is_revocable = body, groups, is_revocable
        self._is_overall = body.having is not None and bool(body.having.overall)
        self._has_ends = body.window.kind in ("transaction", "last")
        self.kept: dict[int, KeptEvent] = {}
        self._entered: dict[int, int] = {}  # number of windows with the event, by event
        self._of_id: dict[tuple[int, str], list[int]] = {}
        self._new: Sequence[KeptEvent] = ()
        self.number = self._first = 0

    def placed(self, events: EventColumns, now_us: int, *, is_kept: bool) -> Iterator[Placed]:
        """Convert a batch of events to rows for the kernel. Yield the rows in parts of limited size.

        An event takes effect at its clock, or at ``now_us`` if this is later. If ``is_kept``, the events are stored,
        because they may be retracted or listed.
        """
        self._first, size = self.number, len(events)
        self.number += size
        self._new = self._kept_of(events) if is_kept else ()
        at_us = np.maximum(events.clocks_us, now_us)
        if events.ops is None and not self._is_revocable:
            numbers = np.arange(size)
            rows = BatchRows(numbers, events.times_us, at_us, numbers, numbers + self._first, np.zeros(size, np.uint8))
            hashes = events.hashes
        else:
            rows, hashes = self._rows_of(events, at_us)
        windows = self._body.window.size // self._body.window.every_us if self._body.window.is_fixed else 1
        most = _MOST_PLACED // windows + 1
        for begin in range(0, len(hashes), most):
            some = slice(begin, begin + most)
            yield self._widened(rows.at(some), hashes[some])
        if self._is_revocable:
            self._forget_those_that_did_not_enter()

    def _rows_of(self, events: EventColumns, at_us: NDArray[np.int64]) -> tuple[BatchRows, NDArray[np.uint64]]:
        """Return the rows of events, retractions and ends of transactions, with the hash of each row's group.

        ``at_us`` has the time at which each event takes effect. Retractions of unknown events have no row.
        """
        of_key: dict[int, dict[int, None]] = {}
        placed: list[tuple[int, int, int, int, int, int]] = []
        ops = [COUNTS] * len(events) if events.ops is None else events.ops.tolist()
        columns = (at_us.tolist(), events.times_us.tolist(), events.hashes.tolist(), events.key_hashes.tolist())
        for row, (op, now_us, time_us, group, key_hash) in enumerate(zip(ops, *columns, strict=True)):
            if op & RETRACTS:
                known = self._of_id.get((key_hash, events.retracted[row]), ())
                if known:
                    number = known[-1]
                    kept = self.kept[number] if number < self._first else self._new[number - self._first]
                    self._forget_id(kept, number)
                    placed.append((row, kept.time_us, now_us, number, RETRACT, kept.group))
            elif op & COUNTS:
                number = self._first + row
                placed.append((row, time_us, now_us, number, COUNT, group))
                if self._has_ends:
                    of_key.setdefault(key_hash, {})[group] = None
                if self._is_revocable:
                    self._of_id.setdefault((key_hash, events.ids[row]), []).append(number)
            if op & ENDS and self._has_ends:
                ended = {**of_key.get(key_hash, {}), **dict.fromkeys(self._groups_of(key_hash))}
                placed += [(row, time_us, now_us, 0, END, ended_group) for ended_group in ended]
        columns_of = np.array([placed_row[:5] for placed_row in placed], np.int64).reshape(len(placed), 5)
        sources, times_us, ats_us, numbers, kinds = columns_of.T
        hashes = np.array([placed_row[5] for placed_row in placed], np.uint64)
        return BatchRows(sources, times_us, ats_us, sources, numbers, kinds.astype(np.uint8)), hashes

    def _groups_of(self, key_hash: int) -> list[int]:
        if self._body.by == ("key",):
            return [key_hash] if self._groups.code_of(key_hash) >= 0 else []
        return self._groups.hashes_of(key_hash)

    def _widened(self, rows: BatchRows, hashes: NDArray[np.uint64]) -> Placed:
        """Return a row for each fixed window of each event that has not ended.

        Other windows have one row for each event. If values over all groups are read, each row is preceded by a row of
        the group of all events.
        """
        window, starts, is_of_all, late = self._body.window, None, None, _NONE
        if window.is_fixed:
            last = rows.times_us // window.every_us * window.every_us
            every = last[:, None] - np.arange(window.size - window.every_us, -1, -window.every_us)
            is_open = (every + window.size > rows.at_us[:, None]) | (rows.ops[:, None] == RETRACT)
            late = rows.sources[~is_open.any(axis=1)]
            numbers = np.nonzero(is_open)[0]
            rows, hashes, starts = rows.at(numbers), hashes[numbers], every[is_open]
        if self._is_overall:
            rows, hashes = rows.at(np.repeat(np.arange(len(hashes)), 2)), np.repeat(hashes, 2)
            starts = None if starts is None else np.repeat(starts, 2)
            is_of_all = np.arange(len(hashes)) % 2 == 0
            hashes[is_of_all] = _HASH_OF_ALL
        return Placed(rows, hashes, starts, is_of_all, late)

    def _kept_of(self, events: EventColumns) -> list[KeptEvent]:
        times_us, members_of = events.times_us.tolist(), events.shown or [None] * len(events)
        if not self._is_revocable:
            return [
                KeptEvent(time_us, 0, "", 0, members) for time_us, members in zip(times_us, members_of, strict=True)
            ]
        own = (times_us, events.key_hashes.tolist(), events.ids, events.hashes.tolist(), members_of)
        return [KeptEvent(*parts) for parts in zip(*own, strict=True)]

    def entered(self, number: int, *, is_kept: bool) -> KeptEvent:
        """Return the event with an arrival number, which enters a window.

        If ``is_kept``, store it until it has left all windows.
        """
        event = self.kept[number] if number < self._first else self._new[number - self._first]
        if is_kept:
            self.kept[number] = event
            self._entered[number] = self._entered.get(number, 0) + 1
        return event

    def left(self, number: int) -> KeptEvent:
        """Return the event with an arrival number, which leaves a window. Forget it when it leaves its last window."""
        event = self.kept[number]
        self._entered[number] -= 1
        if not self._entered[number]:
            del self.kept[number], self._entered[number]
            self._forget_id(event, number)
        return event

    def restore(self, kept: Mapping[int, KeptEvent], number: int) -> None:
        """Restore the stored events and the next arrival number. The caller adds the events to windows afterwards."""
        self.kept, self.number, self._first = dict(kept), number, number
        for event_number, event in kept.items() if self._is_revocable else ():
            self._of_id.setdefault((event.key_hash, event.id), []).append(event_number)

    def _forget_id(self, kept: KeptEvent, number: int) -> None:
        numbers = self._of_id.get((kept.key_hash, kept.id), [])
        if number in numbers:
            numbers.remove(number)
            if not numbers:
                del self._of_id[kept.key_hash, kept.id]

    def _forget_those_that_did_not_enter(self) -> None:
        for number, event in enumerate(self._new, self._first):
            if number not in self.kept:
                self._forget_id(event, number)
