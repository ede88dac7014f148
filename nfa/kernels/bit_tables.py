"""The bit kernel, which keeps the state of a trace as bit sets of names instead of a monitor state.

It processes traces that exceed the cap of monitor states (constraint-aware CEP, section 4.3). A name is an event type
or a symbol, and has a bit. A set of names is ``words`` uint64 words. All guards share the arrays of a BitProgram, and
each guard has a range of every array. Indices of guards, traces, slots and rows are int64 in arguments and results, so
that all callers share the same compiled signature.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import inlined, routine

Int: TypeAlias = int | np.int32 | np.int64
Words: TypeAlias = NDArray[np.uint64]

NIL = -1
NOTHING = np.uint64(0)
ONE = np.uint64(1)
WORD_BITS = 64
LOW, SPREAD = np.uint64(0xFFFFFFFF), np.uint64(0x9E3779B1)  # a product of a 32-bit number with SPREAD does not overflow
FOLD = np.uint64(32)

# The four sets of names of a trace, which are the rows of its state.
SEEN = 0
CERTAIN = 1  # in every conforming continuation: seen or required
EXCLUDED = 2  # in no conforming continuation, seen or not
BLOCKED = 3  # cannot occur from now on
N_SETS = 4

# The effect of one event on a trace.
STAYS, MOVES, BREAKS = 0, 1, 2

# Status of ``advance_trace``: done, or the reason why it stopped, which the wrapper must resolve.
DONE = 0
MISSING_ROW = 4  # BitTraces.row has no monitor number yet
MISSING_KILL = 5  # BitLinks.pairs has no entry for (counters[STOP_BEFORE], counters[STOP_AFTER])
SLOTS_FULL = 6

NOTHING_ENDS = 0  # the empty list of kills
IGNORED = -2  # the event broke a constraint, which is only counted

# Indices of BitTraces.counters.
FREE = 0  # number of free slots on the stack
FRESH = 1  # number of slots that were ever used
ENTERED = 2  # number of traces that ever changed to bit tables
NOTED = 3  # number of entries of BitNotes
STOP_BEFORE = 4  # monitor numbers before and after the event at which advance_trace stopped
STOP_AFTER = 5
STOP_GUARD = 6
N_COUNTERS = 7


class BitProgram(NamedTuple):
    """The rules of several guards, compiled for the kernel.

    From these rules, the kernel computes the state of a trace (sets of names), and what can still complete in this
    state. The clauses of guard ``i`` are ``clause_from[i] : clause_from[i + 1]``. The other ``_from`` arrays have the
    same form.
    """

    start: NDArray[np.uint64]  # (guards, N_SETS, words)
    name_from: NDArray[np.int32]  # by guard
    requires: NDArray[np.uint64]  # (names, words): names that are certain once the name is, including the name itself
    excludes: NDArray[np.uint64]  # names that are in no conforming continuation once the name is certain
    blocks: NDArray[np.uint64]  # names that cannot occur after the name
    clause_from: NDArray[np.int32]  # by guard
    body: NDArray[np.uint64]  # (clauses, words)
    head: NDArray[np.int32]  # index of the implied name within the guard; NIL: the body is impossible
    broken_from: NDArray[np.int32]  # by guard
    broken: NDArray[np.uint64]  # (sets, words): names that are never all certain
    base: NDArray[np.uint32]  # (guards, columns): bits that a column always has
    choice_from: NDArray[np.int32]  # (guards * columns + 1,)
    choice_goal: NDArray[np.int32]
    choice_bits: NDArray[np.uint32]  # bits of a column while the goal is alive
    needs: NDArray[np.uint64]  # (goals, words): names of events that must still occur
    implies: NDArray[np.uint64]  # names that must be in the trace when the goal is reached
    conflict_from: NDArray[np.int32]  # by goal
    conflicts: NDArray[np.uint64]  # (sets, words): the goal is dead once all names of a set are certain


class BitTraces(NamedTuple):
    """The traces under bit tables.

    Each trace has a slot with four sets of names (types and symbols): seen in the trace, certain to occur, excluded
    from the trace, and blocked from now on.
    """

    states: NDArray[np.uint64]  # (slots, N_SETS, words)
    guard: NDArray[np.int32]  # (slots,) index of the guard in the program
    free: NDArray[np.int32]  # (slots,) stack of free slots
    slot_of: NDArray[np.int32]  # by trace number; NIL: the trace is not under bit tables
    counters: NDArray[np.int64]
    after: NDArray[np.uint64]  # (N_SETS, words) scratch for the state after the current event
    row: NDArray[np.uint32]  # (columns,) scratch for the row of liveness after the current event


class BitLinks(NamedTuple):
    """Tables that connect traces under bit tables with the other tables of a guard.

    They map event classes to names, rows of liveness to monitor numbers, and pairs of monitor numbers to lists of kills
    (``nfa.guards.bit_fallback.RowTables`` defines these terms).
    """

    shown: NDArray[np.uint64]  # (guards, event classes, words): the names of an event
    guard_of: NDArray[np.int32]  # by monitor number, for numbers that a trace under bit tables may have or start from
    is_bits: NDArray[np.bool_]  # by monitor number: whether the number represents a row of liveness
    seen: NDArray[np.uint64]  # (monitors, words): names seen in a monitor state; unused where is_bits
    monitor_of: NDArray[np.int32]  # (guards, rows of liveness): monitor number; NIL: not created yet
    when_broken: NDArray[np.int32]  # by guard: monitor number after a violation; IGNORED: the event is skipped
    rows: NDArray[np.int32]  # index of rows
    pairs: NDArray[np.int32]  # index of the lists of kills by pairs of monitor numbers


class BitNotes(NamedTuple):
    """Notes about the events of a batch that killed a column of the guard's tables or broke a constraint.

    Each note has the visit (relevant row) of the event, and the names seen in the trace before the event.
    """

    visit: NDArray[np.int32]
    seen: NDArray[np.uint64]  # (as long as the batch, words)


class Fallback(NamedTuple):
    """All arrays that ``advance_trace`` needs to advance traces under bit tables."""

    program: BitProgram
    traces: BitTraces
    links: BitLinks
    notes: BitNotes


@inlined
def holds(whole: Words, part: Words) -> bool:
    """Return whether the set ``whole`` contains the set ``part``."""
    outside = NOTHING
    for word in range(part.shape[0]):
        outside |= part[word] & ~whole[word]
    return bool(outside == NOTHING)


@inlined
def meets(first: Words, second: Words) -> bool:
    """Return whether two sets have common members."""
    shared = NOTHING
    for word in range(first.shape[0]):
        shared |= first[word] & second[word]
    return bool(shared != NOTHING)


@inlined
def add(target: Words, more: Words) -> None:
    """Add the members of the set ``more`` to the set ``target``."""
    for word in range(target.shape[0]):
        target[word] |= more[word]


@inlined
def is_gone(state: NDArray[np.uint64], names: Words) -> bool:
    """Return whether one of ``names`` can no longer occur: it is excluded, or it is blocked and has not been seen."""
    gone = NOTHING
    for word in range(names.shape[0]):
        gone |= names[word] & (state[EXCLUDED, word] | (state[BLOCKED, word] & ~state[SEEN, word]))
    return bool(gone != NOTHING)


@routine
def show(program: BitProgram, guard: Int, state: NDArray[np.uint64], names: Words) -> None:
    """Mark names as seen in the state of a trace.

    For each name that was not seen before, the rules also make names certain, excluded or blocked.
    """
    first = program.name_from[guard]
    for word in range(names.shape[0]):
        new = names[word] & ~state[SEEN, word]
        state[SEEN, word] |= new
        place = first + word * WORD_BITS
        while new != NOTHING:
            if new & ONE != NOTHING:
                add(state[CERTAIN], program.requires[place])
                add(state[EXCLUDED], program.excludes[place])
                add(state[BLOCKED], program.blocks[place])
            new >>= ONE
            place += 1


@inlined
def watch(program: BitProgram, first: Int, clause: Int, state: NDArray[np.uint64]) -> bool:
    """Apply a clause to the state of a trace, and return whether the state changes.

    A clause is a set of names that implies another name, or a set of names that cannot all occur. If all names but one
    are certain, and the implied name is impossible, the remaining name becomes excluded.
    """
    body, head = program.body[clause], program.head[clause]
    last, at, missing = NOTHING, 0, 0
    for word in range(body.shape[0]):
        absent = body[word] & ~state[CERTAIN, word]
        if absent != NOTHING:
            missing += 1 if absent & (absent - ONE) == NOTHING else 2
            last, at = absent, word
    if missing > 1:
        return False
    if missing == 0 and head == NIL:
        is_new = not holds(state[EXCLUDED], body)
        add(state[EXCLUDED], body)
        return is_new
    if missing == 0:
        is_new = not holds(state[CERTAIN], program.requires[first + head])
        add(state[CERTAIN], program.requires[first + head])
        add(state[EXCLUDED], program.excludes[first + head])
        return is_new
    if head != NIL and not is_gone(state, program.requires[first + head]):
        return False
    is_new = bool(last & ~state[EXCLUDED, at] != NOTHING)
    state[EXCLUDED, at] |= last
    return is_new


@routine
def settle(program: BitProgram, guard: Int, state: NDArray[np.uint64]) -> None:
    """Apply all clauses of a guard again and again, until the state no longer changes."""
    is_growing = True
    while is_growing:
        is_growing = False
        for clause in range(program.clause_from[guard], program.clause_from[guard + 1]):
            is_growing |= watch(program, program.name_from[guard], clause, state)


@inlined
def is_broken(program: BitProgram, guard: Int, state: NDArray[np.uint64]) -> bool:
    """Return whether a state shows that the trace breaks a constraint. False does not prove the contrary."""
    if is_gone(state, state[CERTAIN]):
        return True
    for row in range(program.broken_from[guard], program.broken_from[guard + 1]):
        if holds(state[CERTAIN], program.broken[row]):
            return True
    return False


@routine
def enter(program: BitProgram, guard: Int, seen: Words, state: NDArray[np.uint64]) -> None:
    """Write to ``state`` the state of a trace in which exactly the names ``seen`` have occurred."""
    for row in range(N_SETS):
        for word in range(seen.shape[0]):
            state[row, word] = program.start[guard, row, word]
    show(program, guard, state, seen)
    settle(program, guard, state)


@routine
def update(program: BitProgram, guard: Int, state: NDArray[np.uint64], names: Words, after: NDArray[np.uint64]) -> bool:
    """Write to ``after`` the state after an event with the names ``names``, and return whether it breaks a constraint.

    If it does, ``after`` is invalid. ``state`` and ``after`` must be different arrays.
    """
    if meets(names, state[BLOCKED]):
        return True
    for row in range(N_SETS):
        for word in range(names.shape[0]):
            after[row, word] = state[row, word]
    if holds(state[SEEN], names):
        return False
    show(program, guard, after, names)
    settle(program, guard, after)
    return is_broken(program, guard, after)


@inlined
def is_dead(program: BitProgram, goal: Int, state: NDArray[np.uint64]) -> bool:
    """Return whether a state shows that a goal can no longer be reached. False does not prove the contrary."""
    if meets(program.needs[goal], state[BLOCKED]) or is_gone(state, program.implies[goal]):
        return True
    for row in range(program.conflict_from[goal], program.conflict_from[goal + 1]):
        if holds(state[CERTAIN], program.conflicts[row]):
            return True
    return False


@routine
def fill_live(program: BitProgram, guard: Int, state: NDArray[np.uint64], row: NDArray[np.uint32]) -> None:
    """Write to ``row`` the terms that can still complete in ``state``, as bits for each column."""
    first = guard * row.shape[0]
    for column in range(row.shape[0]):
        live = program.base[guard, column]
        for choice in range(program.choice_from[first + column], program.choice_from[first + column + 1]):
            more = program.choice_bits[choice]
            if more & ~live != 0 and not is_dead(program, program.choice_goal[choice], state):
                live |= more
        row[column] = live


@inlined
def hash_row(row: NDArray[np.uint32]) -> np.uint64:
    """Return a hash of a row of liveness: the terms that can still complete, as bits for each column."""
    mixed = LOW
    for column in range(row.shape[0]):
        mixed = ((mixed ^ np.uint64(row[column])) & LOW) * SPREAD
        mixed ^= mixed >> FOLD
    return mixed


@inlined
def find_row(index: NDArray[np.int32], live: NDArray[np.uint32], row: NDArray[np.uint32]) -> Int:
    """Return the index of the row of ``live`` that equals ``row``, or NIL if no row does.

    ``index`` is an open-addressing hash table of row indices plus one. Its size is a power of two, and it is never
    full.
    """
    mask = np.uint64(index.shape[0] - 1)
    slot = hash_row(row) & mask
    while index[np.int64(slot)] != 0:
        number = np.int64(index[np.int64(slot)]) - 1
        is_equal = True
        for column in range(row.shape[0]):
            if live[number, column] != row[column]:
                is_equal = False
                break
        if is_equal:
            return number
        slot = (slot + ONE) & mask
    return np.int64(NIL)


@routine
def index_row(index: NDArray[np.int32], live: NDArray[np.uint32], number: Int) -> None:
    """Add row ``number`` of ``live`` to the index. The row must be new."""
    mask = np.uint64(index.shape[0] - 1)
    slot = hash_row(live[number]) & mask
    while index[np.int64(slot)] != 0:
        slot = (slot + ONE) & mask
    index[np.int64(slot)] = number + 1


@inlined
def home_of(before: Int, after: Int) -> np.uint64:
    """Return the hash of a pair of monitor numbers, for the hash table of lists of kills."""
    mixed = (np.uint64(before) * SPREAD) ^ ((np.uint64(after) * SPREAD) << np.uint64(7))
    return mixed ^ (mixed >> np.uint64(29))


@inlined
def find_pair(index: NDArray[np.int32], before: Int, after: Int) -> Int:
    """Return the value that ``index_pair`` assigned to a pair of monitor numbers, or NIL if there is none.

    Rows of the hash table ``index`` are (before + 1, after, value).
    """
    mask = np.uint64(index.shape[0] - 1)
    slot = home_of(before, after) & mask
    while index[np.int64(slot), 0] != 0:
        if index[np.int64(slot), 0] == before + 1 and index[np.int64(slot), 1] == after:
            return np.int64(index[np.int64(slot), 2])
        slot = (slot + ONE) & mask
    return np.int64(NIL)


@routine
def index_pair(index: NDArray[np.int32], before: Int, after: Int, value: Int) -> None:
    """Assign a value to a pair of monitor numbers. The pair must not be in ``index`` yet."""
    mask = np.uint64(index.shape[0] - 1)
    slot = home_of(before, after) & mask
    while index[np.int64(slot), 0] != 0:
        slot = (slot + ONE) & mask
    index[np.int64(slot), 0], index[np.int64(slot), 1], index[np.int64(slot), 2] = before + 1, after, value


@inlined
def take_slot(traces: BitTraces, trace: Int, guard: Int) -> Int:
    """Assign a free slot to a trace that has none, and return the slot. If all slots are in use, return NIL.

    The caller must write the slot's state.
    """
    counters = traces.counters
    if counters[FREE] > 0:
        counters[FREE] -= 1
        slot = np.int64(traces.free[counters[FREE]])
    elif counters[FRESH] < traces.free.shape[0]:
        slot = counters[FRESH]
        counters[FRESH] += 1
    else:
        return np.int64(NIL)
    traces.slot_of[trace] = slot
    traces.guard[slot] = guard
    return slot


@routine
def release_slot(traces: BitTraces, trace: Int) -> None:
    """Release the slot of a trace. A trace without a slot is ignored."""
    slot = traces.slot_of[trace]
    if slot != NIL:
        traces.slot_of[trace] = NIL
        traces.free[traces.counters[FREE]] = slot
        traces.counters[FREE] += 1


@inlined
def weigh(program: BitProgram, traces: BitTraces, slot: Int, names: Words) -> Int:
    """Compute the effect of an event on a trace, without changing the state in the trace's slot.

    Returns ``STAYS``, ``BREAKS`` (a constraint) or ``MOVES``. For ``MOVES``, the new state is in ``traces.after``. The
    caller may stop before ``settle_in`` and repeat the call.
    """
    state, guard = traces.states[slot], np.int64(traces.guard[slot])
    if update(program, guard, state, names, traces.after):
        return BREAKS
    if holds(state[SEEN], names):
        return STAYS
    fill_live(program, guard, traces.after, traces.row)
    return MOVES


@inlined
def settle_in(traces: BitTraces, slot: Int) -> None:
    """Copy ``traces.after`` into the slot as the new state of its trace."""
    for row in range(N_SETS):
        for word in range(traces.after.shape[1]):
            traces.states[slot, row, word] = traces.after[row, word]


@inlined
def note(traces: BitTraces, notes: BitNotes, slot: Int, visit: Int) -> None:
    """Append a visit (relevant row) to ``notes``, with the names seen in the trace before the visit's event."""
    place = traces.counters[NOTED]
    notes.visit[place] = visit
    for word in range(notes.seen.shape[1]):
        notes.seen[place, word] = traces.states[slot, SEEN, word]
    traces.counters[NOTED] += 1


@routine
def advance_trace(
    bits: Fallback, live: NDArray[np.uint32], trace: Int, before: Int, event_class: Int, visit: Int
) -> tuple[Int, Int, Int]:
    """Advance a trace under bit tables by an event.

    A trace without a slot gets one first. Returns (status, monitor number after the event, index of the list of columns
    that die). The index is ``IGNORED`` if the event is skipped. If the status is not ``DONE``, the caller must supply
    the missing slots, row or list, and repeat the call.
    """
    program, traces, links, notes = bits.program, bits.traces, bits.links, bits.notes
    counters = traces.counters
    slot = np.int64(traces.slot_of[trace])
    if slot == NIL:
        guard = np.int64(links.guard_of[before])
        slot = np.int64(take_slot(traces, trace, guard))
        if slot == NIL:
            return SLOTS_FULL, np.int64(before), np.int64(NOTHING_ENDS)
        enter(program, guard, links.seen[before], traces.states[slot])
        counters[ENTERED] += 1
    guard = np.int64(traces.guard[slot])
    outcome = weigh(program, traces, slot, links.shown[guard, event_class])
    if outcome == BREAKS:
        note(traces, notes, slot, visit)
        after = np.int64(links.when_broken[guard])
        if after == IGNORED:
            return DONE, np.int64(before), np.int64(IGNORED)
        release_slot(traces, trace)
        return DONE, after, np.int64(NOTHING_ENDS)
    if outcome == STAYS:
        if links.is_bits[before]:
            return DONE, np.int64(before), np.int64(NOTHING_ENDS)
        fill_live(program, guard, traces.after, traces.row)
    counters[STOP_BEFORE], counters[STOP_GUARD] = before, guard
    row = find_row(links.rows, live, traces.row)
    known = np.int64(NIL) if row == NIL else np.int64(links.monitor_of[guard, row])
    if known == NIL:
        return MISSING_ROW, np.int64(before), np.int64(NOTHING_ENDS)
    counters[STOP_AFTER] = known
    kill = np.int64(NOTHING_ENDS) if known == before else find_pair(links.pairs, np.int64(before), known)
    if kill == NIL:
        return MISSING_KILL, np.int64(before), np.int64(NOTHING_ENDS)
    if kill != NOTHING_ENDS:
        note(traces, notes, slot, visit)
    settle_in(traces, slot)
    return DONE, known, kill
