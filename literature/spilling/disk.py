"""Buckets on disk: events are written in sorted runs, disk joins cover buckets, and hot events are read back.

Source: components 2 and 3 of PJoin (section 3.2 of the specification of punctuation-aware joins), and its section 7.3.
An event is read back right after a disk join of its bucket: by then all its pairs so far have been found, later ones
are found in memory, and no pair is found twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from literature.kernels import buckets as kernel
from literature.kernels.buckets import drop_resident
from literature.punctuations import Pattern
from literature.spilling.closed_keys import ClosedKeys
from literature.spilling.fences import FencedSide, blocks_with_pairs
from literature.spilling.files import Block, BucketFiles, BucketRows
from literature.spilling.hints import Hints, meets
from literature.spilling.leftovers import BucketSide, LeftoverPairs, leftover_pairs
from literature.spilling.memory import BucketMemory
from literature.spilling.monitor import UNLIMITED
from literature.spilling.payloads import PayloadStore

_Read = list[tuple[Block, BucketRows]]


class DiskBuckets:
    """The buckets of two inputs on disk.

    Args:
        folder: Folder of the files, of this join alone.
        buckets: Number of buckets of each input.
        memory: Buckets in memory.
        payloads: Store of the payloads; None: the join has no payloads.

    Attributes:
        files: Files of the buckets.
        covered: Sequence number of the last disk join of each bucket.
        uncovered: Number of events of each bucket that were flushed since.
    """

    def __init__(self, folder: Path, buckets: int, memory: BucketMemory, payloads: PayloadStore | None) -> None:
        self.files = BucketFiles(folder)
        self.covered = np.zeros(buckets, np.int64)
        self.uncovered = np.zeros(buckets, np.int64)
        self._memory = memory
        self._payloads = payloads

    def activated(self, least: int) -> NDArray[np.int64]:
        """The buckets with events on disk, arrivals since their last disk join, and ``least`` uncovered events."""
        on_disk = self._memory.state.on_disk.sum(axis=0)
        is_behind = self.covered < self._memory.counter(kernel.SEQUENCE)
        return np.flatnonzero((on_disk > 0) & is_behind & (self.uncovered >= least))

    def events_in(self, number: int, bucket: int) -> NDArray[np.void]:
        """The events of an input's bucket that are in memory."""
        parts = (kernel.MEMORY, kernel.BUFFER)
        return np.concatenate([self._memory.rows(part, number, bucket, UNLIMITED) for part in parts])

    def flush(self, number: int, bucket: int, rows: NDArray[np.void], most: int) -> None:
        """Write events that leave memory, as blocks of a run that is sorted by key.

        Args:
            number: The input.
            bucket: The bucket.
            rows: Events, at least one, as ``ON_DISK`` rows.
            most: Greatest number of events in a block.
        """
        rows = rows[np.argsort(rows["key"], kind="stable")]
        rows["flushed"] = self._memory.counter(kernel.SEQUENCE)
        for first in range(0, len(rows), most):
            part = rows[first : first + most]
            carried = self._payloads.of(part["arrived"]) if self._payloads is not None else None
            self.files.append((number, bucket), BucketRows.of(part, carried))
        if self._payloads is not None:
            self._payloads.note_flushed(rows["arrived"])
        self._memory.state.on_disk[number, bucket] += len(rows)
        self.uncovered[bucket] += len(rows)

    def cover(self, bucket: int, closed: ClosedKeys, item: int) -> LeftoverPairs | None:
        """Emit the remaining pairs of a bucket, empty its purge buffers, delete events of closed keys from disk.

        Args:
            bucket: The bucket.
            closed: Closed keys of both inputs.
            item: Place of the item that led to the disk join.

        Returns:
            The pairs; None: no event of the bucket is on disk.
        """
        if not self._memory.state.on_disk[:, bucket].any():
            return None
        in_memory = [self.events_in(number, bucket) for number in (0, 1)]
        sides = [FencedSide(self.files.blocks((number, bucket)), in_memory[number]) for number in (0, 1)]
        stored = [self._read(bucket, number, sides, closed) for number in (0, 1)]
        together = [BucketRows.together([rows for _, rows in read]) for read in stored]
        first, second = (BucketSide(together[number].rows, in_memory[number]) for number in (0, 1))
        pairs = leftover_pairs(first, second, int(self.covered[bucket]))
        self._memory.emit(pairs.members, pairs.times, item)
        self.covered[bucket], self.uncovered[bucket] = self._memory.counter(kernel.SEQUENCE), 0
        for number in (0, 1):
            if self._payloads is not None:
                joined = together[number].where(np.isin(together[number].rows["arrived"], pairs.members[:, number]))
                self._payloads.note_read(joined.rows["arrived"], joined.payloads)
            self._memory.clear(kernel.BUFFER, number, bucket, is_gone=True)
            self._delete_closed(number, bucket, stored[number], closed)
        return pairs

    def read_back(self, bucket: int, hints: Hints, least: int, room: int) -> NDArray[np.int64]:
        """Move hot events of a bucket that was just covered back into memory.

        Args:
            bucket: The bucket.
            hints: Hints that decide which events are hot.
            least: Least number of events left in the scope of a hint that counts.
            room: Greatest number of events to move.

        Returns:
            Sequence numbers of the moved events.
        """
        back: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        for number in (0, 1):
            blocks = [
                candidate
                for candidate in self.files.blocks((number, bucket))
                if hints.may_be_hot(number, candidate, least)
            ]
            replacements = []
            for block, events in zip(blocks, self.files.read_blocks(blocks), strict=True):
                is_hot = hints.hot(number, events.rows["key"], least)
                is_hot &= np.cumsum(is_hot) <= room
                if not is_hot.any():
                    continue
                hot = events.where(is_hot)
                room -= len(hot)
                self._memory.put(number, bucket, hot.rows)
                self._memory.state.on_disk[number, bucket] -= len(hot)
                if self._payloads is not None:
                    self._payloads.note_back(hot.rows["arrived"], hot.payloads)
                replacements.append((block, events.where(~is_hot)))
                back.append(hot.rows["arrived"])
            if replacements:
                self.files.give_up((number, bucket), replacements)
        return np.concatenate(back)

    def hot_buckets(self, hints: Hints, least: int) -> dict[int, int]:
        """The buckets that may have hot events on disk, each with the number of events in the blocks concerned."""
        event_counts: dict[int, int] = {}
        for bucket in range(len(self.covered)):
            blocks = [(number, block) for number in (0, 1) for block in self.files.blocks((number, bucket))]
            hot = [block.events for number, block in blocks if hints.may_be_hot(number, block, least)]
            if hot:
                event_counts[bucket] = sum(hot)
        return event_counts

    def may_hold(self, number: int, pattern: Pattern) -> bool:
        """Whether a block of an input may have keys of a pattern."""
        blocks = [block for bucket in range(len(self.covered)) for block in self.files.blocks((number, bucket))]
        return any(meets(pattern, block.low, block.high) for block in blocks)

    def dump(self) -> tuple[list[tuple[Any, ...]], dict[str, bytes]]:
        """The names of the files, which have been made durable, and arrays by name."""
        return self.files.save(), {"covered": self.covered.tobytes(), "uncovered": self.uncovered.tobytes()}

    def load(self, saved: list[list[Any]], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned.

        Raises:
            JoinStateError: A file is missing or damaged.
            KeyError: An array is missing.
        """
        self.covered = np.frombuffer(arrays["covered"], np.int64).copy()
        self.uncovered = np.frombuffer(arrays["uncovered"], np.int64).copy()
        self.files.restore(saved)

    def _read(self, bucket: int, number: int, sides: list[FencedSide], closed: ClosedKeys) -> _Read:
        """Read the blocks of an input that may have new pairs, or events of newly closed keys."""
        blocks, changes = sides[number].blocks, closed.changes[1 - number]
        has_pairs = blocks_with_pairs(sides[number], sides[1 - number], int(self.covered[bucket]))
        wanted_blocks = []
        for block, is_wanted in zip(blocks, has_pairs, strict=True):
            may_be_closed = block.cleaned < changes and closed.meets(1 - number, block.low, block.high)
            if is_wanted or may_be_closed:
                wanted_blocks.append(block)
            else:
                self.files.traffic.skipped_events += block.events
            block.cleaned = changes
        return list(zip(wanted_blocks, self.files.read_blocks(wanted_blocks), strict=True))

    def _delete_closed(self, number: int, bucket: int, read: _Read, closed: ClosedKeys) -> None:
        replacements = []
        for block, events in read:
            is_over = closed.covers(1 - number, events.rows["key"])
            if is_over.any():
                drop_resident(self._memory.state, number, np.ascontiguousarray(events.rows["hash"][is_over]))
                self._memory.state.on_disk[number, bucket] -= np.count_nonzero(is_over)
                replacements.append((block, events.where(~is_over)))
        if replacements:
            self.files.give_up((number, bucket), replacements)
