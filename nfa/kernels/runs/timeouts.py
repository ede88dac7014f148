"""Timeouts: partial matches that were alive until WITHIN ended them, and that no other partial match extends.

A partial match P extends a partial match Q if, for every alias of Q, the events of P start with the events of Q. A
partial match whose window has passed is a *candidate*. A chain that extends a candidate contains the candidate's newest
event. The part of the chain up to this event has all bindings of the candidate, because chains are in the order in
which events arrived. So a candidate is put in a bucket by its newest event and the events of this event's alias. The
chains of all runs of the pair are walked once. At each node, a hash finds the candidates that the chain up to the node
rules out. The work grows with the number of nodes of the pair, not with the square of the number of its runs. The
buckets are those of parked runs, which is safe because runs of these patterns are never parked. Semantics:
``docs/semantics.md``, timeouts. The slow version is ``tests.references.patterns.partials``.
"""

from __future__ import annotations

import numpy as np

from nfa.kernels.runs.advancing import has_future
from nfa.kernels.runs.arena import enter_bucket, free_run, leave_bucket
from nfa.kernels.runs.parking import mixed
from nfa.kernels.runs.ranks import compare, ordered
from nfa.kernels.runs.tables import (
    ACTIVE,
    DECIDED,
    EARLIEST,
    GREEDY,
    LATEST,
    LIVES,
    MARK,
    NIL,
    NOTHING,
    ONE,
    PATTERN,
    PENDING,
    SPENT,
    TIMEOUT,
    VETO,
    WAS_MATCH,
    WAS_PART,
    Int,
    RunMatches,
    RunProgram,
    RunState,
)
from nfa.kernels.runs.waits import hand_out
from nfa.kernels.runs.windows import is_past, latest_end
from streams.kernels.compiling import apart, routine


@routine
def alias_of(p: RunProgram, s: RunState, node: Int) -> np.uint64:
    """Return the rank of a node's alias among the aliases of the pattern, sorted by name. The rank is below 64."""
    return np.uint64(p.alias_rank[p.alias_from[s.now[PATTERN]] + s.node_atom[node]])


@routine
def key_of_list(p: RunProgram, s: RunState, node: Int) -> np.uint64:
    """Return a hash of a node's alias and of the events that the chain up to the node binds to this alias.

    Chains that one chain extends are found by this hash.
    """
    alias = alias_of(p, s, node)
    key = mixed(ONE, alias)
    while node != NIL:
        if alias_of(p, s, node) == alias:
            key = mixed(key, np.uint64(s.event_sequence[s.node_event[node]]))
        node = s.node_parent[node]
    return key


@routine
def is_beginning(p: RunProgram, s: RunState, beginning: Int, chain: Int) -> bool:
    """Return whether ``chain`` extends ``beginning`` or has the same bindings. Both must end with the same event."""
    seen = NOTHING  # aliases of the events that both chains bind, from the newest event backwards
    while chain != NIL:
        alias = alias_of(p, s, chain)
        if beginning != NIL and s.node_event[beginning] == s.node_event[chain]:
            if alias_of(p, s, beginning) != alias:
                return False
            seen |= ONE << alias
            beginning = s.node_parent[beginning]
        elif (seen >> alias) & ONE != NOTHING:
            return False  # to this alias, the chain binds an earlier event that ``beginning`` lacks
        chain = s.node_parent[chain]
    return bool(beginning == NIL)


@routine
def rule_out(p: RunProgram, s: RunState, pair: Int, node: Int, goes_on: bool) -> None:
    """Rule out the timeout candidates that the chain up to a node extends.

    A candidate is a partial match whose window has ended. It is not reported as a timeout if another chain extends it.
    If ``goes_on``, the chain continues after the node or became a match. Then a candidate with the same bindings as the
    chain up to the node is ruled out, too.
    """
    key = key_of_list(p, s, node)
    run = s.buckets[key & np.uint64(s.buckets.shape[0] - 1)]
    while run != NIL:
        following, head = s.bucket_next[run], s.run_node[run]
        is_own = s.run_hash[run] == key and s.run_pair[run] == pair
        if is_own and (goes_on or s.node_length[head] < s.node_length[node]) and is_beginning(p, s, head, node):
            leave_bucket(s, run)
            s.run_lead[run] = WAS_PART
        run = following


@routine
def rule_out_along(p: RunProgram, s: RunState, pair: Int, run: Int) -> None:
    """Rule out the timeout candidates that the chain of a run extends; see ``rule_out``.

    Nodes that were walked before are skipped.
    """
    mark, node = s.counters[MARK], s.run_node[run]
    was_match = s.run_kind[run] == SPENT and s.run_lead[run] == WAS_MATCH
    goes_on = bool(was_match or s.run_kind[run] == DECIDED)
    while node != NIL and s.node_mark[node] != mark:
        if s.event_mark[s.node_event[node]] == mark:
            rule_out(p, s, pair, node, goes_on)
        if goes_on:
            s.node_mark[node] = mark
        goes_on = True
        node = s.node_parent[node]


@routine
def was_alive(p: RunProgram, s: RunState, run: Int) -> bool:
    """Mark a run as spent, and return whether it could still take a step just before its window ended."""
    last = s.run_end[run] - 1
    order = last if p.is_simultaneous[0] else LATEST
    if s.run_bits_order[run] < order:
        for column in range(0, VETO, 2):
            s.run_bits[run, column] |= s.run_bits[run, column + 1]
    s.run_bits[run, GREEDY] = NOTHING  # GREEDY does not end a partial match
    s.run_kind[run], s.run_lead[run], s.run_due[run] = SPENT, WAS_PART, EARLIEST
    return has_future(p, s, run, last, order)


@routine
def take_candidates(p: RunProgram, s: RunState, pair: Int, time: Int) -> np.int64:
    """Move the timeout candidates of a pair to a list of their own, and return the first candidate, or NIL.

    Candidates are the partial matches that could still take a step just before their window ended. They are also put
    into buckets by ``key_of_list``.
    """
    first = np.int64(NIL)
    before, run = np.int64(NIL), s.pair_runs[pair]
    while run != NIL:
        following = s.run_next[run]
        is_over = s.run_kind[run] == ACTIVE and is_past(s, run, time)
        if not is_over or not was_alive(p, s, run):
            before = np.int64(run)
        else:
            if before == NIL:
                s.pair_runs[pair] = following
            else:
                s.run_next[before] = following
            s.run_next[run], first = first, np.int64(run)
            s.run_lead[run], s.run_pair[run] = LIVES, pair
            s.event_mark[s.node_event[s.run_node[run]]] = s.counters[MARK]
            s.run_hash[run] = key_of_list(p, s, s.run_node[run])
            enter_bucket(s, run)
        run = following
    return first


@routine
def report(p: RunProgram, s: RunState, out: RunMatches, pair: Int, first: Int) -> None:
    """Emit a timeout for each candidate that was not ruled out, without duplicates.

    All candidates return to the list of their pair.
    """
    run, emitted = ordered(p, s, first), np.int64(NIL)
    while run != NIL:
        following = np.int64(s.run_next[run])
        if s.run_lead[run] == LIVES:
            leave_bucket(s, np.int32(run))
            if emitted == NIL or compare(p, s, emitted, run) != 0:
                hand_out(s, out, s.run_node[run], s.run_end[run], np.int64(s.run_how[run]), TIMEOUT)
                emitted = np.int64(run)
        s.run_lead[run] = WAS_PART
        s.run_next[run] = s.pair_runs[pair]
        s.pair_runs[pair] = run
        run = following


@routine
def drop_spent(p: RunProgram, s: RunState, pair: Int, time: Int) -> None:
    """Drop the spent runs of a pair whose windows have all ended.

    A spent run is retained for the search for timeouts only. No partial match can extend these runs any more.
    """
    before = np.int64(NIL)
    run = s.pair_runs[pair]
    while run != NIL:
        following = s.run_next[run]
        if s.run_kind[run] != SPENT or time < latest_end(p, s, s.now[PATTERN], s.run_node[run]):
            before = np.int64(run)
        else:
            if before == NIL:
                s.pair_runs[pair] = following
            else:
                s.run_next[before] = following
            free_run(s, run)
            s.pair_count[pair] -= 1
        run = following


@apart
def time_out(p: RunProgram, s: RunState, out: RunMatches, pair: Int, time: Int) -> None:
    """Report the timeouts of a pair up to ``time``. There must be room for them.

    All events before ``time`` must have been processed.
    """
    s.counters[MARK] += 1
    first = take_candidates(p, s, pair, time)
    if first != NIL:
        for start in (np.int64(s.pair_runs[pair]), first):
            run = start
            while run != NIL:
                if s.run_kind[run] != PENDING:
                    rule_out_along(p, s, pair, run)
                run = np.int64(s.run_next[run])
        report(p, s, out, pair, first)
    drop_spent(p, s, pair, time)
