"""The shared-node engine, for patterns whose partial matches share nodes and need no memory of their own.

The engine runs ``SEQ``, ``AND``, ``OR``, optional and repeated steps with gaps ANY and conditions on single events. It
also runs plain sequences of atoms with gaps NEXT. WITHIN is allowed in both. The method is described in
``kernels.shared``, and the reason for it in ADR 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.arena import grown, power_above
from nfa.conditions.filter_index import NO_CELL, FilterIndex
from nfa.errors import StateFormatError
from nfa.kernels.shared import packing, upkeep
from nfa.kernels.shared import tables as kernel
from nfa.kernels.shared import visits as matching
from nfa.kernels.shared.tables import NIL, Matching, Output, Packed, Program, SharedState, Tables, Visited
from nfa.kernels.traces import Columns, Guards
from nfa.results.found import MatchTable, without_repeats
from nfa.shared import viewing
from nfa.traces.table import Visits, checked
from streams import zeros_of

MOST_ALIASES = kernel.ALIAS_MASK + 1
MOST_EVENTS = 1 << (63 - kernel.EVENT_BITS)

_LEAST_NODES = 64  # small, as there may be thousands of empty engines
_LEAST_SWEEP = 1_024
_MOST = 2**62  # limit of saved counters
_ROOM = 64  # initial size of each array of results, which is doubled on demand
_COPIED = 1 << 14  # below this number of matches, results are copied and the buffers are reused
_OF_MATCHES = ("match_row", "match_trace", "match_pattern", "match_end")
_OF_EVENTS = ("bound_alias", "bound_sequence")
_COUNTED = (kernel.MATCHES, kernel.ENDINGS, kernel.OVERFLOW)
_SAVED = (kernel.PEAK_HELD, kernel.MATCHES, kernel.ENDINGS, kernel.OVERFLOW, kernel.SWEEP_AT, kernel.SWEEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTransition:
    """A transition of a pattern from one state to another by an event of a type.

    Attributes:
        source: State within the pattern. State 0 is the start.
        predicate: Row of ``Columns.passed`` that must be true for the event.
        accepts: Whether the transition completes a match.
        goes_on: Whether a partial match in ``target`` can still bind events.
        cell: Cell of the filter index to which the event must belong. With ``NO_CELL``, any event of the type can take
            the transition.
    """

    type_code: int
    source: int
    target: int
    alias: int
    predicate: int
    accepts: bool
    goes_on: bool
    cell: int = NO_CELL


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPattern:
    """A pattern compiled for the shared-node engine.

    Attributes:
        terms: For each state, a bit set of the terms that a partial match in the state can still complete.
        depth: The progress of each state. An early termination names the dead state with the greatest progress.
        transitions: The transitions, in any order. A transition for several types occurs once per type.
        limit: Maximum number of matches emitted per trace and event. Further matches are only counted.
        may_repeat: Whether two paths may bind the same events to the same aliases. Equal matches are then emitted once.
    """

    states: int
    terms: Sequence[int]
    depth: Sequence[int]
    transitions: Sequence[SharedTransition]
    within_us: int = 0
    is_next: bool = False
    limit: int = 10_000
    may_repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Results of a batch, in the order of its rows.

    Attributes:
        matches: The matches, each with the row of the event that completes it.
        endings: The early terminations (n, 5): row, pattern, monitor before, monitor after, dead state. The dead state
            is the one with the greatest progress, as a column of ``Guards.live``. Each (trace, pattern) entry has at
            most one early termination, at the first event after which the pattern can no longer complete.
        dropped: The losses (n, 3): row, pattern, number of matches beyond the limit.
    """

    matches: MatchTable
    endings: NDArray[np.int64]
    dropped: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStats:
    """Counters of the shared-node engine so far.

    Attributes:
        held: Number of bound events. An event counts once per pattern. Expired events count until they are released.
        pairs: Number of (trace, pattern) entries with bound events.
        state_bytes: Bytes in use, without spare capacity.
    """

    held: int
    peak_held: int
    pairs: int
    nodes: int
    matches: int
    endings: int
    overflow: int
    state_bytes: int


class SharedEngine:
    """The engine that matches patterns in the traces of one shard. Trace numbers are those of a ``TraceTable``."""

    def __init__(self) -> None:
        self._patterns: tuple[SharedPattern | None, ...] = ()
        self._repeating: list[int] = []
        self._program = _program_of((), np.zeros(1, np.int32), 1, FilterIndex())
        self._state = _new_state(timed=False)
        self._output = _new_output(1)

    def configure(
        self,
        patterns: Sequence[SharedPattern | None],
        sources: Sequence[int],
        *,
        state_range: NDArray[np.int32],
        types: int,
        index: FilterIndex | None = None,
    ) -> None:
        """Replace the running patterns. A pattern is None if another engine runs it.

        ``sources`` has, for each pattern, the previous number of the pattern with the same states, or ``NIL`` for a new
        pattern. ``state_range`` (patterns + 1) has the first column of each pattern's states in ``Guards.live``.
        ``types`` is the number of type codes. ``index`` is the filter index with the cells of transitions. Without an
        index there are no cells.
        """
        if any(step.alias >= MOST_ALIASES for pattern in patterns if pattern for step in pattern.transitions):
            raise ValueError(f"a pattern has more than {MOST_ALIASES} aliases")
        numbers = np.full(max(len(self._patterns), 1), NIL, np.int32)
        for number, source in enumerate(sources):
            if source != NIL and patterns[number] is not None:
                numbers[source] = number
        timed = any(pattern is not None and pattern.within_us for pattern in patterns)
        if self._state.counters[kernel.PAIRS]:
            upkeep.keep_patterns(self._program, self._state, numbers)
            upkeep.fill_index(self._state)
        if timed != bool(len(self._state.times)):
            self._state = self._state._replace(times=np.zeros(len(self._state.nodes) if timed else 0, np.int64))
        self._patterns = tuple(patterns)
        self._repeating = [number for number, pattern in enumerate(patterns) if pattern and pattern.may_repeat]
        self._program = _program_of(self._patterns, state_range, types, index or FilterIndex())
        largest = max((pattern.states for pattern in self._patterns if pattern), default=1)
        classes = (kernel.HEADER + largest - 1) // kernel.UNIT + 2
        if classes > len(self._state.block_free):
            free = grown(self._state.block_free, classes, NIL)
            self._state = self._state._replace(block_free=free)
        self._output = _new_output(_largest_group(self._program))

    def process(
        self,
        visits: Visits,
        columns: Columns,
        clocks: NDArray[np.int64],
        guards: Guards,
        *,
        first_sequence: int,
        released: NDArray[np.int32],
    ) -> Findings:
        """Match the relevant rows of a batch, and return the results. When a trace ends, its data are released.

        The tables of ``guards`` must cover the batch. ``clocks`` has, for each row, the newest time of all traces up to
        the row. ``released`` is ``TraceTable.released``, which the engine updates.
        """
        if len(released) > len(self._state.trace_first):
            self._state = self._state._replace(trace_first=grown(self._state.trace_first, len(released), NIL))
        visited = Visited(
            rows=visits.rows,
            traces=visits.traces,
            before=visits.before,
            after=visits.after,
            kill=visits.kill,
            ends=visits.ends,
            types=columns.types,
            times=columns.times,
            clocks=clocks,
            passed=columns.passed,
            cells=columns.cells,
            released=released,
        )
        tables = Tables(*(getattr(guards, name) for name in Tables._fields))
        self._output.filled[:4] = 0
        visit: kernel.Int = 0
        transition: kernel.Int = NIL
        picked = np.empty(kernel.BLOCK, np.int32)
        while True:
            arrays = Matching(self._program, tables, self._state, visited, self._output)
            status, visit, transition = matching.match_visits(arrays, picked, first_sequence, visit, transition)
            if status == kernel.DONE:
                break
            self._supply(int(status), len(guards.kills))
        return self._findings(columns.times)

    def held_sequences(self) -> NDArray[np.int64]:
        """Return the sequence numbers of the bound events, in any order and with duplicates."""
        used = self._state.links[:, kernel.REFERENCES] != 0
        sequences: NDArray[np.int64] = self._state.nodes[used, kernel.EVENT] >> kernel.EVENT_BITS
        return sequences

    def held_traces(self, capacity: int) -> NDArray[np.bool_]:
        held = np.zeros(capacity, np.bool_)
        firsts = self._state.trace_first[:capacity]
        held[: len(firsts)] = firsts != NIL
        return held

    def held_pairs(self, now_us: int) -> NDArray[np.int64]:
        return viewing.held_pairs(self._program, self._state, self._output, now_us)

    def chain(self, node: int, pattern: int, now_us: int) -> list[tuple[int, int]]:
        """Return the events of a partial match, oldest first, each as (alias number, sequence number).

        ``node`` is a newest node, from ``held_pairs``. Of the partial matches that end there, the newest is chosen.
        """
        return viewing.newest_chain(self._state, node, int(self._program.within[pattern]), now_us)

    def take_released(self) -> int:
        released = int(self._state.counters[kernel.RELEASED])
        self._state.counters[kernel.RELEASED] = 0
        return released

    def restart_peak(self) -> None:
        self._state.counters[kernel.PEAK_HELD] = self._state.counters[kernel.HELD]

    @property
    def counts(self) -> tuple[int, int, int]:
        """The numbers of matches, early terminations and overflow so far. Callers may set them."""
        matches, endings, overflow = self._state.counters[list(_COUNTED)].tolist()
        return matches, endings, overflow

    @counts.setter
    def counts(self, counts: tuple[int, int, int]) -> None:
        self._state.counters[list(_COUNTED)] = counts

    @property
    def stats(self) -> SharedStats:
        counters = self._state.counters
        per_node = 32 + (8 if len(self._state.times) else 0)
        used = counters[kernel.NODES] * per_node + 4 * counters[kernel.USED_WORDS] + 16 * counters[kernel.INDEXED]
        return SharedStats(
            held=int(counters[kernel.HELD]),
            peak_held=int(counters[kernel.PEAK_HELD]),
            pairs=int(counters[kernel.PAIRS]),
            nodes=int(counters[kernel.NODES]),
            matches=int(counters[kernel.MATCHES]),
            endings=int(counters[kernel.ENDINGS]),
            overflow=int(counters[kernel.OVERFLOW]),
            state_bytes=int(used),
        )

    def dump_arrays(self, traces: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays with dense new numbers. ``traces`` maps old to new trace numbers."""
        counters = self._state.counters
        nodes, pairs = int(counters[kernel.NODES]), int(counters[kernel.PAIRS])
        timed = len(self._state.times) > 0
        heads = int(packing.count_heads(self._program, self._state))
        times = nodes if timed else 0
        packed = zeros_of(Packed, pairs, heads=heads, links=(nodes, 3), words=(nodes, 2), times=times)
        numbers = np.empty(len(self._state.nodes), np.int32)
        packing.pack(self._program, self._state, traces, numbers, packed)
        arrays = {"counters": counters[list(_SAVED)], **packed._asdict()}
        return {f"shared_{name}": array.reshape(-1) for name, array in arrays.items()}

    def load_arrays(self, arrays: Mapping[str, NDArray[Any]], *, traces: int, sequences: int) -> None:
        """Restore the result of ``dump_arrays``. Call ``configure`` with the same patterns first.

        ``traces`` is the number of open traces. Sequence numbers of bound events must be below ``sequences``. Arrays of
        another type or length, links out of range and wrong counts are rejected.
        """
        packed, saved = _read_packed(arrays, timed=len(self._state.times) > 0)
        state = _new_state(
            timed=len(self._state.times) > 0,
            nodes=len(packed.words),
            pairs=len(packed.pair_trace),
            words=len(packed.pair_trace) * 2 * kernel.UNIT + 2 * len(packed.heads),
            traces=traces,
            classes=len(self._state.block_free),
        )
        state.counters[list(_SAVED)] = saved
        fault = self._unpack(state, packed, traces, sequences)
        if fault != kernel.SOUND:
            raise StateFormatError(f"saved state: {_FAULTS[fault]}")
        self._state = state

    def _unpack(self, state: SharedState, packed: Packed, traces: int, sequences: int) -> int:
        """Fill ``state`` from the packed arrays. Return the first fault in these arrays, or ``SOUND``."""
        aliases = int(self._program.alias.max(initial=-1)) + 1
        pairs = np.empty(len(packed.pair_trace), np.int32)
        fault = packing.unpack_pairs(self._program, state, packed, pairs, traces)
        if fault == kernel.SOUND:
            fault = packing.unpack_nodes(state, packed, sequences, aliases, len(self._output.taken))
        if fault == kernel.SOUND:
            fault = packing.count_held(state, np.zeros(len(packed.words), np.bool_))
        if fault == kernel.SOUND and not upkeep.link_pairs(state, pairs):
            fault = kernel.BAD_PAIR
        return int(fault)

    def _supply(self, status: int, kills: int) -> None:
        state, output = self._state, self._output
        if status == kernel.NODES_FULL:
            self._state = _with_more_nodes(state)
        elif status == kernel.BLOCKS_FULL:
            largest = kernel.UNIT * (len(state.block_free) + 1)
            self._state = state._replace(blocks=grown(state.blocks, 2 * len(state.blocks) + largest))
        elif status == kernel.PAIRS_FULL:
            self._state = state._replace(slots=np.zeros(2 * len(state.slots), np.uint64))
            upkeep.fill_index(self._state)
        elif status == kernel.MATCHES_FULL:
            self._output = output._replace(**{name: _doubled(getattr(output, name)) for name in _OF_MATCHES})
        elif status == kernel.BOUND_FULL:
            self._output = output._replace(**{name: _doubled(getattr(output, name)) for name in _OF_EVENTS})
        elif status == kernel.PATH_FULL:
            self._output = output._replace(path=_doubled(output.path), words=_doubled(output.words))
        elif status == kernel.ENDINGS_FULL:
            endings = grown(output.endings, 2 * len(output.endings) + kills)
            self._output = output._replace(endings=endings, dropped=_doubled(output.dropped))
        else:
            self._output = output._replace(memo=np.zeros((len(state.nodes), 3), np.int64))

    def _findings(self, times_us: NDArray[np.int64]) -> Findings:
        """Return the results in the output buffers.

        Large buffers are handed over and replaced, because copying them would cost more.
        """
        output = self._output
        matches, bound, endings, dropped = output.filled[:4].tolist()
        columns = {name: getattr(output, name)[:matches] for name in _OF_MATCHES}
        columns |= {name: getattr(output, name)[:bound] for name in _OF_EVENTS}
        if matches < _COPIED:
            columns = {name: array.copy() for name, array in columns.items()}
        else:
            self._output = output._replace(**{name: np.empty_like(getattr(output, name)) for name in columns})
        rows = columns["match_row"].astype(np.int64)
        every = MatchTable(
            patterns=columns["match_pattern"],
            rows=rows,
            detected_us=times_us[rows],
            ends=columns["match_end"],
            how=np.zeros(len(rows), np.int8),
            traces=columns["match_trace"],
            aliases=columns["bound_alias"],
            sequences=columns["bound_sequence"],
        )
        table = without_repeats(every, self._repeating)
        self._state.counters[kernel.MATCHES] -= len(every) - len(table)
        return Findings(matches=table, endings=output.endings[:endings].copy(), dropped=output.dropped[:dropped].copy())


_FAULTS = {
    kernel.BAD_PAIR: "a pair names a trace or pattern that is none, or stands twice, or holds nothing",
    kernel.BAD_HEAD: "the tops of stacks lead outside the nodes, or are not as many as the pairs' states",
    kernel.BAD_LINK: "a node's links lead nowhere or forward",
    kernel.BAD_SIBLING: "the nodes of an event are not linked in circles",
    kernel.BAD_EVENT: "a node binds an event that was not counted yet, or an alias or a clause that the pattern lacks",
    kernel.BAD_MEASURE: "the measures of nodes do not match their links",
    kernel.UNREACHED: "a node is reached by nothing",
}


def _program_of(
    patterns: Sequence[SharedPattern | None], state_range: NDArray[np.int32], types: int, index: FilterIndex
) -> Program:
    rows = sorted(
        (
            *(step.cell, step.type_code, number, step.source, step.target),
            *(step.alias, step.predicate, step.accepts, step.goes_on),
        )
        for number, pattern in enumerate(patterns)
        if pattern is not None
        for step in pattern.transitions
    )
    table = np.array(rows, np.int32).reshape(len(rows), 9)
    cells, table = np.ascontiguousarray(table[:, 0]), table[:, 1:]
    n_general = int(np.searchsorted(cells, NO_CELL, side="right"))
    groups = cells.astype(np.int64) * types + table[:, 0]
    groups = groups * (len(patterns) + 1) + table[:, 1]
    cell_begin, cell_end = index.ranges(cells)
    depth, terms = np.zeros(int(state_range[-1]), np.int32), np.zeros(int(state_range[-1]), np.uint32)
    for number, pattern in enumerate(patterns):
        if pattern is not None:
            depth[state_range[number] : state_range[number + 1]] = pattern.depth
            terms[state_range[number] : state_range[number + 1]] = pattern.terms
    columns = [np.ascontiguousarray(table[:, place]) for place in range(8)]
    return Program(
        listen=np.searchsorted(columns[0][:n_general], np.arange(types + 1)).astype(np.int32),
        cell_begin=cell_begin,
        cell_end=cell_end,
        group_end=np.searchsorted(groups, groups, side="right").astype(np.int32),
        pattern=columns[1],
        source=columns[2],
        target=columns[3],
        alias=columns[4],
        predicate=columns[5],
        accepts=columns[6] != 0,
        goes_on=columns[7] != 0,
        state_range=np.ascontiguousarray(state_range, np.int32),
        state_pattern=np.repeat(np.arange(len(patterns), dtype=np.int32), np.diff(state_range)),
        state_terms=terms,
        depth=depth,
        is_shared=np.array([pattern is not None for pattern in patterns], np.bool_),
        within=np.array([pattern.within_us if pattern else 0 for pattern in patterns], np.int64),
        is_next=np.array([pattern.is_next if pattern else False for pattern in patterns], np.bool_),
        limit=np.array([pattern.limit if pattern else 0 for pattern in patterns], np.int64),
    )


def _largest_group(program: Program) -> int:
    """Return the size of the largest group of transitions: those of one pattern with the same type and cell."""
    places = np.arange(len(program.group_end))
    return int((program.group_end - places).max(initial=1))


def _new_state(
    *, timed: bool, nodes: int = 0, pairs: int = 0, words: int = 0, traces: int = 0, classes: int = 2
) -> SharedState:
    room = power_above(nodes, _LEAST_NODES)
    memory = np.zeros((room, 4), np.int64)
    counters = np.zeros(kernel.N_COUNTERS, np.int64)
    counters[kernel.SWEEP_AT] = _LEAST_SWEEP
    return zeros_of(
        SharedState,
        power_above(4 * pairs, _LEAST_NODES),
        trace_first=np.full(traces, NIL, np.int32),
        blocks=max(words, 4 * _LEAST_NODES),
        block_free=np.full(classes, NIL, np.int32),
        nodes=memory,
        links=memory.view(np.int32),
        free=np.arange(room, dtype=np.int32),
        times=room if timed else 0,
        counters=counters,
    )


def _with_more_nodes(state: SharedState) -> SharedState:
    old = len(state.nodes)
    memory = grown(state.nodes, 2 * old)
    free = np.concatenate([state.free, np.arange(old, 2 * old, dtype=np.int32)])
    times = grown(state.times, 2 * old) if len(state.times) else state.times
    return state._replace(nodes=memory, links=memory.view(np.int32), free=free, times=times)


def _read_packed(arrays: Mapping[str, NDArray[Any]], *, timed: bool) -> tuple[Packed, NDArray[Any]]:
    saved = checked(arrays, "shared_counters", np.int64, len(_SAVED))
    if np.any(saved < 0) or np.any(saved > _MOST):
        raise StateFormatError("saved state: a counter of the shared engine is negative")
    traces = checked(arrays, "shared_pair_trace", np.int32)
    words = checked(arrays, "shared_words", np.int64)
    nodes = len(words) // 2
    packed = Packed(
        pair_trace=traces,
        pair_pattern=checked(arrays, "shared_pair_pattern", np.int32, len(traces)),
        pair_matched=checked(arrays, "shared_pair_matched", np.int32, len(traces)),
        heads=checked(arrays, "shared_heads", np.int32),
        links=checked(arrays, "shared_links", np.int32, 3 * nodes).reshape(nodes, 3),
        words=checked(arrays, "shared_words", np.int64, 2 * nodes).reshape(nodes, 2),
        times=checked(arrays, "shared_times", np.int64, nodes if timed else 0),
    )
    return packed, saved


def _new_output(transitions: int) -> Output:
    return zeros_of(
        Output,
        _ROOM,
        bound_alias=4 * _ROOM,
        bound_sequence=4 * _ROOM,
        endings=(_ROOM, kernel.ENDING_WIDTH),
        dropped=(_ROOM, 3),
        filled=5,
        path=(_ROOM, 3),
        taken=(max(transitions, 1), 2),
        memo=(0, 3),
    )


def _doubled(array: NDArray[Any]) -> NDArray[Any]:
    return grown(array, 2 * len(array))
