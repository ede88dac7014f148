"""The run kernel, which supports every construct of the language and has a run for each partial match.

A run has a chain of bound nodes, a state of the automaton, and bits for its closed slots (pending gaps). Runs with a
common prefix share nodes. Between two neighbours of a match the language has only conditions on the events in the gap.
So an event closes gaps and is never read again. The bits set by an event affect only *later* events. Under ``ties:
simultaneous`` a later event has a later time, so the bits wait in a second word until such an event arrives. Gap
conditions: ``docs/semantics.md``. Runs with shared prefixes: Flink's SharedBuffer, and SASE+ (Agrawal et al., SIGMOD
2008).
"""

from __future__ import annotations

import numpy as np

from nfa.kernels.conditions import NULL, WORK
from nfa.kernels.runs.arena import free_run, new_run, release_node
from nfa.kernels.runs.gaps import (
    close_gaps,
    count_conditions,
    first_behind,
    holds,
    is_after,
    is_barred,
    is_in_time,
    is_open,
    is_vetoed,
    meets_until,
    settle,
)
from nfa.kernels.runs.parking import drop, hash_of_event, home_of, park
from nfa.kernels.runs.ranks import set_aside
from nfa.kernels.runs.tables import (
    ACTIVE,
    AFTER,
    BEFORE,
    BUDGET,
    CEILING,
    CLOCK,
    CORRECTION,
    DECIDED,
    EARLIEST,
    EVENT,
    FRESH,
    GREEDY,
    HAS_REPORTED,
    HEARD,
    LATEST,
    LOST,
    MODE,
    NEXT,
    NIL,
    NODE_FREE,
    NODES,
    NOT,
    NOTHING,
    ONE,
    ORDER,
    PASSED,
    PATTERN,
    PENDING,
    ROW,
    SPENT,
    STEPS,
    STRICT,
    TIME,
    TIMEOUTS,
    UNTIL,
    VETO,
    Conditions,
    Int,
    RunBatch,
    RunMatches,
    RunProgram,
    RunState,
)
from nfa.kernels.runs.waits import (
    decide,
    emit,
    hand_out,
    hasten,
    is_decided,
    is_in_reach,
    is_refuted,
    may_complete,
    open_deadline,
)
from nfa.kernels.runs.windows import is_past, window_end
from nfa.kernels.traces import BY_QUERY, FAILED
from streams.kernels.compiling import routine

# Outcomes of testing a step. PASSES: the step's types or condition reject the event. FORBIDDEN: the gap, a limit or
# UNTIL forbids binding the event. TOO_EARLY: the event is not later than the start of the gap. BINDABLE: the event may
# be bound.
PASSES, FORBIDDEN, TOO_EARLY, BINDABLE = range(4)


@routine
def note_start(p: RunProgram, s: RunState, grown: Int, run: Int) -> None:
    """Set the begin and the end of the window of the new run ``grown``.

    The window begins at the current event, or at the begin of ``run`` if that is not later.
    """
    s.run_start[grown], s.run_first[grown] = s.now[TIME], s.event_sequence[s.now[EVENT]]
    s.run_end[grown] = window_end(p, s, s.now[PATTERN], s.now[EVENT])
    if run != NIL:
        s.run_muted[grown] = s.run_muted[run]
        if s.run_start[run] <= s.now[TIME]:
            s.run_start[grown], s.run_first[grown] = s.run_start[run], s.run_first[run]
            s.run_end[grown] = s.run_end[run]


@routine
def grow(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, node: Int, kind: Int, run: Int, step: Int, forced: np.uint64
) -> Int:
    """Create a run whose newest node is ``node``, and return the run. The node binds the current event by ``step``.

    The new run extends ``run``. If ``run`` is NIL, it starts a match. ``kind`` is the kind of the new run. ``forced``
    has the slots of GREEDY repetitions that the new run must not leave.
    """
    bits = s.run_bits
    grown = new_run(s, node, p.target[step], kind)
    note_start(p, s, grown, run)
    if run != NIL:
        for column in range(GREEDY):
            bits[grown, column] = bits[run, column]
        bits[grown, VETO] = bits[run, VETO]
        for column in (MODE, MODE + 1, NOT, NOT + 1, PASSED, PASSED + 1, VETO):
            bits[grown, column] &= ~p.resets[step]
        bits[grown, GREEDY] = (bits[run, GREEDY] | forced) & ~p.resets[step]
        fresh = p.inside[step] & ~p.goes_on[step]
        bits[grown, UNTIL] &= ~fresh
        bits[grown, UNTIL + 1] &= ~fresh
        close_gaps(p, s, x, c, grown, ~p.resets[step], ~p.inside[step])
    return grown


@routine
def complete(
    p: RunProgram,
    s: RunState,
    x: RunBatch,
    c: Conditions,
    out: RunMatches,
    node: Int,
    run: Int,
    step: Int,
    lead: Int,
    limit: Int,
) -> None:
    """Emit or retain the match whose chain ends at ``node``, unless a condition of the match fails.

    The match extends ``run`` (NIL: none) by ``step``. ``lead`` is the time of the newest earlier event that matches a
    leading NOT, or EARLIEST. At ``limit`` matches, further matches of the event are only counted.
    """
    pattern = s.now[PATTERN]
    if lead != EARLIEST and s.now[CLOCK] - lead < p.within[pattern]:
        return
    if not holds(c, p.where[pattern], node, NIL, NOTHING):
        return
    state = p.target[step]
    for finish in range(p.finish_from[state], p.finish_from[state + 1]):
        has_trail = p.trail_from[finish] != p.trail_from[finish + 1]
        greedy = p.finish_slots[finish]
        if has_trail and not may_complete(x, s.now[AFTER], p.column[state]):
            continue  # the forbidden event is certain to occur
        if not has_trail and greedy == NOTHING and p.flags[pattern] == 0:
            emit(s, out, node, limit)
        elif s.now[BUDGET] <= 0:
            s.now[LOST] += 1
        elif not has_trail and greedy == NOTHING:
            s.now[BUDGET] -= 1
            done = new_run(s, node, state, DECIDED)
            note_start(p, s, done, run)
            s.run_due[done] = s.now[TIME]
            if not p.is_simultaneous[0]:
                set_aside(s, done)
        else:
            s.now[BUDGET] -= 1
            waiting = grow(p, s, x, c, node, PENDING, run, step, NOTHING)
            s.run_bits[waiting, GREEDY] = greedy
            s.run_finish[waiting] = finish - p.finish_from[state]
            hasten(p, s, x, out, waiting)


@routine
def bind(
    p: RunProgram,
    s: RunState,
    x: RunBatch,
    c: Conditions,
    out: RunMatches,
    run: Int,
    step: Int,
    lead: Int,
    forced: np.uint64,
    limit: Int,
) -> None:
    """Bind the current event by a step. The binding extends ``run``, or starts a match if ``run`` is NIL.

    ``lead`` and ``limit`` are as in ``complete``, ``forced`` as in ``grow``.
    """
    target = p.target[step]
    goes_on = p.step_from[target] < p.step_from[target + 1] and may_complete(x, s.now[AFTER], p.column[target])
    if not (goes_on or p.accepts[target]):
        return
    node = np.int32(s.counters[NODE_FREE])
    s.counters[NODE_FREE] = s.node_parent[node]
    s.counters[NODES] += 1
    parent = np.int32(NIL) if run == NIL else s.run_node[run]
    s.node_parent[node] = parent
    if parent != NIL:
        s.node_references[parent] += 1
    s.node_event[node] = s.now[EVENT]
    s.event_references[s.now[EVENT]] += 1
    s.node_atom[node] = p.atom[step]
    s.node_step[node] = step
    s.node_length[node] = 1 if parent == NIL else s.node_length[parent] + 1
    s.node_direct[node] = False
    if run != NIL and p.has_nots[step]:
        s.node_direct[node] = (s.run_bits[run, PASSED] & p.slot[step]) == NOTHING
    s.node_references[node] = 1
    if p.accepts[target]:
        complete(p, s, x, c, out, node, run, step, lead, limit)
    if goes_on and s.now[BUDGET] <= 0:
        s.now[LOST] += 1
    elif goes_on:
        s.now[BUDGET] -= 1
        grown = grow(p, s, x, c, node, ACTIVE, run, step, forced)
        s.run_lead[grown] = lead
    release_node(s, node)


@routine
def is_too_old(p: RunProgram, s: RunState) -> bool:
    """Return whether the window of a match that starts with the current event would already have ended."""
    return bool(s.now[CLOCK] >= window_end(p, s, s.now[PATTERN], s.now[EVENT]))


@routine
def test_step(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, run: Int, step: Int) -> Int:
    """Return how a step of a run reacts to the current event.

    ``PASSES``: the step does not accept the event. ``FORBIDDEN``: a closed gap, a limit or an UNTIL forbids the
    binding. ``TOO_EARLY``: the event is not later than the start of the gap. ``BINDABLE``: the step can bind the event.
    """
    head = s.run_node[run]
    if not x.taken[p.symbol[step], s.now[ROW]]:
        return PASSES
    if not holds(c, p.condition[step], head, s.now[EVENT], p.begins[step]):
        return PASSES
    if is_too_old(p, s) or not is_open(p, s, run, step) or not is_in_time(p, s, head, step, s.now[TIME]):
        return FORBIDDEN
    if meets_until(p, s, x, c, head, p.inside[step]) != NOTHING:
        return FORBIDDEN
    return BINDABLE if is_after(p, s, head, p.slot[step], s.now[ORDER]) else TOO_EARLY


@routine
def note_greed(p: RunProgram, s: RunState, run: Int, step: Int) -> np.uint64:
    """Return the slot of the GREEDY repetition that could bind the current event by ``step``, or 0.

    The slot is returned if no event was bound since the gap started, or if the first such event is simultaneous with
    the current event. In the first case, the slot is also recorded in the run, which then must not leave the
    repetition.
    """
    node = first_behind(p, s, s.run_node[run], p.slot[step])
    if node == NIL:
        s.run_bits[run, GREEDY + 1] |= p.slot[step]
    elif s.event_order[s.node_event[node]] != s.now[ORDER]:
        return NOTHING
    return np.uint64(p.slot[step])


@routine
def note_modes(p: RunProgram, s: RunState, run: Int) -> None:
    """Close the gaps of a run that, by their modes, must not contain the current event.

    ``s.scratch`` has the result of ``test_step`` for each step.
    """
    state, head = s.run_state[run], s.run_node[run]
    first = p.step_from[state]
    for step in range(first, p.step_from[state + 1]):
        may_not = p.mode[step] == STRICT or (p.mode[step] == NEXT and s.scratch[step - first] != PASSES)
        if may_not and is_after(p, s, head, p.slot[step], s.now[ORDER]):
            s.run_bits[run, MODE + 1] |= p.slot[step]


@routine
def advance(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, out: RunMatches, run: Int, limit: Int) -> bool:
    """Bind the current event to an active run in every possible way. Each way creates a new run.

    Returns whether later events can still extend the old run.
    """
    if s.now[STEPS] > s.now[CEILING]:
        return True
    s.now[STEPS] += 1
    before = c.stack.values[WORK]
    state, bits = s.run_state[run], s.run_bits
    first, last = p.step_from[state], p.step_from[state + 1]
    forced, is_taken = NOTHING, False
    for step in range(first, last):
        s.scratch[step - first] = test_step(p, s, x, c, run, step)
        is_taken |= s.scratch[step - first] >= TOO_EARLY
        if p.is_greedy[step] and s.scratch[step - first] == BINDABLE:
            forced |= note_greed(p, s, run, step)
    if is_taken:
        barred = forced | bits[run, GREEDY]
        for step in range(first, last):
            may = s.scratch[step - first] == BINDABLE or (s.scratch[step - first] == TOO_EARLY and p.is_measured[step])
            if may and (barred & p.leaves[step]) == NOTHING and not is_barred(p, s, x, c, run, step):
                bind(p, s, x, c, out, run, step, s.run_lead[run], forced, limit)
    note_modes(p, s, run)
    close_gaps(p, s, x, c, run, ~NOTHING, ~NOTHING)
    count_conditions(s, c, before)
    if not p.is_simultaneous[0]:
        for column in range(0, VETO, 2):
            bits[run, column] |= bits[run, column + 1]
    return has_future(p, s, run, s.now[TIME], LATEST)


@routine
def has_future(p: RunProgram, s: RunState, run: Int, time: Int, order: Int) -> bool:
    """Return whether a run could still take a step with an event at ``time``.

    ``order`` is the event's time if ties are simultaneous, and its sequence number otherwise.
    """
    state, head = s.run_state[run], s.run_node[run]
    for step in range(p.step_from[state], p.step_from[state + 1]):
        barred = s.run_bits[run, GREEDY] & p.leaves[step]
        if p.has_nots[step] and s.run_bits_order[run] == order:  # a STRICT NOT matched an event of this same time
            barred |= s.run_bits[run, VETO] & ~s.run_bits[run, PASSED] & p.slot[step]
        if barred != NOTHING or not is_open(p, s, run, step) or not is_in_time(p, s, head, step, time):
            continue
        if p.is_measured[step] or is_after(p, s, head, p.slot[step], order):
            return True
    return False


@routine
def wait(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, run: Int) -> bool:
    """Test the trailing conditions of a complete run with the current event. Return false if a condition fails.

    If the event decides the last GREEDY condition under STRICT, the run's deadline is updated.
    """
    s.now[STEPS] += 1
    if not is_in_reach(s, run):
        close_gaps(p, s, x, c, run, ~NOTHING, ~NOTHING)
        return True
    if is_refuted(p, s, x, c, run):
        return False
    state, slots, decided = s.run_state[run], s.run_bits[run, GREEDY], NOTHING
    for step in range(p.step_from[state], p.step_from[state + 1]):
        if (p.slot[step] & slots) == NOTHING or not p.is_greedy[step]:
            continue
        outcome = test_step(p, s, x, c, run, step)
        if outcome == BINDABLE:
            return False
        if p.mode[step] == STRICT:
            decided |= p.slot[step]
        if p.mode[step] == STRICT or (p.mode[step] == NEXT and outcome != PASSES):
            s.run_bits[run, MODE + 1] |= p.slot[step]
    close_gaps(p, s, x, c, run, ~NOTHING, ~NOTHING)
    if slots != NOTHING and (slots & ~decided) == NOTHING and s.run_lead[run] == EARLIEST:
        due = open_deadline(p, s, x, run, NOTHING)
        s.run_due[run] = max(due, s.now[TIME])
        if due <= s.now[TIME]:
            s.run_lead[run] = s.now[TIME]
    return True


@routine
def meet_waiting(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, out: RunMatches, run: Int) -> bool:
    """Process the current event for a waiting or decided run. Return false if the run can be released."""
    if s.run_kind[run] == PENDING:
        is_later = s.run_bits_order[run] < s.now[ORDER] and s.run_bits[run, MODE + 1] != NOTHING
        settle(s, run)
        if not is_decided(s, run, s.now[CLOCK], is_later):
            if s.now[STEPS] > s.now[CEILING]:
                return True
            before = c.stack.values[WORK]
            is_kept = wait(p, s, x, c, run)
            count_conditions(s, c, before)
            return is_kept
        if not decide(p, s, out, run):
            return False
    return meet_complete(p, s, x, c, out, run)


@routine
def meet_complete(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, out: RunMatches, run: Int) -> bool:
    """Process the current event for a match that is already decided.

    If a trailing NOT matches the event, the match is dropped or retracted. Returns false if the run can be released.
    """
    kind = s.run_kind[run]
    if kind == DECIDED:
        return not (is_in_reach(s, run) and is_refuted(p, s, x, c, run))
    is_over = s.now[CLOCK] >= s.run_due[run]
    if not is_over and is_in_reach(s, run) and is_refuted(p, s, x, c, run):
        hand_out(s, out, s.run_node[run], s.now[TIME], np.int64(s.run_how[run]), CORRECTION)
        s.run_due[run] = EARLIEST
        is_over = True
    return kind == SPENT or not is_over


@routine
def process_pair(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, out: RunMatches, pair: Int, limit: Int
) -> None:
    """Process the current event for every run of a pair, except its parked runs.

    Parked runs are indexed by state and value. ``process_parked`` finds those that wait for the event.
    """
    keeps = (p.flags[s.now[PATTERN]] & TIMEOUTS) != 0
    before = NIL
    run = s.pair_runs[pair]
    while run != NIL:
        following = s.run_next[run]
        if p.is_simultaneous[0] and is_vetoed(p, s, x, c, run):
            is_kept = False
        elif s.run_kind[run] == ACTIVE:
            settle(s, run)
            is_kept = keeps if is_past(s, run, s.now[CLOCK]) else advance(p, s, x, c, out, run, limit) or keeps
        else:
            is_kept = meet_waiting(p, s, x, c, out, run)
        if is_kept:
            before = run
        else:
            if before == NIL:
                s.pair_runs[pair] = following
            else:
                s.run_next[before] = following
            free_run(s, run)
            s.pair_count[pair] -= 1
        run = following


@routine
def newest_lead(p: RunProgram, s: RunState, x: RunBatch, pair: Int, step: Int) -> Int:
    """Return the time of the newest earlier event that matches a leading NOT of ``step``, or EARLIEST.

    If ties are simultaneous, events of the current time do not count.
    """
    newest, number = np.int64(EARLIEST), 0
    while p.leads[step] >> np.uint64(number) != NOTHING:
        if (p.leads[step] >> np.uint64(number)) & ONE:
            is_same = p.is_simultaneous[0] and s.pair_leads[pair, number, 0] == s.now[TIME]
            newest = max(newest, s.pair_leads[pair, number, 1 if is_same else 0])
        number += 1
    return newest


@routine
def note_leads(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, pair: Int) -> None:
    """Store the time of the current event for each leading NOT that it matches."""
    first = p.lead_from[s.now[PATTERN]]
    for lead in range(first, p.lead_from[s.now[PATTERN] + 1]):
        number = lead - first
        if s.pair_leads[pair, number, 0] >= s.now[TIME] or not x.taken[p.lead_symbol[lead], s.now[ROW]]:
            continue
        if holds(c, p.lead_condition[lead], np.int32(NIL), s.now[EVENT], NOTHING):
            s.pair_leads[pair, number, 1] = s.pair_leads[pair, number, 0]
            s.pair_leads[pair, number, 0] = s.now[TIME]


@routine
def is_startable(p: RunProgram, s: RunState, x: RunBatch, pattern: Int, pair: Int) -> bool:
    """Return whether the guard allows a match of a pattern to start with the current event.

    The match must be able to complete from the monitor state before the event. If the event breaks a constraint, the
    state after the event counts instead, because the trace is no longer pruned. A guard that drops only whole patterns
    also allows the start while some partial match of the pair could complete, and after the pair has emitted a match.
    """
    monitor = s.now[AFTER] if s.now[AFTER] <= FAILED else s.now[BEFORE]
    start, gates = p.column[p.state_from[pattern]], x.gates
    if gates.policy[monitor] != BY_QUERY:
        return bool(gates.live[gates.gate[monitor], start] != 0)
    truth = gates.truth[monitor]
    is_alive = gates.live[truth, start] != 0
    if pair != NIL and not is_alive:
        is_alive = s.pair_told[pair] == HAS_REPORTED
        for first in (s.pair_runs[pair], s.pair_parked[pair]):
            run = first
            while run != NIL and not is_alive:
                is_waiting = s.run_kind[run] == ACTIVE or s.run_kind[run] == PENDING
                is_alive = is_waiting and gates.live[truth, p.column[s.run_state[run]]] != 0
                run = s.run_next[run]
    return bool(is_alive)


@routine
def begin_runs(p: RunProgram, s: RunState, x: RunBatch, c: Conditions, out: RunMatches, pair: Int, limit: Int) -> None:
    """Start matches of the current pattern with the current event."""
    pattern, before = s.now[PATTERN], c.stack.values[WORK]
    state = p.state_from[pattern]
    for step in range(p.step_from[state], p.step_from[state + 1]):
        if not x.taken[p.symbol[step], s.now[ROW]]:
            continue
        if not holds(c, p.condition[step], np.int32(NIL), s.now[EVENT], p.begins[step]):
            continue
        if meets_until(p, s, x, c, np.int32(NIL), p.inside[step]) != NOTHING:
            continue
        lead = newest_lead(p, s, x, pair, step)
        if lead == EARLIEST or (p.within[pattern] != LATEST and lead < s.now[TIME]):
            bind(p, s, x, c, out, np.int32(NIL), step, lead, NOTHING, limit)
    count_conditions(s, c, before)


@routine
def take_fresh(p: RunProgram, s: RunState, pair: Int) -> None:
    """Move the runs that the current event created to their pair. Runs whose state allows parking are parked."""
    while s.now[FRESH] != NIL:
        run = np.int32(s.now[FRESH])
        s.now[FRESH] = s.run_next[run]
        s.pair_count[pair] += 1
        if s.run_kind[run] == ACTIVE and p.parks[s.run_state[run]]:
            park(p, s, pair, run)
        else:
            s.run_next[run] = s.pair_runs[pair]
            s.pair_runs[pair] = run


@routine
def process_parked(
    p: RunProgram, s: RunState, x: RunBatch, c: Conditions, out: RunMatches, pair: Int, limit: Int
) -> None:
    """Bind the current event to the parked runs of a pair that are waiting for such an event."""
    event, mask = np.int32(s.now[EVENT]), np.uint64(s.buckets.shape[0] - 1)
    for place in range(p.hear_from[s.now[HEARD]], p.hear_from[s.now[HEARD] + 1]):
        step = p.hear_step[place]
        column, state, value = p.asks[step], p.source[step], NOTHING
        if not x.taken[p.symbol[step], s.now[ROW]] or is_too_old(p, s):
            continue
        if column != NIL:
            if s.event_kinds[event, column] == NULL:
                continue
            value = hash_of_event(s, event, column)
        home = home_of(pair, state, value)
        run = s.buckets[home & mask]
        while run != NIL and s.now[STEPS] <= s.now[CEILING]:
            following = s.bucket_next[run]
            if s.run_hash[run] == home and s.run_pair[run] == pair and s.run_state[run] == state:
                if is_past(s, run, s.now[CLOCK]):
                    drop(s, run)
                else:
                    s.now[STEPS] += 1
                    before = c.stack.values[WORK]
                    if holds(c, p.condition[step], s.run_node[run], s.now[EVENT], p.begins[step]):
                        bind(p, s, x, c, out, run, step, s.run_lead[run], NOTHING, limit)
                    count_conditions(s, c, before)
            run = following
