"""Observations of a running join at low cost: rates of all events, and lives of a sample of keys.

Source: sections 4 and 7.2 of the specification of punctuation-aware joins. Keys are sampled by their hashes, so a key
is followed entirely or not at all. The more items arrive, the fewer keys are followed. The observations belong to this
process and are not saved.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from joins.costs.lives import KeyRecord, SeenKey
from joins.document import JoinBody
from joins.items import Item, ItemColumns
from joins.windowed import Window

_MOST_ITEMS = 64  # most items of sampled keys in a call; with more items, the sample of keys is halved
_MOST_BITS = 16  # most bits of a hash that decide whether its key is sampled
_MOST_OPEN = 1_024  # most open sampled keys
_SAMPLE = 128  # records per input, of the keys that were over last
_FIRST_BIT = np.uint64(16)  # first bit of a hash that is used; the lower bits choose the shard
_SPAN = 32_768  # events of all inputs; rates are measured over at least this number, and at most twice this number
_S = 1_000_000


class StateObserver:
    """Measures the inputs of a running join: event rates, and how long events of sampled keys can still join.

    ``closes`` says of each input whether it finishes keys. Combinations may lack ``optional`` inputs.
    """

    def __init__(self, windows: Sequence[Window], closes: Sequence[bool], optional: Sequence[int] = ()) -> None:
        self._windows = [float(window.size) if window.kind == "time" else math.inf for window in windows]
        self._closes = list(closes)
        self._optional = frozenset(optional)
        self._events = np.zeros(len(windows), np.int64)
        self._middle: tuple[int, NDArray[np.int64]] | None = None
        self._begin_us: int | None = None
        self._now_us = 0
        self._bits = 0
        self._open: dict[int, SeenKey] = {}
        self._records: list[deque[KeyRecord]] = [deque(maxlen=_SAMPLE) for _ in windows]

    @classmethod
    def of(cls, body: JoinBody) -> StateObserver:
        """Create the observer of a join from its document."""
        return cls(
            [join_input.window for join_input in body.inputs],
            [join_input.closes for join_input in body.inputs],
            body.optional,
        )

    def observe(self, items: ItemColumns) -> None:
        """Add the next items of the join, in their order, to the measurements."""
        if not len(items):
            return
        if self._begin_us is None:
            self._begin_us = self._now_us = int(items.times_us[0])
        self._now_us = max(self._now_us, int(items.times_us[-1]))
        is_event = items.kinds == Item.EVENT
        self._events += np.bincount(items.inputs[is_event], minlength=len(self._events))
        self._shorten()
        if any(self._closes):
            self._follow(items, is_event | np.isin(items.kinds, (Item.CLOSING, Item.KNOWN)))

    def rate(self, number: int) -> float | None:
        """Return the events of an input per second of event time, or None if no time has passed."""
        span_us = 0 if self._begin_us is None else self._now_us - self._begin_us
        return None if span_us <= 0 else int(self._events[number]) * _S / span_us

    def records(self, number: int) -> Sequence[KeyRecord]:
        """Return the observations of the newest sampled keys that are finished, in the input ``number``."""
        return self._records[number]

    def stay_us(self, number: int) -> float | None:
        """Return the mean time that an event of an input remains in the state (Eq. 6.1), or None if it is unbounded.

        The result is the length of the window if the other inputs close no keys, or if no sampled key is finished yet.
        """
        others = [closes for other, closes in enumerate(self._closes) if other != number]
        records = self._records[number]
        if any(others) and records:
            events = sum(record.events for record in records)
            stay = sum(record.events * record.stay_us for record in records) / events
        else:
            stay = self._windows[number]
        return None if math.isinf(stay) else stay

    def _shorten(self) -> None:
        """Drop the older half of the counted events once there are many, so that rates follow the newer half."""
        if self._middle is None and self._events.sum() >= _SPAN:
            self._middle = self._now_us, self._events.copy()
        elif self._middle is not None and self._events.sum() >= 2 * _SPAN:
            self._begin_us, self._events = self._middle[0], self._events - self._middle[1]
            self._middle = None

    def _follow(self, items: ItemColumns, is_of_key: NDArray[np.bool_]) -> None:
        if len(self._open) > _MOST_OPEN:
            self._follow_fewer()
        rows = self._rows(items, is_of_key)
        while len(rows) > _MOST_ITEMS and self._bits < _MOST_BITS:
            self._follow_fewer()
            rows = self._rows(items, is_of_key)
        columns = (items.kinds[rows], items.inputs[rows], items.keys[rows], items.times_us[rows])
        for kind, number, key, time_us in zip(*(column.tolist() for column in columns), strict=True):
            seen_key = self._open.get(key)
            if seen_key is None and kind == Item.KNOWN:
                continue
            if seen_key is None:
                seen_key = self._open[key] = SeenKey.of(len(self._windows))
            seen_key.see(kind, number, time_us)
            if kind != Item.EVENT and self._is_over(seen_key):
                self._finish(key)
        self._forget()

    def _rows(self, items: ItemColumns, is_of_key: NDArray[np.bool_]) -> NDArray[np.intp]:
        mask = np.uint64((1 << self._bits) - 1)
        return np.flatnonzero(is_of_key & ((items.keys >> _FIRST_BIT) & mask == 0))

    def _follow_fewer(self) -> None:
        self._bits += 1
        mask = (1 << self._bits) - 1
        self._open = {key: seen_key for key, seen_key in self._open.items() if not (key >> int(_FIRST_BIT)) & mask}

    def _is_over(self, seen_key: SeenKey) -> bool:
        closed = zip(self._closes, seen_key.closed, strict=True)
        return not any(closes and math.isinf(at_us) for closes, at_us in closed)

    def _finish(self, key: int) -> None:
        for number, record in self._open.pop(key).records(self._windows, self._optional):
            if math.isfinite(record.stay_us):
                self._records[number].append(record)

    def _forget(self) -> None:
        """End the observation of keys whose events have left all windows, even if no input has closed them."""
        widest = max(self._windows)
        while self._open and math.isfinite(widest):
            key = next(iter(self._open))
            if max(self._open[key].last) + widest > self._now_us:
                return
            self._finish(key)
