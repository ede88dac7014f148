"""Enumeration and counting of the matches in a stack. A stack of nodes represents many partial matches."""

from __future__ import annotations

import numpy as np

from nfa.kernels.shared.tables import (
    ALIAS_MASK,
    BEFORE,
    BELOW,
    BOUND_FULL,
    DONE,
    EVENT,
    EVENT_BITS,
    MATCHES_FULL,
    MEASURE,
    MEMO_FULL,
    MOST_COUNTED,
    NIL,
    PATH_FULL,
    Int,
    Output,
    SharedState,
)
from streams.kernels.compiling import apart, inlined


@apart
def count_paths(state: SharedState, output: Output, head: Int, now: Int, within: Int) -> np.int64:
    """Return the number of partial matches in a stack that have not expired under WITHIN.

    Each node is visited once.
    """
    links, nodes, times, memo = state.links, state.nodes, state.times, output.memo
    output.filled[4] += 1
    stamp = output.filled[4]
    memo[0, 2] = head
    top = 1
    while top > 0:
        node = memo[top - 1, 2]
        below, before = links[node, BELOW], links[node, BEFORE]
        is_open = nodes[node, MEASURE] > now
        is_own = is_open and times[node] + within > now
        if is_open and below != NIL and memo[below, 1] != stamp:
            memo[top, 2] = below
            top += 1
        elif is_own and before != NIL and memo[before, 1] != stamp:
            memo[top, 2] = before
            top += 1
        else:
            paths = memo[below, 0] if is_open and below != NIL else np.int64(0)
            if is_own:
                paths += memo[before, 0] if before != NIL else np.int64(1)
            memo[node, 0] = min(paths, MOST_COUNTED)
            memo[node, 1] = stamp
            top -= 1
    ways: np.int64 = memo[head, 0]
    return ways


@inlined
def write_match(output: Output, record: Int, end: Int, level: Int, first: Int, last: Int) -> tuple[Int, Int]:
    """Write the bound events of a match to the output.

    The events are ``first``, then ``level`` events of the path, then ``last``. If ``level`` is ``NIL``, ``last`` is the
    only event. Returns (status, offset of the next match's events).
    """
    words, bound_alias, bound_sequence = output.words, output.bound_alias, output.bound_sequence
    if record >= output.match_end.shape[0]:
        return MATCHES_FULL, end
    if end + level + 2 > bound_alias.shape[0]:
        return BOUND_FULL, end
    if level != NIL:
        bound_alias[end], bound_sequence[end] = (first >> 1) & ALIAS_MASK, first >> EVENT_BITS
        end += 1
        for place in range(words.shape[0] - level, words.shape[0]):
            bound_alias[end], bound_sequence[end] = (words[place] >> 1) & ALIAS_MASK, words[place] >> EVENT_BITS
            end += 1
    bound_alias[end], bound_sequence[end] = (last >> 1) & ALIAS_MASK, last >> EVENT_BITS
    output.match_end[record] = end + 1
    return DONE, end + 1


@inlined
def write_single(output: Output, event: Int) -> tuple[Int, Int]:
    """Write a match that consists of a single event. Return (status, number of matches written)."""
    filled = output.filled
    record, written = filled[0], np.int64(0)
    status, end = write_match(output, record, filled[1], np.int64(NIL), event, event)
    if status == DONE:
        filled[0], filled[1] = record + 1, end
        written += 1
    return status, written


@inlined
def is_within(state: SharedState, before: Int, latest: Int, earliest: Int, within: Int) -> bool:
    """Return whether a match fits the window if its earlier events come from the stack ``before``.

    The events chosen so far have times from ``earliest`` to ``latest``.
    """
    return bool(latest < earliest + within and (before == NIL or state.nodes[before, MEASURE] > latest))


@inlined
def write_paths(
    state: SharedState, output: Output, head: Int, event: Int, now: Int, clock: Int, within: Int, budget: Int
) -> tuple[Int, Int]:
    """Write at most ``budget`` of the matches that an event completes, newest events first.

    ``head`` is the stack of the partial matches that the event completes. ``clock`` is the newest event time so far.
    Under WITHIN, a match is left out if its window has ended at ``clock``. Returns (status, number of matches written).
    If the status is not ``DONE``, an array is full, and the call must be repeated.
    """
    links, nodes, times, path, words = state.links, state.nodes, state.times, output.path, output.words
    filled = output.filled
    record, end = filled[0], filled[1]
    level = np.int64(0)
    written: Int = 0
    node, latest, earliest = np.int64(head), np.int64(clock), np.int64(now)
    while written < budget:
        if node == NIL or (within != 0 and not is_within(state, node, latest, earliest, within)):
            level -= 1
            if level < 0:
                break
            node, latest, earliest = np.int64(links[path[level, 0], BELOW]), path[level, 1], path[level, 2]
            continue
        before, bound = np.int64(links[node, BEFORE]), nodes[node, EVENT]
        upper, lower = latest, earliest
        if within != 0:
            upper, lower = max(latest, times[node]), min(earliest, times[node])
            if not is_within(state, before, upper, lower, within):
                node = np.int64(links[node, BELOW])
                continue
        if before != NIL:
            if level + 1 >= path.shape[0]:
                return PATH_FULL, written
            path[level, 0], path[level, 1], path[level, 2] = node, latest, earliest
            level += 1
            words[words.shape[0] - level] = bound
            node, latest, earliest = before, upper, lower
            continue
        status, end = write_match(output, record, end, level, bound, event)
        if status != DONE:
            return status, written
        record += 1
        written += 1
        node = np.int64(links[node, BELOW])
    filled[0], filled[1] = record, end
    return DONE, written


@apart
def complete(
    state: SharedState, output: Output, head: Int, event: Int, now: Int, clock: Int, within: Int, budget: Int
) -> tuple[Int, Int, Int]:
    """Write the matches that an event completes by one transition into an accepting state.

    ``head`` is the stack of the transition's source state. At most ``budget`` matches are written. Returns (status,
    number of matches written, number of matches beyond the limit).
    """
    if head == NIL:
        if budget == 0:
            return DONE, np.int64(0), np.int64(1)
        status, written = write_single(output, event)
        return status, written, np.int64(0)
    if within != 0 and clock - now >= within:
        return DONE, np.int64(0), np.int64(0)
    status, written = write_paths(state, output, head, event, now, clock, within, budget)
    if status != DONE or written < budget:
        return status, written, np.int64(0)
    if within == 0:
        return DONE, written, state.nodes[head, MEASURE] - written
    if output.memo.shape[0] < state.nodes.shape[0]:
        return MEMO_FULL, written, np.int64(0)
    paths = count_paths(state, output, np.int64(head), clock, within)
    return DONE, written, max(paths - written, np.int64(0))
