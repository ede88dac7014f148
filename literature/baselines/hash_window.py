"""The hash join by windows alone: WJoin for two inputs, MWJoin for more.

Source: section 3.6 of the specification of punctuation-aware joins. Closings only advance the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.items import ItemColumns, JoinedColumns
from joins.kernels.tables import DONE, NEVER, NIL, OUTPUT_FULL, Items
from joins.windowed import Window
from literature.kernels import chains as kernel
from literature.kernels.chains import ChainRules, ChainState, Combined, chain_batch

_FIRST_ROOM = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class HashWindowStats:
    """Counts since the join began; ``stored`` is current.

    Attributes:
        events: Processed events, including those without a key.
        stored: Events in the tables.
        results: Combinations.
        lookups: Look-ups of chains: one for each input that was probed, and one for storing.
        probes: Look-ups for probing.
        comparisons: Stored events whose key was compared: all events of each probed chain.
        irrelevant: Compared events that had another key.
        expired: Events that left their window.
    """

    events: int
    stored: int
    results: int
    lookups: int
    probes: int
    comparisons: int
    irrelevant: int
    expired: int


class HashWindowJoin:
    """WJoin and MWJoin, with the input and output columns of ``WindowJoin``.

    Args:
        windows: Window of each input; ``events-of-key`` is not supported.
        buckets: Number of chains of each table, a power of two.
        is_adaptive: Whether the inputs that matched most rarely are probed first, instead of in order.
    """

    def __init__(self, windows: Sequence[Window], *, buckets: int = 1024, is_adaptive: bool = False) -> None:
        if len(windows) < 2 or any(window.kind == "events-of-key" for window in windows):
            raise ValueError("a hash window join has two inputs or more, with windows of time or of all their events")
        if buckets < 1 or buckets & (buckets - 1):
            raise ValueError(f"the number of buckets is a power of two, not {buckets}")
        self._rules = ChainRules(
            spans_us=np.array([window.size if window.kind == "time" else 0 for window in windows], np.int64),
            counts=np.array([window.size if window.kind == "events" else NIL for window in windows], np.int64),
            is_adaptive=np.array([is_adaptive]),
        )
        self._state = _empty_state(len(windows), buckets, _FIRST_ROOM)
        self._written = _room(len(windows), _FIRST_ROOM)

    @property
    def stats(self) -> HashWindowStats:
        """Counts since the join began."""
        counters = [int(number) for number in self._state.counters]
        return HashWindowStats(
            events=counters[kernel.SEQUENCE],
            stored=counters[kernel.STORED],
            results=counters[kernel.RESULTS],
            lookups=counters[kernel.LOOKUPS],
            probes=counters[kernel.PROBES],
            comparisons=counters[kernel.COMPARISONS],
            irrelevant=counters[kernel.COMPARISONS] - counters[kernel.MATCHES],
            expired=counters[kernel.EXPIRED],
        )

    def push(self, items: ItemColumns) -> JoinedColumns:
        """Process items in order; results do not depend on how items are cut into calls."""
        kernel_items = Items(items.kinds, items.inputs, items.keys, items.times_us)
        self._written.filled[0] = 0
        item, pending = 0, NIL
        while True:
            status, item = chain_batch(self._rules, self._state, kernel_items, self._written, item, pending)
            pending = NIL
            if status == DONE:
                return _columns(self._written)
            if status == OUTPUT_FULL:
                pending = int(self._state.counters[kernel.NEEDED])
                self._written = _enlarged(self._written, pending)
            else:
                self._state = _grown(self._state)


def _empty_state(inputs: int, buckets: int, room: int) -> ChainState:
    chains = np.zeros((inputs, buckets), kernel.CHAIN)
    chains["first"] = chains["last"] = NIL
    counters = np.zeros(kernel.N_COUNTERS, np.int64)
    counters[kernel.NOW] = NEVER
    return ChainState(
        chains=chains,
        events=np.zeros((inputs, room), kernel.STORED_EVENT),
        rings=np.zeros(inputs, kernel.RING),
        matched=np.zeros((inputs, room), np.int64),
        found=np.zeros(inputs, np.int64),
        rates=np.zeros((inputs, 2), np.int64),
        counters=counters,
    )


def _grown(state: ChainState) -> ChainState:
    """The state with twice the room for events."""
    inputs, room = state.events.shape
    events = np.zeros((inputs, 2 * room), kernel.STORED_EVENT)
    for number in range(inputs):
        places = np.arange(int(state.rings[number]["first"]), int(state.rings[number]["behind"]))
        events[number, places % (2 * room)] = state.events[number, places % room]
    return state._replace(events=events, matched=np.zeros((inputs, 2 * room), np.int64))


def _room(inputs: int, results: int) -> Combined:
    return Combined(
        members=np.zeros((results, inputs), np.int64),
        times=np.zeros(results, np.int64),
        items=np.zeros(results, np.int32),
        filled=np.zeros(1, np.int64),
        cursors=np.zeros(inputs, np.int64),
    )


def _enlarged(written: Combined, needed: int) -> Combined:
    """The tables with more room, and the results written so far."""
    larger = _room(len(written.cursors), 2 * len(written.times) + needed)
    pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(list(written), list(larger), strict=True)
    for old, new in pairs:
        new[: len(old)] = old
    return larger


def _columns(written: Combined) -> JoinedColumns:
    results = int(written.filled[0])
    return JoinedColumns(
        members=written.members[:results].copy(),
        result_times_us=written.times[:results].copy(),
        result_items=written.items[:results].copy(),
        result_whys=np.zeros(results, np.uint8),
        closing_keys=np.zeros(0, np.uint64),
        closing_causes=np.zeros(0, np.uint8),
        closing_times_us=np.zeros(0, np.int64),
        closing_items=np.zeros(0, np.int32),
        closing_places=np.zeros(0, np.int64),
        violations=np.zeros(0, np.int32),
    )
