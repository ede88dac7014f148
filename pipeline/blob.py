"""The envelope of saved state: magic, format version, SHA-256 of the rest, then named sections of bytes.

Layout, little-endian: 4 bytes magic, 2 bytes version, 32 bytes digest of all that follows, 4 bytes length of the
header, the header (a JSON object, ``{"head": …, "sections": [length, …]}``), the sections one after another.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import orjson

from pipeline.errors import SavedStateError

MAGIC = b"FSSH"
FORMAT_VERSION = 1

_PREFIX = struct.Struct("<4sH32s")
_LENGTH = struct.Struct("<I")


def pack(head: dict[str, Any], sections: Sequence[bytes]) -> bytes:
    """Saved form of a JSON object and some bytes; equal arguments give equal bytes."""
    header = orjson.dumps(
        {"head": head, "sections": [len(section) for section in sections]}, option=orjson.OPT_SORT_KEYS
    )
    digest = sha256()
    parts = [_LENGTH.pack(len(header)), header, *sections]
    for part in parts:
        digest.update(part)
    return b"".join([_PREFIX.pack(MAGIC, FORMAT_VERSION, digest.digest()), *parts])


def unpack(body: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """What ``pack`` was given.

    Raises:
        SavedStateError: Not such bytes, of an unknown version, or damaged.
    """
    digest = _digest_of(body)
    rest = memoryview(body)[_PREFIX.size :]
    if sha256(rest).digest() != digest:
        raise SavedStateError(f"saved state of {len(body)} bytes is damaged: its checksum is wrong")
    (header_size,) = _LENGTH.unpack_from(rest)
    header = orjson.loads(rest[_LENGTH.size : _LENGTH.size + header_size])
    sections: list[bytes] = []
    offset = _LENGTH.size + header_size
    for size in header["sections"]:
        sections.append(bytes(rest[offset : offset + size]))
        offset += size
    return header["head"], sections


def _digest_of(body: bytes) -> bytes:
    """The digest that saved state names for itself, unchecked."""
    if len(body) < _PREFIX.size + _LENGTH.size:
        raise SavedStateError(f"{len(body)} bytes are too few for the state of a shard")
    magic, version, digest = _PREFIX.unpack_from(body)
    if magic != MAGIC:
        raise SavedStateError(
            f"saved state begins with {magic!r}, not {MAGIC!r}: these bytes are not the state of a shard"
        )
    if version != FORMAT_VERSION:
        raise SavedStateError(
            f"saved state of a shard has format {version}; this release reads {FORMAT_VERSION}", version=version
        )
    return bytes(digest)
