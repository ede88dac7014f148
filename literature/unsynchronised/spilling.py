"""Blocks of items in files: Arrow record batches with their lowest and highest key and a checksum.

A segment is a file in the Arrow streaming format; it is removed when all its blocks have been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.errors import JoinStateError
from literature.kernels.unsynchronised.tables import ITEM

_SCHEMA = pa.schema(
    [pa.field(name, pa.int64() if ITEM[name] == np.int64 else pa.int32(), nullable=False) for name in ITEM.names or ()]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block in a segment.

    Attributes:
        path: The segment.
        offset: First byte of it there.
        size: In bytes.
        rows: Items in it.
        lowest: Key.
        highest: Key.
        checksum: CRC-32 of the bytes.
    """

    path: Path
    offset: int
    size: int
    rows: int
    lowest: int
    highest: int
    checksum: int


@dataclass(slots=True)
class Segments:
    """The blocks of one input on disk, as an index in memory.

    Attributes:
        folder: Where the files are; it exists, and nothing else is written to it.
        name: What the names of the files begin with.
        segment_rows: Items after which another file is begun.
        blocks: Those that have not been read.
        rows: Items on disk.
        written: Blocks so far.
        read: Blocks so far.
    """

    folder: Path
    name: str
    segment_rows: int = 4096
    blocks: list[Block] = field(default_factory=list)
    rows: int = 0
    written: int = 0
    read: int = 0
    _segment: int = 0
    _rows_of_segment: int = 0

    def write(self, items: NDArray[np.void]) -> None:
        """Append a block of items, which are sorted by key here."""
        items = items[np.argsort(items["key"], kind="stable")]
        batch = pa.record_batch([pa.array(np.ascontiguousarray(items[name])) for name in _SCHEMA.names], schema=_SCHEMA)
        self.write_bytes(batch.serialize().to_pybytes(), len(items), int(items["key"][0]), int(items["key"][-1]))

    def write_bytes(self, content: bytes, rows: int, lowest: int, highest: int) -> None:
        """Append a block that has its form already."""
        path = self.folder / f"{self.name}-{self._segment}.arrows"
        with path.open("ab") as file:
            if not file.tell():
                file.write(_SCHEMA.serialize().to_pybytes())
            offset = file.tell()
            file.write(content)
        block = Block(
            path=path,
            offset=offset,
            size=len(content),
            rows=rows,
            lowest=lowest,
            highest=highest,
            checksum=crc32(content),
        )
        self.blocks.append(block)
        self.rows += rows
        self.written += 1
        self._rows_of_segment += rows
        if self._rows_of_segment >= self.segment_rows:
            self._segment, self._rows_of_segment = self._segment + 1, 0

    def take(self, is_wanted: Callable[[Block], bool]) -> Iterator[NDArray[np.void]]:
        """Read blocks, lowest keys first, and forget them.

        Raises:
            JoinStateError: A file is missing or damaged.
        """
        for block in sorted(filter(is_wanted, self.blocks), key=lambda one: one.lowest):
            items = items_in(block_bytes(block), block.rows)
            self.blocks.remove(block)
            self.rows -= block.rows
            self.read += 1
            if not any(other.path == block.path for other in self.blocks) and self._is_full(block.path):
                block.path.unlink()
            yield items

    def remove(self) -> None:
        """Remove all files, those of blocks that have not been read included."""
        for path in {block.path for block in self.blocks} | set(self.folder.glob(f"{self.name}-*.arrows")):
            path.unlink(missing_ok=True)
        self.blocks.clear()
        self.rows = 0
        self._rows_of_segment, self._segment = 0, self._segment + 1

    def _is_full(self, path: Path) -> bool:
        return path.name != f"{self.name}-{self._segment}.arrows"


def block_bytes(block: Block) -> bytes:
    """The bytes of a block.

    Raises:
        JoinStateError: The file is missing or damaged.
    """
    try:
        with block.path.open("rb") as file:
            file.seek(block.offset)
            content = file.read(block.size)
    except OSError as error:
        raise JoinStateError(f"a spilled block of a join cannot be read: {error}") from error
    if len(content) != block.size or crc32(content) != block.checksum:
        raise JoinStateError(f"a spilled block of a join is damaged: {block.path.name} at {block.offset}")
    return content


def items_in(content: bytes, rows: int) -> NDArray[np.void]:
    """The items of a block."""
    batch = pa.ipc.read_record_batch(pa.py_buffer(content), _SCHEMA)
    items = np.zeros(rows, ITEM)
    for name in _SCHEMA.names:
        items[name] = batch.column(name).to_numpy()
    return items
