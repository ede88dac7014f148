"""Event files as bounded byte streams.

All failures of the bytes (missing file, damaged gzip, too large) are raised as ``EventFileError`` by the read in which
they occur, so that parsers need not handle them.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from streams.errors import DeclarationError, EventFileError
from streams.readers.options import Progress, ReaderOptions
from streams.showing import shown

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK_BYTES = 256 * 1024


@contextmanager
def open_events(path: Path, options: ReaderOptions, progress: Progress | None = None) -> Iterator[io.BufferedReader]:
    """Open a file, or the span of it that the options name, as decompressed bytes. At most ``max_bytes`` are read.

    Text in another encoding, named or marked, is converted to UTF-8. Raises ``EventFileError`` if the file cannot be
    opened. Reading raises it if the file is damaged or too large.
    """
    try:
        raw = path.open("rb", buffering=0)
    except OSError as error:
        raise EventFileError(f"{path}: cannot be opened: {error.strerror or error}", file=str(path)) from error
    with raw:
        counted = io.BufferedReader(_ProgressReader(raw, options.span, progress), _CHUNK_BYTES)
        source = gzip.GzipFile(fileobj=counted, mode="rb") if path.suffix.lower() == ".gz" else counted
        content: io.BufferedReader = io.BufferedReader(_BoundedReader(source, path, options.max_bytes), _CHUNK_BYTES)
        encoding = options.encoding or _marked_encoding(content, options)
        if encoding is None:
            yield content
        else:
            yield io.BufferedReader(_Transcoded(content, path, encoding), _CHUNK_BYTES)


def encoding_of(name: str) -> str:
    """Return Python's name of an encoding. Raises ``DeclarationError`` if the encoding is unknown."""
    try:
        return codecs.lookup(name).name
    except LookupError as error:
        raise DeclarationError(
            f"unknown encoding {shown(name)}; write a name such as utf-8, utf-16, latin-1 or windows-1252",
            field="encoding",
        ) from error


def _marked_encoding(content: io.BufferedReader, options: ReaderOptions) -> str | None:
    first = b"" if options.span is not None else content.peek(2)[:2]
    return "utf-16" if first in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else None


class _ProgressReader(io.RawIOBase):
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


class _Transcoded(io.RawIOBase):
    def __init__(self, source: io.BufferedReader, path: Path, encoding: str) -> None:
        self._source = source
        self._path = path
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding_of(encoding))()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self._rest:
            block = self._source.read(_CHUNK_BYTES)
            try:
                self._rest = self._decoder.decode(block, final=not block).encode()
            except UnicodeError as error:
                raise EventFileError(
                    f"{self._path}: is not {self._encoding}: {error}; name its encoding with --encoding",
                    file=str(self._path),
                ) from error
            if not block:
                break
        count = min(len(view), len(self._rest))
        view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class _BoundedReader(io.RawIOBase):
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
