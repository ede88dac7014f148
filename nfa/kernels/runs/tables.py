"""Tables, state and constants of the run kernel.

Indices are int32, ``NIL`` is -1; times are int64 us; an event's *order* is its time under ``ties: simultaneous`` and
its sequence number otherwise.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.conditions import Bindings, Stack

Int: TypeAlias = int | np.int32 | np.int64

NIL = np.int64(-1)  # as a numpy integer it is not typed as a literal
ANY, NEXT, STRICT = range(3)
EARLIEST = np.int64(np.iinfo(np.int64).min)
LATEST = np.int64(np.iinfo(np.int64).max)
ONE = np.uint64(1)
NOTHING = np.uint64(0)

# Status of the kernel.
DONE, NO_ROOM, FLUSH, CLOSE, FAIL, GIVEN_UP = range(6)

# Kinds of a run: growing; complete with open trailing conditions; to be emitted; kept for timeouts; emitted before its
# deadlines, because the awaited events could no longer come.
ACTIVE, PENDING, DECIDED, SPENT, REPORTED = np.arange(5)

# What decided a match: no wait was needed; time, or the next event under STRICT; the trace's end; a guard.
NOT_WAITED, BY_WINDOW, BY_TRACE_END, BY_CONSTRAINT = range(4)

# Values of RunState.pair_told: irrelevant; relevant, and nothing emitted yet; something emitted.
UNASKED, NOT_REPORTED_YET, HAS_REPORTED = range(3)

# After-match rules (RunProgram.rule).
NO_RULE, ONCE_PER_KEY, SKIP_TO_NEXT, SKIP_PAST_LAST, SKIP_TO_FIRST, SKIP_TO_LAST = range(6)

# RunState.run_lead of a spent run; LIVES only during the search for timeouts: a partial match not yet ruled out.
WAS_PART, WAS_MATCH, LIVES = range(3)

# Found.what: a match; an emitted match that the row's event contradicts; a partial match that WITHIN ended.
MATCH, CORRECTION, TIMEOUT = np.arange(3)

# Why a pattern is suspended (column of Ended.lost): given up in too many traces; too much work in all of them.
BY_TRACES, BY_WORK = 1, 2

# Pattern flags.
ORDERED = 1  # matches of one detection time are ranked before they are emitted
TIMEOUTS = 2

# Columns of RunState.run_bits. An even one holds now, the next one from the next order on; VETO holds for the current
# order: gaps that a STRICT NOT closes even to events of the same time.
MODE, NOT, UNTIL, PASSED, GREEDY, VETO = 0, 2, 4, 6, 8, 10
N_BITS = 11

# Indices of RunState.counters.
NODE_FREE, EVENT_FREE, RUN_FREE, PAIR_FREE, NODES, EVENTS, RUNS, PAIRS = range(8)
PEAK_EVENTS, FILLED, LISTENER, STOP_PAIR, NEEDED, KILLED, MARK, RELEASED = range(8, 16)
N_COUNTERS = 16

# Indices of RunState.now: the current event. STEPS is its work for the current pair; above CEILING the pattern is
# suspended, whatever the other runs cost.
ROW, EVENT, TIME, ORDER, TRACE, PATTERN, BEFORE, AFTER, FRESH, WRITTEN, CAPPED, LOST, BUDGET, READY, HEARD, STEPS = (
    range(16)
)
CEILING = 16
CLOCK = 17  # how far time had come with it: later than TIME for an event out of order
N_NOW = 18


class RunProgram(NamedTuple):
    """Compiled patterns: ranges ``x_from[i] : x_from[i + 1]`` per pattern, state or type."""

    is_simultaneous: NDArray[np.bool_]  # one value
    listen_from: NDArray[np.int32]  # by type code
    cell_begin: NDArray[np.int32]  # by cell of the filter index, after those ranges: listeners
    cell_end: NDArray[np.int32]
    listeners: NDArray[np.int32]  # patterns
    hear_from: NDArray[np.int32]  # by listener: steps of this type from states whose runs are parked
    hear_step: NDArray[np.int32]
    state_from: NDArray[np.int32]  # by pattern
    within: NDArray[np.int64]  # by pattern; LATEST: none
    deadline: NDArray[np.int32]  # by pattern: column of events with the end of the window that they begin; NIL: none
    flags: NDArray[np.int32]  # by pattern
    where: NDArray[np.int32]  # by pattern: condition
    rule: NDArray[np.int32]  # by pattern: after-match rule
    rule_atoms: NDArray[np.uint64]  # by pattern: atoms of the alias to which it skips, as bits
    most: NDArray[np.int64]  # by pattern: LIMIT; LATEST: none
    work: NDArray[np.int64]  # by pattern: work of a pair beyond what its events allow
    work_in_all: NDArray[np.int64]  # by pattern: work of all its pairs beyond what the events of the stream allow
    allowance: NDArray[np.int64]  # by pattern: work that each event allows
    worked: NDArray[np.int64]  # by pattern, written: work of all pairs that was not paid off at the event worked_at
    worked_at: NDArray[np.int64]  # by pattern, written: its sequence number
    is_suspended: NDArray[np.bool_]  # by pattern: whether it meets no events
    alias_from: NDArray[np.int32]  # by pattern, then by positive atom
    alias_rank: NDArray[np.int32]  # rank of the atom's alias among those of its pattern, by name
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
    parks: NDArray[np.bool_]  # by state: runs in it are parked
    key_column: NDArray[np.int32]  # by state: column of events for the value under which a run waits; NIL: none
    key_atoms: NDArray[np.uint64]  # by state: atoms whose event has that value, as bits
    column: NDArray[np.int32]  # by state: column of live
    pattern_at: NDArray[np.int32]  # by column of live: pattern of a state; NIL: none of this engine's
    waits_at: NDArray[np.int32]  # by column of live: pattern with this trailing NOT
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
    trail_column: NDArray[np.int32]  # of live; NIL: unknown whether its event can still come
    finish_from: NDArray[np.int32]  # by state: alternatives of a complete match
    finish_slots: NDArray[np.uint64]  # slots of GREEDY repetitions in force after it
    source: NDArray[np.int32]  # by step
    target: NDArray[np.int32]
    atom: NDArray[np.int32]
    symbol: NDArray[np.int32]
    condition: NDArray[np.int32]
    slot: NDArray[np.uint64]  # bit; 0: nothing is bound before
    mode: NDArray[np.int32]
    limit: NDArray[np.int64]
    has_nots: NDArray[np.bool_]
    is_measured: NDArray[np.bool_]
    is_greedy: NDArray[np.bool_]
    asks: NDArray[np.int32]  # column of the current event that equals the value of runs in its source; NIL: none
    leads: NDArray[np.uint64]  # leading NOTs of a first step, as bits
    resets: NDArray[np.uint64]  # slots
    leaves: NDArray[np.uint64]  # slots of GREEDY repetitions that it ends or skips
    begins: NDArray[np.uint64]  # repetitions
    goes_on: NDArray[np.uint64]
    inside: NDArray[np.uint64]
    opens_spans: NDArray[np.uint64]
    in_spans: NDArray[np.uint64]


class RunState(NamedTuple):
    """State that is kept from batch to batch; the free list of an arena runs through its first array."""

    node_parent: NDArray[np.int32]
    node_event: NDArray[np.int32]
    node_atom: NDArray[np.int32]
    node_step: NDArray[np.int32]
    node_length: NDArray[np.int32]  # number of events of the chain that ends here
    node_direct: NDArray[np.bool_]  # whether its event directly follows the gap's beginning; for steps with NOTs
    node_references: NDArray[np.int32]
    node_mark: NDArray[np.int64]  # counters[MARK] of the last walk over it
    event_next: NDArray[np.int32]  # free list
    event_sequence: NDArray[np.int64]
    event_time: NDArray[np.int64]
    event_order: NDArray[np.int64]
    event_references: NDArray[np.int32]
    event_mark: NDArray[np.int64]
    event_kinds: NDArray[np.uint8]  # (events, columns)
    event_values: NDArray[np.int64]
    run_next: NDArray[np.int32]
    run_node: NDArray[np.int32]  # newest bound
    run_state: NDArray[np.int32]
    run_kind: NDArray[np.int32]
    run_finish: NDArray[np.int32]  # of a complete run: which of its state's finishes it waits for
    run_muted: NDArray[np.bool_]  # ruled out by an after-match rule
    run_how: NDArray[np.int8]  # of a decided run: what decided it
    run_start: NDArray[np.int64]  # time of the earliest event
    run_end: NDArray[np.int64]  # of the window that this event begins; LATEST: none
    run_first: NDArray[np.int64]  # its sequence number
    run_lead: NDArray[np.int64]  # newest event before the start that a leading NOT takes
    run_due: NDArray[np.int64]  # pending: time of its last deadline; decided: detection time; emitted early: kept until
    run_bits: NDArray[np.uint64]  # (runs, N_BITS)
    run_bits_order: NDArray[np.int64]
    run_before: NDArray[np.int32]  # of a parked run: the previous one in its list
    run_pair: NDArray[np.int32]  # of a parked run
    run_hash: NDArray[np.uint64]  # of a parked run: its bucket
    bucket_next: NDArray[np.int32]  # of a parked run
    bucket_before: NDArray[np.int32]
    pair_next: NDArray[np.int32]  # next pair of the trace; free list
    pair_trace: NDArray[np.int32]
    pair_pattern: NDArray[np.int32]
    pair_runs: NDArray[np.int32]  # first run
    pair_parked: NDArray[np.int32]  # first parked run
    pair_parked_due: NDArray[np.int64]  # no parked run expires before this time
    pair_visits: NDArray[np.int32]  # events since its parked runs were last scanned
    pair_is_loose: NDArray[np.bool_]  # whether some runs that should be parked are not
    pair_count: NDArray[np.int32]  # of runs, parked ones included
    pair_due: NDArray[np.int64]  # nothing is due before this time
    pair_finished: NDArray[np.bool_]  # once per key: nothing more to find
    pair_told: NDArray[np.int8]  # whether a match was emitted; used if that keeps a guard from dropping the pattern
    pair_work: NDArray[np.int64]  # unpaid work beyond the allowance of events; LATEST: given up for its work
    pair_leads: NDArray[np.int64]  # (pairs, leads, 2): newest time of each, and newest before that time
    pair_slots: NDArray[np.int32]  # hash index
    buckets: NDArray[np.int32]  # first parked run by hash
    trace_pairs: NDArray[np.int32]  # first pair by trace
    counters: NDArray[np.int64]
    now: NDArray[np.int64]
    scratch: NDArray[np.int64]


class Gates(NamedTuple):
    """The tables of ``kernels.traces.Guards`` that this engine reads, and its counts."""

    gate: NDArray[np.int32]
    truth: NDArray[np.int32]
    policy: NDArray[np.uint8]
    live: NDArray[np.uint32]
    kill_from: NDArray[np.int32]
    kills: NDArray[np.int32]
    released: NDArray[np.int32]  # by trace: bound events dropped because of the guard


class RunBatch(NamedTuple):
    """The visits of a batch that some pattern listens to."""

    types: NDArray[np.int32]
    times: NDArray[np.int64]
    clocks: NDArray[np.int64]  # the newest time up to the visit, of all traces
    orders: NDArray[np.int64]
    sequences: NDArray[np.int64]
    traces: NDArray[np.int32]
    before: NDArray[np.int32]  # monitors
    after: NDArray[np.int32]
    kill: NDArray[np.int32]  # list of kills
    ends: NDArray[np.bool_]
    taken: NDArray[np.bool_]  # (symbols, visits)
    cells: NDArray[np.int32]  # (dimensions of the filter index, visits)
    kinds: NDArray[np.uint8]  # (visits, columns)
    values: NDArray[np.int64]
    gates: Gates


class Conditions(NamedTuple):
    """Compiled conditions, their ranges by number, their data and scratch."""

    code: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    bindings: Bindings
    stack: Stack


class Limits(NamedTuple):
    """Bounds: matches emitted at once, runs of a pair, most steps from any state."""

    matches: int
    runs: int
    width: int


class Ended(NamedTuple):
    """Pairs that a guard ended, and losses; ``filled`` counts both.

    Rows of pairs have visit, pattern, monitor before and after, and state. Rows of losses have visit, pattern, matches,
    runs, the work for which the pair was given up, and why this suspends the pattern, or 0.
    """

    rows: NDArray[np.int64]
    lost: NDArray[np.int64]
    filled: NDArray[np.int64]


class Found(NamedTuple):
    """Matches and timeouts; their chains are referenced until they are unrolled."""

    node: NDArray[np.int32]
    pattern: NDArray[np.int32]
    row: NDArray[np.int64]  # visit; NIL: time passed
    trace: NDArray[np.int32]
    detected: NDArray[np.int64]
    how: NDArray[np.int8]
    what: NDArray[np.int8]
