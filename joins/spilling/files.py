"""Buckets on disk: files of Arrow blocks with checksums, and the position that a saved state names.

A block is a header (magic, length, BLAKE2b of the content) and an Arrow stream with the columns key, hash, arrived,
time, flushed and payload. Blocks are appended only. A bucket some of whose events went is written to a new file; the
old one stays until ``release``, as the last saved state may still name it. So a position (names and lengths) stays
readable, whatever was appended behind it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class FilePosition:
    """What a saved state names of a bucket's file.

    Attributes:
        name: Of the file in its folder.
        length: Bytes that belong to the state.
        events: Events in them.
    """

    name: str
    length: int
    events: int


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


class BucketFiles:
    """The files of a join's buckets, in a folder of their own.

    Args:
        folder: Belongs to the join alone; made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._current: dict[_Bucket, FilePosition] = {}
        self._unsynced: set[str] = set()
        self._saved: frozenset[str] = frozenset()  # named by a saved state that may still be needed
        self._last_saved: frozenset[str] = frozenset()
        self._generation = 0
        self.written_bytes = 0
        self.read_bytes = 0

    def events(self, bucket: _Bucket) -> int:
        """The number of events of an input's bucket (input, bucket) on disk."""
        position = self._current.get(bucket)
        return position.events if position else 0

    def append(self, bucket: _Bucket, rows: BucketRows) -> None:
        """Append a block of events to a bucket."""
        position = self._current.get(bucket) or self._fresh(bucket)
        block = _block(rows)
        with (self._folder / position.name).open("ab") as file:
            file.write(block)
        self.written_bytes += len(block)
        self._unsynced.add(position.name)
        self._current[bucket] = FilePosition(position.name, position.length + len(block), position.events + len(rows))

    def read(self, bucket: _Bucket) -> BucketRows:
        """All events of a bucket, in the order of their flushes.

        Raises:
            JoinStateError: The file is damaged or shorter than it was.
        """
        position = self._current.get(bucket)
        if position is None:
            return BucketRows.of(np.zeros(0, ON_DISK))
        with (self._folder / position.name).open("rb") as file:
            content = file.read(position.length)
        self.read_bytes += len(content)
        return _rows(content, position)

    def replace(self, bucket: _Bucket, rows: BucketRows) -> None:
        """Let a bucket have other events; its old file stays until ``release``."""
        old = self._current.pop(bucket, None)
        if len(rows):
            self.append(bucket, rows)
        if old is not None and old.name not in self._saved:
            self._remove(old.name)

    def save(self) -> list[tuple[int, int, str, int, int]]:
        """Make everything durable, and name it: input, bucket, file, bytes, events.

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
        self._last_saved = frozenset(position.name for position in self._current.values())
        self._saved |= self._last_saved
        return [(*bucket, *_parts(position)) for bucket, position in sorted(self._current.items())]

    def release(self) -> None:
        """The last saved state is safe: remove the files that only earlier ones name."""
        current = {position.name for position in self._current.values()}
        for name in self._saved - self._last_saved - current:
            self._remove(name)
        self._saved = self._last_saved

    def restore(self, saved: Iterable[tuple[int, int, str, int, int]]) -> None:
        """Go back to a saved position: cut what was appended behind it, remove the files that it does not name.

        Raises:
            JoinStateError: A file is missing, too short or damaged.
        """
        self._current = {
            (number, bucket): FilePosition(name, length, events) for number, bucket, name, length, events in saved
        }
        named = {position.name for position in self._current.values()}
        self._saved = self._last_saved = frozenset(named)
        self._unsynced = set()
        for bucket, position in self._current.items():
            path = self._folder / position.name
            if not path.is_file() or path.stat().st_size < position.length:
                raise JoinStateError(f"the bucket file {position.name} is missing, or shorter than {position.length}")
            os.truncate(path, position.length)
            self.read(bucket)
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

    def _fresh(self, bucket: _Bucket) -> FilePosition:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._generation += 1
        name = f"{bucket[0]}-{bucket[1]}-{self._generation}{_SUFFIX}"
        (self._folder / name).write_bytes(b"")
        return FilePosition(name, 0, 0)

    def _remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
        self._unsynced.discard(name)


def _parts(position: FilePosition) -> tuple[str, int, int]:
    return position.name, position.length, position.events


def _block(events: BucketRows) -> bytes:
    columns = {name: pa.array(np.ascontiguousarray(events.rows[name])) for name in ON_DISK.names or ()}
    batch = pa.RecordBatch.from_pydict({**columns, "payload": events.payloads})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return _HEADER.pack(_MAGIC, len(content), blake2b(content, digest_size=16).digest()) + content


def _rows(content: bytes, position: FilePosition) -> BucketRows:
    parts, place = [BucketRows.of(np.zeros(0, ON_DISK))], 0
    while place < len(content):
        if place + _HEADER.size > len(content):
            raise JoinStateError(f"the bucket file {position.name} is cut inside a header at byte {place}")
        magic, length, digest = _HEADER.unpack_from(content, place)
        place += _HEADER.size
        block = content[place : place + length]
        if magic != _MAGIC or len(block) != length or blake2b(block, digest_size=16).digest() != digest:
            raise JoinStateError(f"the bucket file {position.name} has a damaged block before byte {place}")
        place += length
        parts.append(_block_rows(block))
    rows = np.concatenate([part.rows for part in parts])
    if len(rows) != position.events:
        raise JoinStateError(
            f"the bucket file {position.name} has {len(rows)} events in {len(content)} bytes, not {position.events}"
        )
    return BucketRows(rows, pa.concat_arrays([part.payloads for part in parts]))


def _block_rows(block: bytes) -> BucketRows:
    with pa.ipc.open_stream(block) as reader:
        table = reader.read_all().combine_chunks()
    rows = np.zeros(table.num_rows, ON_DISK)
    for name in ON_DISK.names or ():
        rows[name] = table.column(name).to_numpy()
    payloads = table.column("payload").chunks
    return BucketRows.of(rows, payloads[0] if payloads else None)
