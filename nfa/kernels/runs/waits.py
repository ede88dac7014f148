"""Complete matches that are waiting for trailing conditions: their deadlines, decision and retraction.

A match with a trailing NOT waits until its deadline, or until a guard rules out that the forbidden event still occurs
(early certainty: constraint-aware CEP, section 6.3). A match that was emitted early is retained until the deadline,
because its trace may still break a constraint.
"""

from __future__ import annotations

import numpy as np

from nfa.kernels.runs.gaps import holds
from nfa.kernels.runs.tables import (
    AFTER,
    BY_CONSTRAINT,
    BY_WINDOW,
    CAPPED,
    CLOCK,
    DECIDED,
    EARLIEST,
    EVENT,
    FILLED,
    GREEDY,
    LATEST,
    MATCH,
    MODE,
    NIL,
    NOT_WAITED,
    NOTHING,
    ORDER,
    PATTERN,
    REPORTED,
    ROW,
    STRICT,
    TIME,
    TRACE,
    WRITTEN,
    Conditions,
    Int,
    RunBatch,
    RunMatches,
    RunProgram,
    RunState,
)
from nfa.kernels.runs.windows import is_past
from streams.kernels.compiling import routine


@routine
def may_complete(x: RunBatch, monitor: Int, column: Int) -> bool:
    """Return whether a column of the guard's tables is alive in a monitor state.

    The column of a state is alive if the state can complete. The column of a trailing NOT is alive if the NOT's event
    can occur.
    """
    return bool(x.gates.live[x.gates.gate[monitor], column] != 0)


@routine
def hand_out(s: RunState, out: RunMatches, node: Int, detected: Int, how: Int, what: Int) -> None:
    """Write a match, retraction or timeout to the results. Its chain stays referenced until the wrapper reads it."""
    place = s.counters[FILLED]
    s.counters[FILLED] += 1
    s.node_references[node] += 1
    out.node[place] = node
    out.pattern[place] = s.now[PATTERN]
    out.row[place] = s.now[ROW]
    out.trace[place] = s.now[TRACE]
    out.detected[place] = detected
    out.how[place] = how
    out.what[place] = what


@routine
def emit(s: RunState, out: RunMatches, node: Int, limit: Int) -> None:
    """Emit a match without trailing conditions. If the limit is reached, the match is only counted."""
    if s.now[WRITTEN] >= limit:
        s.now[CAPPED] += 1
        return
    s.now[WRITTEN] += 1
    hand_out(s, out, node, s.now[TIME], np.int64(NOT_WAITED), MATCH)


@routine
def latest_time(s: RunState, node: Int) -> np.int64:
    """Return the end of a match: the latest time in its chain. The newest node may have an earlier time."""
    latest = np.int64(EARLIEST)
    while node != NIL:
        latest = max(latest, np.int64(s.event_time[s.node_event[node]]))
        node = s.node_parent[node]
    return latest


@routine
def own_deadline(p: RunProgram, s: RunState, node: Int, trail: Int) -> np.int64:
    """Return the deadline of a trailing NOT by its own WITHIN, or ``LATEST`` if it has none."""
    within = p.trail_within[trail]
    return np.int64(LATEST if within == LATEST else latest_time(s, node) + within)


@routine
def deadline(p: RunProgram, s: RunState, run: Int, greedy: np.uint64, at_end: Int) -> Int:
    """Return the time at which the last of a match's trailing conditions is decided.

    Conditions without a deadline are decided at the end of the trace, ``at_end``. ``greedy`` has the slots of the
    GREEDY repetitions to include.
    """
    whole = s.run_end[run]
    latest = np.int64(EARLIEST)
    if greedy != NOTHING:
        latest = np.int64(at_end if whole == LATEST else whole)
    finish = p.finish_from[s.run_state[run]] + s.run_finish[run]
    for trail in range(p.trail_from[finish], p.trail_from[finish + 1]):
        trail_deadline = min(own_deadline(p, s, s.run_node[run], trail), whole)
        latest = max(latest, np.int64(at_end if trail_deadline == LATEST else trail_deadline))
    return latest


@routine
def open_deadline(p: RunProgram, s: RunState, x: RunBatch, run: Int, greedy: np.uint64) -> Int:
    """Return the latest deadline of the trailing conditions of a match that are still undecided.

    In contrast to ``deadline``, a NOT is ignored if its event can no longer occur. If no condition is undecided, return
    ``EARLIEST``.
    """
    whole = s.run_end[run]
    latest = np.int64(EARLIEST if greedy == NOTHING else whole)
    finish = p.finish_from[s.run_state[run]] + s.run_finish[run]
    for trail in range(p.trail_from[finish], p.trail_from[finish + 1]):
        column = p.trail_column[trail]
        if column == NIL or may_complete(x, s.now[AFTER], column):
            trail_deadline = min(own_deadline(p, s, s.run_node[run], trail), whole)
            latest = max(latest, np.int64(trail_deadline))
    return latest


@routine
def open_greed(p: RunProgram, s: RunState, run: Int) -> np.uint64:
    """Return the slots at which a GREEDY repetition could still bind an event after a complete match, as bits.

    Slots under STRICT that an event has closed are left out.
    """
    state, slots = s.run_state[run], s.run_bits[run, GREEDY]
    closed = s.run_bits[run, MODE] | s.run_bits[run, MODE + 1]
    for step in range(p.step_from[state], p.step_from[state + 1]):
        if p.is_greedy[step] and p.mode[step] == STRICT:
            slots &= ~(p.slot[step] & closed)
    return np.uint64(slots)


@routine
def decide(p: RunProgram, s: RunState, out: RunMatches, run: Int) -> bool:
    """Decide a complete match that no longer waits. It is emitted, or marked for ranking.

    A match that is emitted before its deadline is retained until the deadline. Returns false if the run can be
    released.
    """
    if s.run_how[run] == NOT_WAITED:
        s.run_how[run] = BY_WINDOW
    if p.flags[s.now[PATTERN]] != 0:
        s.run_kind[run] = DECIDED
        return True
    hand_out(s, out, s.run_node[run], s.run_due[run], np.int64(s.run_how[run]), MATCH)
    latest = deadline(p, s, run, NOTHING, LATEST)
    is_early = latest > s.run_due[run]
    s.run_kind[run], s.run_due[run] = REPORTED, latest
    return bool(is_early)


@routine
def hasten(p: RunProgram, s: RunState, x: RunBatch, out: RunMatches, run: Int) -> bool:
    """Update the deadline of a waiting match, and decide the match if it is due.

    A NOT is ignored if its event can no longer occur. If the current event closed a GREEDY gap under STRICT, the match
    waits for other events of the same time. Returns whether the run is retained.
    """
    if s.run_lead[run] != EARLIEST:
        return True
    due = open_deadline(p, s, x, run, open_greed(p, s, run))
    s.run_due[run] = max(due, s.now[TIME])
    if due > s.now[TIME]:
        return True
    s.run_how[run] = BY_CONSTRAINT
    if (s.run_bits[run, MODE + 1] & s.run_bits[run, GREEDY]) != NOTHING:
        s.run_lead[run] = s.now[TIME]
        return True
    return decide(p, s, out, run)


@routine
def is_decided(s: RunState, run: Int, time: Int, is_later: bool | np.bool_) -> bool:
    """Return whether no later event can change the trailing conditions of a complete run at ``time``.

    A deadline is decided once it is reached. Under STRICT, a gap ends with an event. The gap is decided once no
    more events with the time of this event can arrive. ``is_later`` says that the current event has a later time.
    """
    if s.run_lead[run] != EARLIEST:
        return bool(time > s.run_due[run] or is_later)
    return bool(time >= s.run_due[run])


@routine
def is_in_reach(s: RunState, run: Int) -> bool:
    """Return whether the current event is after the end of a complete match, and still in the match's window."""
    return bool(not is_past(s, run, s.now[CLOCK]) and s.now[ORDER] > s.event_order[s.node_event[s.run_node[run]]])


@routine
def is_refuted(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, run: Int) -> bool:
    """Return whether a trailing NOT of a complete run matches the current event.

    The event must be in reach of the run.
    """
    head = s.run_node[run]
    finish = p.finish_from[s.run_state[run]] + s.run_finish[run]
    for trail in range(p.trail_from[finish], p.trail_from[finish + 1]):
        is_taken = x.taken[p.trail_symbol[trail], s.now[ROW]]
        if not is_taken or s.now[CLOCK] >= own_deadline(p, s, head, trail):
            continue
        if holds(c, p.trail_condition[trail], head, s.now[EVENT], NOTHING):
            return True
    return False
