"""Memory for the runs of one shard: creation, growth and size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.runs import tables
from nfa.kernels.runs.tables import NIL, RunProgram, RunState
from nfa.runs.program import CompiledRuns
from nfa.runs.upkeep import fill_buckets, rebuild_index

NODE_FIELDS = (
    "node_parent",
    "node_event",
    "node_atom",
    "node_step",
    "node_length",
    "node_direct",
    "node_references",
    "node_mark",
)
EVENT_FIELDS = (
    "event_next",
    "event_sequence",
    "event_time",
    "event_order",
    "event_references",
    "event_mark",
    "event_kinds",
    "event_values",
)
RUN_FIELDS = (
    "run_next",
    "run_node",
    "run_state",
    "run_kind",
    "run_finish",
    "run_muted",
    "run_how",
    "run_start",
    "run_end",
    "run_first",
    "run_lead",
    "run_due",
    "run_bits",
    "run_bits_order",
    "run_before",
    "run_pair",
    "run_hash",
    "bucket_next",
    "bucket_before",
)
PAIR_FIELDS = (
    "pair_next",
    "pair_trace",
    "pair_pattern",
    "pair_runs",
    "pair_parked",
    "pair_parked_due",
    "pair_visits",
    "pair_is_loose",
    "pair_count",
    "pair_due",
    "pair_finished",
    "pair_told",
    "pair_work",
    "pair_leads",
)
_LEAST = 16  # few: there may be thousands of empty engines
_DTYPES: Mapping[str, Any] = {
    "event_sequence": np.int64,
    "event_time": np.int64,
    "event_order": np.int64,
    "event_kinds": np.uint8,
    "event_values": np.int64,
    "node_direct": np.bool_,
    "node_mark": np.int64,
    "event_mark": np.int64,
    "run_how": np.int8,
    "pair_told": np.int8,
    "run_muted": np.bool_,
    "run_start": np.int64,
    "run_end": np.int64,
    "run_first": np.int64,
    "run_lead": np.int64,
    "run_due": np.int64,
    "run_bits": np.uint64,
    "run_bits_order": np.int64,
    "run_hash": np.uint64,
    "pair_due": np.int64,
    "pair_parked_due": np.int64,
    "pair_is_loose": np.bool_,
    "pair_finished": np.bool_,
    "pair_work": np.int64,
    "pair_leads": np.int64,
}


def new_state(*, columns: int, leads: int, width: int) -> RunState:
    """Empty state for conditions that read ``columns``, and at most ``leads`` leading NOTs and ``width`` steps."""
    shapes = {
        "event_kinds": (columns,),
        "event_values": (columns,),
        "run_bits": (tables.N_BITS,),
        "pair_leads": (leads, 2),
    }
    arrays: dict[str, Any] = {
        name: np.zeros((_LEAST, *shapes.get(name, ())), _DTYPES.get(name, np.int32))
        for name in (*NODE_FIELDS, *EVENT_FIELDS, *RUN_FIELDS, *PAIR_FIELDS)
    }
    counters = np.zeros(tables.N_COUNTERS, np.int64)
    for name in ("node_parent", "event_next", "run_next", "pair_next"):
        arrays[name] = free_chain(0, _LEAST)
    arrays["run_kind"][:] = NIL
    arrays["pair_parked"][:] = NIL
    arrays["pair_pattern"][:] = NIL
    return RunState(
        **arrays,
        pair_slots=np.full(4 * _LEAST, NIL, np.int32),
        buckets=np.full(_LEAST, NIL, np.int32),
        trace_pairs=np.full(_LEAST, NIL, np.int32),
        counters=counters,
        now=np.zeros(tables.N_NOW, np.int64),
        scratch=np.zeros(width + 1, np.int64),
    )


def emptied(state: RunState, compiled: CompiledRuns) -> RunState:
    """Empty state for other patterns, with the counters of a state without runs."""
    fresh = new_state(columns=len(compiled.columns), leads=compiled.leads, width=compiled.width)
    for counted in (tables.PEAK_EVENTS, tables.RELEASED):
        fresh.counters[counted] = state.counters[counted]
    return fresh


def with_room(state: RunState, needed: int) -> RunState:
    """The state with room for ``needed`` more nodes and twice as many runs, an event and a pair."""
    counters = state.counters
    if counters[tables.NODES] + needed > len(state.node_parent):
        state = grown_arena(state, NODE_FIELDS, tables.NODE_FREE, needed)
    if counters[tables.RUNS] + 2 * needed > len(state.run_next):
        state = grown_arena(state, RUN_FIELDS, tables.RUN_FREE, 2 * needed)
    if counters[tables.EVENTS] >= len(state.event_next):
        state = grown_arena(state, EVENT_FIELDS, tables.EVENT_FREE, 1)
    if counters[tables.PAIR_FREE] == NIL:
        state = grown_arena(state, PAIR_FIELDS, tables.PAIR_FREE, 1)
        state = indexed(state)
    return state


def with_traces(state: RunState, traces: int) -> RunState:
    """The state with room for trace numbers below ``traces``."""
    if traces <= len(state.trace_pairs):
        return state
    larger = np.full(max(traces, 2 * len(state.trace_pairs)), NIL, np.int32)
    larger[: len(state.trace_pairs)] = state.trace_pairs
    return state._replace(trace_pairs=larger)


def indexed(state: RunState) -> RunState:
    """The state with a fresh index over its pairs."""
    size = 1 << max(6, (4 * len(state.pair_next) - 1).bit_length())
    state = state._replace(pair_slots=np.full(size, NIL, np.int32))
    rebuild_index(state)
    return state


def with_buckets(state: RunState, program: RunProgram) -> RunState:
    """The state with fresh buckets, one for each run that has room, filled with the parked runs."""
    size = 1 << (len(state.run_next) - 1).bit_length()
    state = state._replace(buckets=np.full(size, NIL, np.int32))
    fill_buckets(program, state)
    return state


def used_bytes(state: RunState) -> int:
    """Bytes in use, without free room."""
    parts = (
        (NODE_FIELDS, tables.NODES),
        (EVENT_FIELDS, tables.EVENTS),
        (RUN_FIELDS, tables.RUNS),
        (PAIR_FIELDS, tables.PAIRS),
    )
    used = [(int(state.counters[count]), fields) for fields, count in parts]
    return sum(number * sum(getattr(state, name)[:1].nbytes for name in fields) for number, fields in used if number)


def free_chain(first: int, size: int, *, then: tables.Int = NIL) -> NDArray[np.int32]:
    """Links of a free list: ``first`` to ``size`` - 1, one after the other."""
    links = np.arange(first + 1, size + 1, dtype=np.int32)
    links[-1:] = then
    return links


def grown_arena(state: RunState, fields: tuple[str, ...], free: int, needed: int) -> RunState:
    """The state with room for ``needed`` more elements in one arena, at the front of its free list."""
    old = len(getattr(state, fields[0]))
    size = max(2 * old, old + needed)
    grown: dict[str, Any] = {}
    for name in fields:
        array = getattr(state, name)
        grown[name] = np.zeros((size, *array.shape[1:]), array.dtype)
        grown[name][:old] = array
    grown[fields[0]][old:] = free_chain(old, size, then=int(state.counters[free]))
    for name in ("run_kind", "pair_pattern", "pair_parked"):
        if name in grown:
            grown[name][old:] = NIL
    state.counters[free] = old
    return state._replace(**grown)


def runs_of(state: RunState, pair: int) -> list[int]:
    """The runs of a pair, newest first."""
    found, run = [], int(state.pair_runs[pair])
    while run != NIL:
        found.append(run)
        run = int(state.run_next[run])
    return found
