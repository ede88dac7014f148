"""The tables in memory of a spilling join, enlarged when they are full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.kernels.tables import NEVER, NIL, NODES_FULL, OUTPUT_FULL
from literature.kernels import buckets as kernel
from literature.kernels.buckets import (
    Arriving,
    BucketState,
    ClosedTable,
    Pairs,
    clear_part,
    copy_part,
    drop_resident,
    fill_slots,
    has_key,
    join_events,
    put_rows,
)
from literature.spilling.closed_keys import hashes_of
from literature.spilling.files import ON_DISK
from literature.spilling.monitor import UNLIMITED

_FIRST_ROOM = 64
_SIZED = {"nodes": kernel.FRESH_NODES, "free_nodes": kernel.FREE_NODES, "free_keys": kernel.FREE_KEYS}
_SIZED_BY_KEYS = ("resident", "owners")


class BucketMemory:
    """Memory parts, purge buffers and resident keys of two inputs.

    Args:
        buckets: Number of buckets of each input, a power of two.
        is_tracking: Whether resident keys are counted; only propagation needs the counts.

    Attributes:
        state: Tables for kernels; another object when they grow.
        pairs: Results of the current batch.
    """

    def __init__(self, buckets: int, *, is_tracking: bool) -> None:
        self.state = _empty_state(buckets, is_tracking)
        self.pairs = _room(_FIRST_ROOM, _FIRST_ROOM)

    def counter(self, place: int) -> int:
        """The value of a counter of ``literature.kernels.buckets``."""
        return int(self.state.counters[place])

    def begin(self, items: int) -> None:
        """Make room for the violations of a batch, and forget its results."""
        if len(self.pairs.violations) < items:
            self.pairs = _room(len(self.pairs.times), items)
        self.pairs.filled[:] = 0

    def join(self, items: Arriving, closed: ClosedTable, limits: NDArray[np.int64], first: int) -> tuple[int, int]:
        """Process items until the kernel stops for another reason than a full table, which is enlarged."""
        while True:
            status, first = join_events(self.state, closed, items, self.pairs, limits, first)
            if status == NODES_FULL:
                self.state = _grown(self.state, are_keys=False)
            elif status == kernel.KEYS_FULL:
                self.state = _grown(self.state, are_keys=True)
            elif status == OUTPUT_FULL:
                self._enlarge(self.counter(kernel.NEEDED))
            else:
                return status, first

    def emit(self, members: NDArray[np.int64], times: NDArray[np.int64], item: int) -> None:
        """Add results of a disk join."""
        begin = int(self.pairs.filled[0])
        end = begin + len(times)
        if end > len(self.pairs.times):
            self._enlarge(len(times))
        self.pairs.members[begin:end] = members
        self.pairs.times[begin:end] = times
        self.pairs.items[begin:end] = item
        self.pairs.filled[0] = end

    def rows(self, part: int, number: int, bucket: int, flushed: int = UNLIMITED) -> NDArray[np.void]:
        """The events of a part as ``ON_DISK`` rows."""
        nodes = np.zeros(int(self.state.parts[part, number, bucket]["count"]), kernel.NODE)
        copy_part(self.state, part, number, bucket, nodes)
        rows = np.zeros(len(nodes), ON_DISK)
        for name in ("key", "hash", "arrived", "time"):
            rows[name] = nodes[name]
        rows["flushed"] = flushed
        return rows

    def clear(self, part: int, number: int, bucket: int, *, is_gone: bool) -> None:
        """Empty a part; its events have left the join (``is_gone``) or are on disk."""
        clear_part(self.state, part, number, bucket, is_gone)

    def put(self, number: int, bucket: int, rows: NDArray[np.void]) -> None:
        """Append resident events, as ``ON_DISK`` rows, to a memory part."""
        while self.counter(kernel.IN_MEMORY) + len(rows) > len(self.state.nodes):
            self.state = _grown(self.state, are_keys=False)
        put_rows(self.state, number, bucket, np.ascontiguousarray(rows))

    def unindebted(self, number: int) -> list[int]:
        """The buckets of an input without events of the other input on disk, so that no pairs with such are left."""
        buckets: list[int] = np.flatnonzero(self.state.on_disk[1 - number] == 0).tolist()
        return buckets

    def drop(self, number: int, bucket: int, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget the events with some keys in a memory part; returns the key of each."""
        rows = self.rows(kernel.MEMORY, number, bucket)
        is_dropped = np.isin(rows["key"], keys)
        if is_dropped.any():
            self.clear(kernel.MEMORY, number, bucket, is_gone=False)
            self.put(number, bucket, rows[~is_dropped])
            drop_resident(self.state, number, np.ascontiguousarray(rows["hash"][is_dropped]))
        dropped: NDArray[np.int64] = rows["key"][is_dropped]
        return dropped

    def sequences(self) -> NDArray[np.int64]:
        """The sequence numbers of the events in memory, in any order."""
        is_used = np.ones(self.counter(kernel.FRESH_NODES), np.bool_)
        is_used[self.state.free_nodes[: self.counter(kernel.FREE_NODES)]] = False
        sequences: NDArray[np.int64] = self.state.nodes["arrived"][: len(is_used)][is_used]
        return sequences

    def victim(self) -> tuple[int, int]:
        """The input and bucket with the largest memory part, or else purge buffer; the lowest bucket wins ties."""
        for part in (kernel.MEMORY, kernel.BUFFER):
            counts = self.state.parts[part]["count"]
            if counts.max() > 0:
                bucket = int(counts.max(axis=0).argmax())
                return int(counts[:, bucket].argmax()), bucket
        raise ValueError("nothing is in memory")

    def new_owner(self) -> int:
        """A free place among ``counts`` for another punctuation."""
        free = np.flatnonzero(self.state.counts == NIL)
        if not len(free):
            self.state = self.state._replace(counts=_longer(self.state.counts, NIL))
            free = np.flatnonzero(self.state.counts == NIL)
        self.state.counts[free[0]] = 0
        return int(free[0])

    def is_resident(self, key: int) -> bool:
        """Whether an event of a key is in memory or on disk."""
        return bool(has_key(self.state, hashes_of([key])[0]))

    def dump(self) -> dict[str, bytes]:
        """The tables by name."""
        state, arrays = self.state, {}
        for name, array in state._asdict().items():
            size = len(array)
            if name in _SIZED:
                size = self.counter(_SIZED[name])
            elif name in _SIZED_BY_KEYS:
                size = self.counter(kernel.FRESH_KEYS)
            arrays[name] = np.ascontiguousarray(array[:size]).tobytes()
        return arrays

    def load(self, arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned for the same number of buckets.

        Raises:
            KeyError: A table is missing.
            ValueError: A table has another size.
        """
        empty = _empty_state(self.state.on_disk.shape[1], bool(self.state.is_tracking[0]))
        read: dict[str, NDArray[Any]] = {}
        for name, array in empty._asdict().items():
            flat = np.frombuffer(arrays[name], array.dtype)
            shape = array.shape if name in ("parts", "on_disk", "counters", "is_tracking") else (-1, *array.shape[1:])
            read[name] = flat.reshape(shape).copy()
        nodes = _power(len(read["nodes"]), _FIRST_ROOM)
        keys = len(read["slots"]) // 2
        room = {"nodes": nodes, "free_nodes": nodes, "resident": keys, "owners": keys, "free_keys": keys}
        for name, size in room.items():
            read[name] = _padded(read[name], size)
        self.state = BucketState(**read)

    def _enlarge(self, needed: int) -> None:
        larger = _room(2 * len(self.pairs.times) + needed, len(self.pairs.violations))
        pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(list(self.pairs), list(larger), strict=True)
        for old, new in pairs:
            new[: len(old)] = old
        self.pairs = larger


def _empty_state(buckets: int, is_tracking: bool) -> BucketState:
    parts = np.zeros((2, 2, buckets), kernel.PART)
    parts["first"] = parts["last"] = NIL
    counters = np.zeros(kernel.N_COUNTERS, np.int64)
    counters[kernel.NOW] = NEVER
    return BucketState(
        nodes=np.zeros(_FIRST_ROOM, kernel.NODE),
        free_nodes=np.zeros(_FIRST_ROOM, np.int32),
        parts=parts,
        on_disk=np.zeros((2, buckets), np.int64),
        slots=np.zeros((2 * _FIRST_ROOM, 2), np.uint64),
        resident=np.zeros((_FIRST_ROOM, 2), np.int64),
        owners=np.zeros((_FIRST_ROOM, 2), np.int32),
        free_keys=np.zeros(_FIRST_ROOM, np.int32),
        counts=np.full(_FIRST_ROOM, NIL, np.int64),
        is_tracking=np.array([is_tracking]),
        counters=counters,
    )


def _grown(state: BucketState, *, are_keys: bool) -> BucketState:
    """The state with twice the room for events, or for keys."""
    if not are_keys:
        return state._replace(nodes=_longer(state.nodes), free_nodes=_longer(state.free_nodes))
    slots = np.zeros((2 * len(state.slots), 2), np.uint64)
    is_used = state.slots[:, 1] != 0
    fill_slots(slots, state.slots[is_used, 0], state.slots[is_used, 1])
    return state._replace(
        slots=slots,
        resident=_longer(state.resident),
        owners=_longer(state.owners),
        free_keys=_longer(state.free_keys),
    )


def _longer(array: NDArray[Any], other: int = 0) -> NDArray[Any]:
    longer = (
        np.full((2 * len(array), *array.shape[1:]), other, array.dtype) if other else _padded(array, 2 * len(array))
    )
    longer[: len(array)] = array
    return longer


def _padded(array: NDArray[Any], size: int) -> NDArray[Any]:
    padded = np.zeros((size, *array.shape[1:]), array.dtype)
    padded[: len(array)] = array
    return padded


def _power(size: int, least: int) -> int:
    return max(least, 1 << (size - 1).bit_length() if size else 0)


def _room(results: int, items: int) -> Pairs:
    return Pairs(
        members=np.zeros((results, 2), np.int64),
        times=np.zeros(results, np.int64),
        items=np.zeros(results, np.int32),
        violations=np.zeros(items, np.int32),
        filled=np.zeros(2, np.int64),
    )
