"""State as bytes: compact, versioned, checksummed.

Layout: magic (4 bytes), format version (uint16, little endian), BLAKE2b-128 of the rest, then the body: the length of a
JSON header (uint32), the header, and the arrays that it lists, one after the other in C order, little endian. Free room
is not written: traces, nodes and instances are renumbered densely. Monitor states are stored as (guard version, seen
types), as their numbers are not stable. Bytes are trusted as little as any input: links, counts and forms are checked.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from nfa import arena
from nfa.errors import StateFormatError
from nfa.event_store import EventStore
from nfa.guard_tables import MonitorState
from nfa.kernels import matching as kernel
from nfa.kernels.matching import NIL, UNGUARDED, State
from nfa.query import Query

MAGIC = b"FSTM"
FORMAT_VERSION = 1

_PREFIX = struct.Struct("<4sH16s")
_LENGTH = struct.Struct("<I")
_SAVED_COUNTERS = slice(kernel.NODES, kernel.N_COUNTERS)
_MOST_COUNTED = 2**62
_UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, struct.error)
_FORM = {
    "trace_key": (np.uint64, 1),
    "trace_time": (np.int64, 1),
    "trace_monitor": (np.int32, 1),
    "heads": (np.int32, 2),
    "ended": (np.bool_, 2),
    "node_below": (np.int32, 1),
    "node_before": (np.int32, 1),
    "node_instance": (np.int32, 1),
    "node_atom": (np.int32, 1),
    "node_references": (np.int32, 1),
    "node_ways": (np.float64, 1),
    "instance_sequence": (np.int64, 1),
    "instance_references": (np.int32, 1),
    "counters": (np.int64, 1),
    "event_sequences": (np.int64, 1),
    "event_times_us": (np.int64, 1),
    "event_id_ends": (np.int64, 1),
    "event_id_bytes": (np.uint8, 1),
}


@dataclass(slots=True, kw_only=True)
class Header:
    """What is saved beside the arrays; ``monitors`` are filled in by ``dump``."""

    end_events: list[str]
    match_limit: int
    patterns: list[tuple[str, int, str]]
    guard_version: int | None
    monitors: list[tuple[int, list[str]]]


def dump(header: Header, state: State, monitors: Sequence[MonitorState | None], events: EventStore) -> bytes:
    """Bytes of a matcher's state."""
    arrays, used = _packed(state)
    named = [monitors[number] for number in used]
    header.monitors = [(found[0], sorted(found[1])) for found in named if found is not None]
    ids = events.ids.combine_chunks() if isinstance(events.ids, pa.ChunkedArray) else events.ids
    texts = [text.encode() for text in ids.to_pylist()]
    arrays["event_sequences"] = events.sequences
    arrays["event_times_us"] = events.times_us
    arrays["event_id_ends"] = np.cumsum([len(text) for text in texts], dtype=np.int64)
    arrays["event_id_bytes"] = np.frombuffer(b"".join(texts), np.uint8)
    listing = [(name, array.dtype.str, list(array.shape)) for name, array in arrays.items()]
    head = orjson.dumps({**asdict(header), "arrays": listing})
    body = b"".join([_LENGTH.pack(len(head)), head, *(np.ascontiguousarray(a).tobytes() for a in arrays.values())])
    return _PREFIX.pack(MAGIC, FORMAT_VERSION, _digest(body)) + body


def load(data: bytes, guard_versions: Collection[int]) -> tuple[Header, State, EventStore]:
    """State from bytes.

    Raises:
        StateFormatError: Not such bytes, another version, a wrong checksum, or a guard that is not at hand.
    """
    if len(data) < _PREFIX.size:
        raise StateFormatError(f"saved state has {len(data)} bytes; even an empty one has more than {_PREFIX.size}")
    magic, version, digest = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise StateFormatError(
            f"saved state begins with {magic!r} instead of {MAGIC!r}: these bytes are something else"
        )
    if version != FORMAT_VERSION:
        raise StateFormatError(f"saved state has format {version}; this release reads {FORMAT_VERSION}", found=version)
    body = memoryview(data)[_PREFIX.size :]
    if digest != _digest(body):
        raise StateFormatError("saved state is damaged: its checksum does not fit its content")
    try:
        header, arrays = _read_body(body)
        events = _read_events(arrays)
        state = _unpacked(arrays)
    except _UNREADABLE as error:
        raise StateFormatError(f"saved state has a right checksum and a wrong content: {error!r}") from error
    _check_links(arrays, len(header.monitors))
    _check_numbers(arrays, state)
    needed = {version for version, _ in header.monitors}
    if header.guard_version is not None:
        needed.add(header.guard_version)
    if missing := sorted(needed - set(guard_versions)):
        raise StateFormatError(f"saved state follows guard versions {missing}, which are not at hand")
    return header, state, events


def check_layout(state: State, queries: Sequence[Query]) -> None:
    """Check that arrays fit the patterns they are said to belong to.

    Raises:
        StateFormatError: They do not.
    """
    states = sum(len(query.states) for query in queries)
    if state.heads.shape[1] != states or state.ended.shape[1] != len(queries):
        raise StateFormatError(
            f"saved state has {state.heads.shape[1]} pattern states of {state.ended.shape[1]} patterns; "
            f"its pattern texts make {states} of {len(queries)}"
        )
    width = max((len(term.atoms) for query in queries for term in query.terms), default=1)
    if state.node_atom.max(initial=0) >= width or state.node_atom.min(initial=0) < 0:
        raise StateFormatError(f"saved state binds an atom beyond the {width} of its longest pattern")


def _read_body(body: memoryview) -> tuple[Header, dict[str, NDArray[Any]]]:
    (length,) = _LENGTH.unpack_from(body)
    fields = orjson.loads(body[_LENGTH.size : _LENGTH.size + length])
    arrays = _read_arrays(fields.pop("arrays"), body[_LENGTH.size + length :])
    for name, (dtype, dimensions) in _FORM.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != dimensions:
            raise ValueError(f"{name} is {arrays[name].ndim}-dimensional {arrays[name].dtype}")
    return Header(**fields), arrays


def _read_events(arrays: dict[str, NDArray[Any]]) -> EventStore:
    ends = arrays["event_id_ends"]
    raw = arrays["event_id_bytes"].tobytes()
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    ids = [raw[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    sequences = arrays["event_sequences"]
    if not np.all(np.diff(sequences) > 0) or not np.isin(arrays["instance_sequence"], sequences).all():
        raise ValueError("bound events are not listed in ascending order")
    if not len(ids) == len(sequences) == len(arrays["event_times_us"]):
        raise ValueError("ids, times and numbers of bound events differ in number")
    return EventStore(sequences, pa.array(ids, pa.string()), arrays["event_times_us"])


def _check_links(arrays: dict[str, NDArray[Any]], monitors: int) -> None:
    """Check that every index leads somewhere, and that reference counts are what they say.

    Raises:
        StateFormatError: The first fault.
    """
    nodes, instances = len(arrays["node_below"]), len(arrays["instance_sequence"])
    bounds = {
        "heads": (NIL, nodes),
        "node_below": (NIL, nodes),
        "node_before": (NIL, nodes),
        "node_instance": (0, instances),
        "trace_monitor": (0, UNGUARDED + 1 + monitors),
    }
    for name, (least, end) in bounds.items():
        if np.any(arrays[name] < least) or np.any(arrays[name] >= end):
            raise StateFormatError(f"saved state: {name} leads outside {least} to {end - 1}")
    links = np.concatenate([arrays[name].ravel() for name in ("heads", "node_below", "node_before")])
    counted = {
        "node_references": np.bincount(links[links != NIL], minlength=nodes),
        "instance_references": np.bincount(arrays["node_instance"], minlength=instances),
    }
    for name, counts in counted.items():
        if not np.array_equal(arrays[name], counts):
            raise StateFormatError(f"saved state: {name} are not the numbers of links that there are")


def _check_numbers(arrays: dict[str, NDArray[Any]], state: State) -> None:
    """Check that counts can be counts, and that nodes stand for as many partial matches as their links say.

    Raises:
        StateFormatError: The first fault.
    """
    counters = state.counters[kernel.NODES :]
    if counters.min() < 0 or counters.max() > _MOST_COUNTED:
        raise StateFormatError("saved state: a counter is no count")
    if arrays["instance_sequence"].max(initial=-1) >= state.counters[kernel.EVENTS]:
        raise StateFormatError("saved state binds an event that has not been counted yet")
    ways = np.append(arrays["node_ways"], 0.0)  # the last stands for NIL below
    before = np.where(arrays["node_before"] == NIL, 1.0, ways[arrays["node_before"]])
    if not np.isfinite(ways).all() or not np.array_equal(ways[:-1], before + ways[arrays["node_below"]]):
        raise StateFormatError("saved state: nodes do not stand for what their links say")


def _digest(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=16).digest()


def _packed(state: State) -> tuple[dict[str, NDArray[Any]], list[int]]:
    """Arrays without free room, and the monitor numbers in use in the order of their new numbers."""
    traces = arena.open_traces(state)
    nodes = np.flatnonzero(state.node_references > 0)
    instances = np.flatnonzero(state.instance_references > 0)
    node_numbers = _renumbering(nodes, len(state.node_references))
    instance_numbers = _renumbering(instances, len(state.instance_references))
    monitors = state.trace_monitor[traces]
    used = sorted(set(np.unique(monitors).tolist()) - {kernel.DEVIANT, UNGUARDED})
    monitor_numbers = np.arange(max([*used, UNGUARDED]) + 1, dtype=np.int32)
    monitor_numbers[used] = np.arange(UNGUARDED + 1, UNGUARDED + 1 + len(used), dtype=np.int32)
    arrays: dict[str, NDArray[Any]] = {
        "trace_key": state.trace_key[traces],
        "trace_time": state.trace_time[traces],
        "trace_monitor": monitor_numbers[monitors],
        "heads": node_numbers[state.heads[traces]],
        "ended": state.ended[traces],
        "node_below": node_numbers[state.node_below[nodes]],
        "node_before": node_numbers[state.node_before[nodes]],
        "node_instance": instance_numbers[state.node_instance[nodes]],
        "node_atom": state.node_atom[nodes],
        "node_references": state.node_references[nodes],
        "node_ways": state.node_ways[nodes],
        "instance_sequence": state.instance_sequence[instances],
        "instance_references": state.instance_references[instances],
        "counters": state.counters[_SAVED_COUNTERS],
    }
    return arrays, used


def _renumbering(used: NDArray[np.intp], size: int) -> NDArray[np.int32]:
    """New number by old number; the last entry keeps ``NIL`` as it is."""
    numbers = np.full(size + 1, NIL, np.int32)
    numbers[used] = np.arange(len(used), dtype=np.int32)
    return numbers


def _read_arrays(listing: list[tuple[str, str, list[int]]], body: memoryview) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    offset = 0
    for name, dtype, shape in listing:
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(body, np.dtype(dtype), count, offset)
        arrays[name] = flat.reshape(shape).copy()
        offset += flat.nbytes
    return arrays


def _unpacked(arrays: dict[str, NDArray[Any]]) -> State:
    """State with room to grow from packed arrays."""
    n_traces, n_states = arrays["heads"].shape
    n_nodes, n_instances = len(arrays["node_below"]), len(arrays["instance_sequence"])
    state = arena.new_state(
        patterns=arrays["ended"].shape[1],
        states=n_states,
        traces=max(256, 2 * n_traces),
        nodes=max(1_024, 2 * n_nodes),
    )
    for name in ("trace_key", "trace_time", "trace_monitor", "heads", "ended"):
        getattr(state, name)[:n_traces] = arrays[name]
    for name in arena.NODE_FIELDS:
        getattr(state, name)[:n_nodes] = arrays[name]
    for name in ("instance_sequence", "instance_references"):
        getattr(state, name)[:n_instances] = arrays[name]
    state.counters[_SAVED_COUNTERS] = arrays["counters"]
    state.counters[kernel.TRACES] = n_traces
    state.counters[kernel.NODES] = n_nodes
    state.counters[kernel.INSTANCES] = n_instances
    state.counters[kernel.TRACE_FREE] = n_traces
    state.counters[kernel.NODE_FREE] = n_nodes
    state.counters[kernel.INSTANCE_FREE] = n_instances
    return arena.with_index(state, np.arange(n_traces, dtype=np.int32))
