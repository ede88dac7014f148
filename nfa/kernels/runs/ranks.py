"""Ranking of the matches that an event completes: their order, exclusion by the after-match rule, and the limit.

Under ``ties: log``, a match without trailing conditions is decided by its last event. All matches of a trace that an
event completes are ranked here and emitted with the event. Decisions that wait for time to pass are ranked outside the
kernel (``nfa.runs.ranked_pairs``). Semantics: ``docs/semantics.md``, emission. The slow version is
``tests.references.patterns.emission``.

Matches that the same event completes share their last event, and the events of a chain are in the order of the log. So
they are compared by start, first event, length, then event by event, and last by the aliases of the events.
"""

from __future__ import annotations

import numpy as np

from nfa.kernels.runs.arena import free_run
from nfa.kernels.runs.tables import (
    ACTIVE,
    CAPPED,
    DECIDED,
    EARLIEST,
    FRESH,
    HAS_REPORTED,
    LATEST,
    MATCH,
    NIL,
    NOT_REPORTED_YET,
    NOT_WAITED,
    NOTHING,
    ONCE_PER_KEY,
    ONE,
    PATTERN,
    PENDING,
    READY,
    SKIP_PAST_LAST,
    SKIP_TO_FIRST,
    SKIP_TO_NEXT,
    SPENT,
    TIME,
    TIMEOUTS,
    WAS_MATCH,
    WRITTEN,
    Int,
    RunMatches,
    RunProgram,
    RunState,
)
from nfa.kernels.runs.waits import hand_out
from streams.kernels.compiling import routine


@routine
def set_aside(s: RunState, run: Int) -> None:
    """Move a complete match from the front of the new runs to the list of runs that are ranked after the event."""
    s.now[FRESH] = s.run_next[run]
    s.run_next[run] = s.now[READY]
    s.now[READY] = run
    s.run_due[run] = s.now[TIME]


@routine
def compare_events(s: RunState, run: Int, other: Int) -> Int:
    """Return -1, 0 or 1 for the order of two chains of equal length by their events, oldest first."""
    left, right, order = s.run_node[run], s.run_node[other], np.int64(0)
    while left != right:
        a, b = s.event_sequence[s.node_event[left]], s.event_sequence[s.node_event[right]]
        if a != b:
            order = np.int64(-1) if a < b else np.int64(1)
        left, right = s.node_parent[left], s.node_parent[right]
    return order


@routine
def compare_alias(p: RunProgram, s: RunState, run: Int, other: Int, alias: Int) -> Int:
    """Return -1, 0 or 1 for the order of two chains by the events that they bind to one alias.

    The chains bind the same events. A chain that binds none to the alias is greater.
    """
    first = p.alias_from[s.now[PATTERN]]
    left, right = s.run_node[run], s.run_node[other]
    order, n_left, n_right = np.int64(0), 0, 0  # order of the events so far, from the newest event backwards
    while left != NIL:
        is_left = p.alias_rank[first + s.node_atom[left]] == alias
        is_right = p.alias_rank[first + s.node_atom[right]] == alias
        if is_left and not is_right:  # at this place the other list has a later event, or has ended
            order = np.int64(-1) if n_right > 0 else np.int64(1)
        elif is_right and not is_left:
            order = np.int64(1) if n_left > 0 else np.int64(-1)
        n_left += is_left
        n_right += is_right
        left, right = s.node_parent[left], s.node_parent[right]
    if n_left == 0 or n_right == 0:
        return np.int64(n_left == 0) - np.int64(n_right == 0)
    return order


@routine
def compare(p: RunProgram, s: RunState, run: Int, other: Int) -> Int:
    """Return -1 or 1 for the order in which two matches are emitted, or 0 if their bindings are equal.

    The same event must complete both matches.
    """
    if s.run_start[run] != s.run_start[other]:
        return np.int64(-1) if s.run_start[run] < s.run_start[other] else np.int64(1)
    if s.run_first[run] != s.run_first[other]:
        return np.int64(-1) if s.run_first[run] < s.run_first[other] else np.int64(1)
    size, other_size = s.node_length[s.run_node[run]], s.node_length[s.run_node[other]]
    if size != other_size:
        return np.int64(-1) if size > other_size else np.int64(1)
    order = compare_events(s, run, other)
    alias = np.int64(0)
    while order == 0 and alias < p.alias_count[s.now[PATTERN]]:
        order = compare_alias(p, s, run, other, alias)
        alias += 1
    return order


@routine
def merged(p: RunProgram, s: RunState, left: Int, right: Int) -> np.int64:
    """Merge two ordered lists of runs, and return the first run of the result."""
    first, last = np.int64(NIL), np.int64(NIL)
    while left != NIL or right != NIL:
        if right == NIL or (left != NIL and compare(p, s, left, right) <= 0):
            head = np.int64(left)
            left = np.int64(s.run_next[left])
        else:
            head = np.int64(right)
            right = np.int64(s.run_next[right])
        if last == NIL:
            first = head
        else:
            s.run_next[last] = head
        last = head
    if last != NIL:
        s.run_next[last] = NIL
    return first


@routine
def ordered(p: RunProgram, s: RunState, first: Int) -> np.int64:
    """Sort a list of runs by emission order, and return its first run. The method is a bottom-up merge sort."""
    size = 0
    run = np.int64(first)
    while run != NIL:
        size += 1
        run = np.int64(s.run_next[run])
    width = np.int64(1)
    while width < size:
        rest, last = np.int64(first), np.int64(NIL)
        first = np.int64(NIL)
        while rest != NIL:
            left, rest = cut(s, rest, width)
            right, rest = cut(s, rest, width)
            part = merged(p, s, left, right)
            if last == NIL:
                first = part
            else:
                s.run_next[last] = part
            last = part
            while s.run_next[last] != NIL:
                last = np.int64(s.run_next[last])
        width *= 2
    return np.int64(first)


@routine
def cut(s: RunState, first: Int, size: Int) -> tuple[np.int64, np.int64]:
    """Split a list after ``size`` runs, and return the first runs of both parts."""
    last = np.int64(first)
    while last != NIL and size > 1:
        last = np.int64(s.run_next[last])
        size -= 1
    if last == NIL:
        return np.int64(first), np.int64(NIL)
    rest = np.int64(s.run_next[last])
    s.run_next[last] = NIL
    return np.int64(first), rest


@routine
def skip_target(p: RunProgram, s: RunState, kept: Int) -> Int:
    """Return the sequence number of the event to which SKIP TO FIRST or SKIP TO LAST skips.

    If the match binds nothing to the rule's alias, return ``NIL``.
    """
    pattern, target = s.now[PATTERN], np.int64(NIL)
    node = s.run_node[kept]
    while node != NIL:
        if (p.rule_atoms[pattern] >> np.uint64(s.node_atom[node])) & ONE != NOTHING:
            target = s.event_sequence[s.node_event[node]]
            if p.rule[pattern] != SKIP_TO_FIRST:
                break
        node = s.node_parent[node]
    return target


@routine
def rules_out(p: RunProgram, s: RunState, kept: Int, target: Int, other: Int) -> bool:
    """Return whether the after-match rule of an emitted match excludes another run.

    ``kept`` is the emitted match, and ``target`` is its ``skip_target``. ``other`` is a match or a partial match.
    """
    rule, first = p.rule[s.now[PATTERN]], s.run_first[other]
    if rule == ONCE_PER_KEY:
        return True
    if rule == SKIP_PAST_LAST:
        return bool(first <= s.event_sequence[s.node_event[s.run_node[kept]]])
    if rule == SKIP_TO_NEXT or target == NIL or target == s.run_first[kept]:
        return bool(first == s.run_first[kept])
    return bool(first < target)


@routine
def mute(p: RunProgram, s: RunState, pair: Int, kept: Int, following: Int) -> None:
    """Exclude the runs that an emitted match rules out by its after-match rule.

    Two lists are searched: the runs of the pair, and the matches to rank, from ``following`` on.
    """
    pattern = s.now[PATTERN]
    target = skip_target(p, s, kept) if p.rule[pattern] >= SKIP_TO_FIRST else np.int64(NIL)
    run = np.int64(following)
    while run != NIL:
        s.run_muted[run] |= rules_out(p, s, kept, target, run)
        run = np.int64(s.run_next[run])
    keeps = (p.flags[pattern] & TIMEOUTS) != 0
    before, run = np.int64(NIL), np.int64(s.pair_runs[pair])
    while run != NIL:
        after = np.int64(s.run_next[run])
        is_out = s.run_kind[run] <= DECIDED and rules_out(p, s, kept, target, run)
        s.run_muted[run] |= is_out
        if not is_out or keeps:
            before = run
        else:
            if before == NIL:
                s.pair_runs[pair] = after
            else:
                s.run_next[before] = after
            free_run(s, np.int32(run))
            s.pair_count[pair] -= 1
        run = after
    if p.rule[pattern] == ONCE_PER_KEY:
        s.pair_finished[pair] = True


@routine
def mute_twins(p: RunProgram, s: RunState, pair: Int, kept: Int) -> None:
    """Exclude the waiting matches that bind the same events to the same aliases as an emitted match."""
    run = s.pair_runs[pair]
    while run != NIL:
        if s.run_kind[run] == PENDING and not s.run_muted[run]:
            is_same = (
                s.node_event[s.run_node[run]] == s.node_event[s.run_node[kept]]
                and compare(p, s, np.int64(run), np.int64(kept)) == 0
            )
            s.run_muted[run] |= is_same
        run = s.run_next[run]


@routine
def put_away(p: RunProgram, s: RunState, pair: Int, run: Int) -> None:
    """Release a match after ranking. If the search for timeouts still needs the match, retain it as a spent run."""
    if run == NIL:
        return
    if (p.flags[s.now[PATTERN]] & TIMEOUTS) == 0:
        free_run(s, np.int32(run))
        return
    s.run_kind[run], s.run_lead[run], s.run_due[run] = SPENT, WAS_MATCH, EARLIEST
    s.run_next[run] = s.pair_runs[pair]
    s.pair_runs[pair] = run
    s.pair_count[pair] += 1


@routine
def emit_ready(p: RunProgram, s: RunState, out: RunMatches, pair: Int, limit: Int) -> None:
    """Rank the matches of a pair that the current event completed. Emit those that no better match excludes."""
    if s.now[READY] == NIL:
        return
    pattern = s.now[PATTERN]
    if s.pair_told[pair] == NOT_REPORTED_YET:
        s.pair_told[pair] = HAS_REPORTED
    limit = np.int64(limit) if p.most[pattern] == LATEST else p.most[pattern]
    run, before = ordered(p, s, s.now[READY]), np.int64(NIL)
    s.now[READY] = NIL
    while run != NIL:
        following = np.int64(s.run_next[run])
        is_out = s.run_muted[run] or s.pair_finished[pair] or (before != NIL and compare(p, s, before, run) == 0)
        if not is_out and s.now[WRITTEN] < limit:
            s.now[WRITTEN] += 1
            hand_out(s, out, s.run_node[run], s.run_due[run], np.int64(NOT_WAITED), MATCH)
        elif not is_out:
            s.now[CAPPED] += 1
        if not is_out:
            mute_twins(p, s, pair, run)
            if p.rule[pattern] != 0:
                mute(p, s, pair, run, following)
        put_away(p, s, pair, before)
        before, run = run, following
    put_away(p, s, pair, before)


@routine
def has_to_rank(p: RunProgram, s: RunState, pair: Int) -> bool:
    """Return whether a pair has matches to rank outside the kernel before the pair's time can advance."""
    if p.flags[s.pair_pattern[pair]] == 0:
        return False
    run = s.pair_runs[pair]
    while run != NIL and (s.run_kind[run] == ACTIVE or s.run_kind[run] == SPENT):
        run = s.run_next[run]
    return bool(run != NIL)
