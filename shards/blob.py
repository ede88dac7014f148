"""The format of saved state: magic, format version, SHA-256 of the rest, then named sections of bytes.

Layout, little-endian: 4 bytes magic, 2 bytes version, 32 bytes SHA-256 of all bytes that follow, 4 bytes length of the
header, the header (a JSON object, ``{"head": …, "sections": {name: length, …}}``), the sections one after another. In
format 1, ``sections`` is a list of lengths, and each section is named by its number.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import orjson

from shards.errors import SavedStateError

MAGIC = b"FSSH"
FORMAT_VERSION = 2
_READ = (1, 2)

_PREFIX = struct.Struct("<4sH32s")
_LENGTH = struct.Struct("<I")


def pack(head: Mapping[str, Any], sections: Mapping[str, bytes]) -> list[bytes]:
    """Serialize a JSON object and named sections, and return the parts of saved state.

    ``seal`` completes the parts. Equal arguments give equal bytes.
    """
    ordered = dict(sorted(sections.items()))
    lengths = {name: len(section) for name, section in ordered.items()}
    header = orjson.dumps({"head": head, "sections": lengths}, option=orjson.OPT_SORT_KEYS)
    return [_LENGTH.pack(len(header)), header, *ordered.values()]


def seal(parts: Sequence[bytes]) -> list[bytes]:
    """Put a header in front of the parts that ``pack`` returned. Joined, the result is saved state.

    The header has magic, version, and a digest of the parts. Hashing large parts does not block other threads.
    """
    digest = sha256()
    for part in parts:
        digest.update(part)
    return [_PREFIX.pack(MAGIC, FORMAT_VERSION, digest.digest()), *parts]


def unpack(body: bytes) -> tuple[int, dict[str, Any], dict[str, bytes]]:
    """Read saved state, and return its format version, the JSON object and the sections that ``pack`` received.

    Raises ``SavedStateError`` if the bytes are damaged or the version is unknown.
    """
    version, digest = _prefix_of(body)
    content = memoryview(body)[_PREFIX.size :]
    if sha256(content).digest() != digest:
        raise SavedStateError(f"saved state of {len(body)} bytes is damaged: its checksum is wrong")
    (header_size,) = _LENGTH.unpack_from(content)
    header = orjson.loads(content[_LENGTH.size : _LENGTH.size + header_size])
    lengths = header["sections"]
    if isinstance(lengths, list):
        lengths = {str(number): length for number, length in enumerate(lengths)}
    sections: dict[str, bytes] = {}
    offset = _LENGTH.size + header_size
    for name, length in lengths.items():
        sections[name] = bytes(content[offset : offset + length])
        offset += length
    return version, header["head"], sections


def _prefix_of(body: bytes) -> tuple[int, bytes]:
    """Return the version and the digest from the start of saved state. The digest is not checked here."""
    if len(body) < _PREFIX.size + _LENGTH.size:
        raise SavedStateError(f"{len(body)} bytes are too few for the state of a shard")
    magic, version, digest = _PREFIX.unpack_from(body)
    if magic != MAGIC:
        raise SavedStateError(
            f"saved state begins with {magic!r}, not {MAGIC!r}: these bytes are not the state of a shard"
        )
    if version not in _READ:
        raise SavedStateError(
            f"saved state of a shard has format {version}; this release reads {' and '.join(map(str, _READ))}",
            version=version,
        )
    return version, bytes(digest)


def sections_below(sections: Mapping[str, bytes], prefix: str) -> dict[str, bytes]:
    """Return the sections whose names begin with ``<prefix>/``. The prefix is removed from their names."""
    return {name[len(prefix) + 1 :]: body for name, body in sections.items() if name.startswith(f"{prefix}/")}
