"""Parked runs: partial matches that an event finds by their state and by a value, without a scan.

A state is *plain* if events have no effect on its gaps: every step from it is under ANY, without NOT, limit, UNTIL or
GREEDY. A run in a plain state waits only for an event that takes a step. If all steps from the state require that an
attribute of the event equals an attribute of an earlier event (for example, the same customer), this value is the key
of the run. An event then finds the runs with its value by hash.

The parked runs of a pair form a separate list, newest first. Parked runs with the same state and value are in the same
*bucket* of a hash table over all pairs, newest first as well. Both lists are doubly linked, so that any run can be
removed.
"""

from __future__ import annotations

import numpy as np

from nfa.kernels.conditions import FLOAT, INTEGER, TEXT
from nfa.kernels.runs.arena import enter_bucket, free_run, leave
from nfa.kernels.runs.tables import ACTIVE, LATEST, NIL, NOTHING, ONE, Int, RunProgram, RunState
from nfa.kernels.runs.windows import is_past
from streams.kernels.compiling import routine

SPREAD, LOW = np.uint64(0x9E3779B1), np.uint64(0xFFFFFFFF)
HALF, FOLD, TWO = np.uint64(32), np.uint64(29), np.uint64(2)


@routine
def mixed(word: np.uint64, more: np.uint64) -> np.uint64:
    """Return a hash extended by another word. Products of 32-bit halves avoid overflow."""
    word ^= more
    high = (word >> HALF) * SPREAD
    word = ((word & LOW) * SPREAD) ^ (high << HALF) ^ (high >> HALF)
    return word ^ (word >> FOLD)


@routine
def hash_of_value(kind: Int, bits: Int) -> np.uint64:
    """Return a hash of a value. An integer and a float that are equal have equal hashes."""
    if kind in (INTEGER, FLOAT):
        number = np.float64(bits) if kind == INTEGER else np.int64(bits).view(np.float64)
        return mixed(ONE, np.float64(number + 0.0).view(np.uint64))  # -0.0 equals 0.0
    return mixed(TWO if kind == TEXT else NOTHING, np.int64(bits).view(np.uint64))


@routine
def home_of(pair: Int, state: Int, value: np.uint64) -> np.uint64:
    """Return the hash of a pair, a state and a value. Parked runs with equal hashes are in the same bucket."""
    return mixed(mixed(value, np.uint64(pair) + ONE), np.uint64(state))


@routine
def hash_of_event(s: RunState, event: Int, column: Int) -> np.uint64:
    """Return the hash of an event's value in a column."""
    return hash_of_value(s.event_kinds[event, column], s.event_values[event, column])


@routine
def hash_of_key(p: RunProgram, s: RunState, run: Int) -> np.uint64:
    """Return the hash of the value by which a parked run is indexed, or ``NOTHING`` if the run has no such value."""
    column = p.key_column[s.run_state[run]]
    if column == NIL:
        return NOTHING
    node = s.run_node[run]
    while node != NIL and (p.key_atoms[s.run_state[run]] >> np.uint64(s.node_atom[node])) & ONE == NOTHING:
        node = s.node_parent[node]
    if node == NIL:
        return NOTHING
    return hash_of_event(s, s.node_event[node], column)


@routine
def park(p: RunProgram, s: RunState, pair: Int, run: Int) -> None:
    """Park a run that is in no list: events find it by its state and value instead of visiting all runs of the pair.

    The run becomes the first parked run of its pair, and the first run of its bucket.
    """
    first = s.pair_parked[pair]
    s.run_next[run], s.run_before[run] = first, NIL
    if first != NIL:
        s.run_before[first] = run
    s.pair_parked[pair] = run
    s.run_pair[run] = pair
    s.run_hash[run] = home_of(pair, s.run_state[run], hash_of_key(p, s, run))
    enter_bucket(s, run)
    s.pair_parked_due[pair] = min(s.pair_parked_due[pair], s.run_end[run])


@routine
def drop(s: RunState, run: Int) -> None:
    """Release a parked run, and remove it from its pair's list and from its bucket."""
    pair = s.run_pair[run]
    leave(s, run)
    free_run(s, run)
    s.pair_count[pair] -= 1


@routine
def sweep(s: RunState, pair: Int, time: Int) -> None:
    """Release the expired parked runs of a pair."""
    due: Int = LATEST
    run = s.pair_parked[pair]
    while run != NIL:
        following = s.run_next[run]
        if is_past(s, run, time):
            drop(s, run)
        else:
            due = min(due, s.run_end[run])
        run = following
    s.pair_parked_due[pair] = due
    s.pair_visits[pair] = 0


@routine
def unpark(s: RunState, pair: Int) -> None:
    """Move the parked runs of a pair to its list of runs, in order. ``settle_runs`` parks them again later."""
    last = np.int64(NIL)
    run = s.pair_parked[pair]
    while run != NIL:
        following = s.run_next[run]
        leave(s, run)
        if last == NIL:
            s.run_next[run] = s.pair_runs[pair]
            s.pair_runs[pair] = run
        else:
            s.run_next[run] = s.run_next[last]
            s.run_next[last] = run
        last = np.int64(run)
        run = following
    s.pair_parked_due[pair] = LATEST
    s.pair_is_loose[pair] = True


@routine
def settle_runs(p: RunProgram, s: RunState, pair: Int) -> None:
    """Park the runs in a pair's list whose state allows parking. They keep their order."""
    parked, before = np.int64(NIL), np.int64(NIL)
    run = s.pair_runs[pair]
    while run != NIL:
        following = s.run_next[run]
        if s.run_kind[run] == ACTIVE and p.parks[s.run_state[run]]:
            if before == NIL:
                s.pair_runs[pair] = following
            else:
                s.run_next[before] = following
            s.run_next[run] = parked
            parked = np.int64(run)
        else:
            before = np.int64(run)
        run = following
    while parked != NIL:
        run = np.int32(parked)
        parked = np.int64(s.run_next[run])
        park(p, s, pair, run)
    s.pair_is_loose[pair] = False


@routine
def fill_buckets(p: RunProgram, s: RunState) -> None:
    """Put the parked runs of all pairs into empty buckets. The hash of each run is computed again."""
    for pair in range(s.pair_parked.shape[0]):
        run = s.pair_parked[pair]
        while run != NIL and s.run_next[run] != NIL:
            run = s.run_next[run]
        while run != NIL:
            s.run_hash[run] = home_of(np.int32(pair), s.run_state[run], hash_of_key(p, s, run))
            enter_bucket(s, run)
            run = s.run_before[run]
