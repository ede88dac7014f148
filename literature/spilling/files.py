"""Buckets on disk: files of Arrow blocks with checksums, and the position that a saved state names.

A block is a header (magic, length, BLAKE2b of the content) and an Arrow stream with the columns key, hash, arrived,
time, flushed and payload. Of each block its *fences* are in memory: least and greatest key, last arrival, first flush
(section 7.3 of the specification of punctuation-aware joins), so that a block that cannot matter is not read. Blocks
are appended only. A block that is given up stays in its file; once these are more than half of it, the others are
written to a new file. An old file stays until ``release``, as the last saved state may still name it. So a position
(names, lengths, and blocks that were given up) stays readable, whatever was appended behind it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.errors import JoinStateError

ON_DISK = np.dtype(
    [("key", np.int64), ("hash", np.uint64), ("arrived", np.int64), ("time", np.int64), ("flushed", np.int64)]
)
_MAGIC = b"FJB1"
_HEADER = struct.Struct("<4sQ16s")
_SUFFIX = ".blocks"
_Bucket = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Block:
    """Where a block is, and its fences.

    Attributes:
        offset: First byte in its file.
        length: In bytes, the header included.
        events: Their number.
        low: Least key.
        high: Greatest key.
        arrived: Sequence number of the event that arrived last.
        flushed: At which sequence number the first of its events left memory.
        cleaned: How many changes of the other input's closed keys are known not to concern it; -1: none.
    """

    offset: int
    length: int
    events: int
    low: int
    high: int
    arrived: int
    flushed: int
    cleaned: int = -1

    @classmethod
    def of(cls, rows: NDArray[np.void], offset: int, length: int) -> Block:
        """A block of some events, at least one."""
        return cls(
            offset=offset,
            length=length,
            events=len(rows),
            low=int(rows["key"].min()),
            high=int(rows["key"].max()),
            arrived=int(rows["arrived"].max()),
            flushed=int(rows["flushed"].min()),
        )


@dataclass(slots=True)
class BucketFile:
    """The file of an input's bucket.

    Attributes:
        name: In its folder.
        length: Bytes that belong to the state.
        blocks: Those with events of the bucket, by offset.
        given_up: Offsets of the others.
    """

    name: str
    length: int = 0
    blocks: list[Block] = field(default_factory=list)
    given_up: list[int] = field(default_factory=list)

    @property
    def events(self) -> int:
        """Events of the bucket."""
        return sum(block.events for block in self.blocks)


@dataclass(slots=True)
class DiskTraffic:
    """What went to disk and came from there, in this process.

    Attributes:
        written_events: Events written, those of blocks that were written anew included.
        written_blocks: Their blocks.
        written_bytes: Their bytes.
        read_events: Events read.
        read_blocks: Their blocks.
        read_bytes: Their bytes.
        skipped_events: Events of blocks that a disk join did not read, by their fences.
        read_back: Events that came back into memory because a punctuation announced their keys.
        hits: Those of them that joined an event while it held.
        stalls: Pairs whose later event came while some held, that had to wait for a disk join.
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
        rows: ``ON_DISK``.
        payloads: What each carries; empty where the join has no payloads.
    """

    rows: NDArray[np.void]
    payloads: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, flags: NDArray[np.bool_]) -> BucketRows:
        """Those with a flag."""
        return BucketRows(self.rows[flags], self.payloads.filter(pa.array(flags)))

    @classmethod
    def of(cls, rows: NDArray[np.void], payloads: pa.BinaryArray | None = None) -> BucketRows:
        """Events, whose payloads are empty unless they are given."""
        return cls(rows, pa.array([b""] * len(rows), pa.binary()) if payloads is None else payloads)

    @classmethod
    def together(cls, parts: Sequence[BucketRows]) -> BucketRows:
        """The events of several."""
        if not parts:
            return cls.of(np.zeros(0, ON_DISK))
        rows = np.concatenate([part.rows for part in parts])
        return cls(rows, pa.concat_arrays([part.payloads for part in parts]))


class BucketFiles:
    """The files of a join's buckets, in a folder of their own.

    Args:
        folder: Belongs to the join alone; made if it does not exist.

    Attributes:
        traffic: What was written and read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._current: dict[_Bucket, BucketFile] = {}
        self._unsynced: set[str] = set()
        self._saved: frozenset[str] = frozenset()  # named by a saved state that may still be needed
        self._last_saved: frozenset[str] = frozenset()
        self._generation = 0
        self.traffic = DiskTraffic()

    def events(self, bucket: _Bucket) -> int:
        """The number of events of an input's bucket (input, bucket) on disk."""
        file = self._current.get(bucket)
        return file.events if file else 0

    def blocks(self, bucket: _Bucket) -> list[Block]:
        """The blocks of an input's bucket, oldest first."""
        file = self._current.get(bucket)
        return list(file.blocks) if file else []

    def append(self, bucket: _Bucket, rows: BucketRows) -> Block:
        """Append a block of events, at least one, to a bucket."""
        file = self._current.get(bucket)
        if file is None:
            file = self._current[bucket] = self._fresh(bucket)
        content = _block(rows)
        with (self._folder / file.name).open("ab") as stream:
            stream.write(content)
        self.traffic.written_bytes += len(content)
        self.traffic.written_events += len(rows)
        self.traffic.written_blocks += 1
        self._unsynced.add(file.name)
        block = Block.of(rows.rows, file.length, len(content))
        file.blocks.append(block)
        file.length += len(content)
        return block

    def read(self, bucket: _Bucket) -> BucketRows:
        """All events of a bucket, in the order of their flushes.

        Raises:
            JoinStateError: The file is damaged or shorter than it was.
        """
        return BucketRows.together(self.read_blocks(bucket, self.blocks(bucket)))

    def read_blocks(self, bucket: _Bucket, blocks: Sequence[Block]) -> list[BucketRows]:
        """The events of some blocks of a bucket.

        Raises:
            JoinStateError: One is damaged, or the file is shorter than it was.
        """
        if not blocks:
            return []
        name = self._current[bucket].name
        parts = []
        with (self._folder / name).open("rb") as stream:
            for block in blocks:
                stream.seek(block.offset)
                ((_, rows),) = _blocks_of(stream.read(block.length), name, block.offset)
                parts.append(rows)
                self.traffic.read_bytes += block.length
                self.traffic.read_events += block.events
                self.traffic.read_blocks += 1
        return parts

    def replace(self, bucket: _Bucket, rows: BucketRows) -> None:
        """Let a bucket have other events; its old file stays until ``release``."""
        old = self._current.pop(bucket, None)
        if len(rows):
            self.append(bucket, rows)
        if old is not None and old.name not in self._saved:
            self._remove(old.name)

    def give_up(self, bucket: _Bucket, given: Sequence[tuple[Block, BucketRows]]) -> None:
        """Let blocks of a bucket have only some of their events, which are written anew."""
        file = self._current[bucket]
        for block, kept in given:
            file.blocks.remove(block)
            file.given_up.append(block.offset)
            if len(kept):
                self.append(bucket, kept).cleaned = block.cleaned
        if 2 * sum(one.length for one in file.blocks) < file.length:
            self._compact(bucket, file)

    def save(self) -> list[tuple[Any, ...]]:
        """Make everything durable, and name it: input, bucket, file, bytes, events, and the blocks that were given up.

        Files that this position or the one before it names stay until ``release``.
        """
        for name in sorted(self._unsynced):
            with (self._folder / name).open("rb") as file:
                os.fsync(file.fileno())
        if self._unsynced:
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        self._unsynced.clear()
        self._last_saved = frozenset(file.name for file in self._current.values())
        self._saved |= self._last_saved
        return [(*bucket, *_position(file)) for bucket, file in sorted(self._current.items())]

    def release(self) -> None:
        """The last saved state is safe: remove the files that only earlier ones name."""
        current = {file.name for file in self._current.values()}
        for name in self._saved - self._last_saved - current:
            self._remove(name)
        self._saved = self._last_saved

    def restore(self, saved: Iterable[Sequence[Any]]) -> None:
        """Go back to a saved position: cut what was appended behind it, remove the files that it does not name.

        Raises:
            JoinStateError: A file is missing, too short or damaged.
        """
        self._current, self._unsynced = {}, set()
        for number, bucket, *position in saved:
            self._current[number, bucket] = self._restored(position)
        named = {file.name for file in self._current.values()}
        self._saved = self._last_saved = frozenset(named)
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if path.name not in named:
                path.unlink()
        generations = [int(name.split("-")[2].removesuffix(_SUFFIX)) for name in named]
        self._generation = max([self._generation, *generations])

    def clear(self) -> None:
        """Remove all files."""
        for path in self._folder.glob(f"*{_SUFFIX}"):
            path.unlink()
        self._current.clear()
        self._unsynced.clear()
        self._saved = self._last_saved = frozenset()

    def _restored(self, position: Sequence[Any]) -> BucketFile:
        """A file as a position names it, cut to that; its fences are found again."""
        name, length, events, given_up = position if len(position) > 3 else (*position, [])
        path = self._folder / name
        if not path.is_file() or path.stat().st_size < length:
            raise JoinStateError(f"the bucket file {name} is missing, or shorter than {length}")
        os.truncate(path, length)
        file = BucketFile(name, length, given_up=list(given_up))
        for offset, rows in (found := _blocks_of(path.read_bytes(), name, 0)):
            behind = [other for other, _ in found if other > offset]
            if offset not in given_up and len(rows):
                file.blocks.append(Block.of(rows.rows, offset, min(behind, default=length) - offset))
        if file.events != events:
            raise JoinStateError(f"the bucket file {name} has {file.events} events in {length} bytes, not {events}")
        return file

    def _compact(self, bucket: _Bucket, file: BucketFile) -> None:
        """Write the blocks that are left to a new file."""
        left = self.read_blocks(bucket, file.blocks)
        parts = [(block.cleaned, rows) for block, rows in zip(file.blocks, left, strict=True)]
        del self._current[bucket]
        for cleaned, rows in parts:
            self.append(bucket, rows).cleaned = cleaned
        if file.name not in self._saved:
            self._remove(file.name)

    def _fresh(self, bucket: _Bucket) -> BucketFile:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._generation += 1
        name = f"{bucket[0]}-{bucket[1]}-{self._generation}{_SUFFIX}"
        (self._folder / name).write_bytes(b"")
        return BucketFile(name)

    def _remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
        self._unsynced.discard(name)


def _position(file: BucketFile) -> tuple[Any, ...]:
    position = (file.name, file.length, file.events)
    return (*position, list(file.given_up)) if file.given_up else position


def _block(events: BucketRows) -> bytes:
    columns = {name: pa.array(np.ascontiguousarray(events.rows[name])) for name in ON_DISK.names or ()}
    batch = pa.RecordBatch.from_pydict({**columns, "payload": events.payloads})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return _HEADER.pack(_MAGIC, len(content), blake2b(content, digest_size=16).digest()) + content


def _blocks_of(content: bytes, name: str, begin: int) -> list[tuple[int, BucketRows]]:
    """The blocks in a part of a file that begins at a byte, with their offsets."""
    blocks, place = [], 0
    while place < len(content) or not content:
        if place + _HEADER.size > len(content):
            raise JoinStateError(f"the bucket file {name} is cut inside a header at byte {begin + place}")
        magic, length, digest = _HEADER.unpack_from(content, place)
        offset, place = begin + place, place + _HEADER.size
        block = content[place : place + length]
        if magic != _MAGIC or len(block) != length or blake2b(block, digest_size=16).digest() != digest:
            raise JoinStateError(f"the bucket file {name} has a damaged block before byte {begin + place}")
        place += length
        blocks.append((offset, _block_rows(block)))
    return blocks


def _block_rows(block: bytes) -> BucketRows:
    with pa.ipc.open_stream(block) as reader:
        table = reader.read_all().combine_chunks()
    rows = np.zeros(table.num_rows, ON_DISK)
    for name in ON_DISK.names or ():
        rows[name] = table.column(name).to_numpy()
    payloads = table.column("payload").chunks
    return BucketRows.of(rows, payloads[0] if payloads else None)
