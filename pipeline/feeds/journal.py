"""The journal of a folder feed: the accepted files in order, cut into blocks of rows.

A file is read once, when it is accepted. First its rows are unpacked into a spool file of Arrow batches, the blocks.
Then the file is recorded. Records never change, so a range of blocks always yields the same rows, whatever happens to
the file itself. Blocks are numbered over all files, from 0.

On disk, the feed's own folder has ``journal.jsonl``, with a line per file, and ``spool/<number of the line>.arrow``.
Both are synced (fsync) before any caller sees them. A last line that a crash cut off is dropped.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pipeline.errors import FeedDamaged
from pipeline.feeds.rows import FEED_SCHEMA, FeedRow, to_batch
from streams import replacing, sync_folder

_BLOCK_ROWS = 1_000
_BLOCK_BYTES = 1_000_000
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion:
    """A file of the folder, with the modification time and size that a scan found."""

    name: str
    mtime_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The size of a block of the spool. A block is the smallest unit of a micro-batch."""

    rows: int
    size_bytes: int


@dataclass(frozen=True)
class BlockPart(InputPartition):
    """The input of one Spark task: consecutive blocks of one spool file, from ``first`` up to ``until`` (exclusive).

    ``place`` is the index of the part's first row within the micro-batch.
    """

    spool: str
    first: int
    until: int
    place: int


class Journal:
    """The record of the files that a folder feed has accepted, and of the spool's blocks with their rows.

    The record is in the feed's own folder, which is created if missing. Raises ``FeedDamaged`` if the record is
    unreadable.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "journal.jsonl"
        self._spools = folder / "spool"
        self._latest: dict[str, FileVersion] = {}
        self._starts: list[int] = []
        self._blocks: list[Block] = []
        self._spools.mkdir(parents=True, exist_ok=True)
        self._load()

    def __len__(self) -> int:
        """Return the number of blocks of all accepted files, removed spool files included."""
        return len(self._blocks)

    def latest(self, name: str) -> FileVersion | None:
        """Return the file that was last accepted under a name, or None if there was none."""
        return self._latest.get(name)

    def take(self, version: FileVersion, rows: Iterable[FeedRow]) -> None:
        """Write the rows of a file to the spool, then record the file. If ``rows`` raises, the file is not recorded."""
        number = len(self._starts)
        blocks = self._unpack(self._spool(number), rows)
        record = {"format": _FORMAT, **asdict(version), "blocks": [[block.rows, block.size_bytes] for block in blocks]}
        with self._path.open("ab") as file:
            file.write(orjson.dumps(record) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._path.parent)
        self._remember(version, blocks)

    def end_of(self, start: int, max_rows: int | None, max_bytes: int | None) -> int:
        """Return the end of a micro-batch that begins at block ``start``.

        The micro-batch has at most ``max_rows`` and ``max_bytes``, unless its first block alone has more.
        """
        end, rows, size = start, 0, 0
        while end < len(self._blocks):
            block = self._blocks[end]
            rows, size = rows + block.rows, size + block.size_bytes
            is_over = (max_rows is not None and rows > max_rows) or (max_bytes is not None and size > max_bytes)
            if is_over and end > start:
                break
            end += 1
        return end

    def rows_from(self, start: int) -> int:
        """Return the number of rows in block ``start`` and all later ones."""
        return sum(block.rows for block in self._blocks[start:])

    def parts(self, start: int, end: int) -> list[BlockPart]:
        """Return where the blocks from ``start`` up to ``end`` (exclusive) are in the spool, one part for each file.

        Raise ``FeedDamaged`` if the journal lacks some of these blocks.
        """
        if end > len(self._blocks):
            raise FeedDamaged(
                f"the checkpoint is at block {end} and {self._path} knows of {len(self._blocks)}: they do not belong "
                "together; put both back, or start a feed of another name, which reads the folder from its beginning"
            )
        block_parts = []
        place = 0
        while start < end:
            number = bisect_right(self._starts, start) - 1
            first = self._starts[number]
            until = min(end, self._start_of(number + 1))
            block_parts.append(BlockPart(str(self._spool(number)), start - first, until - first, place))
            place += sum(block.rows for block in self._blocks[start:until])
            start = until
        return block_parts

    def forget_spools(self, before: int) -> None:
        """Remove the spool files that hold only blocks before ``before``. The journal keeps its lines."""
        for path in self._spools.iterdir():
            number = path.name.removesuffix(".arrow")
            if number.isdigit() and int(number) < len(self._starts) and self._start_of(int(number) + 1) <= before:
                path.unlink(missing_ok=True)

    def _load(self) -> None:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return
        complete = text[: text.rfind(b"\n") + 1]
        if len(complete) < len(text):
            with self._path.open("r+b") as file:
                file.truncate(len(complete))
        for number, line in enumerate(complete.splitlines(), start=1):
            try:
                record = orjson.loads(line)
                if record.pop("format") != _FORMAT:
                    raise ValueError("its format is unknown")
                blocks = [Block(rows=rows, size_bytes=size) for rows, size in record.pop("blocks")]
                self._remember(FileVersion(**record), blocks)
            except (ValueError, KeyError, TypeError) as error:
                raise FeedDamaged(f"{self._path}: line {number} cannot be read: {error}") from error

    def _remember(self, version: FileVersion, blocks: list[Block]) -> None:
        self._latest[version.name] = version
        self._starts.append(len(self._blocks))
        self._blocks += blocks

    def _spool(self, number: int) -> Path:
        return self._spools / f"{number:08}.arrow"

    def _start_of(self, number: int) -> int:
        return self._starts[number] if number < len(self._starts) else len(self._blocks)

    def _unpack(self, spool: Path, rows: Iterable[FeedRow]) -> list[Block]:
        for unfinished in self._spools.glob(f"{spool.stem}.*.tmp"):  # left by a process that died
            unfinished.unlink(missing_ok=True)
        blocks: list[Block] = []
        with replacing(spool) as file, pa.ipc.new_file(file, FEED_SCHEMA) as writer:
            for batch in _cut(rows):
                writer.write_batch(batch)
                blocks.append(Block(rows=batch.num_rows, size_bytes=batch.nbytes))
        return blocks


def read_part(part: BlockPart) -> Iterator[pa.RecordBatch]:
    """Yield the blocks of a part, in columns of ``FEED_DDL``.

    Raise ``FeedDamaged`` if the spool file is gone or damaged.
    """
    try:
        with pa.memory_map(part.spool) as file, pa.ipc.open_file(file) as reader:
            place = part.place
            for number in range(part.first, part.until):
                batch = reader.get_batch(number)
                yield batch.set_column(0, FEED_SCHEMA.field(0), pa.array(range(place, place + batch.num_rows)))
                place += batch.num_rows
    except (OSError, pa.ArrowException) as error:
        raise FeedDamaged(
            f"the spool file {part.spool} cannot be read: {error}; put it back, or start a feed of another name, "
            f"which reads the folder from its beginning"
        ) from error


def _cut(rows: Iterable[FeedRow]) -> Iterator[pa.RecordBatch]:
    block: list[FeedRow] = []
    size = 0
    for row in rows:
        if block and (len(block) == _BLOCK_ROWS or size + len(row.body) > _BLOCK_BYTES):
            yield to_batch(block)
            block, size = [], 0
        block.append(row)
        size += len(row.body)
    if block:
        yield to_batch(block)
