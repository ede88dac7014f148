"""The shared-node kernel: partial matches that need no memory of their own, every array owned by the caller.

Partial matches are shared, never copied. What a trace holds of a pattern is a *pair*: a block with one stack of nodes
per pattern state. A node binds one event to one alias and points to the top of its source state's stack as it was
then, so that a node stands for every combination below it. An event costs constant work per transition that listens
to it, and enumeration costs work linear in what it prints. Nodes are counted references in one arena with a free list.

Under WITHIN a stack's top knows when the last of its partial matches expires: enumeration never walks what has
expired, and a sweep whose cost is paid by the nodes made since the last one gives it back.

Sources: SASE instance stacks (Wu, Diao, Rizvi, SIGMOD 2006), CORE's timed enumerable compact sets (Bucchi et al.,
VLDB 2022), the monitor automaton of C-CEP (constraint-aware CEP, section 4.2).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nfa.kernels.shared_pairs import close_pair, close_trace, find_pair, open_pair, release, sweep, trim_pair
from nfa.kernels.shared_paths import complete
from nfa.kernels.shared_tables import (
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
    Output,
    Program,
    SharedState,
    Tables,
    Visited,
)
from nfa.kernels.traces import BY_QUERY, DEVIANT, EVICT, FAILED
from streams.kernels.borrowing import borrowed


@njit(cache=True, nogil=True, inline="always")
def release_dead(
    state: SharedState,
    kills: NDArray[np.int32],
    depth: NDArray[np.int32],
    place: Int,
    end: Int,
    pair: Int,
    first: Int,
    last: Int,
) -> tuple[Int, Int]:
    """Release one pattern's dead states, which ``kills`` lists from ``place`` on, at most to ``end``.

    Returns:
        (place, deepest): where the next pattern begins, and the farthest dead state that was occupied or is the start.
    """
    blocks, deepest = state.blocks, np.int32(NIL)
    while place < end and kills[place] < last:
        dead, head = kills[place], np.int32(NIL)
        place += 1
        if dead != first and pair != NIL:
            head = blocks[pair + HEADER + dead - first - 1]
        if (dead == first or head != NIL) and (deepest == NIL or depth[dead] > depth[deepest]):
            deepest = dead
        if head != NIL:
            release(state.links, state.free, state.counters, head)
            blocks[pair + HEADER + dead - first - 1] = NIL
            blocks[pair + OCCUPIED] -= 1
    return place, deepest


@njit(cache=True, nogil=True, inline="always")
def living(
    blocks: NDArray[np.int32], live: NDArray[np.uint32], row: Int, pair: Int, base: Int, states: Int, policy: Int
) -> np.uint32:
    """Alternatives that something held can still complete, as bits; by query, those that ever completed too."""
    alive: np.uint32 = live[row, base]
    if pair != NIL:
        for state in range(1, states):
            if blocks[pair + HEADER + state - 1] != NIL:
                alive |= live[row, base + state]
        if policy == BY_QUERY:
            alive |= np.uint32(blocks[pair + MATCHED])
    return alive


@njit(cache=True, nogil=True, inline="always")
def furthest_dead(
    blocks: NDArray[np.int32],
    kills: NDArray[np.int32],
    depth: NDArray[np.int32],
    place: Int,
    end: Int,
    pair: Int,
    first: Int,
    last: Int,
) -> tuple[Int, Int]:
    """What ``release_dead`` returns, with nothing released."""
    deepest = np.int32(NIL)
    while place < end and kills[place] < last:
        dead = kills[place]
        place += 1
        is_held = dead == first or (pair != NIL and blocks[pair + HEADER + dead - first - 1] != NIL)
        if is_held and (deepest == NIL or depth[dead] > depth[deepest]):
            deepest = dead
    return place, deepest


@njit(cache=True, nogil=True)
def release_terms(program: Program, state: SharedState, pair: Int, base: Int, states: Int, alive: np.uint32) -> None:
    """Release the stacks of which no alternative is alive."""
    program, state = borrowed(program), borrowed(state)
    blocks, terms = state.blocks, program.state_terms
    for number in range(1, states):
        head = blocks[pair + HEADER + number - 1]
        if head != NIL and terms[base + number] & alive == 0:
            release(state.links, state.free, state.counters, head)
            blocks[pair + HEADER + number - 1] = NIL
            blocks[pair + OCCUPIED] -= 1


@njit(cache=True, nogil=True, inline="always")
def kill(
    program: Program,
    tables: Tables,
    state: SharedState,
    output: Output,
    place: Int,
    end: Int,
    trace: Int,
    row: Int,
    now: Int,
    before: Int,
    after: Int,
) -> None:
    """Release what lives no longer, as the policy says; report every (trace, pattern) pair that has no future left."""
    state_range, state_pattern, depth, live = program.state_range, program.state_pattern, program.depth, tables.live
    kills, is_shared, within = tables.kills, program.is_shared, program.within
    blocks, counters = state.blocks, state.counters
    policy, truth = tables.policy[before], tables.truth[after]
    while place < end and kills[place] < state_pattern.shape[0]:
        pattern = state_pattern[kills[place]]
        first, last = state_range[pattern], state_range[pattern + 1]
        pair = np.int64(NIL)
        if is_shared[pattern]:
            pair = find_pair(state.trace_first, blocks, state.slots, trace, pattern)
            if pair != NIL and within[pattern] != 0:
                trim_pair(state, pair, last - first, now)
        if policy == EVICT:
            place, deepest = release_dead(state, kills, depth, place, end, pair, first, last)
            has_future = live[truth, first] != 0 or (pair != NIL and blocks[pair + OCCUPIED] > 0)
        else:
            place, deepest = furthest_dead(blocks, kills, depth, place, end, pair, first, last)
            alive = living(blocks, live, truth, pair, first, last - first, policy)
            has_future = alive != 0
            if pair != NIL and policy == BY_QUERY:
                release_terms(program, state, pair, first, last - first, alive)
            elif pair != NIL:  # in shadow mode it goes on, and ends once
                has_future |= blocks[pair + MATCHED] != 0
                blocks[pair + MATCHED] |= not has_future
        if not is_shared[pattern]:
            continue
        if pair != NIL and blocks[pair + OCCUPIED] == 0:
            close_pair(state.trace_first, blocks, state.block_free, state.slots, counters, pair, last - first)
        if deepest != NIL and not has_future:
            record = output.endings[output.filled[2]]
            record[0], record[1], record[2], record[3], record[4] = row, pattern, before, after, deepest
            output.filled[2] += 1
            counters[ENDINGS] += 1


@njit(cache=True, nogil=True, inline="always")
def push(
    nodes: NDArray[np.int64],
    links: NDArray[np.int32],
    times: NDArray[np.int64],
    free: NDArray[np.int32],
    counters: NDArray[np.int64],
    below: Int,
    before: Int,
    event: Int,
    now: Int,
    within: Int,
) -> np.int32:
    """Bind an event: one node that stands for every combination below ``before``. References move to it."""
    node: np.int32 = free[counters[NODES]]
    counters[NODES] += 1
    if within != 0:
        if below != NIL and nodes[below, MEASURE] <= now:
            release(links, free, counters, below)
            below = np.int32(NIL)
        measure = now + within
        if before != NIL:
            measure = min(measure, nodes[before, MEASURE])
        if below != NIL:
            measure = max(measure, nodes[below, MEASURE])
        times[node] = now
    else:
        measure = nodes[before, MEASURE] if before != NIL else np.int64(1)
        if below != NIL:
            measure = min(measure + nodes[below, MEASURE], MOST_COUNTED)
    nodes[node, EVENT] = event
    nodes[node, MEASURE] = measure
    links[node, BELOW] = below
    links[node, BEFORE] = before
    links[node, REFERENCES] = 1
    return node


@njit(cache=True, nogil=True, inline="always")
def lacking(state: SharedState, output: Output, states: Int, pushes: Int) -> Int:
    """What a group of transitions would find no room for; else DONE."""
    counters = state.counters
    if counters[NODES] + pushes > state.nodes.shape[0]:
        return NODES_FULL
    if counters[BLOCK_TOP] + HEADER + states + UNIT > state.blocks.shape[0]:
        return BLOCKS_FULL
    if 2 * (counters[INDEXED] + 1) > state.slots.shape[0]:
        return PAIRS_FULL
    return DONE if output.filled[3] < output.dropped.shape[0] else ENDINGS_FULL


@njit(cache=True, nogil=True, inline="always")
def leave_sources(
    blocks: NDArray[np.int32], sources: NDArray[np.int32], taken: NDArray[np.int32], n_taken: Int, pair: Int
) -> None:
    """Under NEXT, empty the states whose partial matches an event takes on; the references are the caller's."""
    for place in range(n_taken):
        if taken[place, 1] != NIL:
            blocks[pair + HEADER + sources[taken[place, 0]] - 1] = NIL
            blocks[pair + OCCUPIED] -= 1


@njit(cache=True, nogil=True, inline="always")
def bind(
    program: Program,
    state: SharedState,
    live: NDArray[np.uint32],
    taken: NDArray[np.int32],
    n_taken: Int,
    pair: Int,
    trace: Int,
    pattern: Int,
    gate: Int,
    alive: np.uint32,
    event: Int,
    now: Int,
) -> None:
    """Let an event take transitions: partial matches grow, and under NEXT leave the states that they come from."""
    blocks, links, nodes, times, counters = state.blocks, state.links, state.nodes, state.times, state.counters
    sources, targets, goes_on, aliases = program.source, program.target, program.goes_on, program.alias
    base, is_next, within = program.state_range[pattern], program.is_next[pattern], program.within[pattern]
    states, terms = program.state_range[pattern + 1] - base, program.state_terms
    if is_next:
        leave_sources(blocks, sources, taken, n_taken, pair)
    last = np.int32(NIL)
    for place in range(n_taken):
        transition, head = taken[place, 0], taken[place, 1]
        named = event | (np.int64(aliases[transition]) << 1)
        target = targets[transition]
        if not goes_on[transition] or live[gate, base + target] == 0 or terms[base + target] & alive == 0:
            if is_next and head != NIL:
                release(links, state.free, counters, head)
            continue
        if pair == NIL:
            pair = open_pair(state.trace_first, blocks, state.block_free, state.slots, counters, trace, pattern, states)
        below = blocks[pair + HEADER + target - 1]
        blocks[pair + OCCUPIED] += below == NIL
        if head != NIL and not is_next:
            links[head, REFERENCES] += 1
        node = push(nodes, links, times, state.free, counters, below, head, named, now, within)
        blocks[pair + HEADER + target - 1] = node
        counters[HELD] += last == NIL
        links[node, SIBLING] = node
        if last != NIL:
            links[node, SIBLING] = links[last, SIBLING]
            links[last, SIBLING] = node
        last = node
    if pair != NIL and blocks[pair + OCCUPIED] == 0:
        close_pair(state.trace_first, blocks, state.block_free, state.slots, counters, pair, states)


@njit(cache=True, nogil=True, inline="always")
def drop(state: SharedState, output: Output, row: Int, pattern: Int, count: Int) -> None:
    """Say how many matches of an event and pattern are beyond the limit."""
    state.counters[OVERFLOW] = min(state.counters[OVERFLOW] + count, MOST_COUNTED)
    record = output.dropped[output.filled[3]]
    record[0], record[1], record[2] = row, pattern, count
    output.filled[3] += 1


@njit(cache=True, nogil=True, inline="always")
def source_of(
    state: SharedState, pair: Int, source: Int, is_startable: bool, within: Int, now: Int
) -> tuple[bool, np.int32]:
    """Whether something can go on from a state of a pair (or begin), and the stack that does."""
    can_take, head = is_startable, np.int32(NIL)
    if source != 0:
        if pair != NIL:
            head = state.blocks[pair + HEADER + source - 1]
        can_take = head != NIL and (within == 0 or state.nodes[head, MEASURE] > now)
    return can_take, head


@njit(cache=True, nogil=True, inline="always")
def may_begin(
    tables: Tables, blocks: NDArray[np.int32], monitor: Int, pair: Int, base: Int, states: Int
) -> tuple[bool, np.uint32]:
    """Whether a match may begin, and the alternatives for which events are still bound."""
    if tables.policy[monitor] != BY_QUERY:
        return tables.live[tables.gate[monitor], base] != 0, np.uint32(EVERY_TERM)
    alive = living(blocks, tables.live, tables.truth[monitor], pair, base, states, BY_QUERY)
    return alive != 0, alive


@njit(cache=True, nogil=True, inline="always")
def note_match(tables: Tables, blocks: NDArray[np.int32], monitor: Int, pair: Int, terms: np.uint32) -> None:
    """By query, what has matched once is never given up."""
    if pair != NIL and tables.policy[monitor] == BY_QUERY:
        blocks[pair + MATCHED] |= np.int32(terms)


@njit(cache=True, nogil=True, inline="always")
def take(
    program: Program,
    tables: Tables,
    state: SharedState,
    visited: Visited,
    output: Output,
    first: Int,
    last: Int,
    trace: Int,
    row: Int,
    starting: Int,
    after: Int,
    first_sequence: Int,
) -> Int:
    """Let an event take the transitions of one pattern that it can; returns the status."""
    passed, live, taken, filled = visited.passed, tables.live, output.taken, output.filled
    predicates, sources, accepts, goes_on = program.predicate, program.source, program.accepts, program.goes_on
    pattern = program.pattern[first]
    base, within, is_next = program.state_range[pattern], program.within[pattern], program.is_next[pattern]
    budget, now, states = program.limit[pattern], visited.times[row], program.state_range[pattern + 1] - base
    event = ((first_sequence + row) << EVENT_BITS) | (within != 0)
    status = lacking(state, output, states, last - first)
    if status != DONE:
        return status
    pair = find_pair(state.trace_first, state.blocks, state.slots, trace, pattern)
    can_begin, alive = may_begin(tables, state.blocks, starting, pair, base, states)
    n_taken, dropped = 0, np.int64(0)
    matches, bound = filled[0], filled[1]
    for transition in range(first, last):
        can_take, head = passed[predicates[transition], row], np.int32(NIL)
        if can_take:
            can_take, head = source_of(state, pair, sources[transition], can_begin, within, now)
        if not can_take:
            continue
        if accepts[transition]:
            named = event | (np.int64(program.alias[transition]) << 1)
            left = budget - (filled[0] - matches)
            status, _, more = complete(state, output, head, named, row, pattern, now, within, left)
            if status != DONE:
                filled[0], filled[1] = matches, bound
                return status
            dropped = min(dropped + more, np.int64(MOST_COUNTED))
            note_match(tables, state.blocks, starting, pair, program.state_terms[base + program.target[transition]])
        if goes_on[transition] or (is_next and head != NIL):
            taken[n_taken, 0], taken[n_taken, 1] = transition, head
            n_taken += 1
    state.counters[MATCHES] += filled[0] - matches
    if dropped > 0:
        drop(state, output, row, pattern, dropped)
    if n_taken > 0:
        bind(program, state, live, taken, n_taken, pair, trace, pattern, tables.gate[after], alive, event, now)
    return DONE


@njit(cache=True, nogil=True, inline="always")
def look_ahead(
    program: Program, state: SharedState, visited: Visited, picked: NDArray[np.int32], n_picked: Int
) -> None:
    """Read what the next visits will need, so that their misses overlap instead of following one another."""
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


@njit(cache=True, nogil=True, inline="always")
def match_visit(
    program: Program,
    tables: Tables,
    state: SharedState,
    visited: Visited,
    output: Output,
    visit: Int,
    first_sequence: Int,
    first_transition: Int,
) -> tuple[Int, Int]:
    """Process one visit, from a transition on when it is not ``NIL``.

    Returns:
        (status, transition): ``DONE``, or what is missing and where to go on.
    """
    row, trace, before, after = visited.rows[visit], visited.traces[visit], visited.before[visit], visited.after[visit]
    predicates, group_end, passed, counters = program.predicate, program.group_end, visited.passed, state.counters
    event_type, now = visited.types[row], visited.times[row]
    transition, end = program.listen[event_type], program.listen[event_type + 1]
    if first_transition != NIL:
        transition = np.int32(first_transition)
    elif state.times.shape[0] > 0 and counters[NODES] >= counters[SWEEP_AT]:
        sweep(program, state, now)
    killed, killed_end = tables.kill_from[visited.kill[visit]], tables.kill_from[visited.kill[visit] + 1]
    if output.filled[2] + killed_end - killed > output.endings.shape[0]:
        return ENDINGS_FULL, transition
    starting = DEVIANT if after == DEVIANT else before
    while transition < end and after != FAILED:
        last = group_end[transition]
        for place in range(transition, last):
            if passed[predicates[place], row]:
                status = take(
                    program, tables, state, visited, output, place, last, trace, row, starting, after, first_sequence
                )
                if status != DONE:
                    return status, transition
                break
        transition = last
    if killed < killed_end:
        held = counters[HELD]
        kill(program, tables, state, output, killed, killed_end, trace, row, now, before, after)
        visited.released[trace] += held - counters[HELD]
        counters[RELEASED] += held - counters[HELD]
    if visited.ends[visit] or after == FAILED:
        close_trace(program, state, trace)
    counters[PEAK_HELD] = max(counters[PEAK_HELD], counters[HELD])
    return DONE, transition


@njit(cache=True, nogil=True)
def match_visits(
    program: Program,
    tables: Tables,
    state: SharedState,
    visited: Visited,
    output: Output,
    first_sequence: Int,
    first_visit: Int,
    first_transition: Int,
) -> tuple[Int, Int, Int]:
    """Process visits from ``first_visit`` on.

    Stops *before* a group of transitions that needs room, so that the wrapper can supply it and call again. Arrays are
    taken out of their tuples once: reading one from a tuple costs a reference count each time.

    Returns:
        (status, visit, transition): ``DONE``, or what is missing and where to go on.
    """
    program, tables, state = borrowed(program), borrowed(tables), borrowed(state)
    visited, output = borrowed(visited), borrowed(output)
    rows, event_types, afters, ends = visited.rows, visited.types, visited.after, visited.ends
    listen, kills = program.listen, visited.kill
    is_large = state.nodes.shape[0] > LARGE
    picked = np.empty(BLOCK, np.int32)
    visit, n_visits = first_visit, rows.shape[0]
    while visit < n_visits:
        n_picked = 0
        while visit < n_visits and n_picked < BLOCK:
            event_type = event_types[rows[visit]]
            is_idle = listen[event_type] == listen[event_type + 1] and not ends[visit]
            picked[n_picked] = visit
            n_picked += not is_idle or kills[visit] != 0 or afters[visit] == FAILED
            visit += 1
        if is_large:
            look_ahead(program, state, visited, picked, n_picked)
        for place in range(n_picked):
            status, transition = match_visit(
                program, tables, state, visited, output, picked[place], first_sequence, first_transition
            )
            if status != DONE:
                return status, picked[place], transition
            first_transition = NIL
    return DONE, n_visits, NIL
