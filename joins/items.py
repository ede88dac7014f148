"""The input items and the results of a join, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from joins.kernels import tables

UNKEYED = -4
"""Entry in ``members`` of an absent input, if the combination is a single event without a usable key."""


class Item(IntEnum):
    """The kind of an item: event, closing, place, time, reminder or known (see ``ItemColumns``)."""

    EVENT = tables.EVENT
    CLOSING = tables.CLOSING
    PLACE = tables.PLACE
    TIME = tables.TIME
    REMINDER = tables.REMINDER
    KNOWN = tables.KNOWN


class Cause(IntEnum):
    """The reason why a key is over, that is, can have no further combinations (``joins.kernels.tables``)."""

    REGULAR = tables.REGULAR
    WINDOW_ASSISTED = tables.WINDOW_ASSISTED
    IMMEDIATE = tables.IMMEDIATE


class Why(IntEnum):
    """What decided a result of a join.

    ``LAST_EVENT`` is the last event of a combination, ``BY_WINDOW`` the end of a window, and ``BY_CLOSING`` the end
    of a key in an input. ``BY_RETRACTION`` is a retracted event. With ``NO_KEY``, the event has no usable key.
    """

    LAST_EVENT = tables.LAST_EVENT
    BY_WINDOW = tables.BY_WINDOW
    BY_CLOSING = tables.BY_CLOSING
    BY_RETRACTION = 3
    NO_KEY = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemColumns:
    """The input of ``WindowJoin``: a sequence of items, which are events, closings of keys, and times.

    Attributes:
        kinds: uint8 ``Item``. ``EVENT``: an event of a key. ``CLOSING``: no more events of the key arrive on the input.
            ``PLACE``: an event that joins nothing. ``TIME``: time advances. ``REMINDER``: a closing that follows from a
            finished range. It is not counted as a duplicate. ``KNOWN``: as ``REMINDER``, but without effect if the key
            has no state.
        inputs: uint8 numbers of inputs. 0 for times.
        keys: uint64 hashed keys. 0 for times, and for ``PLACE`` items of late events, whose keys ranges have finished.
        times_us: int64. If an earlier item has a newer time, the newer time applies.
    """

    kinds: NDArray[np.uint8]
    inputs: NDArray[np.uint8]
    keys: NDArray[np.uint64]
    times_us: NDArray[np.int64]

    @classmethod
    def of(cls, items: Sequence[tuple[Item, int, int, int]]) -> ItemColumns:
        """Create columns from items, each a tuple of kind, input, hashed key and time in microseconds."""
        kinds, inputs, keys, times = zip(*items, strict=True) if items else ((), (), (), ())
        return cls(
            kinds=np.array(kinds, np.uint8),
            inputs=np.array(inputs, np.uint8),
            keys=np.array(keys, np.uint64),
            times_us=np.array(times, np.int64),
        )

    @classmethod
    def closing(cls, keys: NDArray[np.uint64], inputs: Sequence[int], now_us: int, kind: Item) -> ItemColumns:
        """Create closings of all ``keys`` by all ``inputs``, at one time.

        ``kind`` is their kind, such as ``REMINDER``.
        """
        return cls(
            kinds=np.full(len(keys) * len(inputs), kind, np.uint8),
            inputs=np.tile(np.array(inputs, np.uint8), len(keys)),
            keys=np.repeat(keys, len(inputs)),
            times_us=np.full(len(keys) * len(inputs), now_us),
        )

    @classmethod
    def in_order(cls, parts: Sequence[Part], times_us: NDArray[np.int64]) -> tuple[ItemColumns, NDArray[np.intp]]:
        """Merge items that were made from the rows of a batch. ``times_us`` are the times of the rows.

        Return the items, sorted by row and then by part, and the row of each. An item has the time of its row.
        """
        places = np.concatenate([part[0] for part in parts])
        order = np.argsort(places, kind="stable")
        places = places[order]
        kinds = np.concatenate([np.full(len(part[0]), part[1], np.uint8) for part in parts])[order]
        keys, numbers = (np.concatenate([part[place] for part in parts])[order] for place in (2, 3))
        items = cls(
            kinds=kinds, inputs=numbers.astype(np.uint8), keys=keys.astype(np.uint64), times_us=times_us[places]
        )
        return items, places

    def __len__(self) -> int:
        return len(self.times_us)

    def with_time(self, until_us: int) -> ItemColumns:
        """Return the items followed by a ``TIME`` item."""
        return ItemColumns(
            kinds=np.append(self.kinds, np.uint8(Item.TIME)),
            inputs=np.append(self.inputs, np.uint8(0)),
            keys=np.append(self.keys, np.uint64(0)),
            times_us=np.append(self.times_us, np.int64(until_us)),
        )

    def slice(self, first: int, last: int) -> ItemColumns:
        """Return the items from index ``first`` up to, but not including, index ``last``."""
        return ItemColumns(**{column.name: getattr(self, column.name)[first:last] for column in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedColumns:
    """The output of ``WindowJoin`` for a sequence of items: results, and keys that are over.

    A result is a combination of events, or the report of an unjoined event.

    Attributes:
        members: int64 (results, inputs): the sequence numbers of each combination's events. All ``EVENT`` and ``PLACE``
            items are counted from 0. Negative if the combination has no event of the input and can get none.
        result_times_us: int64: when each combination was complete, or could no longer be completed.
        result_items: int32: the index of the item that led to each combination.
        result_whys: uint8 ``Why``: what decided each combination.
        closing_keys: uint64: keys that have no further combinations.
        closing_causes: uint8 ``Cause``: why each of these keys is over.
        closing_times_us: int64: when each of these keys was over.
        closing_items: int32: the index of the item that led to each closing.
        closing_places: int64: the number of results before each closing.
        violations: int32: indices of the events whose key their own input had closed before. They joined nothing.
        cuts: int64: for each event that led to more results than allowed, the index of its last reported result.
    """

    members: NDArray[np.int64]
    result_times_us: NDArray[np.int64]
    result_items: NDArray[np.int32]
    result_whys: NDArray[np.uint8]
    closing_keys: NDArray[np.uint64]
    closing_causes: NDArray[np.uint8]
    closing_times_us: NDArray[np.int64]
    closing_items: NDArray[np.int32]
    closing_places: NDArray[np.int64]
    violations: NDArray[np.int32]
    cuts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def up_to(self, result: int) -> JoinedColumns:
        """Return the results up to and including the one with index ``result``.

        Closings, violations and cuts end before it.
        """
        closings = int(np.searchsorted(self.closing_places, result, side="right"))
        violations = int(np.searchsorted(self.violations, self.result_items[result]))
        return replace(self._first(result + 1, closings, violations), cuts=self.cuts[self.cuts < result])

    def until(self, item: int) -> JoinedColumns:
        """Return the part of the output that the items up to and including index ``item`` led to."""
        results = int(np.searchsorted(self.result_items, item, side="right"))
        closings = int(np.searchsorted(self.closing_items, item, side="right"))
        violations = int(np.searchsorted(self.violations, item, side="right"))
        return self._first(results, closings, violations)

    def _first(self, results: int, closings: int, violations: int) -> JoinedColumns:
        columns = {name: getattr(self, name)[:results] for name in OF_RESULTS}
        columns |= {name: getattr(self, name)[:closings] for name in OF_CLOSINGS}
        return JoinedColumns(**columns, violations=self.violations[:violations], cuts=self.cuts[self.cuts < results])

    def only(self, is_kept: NDArray[np.bool_]) -> JoinedColumns:
        """Return the output with only the results that a mask selects, and with all closings and violations.

        The mask must select all results in ``cuts``. It may be longer than the results.
        """
        is_kept = is_kept[: len(self.members)]
        if is_kept.all():
            return self
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_kept)])
        columns = {name: getattr(self, name)[is_kept] for name in OF_RESULTS}
        return replace(self, **columns, closing_places=before[self.closing_places], cuts=before[self.cuts])


OF_RESULTS = ("members", "result_times_us", "result_items", "result_whys")
"""The columns of ``JoinedColumns`` with a value for each result."""
OF_CLOSINGS = ("closing_keys", "closing_causes", "closing_times_us", "closing_items", "closing_places")
"""The columns of ``JoinedColumns`` with a value for each closed key."""

Part: TypeAlias = tuple[NDArray[np.intp], Item, NDArray[np.uint64], NDArray[np.uint8]]
"""Items of one kind: their rows, the kind, their keys and their inputs."""


def are_events(items: ItemColumns) -> NDArray[np.bool_]:
    """Return the mask of items that are events. This includes events that join nothing."""
    is_event: NDArray[np.bool_] = (items.kinds == Item.EVENT) | (items.kinds == Item.PLACE)
    return is_event


def are_late(items: ItemColumns) -> NDArray[np.bool_]:
    """Return the mask of late events, that is, events whose key is in a range that their input had finished."""
    is_late: NDArray[np.bool_] = (items.kinds == Item.PLACE) & (items.keys == 0)
    return is_late


def with_late(results: JoinedColumns, items: ItemColumns) -> JoinedColumns:
    """Return the results with the late events (``are_late``) added to the violations."""
    late = np.flatnonzero(are_late(items)).astype(np.int32)
    return replace(results, violations=np.sort(np.concatenate([results.violations, late]))) if len(late) else results


def are_unkeyed(items: ItemColumns) -> NDArray[np.bool_]:
    """Return the mask of items that are events without a usable key."""
    is_unkeyed: NDArray[np.bool_] = (items.kinds == Item.PLACE) & (items.keys != 0)
    return is_unkeyed


def reminders(is_finished: NDArray[np.bool_], hashes: NDArray[np.uint64]) -> list[Part]:
    """Return a ``REMINDER`` for each row and each input that has finished the key of the row by a range.

    A ``REMINDER`` is the closing of a key. ``is_finished`` is the mask (inputs, rows) of such inputs. ``hashes`` are
    the hashed keys of the rows.
    """
    rows_of_inputs = [np.flatnonzero(mask) for mask in is_finished]
    return [
        (rows, Item.REMINDER, hashes[rows], np.full(len(rows), number, np.uint8))
        for number, rows in enumerate(rows_of_inputs)
    ]


def keys_before(
    clustered: Sequence[int],
    newest_keys: dict[int, int],
    inputs: NDArray[np.uint8],
    keys: NDArray[np.uint64],
    is_event: NDArray[np.bool_],
) -> NDArray[np.uint64]:
    """Return for each row the hashed key that the row finishes in a clustered input, or 0.

    In a clustered input, all events of a key are consecutive. So an event with a new key finishes the key of the
    previous event of its input. ``newest_keys`` has the newest key of each ``clustered`` input and is updated.
    """
    before = np.zeros(len(keys), np.uint64)
    for number in clustered:
        rows = np.flatnonzero((inputs == number) & is_event)
        if not len(rows):
            continue
        last = np.concatenate([np.array([newest_keys.get(number, 0)], np.uint64), keys[rows[:-1]]])
        before[rows] = np.where(last != keys[rows], last, 0)
        newest_keys[number] = int(keys[rows[-1]])
    return before
