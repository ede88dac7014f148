"""Kernels of windows: events enter and leave in the order of time, and each change of a group is a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggregates.kernels import tables
from aggregates.kernels.tables import Events, Groups, Steps, log
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
    """Write the values of a changed group into a step: into its unfinished one at ``at_us``, or into a new one.

    No step is written if the condition was false and cannot be true. ``place`` is the event that caused the change, or
    -1 for passing time.
    """
    words = groups.words
    if state[tables.INSTANT] != at_us:
        state[tables.INSTANT], state[tables.BEGUN] = at_us, state[tables.STEPS]
    is_possible = may_hold(groups, plan, bounds, code)
    step, truth = (
        (words[code, tables.MARK] >> tables.TRUTH_BITS) - state[tables.BASE],
        words[code, tables.MARK] & tables.TRUTH,
    )
    if step < state[tables.BEGUN] or (place >= 0 and modes & tables.SIMULTANEOUS == 0):
        if not is_possible and truth == 0:
            return
        step = state[tables.STEPS]
        state[tables.STEPS] += 1
        out.codes[step], out.at_us[step], out.places[step], out.ended[step] = code, at_us, -1, False
    bits = (truth & tables.IS_TRUE) | (tables.MAY_BE_TRUE if is_possible else 0)
    words[code, tables.MARK] = (step + state[tables.BASE]) << tables.TRUTH_BITS | bits
    if place >= 0:
        out.places[step] = place
    has_objects = put_values(groups, held, plan, code, out, step) or modes & tables.SHOWN != 0
    if has_objects and modes & tables.LOADING == 0:
        log(logs, state, tables.STEPPED, code, step + state[tables.BASE])


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
    """Write a step with the values of a window that ends as a whole, before its events leave."""
    words, step = groups.words, state[tables.STEPS]
    state[tables.STEPS] += 1
    state[tables.ENDING] = code + 1
    out.codes[step], out.at_us[step], out.places[step], out.ended[step] = code, at_us, place, True
    out.firsts[step] = words[code, tables.OLDEST]
    words[code, tables.MARK] &= tables.IS_TRUE
    if put_values(groups, held, plan, code, out, step) or modes & tables.SHOWN:
        log(logs, state, tables.STEPPED, code, step + state[tables.BASE])


@inlined
def copy_event(held: Events, slot: np.int64, source: Events, row: np.int64) -> None:
    """Copy an event, row ``row`` of ``source``, to a slot of the ring."""
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
    """Link the events in the slots ``older`` and ``slot`` as consecutive events of a group.

    If one of them is -1, the other is the last or first event of the group.
    """
    if older >= 0:
        held.links[older, 1] = slot
    else:
        groups.words[code, tables.HEAD] = slot + 1
    if slot >= 0:
        held.links[slot, 0] = older
    else:
        groups.words[code, tables.TAIL] = older + 1


@inlined
def enter_event(
    groups: Groups, held: Events, state: NDArray[np.int64], batch: Events, row: np.int64, modes: np.int64
) -> np.int64:
    """Insert row ``row`` of a batch into the ring, after all events that are not newer. Return its slot."""
    room, time_us = held.times_us.shape[0], batch.times_us[row]
    slot = state[tables.FIRST] + state[tables.SPAN]
    slot = slot - room if slot >= room else slot
    for _ in range(state[tables.SPAN]):
        older = slot - 1 if slot > 0 else np.int64(room - 1)
        if held.times_us[older] <= time_us:
            break
        copy_event(held, slot, held, older)
        if modes & tables.LINKED and held.codes[slot] >= 0:
            before, after = np.int64(held.links[older, 0]), np.int64(held.links[older, 1])
            link(groups, held, np.int64(held.codes[slot]), before, slot)
            link(groups, held, np.int64(held.codes[slot]), slot, after)
        slot = older
    copy_event(held, slot, batch, row)
    state[tables.SPAN] += 1
    if modes & tables.LINKED:
        code = np.int64(batch.codes[row])
        newer, older = np.int64(-1), groups.words[code, tables.TAIL] - 1
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
    """Remove the event in a slot from the window of its group, and from the ring."""
    code, words, room = np.int64(held.codes[slot]), groups.words, held.codes.shape[0]
    change_group(groups, plan, state, held, logs, slot, np.int64(-1))
    state[tables.HELD] -= 1
    if modes & tables.LOGGED:
        log(logs, state, tables.LEFT, code, held.serials[slot])
    if modes & tables.LINKED:
        older, newer = np.int64(held.links[slot, 0]), np.int64(held.links[slot, 1])
        link(groups, held, code, older, newer)
        if words[code, tables.HELD_ROWS] > 0:
            words[code, tables.OLDEST] = held.times_us[words[code, tables.HEAD] - 1]
            if modes & tables.SESSION:
                words[code, tables.DUE] = held.times_us[words[code, tables.TAIL] - 1] + size_us
    held.codes[slot] = -1
    while state[tables.SPAN] > 0 and held.codes[state[tables.FIRST]] < 0:
        state[tables.FIRST] = state[tables.FIRST] + 1 if state[tables.FIRST] + 1 < room else 0
        state[tables.SPAN] -= 1


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
    """Remove an event from a window that ends, or clear its values. The caller repeats this until the window is empty.

    If the events of windows are stored, each call removes the oldest one. Otherwise, one call clears the group's
    values.
    """
    code, words = state[tables.ENDING] - 1, groups.words
    if modes & tables.HOLDS:
        leave_event(groups, plan, state, held, logs, words[code, tables.HEAD] - 1, size_us, modes)
    else:
        words[code, tables.HELD_ROWS] = 0
        clear_values(groups, plan, state, logs, code)
        for place in range(tables.LONG_HEADER, words.shape[1]):
            words[code, place] = 0
        state[tables.LIVE] -= 1
        state[tables.HELD] -= 1
    if words[code, tables.HELD_ROWS] == 0:
        state[tables.ENDING] = 0
        if logs.shape[0] > 0:
            log(logs, state, tables.RESET, code, np.int64(0))


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
    """Return the slot of a retracted event, given by its time and serial number.

    Return -1 if it is unknown or its window is over at ``at_us``.
    """
    room, begin, low, high = held.codes.shape[0], state[tables.FIRST], np.int64(0), state[tables.SPAN]
    while low < high:
        middle = (low + high) >> 1
        if held.times_us[(begin + middle) % room] < time_us:
            low = middle + 1
        else:
            high = middle
    for place in range(low, state[tables.SPAN]):
        slot = np.int64((begin + place) % room)
        if held.times_us[slot] != time_us:
            break
        code = np.int64(held.codes[slot])
        if (
            held.serials[slot] == serial
            and code >= 0
            and (modes & tables.SLIDING or groups.words[code, tables.DUE] > at_us)
        ):
            return slot
    return np.int64(-1)


@inlined
def is_late(groups: Groups, code: np.int64, at_us: np.int64, time_us: np.int64, size: int, modes: np.int64) -> bool:
    """Check whether an event of the time ``time_us`` comes too late for its window, at the time ``at_us``."""
    words = groups.words
    if modes & tables.LOADING:
        return False
    if modes & tables.SLIDING:
        return bool(at_us - time_us >= size)
    if modes & tables.LAST:
        return bool(words[code, tables.HELD_ROWS] >= size and words[code, tables.OLDEST] > time_us)
    if modes & tables.SESSION:
        is_near = words[code, tables.HELD_ROWS] > 0 and words[code, tables.OLDEST] - time_us < size
        return bool(at_us - time_us >= size and not is_near)
    return False


@inlined
def is_over(groups: Groups, code: np.int64, at_us: np.int64, modes: np.int64) -> bool:
    """Check whether the window of a group has events and has reached its end at ``at_us``. Sliding windows never do."""
    words = groups.words
    return bool(
        modes & (tables.SLIDING | tables.LOADING) == 0
        and words[code, tables.HELD_ROWS] > 0
        and words[code, tables.DUE] <= at_us
    )


@inlined
def note_times(groups: Groups, code: np.int64, at_us: np.int64, time_us: np.int64, size: int, modes: np.int64) -> None:
    """Update the times of a group when an event of the time ``time_us`` enters its window at ``at_us``.

    These are the newest time (clock), the time of the oldest event, and the end of a session. Sliding windows have
    none.
    """
    words = groups.words
    is_first = words[code, tables.HELD_ROWS] == 0
    words[code, tables.CLOCK] = max(at_us, words[code, tables.CLOCK])
    words[code, tables.OLDEST] = time_us if is_first else min(words[code, tables.OLDEST], time_us)
    if modes & tables.SESSION:
        words[code, tables.DUE] = time_us + size if is_first else max(words[code, tables.DUE], time_us + size)


@inlined
def touch_groups(groups: Groups, state: NDArray[np.int64], held: Events, batch: Events) -> None:
    """Read the words of groups that the next rows and the next leaving events will change.

    Then the waits for memory overlap.
    """
    row, words = state[tables.ROW], groups.words
    if row < state[tables.AHEAD]:
        return
    state[tables.AHEAD] = row + _TOUCHED_ROWS
    end, touched = words.shape[1] - 1, np.int64(0)
    for place in range(row, min(row + _TOUCHED_ROWS, batch.codes.shape[0])):
        touched ^= words[batch.codes[place], 0] ^ words[batch.codes[place], end]
    room = held.codes.shape[0]
    for place in range(state[tables.FIRST], state[tables.FIRST] + min(state[tables.SPAN], _TOUCHED_ROWS)):
        code = max(held.codes[place if place < room else place - room], 0)
        touched ^= words[code, 0] ^ words[code, end]
    state[tables.TOUCHED] = touched


@inlined
def is_due(state: NDArray[np.int64], held: Events, at_us: np.int64, size: int, modes: np.int64) -> bool:
    """Check whether the oldest event leaves a sliding window at ``at_us`` or before."""
    if modes & tables.SLIDING == 0 or modes & tables.LOADING or state[tables.SPAN] == 0:
        return False
    return bool(held.times_us[state[tables.FIRST]] + size <= at_us)


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
    """Add the next event of a batch to the window of its group."""
    row, words = state[tables.ROW], groups.words
    code = np.int64(batch.codes[row])
    if modes & tables.SLIDING == 0:
        note_times(groups, code, batch.at_us[row], batch.times_us[row], size, modes)
    if modes & tables.HOLDS:
        slot = enter_event(groups, held, state, batch, row, modes)
        change_group(groups, plan, state, held, logs, slot, np.int64(1))
        state[tables.HELD] += 1
    else:
        state[tables.HELD] += np.int64(words[code, tables.HELD_ROWS] == 0)
        change_group(groups, plan, state, batch, logs, row, np.int64(1))
    if modes & tables.LOGGED:
        log(logs, state, tables.ENTERED, code, batch.serials[row])
    if modes & tables.LAST and words[code, tables.HELD_ROWS] > size:
        leave_event(groups, plan, state, held, logs, words[code, tables.HEAD] - 1, size, modes)


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
    """Process the next row of a batch: an event, a retraction, or the end of a window.

    If the window of the event's group ends first, only write this end. Return a status of ``slide``.
    """
    row = state[tables.ROW]
    code, time_us, at_us, op = np.int64(batch.codes[row]), batch.times_us[row], batch.at_us[row], batch.ops[row]
    if op == tables.RETRACT:
        slot = slot_of(groups, held, state, time_us, batch.serials[row], at_us, modes)
        if slot < 0:
            state[tables.ROW] += 1
            return tables.DONE
        code = np.int64(held.codes[slot])
        leave_event(groups, plan, state, held, logs, slot, size, modes)
    elif op == tables.END:
        if groups.words[code, tables.HELD_ROWS] > 0:
            note_end(groups, held, plan, state, out, logs, code, at_us, batch.places[row], modes)
        state[tables.ROW] += 1
        return tables.DONE
    elif is_over(groups, code, at_us, modes):
        note_end(groups, held, plan, state, out, logs, code, groups.words[code, tables.DUE], np.int64(-1), modes)
        return tables.DONE
    elif is_late(groups, code, at_us, time_us, size, modes):
        state[tables.LATE] += 1
        state[tables.ROW] += 1
        return tables.DONE
    elif modes & tables.HOLDS and state[tables.SPAN] == held.times_us.shape[0]:
        return tables.NO_ROOM
    elif state[tables.SPARE] < state[tables.NODES]:
        return tables.NO_NODES
    else:
        enter_row(groups, plan, state, held, logs, batch, size, modes)
    state[tables.ROW] += 1
    if modes & (tables.EACH | tables.EXPIRIES):
        note_step(groups, held, plan, bounds, state, out, logs, code, at_us, np.int64(batch.places[row]), modes)
    return tables.DONE


@kernel
def slide(
    ring: Events,
    events: Events,
    all_groups: Groups,
    steps: Steps,
    logs: NDArray[np.int64],
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    given_modes: int,
    most: int,
    size: int,
    until_us: int,
) -> int:
    """Add the events of a batch to windows, and remove due events, in order of time up to ``until_us``.

    The caller makes room and calls the kernel again until the result is ``DONE``. ``bounds`` (bounds, 3) has ranges of
    values. A group's condition is false if one of its values is out of range. ``size`` is the window's size.

    Returns:
        ``DONE``, ``FULL`` (no room for steps or the log), ``NO_ROOM`` (in the ring), ``NO_NODES``, or ``TOO_MANY`` for
        more than ``most`` events, or windows if events are not stored. With ``REMEMBERED``, steps are counted, too.
    """
    held, batch, groups, out = borrowed(ring), borrowed(events), borrowed(all_groups), borrowed(steps)
    rows, modes = batch.at_us.shape[0], np.int64(given_modes)
    while True:
        touch_groups(groups, state, held, batch)
        if state[tables.STEPS] == out.codes.shape[0] or (
            logs.shape[0] > 0 and state[tables.LOGS] + state[tables.ROOM] > logs.shape[0]
        ):
            return tables.FULL
        if state[tables.ENDING] > 0:
            empty_group(groups, plan, state, held, logs, size, modes)
            continue
        at_us = np.int64(batch.at_us[state[tables.ROW]]) if state[tables.ROW] < rows else np.int64(until_us)
        if is_due(state, held, at_us, size, modes):
            slot = state[tables.FIRST]
            code, due_us = np.int64(held.codes[slot]), held.times_us[slot] + size
            leave_event(groups, plan, state, held, logs, slot, size, modes)
            if modes & tables.EXPIRIES:
                note_step(groups, held, plan, bounds, state, out, logs, code, due_us, np.int64(-1), modes)
            continue
        if state[tables.ROW] == rows:
            return tables.DONE
        row = state[tables.ROW]
        status = take_row(groups, plan, bounds, state, held, out, logs, batch, size, modes)
        if status != tables.DONE:
            return status
        kept = state[tables.HELD] + (state[tables.STEPS] if modes & tables.REMEMBERED else 0)
        if state[tables.ROW] > row and kept > most:  # a row that only ended a window is processed again
            return tables.TOO_MANY
