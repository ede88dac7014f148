"""Conversion of the run engine's state to dense arrays for a snapshot, and back. Restoring checks every link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.texts import TextPool
from nfa.conditions.values import NULL, TEXT
from nfa.errors import StateFormatError
from nfa.kernels.runs import tables
from nfa.kernels.runs.tables import EARLIEST, LATEST, NIL, RunProgram, RunState
from nfa.runs import state as run_state
from nfa.runs.program import CompiledRuns
from nfa.traces.table import checked

Arrays = Mapping[str, NDArray[Any]]

_SAVED = (
    *("node_parent", "node_event", "node_step", "node_direct"),
    *("event_sequence", "event_time", "event_kinds", "event_values"),
    *("run_node", "run_kind", "run_finish", "run_muted", "run_how"),
    *("run_start", "run_lead", "run_due", "run_bits", "run_bits_order"),
    *("pair_trace", "pair_pattern", "pair_count", "pair_finished", "pair_told", "pair_work", "pair_leads"),
)
"""The saved arrays of ``RunState``; their names begin with the kind of element."""

_SIZED_BY = {"node": "node_parent", "event": "event_time", "run": "run_node", "pair": "pair_trace"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds for the numbers in a snapshot: the number of open traces, and the number of events so far."""

    traces: int
    sequences: int
    is_simultaneous: bool


def saved(
    state: RunState, compiled: CompiledRuns, texts: TextPool, last_times: NDArray[np.int64], traces: NDArray[np.int32]
) -> dict[str, NDArray[Any]]:
    """Return the state as one-dimensional arrays of pairs, runs, nodes, events and texts.

    Runs are in the order of their pairs. Parents precede children among the nodes. The order of nodes and events does
    not depend on the cut of the input into batches. ``last_times`` has the time of the last event for each trace
    number. ``traces`` maps old to new trace numbers.
    """
    pairs = _pairs_in_order(state)
    runs = np.array([run for pair in pairs.tolist() for run in run_state.runs_of(state, pair)], np.int64)
    nodes = _by_length(state, runs)
    events = _by_sequence(state, nodes)
    numbers_by_kind = {"node": nodes, "event": events, "run": runs, "pair": pairs}
    node_numbers, event_numbers = _numbers(nodes, len(state.node_parent)), _numbers(events, len(state.event_next))
    arrays: dict[str, NDArray[Any]] = {name: getattr(state, name)[numbers_by_kind[_kind_of(name)]] for name in _SAVED}
    arrays["run_node"] = node_numbers[arrays["run_node"]]
    arrays["node_parent"] = node_numbers[arrays["node_parent"]]
    arrays["node_event"] = event_numbers[arrays["node_event"]]
    arrays["pair_last_us"] = last_times[arrays["pair_trace"]]
    arrays["pair_trace"] = traces[arrays["pair_trace"]]
    arrays["text_offsets"], arrays["text_bytes"] = texts.dump()
    arrays["peak"] = state.counters[[tables.PEAK_EVENTS]]
    assert len(compiled.columns) == arrays["event_kinds"].shape[1]
    return {f"run_{name}": np.ascontiguousarray(array).reshape(-1) for name, array in arrays.items()}


def restored(
    arrays: Arrays, compiled: CompiledRuns, texts: TextPool, bounds: Bounds
) -> tuple[RunState, NDArray[np.int64]]:
    """Return the saved state, and the time of the last event for each trace number.

    Texts of bound events are interned in ``texts``. Arrays of another type or length, links out of range and wrong
    counts are rejected. Arrays of other parts of a snapshot are ignored.
    """
    state = run_state.new_state(columns=len(compiled.columns), leads=compiled.leads, width=compiled.width)
    state_arrays = _read(arrays, state)
    _check_pairs(state_arrays, compiled, bounds)
    _check_chains(state_arrays, compiled, bounds)
    _check_runs(state_arrays, compiled)
    offsets, content = checked(arrays, "run_text_offsets", np.int64), checked(arrays, "run_text_bytes", np.uint8)
    _renumber_texts(state_arrays, texts, TextPool.load(offsets, content))
    program = compiled.program
    state_arrays["node_atom"] = program.atom[state_arrays["node_step"]]
    state_arrays["run_state"] = program.target[state_arrays["node_step"][state_arrays["run_node"]]]
    state_arrays["node_length"], first = _lengths(state_arrays), _firsts(state_arrays)
    state_arrays["run_first"], state_arrays["run_end"] = (
        state_arrays["event_sequence"][first],
        _ends(state_arrays, first, program),
    )
    state_arrays["event_order"] = (
        state_arrays["event_time"] if bounds.is_simultaneous else state_arrays["event_sequence"]
    )
    for kind, (fields, free, used) in run_state.ARENAS.items():
        size = len(state_arrays[_SIZED_BY[kind]])
        state = run_state.grown_arena(state, kind, size)
        links = getattr(state, fields[0])
        links[:size], links[size:] = NIL, run_state.free_chain(size, len(links))
        state.counters[free] = state.counters[used] = size
    for name, array in state_arrays.items():
        if name in RunState._fields:
            getattr(state, name)[: len(array)] = array
    for name, target in (("node_parent", "node"), ("run_node", "node"), ("node_event", "event")):
        values = state_arrays[name]
        np.add.at(getattr(state, f"{target}_references"), values[values != NIL], 1)
    state.counters[tables.PEAK_EVENTS] = checked(arrays, "run_peak", np.int64)[:1].sum()
    state = run_state.with_traces(state, bounds.traces)
    last_times = np.zeros(bounds.traces, np.int64)
    last_times[state_arrays["pair_trace"]] = state_arrays["pair_last_us"]
    _link_lists(state, state_arrays)
    return run_state.indexed(state), last_times


def _pairs_in_order(state: RunState) -> NDArray[np.int64]:
    """Return the pairs sorted by trace. The pairs of a trace are in the order of their creation."""
    pairs: list[int] = []
    for first in state.trace_pairs[state.trace_pairs != NIL].tolist():
        trace_pairs, pair = [], first
        while pair != NIL:
            trace_pairs.append(pair)
            pair = int(state.pair_next[pair])
        pairs += reversed(trace_pairs)
    return np.array(pairs, np.int64)


def _by_length(state: RunState, runs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of the nodes in use, parents before children, in an order that depends only on the runs.

    Among nodes with chains of equal length, the nodes of older runs are first.
    """
    used = np.flatnonzero(state.node_references > 0)
    oldest = np.full(len(state.node_parent), NIL, np.int64)  # the runs of a pair are saved newest first
    np.maximum.at(oldest, state.run_node[runs], np.arange(len(runs)))
    lengths = state.node_length[used]
    order = np.argsort(lengths, kind="stable")
    for nodes in reversed(np.split(used[order], np.flatnonzero(np.diff(lengths[order])) + 1)[1:]):
        np.maximum.at(oldest, state.node_parent[nodes], oldest[nodes])
    return used[np.lexsort((-oldest[used], lengths))]


def _by_sequence(state: RunState, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of the events that ``nodes`` bind, in the order of their sequence numbers, then of nodes."""
    events, places = np.unique(state.node_event[nodes], return_index=True)
    return events[np.lexsort((places, state.event_sequence[events]))].astype(np.int64)


def _numbers(used: NDArray[np.int64], size: int) -> NDArray[np.int32]:
    """Return an array that maps the old number ``used[i]`` to ``i``, and all other numbers to ``NIL``."""
    numbers = np.full(size + 1, NIL, np.int32)
    numbers[used] = np.arange(len(used), dtype=np.int32)
    return numbers


def _kind_of(name: str) -> str:
    return name.partition("_")[0]


def _read(arrays: Arrays, state: RunState) -> dict[str, NDArray[Any]]:
    if "run_pair_work" not in arrays:  # the release that saved the state did not count work
        arrays = {**arrays, "run_pair_work": np.zeros(len(checked(arrays, "run_pair_trace", np.int32)), np.int64)}
    forms = {name: getattr(state, name)[:0] for name in _SAVED} | {"pair_last_us": np.zeros(0, np.int64)}
    flat = {name: checked(arrays, f"run_{name}", form.dtype.type) for name, form in forms.items()}
    shaped_arrays = {}
    for name, form in forms.items():
        shape = (len(flat[_SIZED_BY[_kind_of(name)]]), *form.shape[1:])
        if flat[name].size != int(np.prod(shape)):
            raise StateFormatError(f"saved state: run_{name} has {flat[name].size} values instead of {shape}")
        shaped_arrays[name] = flat[name].reshape(shape).copy()
    return shaped_arrays


def _check(name: str, values: NDArray[Any], least: NDArray[Any] | tables.Int, end: NDArray[Any] | tables.Int) -> None:
    if np.any(values < least) or np.any(values >= end):
        raise StateFormatError(f"saved state: run_{name} refers to an entry that does not exist")


def _check_pairs(arrays: Arrays, compiled: CompiledRuns, bounds: Bounds) -> None:
    patterns = len(compiled.automata)
    _check("pair_pattern", arrays["pair_pattern"], 0, patterns)
    _check("pair_trace", arrays["pair_trace"], 0, bounds.traces)
    _check("pair_count", arrays["pair_count"], 0, len(arrays["run_node"]) + 1)
    _check("pair_told", arrays["pair_told"], tables.UNASKED, tables.HAS_REPORTED + 1)
    if np.any(arrays["pair_work"] < 0):
        raise StateFormatError("saved state: run_pair_work is negative")
    if np.any(arrays["pair_count"][arrays["pair_work"] == tables.LATEST]):
        raise StateFormatError("saved state: a trace holds runs of a pattern for which it was given up")
    keys = arrays["pair_trace"].astype(np.int64) * max(patterns, 1) + arrays["pair_pattern"]
    if len(np.unique(keys)) < len(keys):
        raise StateFormatError("saved state: a trace holds a pattern's runs twice")
    if int(arrays["pair_count"].sum()) != len(arrays["run_node"]):
        raise StateFormatError("saved state: traces hold another number of runs than there are")


def _check_chains(arrays: Arrays, compiled: CompiledRuns, bounds: Bounds) -> None:
    """Check that every chain follows transitions of one automaton, beginning in its start state."""
    program, steps, parents = compiled.program, arrays["node_step"], arrays["node_parent"]
    _check("node_parent", parents, NIL, np.arange(len(parents)))
    _check("node_event", arrays["node_event"], 0, len(arrays["event_time"]))
    _check("node_step", steps, 0, len(program.source))
    _check("event_sequence", arrays["event_sequence"], 0, bounds.sequences)
    _check("event_kinds", arrays["event_kinds"], 0, TEXT + 1)
    if len(np.unique(arrays["node_event"])) < len(arrays["event_time"]):
        raise StateFormatError("saved state: an event is held that nothing binds")
    is_first = np.isin(program.source, program.state_from[:-1])
    has_parent = parents != NIL
    before = program.target[steps[parents[has_parent]]]
    if np.any(program.source[steps[has_parent]] != before) or not is_first[steps[~has_parent]].all():
        raise StateFormatError("saved state: the events of a run follow no path of its pattern")


def _lengths(arrays: Arrays) -> NDArray[np.int32]:
    """Return, for each node, the length of the chain that ends at the node. Parents must precede children."""
    lengths = np.ones(len(arrays["node_parent"]) + 1, np.int32)
    for node, parent in enumerate(arrays["node_parent"].tolist()):
        lengths[node] = 1 if parent == NIL else lengths[parent] + 1
    return lengths[:-1]


def _firsts(arrays: Arrays) -> NDArray[np.int64]:
    """Return the earliest event of each run. Among events of equal time, the event that was bound first counts."""
    events, parents, times = (arrays[name].tolist() for name in ("node_event", "node_parent", "event_time"))
    first: list[int] = []
    for event, parent in zip(events, parents, strict=True):
        is_later = parent != NIL and times[first[parent]] <= times[event]
        first.append(first[parent] if is_later else event)
    return np.array([first[node] for node in arrays["run_node"].tolist()], np.int64)


def _ends(arrays: Arrays, first: NDArray[np.int64], program: RunProgram) -> NDArray[np.int64]:
    """Return the end of the window of each run, as ``kernels.runs.windows`` computes it."""
    patterns = np.repeat(arrays["pair_pattern"], arrays["pair_count"])
    within, column = program.within[patterns], program.deadline[patterns]
    is_endless, is_business = within == LATEST, column != NIL
    ends = np.where(is_endless, LATEST, arrays["event_time"][first] + np.where(is_endless, 0, within))
    if is_business.any():
        read = first[is_business], column[is_business]
        ends[is_business] = np.where(arrays["event_kinds"][read] == NULL, LATEST, arrays["event_values"][read])
    return ends


def _check_runs(arrays: Arrays, compiled: CompiledRuns) -> None:
    program, kinds = compiled.program, arrays["run_kind"]
    _check("run_node", arrays["run_node"], 0, len(arrays["node_parent"]))
    _check("run_kind", kinds, tables.ACTIVE, tables.REPORTED + 1)
    _check("run_how", arrays["run_how"], tables.NOT_WAITED, tables.BY_CONSTRAINT + 1)
    used = np.union1d(arrays["run_node"], arrays["node_parent"][arrays["node_parent"] != NIL])
    if len(used) < len(arrays["node_parent"]):
        raise StateFormatError("saved state: an event is bound in no run")
    states = program.target[arrays["node_step"][arrays["run_node"]]]
    patterns = np.searchsorted(program.state_from, states, side="right") - 1
    if np.any(patterns != np.repeat(arrays["pair_pattern"], arrays["pair_count"])):
        raise StateFormatError("saved state: a run belongs to another pattern than its trace says")
    is_complete = np.isin(kinds, (tables.PENDING, tables.DECIDED, tables.REPORTED))
    is_complete |= (kinds == tables.SPENT) & (arrays["run_due"] != EARLIEST)
    finishes = np.where(is_complete, np.diff(program.finish_from)[states], 1)
    _check("run_finish", arrays["run_finish"], 0, finishes)
    if np.any(np.isin(kinds, (tables.DECIDED, tables.SPENT)) & (program.flags[patterns] == 0)):
        raise StateFormatError("saved state: a match waits for nothing")


def _renumber_texts(arrays: dict[str, NDArray[Any]], texts: TextPool, old: TextPool) -> None:
    is_text = arrays["event_kinds"] == TEXT
    numbers = arrays["event_values"][is_text]
    _check("event_values", numbers, 0, len(old))
    used = np.unique(numbers)
    moved = np.zeros(len(old), np.int64)
    moved[used] = texts.intern_all(old.text(number) for number in used.tolist())
    arrays["event_values"][is_text] = moved[numbers]


def _link_lists(state: RunState, arrays: Arrays) -> None:
    place = 0
    for pair, (count, trace) in enumerate(
        zip(arrays["pair_count"].tolist(), arrays["pair_trace"].tolist(), strict=True)
    ):
        state.pair_runs[pair] = place if count else NIL
        state.run_next[place : place + count] = np.arange(place + 1, place + count + 1)
        if count:
            state.run_next[place + count - 1] = NIL
        place += count
        state.pair_due[pair] = EARLIEST  # examined when time passes next
        state.pair_is_loose[pair] = True
        state.pair_parked_due[pair] = LATEST
        state.pair_next[pair] = state.trace_pairs[trace]
        state.trace_pairs[trace] = pair
