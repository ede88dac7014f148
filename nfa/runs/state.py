"""The memory for the runs of one shard: creation, growth, size, and conversion for other patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nfa.arena import grown
from nfa.kernels.runs import tables
from nfa.kernels.runs.tables import NIL, RunProgram, RunState
from nfa.runs.program import CompiledRuns
from nfa.runs.upkeep import close_pair, fill_buckets, rebuild_index
from streams import zeros_of

_LEAST = 16  # small, as there may be thousands of empty engines
_NIL = ("run_kind", "pair_parked", "pair_pattern")


class Arena(NamedTuple):
    """The arrays of one kind of element: nodes, events, runs or pairs.

    Attributes:
        fields: Names of the arrays in ``RunState``. The first array also holds the links of the free list.
        free: Index of the counter with the head of the free list.
        used: Index of the counter with the number of elements.
    """

    fields: tuple[str, ...]
    free: int
    used: int


def _fields(*prefixes: str) -> tuple[str, ...]:
    return tuple(name for name in RunState._fields if name.startswith(prefixes) and name != "pair_slots")


ARENAS: Mapping[str, Arena] = {
    "node": Arena(_fields("node_"), tables.NODE_FREE, tables.NODES),
    "event": Arena(_fields("event_"), tables.EVENT_FREE, tables.EVENTS),
    "run": Arena(_fields("run_", "bucket_"), tables.RUN_FREE, tables.RUNS),
    "pair": Arena(_fields("pair_"), tables.PAIR_FREE, tables.PAIRS),
}
"""The arenas of ``RunState``. The key of an arena is the first word of the names of its arrays."""


def new_state(*, columns: int, leads: int, width: int) -> RunState:
    """Return empty state for conditions that read ``columns`` attributes of events.

    ``leads`` and ``width`` are as in ``CompiledRuns``.
    """
    nil = {name: np.full(_LEAST, NIL, np.int32) for name in (*_NIL, "buckets", "trace_pairs")}
    free = {arena.fields[0]: free_chain(0, _LEAST) for arena in ARENAS.values()}
    return zeros_of(
        RunState,
        _LEAST,
        **nil,
        **free,
        event_kinds=(_LEAST, columns),
        event_values=(_LEAST, columns),
        run_bits=(_LEAST, tables.N_BITS),
        pair_leads=(_LEAST, leads, 2),
        pair_slots=np.full(4 * _LEAST, NIL, np.int32),
        counters=tables.N_COUNTERS,
        now=tables.N_NOW,
        scratch=width + 1,
    )


def emptied(state: RunState, compiled: CompiledRuns) -> RunState:
    """Return empty state for other patterns. Counters that do not depend on runs keep their values."""
    fresh = new_state(columns=len(compiled.columns), leads=compiled.leads, width=compiled.width)
    for counted in (tables.PEAK_EVENTS, tables.RELEASED):
        fresh.counters[counted] = state.counters[counted]
    return fresh


def with_room(state: RunState, needed: int) -> RunState:
    """Return the state with room for ``needed`` more nodes, twice as many more runs, and one more event and pair."""
    counters = state.counters
    if counters[tables.NODES] + needed > len(state.node_parent):
        state = grown_arena(state, "node", needed)
    if counters[tables.RUNS] + 2 * needed > len(state.run_next):
        state = grown_arena(state, "run", 2 * needed)
    if counters[tables.EVENTS] >= len(state.event_next):
        state = grown_arena(state, "event", 1)
    if counters[tables.PAIR_FREE] == NIL:
        state = indexed(grown_arena(state, "pair", 1))
    return state


def with_traces(state: RunState, traces: int) -> RunState:
    """Return the state with room for trace numbers below ``traces``."""
    if traces <= len(state.trace_pairs):
        return state
    size = max(traces, 2 * len(state.trace_pairs))
    return state._replace(trace_pairs=grown(state.trace_pairs, size, int(NIL)))


def indexed(state: RunState) -> RunState:
    """Return the state with a new index of its pairs."""
    size = 1 << max(6, (4 * len(state.pair_next) - 1).bit_length())
    state = state._replace(pair_slots=np.full(size, NIL, np.int32))
    rebuild_index(state)
    return state


def with_buckets(state: RunState, program: RunProgram) -> RunState:
    """Return the state with new buckets for the parked runs, by the hash of their state and value.

    There is at least one bucket for each run.
    """
    size = 1 << (len(state.run_next) - 1).bit_length()
    state = state._replace(buckets=np.full(size, NIL, np.int32))
    fill_buckets(program, state)
    return state


def used_bytes(state: RunState) -> int:
    """Return the memory in use for runs in bytes. Spare capacity does not count."""
    used = [(int(state.counters[arena.used]), arena.fields) for arena in ARENAS.values()]
    return sum(number * sum(getattr(state, name)[:1].nbytes for name in fields) for number, fields in used if number)


def free_chain(first: int, size: int, *, then: tables.Int = NIL) -> NDArray[np.int32]:
    """Return the links of a free list of the elements ``first`` to ``size`` - 1. The last link is ``then``."""
    links = np.arange(first + 1, size + 1, dtype=np.int32)
    links[-1:] = then
    return links


def grown_arena(state: RunState, kind: str, needed: int) -> RunState:
    """Return the state with room for ``needed`` more elements of one kind.

    The new elements come first in the free list.
    """
    fields, free, _ = ARENAS[kind]
    old = len(getattr(state, fields[0]))
    size = max(2 * old, old + needed)
    arrays = {name: grown(getattr(state, name), size, int(NIL) if name in _NIL else 0) for name in fields}
    arrays[fields[0]][old:] = free_chain(old, size, then=int(state.counters[free]))
    state.counters[free] = old
    return state._replace(**arrays)


def runs_of(state: RunState, pair: int) -> list[int]:
    """Return the runs of a pair, newest first."""
    runs, run = [], int(state.pair_runs[pair])
    while run != NIL:
        runs.append(run)
        run = int(state.run_next[run])
    return runs


def migrated(state: RunState, old: CompiledRuns, new: CompiledRuns, sources: Sequence[int]) -> RunState:
    """Return the state for other patterns, whose tables are ``new``. Runs of removed patterns are released.

    ``sources`` has, for each new pattern, its old number or ``NIL``.
    """
    numbers = np.full(len(old.automata) + 1, NIL, np.int32)
    states = np.full(len(old.program.accepts), NIL, np.int32)
    steps = np.full(len(old.program.source), NIL, np.int32)
    for number, source in enumerate(sources):
        if source != NIL:
            numbers[source] = number
            for moved, of_compiled in ((states, _states_of), (steps, _steps_of)):
                first, last = of_compiled(old, source)
                target, _ = of_compiled(new, number)
                moved[first:last] = np.arange(target, target + last - first)
    for pair in np.flatnonzero(state.pair_pattern != NIL).tolist():
        if numbers[state.pair_pattern[pair]] == NIL:
            close_pair(state, pair)
    used = state.run_kind != NIL
    state.run_state[used] = states[state.run_state[used]]
    bound = state.node_references > 0
    state.node_step[bound] = steps[state.node_step[bound]]
    is_used = state.pair_pattern != NIL
    state.pair_pattern[is_used] = numbers[state.pair_pattern[is_used]]
    leads = np.full((len(state.pair_next), new.leads, 2), tables.EARLIEST, np.int64)
    shared = min(new.leads, old.leads)
    leads[:, :shared] = state.pair_leads[:, :shared]
    kinds = np.zeros((len(state.event_next), len(new.columns)), np.uint8)
    values = np.zeros((len(state.event_next), len(new.columns)), np.int64)
    for number, leaf in enumerate(new.columns.leaves):
        if leaf in old.columns.leaves:
            kinds[:, number] = state.event_kinds[:, old.columns.number(leaf)]
            values[:, number] = state.event_values[:, old.columns.number(leaf)]
    scratch = np.zeros(new.width + 1, np.int64)
    state = state._replace(pair_leads=leads, event_kinds=kinds, event_values=values, scratch=scratch)
    return indexed(state)


def _states_of(compiled: CompiledRuns, pattern: int) -> tuple[int, int]:
    first, last = compiled.program.state_from[pattern : pattern + 2].tolist()
    return first, last


def _steps_of(compiled: CompiledRuns, pattern: int) -> tuple[int, int]:
    first, last = _states_of(compiled, pattern)
    steps = compiled.program.step_from
    return int(steps[first]), int(steps[last])
