"""Allocation, growth and compaction of the kernel's state arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.kernels import matching as kernel
from nfa.kernels.matching import NIL, State
from nfa.query import Query

TRACE_FIELDS = ("trace_key", "trace_time", "trace_monitor", "trace_next", "heads", "ended")
NODE_FIELDS = ("node_below", "node_before", "node_instance", "node_atom", "node_references", "node_ways")
INSTANCE_FIELDS = ("instance_sequence", "instance_references", "instance_next")


def new_state(*, patterns: int, states: int, traces: int = 256, nodes: int = 1_024) -> State:
    """Empty state.

    Args:
        patterns: Number of patterns.
        states: Number of their states together.
        traces: Room for open traces; grows.
        nodes: Room for nodes and instances; grows.
    """
    slots = _index_size(traces)
    counters = np.zeros(kernel.N_COUNTERS, np.int64)
    return State(
        hash_keys=np.zeros(slots, np.uint64),
        hash_traces=np.full(slots, NIL, np.int32),
        trace_key=np.zeros(traces, np.uint64),
        trace_time=np.zeros(traces, np.int64),
        trace_monitor=np.zeros(traces, np.int32),
        trace_next=_chain(0, traces),
        heads=np.full((traces, states), NIL, np.int32),
        ended=np.zeros((traces, patterns), np.bool_),
        node_below=_chain(0, nodes),
        node_before=np.full(nodes, NIL, np.int32),
        node_instance=np.full(nodes, NIL, np.int32),
        node_atom=np.zeros(nodes, np.int32),
        node_references=np.zeros(nodes, np.int32),
        node_ways=np.zeros(nodes, np.float64),
        instance_sequence=np.zeros(nodes, np.int64),
        instance_references=np.zeros(nodes, np.int32),
        instance_next=_chain(0, nodes),
        scratch=np.zeros(nodes + 2, np.int32),
        counters=counters,
    )


def with_more_nodes(state: State, wanted: int) -> State:
    """The same state with room for at least ``wanted`` nodes and instances, and at least twice as many as before."""
    old = len(state.node_below)
    size = max(2 * old, wanted)
    grown: dict[str, Any] = {name: _grown(getattr(state, name), size) for name in (*NODE_FIELDS, *INSTANCE_FIELDS)}
    grown["node_below"][old:] = _chain(old, size, then=int(state.counters[kernel.NODE_FREE]))
    grown["instance_next"][old:] = _chain(old, size, then=int(state.counters[kernel.INSTANCE_FREE]))
    state.counters[kernel.NODE_FREE] = old
    state.counters[kernel.INSTANCE_FREE] = old
    return state._replace(scratch=np.zeros(size + 2, np.int32), **grown)


def with_more_traces(state: State) -> State:
    """The same state with room for twice as many traces."""
    old = len(state.trace_key)
    size = 2 * old
    grown: dict[str, Any] = {name: _grown(getattr(state, name), size) for name in TRACE_FIELDS}
    grown["trace_next"][old:] = _chain(old, size, then=int(state.counters[kernel.TRACE_FREE]))
    state.counters[kernel.TRACE_FREE] = old
    return with_index(state._replace(**grown), open_traces(state))


def with_index(state: State, traces: NDArray[np.int32]) -> State:
    """The same state with a fresh index over the given traces."""
    slots = _index_size(len(state.trace_key))
    keys, numbers = np.zeros(slots, np.uint64), np.full(slots, NIL, np.int32)
    kernel.rebuild_index(keys, numbers, state.trace_key, traces)
    return state._replace(hash_keys=keys, hash_traces=numbers)


def open_traces(state: State) -> NDArray[np.int32]:
    """Numbers of the open traces, ascending."""
    return np.sort(state.hash_traces[state.hash_traces != NIL])


def state_bytes(state: State) -> int:
    """Bytes in use: what open traces, nodes and instances take, without free room."""
    counters = state.counters
    per_trace = sum(getattr(state, name).nbytes // len(state.trace_key) for name in TRACE_FIELDS) + 24
    per_node = sum(getattr(state, name).itemsize for name in NODE_FIELDS)
    per_instance = sum(getattr(state, name).itemsize for name in INSTANCE_FIELDS)
    return int(
        counters[kernel.TRACES] * per_trace
        + counters[kernel.NODES] * per_node
        + counters[kernel.INSTANCES] * per_instance
    )


def _index_size(traces: int) -> int:
    return 1 << max(4, (2 * traces - 1).bit_length())


def _chain(first: int, size: int, *, then: int = NIL) -> NDArray[np.int32]:
    """A free list over ``first`` to ``size - 1`` that goes on with ``then``."""
    links = np.arange(first + 1, size + 1, dtype=np.int32)
    links[-1:] = then
    return links


def _grown(array: NDArray[np.generic], size: int) -> NDArray[np.generic]:
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def migrated(state: State, old: Sequence[Query], new: Sequence[Query], sources: Sequence[int]) -> State:
    """The same traces with the columns of another set of patterns.

    Args:
        state: State with the columns of ``old``; the partial matches of patterns that go are released in it.
        old: The patterns so far.
        new: The patterns from now on.
        sources: For each new pattern its number among the old ones, or ``NIL``: it starts empty.
    """
    old_range = np.cumsum([0, *(len(query.states) for query in old)]).tolist()
    new_range = np.cumsum([0, *(len(query.states) for query in new)]).tolist()
    traces = open_traces(state)
    for gone in sorted(set(range(len(old))) - set(sources)):
        kernel.release_states(state, traces, old_range[gone], old_range[gone + 1])
    heads = np.full((len(state.trace_key), new_range[-1]), NIL, np.int32)
    ended = np.zeros((len(state.trace_key), len(new)), np.bool_)
    for number, source in enumerate(sources):
        if source != NIL:
            columns = slice(old_range[source], old_range[source + 1])
            heads[:, new_range[number] : new_range[number + 1]] = state.heads[:, columns]
            ended[:, number] = state.ended[:, source]
    return state._replace(heads=heads, ended=ended)
