"""State as bytes: compact, versioned, checksummed.

Layout: magic (4 bytes), format version (uint16, little endian), BLAKE2b-128 of the rest, then one Arrow-free body: the
length of a JSON header (uint32), the header, and the arrays that it lists, one after the other in C order, little
endian. Free room is not written: traces, nodes and instances are renumbered densely. Monitor states are stored as
(guard version, seen types), as their numbers are not stable.
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
    (length,) = _LENGTH.unpack_from(body)
    fields = orjson.loads(body[_LENGTH.size : _LENGTH.size + length])
    arrays = _read_arrays(fields.pop("arrays"), body[_LENGTH.size + length :])
    header = Header(**fields)
    needed = {version for version, _ in header.monitors}
    if header.guard_version is not None:
        needed.add(header.guard_version)
    if missing := sorted(needed - set(guard_versions)):
        raise StateFormatError(f"saved state follows guard versions {missing}, which are not at hand")
    ends = arrays["event_id_ends"]
    raw = arrays["event_id_bytes"].tobytes()
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    ids = [raw[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    events = EventStore(arrays["event_sequences"], pa.array(ids, pa.string()), arrays["event_times_us"])
    return header, _unpacked(arrays), events


def check_layout(state: State, queries: Sequence[Query], monitors: int) -> None:
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
    if len(state.trace_monitor) and int(state.trace_monitor.max()) >= monitors:
        raise StateFormatError(f"saved state names monitor {state.trace_monitor.max()} of {monitors}")


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
    state.counters[kernel.TRACE_FREE] = n_traces
    state.counters[kernel.NODE_FREE] = n_nodes
    state.counters[kernel.INSTANCE_FREE] = n_instances
    return arena.with_index(state, np.arange(n_traces, dtype=np.int32))
