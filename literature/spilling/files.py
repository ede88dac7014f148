"""Files of buckets: the blocks of each input's buckets, and their names in saved states.

A block is a file with the columns key, hash, arrived, time, flushed and payload. The *fences* of each block are in
memory: least and greatest key, last arrival, first flush (section 7.3 of the specification of punctuation-aware joins),
so that blocks that cannot matter are not read. Blocks are written once; a block that loses events is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.errors import JoinStateError
from literature.block_files import BlockFile, BlockFiles, content_of, rows_in

ON_DISK = np.dtype(
    [("key", np.int64), ("hash", np.uint64), ("arrived", np.int64), ("time", np.int64), ("flushed", np.int64)]
)
_Bucket = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Block:
    """The file of a block, and its fences.

    Attributes:
        file: The file.
        events: Number of events.
        low: Least key.
        high: Greatest key.
        arrived: Sequence number of the event that arrived last.
        flushed: Sequence number at which the first of its events left memory.
        cleaned: Number of changes of the other input's closed keys that are known not to concern it; -1: none.
    """

    file: BlockFile
    events: int
    low: int
    high: int
    arrived: int
    flushed: int
    cleaned: int = -1

    @classmethod
    def of(cls, rows: NDArray[np.void], file: BlockFile) -> Block:
        """The block of some events, at least one."""
        return cls(
            file=file,
            events=len(rows),
            low=int(rows["key"].min()),
            high=int(rows["key"].max()),
            arrived=int(rows["arrived"].max()),
            flushed=int(rows["flushed"].min()),
        )


@dataclass(slots=True)
class DiskTraffic:
    """Counts of writes to disk and reads from it, in this process.

    Attributes:
        written_events: Events written, including those that a replaced block kept.
        written_blocks: Their blocks.
        written_bytes: Their bytes.
        read_events: Events read.
        read_blocks: Their blocks.
        read_bytes: Their bytes.
        skipped_events: Events of blocks that a disk join did not read because of their fences.
        read_back: Events moved back into memory because a punctuation announced their keys.
        hits: Events moved back that joined an event while hints were active.
        stalls: Pairs whose later event arrived while hints were active, and that had to wait for a disk join.
    """

    written_events: int = 0
    written_blocks: int = 0
    written_bytes: int = 0
    read_events: int = 0
    read_blocks: int = 0
    read_bytes: int = 0
    skipped_events: int = 0
    read_back: int = 0
    hits: int = 0
    stalls: int = 0


@dataclass(frozen=True, slots=True)
class BucketRows:
    """Events of a bucket.

    Attributes:
        rows: ``ON_DISK`` rows.
        payloads: Payload of each event; empty where the join has no payloads.
    """

    rows: NDArray[np.void]
    payloads: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, flags: NDArray[np.bool_]) -> BucketRows:
        """The events with a flag."""
        return BucketRows(self.rows[flags], self.payloads.filter(pa.array(flags)))

    @classmethod
    def of(cls, rows: NDArray[np.void], payloads: pa.BinaryArray | None = None) -> BucketRows:
        """Events with the given payloads, or with empty ones."""
        return cls(rows, pa.array([b""] * len(rows), pa.binary()) if payloads is None else payloads)

    @classmethod
    def together(cls, parts: Sequence[BucketRows]) -> BucketRows:
        """The events of several parts, in order."""
        if not parts:
            return cls.of(np.zeros(0, ON_DISK))
        rows = np.concatenate([part.rows for part in parts])
        return cls(rows, pa.concat_arrays([part.payloads for part in parts]))


class BucketFiles:
    """The blocks of a join's buckets, in a folder of their own.

    Args:
        folder: Folder of this join alone; created if it does not exist.

    Attributes:
        traffic: Counts of writes and reads.
    """

    def __init__(self, folder: Path) -> None:
        self._files = BlockFiles(folder)
        self._blocks: dict[_Bucket, list[Block]] = {}
        self.traffic = DiskTraffic()

    def events(self, bucket: _Bucket) -> int:
        """The number of events of an input's bucket (input, bucket) on disk."""
        return sum(block.events for block in self._blocks.get(bucket, ()))

    def blocks(self, bucket: _Bucket) -> list[Block]:
        """The blocks of an input's bucket, oldest first."""
        return list(self._blocks.get(bucket, ()))

    def append(self, bucket: _Bucket, rows: BucketRows) -> Block:
        """Add a block of events, at least one, to a bucket."""
        file = self._files.write(_content(rows))
        self.traffic.written_bytes += file.size
        self.traffic.written_events += len(rows)
        self.traffic.written_blocks += 1
        block = Block.of(rows.rows, file)
        self._blocks.setdefault(bucket, []).append(block)
        return block

    def read(self, bucket: _Bucket) -> BucketRows:
        """All events of a bucket, in the order of their flushes.

        Raises:
            JoinStateError: A file is missing or damaged.
        """
        return BucketRows.together(self.read_blocks(self.blocks(bucket)))

    def read_blocks(self, blocks: Iterable[Block]) -> list[BucketRows]:
        """The events of some blocks.

        Raises:
            JoinStateError: A file is missing or damaged.
        """
        parts = []
        for block in blocks:
            parts.append(_events_in(self._files, block.file))
            self.traffic.read_bytes += block.file.size
            self.traffic.read_events += block.events
            self.traffic.read_blocks += 1
        return parts

    def give_up(self, bucket: _Bucket, replacements: Sequence[tuple[Block, BucketRows]]) -> None:
        """Replace blocks of a bucket by others with only some of their events."""
        for block, remainder in replacements:
            self._blocks[bucket].remove(block)
            if len(remainder):
                self.append(bucket, remainder).cleaned = block.cleaned
            self._files.drop(block.file)
        if not self._blocks[bucket]:
            del self._blocks[bucket]

    def save(self) -> list[tuple[int, int, list[tuple[str, int, int]]]]:
        """Make all blocks durable; return their names: input, bucket, and for each block its file, bytes and events.

        Files that this state or the previous one names stay until ``release``.
        """
        self._files.save()
        return [
            (*bucket, [(*block.file, block.events) for block in blocks])
            for bucket, blocks in sorted(self._blocks.items())
        ]

    def release(self) -> None:
        """Remove files named only by states before the last saved state, which is safe."""
        self._files.release()

    def restore(self, saved: Iterable[Sequence[Any]]) -> None:
        """Use the blocks that a saved state names, reading their fences; other files are removed.

        Raises:
            JoinStateError: A file is missing or damaged.
        """
        buckets = [
            (number, bucket, [(BlockFile(*saved_block[:2]), saved_block[2]) for saved_block in blocks])
            for number, bucket, blocks in saved
        ]
        self._files.restore(file for _, _, blocks in buckets for file, _ in blocks)
        self._blocks = {
            (number, bucket): [self._restored(file, events) for file, events in blocks]
            for number, bucket, blocks in buckets
        }

    def clear(self) -> None:
        """Remove all files."""
        self._files.clear()
        self._blocks.clear()

    def _restored(self, file: BlockFile, events: int) -> Block:
        bucket_rows = _events_in(self._files, file)
        if len(bucket_rows) != events:
            raise JoinStateError(f"the file {file.name} has {len(bucket_rows)} events, not {events}")
        return Block.of(bucket_rows.rows, file)


def _content(events: BucketRows) -> bytes:
    columns = {name: pa.array(np.ascontiguousarray(events.rows[name])) for name in ON_DISK.names or ()}
    return content_of(pa.RecordBatch.from_pydict({**columns, "payload": events.payloads}))


def _events_in(files: BlockFiles, file: BlockFile) -> BucketRows:
    batch = rows_in(files.read(file))
    rows = np.zeros(batch.num_rows, ON_DISK)
    for name in ON_DISK.names or ():
        rows[name] = batch.column(name).to_numpy()
    return BucketRows(rows, batch.column("payload"))
