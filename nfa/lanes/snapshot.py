"""A matcher's state as bytes: compact, versioned, checksummed.

Layout: magic (4 bytes), format version (uint16, little endian), BLAKE2b-128 of the rest, then the body. The body is the
length of a JSON header (uint32), the header, and the arrays that the header lists, in C order, little endian.
``LaneState`` decides what a lane saves; this module only handles header members and named arrays. Bytes are not
trusted: loading checks links, counts, and the types and lengths of arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any

import numpy as np
import orjson

from nfa.errors import StateFormatError
from nfa.guards.protocol import Guard
from nfa.lanes.lane import Lane
from nfa.lanes.state import Arrays, SavedLane
from nfa.registered import RunningPattern
from nfa.syntax import Path
from streams import Ties

MAGIC = b"FSTM"
FORMAT_VERSION = 5
_READ_VERSIONS = (3, 4, 5)  # version 3 lacks idle timeouts and finer traces, version 4 lacks keys and times of traces

_PREFIX = struct.Struct("<4sH16s")
_LENGTH = struct.Struct("<I")
# NumPy evaluates the type names of arrays, so a damaged name may also raise a SyntaxError.
_UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, SyntaxError, struct.error)


@dataclass(slots=True, kw_only=True)
class Header:
    """The saved values of a matcher, except arrays.

    ``dump`` fills ``lanes`` with the keys and ``SavedLane.members`` of each lane.
    """

    end_events: list[str]
    match_limit: int
    ties: Ties
    key_paths: list[list[str]]
    may_be_guarded: bool
    patterns: list[tuple[Any, ...]]  # name, version, text, is_guarded, and the budget unless it is the default
    lanes: list[dict[str, Any]]
    idle_timeout_us: int | None = None
    draining: list[tuple[Any, ...]] = field(default_factory=list)  # version, text, is_guarded, border, end, budget


def dump(header: Header, lanes: Mapping[tuple[Path, ...], Lane]) -> bytes:
    """Return a matcher's state as bytes for a snapshot."""
    arrays: Arrays = {}
    for number, (keys, lane) in enumerate(lanes.items()):
        saved = lane.dump()
        header.lanes.append({"keys": keys, **saved.members})
        arrays.update({f"{number}/{name}": array for name, array in saved.arrays.items()})
    listing = [(name, array.dtype.str, list(array.shape)) for name, array in arrays.items()]
    members = {
        header_field.name: getattr(header, header_field.name) for header_field in fields(header)
    }  # orjson accepts nested dataclasses
    if not header.draining:
        del members["draining"]
    head = orjson.dumps({**members, "arrays": listing})
    digest = blake2b(digest_size=16)
    parts: list[Any] = [_LENGTH.pack(len(head)), head]
    parts += [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays.values() if array.size]
    for part in parts:
        digest.update(part)
    return b"".join([_PREFIX.pack(MAGIC, FORMAT_VERSION, digest.digest()), *parts])


def read(data: bytes) -> tuple[Header, Arrays]:
    """Return the header and the arrays in the bytes of a snapshot, after checking version and checksum."""
    if len(data) < _PREFIX.size:
        raise StateFormatError(f"saved state has {len(data)} bytes; even an empty one has more than {_PREFIX.size}")
    magic, version, digest = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise StateFormatError(
            f"saved state begins with {magic!r} instead of {MAGIC!r}: these bytes are not a saved state"
        )
    if version not in _READ_VERSIONS:
        raise StateFormatError(
            f"saved state has format {version}; this release reads {', '.join(map(str, _READ_VERSIONS))}",
            found=version,
        )
    body = memoryview(data)[_PREFIX.size :]
    if digest != blake2b(body, digest_size=16).digest():
        raise StateFormatError("saved state is damaged: its checksum does not fit its content")
    try:
        (length,) = _LENGTH.unpack_from(body)
        members = orjson.loads(body[_LENGTH.size : _LENGTH.size + length])
        _refuse_fractions(members)
        arrays = _read_arrays(members.pop("arrays"), body[_LENGTH.size + length :])
        return Header(**members), arrays
    except _UNREADABLE as error:
        raise _wrong_content(error) from error


def has_listed(arrays: Arrays) -> bool:
    """Whether the saved matcher kept the keys and times of its open traces."""
    return any(name.endswith("/open_events") for name in arrays)


def restore(
    header: Header,
    arrays: Arrays,
    lanes: Mapping[tuple[Path, ...], Lane],
    patterns: Mapping[tuple[Path, ...], Sequence[RunningPattern]],
    guards: Mapping[int, Guard],
) -> None:
    """Fill empty lanes with saved state. Invalid content and missing guards are rejected."""
    try:
        saved = {_keys_of(members): _saved_lane(number, members, arrays) for number, members in enumerate(header.lanes)}
        if saved.keys() != lanes.keys():
            raise StateFormatError("saved state: its patterns use other correlation keys than it has traces for")
        for keys, lane in lanes.items():
            lane.load(saved[keys], patterns[keys], guards)
    except _UNREADABLE as error:
        raise _wrong_content(error) from error


def _keys_of(members: dict[str, Any]) -> tuple[Path, ...]:
    return tuple(tuple(path) for path in members["keys"])


def _saved_lane(number: int, members: dict[str, Any], arrays: Arrays) -> SavedLane:
    prefix = f"{number}/"
    lane_arrays = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return SavedLane({name: value for name, value in members.items() if name != "keys"}, lane_arrays)


def _wrong_content(error: Exception) -> StateFormatError:
    return StateFormatError(f"saved state has a right checksum and a wrong content: {error!r}")


def _refuse_fractions(members: object) -> None:
    """Raise ValueError if saved members contain a float.

    All saved numbers are integers, and a float would make kernels compile again.
    """
    waiting = [members]
    while waiting:
        member = waiting.pop()
        if isinstance(member, float):
            raise ValueError(f"{member} is not a whole number")
        if isinstance(member, dict):
            waiting.extend(member.values())
        elif isinstance(member, list):
            waiting.extend(member)


def _read_arrays(listing: list[tuple[str, str, list[int]]], body: memoryview) -> Arrays:
    arrays: Arrays = {}
    offset = 0
    for name, dtype, shape in listing:
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(body, np.dtype(dtype), count, offset)
        arrays[name] = flat.reshape(shape).copy()
        offset += flat.nbytes
    return arrays
