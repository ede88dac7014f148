"""Event files as bounded byte streams.

Whatever goes wrong with the bytes (no such file, damaged gzip, too large) is raised as ``EventFileError`` from the read
that meets it, so that a parser above needs to know of none of it.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from streams.errors import EventFileError
from streams.readers.options import Progress, ReaderOptions

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK_BYTES = 256 * 1024


@contextmanager
def open_events(path: Path, options: ReaderOptions, progress: Progress | None = None) -> Iterator[io.BufferedReader]:
    """The decompressed bytes of a file, at most ``max_bytes`` of them; those of the span, where the options have one.

    Raises:
        EventFileError: The file cannot be opened; reading raises it for damage and excess.
    """
    try:
        raw = path.open("rb", buffering=0)
    except OSError as error:
        raise EventFileError(f"{path}: cannot be opened: {error.strerror or error}", file=str(path)) from error
    with raw:
        counted = io.BufferedReader(_ProgressReader(raw, options.span, progress), _CHUNK_BYTES)
        source = gzip.GzipFile(fileobj=counted, mode="rb") if path.suffix.lower() == ".gz" else counted
        yield io.BufferedReader(_BoundedReader(source, path, options.max_bytes), _CHUNK_BYTES)


class _ProgressReader(io.RawIOBase):
    """Passes a file, or a span of it, through and reports how much of it was read."""

    def __init__(self, raw: io.FileIO, span: tuple[int, int] | None, progress: Progress | None) -> None:
        begin, end = span or (0, os.fstat(raw.fileno()).st_size)
        raw.seek(begin)
        self._raw = raw
        self._most = sys.maxsize if span is None else end - begin
        self._progress = progress
        self._size = end - begin
        self._read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        count = self._raw.readinto(view[: self._most - self._read_bytes]) or 0
        self._read_bytes += count
        if self._progress is not None:
            self._progress(min(1.0, self._read_bytes / self._size) if self._size and count else 1.0)
        return count


class _BoundedReader(io.RawIOBase):
    """Refuses to read on beyond a number of bytes, and names the file in every error."""

    def __init__(self, source: io.BufferedIOBase, path: Path, max_bytes: int) -> None:
        self._source = source
        self._path = path
        self._max_bytes = max_bytes
        self._read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            block = self._source.read(len(view))
        except (OSError, EOFError, zlib.error) as error:
            raise EventFileError(f"{self._path}: cannot be read: {error}", file=str(self._path)) from error
        self._read_bytes += len(block)
        if self._read_bytes > self._max_bytes:
            raise EventFileError(
                f"{self._path}: has more than {self._max_bytes} bytes after decompression; "
                "split it, or allow more bytes",
                file=str(self._path),
                max_bytes=self._max_bytes,
            )
        view[: len(block)] = block
        return len(block)
