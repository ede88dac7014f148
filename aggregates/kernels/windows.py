"""Kernels of windows: events enter and leave in the order of time, and each change of a group is a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggregates.kernels.tables import (
    AHEAD,
    BASE,
    BEGUN,
    CLOCK,
    DONE,
    DUE,
    EACH,
    END,
    ENDING,
    ENTERED,
    EXPIRIES,
    FIRST,
    FULL,
    HEAD,
    HELD,
    HELD_ROWS,
    HOLDS,
    INSTANT,
    IS_TRUE,
    LAST,
    LATE,
    LEFT,
    LINKED,
    LIVE,
    LOADING,
    LOGGED,
    LOGS,
    LONG_HEADER,
    MARK,
    MAY_BE_TRUE,
    NO_NODES,
    NO_ROOM,
    NODES,
    OLDEST,
    RESET,
    RETRACT,
    ROOM,
    ROW,
    SESSION,
    SHOWN,
    SIMULTANEOUS,
    SLIDING,
    SPAN,
    SPARE,
    STEPPED,
    STEPS,
    TAIL,
    TOO_MANY,
    TOUCHED,
    TRUTH,
    TRUTH_BITS,
    Events,
    Groups,
    Steps,
    log,
)
from aggregates.kernels.values import change_group, clear_values, may_hold, put_values
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import apart, inlined, kernel

_TOUCHED_ROWS = 1_024


@inlined
def note_step(
    groups: Groups,
    held: Events,
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    out: Steps,
    logs: NDArray[np.int64],
    code: np.int64,
    at_us: np.int64,
    place: np.int64,
    modes: int | np.int64,
) -> None:
    """Note the values of a group that has changed: in its step of this time, if that is not finished, or a new one.

    No step is noted of a condition that was false and cannot be true.
    """
    words = groups.words
    if state[INSTANT] != at_us:
        state[INSTANT], state[BEGUN] = at_us, state[STEPS]
    is_possible = may_hold(groups, plan, bounds, code)
    step, truth = (words[code, MARK] >> TRUTH_BITS) - state[BASE], words[code, MARK] & TRUTH
    if step < state[BEGUN] or (place >= 0 and modes & SIMULTANEOUS == 0):
        if not is_possible and truth == 0:
            return
        step = state[STEPS]
        state[STEPS] += 1
        out.codes[step], out.at_us[step], out.places[step], out.ended[step] = code, at_us, -1, False
    bits = (truth & IS_TRUE) | (MAY_BE_TRUE if is_possible else 0)
    words[code, MARK] = (step + state[BASE]) << TRUTH_BITS | bits
    if place >= 0:
        out.places[step] = place
    has_objects = put_values(groups, held, plan, code, out, step) or modes & SHOWN != 0
    if has_objects and modes & LOADING == 0:
        log(logs, state, STEPPED, code, step + state[BASE])


@apart
def note_end(
    groups: Groups,
    held: Events,
    plan: NDArray[np.int64],
    state: NDArray[np.int64],
    out: Steps,
    logs: NDArray[np.int64],
    code: np.int64,
    at_us: np.int64,
    place: np.int64,
    modes: np.int64,
) -> None:
    """Note the values of a window that ends as a whole; its events leave next."""
    words, step = groups.words, state[STEPS]
    state[STEPS] += 1
    state[ENDING] = code + 1
    out.codes[step], out.at_us[step], out.places[step], out.ended[step] = code, at_us, place, True
    out.firsts[step] = words[code, OLDEST]
    words[code, MARK] &= IS_TRUE
    if put_values(groups, held, plan, code, out, step) or modes & SHOWN:
        log(logs, state, STEPPED, code, step + state[BASE])


@inlined
def copy_event(held: Events, slot: np.int64, source: Events, row: np.int64) -> None:
    """Write an event into a slot of the ring."""
    held.times_us[slot], held.codes[slot] = source.times_us[row], source.codes[row]
    for column in range(held.kinds.shape[0]):
        held.kinds[column, slot] = source.kinds[column, row]
    for column in range(held.lows.shape[0]):
        held.lows[column, slot] = source.lows[column, row]
    for column in range(held.highs.shape[0]):
        held.highs[column, slot] = source.highs[column, row]
    if held.serials.shape[0] > 0:
        held.serials[slot] = source.serials[row]


@inlined
def link(groups: Groups, held: Events, code: np.int64, older: np.int64, slot: np.int64) -> None:
    """Make an event the next one of its group after another; -1 in place of one: the end of the links."""
    if older >= 0:
        held.links[older, 1] = slot
    else:
        groups.words[code, HEAD] = slot + 1
    if slot >= 0:
        held.links[slot, 0] = older
    else:
        groups.words[code, TAIL] = older + 1


@inlined
def enter_event(
    groups: Groups, held: Events, state: NDArray[np.int64], batch: Events, row: np.int64, modes: np.int64
) -> np.int64:
    """Put an event of a batch into the ring, after all events that are not newer; returns its slot."""
    room, time_us = held.times_us.shape[0], batch.times_us[row]
    slot = state[FIRST] + state[SPAN]
    slot = slot - room if slot >= room else slot
    for _ in range(state[SPAN]):
        older = slot - 1 if slot > 0 else np.int64(room - 1)
        if held.times_us[older] <= time_us:
            break
        copy_event(held, slot, held, older)
        if modes & LINKED and held.codes[slot] >= 0:
            before, after = np.int64(held.links[older, 0]), np.int64(held.links[older, 1])
            link(groups, held, np.int64(held.codes[slot]), before, slot)
            link(groups, held, np.int64(held.codes[slot]), slot, after)
        slot = older
    copy_event(held, slot, batch, row)
    state[SPAN] += 1
    if modes & LINKED:
        code = np.int64(batch.codes[row])
        newer, older = np.int64(-1), groups.words[code, TAIL] - 1
        while older >= 0 and held.times_us[older] > time_us:
            newer, older = older, np.int64(held.links[older, 0])
        link(groups, held, code, older, slot)
        link(groups, held, code, slot, newer)
    return np.int64(slot)


@inlined
def leave_event(
    groups: Groups,
    plan: NDArray[np.int64],
    state: NDArray[np.int64],
    held: Events,
    logs: NDArray[np.int64],
    slot: np.int64,
    size_us: int,
    modes: np.int64,
) -> None:
    """Let an event leave."""
    code, words, room = np.int64(held.codes[slot]), groups.words, held.codes.shape[0]
    change_group(groups, plan, state, held, logs, slot, np.int64(-1))
    state[HELD] -= 1
    if modes & LOGGED:
        log(logs, state, LEFT, code, held.serials[slot])
    if modes & LINKED:
        older, newer = np.int64(held.links[slot, 0]), np.int64(held.links[slot, 1])
        link(groups, held, code, older, newer)
        if words[code, HELD_ROWS] > 0:
            words[code, OLDEST] = held.times_us[words[code, HEAD] - 1]
            if modes & SESSION:
                words[code, DUE] = held.times_us[words[code, TAIL] - 1] + size_us
    held.codes[slot] = -1
    while state[SPAN] > 0 and held.codes[state[FIRST]] < 0:
        state[FIRST] = state[FIRST] + 1 if state[FIRST] + 1 < room else 0
        state[SPAN] -= 1


@apart
def empty_group(
    groups: Groups,
    plan: NDArray[np.int64],
    state: NDArray[np.int64],
    held: Events,
    logs: NDArray[np.int64],
    size_us: int,
    modes: np.int64,
) -> None:
    """Let the oldest event of a group leave whose window ends, or forget its values if no events are held."""
    code, words = state[ENDING] - 1, groups.words
    if modes & HOLDS:
        leave_event(groups, plan, state, held, logs, words[code, HEAD] - 1, size_us, modes)
    else:
        words[code, HELD_ROWS] = 0
        clear_values(groups, plan, state, logs, code)
        for place in range(LONG_HEADER, words.shape[1]):
            words[code, place] = 0
        state[LIVE] -= 1
        state[HELD] -= 1
    if words[code, HELD_ROWS] == 0:
        state[ENDING] = 0
        if logs.shape[0] > 0:
            log(logs, state, RESET, code, np.int64(0))


@apart
def slot_of(
    groups: Groups,
    held: Events,
    state: NDArray[np.int64],
    time_us: np.int64,
    serial: np.int64,
    at_us: np.int64,
    modes: np.int64,
) -> np.int64:
    """The slot of an event by its time and number, in a window that is not over; -1: it is not in the ring."""
    room, begin, low, high = held.codes.shape[0], state[FIRST], np.int64(0), state[SPAN]
    while low < high:
        middle = (low + high) >> 1
        if held.times_us[(begin + middle) % room] < time_us:
            low = middle + 1
        else:
            high = middle
    for place in range(low, state[SPAN]):
        slot = np.int64((begin + place) % room)
        if held.times_us[slot] != time_us:
            break
        code = np.int64(held.codes[slot])
        if held.serials[slot] == serial and code >= 0 and (modes & SLIDING or groups.words[code, DUE] > at_us):
            return slot
    return np.int64(-1)


@inlined
def is_late(groups: Groups, code: np.int64, at_us: np.int64, time_us: np.int64, size: int, modes: np.int64) -> bool:
    """Whether the window of an event has passed."""
    words = groups.words
    if modes & LOADING:
        return False
    if modes & SLIDING:
        return bool(at_us - time_us >= size)
    if modes & LAST:
        return bool(words[code, HELD_ROWS] >= size and words[code, OLDEST] > time_us)
    if modes & SESSION:
        is_near = words[code, HELD_ROWS] > 0 and words[code, OLDEST] - time_us < size
        return bool(at_us - time_us >= size and not is_near)
    return False


@inlined
def is_over(groups: Groups, code: np.int64, at_us: np.int64, modes: np.int64) -> bool:
    """Whether a window that does not slide has events, and ends before the next one."""
    words = groups.words
    return bool(modes & (SLIDING | LOADING) == 0 and words[code, HELD_ROWS] > 0 and words[code, DUE] <= at_us)


@inlined
def note_times(groups: Groups, code: np.int64, at_us: np.int64, time_us: np.int64, size: int, modes: np.int64) -> None:
    """Note the times of a window that does not slide, which an event enters."""
    words = groups.words
    is_first = words[code, HELD_ROWS] == 0
    words[code, CLOCK] = max(at_us, words[code, CLOCK])
    words[code, OLDEST] = time_us if is_first else min(words[code, OLDEST], time_us)
    if modes & SESSION:
        words[code, DUE] = time_us + size if is_first else max(words[code, DUE], time_us + size)


@inlined
def touch_groups(groups: Groups, state: NDArray[np.int64], held: Events, batch: Events) -> None:
    """Read the groups of the next rows, and of the next events that leave, so that memory is waited for once."""
    row, words = state[ROW], groups.words
    if row < state[AHEAD]:
        return
    state[AHEAD] = row + _TOUCHED_ROWS
    end, found = words.shape[1] - 1, np.int64(0)
    for place in range(row, min(row + _TOUCHED_ROWS, batch.codes.shape[0])):
        found ^= words[batch.codes[place], 0] ^ words[batch.codes[place], end]
    room = held.codes.shape[0]
    for place in range(state[FIRST], state[FIRST] + min(state[SPAN], _TOUCHED_ROWS)):
        code = max(held.codes[place if place < room else place - room], 0)
        found ^= words[code, 0] ^ words[code, end]
    state[TOUCHED] = found


@inlined
def is_due(state: NDArray[np.int64], held: Events, at_us: np.int64, size: int, modes: np.int64) -> bool:
    """Whether the oldest event leaves a window that slides, before a time or at it."""
    if modes & SLIDING == 0 or modes & LOADING or state[SPAN] == 0:
        return False
    return bool(held.times_us[state[FIRST]] + size <= at_us)


@inlined
def enter_row(
    groups: Groups,
    plan: NDArray[np.int64],
    state: NDArray[np.int64],
    held: Events,
    logs: NDArray[np.int64],
    batch: Events,
    size: int,
    modes: np.int64,
) -> None:
    """Let the next event of a batch enter the window of its group."""
    row, words = state[ROW], groups.words
    code = np.int64(batch.codes[row])
    if modes & SLIDING == 0:
        note_times(groups, code, batch.at_us[row], batch.times_us[row], size, modes)
    if modes & HOLDS:
        slot = enter_event(groups, held, state, batch, row, modes)
        change_group(groups, plan, state, held, logs, slot, np.int64(1))
        state[HELD] += 1
    else:
        state[HELD] += np.int64(words[code, HELD_ROWS] == 0)
        change_group(groups, plan, state, batch, logs, row, np.int64(1))
    if modes & LOGGED:
        log(logs, state, ENTERED, code, batch.serials[row])
    if modes & LAST and words[code, HELD_ROWS] > size:
        leave_event(groups, plan, state, held, logs, words[code, HEAD] - 1, size, modes)


@inlined
def take_row(
    groups: Groups,
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    held: Events,
    out: Steps,
    logs: NDArray[np.int64],
    batch: Events,
    size: int,
    modes: np.int64,
) -> int:
    """Take the next row of a batch, unless a window ends first; returns ``DONE``, ``NO_ROOM`` or ``NO_NODES``."""
    row = state[ROW]
    code, time_us, at_us, op = np.int64(batch.codes[row]), batch.times_us[row], batch.at_us[row], batch.ops[row]
    if op == RETRACT:
        slot = slot_of(groups, held, state, time_us, batch.serials[row], at_us, modes)
        if slot < 0:
            state[ROW] += 1
            return DONE
        code = np.int64(held.codes[slot])
        leave_event(groups, plan, state, held, logs, slot, size, modes)
    elif op == END:
        if groups.words[code, HELD_ROWS] > 0:
            note_end(groups, held, plan, state, out, logs, code, at_us, batch.places[row], modes)
        state[ROW] += 1
        return DONE
    elif is_over(groups, code, at_us, modes):
        note_end(groups, held, plan, state, out, logs, code, groups.words[code, DUE], np.int64(-1), modes)
        return DONE
    elif is_late(groups, code, at_us, time_us, size, modes):
        state[LATE] += 1
        state[ROW] += 1
        return DONE
    elif modes & HOLDS and state[SPAN] == held.times_us.shape[0]:
        return NO_ROOM
    elif state[SPARE] < state[NODES]:
        return NO_NODES
    else:
        enter_row(groups, plan, state, held, logs, batch, size, modes)
    state[ROW] += 1
    if modes & (EACH | EXPIRIES):
        note_step(groups, held, plan, bounds, state, out, logs, code, at_us, np.int64(batch.places[row]), modes)
    return DONE


@kernel
def slide(
    ring: Events,
    given: Events,
    all_groups: Groups,
    found: Steps,
    logs: NDArray[np.int64],
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    given_modes: int,
    most: int,
    size: int,
    until_us: int,
) -> int:
    """Let events enter and leave, each at its time, up to a time; call again after any result but ``DONE``.

    The condition of a group is false if a value is not in its ``bounds`` (bounds, 3). ``size``: of the window.

    Returns:
        ``DONE``, ``FULL`` (of steps, or the log), ``NO_ROOM`` (in the ring), ``NO_NODES`` or ``TOO_MANY`` (more events,
        or windows whose events are not held, than ``most``).
    """
    held, batch, groups, out = borrowed(ring), borrowed(given), borrowed(all_groups), borrowed(found)
    rows, modes = batch.at_us.shape[0], np.int64(given_modes)
    while True:
        touch_groups(groups, state, held, batch)
        if state[STEPS] == out.codes.shape[0] or (logs.shape[0] > 0 and state[LOGS] + state[ROOM] > logs.shape[0]):
            return FULL
        if state[ENDING] > 0:
            empty_group(groups, plan, state, held, logs, size, modes)
            continue
        at_us = np.int64(batch.at_us[state[ROW]]) if state[ROW] < rows else np.int64(until_us)
        if is_due(state, held, at_us, size, modes):
            slot = state[FIRST]
            code, due_us = np.int64(held.codes[slot]), held.times_us[slot] + size
            leave_event(groups, plan, state, held, logs, slot, size, modes)
            if modes & EXPIRIES:
                note_step(groups, held, plan, bounds, state, out, logs, code, due_us, np.int64(-1), modes)
            continue
        if state[ROW] == rows:
            return DONE
        status = take_row(groups, plan, bounds, state, held, out, logs, batch, size, modes)
        if status != DONE:
            return status
        if state[HELD] > most:
            return TOO_MANY
