"""Kernels of sliding windows: events enter and leave in the order of time, and each change of a group is a step.

Events lie in a ring of columns, ordered by time. A group is a row of ``Groups.words``: the number of its events, the
number of its newest step, bits about its condition, then the words of each value, from its offset on. Numbers are
sums of digits of 32 bits that no carry has normalised: a removal takes away exactly what an addition added, and fewer
than 2**31 events overflow none. Digits of floats are in units of 2**-96; the caller checks that floats fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import inlined, kernel, routine

NULL, BOOLEAN, INTEGER, FLOAT, TEXT, FALSE = range(6)  # kinds of arguments and values; BOOLEAN is true here
ROWS, KNOWN, TRUE, SUM, AVERAGE, LEAST, GREATEST = range(7)  # functions
FUNCTION, COLUMN, NUMBERS, OFFSET, DIGITS = range(5)  # columns of a plan
FIRST, HELD, ROW, STEPS, BEGUN, INSTANT, BASE, LIVE, LATE, FREE, SPARE, AHEAD, TOUCHED = range(
    13
)  # places in ``state``
PLACES = 13
HELD_ROWS, MARK, TRUTH, HEADER = range(4)  # words of every group
IS_TRUE, MAY_BE_TRUE = 1, 2  # bits of ``TRUTH``: after the newest evaluation, after the newest step
VALUE, LOWEST, HIGHEST = range(3)  # columns of bounds
EACH, EXPIRIES, SIMULTANEOUS = 1, 2, 4  # which changes are steps; steps of one time are one step of a group
DONE, FULL, NO_ROOM, NO_NODES, TOO_MANY = range(5)  # results of ``slide``

UNIT = 96  # digits of floats are in 2**-UNIT
FLOAT_DIGITS = 5
SCRATCH = 12
_DIGITS = 7  # of a sum, with the carries
_UNIT_DIGITS = 3  # whole numbers begin at this digit
_LOW = 2**32 - 1
_MOST_EXACT = 2**53
_EXTRA_DIGITS = 4  # of a quotient
_TOUCHED_ROWS = 1_024


class Events(NamedTuple):
    """Columns of events, in a ring or of a batch."""

    times_us: NDArray[np.int64]
    codes: NDArray[np.int32]  # (events,) the group
    kinds: NDArray[np.uint8]  # (arguments, events)
    numbers: NDArray[np.int64]  # (numeric arguments, events) integers, or the bits of floats
    floats: NDArray[np.float64]  # the same memory as floats
    at_us: NDArray[np.int64]  # (events,) of a batch: when they count, which rises; of a ring (0,)
    places: NDArray[np.int64]  # (events,) of a batch: the numbers by which steps name them; of a ring (0,)


class Groups(NamedTuple):
    """Groups, and the nodes of their extremes: events that no newer event of the group exceeds, oldest first."""

    words: NDArray[np.int64]  # (groups, words)
    times_us: NDArray[np.int64]  # (nodes,)
    values: NDArray[np.float64]  # (nodes,) negated for the least
    older: NDArray[np.int32]  # (nodes,) -1: none
    newer: NDArray[np.int32]  # (nodes,) -1: none; of free nodes the next free one
    scratch: NDArray[np.int64]  # (SCRATCH,)


class Steps(NamedTuple):
    """Changes of groups, with the values after each."""

    codes: NDArray[np.int32]
    at_us: NDArray[np.int64]
    places: NDArray[np.int64]  # of the newest event that caused it; -1: time did
    sizes: NDArray[np.int64]  # events in the window
    kinds: NDArray[np.uint8]  # (values, steps)
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]


@inlined
def normalise(digits: NDArray[np.int64]) -> bool:
    """Carry digits into the next ones, and make the number positive; returns whether it was negative."""
    carry = np.int64(0)
    for place in range(_DIGITS):
        carry += digits[place]
        digits[place] = carry & _LOW
        carry >>= 32
    if carry == 0:
        return False
    carry = np.int64(1)
    for place in range(_DIGITS):
        carry += _LOW - digits[place]
        digits[place] = carry & _LOW
        carry >>= 32
    return True


@inlined
def nearest(digits: NDArray[np.int64], count: np.int64, scale: np.int64, rest: np.int64) -> float:
    """The float nearest to positive digits times 2**scale; ``rest``: not 0 if a part below the digits is left out."""
    top = count - 1
    while top > 0 and digits[top] == 0:
        top -= 1
    if digits[top] == 0:
        return 0.0
    is_rest = rest != 0
    for place in range(top - 2):
        is_rest |= digits[place] != 0
    middle = digits[top - 1] if top >= 1 else np.int64(0)
    low = digits[top - 2] if top >= 2 else np.int64(0)
    zeros, rising = 0, digits[top]
    for step in (16, 8, 4, 2, 1):
        if rising < 1 << (32 - step):
            rising <<= step
            zeros += step
    first = ((digits[top] << zeros) | (middle >> (32 - zeros))) & _LOW
    second = ((middle << zeros) | (low >> (32 - zeros))) & _LOW
    is_rest |= ((low << zeros) & _LOW) != 0 or (second & 3) != 0
    number = float((first << 30) | (second >> 2) | np.int64(is_rest))
    return float(number * 2.0 ** float(32 * (top - 1) + 2 - zeros + scale))


@inlined
def quotient(digits: NDArray[np.int64], divisor: np.int64) -> float:
    """The float nearest to the digits of a positive sum, in units, divided by less than 2**31."""
    for place in range(_DIGITS - 1, -1, -1):
        digits[place + _EXTRA_DIGITS] = digits[place]
    for place in range(_EXTRA_DIGITS):
        digits[place] = 0
    rest = np.int64(0)
    for place in range(_DIGITS + _EXTRA_DIGITS - 1, -1, -1):
        rest = (rest << 32) | digits[place]
        digits[place] = rest // divisor
        rest %= divisor
    return nearest(digits, np.int64(_DIGITS + _EXTRA_DIGITS), np.int64(-UNIT - 32 * _EXTRA_DIGITS), rest)


@inlined
def change_sum(
    words: NDArray[np.int64], code: np.int64, offset: np.int64, kind: np.int64, number: np.int64, sign: np.int64
) -> None:
    """Add a number to the words of a sum, or take it away: their count, two digits of integers, digits of floats."""
    words[code, offset] += sign
    if kind == INTEGER:
        words[code, offset + 1] += sign * (number & _LOW)
        words[code, offset + 2] += sign * (number >> 32)
        return
    exponent = (number >> 52) & 0x7FF
    if exponent == 0:
        return
    mantissa = (number & (2**52 - 1)) | 2**52
    shift = exponent - 1075 + UNIT
    if shift < 0:
        mantissa >>= -shift
        shift = np.int64(0)
    if number < 0:
        sign = -sign
    place, within = offset + 3 + (shift >> 5), shift & 31
    low = (mantissa & _LOW) << within
    high = ((mantissa >> 32) << within) + (low >> 32)
    words[code, place] += sign * (low & _LOW)
    words[code, place + 1] += sign * (high & _LOW)
    words[code, place + 2] += sign * (high >> 32)


@routine
def put_sum(
    groups: Groups, code: np.int64, offset: np.int64, digits: int, is_mean: bool, out: Steps, value: int, step: int
) -> None:
    """Write the sum or the mean of a group into a step."""
    words, scratch = groups.words, groups.scratch
    number, low, high = words[code, offset], words[code, offset + 1], words[code, offset + 2]
    is_whole = True
    for place in range(digits):
        is_whole &= words[code, offset + 3 + place] == 0
    high += low >> 32
    low &= _LOW
    is_short = -(2**31) <= high < 2**31
    whole = (high << 32) | low
    if is_whole and is_short and (not is_mean or -_MOST_EXACT <= whole <= _MOST_EXACT):
        out.kinds[value, step] = FLOAT if is_mean else INTEGER
        out.integers[value, step] = whole
        out.floats[value, step] = whole / number if is_mean else float(whole)
        return
    for place in range(_DIGITS):
        scratch[place] = words[code, offset + 3 + place] if place < digits else 0
    scratch[_UNIT_DIGITS] += low
    scratch[_UNIT_DIGITS + 1] += high
    is_negative = normalise(scratch)
    found = quotient(scratch, number) if is_mean else nearest(scratch, np.int64(_DIGITS), np.int64(-UNIT), np.int64(0))
    out.kinds[value, step] = FLOAT
    out.floats[value, step] = -found if is_negative else found


@routine
def enter_extreme(
    groups: Groups, state: NDArray[np.int64], code: np.int64, offset: np.int64, time_us: np.int64, number: float
) -> None:
    """Give an event a node, at its place in the order of time, unless a newer event is as great."""
    words = groups.words
    newer, older = np.int64(-1), words[code, offset + 1] - 1
    while older >= 0 and groups.times_us[older] > time_us:
        newer, older = older, np.int64(groups.older[older])
    if newer >= 0 and groups.values[newer] >= number:
        return
    while older >= 0 and groups.values[older] <= number:
        gone, older = older, np.int64(groups.older[older])
        groups.newer[gone] = state[FREE]
        state[FREE] = gone
        state[SPARE] += 1
    node = state[FREE]
    state[FREE] = groups.newer[node]
    state[SPARE] -= 1
    groups.times_us[node], groups.values[node] = time_us, number
    groups.older[node], groups.newer[node] = older, newer
    if older >= 0:
        groups.newer[older] = node
    else:
        words[code, offset] = node + 1
    if newer >= 0:
        groups.older[newer] = node
    else:
        words[code, offset + 1] = node + 1


@inlined
def leave_extreme(
    groups: Groups, state: NDArray[np.int64], code: np.int64, offset: np.int64, time_us: np.int64, number: float
) -> None:
    """Free the node of the oldest event of a group, if it has one."""
    words = groups.words
    node = words[code, offset] - 1
    if node < 0 or groups.times_us[node] != time_us or groups.values[node] != number:
        return
    newer = np.int64(groups.newer[node])
    words[code, offset] = newer + 1
    if newer >= 0:
        groups.older[newer] = -1
    else:
        words[code, offset + 1] = 0
    groups.newer[node] = state[FREE]
    state[FREE] = node
    state[SPARE] += 1


@inlined
def change_group(
    groups: Groups, plan: NDArray[np.int64], state: NDArray[np.int64], held: Events, slot: np.int64, sign: np.int64
) -> None:
    """Change the words of a group for an event in a slot that enters (1) or leaves (-1)."""
    code, words = np.int64(held.codes[slot]), groups.words
    before = words[code, HELD_ROWS]
    words[code, HELD_ROWS] = before + sign
    state[LIVE] += np.int64(before == 0) - np.int64(before + sign == 0)
    for value in range(plan.shape[0]):
        function, offset = plan[value, FUNCTION], plan[value, OFFSET]
        if function == ROWS:
            continue
        kind = np.int64(held.kinds[plan[value, COLUMN], slot])
        if function == KNOWN:
            words[code, offset] += sign * np.int64(kind != NULL)
            continue
        if function == TRUE:
            words[code, offset] += sign * np.int64(kind == BOOLEAN)
            continue
        if kind not in (INTEGER, FLOAT):
            continue
        number = held.numbers[plan[value, NUMBERS], slot]
        if function in (SUM, AVERAGE):
            change_sum(words, code, offset, kind, number, sign)
            continue
        extreme = float(number) if kind == INTEGER else held.floats[plan[value, NUMBERS], slot]
        if function == LEAST:
            extreme = -extreme
        if sign > 0:
            enter_extreme(groups, state, code, offset, held.times_us[slot], extreme)
        else:
            leave_extreme(groups, state, code, offset, held.times_us[slot], extreme)


@routine
def put_values(groups: Groups, plan: NDArray[np.int64], code: np.int64, out: Steps, step: int) -> None:
    """Write the values of a group into a step."""
    words = groups.words
    out.sizes[step] = words[code, HELD_ROWS]
    for value in range(plan.shape[0]):
        function, offset = plan[value, FUNCTION], plan[value, OFFSET]
        if function <= TRUE:
            number = words[code, HELD_ROWS] if function == ROWS else words[code, offset]
            out.kinds[value, step] = INTEGER
            out.integers[value, step] = number
            out.floats[value, step] = float(number)
        elif words[code, offset] == 0:
            out.kinds[value, step] = NULL
            out.integers[value, step] = 0
            out.floats[value, step] = 0.0
        elif function in (SUM, AVERAGE):
            put_sum(groups, code, offset, plan[value, DIGITS], function == AVERAGE, out, value, step)
        else:
            extreme = groups.values[words[code, offset] - 1]
            extreme = -extreme if function == LEAST else extreme
            is_whole = -_MOST_EXACT < extreme < _MOST_EXACT and extreme == np.floor(extreme)
            out.kinds[value, step] = INTEGER if is_whole else FLOAT
            out.integers[value, step] = np.int64(extreme) if is_whole else 0
            out.floats[value, step] = extreme


@inlined
def may_hold(groups: Groups, plan: NDArray[np.int64], bounds: NDArray[np.float64], code: np.int64) -> bool:
    """Whether the condition of a group may be true: counts and sums of integers are in their bounds."""
    words = groups.words
    for row in range(bounds.shape[0]):
        value = np.int64(bounds[row, VALUE])
        function, offset = plan[value, FUNCTION], plan[value, OFFSET]
        if function <= TRUE:
            number = float(words[code, HELD_ROWS] if function == ROWS else words[code, offset])
        elif function == SUM and plan[value, DIGITS] == 0:
            low = words[code, offset + 1]
            number = float(words[code, offset + 2] + (low >> 32)) * 2.0**32 + float(low & _LOW)
        else:
            continue
        if number < bounds[row, LOWEST] or number > bounds[row, HIGHEST]:
            return False
    return True


@inlined
def note_step(
    groups: Groups,
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    out: Steps,
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
    step = words[code, MARK] - state[BASE]
    if step < state[BEGUN] or (place >= 0 and modes & SIMULTANEOUS == 0):
        if not is_possible and words[code, TRUTH] == 0:
            return
        step = state[STEPS]
        state[STEPS] += 1
        words[code, MARK] = step + state[BASE]
        out.codes[step], out.at_us[step], out.places[step] = code, at_us, -1
    words[code, TRUTH] = (words[code, TRUTH] & IS_TRUE) | (MAY_BE_TRUE if is_possible else 0)
    if place >= 0:
        out.places[step] = place
    put_values(groups, plan, code, out, step)


@inlined
def enter_event(held: Events, state: NDArray[np.int64], batch: Events, row: int) -> np.int64:
    """Put an event of a batch into the ring, after all events that are not newer; returns its slot."""
    room, time_us = held.times_us.shape[0], batch.times_us[row]
    slot = state[FIRST] + state[HELD]
    slot = slot - room if slot >= room else slot
    for _ in range(state[HELD]):
        older = slot - 1 if slot > 0 else room - 1
        if held.times_us[older] <= time_us:
            break
        held.times_us[slot], held.codes[slot] = held.times_us[older], held.codes[older]
        for column in range(held.kinds.shape[0]):
            held.kinds[column, slot] = held.kinds[column, older]
        for column in range(held.numbers.shape[0]):
            held.numbers[column, slot] = held.numbers[column, older]
        slot = older
    held.times_us[slot], held.codes[slot] = time_us, batch.codes[row]
    for column in range(held.kinds.shape[0]):
        held.kinds[column, slot] = batch.kinds[column, row]
    for column in range(held.numbers.shape[0]):
        held.numbers[column, slot] = batch.numbers[column, row]
    state[HELD] += 1
    return np.int64(slot)


@inlined
def leave_event(
    groups: Groups,
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    held: Events,
    out: Steps,
    due_us: np.int64,
    modes: int | np.int64,
) -> None:
    """Let the oldest event leave at its time."""
    slot = state[FIRST]
    change_group(groups, plan, state, held, slot, np.int64(-1))
    state[FIRST] = slot + 1 if slot + 1 < held.times_us.shape[0] else 0
    state[HELD] -= 1
    if modes & EXPIRIES:
        note_step(groups, plan, bounds, state, out, np.int64(held.codes[slot]), due_us, np.int64(-1), modes)


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
    for place in range(state[FIRST], state[FIRST] + min(state[HELD], _TOUCHED_ROWS)):
        code = held.codes[place if place < room else place - room]
        found ^= words[code, 0] ^ words[code, end]
    state[TOUCHED] = found


@kernel
def slide(
    ring: Events,
    given: Events,
    all_groups: Groups,
    found: Steps,
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    modes: int,
    most: int,
    size_us: int,
    until_us: int,
) -> int:
    """Let events enter and leave, each at its time, up to a time; call again after any result but ``DONE``.

    The condition of a group is false if a value is not in its ``bounds`` (bounds, 3).

    Returns:
        ``DONE``, ``FULL`` (of steps), ``NO_ROOM`` (in the ring), ``NO_NODES`` or ``TOO_MANY`` (more events are held
        than ``most``; no row follows).
    """
    held, batch, groups, out = borrowed(ring), borrowed(given), borrowed(all_groups), borrowed(found)
    rows, room = batch.at_us.shape[0], held.times_us.shape[0]
    while True:
        row = state[ROW]
        touch_groups(groups, state, held, batch)
        at_us = np.int64(batch.at_us[row]) if row < rows else np.int64(until_us)
        due_us = held.times_us[state[FIRST]] + size_us
        is_due = state[HELD] > 0 and due_us <= at_us
        if not is_due and row == rows:
            return DONE
        if state[STEPS] == out.codes.shape[0]:
            return FULL
        if is_due:
            leave_event(groups, plan, bounds, state, held, out, due_us, modes)
            continue
        if at_us - batch.times_us[row] >= size_us:
            state[LATE] += 1
            state[ROW] += 1
            continue
        if state[HELD] == room:
            return NO_ROOM
        if state[SPARE] < plan.shape[0]:  # at most one for each value
            return NO_NODES
        slot = enter_event(held, state, batch, row)
        change_group(groups, plan, state, held, slot, np.int64(1))
        state[ROW] += 1
        if modes & (EACH | EXPIRIES):
            note_step(
                groups, plan, bounds, state, out, np.int64(held.codes[slot]), at_us, np.int64(batch.places[row]), modes
            )
        if state[HELD] > most:
            return TOO_MANY


@kernel
def note_waiting(
    all_groups: Groups,
    found: Steps,
    plan: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: NDArray[np.int64],
    codes: NDArray[np.int32],
    at_us: int,
) -> None:
    """Note a step of each of some groups, which wait for further events of a time."""
    groups, out = borrowed(all_groups), borrowed(found)
    for place in range(codes.shape[0]):
        note_step(
            groups,
            plan,
            bounds,
            state,
            out,
            np.int64(codes[place]),
            np.int64(at_us),
            np.int64(-1),
            np.int64(SIMULTANEOUS),
        )


@kernel
def note_truths(
    codes: NDArray[np.int32],
    sizes: NDArray[np.int64],
    holds: NDArray[np.bool_],
    words: NDArray[np.int64],
    changes: NDArray[np.int64],
) -> int:
    """Note the steps at which the condition of a group becomes true or false; of empty windows it is false.

    Returns the number of ``changes``.
    """
    count = 0
    for step in range(codes.shape[0]):
        is_true = np.int64(holds[step] and sizes[step] > 0)
        if is_true != words[codes[step], TRUTH] & IS_TRUE:
            words[codes[step], TRUTH] ^= IS_TRUE
            changes[count] = step
            count += 1
    return count


@kernel
def find_codes(
    hashes: NDArray[np.uint64],
    table: NDArray[np.int32],
    known: NDArray[np.uint64],
    codes: NDArray[np.int32],
    fresh: NDArray[np.int64],
    count: int,
) -> int:
    """Find the codes of groups by their hashes; the first event of each new group is noted in ``fresh``.

    ``table`` has a power of two of places, at least twice as many as there can be groups, each with a code or -1.
    ``known`` has the hashes of ``count`` codes, and room for a new one for each event. Returns the number of codes.
    """
    last = np.uint64(table.shape[0] - 1)
    before = count
    for row in range(hashes.shape[0]):  # all tables are read before the next, so that memory is waited for once
        codes[row] = table[hashes[row] & last]
    for row in range(hashes.shape[0]):
        if codes[row] >= 0 and known[codes[row]] == hashes[row]:
            continue
        place = hashes[row] & last
        while table[place] >= 0 and known[table[place]] != hashes[row]:
            place = (place + np.uint64(1)) & last
        if table[place] < 0:
            table[place] = count
            known[count] = hashes[row]
            fresh[count - before] = row
            count += 1
        codes[row] = table[place]
    return count
