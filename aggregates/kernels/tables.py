"""Tables of the kernels of windows, the names of their columns, and the values of groups in them.

Events that may leave lie in a ring of columns, ordered by time; those of one group are linked where they leave in
another order than that of all events. A group, or a fixed window of a group, is a row of ``Groups.words``: the number
of its events, the number of its newest step, bits about its condition, times and ends of its links unless the window
slides, then the words of each value, from its offset on. Sums are digits (``kernels.sums``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggregates.kernels.sums import (
    ALL_DIGITS,
    ALL_UNIT_DIGITS,
    CARRIES,
    FLOAT_DIGITS,
    LOW,
    UNIT_DIGITS,
    change_sum,
    nearest,
    normalise,
    quotient,
)
from streams.kernels.compiling import inlined, routine

NULL, BOOLEAN, INTEGER, FLOAT, TEXT, FALSE = range(6)  # kinds of arguments and values; BOOLEAN is true here
ROWS, KNOWN, TRUE, OBJECT, SUM, AVERAGE, LEAST, GREATEST, LOWEST_SEEN, GREATEST_SEEN = range(10)  # functions
FUNCTION, COLUMN, NUMBERS, OFFSET, DIGITS = range(5)  # columns of a plan
FIRST, SPAN, HELD, ROW, STEPS, BEGUN, INSTANT, BASE, LIVE, LATE, FREE, SPARE, AHEAD, TOUCHED, LOGS, ENDING = range(
    16
)  # places in ``state``
PLACES = 16
HELD_ROWS, MARK, TRUTH, HEADER = range(4)  # words of every group
OLDEST, DUE, CLOCK, HEAD, TAIL, LONG_HEADER = range(3, 9)  # further ones, unless the window slides
IS_TRUE, MAY_BE_TRUE = 1, 2  # bits of ``TRUTH``: after the newest evaluation, after the newest step
VALUE, LOWEST, HIGHEST = range(3)  # columns of bounds
EACH, EXPIRIES, SIMULTANEOUS = 1, 2, 4  # which changes are steps; steps of one time are one step of a group
HOLDS, LINKED, LOGGED, LOADING = 8, 16, 32, 64  # whether events are held, linked, logged; entered without time
SLIDING, LAST, SESSION = 128, 256, 512  # the window; of another kind without these
COUNT, END, RETRACT = range(3)  # what a row of a batch is
ENTERED, LEFT, STEPPED, RESET = range(4)  # entries of the log
OP, GROUP, NUMBER = range(3)  # its columns
DONE, FULL, NO_ROOM, NO_NODES, TOO_MANY = range(5)  # results of ``slide``
FOREVER = 2**62
_MOST_EXACT = 2**53


class Events(NamedTuple):
    """Columns of events, in a ring or of a batch."""

    times_us: NDArray[np.int64]
    codes: NDArray[np.int32]  # (events,) the group
    kinds: NDArray[np.uint8]  # (arguments, events)
    numbers: NDArray[np.int64]  # (numeric arguments, events) integers, or the bits of floats
    floats: NDArray[np.float64]  # the same memory as floats
    at_us: NDArray[np.int64]  # (events,) of a batch: when they count, which rises; of a ring (0,)
    places: NDArray[np.int64]  # (events,) of a batch: the numbers by which steps name them; of a ring (0,)
    ops: NDArray[np.uint8]  # (events,) of a batch: what they are; of a ring (0,)
    serials: NDArray[np.int64]  # (events,) numbers by which the log names them; of a ring (0,) without a log
    links: NDArray[np.int32]  # (events, 2) of a linked ring: the older and the newer event of the group; -1: none


class Groups(NamedTuple):
    """Groups, and the nodes of their extremes: events that no newer event of the group exceeds, oldest first."""

    words: NDArray[np.int64]  # (groups, words)
    floats: NDArray[np.float64]  # the same memory as floats
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
    ended: NDArray[np.bool_]  # whether the window ends, with these values
    firsts: NDArray[np.int64]  # of a window that ends, the time of its oldest event
    kinds: NDArray[np.uint8]  # (values, steps)
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]


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
    low &= LOW
    is_short = -(2**31) <= high < 2**31
    whole = (high << 32) | low
    if is_whole and is_short and (not is_mean or -_MOST_EXACT <= whole <= _MOST_EXACT):
        out.kinds[value, step] = FLOAT if is_mean else INTEGER
        out.integers[value, step] = whole
        out.floats[value, step] = whole / number if is_mean else float(whole)
        return
    count = max(digits, FLOAT_DIGITS) + CARRIES
    unit_digits = ALL_UNIT_DIGITS if digits == ALL_DIGITS else UNIT_DIGITS
    for place in range(count):
        scratch[place] = words[code, offset + 3 + place] if place < digits else 0
    scratch[unit_digits] += low
    scratch[unit_digits + 1] += high
    is_negative, scale = normalise(scratch, count), -32 * unit_digits
    found = quotient(scratch, count, scale, number) if is_mean else nearest(scratch, count, scale, np.int64(0))
    out.kinds[value, step] = FLOAT if found < np.inf else NULL
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
    while older >= 0 and (
        groups.values[older] < number or (groups.values[older] == number and groups.times_us[older] < time_us)
    ):  # an equal event of the same time leaves first, and with its own node
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
def change_extreme(
    groups: Groups,
    state: NDArray[np.int64],
    code: np.int64,
    value: NDArray[np.int64],
    time_us: np.int64,
    number: float,
    sign: np.int64,
) -> None:
    """Let a number enter the extreme of a group (1) or leave it (-1)."""
    function, offset = value[FUNCTION], value[OFFSET]
    if function in (LOWEST_SEEN, GREATEST_SEEN):
        best = groups.floats[code, offset + 1]
        if groups.words[code, offset] == 0 or (number > best) == (function == GREATEST_SEEN):
            groups.words[code, offset], groups.floats[code, offset + 1] = 1, number
        return
    placed = -number if function == LEAST else number
    if sign > 0:
        enter_extreme(groups, state, code, offset, time_us, placed)
    else:
        leave_extreme(groups, state, code, offset, time_us, placed)


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
        if function in (ROWS, OBJECT):
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
            change_sum(words, code, offset, plan[value, DIGITS], kind == INTEGER, number, sign)
            continue
        extreme = float(number) if kind == INTEGER else held.floats[plan[value, NUMBERS], slot]
        change_extreme(groups, state, code, plan[value], held.times_us[slot], extreme, sign)


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
        elif function == OBJECT or words[code, offset] == 0:
            out.kinds[value, step] = NULL
            out.integers[value, step] = 0
            out.floats[value, step] = 0.0
        elif function in (SUM, AVERAGE):
            put_sum(groups, code, offset, plan[value, DIGITS], function == AVERAGE, out, value, step)
        else:
            if function in (LEAST, GREATEST):
                extreme = groups.values[words[code, offset] - 1]
                extreme = -extreme if function == LEAST else extreme
            else:
                extreme = groups.floats[code, offset + 1]
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
            number = float(words[code, offset + 2] + (low >> 32)) * 2.0**32 + float(low & LOW)
        else:
            continue
        if number < bounds[row, LOWEST] or number > bounds[row, HIGHEST]:
            return False
    return True
