"""The shared-node kernel, for patterns whose partial matches need no memory of their own. The caller owns every array.

A *pair* is a trace's entry for a pattern: a block with one stack of nodes per pattern state. A node binds an event to
an alias and points to the top of its source state's stack at that time. So a node represents one partial match for each
way through the nodes before it. Nodes are reference-counted in an arena with a free list. Under WITHIN a sweep releases
expired nodes. Its cost is amortized over the nodes created since the last sweep. Enumeration never visits expired
nodes.

Sources: SASE instance stacks (Wu, Diao, Rizvi, SIGMOD 2006), CORE's timed enumerable compact sets (Bucchi et al., VLDB
2022), the monitor automaton of C-CEP (constraint-aware CEP, section 4.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.shared.pairs import close_pair, close_trace, find_pair, open_pair, release, sweep, trim_pair
from nfa.kernels.shared.paths import complete
from nfa.kernels.shared.tables import (
    BEFORE,
    BELOW,
    BLOCK,
    BLOCK_TOP,
    BLOCKS_FULL,
    DONE,
    ENDINGS,
    ENDINGS_FULL,
    EVENT,
    EVENT_BITS,
    EVERY_TERM,
    HEADER,
    HELD,
    INDEXED,
    LARGE,
    MATCHED,
    MATCHES,
    MEASURE,
    MOST_AHEAD,
    MOST_COUNTED,
    NIL,
    NO_CELL,
    NODES,
    NODES_FULL,
    OCCUPIED,
    OVERFLOW,
    PAIRS_FULL,
    PATTERN,
    PEAK_HELD,
    REFERENCES,
    RELEASED,
    SIBLING,
    SWEEP_AT,
    TOUCHED,
    UNIT,
    Int,
    Matching,
    Output,
    SharedState,
    Visited,
)
from nfa.kernels.traces import BY_QUERY, DEVIANT, EVICT, FAILED
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import apart, inlined, kernel


@inlined
def release_dead(lent: Matching, place: Int, end: Int, pair: Int, first: Int, last: Int) -> tuple[Int, Int]:
    """Release the stacks of one pattern's dead states, and find the furthest dead state.

    ``tables.kills`` lists the dead states from the index ``place`` on. Returns (index of the next pattern's kills,
    furthest dead state). Only the start state and states with a stack can be the furthest.
    """
    kills, depth, blocks = lent.tables.kills, lent.program.depth, lent.state.blocks
    deepest = np.int32(NIL)
    while place < end and kills[place] < last:
        dead, head = kills[place], np.int32(NIL)
        place += 1
        if dead != first and pair != NIL:
            head = blocks[pair + HEADER + dead - first - 1]
        if (dead == first or head != NIL) and (deepest == NIL or depth[dead] > depth[deepest]):
            deepest = dead
        if head != NIL:
            release(lent.state, head)
            blocks[pair + HEADER + dead - first - 1] = NIL
            blocks[pair + OCCUPIED] -= 1
    return place, deepest


@inlined
def living(matching: Matching, row: Int, pair: Int, base: Int, states: Int, policy: Int) -> np.uint32:
    """Return the terms of a pattern that can still complete in a pair, as bits.

    Under the policy ``BY_QUERY`` (``Prune.QUERY``), terms that have already matched are included.
    """
    blocks, live = matching.state.blocks, matching.tables.live
    alive: np.uint32 = live[row, base]
    if pair != NIL:
        for state in range(1, states):
            if blocks[pair + HEADER + state - 1] != NIL:
                alive |= live[row, base + state]
        if policy == BY_QUERY:
            alive |= np.uint32(blocks[pair + MATCHED])
    return alive


@inlined
def furthest_dead(lent: Matching, place: Int, end: Int, pair: Int, first: Int, last: Int) -> tuple[Int, Int]:
    """Return the same result as ``release_dead``, but release nothing."""
    kills, depth, blocks = lent.tables.kills, lent.program.depth, lent.state.blocks
    deepest = np.int32(NIL)
    while place < end and kills[place] < last:
        dead = kills[place]
        place += 1
        is_held = dead == first or (pair != NIL and blocks[pair + HEADER + dead - first - 1] != NIL)
        if is_held and (deepest == NIL or depth[dead] > depth[deepest]):
            deepest = dead
    return place, deepest


@inlined
def release_terms(lent: Matching, pair: Int, base: Int, states: Int, alive: np.uint32) -> None:
    """Release the stacks of states whose partial matches can complete none of the terms ``alive``."""
    blocks, terms = lent.state.blocks, lent.program.state_terms
    for number in range(1, states):
        head = blocks[pair + HEADER + number - 1]
        if head != NIL and terms[base + number] & alive == 0:
            release(lent.state, head)
            blocks[pair + HEADER + number - 1] = NIL
            blocks[pair + OCCUPIED] -= 1


@inlined
def kill_in_pattern(
    lent: Matching, pattern: Int, place: Int, end: Int, pair: Int, policy: Int, truth: Int
) -> tuple[Int, Int, bool]:
    """Apply the guard's policy to the dead states of one pattern in one trace.

    The states are listed in ``tables.kills`` from index ``place`` on. Returns (index of the next pattern's kills,
    furthest dead state, whether the pattern can still match).
    """
    program, blocks = lent.program, lent.state.blocks
    first, last = program.state_range[pattern], program.state_range[pattern + 1]
    if policy == EVICT:
        place, deepest = release_dead(lent, place, end, pair, first, last)
        return place, deepest, lent.tables.live[truth, first] != 0 or (pair != NIL and blocks[pair + OCCUPIED] > 0)
    place, deepest = furthest_dead(lent, place, end, pair, first, last)
    alive = living(lent, truth, pair, first, last - first, policy)
    has_future = bool(alive != 0)
    if pair != NIL and policy == BY_QUERY:
        release_terms(lent, pair, first, last - first, alive)
    elif pair != NIL:  # in shadow mode the pair is retained, but reported only once
        has_future |= blocks[pair + MATCHED] != 0
        blocks[pair + MATCHED] |= not has_future
    return place, deepest, has_future


@apart
def kill(lent: Matching, place: Int, end: Int, trace: Int, row: Int, before: Int, after: Int) -> None:
    """Apply the guard's policy to all states that an event kills, and report the patterns that can no longer match.

    The states are ``tables.kills[place:end]``.
    """
    program, tables, state, output = lent.program, lent.tables, lent.state, lent.output
    clock, policy, truth = lent.visited.clocks[row], tables.policy[before], tables.truth[after]
    held = state.counters[HELD]
    while place < end and tables.kills[place] < program.state_pattern.shape[0]:
        pattern = program.state_pattern[tables.kills[place]]
        states = program.state_range[pattern + 1] - program.state_range[pattern]
        pair = np.int64(NIL)
        if program.is_shared[pattern]:
            pair = find_pair(state, trace, pattern)
            if pair != NIL and program.within[pattern] != 0:
                trim_pair(state, pair, states, clock)
        place, deepest, has_future = kill_in_pattern(lent, pattern, place, end, pair, policy, truth)
        if not program.is_shared[pattern]:
            continue
        if pair != NIL and state.blocks[pair + OCCUPIED] == 0:
            close_pair(state, pair, states)
        if deepest != NIL and not has_future:
            number = output.filled[2]
            output.endings[number, 0], output.endings[number, 1] = row, pattern
            output.endings[number, 2], output.endings[number, 3] = before, after
            output.endings[number, 4] = deepest
            output.filled[2] += 1
            state.counters[ENDINGS] += 1
    lent.visited.released[trace] += held - state.counters[HELD]
    state.counters[RELEASED] += held - state.counters[HELD]


@inlined
def measure_of(
    state: SharedState, lent: SharedState, below: Int, before: Int, now: Int, clock: Int, within: Int
) -> tuple[Int, Int]:
    """Return (measure, below) for a new node on the stack ``below``.

    The node extends the partial matches in ``before``. Without WITHIN, the measure is the number of partial matches in
    the new stack. Under WITHIN, it is the time at which the last of them expires. An expired ``below`` is released and
    replaced by NIL.
    """
    nodes = state.nodes
    if within == 0:
        ways = nodes[before, MEASURE] if before != NIL else np.int64(1)
        return min(ways + nodes[below, MEASURE], MOST_COUNTED) if below != NIL else ways, below
    if below != NIL and nodes[below, MEASURE] <= clock:
        release(lent, below)
        below = np.int32(NIL)
    expires = now + within
    if before != NIL:
        expires = min(expires, nodes[before, MEASURE])
    return max(expires, nodes[below, MEASURE]) if below != NIL else expires, below


@inlined
def push(
    state: SharedState, lent: SharedState, below: Int, before: Int, event: Int, now: Int, clock: Int, within: Int
) -> np.int32:
    """Push a new node onto the stack ``below``, and return the node.

    The node extends every partial match in ``before`` by the event. It takes over the caller's references to both
    stacks.
    """
    nodes, links, counters = state.nodes, state.links, state.counters
    measure, below = measure_of(state, lent, below, before, now, clock, within)
    node: np.int32 = state.free[counters[NODES]]
    counters[NODES] += 1
    if within != 0:
        state.times[node] = now
    nodes[node, EVENT] = event
    nodes[node, MEASURE] = measure
    links[node, BELOW] = below
    links[node, BEFORE] = before
    links[node, REFERENCES] = 1
    return node


@inlined
def room_status(state: SharedState, output: Output, states: Int, pushes: Int) -> Int:
    """Return DONE if all arrays have room for ``pushes`` transitions, or the status of an array that is full."""
    counters = state.counters
    if counters[NODES] + pushes > state.nodes.shape[0]:
        return NODES_FULL
    if counters[BLOCK_TOP] + HEADER + states + UNIT > state.blocks.shape[0]:
        return BLOCKS_FULL
    if 2 * (counters[INDEXED] + 1) > state.slots.shape[0]:
        return PAIRS_FULL
    return DONE if output.filled[3] < output.dropped.shape[0] else ENDINGS_FULL


@inlined
def leave_sources(matching: Matching, n_taken: Int, pair: Int) -> None:
    """Empty the stacks that the taken transitions extend. The caller takes over the references to these stacks.

    This is necessary under NEXT, because no event may be skipped.
    """
    blocks, sources, transitions = matching.state.blocks, matching.program.source, matching.output.taken
    for place in range(n_taken):
        if transitions[place, 1] != NIL:
            blocks[pair + HEADER + sources[transitions[place, 0]] - 1] = NIL
            blocks[pair + OCCUPIED] -= 1


@inlined
def bind(
    matching: Matching,
    lent: Matching,
    n_taken: Int,
    pair: Int,
    trace: Int,
    gate: Int,
    alive: np.uint32,
    event: Int,
    row: Int,
) -> None:
    """Extend the partial matches in the source states of the taken transitions by the current event.

    Under NEXT, the source states are emptied.
    """
    program, state, transitions, live = matching.program, matching.state, matching.output.taken, matching.tables.live
    blocks, links, counters, targets, terms = (
        state.blocks,
        state.links,
        state.counters,
        program.target,
        program.state_terms,
    )
    pattern = program.pattern[transitions[0, 0]]
    base, is_next, within = program.state_range[pattern], program.is_next[pattern], program.within[pattern]
    states, now, clock = (
        program.state_range[pattern + 1] - base,
        matching.visited.times[row],
        matching.visited.clocks[row],
    )
    is_too_old = bool(within != 0 and clock - now >= within)
    if is_next:
        leave_sources(matching, n_taken, pair)
    last = np.int32(NIL)
    for place in range(n_taken):
        transition, head = transitions[place, 0], transitions[place, 1]
        word = event | (np.int64(program.alias[transition]) << 1)
        target = targets[transition]
        is_over = is_too_old and head != NIL  # the event is too old to extend a partial match
        is_dead = live[gate, base + target] == 0 or terms[base + target] & alive == 0
        if is_over or is_dead or not program.goes_on[transition]:
            if is_next and head != NIL:
                release(lent.state, head)
            continue
        if pair == NIL:
            pair = open_pair(state, lent.state, trace, pattern, states)
        below = blocks[pair + HEADER + target - 1]
        blocks[pair + OCCUPIED] += below == NIL
        if head != NIL and not is_next:
            links[head, REFERENCES] += 1
        node = push(state, lent.state, below, head, word, now, clock, within)
        blocks[pair + HEADER + target - 1] = node
        counters[HELD] += last == NIL
        links[node, SIBLING] = node
        if last != NIL:
            links[node, SIBLING] = links[last, SIBLING]
            links[last, SIBLING] = node
        last = node
    if pair != NIL and blocks[pair + OCCUPIED] == 0:
        close_pair(lent.state, pair, states)


@inlined
def note_overflow(matching: Matching, row: Int, pattern: Int, count: Int) -> None:
    """Record how many matches of a pattern an event completed beyond the limit."""
    counters, output = matching.state.counters, matching.output
    number = output.filled[3]
    counters[OVERFLOW] = min(counters[OVERFLOW] + count, MOST_COUNTED)
    output.dropped[number, 0], output.dropped[number, 1], output.dropped[number, 2] = row, pattern, count
    output.filled[3] += 1


@inlined
def label_records(output: Output, first: Int, row: Int, trace: Int, pattern: Int) -> None:
    """Write row, trace and pattern into all match records from ``first`` on, whose bindings are already written."""
    for record in range(first, output.filled[0]):
        output.match_row[record], output.match_trace[record], output.match_pattern[record] = row, trace, pattern


@inlined
def source_of(
    state: SharedState, pair: Int, source: Int, is_startable: bool, within: Int, clock: Int
) -> tuple[bool, np.int32]:
    """Return whether the transitions from a state can be taken in a pair, and the stack of the state.

    The start state has no stack. Its transitions need ``is_startable``.
    """
    can_take, head = is_startable, np.int32(NIL)
    if source != 0:
        if pair != NIL:
            head = state.blocks[pair + HEADER + source - 1]
        can_take = head != NIL and (within == 0 or state.nodes[head, MEASURE] > clock)
    return can_take, head


@inlined
def may_begin(matching: Matching, monitor: Int, pair: Int, base: Int, states: Int) -> tuple[bool, np.uint32]:
    """Return whether the guard lets a match start, and bits of the terms whose partial matches may be extended."""
    tables = matching.tables
    policy = tables.policy[monitor]
    if policy != BY_QUERY:
        return tables.live[tables.gate[monitor], base] != 0, np.uint32(EVERY_TERM)
    alive = living(matching, tables.truth[monitor], pair, base, states, policy)
    return alive != 0, alive


@inlined
def note_match(matching: Matching, monitor: Int, pair: Int, terms: np.uint32) -> None:
    """Mark terms of a pair as matched, so that their partial matches are never dropped.

    Only the policy ``BY_QUERY`` (``Prune.QUERY``) needs these marks.
    """
    if pair != NIL and matching.tables.policy[monitor] == BY_QUERY:
        matching.state.blocks[pair + MATCHED] |= np.int32(terms)


@inlined
def take(
    matching: Matching,
    lent: Matching,
    first: Int,
    last: Int,
    trace: Int,
    row: Int,
    starting: Int,
    after: Int,
    first_sequence: Int,
) -> Int:
    """Take all transitions of a pattern that an event allows, and return the status.

    The pattern's transitions are the range from ``first`` to ``last``. Matches are written, and partial matches are
    extended. ``starting`` is the monitor state that decides whether a match may start. ``after`` is the state after the
    event.
    """
    program, tables, state, visited, output = (
        matching.program,
        matching.tables,
        matching.state,
        matching.visited,
        matching.output,
    )
    passed, transitions, filled = visited.passed, output.taken, output.filled
    pattern = program.pattern[first]
    base, within, is_next = program.state_range[pattern], program.within[pattern], program.is_next[pattern]
    budget, clock, states = program.limit[pattern], visited.clocks[row], program.state_range[pattern + 1] - base
    event = ((first_sequence + row) << EVENT_BITS) | (within != 0)
    status = room_status(state, output, states, last - first)
    if status != DONE:
        return status
    pair = find_pair(state, trace, pattern)
    can_begin, alive = may_begin(matching, starting, pair, base, states)
    n_taken, dropped = np.int64(0), np.int64(0)
    matches, bound = filled[0], filled[1]
    for transition in range(first, last):
        can_take, head = passed[program.predicate[transition], row], np.int32(NIL)
        if can_take:
            can_take, head = source_of(state, pair, program.source[transition], can_begin, within, clock)
        if not can_take:
            continue
        if program.accepts[transition]:
            word = event | (np.int64(program.alias[transition]) << 1)
            remaining = budget - (filled[0] - matches)
            status, _, more = complete(
                lent.state, lent.output, head, word, visited.times[row], clock, within, remaining
            )
            if status != DONE:
                filled[0], filled[1] = matches, bound
                return status
            dropped = min(dropped + more, np.int64(MOST_COUNTED))
            note_match(matching, starting, pair, program.state_terms[base + program.target[transition]])
        if program.goes_on[transition] or (is_next and head != NIL):
            transitions[n_taken, 0], transitions[n_taken, 1] = transition, head
            n_taken += 1
    state.counters[MATCHES] += filled[0] - matches
    label_records(output, matches, row, trace, pattern)
    if dropped > 0:
        note_overflow(matching, row, pattern, dropped)
    if n_taken > 0:
        bind(matching, lent, n_taken, pair, trace, tables.gate[after], alive, event, row)
    return DONE


@apart
def look_ahead(lent: Matching, picked: NDArray[np.int32], n_picked: Int) -> None:
    """Prefetch the data that the next visits will read, so that their cache misses overlap."""
    program, state, visited = lent.program, lent.state, lent.visited
    rows, traces, event_types = visited.rows, visited.traces, visited.types
    listen, patterns, sources, targets = program.listen, program.pattern, program.source, program.target
    trace_first, blocks, nodes, times, free = state.trace_first, state.blocks, state.nodes, state.times, state.free
    touched, n_used, is_timed = np.int64(0), state.counters[NODES], times.shape[0] > 0
    for place in range(n_picked):
        touched += trace_first[traces[picked[place]]]
        node = free[min(n_used + place, free.shape[0] - 1)]
        touched += nodes[node, EVENT] + (times[node] if is_timed else 0)
    for place in range(n_picked):
        touched += blocks[max(trace_first[traces[picked[place]]], 0) + HEADER]
    for place in range(n_picked):
        pair, event_type = trace_first[traces[picked[place]]], event_types[rows[picked[place]]]
        if pair == NIL:
            continue
        first = listen[event_type]
        for transition in range(first, min(listen[event_type + 1], first + MOST_AHEAD)):
            if blocks[pair + PATTERN] != patterns[transition]:
                break
            for step in (sources[transition], targets[transition]):
                head = blocks[pair + HEADER + max(step, 1) - 1]
                touched += nodes[max(head, 0), MEASURE]
    state.counters[TOUCHED] = touched


@inlined
def met(matching: Matching, event_type: Int, row: Int, part: Int) -> tuple[np.int32, np.int32]:
    """Return the range of the transitions that listen to an event, either by its type or by one of its cells.

    If ``part`` is -1, the transitions listen by type. Otherwise they listen by the event's cell in dimension ``part``
    of the filter index. The range of each part begins after the ranges of all lower parts.
    """
    program = matching.program
    if part < 0:
        return program.listen[event_type], program.listen[event_type + 1]
    cell = matching.visited.cells[part, row]
    return program.cell_begin[cell], program.cell_end[cell]


@inlined
def first_passed(matching: Matching, first: Int, last: Int, row: Int) -> Int:
    """Return the first transition in a range whose predicate accepts the event. If there is none, return ``last``."""
    passed, predicates = matching.visited.passed, matching.program.predicate
    place = first
    while place < last and not passed[predicates[place], row]:
        place += 1
    return place


@inlined
def match_visit(
    matching: Matching, lent: Matching, visit: Int, first_sequence: Int, first_transition: Int
) -> tuple[Int, Int]:
    """Process a visit (relevant row). If ``first_transition`` is not NIL, resume the visit at this transition.

    Returns (status, transition). They are ``DONE`` and NIL, or the status of a full array and the transition at which
    to resume.
    """
    program, tables, visited = matching.program, matching.tables, matching.visited
    counters = matching.state.counters
    row, trace, before, after = visited.rows[visit], visited.traces[visit], visited.before[visit], visited.after[visit]
    event_type = visited.types[row]
    if first_transition == NIL and matching.state.times.shape[0] > 0 and counters[NODES] >= counters[SWEEP_AT]:
        sweep(lent.program, lent.state, visited.clocks[row])
    killed, killed_end = tables.kill_from[visited.kill[visit]], tables.kill_from[visited.kill[visit] + 1]
    if matching.output.filled[2] + killed_end - killed > matching.output.endings.shape[0]:
        return ENDINGS_FULL, first_transition
    starting, part = DEVIANT if after == DEVIANT else before, np.int64(-1)
    while part < visited.cells.shape[0] and after != FAILED:
        transition, end = met(matching, event_type, row, part)
        transition = max(transition, np.int32(first_transition))  # ranges of the parts ascend
        part += 1
        while transition < end:
            last = program.group_end[transition]
            first = first_passed(matching, transition, last, row)
            if first < last:
                status = take(matching, lent, first, last, trace, row, starting, after, first_sequence)
                if status != DONE:
                    return status, transition
            transition = last
    if killed < killed_end:
        kill(lent, np.int64(killed), killed_end, trace, row, before, after)
    if visited.ends[visit] or after == FAILED:
        close_trace(lent.program, lent.state, trace)
    counters[PEAK_HELD] = max(counters[PEAK_HELD], counters[HELD])
    return DONE, NIL


@inlined
def is_met(visited: Visited, listen: NDArray[np.int32], row: Int) -> bool:
    """Return whether some transition listens to an event, by the event's type or by one of its cells."""
    is_found = bool(listen[visited.types[row]] != listen[visited.types[row] + 1])
    for slot in range(visited.cells.shape[0]):
        is_found = is_found or bool(visited.cells[slot, row] != NO_CELL)
    return is_found


@kernel
def match_visits(
    arrays: Matching, picked: NDArray[np.int32], first_sequence: Int, first_visit: Int, first_transition: Int
) -> tuple[Int, Int, Int]:
    """Process visits (relevant rows) from ``first_visit`` on.

    If ``first_transition`` is not NIL, the first visit resumes at this transition. Returns (status, visit, transition).
    If the status is not ``DONE``, an array is full, and visit and transition are the place at which to resume. The
    kernel stops *before* a group of transitions that needs room. The wrapper can then enlarge the array and call again.
    ``picked`` is scratch memory for ``BLOCK`` visits.

    The same tables have two names. Only inlined functions read ``matching``, so the compiler keeps it in registers.
    Called functions read ``lent``, which is in memory.
    """
    matching, lent, picked = borrowed(arrays), borrowed(arrays), borrowed(picked)
    program, visited = matching.program, matching.visited
    rows, listen = visited.rows, program.listen
    is_large = matching.state.nodes.shape[0] > LARGE
    visit, n_visits = first_visit, rows.shape[0]
    while visit < n_visits:
        n_picked = 0
        while visit < n_visits and n_picked < BLOCK:
            picked[n_picked] = visit
            n_picked += (
                is_met(visited, listen, rows[visit])
                or visited.ends[visit]
                or visited.kill[visit] != 0
                or visited.after[visit] == FAILED
            )
            visit += 1
        if is_large:
            look_ahead(lent, picked, n_picked)
        for place in range(n_picked):
            status, transition = match_visit(matching, lent, picked[place], first_sequence, first_transition)
            if status != DONE:
                return status, picked[place], transition
            first_transition = NIL
    return DONE, n_visits, NIL
