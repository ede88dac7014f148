"""State as bytes: compact, versioned, checksummed.

Layout: magic (4 bytes), format version (uint16, little endian), BLAKE2b-128 of the rest, then the body: the length of a
JSON header (uint32), the header, and the arrays that it lists, one after the other in C order, little endian. Free room
is not written: traces, nodes, runs and events are renumbered densely. Monitor states are stored as (guard version, seen
types), as their numbers are not stable. Bytes are trusted as little as any input: links, counts and forms are checked.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from nfa.errors import StateFormatError
from nfa.guards.protocol import Guard, MonitorState
from nfa.guards.tables import GuardTables, Interned
from nfa.kernels.traces import RESERVED, UNGUARDED
from nfa.lanes.lane import Lane
from nfa.registered import RegisteredPattern
from nfa.results.event_store import FIELDS, EventStore, StoredEvents
from nfa.runs.engine import Ties
from nfa.syntax import Path
from nfa.traces.table import checked

MAGIC = b"FSTM"
FORMAT_VERSION = 4
_READ_VERSIONS = (3, 4)  # the third knows nothing of idle timeouts and finer traces

Arrays = dict[str, NDArray[Any]]
SavedMonitor = tuple[int, list[str], list[str] | None, list[int]]
"""Guard version, and the parts of a ``MonitorState``."""

_NO_PAIRS = np.zeros((0, 2), np.uint64)
_PREFIX = struct.Struct("<4sH16s")
_LENGTH = struct.Struct("<I")
_UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, struct.error)


@dataclass(slots=True, kw_only=True)
class LaneHeader:
    """What is saved of a lane beside its arrays."""

    keys: list[list[str]]
    sequence: int
    counts: dict[str, int]
    guard_version: int | None
    monitors: list[SavedMonitor]
    bit_monitors: list[SavedMonitor]
    shadow_monitors: list[SavedMonitor]


@dataclass(slots=True, kw_only=True)
class Header:
    """What is saved beside the arrays; ``lanes`` are filled in by ``dump``."""

    end_events: list[str]
    match_limit: int
    ties: Ties
    key_paths: list[list[str]]
    may_be_guarded: bool
    patterns: list[tuple[Any, ...]]  # name, version, text, is_guarded, and a budget that is not the usual one
    lanes: list[LaneHeader]
    idle_timeout_us: int | None = None
    draining: list[tuple[Any, ...]] = field(default_factory=list)  # version, text, is_guarded, border, end, budget


def dump(header: Header, lanes: Mapping[tuple[Path, ...], Lane]) -> bytes:
    """Bytes of a matcher's state."""
    arrays: Arrays = {}
    for number, (keys, lane) in enumerate(lanes.items()):
        found, lane_header = _packed(keys, lane)
        header.lanes.append(lane_header)
        arrays.update({f"{number}/{name}": array for name, array in found.items()})
    listing = [(name, array.dtype.str, list(array.shape)) for name, array in arrays.items()]
    members = {one.name: getattr(header, one.name) for one in fields(header)}  # orjson takes dataclasses inside
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
    """Header and arrays from bytes.

    Raises:
        StateFormatError: Not such bytes, another version, or a wrong checksum.
    """
    if len(data) < _PREFIX.size:
        raise StateFormatError(f"saved state has {len(data)} bytes; even an empty one has more than {_PREFIX.size}")
    magic, version, digest = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise StateFormatError(
            f"saved state begins with {magic!r} instead of {MAGIC!r}: these bytes are something else"
        )
    if version not in _READ_VERSIONS:
        raise StateFormatError(
            f"saved state has format {version}; this release reads {' and '.join(map(str, _READ_VERSIONS))}",
            found=version,
        )
    body = memoryview(data)[_PREFIX.size :]
    if digest != blake2b(body, digest_size=16).digest():
        raise StateFormatError("saved state is damaged: its checksum does not fit its content")
    try:
        (length,) = _LENGTH.unpack_from(body)
        members = orjson.loads(body[_LENGTH.size : _LENGTH.size + length])
        arrays = _read_arrays(members.pop("arrays"), body[_LENGTH.size + length :])
        lanes = [LaneHeader(**lane) for lane in members.pop("lanes")]
        return Header(**members, lanes=lanes), arrays
    except _UNREADABLE as error:
        raise StateFormatError(f"saved state has a right checksum and a wrong content: {error!r}") from error


def restore(
    header: Header,
    arrays: Arrays,
    lanes: Mapping[tuple[Path, ...], Lane],
    patterns: Mapping[tuple[Path, ...], Sequence[RegisteredPattern]],
    guards: Mapping[int, Guard],
) -> None:
    """Fill fresh lanes with saved state.

    Raises:
        StateFormatError: The content is not what it should be, or a guard is not available.
    """
    saved = {tuple(tuple(path) for path in lane.keys): (number, lane) for number, lane in enumerate(header.lanes)}
    if saved.keys() != lanes.keys():
        raise StateFormatError("saved state: its patterns use other correlation keys than it has traces for")
    for keys, lane in lanes.items():
        number, lane_header = saved[keys]
        prefix = f"{number}/"
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        try:
            _unpack(lane, lane_header, own, patterns[keys], guards)
        except _UNREADABLE as error:
            raise StateFormatError(f"saved state has a right checksum and a wrong content: {error!r}") from error


def _packed(keys: tuple[Path, ...], lane: Lane) -> tuple[Arrays, LaneHeader]:
    lane.events.compact(lane.held_sequences())
    traces, numbers = lane.table.dump_arrays()
    shadow, shadow_states = lane.shadow.dump_arrays(numbers)
    arrays: Arrays = {**traces, **shadow, **lane.shared.dump_arrays(numbers), **lane.runs.dump_arrays(numbers)}
    arrays["trace_monitor"], monitors, bit_monitors = _saved_monitors(lane, traces["trace_monitor"])
    arrays["finer_pairs"] = lane.finer.pairs.reshape(-1)
    if lane.idle is not None:
        arrays.update(lane.idle.dump_arrays())
    events = lane.events.events
    arrays["event_sequences"], arrays["event_times_us"] = events.sequences, events.times_us
    for name in FIELDS:
        arrays[f"event_{name}_ends"], arrays[f"event_{name}_bytes"] = _as_bytes(events.columns.column(name))
    return arrays, LaneHeader(
        keys=[list(path) for path in keys],
        sequence=lane.sequence,
        counts=lane.counts,
        guard_version=lane.guard_version,
        monitors=[_saved(found) for found in monitors],
        bit_monitors=[_saved(found) for found in bit_monitors],
        shadow_monitors=[_saved(found) for found in shadow_states],
    )


def _saved_monitors(
    lane: Lane, monitors: NDArray[np.int32]
) -> tuple[NDArray[np.int32], list[Interned], list[Interned]]:
    """Monitor states of the open traces as numbers from ``RESERVED`` on, and what they stand for.

    First come those of the tables, then those of traces under bit tables.
    """
    used = [number for number in np.unique(monitors).tolist() if number >= RESERVED]
    states = {number: known for number in used if (known := lane.guards.states[number]) is not None}
    dense = {number: place for place, number in enumerate(states, RESERVED)}
    found = np.array([dense.get(number, number) for number in range(max([*used, RESERVED - 1]) + 1)], np.int32)[
        monitors
    ]
    under_bits: dict[Interned, int] = {}
    for place, trace in enumerate(lane.table.numbers().tolist()):
        known = lane.guards.bits.state_of(trace)
        if known is not None:
            found[place] = under_bits.setdefault(known, RESERVED + len(states) + len(under_bits))
    return found, list(states.values()), list(under_bits)


def _saved(known: Interned) -> SavedMonitor:
    version, state = known
    settled = None if state.settled is None else sorted(state.settled)
    return version, sorted(state.seen), settled, list(state.places)


def _restored(saved: SavedMonitor) -> Interned:
    version, seen, settled, places = saved
    known = MonitorState(
        seen=frozenset(seen), settled=None if settled is None else frozenset(settled), places=tuple(places)
    )
    if not isinstance(version, int) or not all(isinstance(place, int) for place in places):
        raise ValueError(f"a monitor state is {saved!r}")
    return version, known


def _unpack(
    lane: Lane, header: LaneHeader, arrays: Arrays, patterns: Sequence[RegisteredPattern], guards: Mapping[int, Guard]
) -> None:
    monitors = [_restored(saved) for saved in header.monitors]
    under_bits = [_restored(saved) for saved in header.bit_monitors]
    watched = [_restored(saved) for saved in header.shadow_monitors]
    needed = {version for version, _ in [*monitors, *under_bits, *watched]} | ({header.guard_version} - {None})
    if missing := sorted(str(version) for version in needed - guards.keys()):
        raise StateFormatError(f"saved state follows guard versions {', '.join(missing)}, which are not available")
    header.counts.setdefault("ends", 0)
    if header.sequence < 0 or header.counts.keys() != lane.counts.keys():
        raise StateFormatError("saved state: a counter is not a count")
    lane.guards = GuardTables({version: guards[version] for version in needed if version is not None})
    lane.guard_version, lane.sequence, lane.counts = header.guard_version, header.sequence, header.counts
    for version, state in monitors:
        lane.guards.intern(version, state)
    found = arrays["trace_monitor"].astype(np.int64)
    places = np.flatnonzero(found >= RESERVED + len(monitors)).astype(np.int32)
    entering = [under_bits[number] for number in (found[places] - RESERVED - len(monitors)).tolist()]
    plain = np.where(found >= RESERVED + len(monitors), UNGUARDED, found).astype(np.int32)
    lane.table.load_arrays({**arrays, "trace_monitor": plain}, monitors=RESERVED + len(monitors))
    traces = lane.table.counters["open"]
    lane.shadow.load_arrays(arrays, watched, traces=traces)
    lane.loading = frozenset(version for version, _ in under_bits)
    lane.configure(patterns)
    lane.enter_bits(places, entering)
    lane.loading = frozenset()
    lane.shared.load_arrays(arrays, traces=traces, sequences=header.sequence)
    lane.runs.load_arrays(arrays, traces=traces, sequences=header.sequence)
    lane.finer.load(checked(arrays, "finer_pairs", np.uint64).reshape(-1, 2) if "finer_pairs" in arrays else _NO_PAIRS)
    if lane.idle is not None:
        lane.idle.load_arrays(arrays)
    lane.events = EventStore(_read_events(arrays))
    if not np.isin(lane.held_sequences(), lane.events.events.sequences).all():
        raise StateFormatError("saved state: bound events are not listed")


def _read_events(arrays: Arrays) -> StoredEvents:
    sequences, times_us = arrays["event_sequences"], arrays["event_times_us"]
    if sequences.dtype != np.int64 or times_us.dtype != np.int64 or not np.all(np.diff(sequences) > 0):
        raise ValueError("bound events are not listed in ascending order")
    columns = [_from_bytes(arrays, name, pa.binary() if name == "data" else pa.string()) for name in FIELDS]
    if any(len(column) != len(sequences) for column in [*columns, times_us]):
        raise ValueError("columns of bound events differ in number")
    batch = pa.RecordBatch.from_arrays(columns, names=list(FIELDS))
    batch.validate(full=True)
    return StoredEvents(sequences=sequences, times_us=times_us, columns=batch)


def _as_bytes(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    texts = column.cast(pa.large_binary())
    _, offsets, data = texts.buffers()
    ends = (
        np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        if len(texts)
        else np.zeros(1, np.int64)
    )
    raw = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.zeros(0, np.uint8)
    return ends[1:] - ends[0], raw


def _from_bytes(arrays: Arrays, name: str, kind: pa.DataType) -> pa.Array:
    ends, raw = arrays[f"event_{name}_ends"], arrays[f"event_{name}_bytes"]
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    if ends.dtype != np.int64 or raw.dtype != np.uint8 or np.any(np.diff(offsets) < 0) or offsets[-1] != len(raw):
        raise ValueError(f"the texts of event_{name} do not fit their lengths")
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(raw.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(ends), buffers).cast(pa.binary()).cast(kind)


def _read_arrays(listing: list[tuple[str, str, list[int]]], body: memoryview) -> Arrays:
    arrays: Arrays = {}
    offset = 0
    for name, dtype, shape in listing:
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(body, np.dtype(dtype), count, offset)
        arrays[name] = flat.reshape(shape).copy()
        offset += flat.nbytes
    return arrays
