"""The join of any number of inputs on one key, bounded by windows and by keys that inputs close.

An input *closes* a key when it promises that no further events of the key arrive. A key is over when no combination can
contain it any more, and its events are then dropped at once. Source: punctuation-aware window joins (PWJoin and
MPWJoin).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from joins.items import OF_CLOSINGS, OF_RESULTS, ItemColumns, JoinedColumns
from joins.kernels import tables as kernel
from joins.kernels.paging import KEY, ROW, put_keys, take_keys
from joins.kernels.retracting import is_key_over, retract_event, unjoin_event
from joins.kernels.tables import NIL, Items, JoinState, Output, Rules
from joins.kernels.windowed import drop_keys, expire_nodes, fill_slots, join_batch, join_outer, leave_nodes, note_inputs
from joins.outer import due_times
from streams import zeros_of

MOST_INPUTS = 16
MOST_RESULTS = 2**31
_FORMAT = 1
_PART = 65_536  # roughly the most results of a part of a call
_FIRST_ROOM = 64
_SLOTS_TO_CLUSTERS = 2
_FOREVER = np.iinfo(np.int64).max


WindowKind: TypeAlias = Literal["none", "time", "events", "events-of-key"]


@dataclass(frozen=True, slots=True)
class Window:
    """The window of an input: its earlier events that are joined with a new event of another input.

    Attributes:
        kind: ``none``: all earlier events. ``time``: events less than ``size`` microseconds older. ``events``: the
            newest ``size`` events of the input, including events that join nothing. ``events-of-key``: the newest
            ``size`` events of the key.
        size: Size of the window, at least 1. For windows of events, 0 means that no event is kept. ``none`` has no
            size.
    """

    kind: WindowKind = "none"
    size: int = 0

    def __post_init__(self) -> None:
        if self.size < (1 if self.kind == "time" else 0):
            raise ValueError(f"a window of the kind {self.kind!r} cannot have the size {self.size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStats:
    """Counts since the join began, or since ``clear_counts``.

    ``stored``, ``keys`` and ``remembered`` are current numbers.

    Attributes:
        stored: Events that may still join.
        keys: Keys with state.
        remembered: Keys that are over and remembered, because some input may still send events of them.
        absent: Reports of events that can no longer join, and combinations that lack inputs.
        closings: Keys that were reported as over.
        dropped: Events of keys that were over.
        on_the_fly: Events that did not have to be stored.
        purged: Stored events that became useless because a key was closed.
        expired: Stored events that left their window.
        duplicates: Closings of keys that the input had closed before.
        violations: Events of keys that their input had closed before.
        lookups: Look-ups of keys in the hash table.
        forgotten: Keys that are over and no longer remembered, because there were too many.
    """

    events: int
    stored: int
    keys: int
    remembered: int
    results: int
    absent: int
    closings: int
    dropped: int
    on_the_fly: int
    purged: int
    expired: int
    duplicates: int
    violations: int
    lookups: int
    forgotten: int


_COUNTER_OF = {
    "events": kernel.SEQUENCE,
    "stored": kernel.OPEN_NODES,
    "keys": kernel.CLUSTERS,
    "remembered": kernel.DEAD,
    "results": kernel.RESULTS,
    "absent": kernel.ABSENTS,
    "closings": kernel.CLOSINGS,
    "dropped": kernel.DROPPED,
    "on_the_fly": kernel.ON_THE_FLY,
    "purged": kernel.PURGED,
    "expired": kernel.EXPIRED,
    "duplicates": kernel.DUPLICATES,
    "violations": kernel.VIOLATIONS,
    "lookups": kernel.LOOKUPS,
    "forgotten": kernel.FORGOTTEN,
}


_STATE_COUNTERS = frozenset({"events", "stored", "keys", "remembered"})  # all other counters only count events


_USED = {  # the counter of the used rows of each saved array; without optional inputs, ``seen`` has no rows
    "keyed": kernel.FRESH_CLUSTERS,
    "lists": kernel.FRESH_CLUSTERS,
    "seen": kernel.FRESH_CLUSTERS,
    "nodes": kernel.FRESH_NODES,
    "free_clusters": kernel.FREE_CLUSTERS,
    "free_nodes": kernel.FREE_NODES,
}


class WindowJoin:
    """A join of events by hashed keys, with a window for each of 2 to ``MOST_INPUTS`` inputs.

    An event of an ``outer`` input is reported if it can no longer join and has joined nothing. If ``reports_all`` is
    true, events that have joined are reported too, and the caller selects. A combination may lack ``optional`` inputs.
    Such a combination is reported when no event can extend it any more, unless it is part of a larger one
    (``joins.outer``). A join has ``outer`` or ``optional`` inputs, not both. At most ``most_remembered`` keys that are
    over are remembered, so that their late events are dropped and not stored.
    """

    def __init__(
        self,
        windows: Sequence[Window],
        *,
        outer: Sequence[int] = (),
        optional: Sequence[int] = (),
        most_remembered: int = 1_000_000,
        reports_all: bool = False,
    ) -> None:
        if not 2 <= len(windows) <= MOST_INPUTS:
            raise ValueError(f"a join has 2 to {MOST_INPUTS} inputs, not {len(windows)}")
        self._optional = tuple(optional)
        limits = most_remembered, MOST_RESULTS
        self._rules = _rules(windows, outer, self._optional, limits, covers=False, reports_all=reports_all)
        self._state = _empty_state(len(windows), has_seen=bool(optional))
        self._output = _room(len(windows), _FIRST_ROOM, _FIRST_ROOM)
        self._uncounted = 0

    @property
    def inputs(self) -> int:
        return len(self._rules.counts)

    @property
    def now_us(self) -> int | None:
        """The current time of the join, or None before the first item."""
        now = int(self._state.counters[kernel.NOW])
        return None if now == kernel.NEVER else now

    @property
    def next_sequence(self) -> int:
        """The sequence number that the next event gets."""
        return int(self._state.counters[kernel.SEQUENCE])

    @property
    def stored(self) -> int:
        """Number of events that may still join."""
        return int(self._state.counters[kernel.OPEN_NODES])

    @property
    def remembered(self) -> int:
        """Number of keys that are over and remembered, because some input may still send events of them."""
        return int(self._state.counters[kernel.DEAD])

    @property
    def stored_by_input(self) -> list[int]:
        """Number of stored events by input. Placeholders in windows that count events are included."""
        sizes: list[int] = self._state.sides["size"].tolist()
        return sizes

    @property
    def most_stored(self) -> int:
        """The largest number of events stored at the same time, as far as known. The true maximum may be larger."""
        return int(self._state.counters[kernel.FRESH_NODES])

    @property
    def stats(self) -> JoinStats:
        stats = JoinStats(**{name: int(self._state.counters[place]) for name, place in _COUNTER_OF.items()})
        return replace(stats, events=stats.events - self._uncounted)

    def clear_counts(self) -> None:
        """Restart all counts from 0. The sequence numbers of events continue."""
        self._uncounted = self.next_sequence
        for name in _COUNTER_OF.keys() - _STATE_COUNTERS:
            self._state.counters[_COUNTER_OF[name]] = 0

    def push(self, items: ItemColumns) -> JoinedColumns:
        """Process items in order. The division of items into calls does not change the results."""
        results, _ = self._take(items, MOST_RESULTS)
        return results

    def push_part(self, items: ItemColumns) -> tuple[JoinedColumns, int]:
        """Process items until the results fill a part (about 65,536 results).

        Return the results, and the number of processed items. Time has already advanced to the next item, and the
        results of this advance are included.
        """
        return self._take(items, _PART)

    def limit(self, most_results: int, *, covers: bool) -> None:
        """Limit the reported results of an event at once. ``JoinedColumns.cuts`` has the events with more results.

        If ``covers`` is true, a combination is reported only if it contains an event that no earlier combination
        contains. In a join with ``optional`` inputs, other combinations that contain the same events are reported. The
        caller calls this method before the first event.
        """
        self._rules = self._rules._replace(most=np.array([most_results], np.int64), covers=np.array([covers]))

    def _take(self, items: ItemColumns, most: int) -> tuple[JoinedColumns, int]:
        """Process items.

        Stop when the output is full and has room for at least ``most`` results; until then it is enlarged. Return the
        results, and the number of processed items.
        """
        kernel_items = Items(items.kinds, items.inputs, items.keys, items.times_us)
        if len(self._output.violations) < len(items):
            self._output = _room(self.inputs, len(self._output.result_times_us), len(items))
        self._output.filled[:] = 0
        item = 0
        while True:
            take = join_outer if self._optional else join_batch
            status, item = take(self._rules, self._state, kernel_items, self._output, item)
            is_part = status == kernel.OUTPUT_FULL and len(self._output.result_times_us) >= most
            if status == kernel.DONE or (is_part and self._output.filled[:2].any()):
                return _columns(self._output), item
            if status == kernel.OUTPUT_FULL:
                self._output = _enlarged(self._output, int(self._state.counters[kernel.NEEDED]))
            else:
                self._state = _grown(self._state, is_of_clusters=status == kernel.CLUSTERS_FULL)

    def change(self, windows: Sequence[Window]) -> JoinedColumns:
        """Change the windows. Events outside the new windows leave now, and events that have left do not return.

        The size of a window of the kind ``events`` cannot change. Return the results of the change, at the current time
        of the join. Their ``result_items`` have no meaning.
        """
        if len(windows) != self.inputs:
            raise ValueError(f"the join has {self.inputs} inputs; their number cannot change")
        outer = np.flatnonzero(self._rules.reports_absent).tolist()
        limits = int(self._rules.most_dead[0]), int(self._rules.most[0])
        flags = {name: bool(getattr(self._rules, name)[0]) for name in ("covers", "reports_all")}
        rules = _rules(windows, outer, self._optional, limits, **flags)
        if not np.array_equal(rules.counts, self._rules.counts):
            raise ValueError("a window of a number of events of an input cannot change")
        self._rules = rules
        self._output.filled[:] = 0
        leaving, place = self._outside(), 0
        while True:
            expire = leave_nodes if self._optional else expire_nodes
            status, place = expire(self._rules, self._state, self._output, leaving, place)
            if status == kernel.DONE:
                return _columns(self._output)
            self._output = _enlarged(self._output, int(self._state.counters[kernel.NEEDED]))

    def retract(self, key: int, number: int, sequence: int) -> JoinedColumns:
        """Remove a stored event, as if it had never arrived. If it is not stored, nothing happens.

        A key stays closed even if the event has closed it. An event that it has pushed out of a window does not return.
        Return the results of the removal, at the current time of the join. Their ``result_items`` have no meaning.
        """
        self._output.filled[:] = 0
        while retract_event(self._rules, self._state, self._output, np.uint64(key), number, sequence) != kernel.DONE:
            self._output = _enlarged(self._output, int(self._state.counters[kernel.NEEDED]))
        return _columns(self._output)

    def unjoin(self, key: int, number: int, sequence: int) -> bool:
        """Mark a stored event as not joined, as if it had been in no result. Return whether the event is stored."""
        return bool(unjoin_event(self._state, np.uint64(key), number, sequence))

    def is_over(self, key: int) -> bool:
        """Check whether a hashed key has no state, or was reported as over."""
        return bool(is_key_over(self._state, np.uint64(key)))

    def _outside(self) -> NDArray[np.int64]:
        """Return an array (events, 2) with node and input of each stored event outside its window, oldest first.

        A node is the index of the event in the tables.
        """
        state, fresh = self._state, int(self._state.counters[kernel.FRESH_NODES])
        nodes = np.flatnonzero(state.nodes["flags"][:fresh] & kernel.ALIVE)
        nodes = nodes[np.argsort(state.nodes["sequence"][nodes])]
        inputs = np.zeros(len(state.nodes), np.int64)
        note_inputs(state, inputs)
        stored, input_of_node = state.nodes[nodes], inputs[nodes]
        spans_us, most = self._rules.spans_us[input_of_node], self._rules.of_key[input_of_node]
        age_us = int(state.counters[kernel.NOW]) - stored["time"]
        lists = stored["cluster"].astype(np.int64) * self.inputs + input_of_node
        order = np.argsort(lists, kind="stable")
        newer = np.zeros(len(nodes), np.int64)  # number of events of the key and input, from each event to the newest
        newer[order] = np.searchsorted(lists[order], lists[order], side="right") - np.arange(len(nodes))
        is_out = ((spans_us > 0) & (age_us >= spans_us)) | ((most != NIL) & (newer > most))
        return np.stack([nodes[is_out], input_of_node[is_out]], axis=1)

    def held_sequences(self) -> NDArray[np.int64]:
        """Return the sequence numbers of the events that may still join, ascending."""
        nodes = self._state.nodes[: int(self._state.counters[kernel.FRESH_NODES])]
        return np.sort(nodes["sequence"][nodes["flags"] & kernel.ALIVE != 0])

    def joined_sequences(self) -> NDArray[np.int64]:
        """Return the sequence numbers of stored events that have joined, in inputs that report unjoined events."""
        nodes = self._state.nodes[: int(self._state.counters[kernel.FRESH_NODES])]
        is_joined = nodes["flags"] & (kernel.ALIVE | kernel.JOINED) == kernel.ALIVE | kernel.JOINED
        return np.sort(nodes["sequence"][is_joined])

    def keys(self) -> NDArray[np.uint64]:
        """Return the hashed keys in the state, in any order."""
        slots = self._state.slots
        keys: NDArray[np.uint64] = slots[slots[:, 1] != 0, 0]
        return keys

    def over(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the hashed keys that are over and remembered. For each, return the inputs that closed it, as bits."""
        slots = self._state.slots
        clusters = self._state.keyed[(slots[slots[:, 1] != 0, 1] - np.uint64(1)).astype(np.intp)]
        dead_clusters = clusters[clusters["ends"] & kernel.CLOSED_FOR_GOOD != 0]
        return dead_clusters["key"].copy(), dead_clusters["closed"].copy()

    def closed(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return which inputs have closed each of the given keys, as bits. Unknown keys have 0."""
        slots = self._state.slots[self._state.slots[:, 1] != 0]
        slots = slots[np.argsort(slots[:, 0])]
        bits = np.zeros(len(keys), np.uint64)
        places = np.searchsorted(slots[:, 0], keys)
        known_places = np.flatnonzero(places < len(slots))
        known_places = known_places[slots[places[known_places], 0] == keys[known_places]]
        clusters = (slots[places[known_places], 1] - np.uint64(1)).astype(np.intp)
        bits[known_places] = self._state.keyed["closed"][clusters]
        return bits

    def drop(self, keys: NDArray[np.uint64]) -> None:
        """Forget those of the ``keys`` that are known, as if their events had never arrived."""
        drop_keys(self._state, np.ascontiguousarray(keys))

    def coldest(self, rows: int) -> NDArray[np.uint64]:
        """Return the hashes of the least recently used keys that together have at least ``rows`` rows.

        If all keys together have fewer rows, return all keys with rows.
        """
        fresh = int(self._state.counters[kernel.FRESH_CLUSTERS])
        is_used = np.ones(fresh, np.bool_)
        is_used[self._state.free_clusters[: int(self._state.counters[kernel.FREE_CLUSTERS])]] = False
        live = self._state.lists["live"][:fresh].sum(axis=1) * is_used
        order = np.argsort(self._state.keyed["touched"][:fresh], kind="stable")
        order = order[live[order] > 0]
        last = int(np.searchsorted(np.cumsum(live[order]), rows))
        return np.ascontiguousarray(self._state.keyed["key"][order[: last + 1]])

    def take(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Remove known keys that may still join, with their events. Return both as rows for ``put_back``.

        The caller puts each key back before the key's next item, and before the times that ``leaving`` returns. The
        keys are ``KEY`` and the rows ``ROW`` of ``joins.kernels.paging``. The rows are in the order of the keys.
        """
        key_rows = np.zeros(len(keys), KEY)
        key_rows["key"] = keys
        rows = np.zeros(self.stored, ROW)
        return key_rows, rows[: take_keys(self._state, key_rows, rows)]

    def put_back(self, keys: NDArray[np.void], rows: NDArray[np.void]) -> None:
        """Add keys (``KEY``) and their events (``ROW``) again that ``take`` has removed.

        ``rows`` are sorted by sequence number. The keys have had no items since.
        """
        while len(self._state.keyed) <= int(self._state.counters[kernel.CLUSTERS]) + len(keys):
            self._state = _grown(self._state, is_of_clusters=True)
        while len(self._state.nodes) <= int(self._state.counters[kernel.NODES]) + len(rows):
            self._state = _grown(self._state, is_of_clusters=False)
        put_keys(self._state, self._rules, keys, rows, np.zeros(self.inputs, np.int64))

    def leaving(self, keys: NDArray[np.void], rows: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return two times for each key: of its next result or its end, and when its last row leaves its window.

        ``keys`` and ``rows`` are results of ``take``. Times are in microseconds, and the largest number means never.
        """
        spans = self._rules.spans_us[rows["input"]]
        out_us = np.where(spans > 0, rows["time"] + spans, _FOREVER)
        has_closed = (keys["closed"][rows["owner"]] >> rows["input"].astype(np.uint64)) & np.uint64(1) != 0
        due_us, gone_us = np.full(len(keys), _FOREVER), np.zeros(len(keys), np.int64)
        np.maximum.at(gone_us, rows["owner"], out_us)
        if self._optional:
            return due_times(keys, rows, (out_us, gone_us), self._rules.required[0], self.inputs), gone_us
        is_reported = self._rules.reports_absent[rows["input"]] & (rows["flags"] & kernel.JOINED == 0)
        last_us = np.full((len(keys), self.inputs), 0, np.int64)
        np.maximum.at(last_us, (rows["owner"], rows["input"]), out_us)
        is_last = has_closed & (out_us == last_us[rows["owner"], rows["input"]])
        is_due = is_reported | is_last
        np.minimum.at(due_us, rows["owner"][is_due], out_us[is_due])
        return due_us, gone_us

    def dump(self) -> tuple[dict[str, int], dict[str, bytes]]:
        counters = self._state.counters
        has_keys = bool(counters[kernel.CLUSTERS] or counters[kernel.NODES])
        clusters, nodes = (counters[[kernel.FRESH_CLUSTERS, kernel.FRESH_NODES]] * has_keys).tolist()
        head = {"format": _FORMAT, "inputs": self.inputs, "clusters": clusters, "nodes": nodes}
        head |= {"uncounted": self._uncounted} if self._uncounted else {}
        arrays = {"counters": counters[: kernel.N_SAVED]} | (_saved(self._state) if has_keys else {})
        return head, {name: array.tobytes() for name, array in arrays.items()}

    def load(self, head: Mapping[str, int], arrays: Mapping[str, bytes]) -> None:
        """Restore the state that ``dump`` saved of an equal join. Raise ``JoinStateError`` if it is damaged."""
        if head.get("format") != _FORMAT or head.get("inputs") != self.inputs:
            raise JoinStateError(
                f"the saved join has the format {head.get('format')} and {head.get('inputs')} inputs; this one reads "
                f"format {_FORMAT} and has {self.inputs}"
            )
        self._uncounted = head.get("uncounted", 0)
        try:
            self._state = _loaded(self.inputs, head["clusters"], head["nodes"], arrays, has_seen=bool(self._optional))
        except (KeyError, ValueError) as error:
            raise JoinStateError(f"a saved join cannot be read: {error}") from error


def _rules(
    windows: Sequence[Window],
    outer: Sequence[int],
    optional: Sequence[int],
    limits: tuple[int, int],
    *,
    covers: bool,
    reports_all: bool,
) -> Rules:
    """Return the declaration of a join as arrays for the kernels.

    ``limits`` has two numbers: the most keys that are over and remembered, and the most results of one event.
    """

    def sizes(kind: str, other: int) -> NDArray[np.int64]:
        return np.array([window.size if window.kind == kind else other for window in windows], np.int64)

    is_outer = np.array([number in outer for number in range(len(windows))])
    return Rules(
        spans_us=sizes("time", 0),
        counts=sizes("events", NIL),
        of_key=sizes("events-of-key", NIL),
        reports_absent=is_outer,
        reporters=np.array([sum(1 << number for number in outer)], np.uint64),
        most_dead=np.array([limits[0]], np.int64),
        most=np.array([limits[1]], np.int64),
        covers=np.array([covers]),
        is_plain=np.array([not outer and all(window.kind in ("time", "none") for window in windows)]),
        required=np.array([sum(1 << number for number in range(len(windows)) if number not in optional)], np.uint64),
        reports_all=np.array([reports_all]),
    )


def _empty_state(
    inputs: int, clusters: int = _FIRST_ROOM, nodes: int = _FIRST_ROOM, *, has_seen: bool = False
) -> JoinState:
    counters = np.zeros(kernel.N_COUNTERS, np.int64)
    counters[kernel.OLDEST_DEAD] = counters[kernel.NEWEST_DEAD] = NIL
    counters[kernel.NOW] = kernel.NEVER
    sides = np.zeros(inputs, kernel.SIDE)
    sides["first"] = sides["last"] = NIL
    return zeros_of(
        JoinState,
        clusters,
        slots=(_SLOTS_TO_CLUSTERS * clusters, 2),
        keyed=np.zeros(clusters, kernel.KEYED),
        lists=np.zeros((clusters, inputs), kernel.LIST),
        nodes=np.zeros(nodes, kernel.NODE),
        free_nodes=nodes,
        sides=sides,
        counters=counters,
        seen=(clusters if has_seen else 0, inputs),
    )


def _grown(state: JoinState, *, is_of_clusters: bool) -> JoinState:
    """Return a copy of the state with twice the room for keys, or for events."""
    clusters, nodes = len(state.keyed) << is_of_clusters, len(state.nodes) << (not is_of_clusters)
    grown = _empty_state(len(state.sides), clusters, nodes, has_seen=len(state.seen) > 0)
    pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(list(state)[1:], list(grown)[1:], strict=True)
    for old, new in pairs:
        new[: len(old)] = old
    is_used = state.slots[:, 1] != 0
    fill_slots(grown.slots, state.slots[is_used, 0], state.slots[is_used, 1])
    return grown


def _saved(state: JoinState) -> dict[str, NDArray[Any]]:
    arrays = [(name, getattr(state, name), int(state.counters[place])) for name, place in _USED.items()]
    return {"sides": state.sides} | {name: array[:used] for name, array, used in arrays if len(array)}


def _loaded(inputs: int, clusters: int, nodes: int, arrays: Mapping[str, bytes], *, has_seen: bool) -> JoinState:
    room = [max(_FIRST_ROOM, 1 << (size - 1).bit_length() if size else 0) for size in (clusters, nodes)]
    state = _empty_state(inputs, *room, has_seen=has_seen)
    counters = state.counters
    counters[: kernel.N_SAVED] = np.frombuffer(arrays["counters"], np.int64)
    if not clusters and not nodes:
        for place in (kernel.FRESH_CLUSTERS, kernel.FREE_CLUSTERS, kernel.FRESH_NODES, kernel.FREE_NODES):
            counters[place] = 0
        return state
    saved = _saved(state)
    for name, array in saved.items():
        array[...] = np.frombuffer(arrays[name], array.dtype).reshape(array.shape)
    numbers = np.setdiff1d(np.arange(clusters), saved["free_clusters"])
    fill_slots(state.slots, state.keyed["key"][numbers], (numbers + 1).astype(np.uint64))
    counters[kernel.CLOSED_KEYS] = np.count_nonzero(state.keyed["closed"][numbers])
    return state


def _room(inputs: int, results: int, items: int) -> Output:
    return zeros_of(Output, results, members=(results, inputs), violations=items, filled=5, cursors=inputs)


def _enlarged(output: Output, needed: int) -> Output:
    larger = _room(len(output.cursors), 2 * len(output.result_times_us) + needed, len(output.violations))
    pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(list(output), list(larger), strict=True)
    for old, new in pairs:
        new[: len(old)] = old
    return larger


def _columns(output: Output) -> JoinedColumns:
    results, closings, violations, _, cuts = output.filled.tolist()
    columns = {name: getattr(output, name)[:results].copy() for name in OF_RESULTS}
    columns |= {name: getattr(output, name)[:closings].copy() for name in OF_CLOSINGS}
    return JoinedColumns(
        **columns, violations=output.violations[:violations].copy(), cuts=output.cut_places[:cuts].copy()
    )
