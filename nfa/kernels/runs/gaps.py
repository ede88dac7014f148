"""The gaps of a run: which gaps are open, which gaps an event closes, and where a gap started."""

from __future__ import annotations

import numpy as np

from nfa.kernels.conditions import TRUE, WORK, evaluate_condition
from nfa.kernels.runs.tables import (
    ANY,
    EVENT,
    LATEST,
    MODE,
    NIL,
    NOT,
    NOTHING,
    ONE,
    ORDER,
    PASSED,
    PATTERN,
    ROW,
    STEPS,
    TIME,
    UNTIL,
    VETO,
    Conditions,
    Int,
    RunBatch,
    RunProgram,
    RunState,
)
from streams.kernels.compiling import routine

READ_FOR_ONE = 64  # amount read by conditions (``conditions.WORK``) that counts as the work of testing one run


@routine
def holds(c: Conditions, condition: Int, head: Int, event: Int, begins: np.uint64) -> bool:
    """Return whether a condition is true for the current event. NIL means no condition, which is always true.

    ``head`` is the newest of the nodes that are bound before the event.
    """
    if condition == NIL:
        return True
    start, end = c.starts[condition], c.ends[condition]
    newest, current = np.int64(head), np.int64(event)  # types that give all callers one compiled signature
    return bool(evaluate_condition(c.code, start, end, c.bindings, c.stack, newest, current, begins) == TRUE)


@routine
def count_conditions(s: RunState, c: Conditions, before: Int) -> None:
    """Add the work of conditions to the work of the current event.

    ``before`` is the value of the conditions' work counter before they ran.
    """
    s.now[STEPS] += (c.stack.values[WORK] - before) // READ_FOR_ONE


@routine
def anchor(p: RunProgram, s: RunState, head: Int, slot: np.uint64) -> Int:
    """Return the node at whose event a gap starts. This is the newest node that reopened the gap's slot."""
    node = head
    while node != NIL and (p.resets[s.node_step[node]] & slot) == NOTHING:
        node = s.node_parent[node]
    return node


@routine
def first_behind(p: RunProgram, s: RunState, head: Int, slot: np.uint64) -> Int:
    """Return the oldest node bound after a gap started, or NIL if no node was bound (see ``anchor``)."""
    node, behind = head, np.int64(NIL)
    while node != NIL and (p.resets[s.node_step[node]] & slot) == NOTHING:
        behind = np.int64(node)
        node = s.node_parent[node]
    return behind


@routine
def group_start(p: RunProgram, s: RunState, head: Int, repetition: np.uint64) -> Int:
    """Return the node of the event with which a repetition with UNTIL started. The repetition must not have ended."""
    node = head
    while node != NIL and (p.inside[s.node_step[node]] & ~p.goes_on[s.node_step[node]] & repetition) == NOTHING:
        node = s.node_parent[node]
    return node


@routine
def begun_before(p: RunProgram, s: RunState, head: Int, repetitions: np.uint64) -> np.uint64:
    """Return the repetitions among ``repetitions`` that started before the current event, as bits."""
    bits, number = NOTHING, 0
    while repetitions >> np.uint64(number) != NOTHING:
        bit = ONE << np.uint64(number)
        is_asked = repetitions & bit != NOTHING
        if is_asked and s.now[ORDER] > s.event_order[s.node_event[group_start(p, s, head, bit)]]:
            bits |= bit
        number += 1
    return bits


@routine
def is_after(p: RunProgram, s: RunState, head: Int, slot: np.uint64, order: Int) -> bool:
    """Return whether an event at ``order`` is strictly later than the event at which a gap starts.

    ``order`` is the event's time if ties are simultaneous, and its sequence number otherwise.
    """
    if order > s.event_order[s.node_event[head]]:
        return True
    node = anchor(p, s, head, slot)
    return node == NIL or order > s.event_order[s.node_event[node]]


@routine
def is_in_time(p: RunProgram, s: RunState, head: Int, step: Int, time: Int) -> bool:
    """Return whether an event at ``time`` is within the limits of a step's gap and of the spans already under way."""
    if p.limit[step] != LATEST and p.slot[step] != NOTHING:
        node = anchor(p, s, head, p.slot[step])
        if node != NIL and time - s.event_time[s.node_event[node]] >= p.limit[step]:
            return False
    spans = p.in_spans[step]
    if spans != NOTHING:
        first = p.span_from[s.now[PATTERN]]
        number = 0
        while spans >> np.uint64(number) != NOTHING:
            bit = ONE << np.uint64(number)
            if spans & bit != NOTHING:
                node = head
                while (p.opens_spans[s.node_step[node]] & bit) == NOTHING:
                    node = s.node_parent[node]
                if time - s.event_time[s.node_event[node]] >= p.span_within[first + number]:
                    return False
            number += 1
    return True


@routine
def meets_until(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, head: Int, repetitions: np.uint64) -> np.uint64:
    """Return the repetitions among ``repetitions`` whose UNTIL the current event satisfies, as bits."""
    bits = NOTHING
    first = p.until_from[s.now[PATTERN]]
    number = 0
    while repetitions >> np.uint64(number) != NOTHING:
        bit = ONE << np.uint64(number)
        if repetitions & bit != NOTHING:
            symbol, condition = p.until_symbol[first + number], p.until_condition[first + number]
            if x.taken[symbol, s.now[ROW]] and holds(c, condition, head, s.now[EVENT], NOTHING):
                bits |= bit
        number += 1
    return bits


@routine
def is_open(p: RunProgram, s: RunState, run: Int, step: Int) -> bool:
    """Return whether the gap of a step is still open in a run, so that the run may take the step.

    Earlier events may have closed it by a contiguity mode, NOT or UNTIL.
    """
    bits, slot = s.run_bits, p.slot[step]
    if (bits[run, MODE] & slot) != NOTHING and p.mode[step] != ANY:
        return False
    if p.has_nots[step] and (bits[run, NOT] & slot) != NOTHING:
        return False
    return bool((bits[run, UNTIL] & p.goes_on[step]) == NOTHING)


@routine
def watch_matches(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, head: Int, watch: Int) -> bool:
    """Return whether the NOT number ``watch`` matches the current event, within the NOT's own WITHIN.

    The event must be later than the start of the gap.
    """
    if not x.taken[p.watch_symbol[watch], s.now[ROW]]:
        return False
    if p.watch_within[watch] != LATEST:
        node = anchor(p, s, head, p.watch_slot[watch])
        if s.now[TIME] - s.event_time[s.node_event[node]] >= p.watch_within[watch]:
            return False
    return holds(c, p.watch_condition[watch], head, s.now[EVENT], NOTHING)


@routine
def is_barred(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, run: Int, step: Int) -> bool:
    """Return whether a STRICT NOT in a step's gap forbids the step with the current event.

    The NOT does so if it matches the current event, or has matched a simultaneous event.
    """
    state = p.source[step]
    if not p.has_nots[step] or (s.run_bits[run, PASSED] & p.slot[step]) != NOTHING:
        return False
    if (s.run_bits[run, VETO] & p.slot[step]) != NOTHING:
        return True
    for watch in range(p.watch_from[state], p.watch_from[state + 1]):
        is_own = p.watch_strict[watch] and p.watch_slot[watch] == p.slot[step]
        if is_own and watch_matches(p, s, x, c, s.run_node[run], watch):
            return True
    return False


@routine
def is_vetoed(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, run: Int) -> bool:
    """Return whether the current event refutes a step that the run took at the same time.

    A STRICT NOT in the step's gap must match the event.
    """
    node = s.run_node[run]
    while node != NIL and s.event_order[s.node_event[node]] == s.now[ORDER]:
        parent, step = s.node_parent[node], s.node_step[node]
        if s.node_direct[node]:
            state = p.source[step]
            for watch in range(p.watch_from[state], p.watch_from[state + 1]):
                is_own = p.watch_strict[watch] and p.watch_slot[watch] == p.slot[step]
                if is_own and watch_matches(p, s, x, c, parent, watch):
                    return True
        node = parent
    return False


@routine
def settle(s: RunState, run: Int) -> None:
    """Apply the pending bits of a run, such as closed gaps.

    This has an effect only if the current event is later than the events that set the bits.
    """
    bits = s.run_bits
    if s.run_bits_order[run] < s.now[ORDER]:
        for column in range(0, VETO, 2):
            bits[run, column] |= bits[run, column + 1]
            bits[run, column + 1] = NOTHING
        bits[run, VETO] = NOTHING
        s.run_bits_order[run] = s.now[ORDER]


@routine
def pass_strict(p: RunProgram, s: RunState, run: Int, slots: np.uint64) -> None:
    """Note that the current event lies in gaps of a run that have a STRICT NOT.

    Such a NOT forbids only the first event after the start of its gap, so it ignores events of later times.
    """
    state, head = s.run_state[run], s.run_node[run]
    for watch in range(p.watch_from[state], p.watch_from[state + 1]):
        slot = p.watch_slot[watch]
        if p.watch_strict[watch] and (slot & slots) != NOTHING and is_after(p, s, head, slot, s.now[ORDER]):
            s.run_bits[run, PASSED + 1] |= slot


@routine
def close_gaps(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, run: Int, slots: np.uint64, ignored: np.uint64
) -> None:
    """Close the gaps of a run whose NOT matches the current event, and the repetitions whose UNTIL matches the event.

    Only the gaps in ``slots`` and the repetitions in ``ignored`` are tested. ``slots`` has the gaps that started before
    the event. ``ignored`` has the repetitions that do not contain the event.
    """
    state, head = s.run_state[run], s.run_node[run]
    bits = s.run_bits
    for watch in range(p.watch_from[state], p.watch_from[state + 1]):
        slot = p.watch_slot[watch]
        if (slot & slots) == NOTHING or (slot & bits[run, NOT]) != NOTHING:
            continue
        if p.watch_strict[watch] and (bits[run, PASSED] & slot) != NOTHING:
            continue
        if is_after(p, s, head, slot, s.now[ORDER]) and watch_matches(p, s, x, c, head, watch):
            bits[run, NOT + 1] |= slot
            if p.watch_strict[watch]:
                bits[run, VETO] |= slot
    pass_strict(p, s, run, slots)
    met = meets_until(p, s, x, c, head, p.until[state] & ignored)
    if met != NOTHING and s.now[ORDER] <= s.event_order[s.node_event[head]]:
        met = begun_before(p, s, head, met)
    bits[run, UNTIL + 1] |= met
