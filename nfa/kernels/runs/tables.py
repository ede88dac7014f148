"""Tables, state and constants of the run kernel.

Indices are int32, and ``NIL`` is -1. Times are int64 us. An event's *order* is its time under ``ties: simultaneous``
and its sequence number otherwise.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.conditions import Bindings, Stack

Int: TypeAlias = int | np.int32 | np.int64

NIL = np.int64(-1)  # a numpy integer, as numba types Python integers as literals
ANY, NEXT, STRICT = range(3)
EARLIEST = np.int64(np.iinfo(np.int64).min)
LATEST = np.int64(np.iinfo(np.int64).max)
ONE = np.uint64(1)
NOTHING = np.uint64(0)

# Status of the kernel.
DONE, NO_ROOM, FLUSH, CLOSE, FAIL, GIVEN_UP = range(6)

# Kinds of a run: a partial match; complete with undecided trailing conditions; decided, but not yet emitted; retained
# for the search for timeouts; emitted before its deadlines, because the forbidden events could no longer occur.
ACTIVE, PENDING, DECIDED, SPENT, REPORTED = np.arange(5)

# Decision of a match: by its last event; by time, or the next event under STRICT; by the trace's end; by a guard.
NOT_WAITED, BY_WINDOW, BY_TRACE_END, BY_CONSTRAINT = range(4)

# Values of RunState.pair_told: not needed by the guard's policy; no match emitted yet; a match was emitted.
UNASKED, NOT_REPORTED_YET, HAS_REPORTED = range(3)

# After-match rules (RunProgram.rule).
NO_RULE, ONCE_PER_KEY, SKIP_TO_NEXT, SKIP_PAST_LAST, SKIP_TO_FIRST, SKIP_TO_LAST = range(6)

# RunState.run_lead of a spent run. LIVES is used during the search for timeouts: a candidate not yet ruled out.
WAS_PART, WAS_MATCH, LIVES = range(3)

# RunMatches.what: a match; the retraction of an emitted match; a timeout.
MATCH, CORRECTION, TIMEOUT = np.arange(3)

# Reason of a suspension (column of Ended.lost): given up in too many traces; too much work in all traces.
BY_TRACES, BY_WORK = 1, 2

# Pattern flags.
ORDERED = 1  # matches with equal detection times are ranked before they are emitted
TIMEOUTS = 2

# Columns of RunState.run_bits. The bits of an even column are in force; the bits of the next column wait for an event
# of a later order. VETO is in force for the current order: gaps that a STRICT NOT closes even to simultaneous events.
MODE, NOT, UNTIL, PASSED, GREEDY, VETO = 0, 2, 4, 6, 8, 10
N_BITS = 11

# Indices of RunState.counters.
NODE_FREE, EVENT_FREE, RUN_FREE, PAIR_FREE, NODES, EVENTS, RUNS, PAIRS = range(8)
PEAK_EVENTS, FILLED, LISTENER, STOP_PAIR, NEEDED, KILLED, MARK, RELEASED = range(8, 16)
N_COUNTERS = 16

# Indices of RunState.now, which describes the current event. STEPS is the event's work for the current pair. If STEPS
# exceeds CEILING, the pattern is suspended and the remaining runs are not tested.
ROW, EVENT, TIME, ORDER, TRACE, PATTERN, BEFORE, AFTER, FRESH, WRITTEN, CAPPED, LOST, BUDGET, READY, HEARD, STEPS = (
    range(16)
)
CEILING = 16
CLOCK = 17  # newest time so far, including the event: later than TIME if the event is out of order
N_NOW = 18


class RunProgram(NamedTuple):
    """The compiled patterns.

    The steps of state ``i`` are ``step_from[i] : step_from[i + 1]``. The other ``_from`` arrays have the same form.
    """

    is_simultaneous: NDArray[np.bool_]  # one value
    listen_from: NDArray[np.int32]  # by type code
    cell_begin: NDArray[np.int32]  # by cell of the filter index: ranges of listeners, after those by type code
    cell_end: NDArray[np.int32]
    listeners: NDArray[np.int32]  # patterns
    hear_from: NDArray[np.int32]  # by listener: range of the steps of this type from states whose runs are parked
    hear_step: NDArray[np.int32]
    state_from: NDArray[np.int32]  # by pattern
    within: NDArray[np.int64]  # by pattern, us; LATEST: no WITHIN
    deadline: NDArray[np.int32]  # by pattern: column of an event with the end of the window it starts; NIL: none
    flags: NDArray[np.int32]  # by pattern
    where: NDArray[np.int32]  # by pattern: condition
    rule: NDArray[np.int32]  # by pattern: after-match rule
    rule_atoms: NDArray[np.uint64]  # by pattern: atoms of the alias of SKIP TO, as bits
    most: NDArray[np.int64]  # by pattern: LIMIT; LATEST: no LIMIT
    work: NDArray[np.int64]  # by pattern: limit of a pair's work beyond the allowance for its events
    work_in_all: NDArray[np.int64]  # by pattern: limit of all its pairs' work beyond the allowance for the stream
    allowance: NDArray[np.int64]  # by pattern: allowance of work for each event
    worked: NDArray[np.int64]  # by pattern, written by the kernel: unpaid work of all pairs at the event worked_at
    worked_at: NDArray[np.int64]  # by pattern, written by the kernel: sequence number of the event of ``worked``
    is_suspended: NDArray[np.bool_]  # by pattern: whether the pattern receives no more events
    alias_from: NDArray[np.int32]  # by pattern, then by positive atom
    alias_rank: NDArray[np.int32]  # rank of the atom's alias among the aliases of its pattern, by name
    alias_count: NDArray[np.int32]  # by pattern
    lead_from: NDArray[np.int32]  # by pattern: leading NOTs
    lead_symbol: NDArray[np.int32]
    lead_condition: NDArray[np.int32]
    until_from: NDArray[np.int32]  # by pattern, then by repetition
    until_symbol: NDArray[np.int32]
    until_condition: NDArray[np.int32]
    span_from: NDArray[np.int32]  # by pattern
    span_within: NDArray[np.int64]
    step_from: NDArray[np.int32]  # by state
    accepts: NDArray[np.bool_]  # by state
    parks: NDArray[np.bool_]  # by state: whether runs in the state are parked
    key_column: NDArray[np.int32]  # by state: column of a bound event with the value that indexes the runs; NIL: none
    key_atoms: NDArray[np.uint64]  # by state: atoms, as bits, whose newest event has the value of ``key_column``
    column: NDArray[np.int32]  # by state: column of Gates.live
    pattern_at: NDArray[np.int32]  # by column of Gates.live: pattern of a state; NIL: not a state of this engine
    waits_at: NDArray[np.int32]  # by column of Gates.live: pattern with this trailing NOT
    until: NDArray[np.uint64]  # by state: repetitions under way
    watch_from: NDArray[np.int32]  # by state: NOTs in force in gaps
    watch_slot: NDArray[np.uint64]  # bit
    watch_symbol: NDArray[np.int32]
    watch_condition: NDArray[np.int32]
    watch_within: NDArray[np.int64]
    watch_strict: NDArray[np.bool_]
    trail_from: NDArray[np.int32]  # by finish: NOTs in force after a complete match
    trail_symbol: NDArray[np.int32]
    trail_condition: NDArray[np.int32]
    trail_within: NDArray[np.int64]
    trail_column: NDArray[np.int32]  # column of Gates.live; NIL: unknown whether the event of the NOT can still occur
    finish_from: NDArray[np.int32]  # by state: alternative conditions after a complete match
    finish_slots: NDArray[np.uint64]  # slots of GREEDY repetitions in force after a complete match
    source: NDArray[np.int32]  # by step
    target: NDArray[np.int32]
    atom: NDArray[np.int32]
    symbol: NDArray[np.int32]
    condition: NDArray[np.int32]
    slot: NDArray[np.uint64]  # bit; 0: the event is the first of a match
    mode: NDArray[np.int32]
    limit: NDArray[np.int64]
    has_nots: NDArray[np.bool_]
    is_measured: NDArray[np.bool_]
    is_greedy: NDArray[np.bool_]
    asks: NDArray[np.int32]  # column of the current event that must equal the value of parked runs; NIL: none
    leads: NDArray[np.uint64]  # leading NOTs of a first step, as bits
    resets: NDArray[np.uint64]  # slots
    leaves: NDArray[np.uint64]  # slots of GREEDY repetitions that the step ends or skips
    begins: NDArray[np.uint64]  # repetitions
    goes_on: NDArray[np.uint64]
    inside: NDArray[np.uint64]
    opens_spans: NDArray[np.uint64]
    in_spans: NDArray[np.uint64]


class RunState(NamedTuple):
    """The state that the engine keeps from batch to batch.

    Nodes, events, runs and pairs each have an arena of several arrays. The first array of an arena also holds the links
    of its free list.
    """

    node_parent: NDArray[np.int32]
    node_event: NDArray[np.int32]
    node_atom: NDArray[np.int32]
    node_step: NDArray[np.int32]
    node_length: NDArray[np.int32]  # number of events of the chain that ends with the node
    node_direct: NDArray[np.bool_]  # whether the event directly follows the gap's start; only for steps with NOTs
    node_references: NDArray[np.int32]
    node_mark: NDArray[np.int64]  # counters[MARK] of the last walk over the node
    event_next: NDArray[np.int32]  # free list
    event_sequence: NDArray[np.int64]
    event_time: NDArray[np.int64]
    event_order: NDArray[np.int64]
    event_references: NDArray[np.int32]
    event_mark: NDArray[np.int64]
    event_kinds: NDArray[np.uint8]  # (events, columns)
    event_values: NDArray[np.int64]
    run_next: NDArray[np.int32]
    run_node: NDArray[np.int32]  # newest node
    run_state: NDArray[np.int32]
    run_kind: NDArray[np.int32]
    run_finish: NDArray[np.int32]  # of a complete run: number of the awaited finish among the finishes of its state
    run_muted: NDArray[np.bool_]  # excluded by an after-match rule
    run_how: NDArray[np.int8]  # of a decided run: NOT_WAITED, BY_WINDOW, BY_TRACE_END or BY_CONSTRAINT
    run_start: NDArray[np.int64]  # time of the earliest event
    run_end: NDArray[np.int64]  # end of the window that the earliest event starts; LATEST: no window
    run_first: NDArray[np.int64]  # sequence number of the earliest event
    run_lead: NDArray[np.int64]  # time of the newest event before the start that matches a leading NOT
    run_due: NDArray[np.int64]  # pending: last deadline; decided: detection time; emitted early: end of retention
    run_bits: NDArray[np.uint64]  # (runs, N_BITS)
    run_bits_order: NDArray[np.int64]
    run_before: NDArray[np.int32]  # of a parked run: the previous run in its list
    run_pair: NDArray[np.int32]  # of a parked run
    run_hash: NDArray[np.uint64]  # of a parked run: its bucket
    bucket_next: NDArray[np.int32]  # of a parked run
    bucket_before: NDArray[np.int32]
    pair_next: NDArray[np.int32]  # next pair of the trace, or of the free list
    pair_trace: NDArray[np.int32]
    pair_pattern: NDArray[np.int32]
    pair_runs: NDArray[np.int32]  # first run
    pair_parked: NDArray[np.int32]  # first parked run
    pair_parked_due: NDArray[np.int64]  # no parked run expires before this time
    pair_visits: NDArray[np.int32]  # number of events since the parked runs were last scanned
    pair_is_loose: NDArray[np.bool_]  # whether the list of runs may have runs that should be parked
    pair_count: NDArray[np.int32]  # number of runs, parked runs included
    pair_due: NDArray[np.int64]  # nothing is due before this time
    pair_finished: NDArray[np.bool_]  # ONCE PER KEY: no further match is possible
    pair_told: NDArray[np.int8]  # whether a match was emitted; needed if a guard must then not drop the pattern
    pair_work: NDArray[np.int64]  # unpaid work beyond the allowance for events; LATEST: given up for its work
    pair_leads: NDArray[np.int64]  # (pairs, leads, 2): newest time of a leading NOT's event, and the time before
    pair_slots: NDArray[np.int32]  # hash index
    buckets: NDArray[np.int32]  # first parked run by hash
    trace_pairs: NDArray[np.int32]  # first pair by trace
    counters: NDArray[np.int64]
    now: NDArray[np.int64]
    scratch: NDArray[np.int64]


class Gates(NamedTuple):
    """The tables of a guard that the run engine uses (see ``kernels.traces.Guards``).

    The engine only reads them, with one exception: in ``released`` it counts the bound events that the guard drops.
    """

    gate: NDArray[np.int32]
    truth: NDArray[np.int32]
    policy: NDArray[np.uint8]
    live: NDArray[np.uint32]
    kill_from: NDArray[np.int32]
    kills: NDArray[np.int32]
    released: NDArray[np.int32]  # by trace: number of bound events dropped because of the guard


class RunBatch(NamedTuple):
    """The visits (relevant rows) of a batch that the run engine must process."""

    types: NDArray[np.int32]
    times: NDArray[np.int64]
    clocks: NDArray[np.int64]  # newest time of all traces up to the visit
    orders: NDArray[np.int64]
    sequences: NDArray[np.int64]
    traces: NDArray[np.int32]
    before: NDArray[np.int32]  # monitor states
    after: NDArray[np.int32]
    kill: NDArray[np.int32]  # list of kills
    ends: NDArray[np.bool_]
    taken: NDArray[np.bool_]  # (symbols, visits)
    cells: NDArray[np.int32]  # (dimensions of the filter index, visits)
    kinds: NDArray[np.uint8]  # (visits, columns)
    values: NDArray[np.int64]
    gates: Gates


class Conditions(NamedTuple):
    """The compiled conditions of all patterns. Condition ``i`` is ``code[starts[i]:ends[i]]``.

    A condition reads ``bindings`` and computes on ``stack``.
    """

    code: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    bindings: Bindings
    stack: Stack


class Limits(NamedTuple):
    """Limits of the kernel.

    Attributes:
        matches: Maximum number of matches that an event may emit in a pair.
        runs: Maximum number of runs in a pair.
        width: Upper bound of the number of results that an event can have in one run (see ``CompiledRuns``).
    """

    matches: int
    runs: int
    width: int


class Ended(NamedTuple):
    """Tables of early terminations (``rows``) and of losses beyond a limit (``lost``).

    ``filled`` has the number of rows in each. ``rows`` has visit, pattern, monitor state before, monitor state after,
    state of the automaton. ``lost`` has visit, pattern, number of lost matches, number of lost runs, work for which the
    pair was given up, and reason of a suspension (0: none).
    """

    rows: NDArray[np.int64]
    lost: NDArray[np.int64]
    filled: NDArray[np.int64]


class RunMatches(NamedTuple):
    """Emitted matches, retractions and timeouts. Their chains remain referenced until they are unrolled."""

    node: NDArray[np.int32]
    pattern: NDArray[np.int32]
    row: NDArray[np.int64]  # visit; NIL: emitted as time passed
    trace: NDArray[np.int32]
    detected: NDArray[np.int64]
    how: NDArray[np.int8]
    what: NDArray[np.int8]
