"""The file format of backups. A file is read exactly as it was written, or refused as damaged.

After the first line, ``forestall-backup 1``, the file is one gzip stream of frames. A frame consists of a letter for
its kind, the length of its body as four bytes (big-endian), and the body. The kinds are ``H`` (a JSON object about the
backup), ``K`` (a part of a key), ``F`` (some bytes of a file) and ``E`` (the end, with the SHA-256 of the stream before
it). A body is a sequence of values, each preceded by its length in four bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from service.errors import BackupDamaged, BackupRefused, FileUnreadable

VERSION = 1

_FIRST_LINE = b"forestall-backup "
_LEVEL = 1  # low, because some of the data is already compressed
_FRAME, _LENGTH = struct.Struct(">cI"), struct.Struct(">I")
_LONGEST = 1024**3


class BackupWriter:
    """Writes the frames of a backup, and finally the end frame."""

    def __init__(self, out: gzip.GzipFile) -> None:
        self._out = out
        self._digest = hashlib.sha256()

    def write(self, kind: bytes, values: Sequence[bytes]) -> None:
        """Write a frame. Raises ``BackupRefused`` if it is longer than the reader accepts."""
        length = sum(_LENGTH.size + len(value) for value in values)
        if length > _LONGEST:
            raise BackupRefused(
                f"a value of {values[0]!r} has {length:,} bytes; a backup takes values of at most {_LONGEST:,} bytes"
            )
        body = b"".join(part for value in values for part in (_LENGTH.pack(len(value)), value))
        self._write_frame(kind, body)

    def finish(self) -> None:
        """Write the end frame. A file without it counts as damaged."""
        self._write_frame(b"E", self._digest.digest())

    def _write_frame(self, kind: bytes, body: bytes) -> None:
        frame = _FRAME.pack(kind, len(body)) + body
        self._digest.update(frame)
        self._out.write(frame)


@contextmanager
def writing(path: Path) -> Iterator[BackupWriter]:
    """Write a new backup file, which gets its name only if the block ends without an error."""
    draft = path.with_name(path.name + ".part")
    try:
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)  # the file contains secrets of webhooks
        with draft.open("wb") as file:
            file.write(_FIRST_LINE + str(VERSION).encode() + b"\n")
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=_LEVEL) as out:
                writer = BackupWriter(out)
                yield writer
                writer.finish()
        draft.replace(path)
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be written: {error.strerror or error}", file=str(path)) from error
    finally:
        draft.unlink(missing_ok=True)


def frames(path: Path) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield all frames except the end, as kind and values.

    The checksum is verified at the end. So if ``BackupDamaged`` is raised, the frames yielded before may be damaged.
    """
    try:
        with path.open("rb") as file:
            _check_version(path, file.readline(100))
            with gzip.GzipFile(fileobj=file, mode="rb") as stream:
                yield from _frames(path, stream)
    except (gzip.BadGzipFile, EOFError, zlib.error, struct.error) as error:
        raise _damaged(path, f"it does not continue as a backup does ({error})") from error
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {error.strerror or error}", file=str(path)) from error


def _frames(path: Path, stream: gzip.GzipFile) -> Iterator[tuple[bytes, list[bytes]]]:
    digest = hashlib.sha256()
    while True:
        head = stream.read(_FRAME.size)
        kind, length = _FRAME.unpack(head)
        if length > _LONGEST:
            raise _damaged(path, f"a frame says that it has {length:,} bytes")
        body = stream.read(length)
        if kind == b"E":
            if body != digest.digest() or stream.read(1):
                raise _damaged(path, "the checksum at its end is that of another file")
            return
        digest.update(head + body)
        yield kind, _unpacked(body)


def _unpacked(body: bytes) -> list[bytes]:
    values, place = [], 0
    while place < len(body):
        (length,) = _LENGTH.unpack_from(body, place)
        place += _LENGTH.size + length
        values.append(body[place - length : place])
    return values


def _check_version(path: Path, line: bytes) -> None:
    if not line.startswith(_FIRST_LINE) or not line.endswith(b"\n"):
        raise BackupDamaged(f"{path} is not a backup: it does not begin with {_FIRST_LINE.decode().strip()}")
    if (version := line.removeprefix(_FIRST_LINE).strip()) != str(VERSION).encode():
        raise BackupDamaged(
            f"{path} is a backup of version {version.decode(errors='replace')}; this release reads {VERSION}. Restore "
            "it with the release that wrote it"
        )


def _damaged(path: Path, reason: str) -> BackupDamaged:
    return BackupDamaged(f"{path} is damaged: {reason}; nothing was restored, take another copy of it")
