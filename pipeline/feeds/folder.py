"""A folder of event files as a streaming source of Spark: the format ``forestall_folder``.

Each scan of the folder accepts the new files in the order of (modification time, name). A file that appears later is
accepted later, even if its modification time is earlier. The feed's journal records the accepted files in order, and
offsets count its blocks. So a range between two offsets always yields the same rows, even if the files are gone by
then.

The feed reads only files directly in the folder, and skips names that begin with ``.`` or ``_`` or end in ``.tmp``. A
writer uses such a name and renames the finished file. A file that changes while it is read is left for the next scan. A
name is read once. If its file changes afterwards, the feed emits one row with a fault.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pipeline.errors import FeedFolderMissing, SourceOptionError
from pipeline.feeds.journal import BlockPart, FileVersion, Journal, read_part
from pipeline.feeds.rows import FEED_DDL, FeedRow
from streams import EventFileError
from streams.readers import FILE_KINDS, RowLayout, kind_of, raw_rows

_BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOptions:
    """Options of a folder feed.

    Attributes:
        state: The feed's own folder for journal and spool. On a cluster, all machines share it.
        kind: Format of all files, one of ``FILE_KINDS``. If None, the ending of each name decides.
        max_rows: The most rows of a micro-batch. A micro-batch has at least one block, even if the block is larger.
        max_bytes: The most bytes of a micro-batch. A micro-batch has at least one block, even if the block is larger.
    """

    folder: Path
    state: Path
    kind: str | None = None
    layout: RowLayout = field(default_factory=RowLayout)
    max_rows: int = 10_000
    max_bytes: int = 16_000_000

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in FILE_KINDS:
            kinds = ", ".join(FILE_KINDS)
            raise SourceOptionError(f"format {self.kind!r} is not known; write one of {kinds}", option="format")
        for name in ("max_rows", "max_bytes"):
            if getattr(self, name) < 1:
                raise SourceOptionError(f"option {name} is {getattr(self, name)}: at least 1", option=name)


class FolderSource(DataSource):
    """Spark's data source ``forestall_folder``, for files of a folder. Its options are those of ``FolderOptions``."""

    source_options: ClassVar[FolderOptions]

    @classmethod
    def name(cls) -> str:
        return "forestall_folder"

    def schema(self) -> str:
        return FEED_DDL

    def streamReader(self, schema: StructType) -> FolderReader:
        return FolderReader(self.source_options)


class FolderReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a folder feed: copies new files into the spool as they appear, and divides the spool into micro-batches."""

    def __init__(self, options: FolderOptions) -> None:
        self._options = options
        self._journal: Journal | None = None
        self._allowed: set[FileVersion] | None = None

    def initialOffset(self) -> dict[str, int]:
        return {_BLOCK: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the end of the next micro-batch. New files are accepted until it is full.

        Raise ``FeedFolderMissing`` if the folder cannot be listed, and ``FeedDamaged`` if the journal ends before
        ``start``.
        """
        journal = self._opened()
        is_bounded = isinstance(limit, ReadMaxRows)
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        journal.parts(start[_BLOCK], max(start[_BLOCK], len(journal)))
        for version in self._new_versions(journal):
            if max_rows is not None and journal.rows_from(start[_BLOCK]) >= max_rows:
                break
            self._take(journal, version)
        return {_BLOCK: journal.end_of(start[_BLOCK], max_rows, self._options.max_bytes if is_bounded else None)}

    def prepareForTriggerAvailableNow(self) -> None:
        self._allowed = set(_scanned(self._options.folder))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the parts of the spool between two offsets as partitions, one for each source file, in order."""
        return self._opened().parts(start[_BLOCK], end[_BLOCK])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, in columns of ``FEED_DDL``.

        Raise ``FeedDamaged`` if the spool file is gone or damaged.
        """
        return read_part(cast(BlockPart, partition))

    def commit(self, end: dict[str, int]) -> None:
        """Remove the spool files that hold only blocks before ``end``."""
        self._opened().forget_spools(end[_BLOCK])

    def stop(self) -> None:
        self._journal = None

    def _opened(self) -> Journal:
        if self._journal is None:
            self._journal = Journal(self._options.state)
        return self._journal

    def _new_versions(self, journal: Journal) -> Iterator[FileVersion]:
        for version in _scanned(self._options.folder):
            is_allowed = self._allowed is None or version in self._allowed
            if is_allowed and journal.latest(version.name) != version:
                yield version

    def _take(self, journal: Journal, version: FileVersion) -> None:
        path = self._options.folder / version.name
        if journal.latest(version.name) is not None:
            fault = (
                "the file has changed after it was read, and a name is read once; its present rows were not read: "
                "give new rows a file of a new name"
            )
            journal.take(version, [FeedRow(place=0, body=b"", origin={"file": version.name}, fault=fault)])
            return
        try:
            journal.take(version, _settled(path, version, self._rows(path)))
        except _FileMoves:
            return

    def _rows(self, path: Path) -> Iterator[FeedRow]:
        kind = self._options.kind or kind_of(path)
        if kind is None:
            fault = f"no kind of event file ends like this; known are {', '.join(FILE_KINDS)}; or name the format"
            yield FeedRow(place=0, body=b"", origin={"file": path.name}, fault=fault)
            return
        row = None
        try:
            for row in raw_rows(path, kind, self._options.layout):
                yield FeedRow(place=0, body=row.body, origin={"file": path.name, "row": row.place}, fault=row.fault)
        except EventFileError as error:
            after = f"; rows up to {row.place} were taken" if row is not None else ""
            yield FeedRow(place=0, body=b"", origin={"file": path.name}, fault=f"{error.message}{after}")


class _FileMoves(Exception):
    """A file was changed or removed while the feed read it."""


def _settled(path: Path, version: FileVersion, rows: Iterator[FeedRow]) -> Iterator[FeedRow]:
    yield from rows
    try:
        status = path.stat()
    except OSError as error:
        raise _FileMoves from error
    if (status.st_mtime_ns, status.st_size) != (version.mtime_ns, version.size_bytes):
        raise _FileMoves


def _scanned(folder: Path) -> list[FileVersion]:
    """Return the finished files of a folder, sorted by modification time and then by name."""
    versions = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not _is_finished(entry.name):
                    continue
                try:
                    facts = entry.stat()
                    is_file = entry.is_file()
                except FileNotFoundError:
                    continue
                if is_file:
                    versions.append(FileVersion(name=entry.name, mtime_ns=facts.st_mtime_ns, size_bytes=facts.st_size))
    except OSError as error:
        raise FeedFolderMissing(
            f"the folder {folder} cannot be listed: {error.strerror or error}; create it, or name another one",
            folder=str(folder),
        ) from error
    return sorted(versions, key=lambda version: (version.mtime_ns, version.name))


def _is_finished(name: str) -> bool:
    return not name.startswith((".", "_")) and not name.lower().endswith(".tmp")
