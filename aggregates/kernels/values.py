"""Kernels that update the values of groups when events enter or leave, and write them into steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aggregates.kernels import tables
from aggregates.kernels.sums import (
    LOW,
    SUM_WORDS,
    change_squares,
    change_sum,
    deviation,
    load_sum,
    nearest,
    normalise,
    quotient,
    unit_digit,
    whole_digits,
)
from aggregates.kernels.tables import Events, Groups, Steps, log
from aggregates.kernels.trees import (
    clear_tree,
    enter_tree,
    free_node,
    is_less,
    leave_tree,
    node_at,
    pair_of,
    real_of,
    take_node,
    whole_of,
)
from streams.kernels.compiling import inlined, kernel, routine

_MOST_EXACT = 2**53


@routine
def put_sum(
    groups: Groups,
    code: np.int64,
    offset: np.int64,
    digits: np.int64,
    is_mean: bool,
    out: Steps,
    value: int,
    step: np.int64,
) -> None:
    """Write a sum of the group ``code``, or its mean, as the value ``value`` of a step."""
    words, scratch = groups.words, groups.scratch
    number, is_whole = words[code, offset] & LOW, True
    for place in range(digits):
        is_whole &= words[code, offset + SUM_WORDS + place] == 0
    low, high = whole_digits(words, code, offset, digits)
    is_short = -(2**31) <= high < 2**31
    whole = (high << 32) | low
    if is_whole and is_short and (not is_mean or -_MOST_EXACT <= whole <= _MOST_EXACT):
        out.kinds[value, step] = tables.FLOAT if is_mean or words[code, offset] > LOW else tables.INTEGER
        out.integers[value, step] = whole
        out.floats[value, step] = whole / number if is_mean else float(whole)
        return
    count = load_sum(words, scratch, code, offset, digits)
    is_negative, scale = normalise(scratch, count), -32 * unit_digit(digits)
    nearest_float = quotient(scratch, count, scale, number) if is_mean else nearest(scratch, count, scale, np.int64(0))
    out.kinds[value, step] = tables.FLOAT if nearest_float < np.inf else tables.NULL
    out.floats[value, step] = -nearest_float if is_negative else nearest_float


@routine
def enter_extreme(
    groups: Groups, state: NDArray[np.int64], code: np.int64, offset: np.int64, time_us: np.int64, number: float
) -> None:
    """Add a node for an event to a group's greatest value, unless a newer event has at least this value.

    For a least value, the caller negates the numbers. The nodes of older events are freed if their value is less, or
    equal with an earlier time.
    """
    words = groups.words
    newer, older = np.int64(-1), words[code, offset + 1] - 1
    while older >= 0 and groups.integers[older] > time_us:
        newer, older = older, np.int64(groups.older[older])
    if newer >= 0 and groups.reals[newer] >= number:
        return
    while older >= 0 and (
        groups.reals[older] < number or (groups.reals[older] == number and groups.integers[older] < time_us)
    ):  # of equal events of one time the older leaves first, so both need nodes
        gone, older = older, np.int64(groups.older[older])
        free_node(groups, state, gone)
    node = take_node(groups, state)
    groups.integers[node], groups.reals[node] = time_us, number
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
    """Free the node of an event that leaves its window, if the event has one. It is the oldest event of its group."""
    words = groups.words
    node = words[code, offset] - 1
    if node < 0 or groups.integers[node] != time_us or groups.reals[node] != number:
        return
    newer = np.int64(groups.newer[node])
    words[code, offset] = newer + 1
    if newer >= 0:
        groups.older[newer] = -1
    else:
        words[code, offset + 1] = 0
    free_node(groups, state, node)


@inlined
def see_extreme(groups: Groups, code: np.int64, offset: np.int64, is_max: bool, real: float, integer: np.int64) -> None:
    """Replace the greatest (``is_max``) or least value of a group if a new event exceeds it, or falls below it.

    This is for windows whose events do not leave. The value of the event is the pair (``real``, ``integer``).
    """
    words, floats = groups.words, groups.floats
    if words[code, offset] == 1:
        if is_max and not is_less(groups, floats[code, offset + 2], words[code, offset + 1], real, integer):
            return
        if not is_max and not is_less(groups, real, integer, floats[code, offset + 2], words[code, offset + 1]):
            return
    words[code, offset], words[code, offset + 1], floats[code, offset + 2] = 1, integer, real


@inlined
def number_at(held: Events, value: NDArray[np.int64], slot: np.int64) -> np.int64:
    """Return the argument of an event for a value as an integer: a whole number, a text's code, or a float's bits.

    ``value`` is a row of the plan. ``slot`` is the index of the event.
    """
    low, high = np.int64(held.lows[value[tables.NUMBERS], slot]), value[tables.HIGHS]
    return low if high < 0 else (np.int64(held.highs[high, slot]) << 32) | (low & LOW)


@inlined
def see_end(
    groups: Groups, code: np.int64, value: NDArray[np.int64], held: Events, slot: np.int64, is_only: bool
) -> None:
    """Update the first or last argument of a group when an event enters a window whose events do not leave.

    With ``is_only``, the event is the only one, so its argument is taken without a comparison of times.
    """
    words, offset, time_us = groups.words, value[tables.OFFSET], held.times_us[slot]
    before_us = words[code, offset]
    if is_only or (time_us < before_us if value[tables.FUNCTION] == tables.FIRST_SEEN else time_us >= before_us):
        words[code, offset], words[code, offset + 1] = time_us, held.kinds[value[tables.COLUMN], slot]
        words[code, offset + 2] = number_at(held, value, slot)


@routine
def change_tree(
    groups: Groups,
    state: NDArray[np.int64],
    held: Events,
    logs: NDArray[np.int64],
    slot: np.int64,
    plan: NDArray[np.int64],
    value: np.int64,
    sign: np.int64,
) -> None:
    """Add the argument of an event to a tree of its group (``sign`` 1), or remove it (-1).

    If a tree has too many values, they all move to the log, because a sketch replaces the tree. From then on, arguments
    are only logged.
    """
    code, words, offset = np.int64(held.codes[slot]), groups.words, plan[value, tables.OFFSET]
    function, number = plan[value, tables.FUNCTION], number_at(held, plan[value], slot)
    kind = np.int64(held.kinds[plan[value, tables.COLUMN], slot])
    real, integer = pair_of(kind, number)
    if words[code, offset] == tables.IN_SKETCH:
        log(logs, state, tables.SKETCHED, code, value, kind, number)
    elif sign < 0:
        leave_tree(groups, state, code, offset, real, integer)
    else:
        enter_tree(groups, state, code, offset, real, integer)
        size, most = (
            words[code, offset + 1] if function == tables.DISTINCT else groups.sizes[words[code, offset] - 1],
            plan[value, tables.MOST],
        )
        if size > most > 0:  # the log has room for ``most`` values and the new one
            clear_tree(groups, state, logs, code, value, offset, np.int64(1) if function == tables.DISTINCT else size)
            words[code, offset] = tables.IN_SKETCH


@inlined
def change_group(
    groups: Groups,
    plan: NDArray[np.int64],
    state: NDArray[np.int64],
    held: Events,
    logs: NDArray[np.int64],
    slot: np.int64,
    sign: np.int64,
) -> None:
    """Update all values of a group for the event in a slot, which enters its window (``sign`` 1) or leaves it (-1)."""
    code, words = np.int64(held.codes[slot]), groups.words
    before = words[code, tables.HELD_ROWS]
    words[code, tables.HELD_ROWS] = before + sign
    state[tables.LIVE] += np.int64(before == 0) - np.int64(before + sign == 0)
    for value in range(plan.shape[0]):
        function, offset = plan[value, tables.CHANGE], plan[value, tables.OFFSET]
        if function in (tables.ROWS, tables.OLDEST_OF, tables.NEWEST_OF):
            continue
        kind = np.int64(held.kinds[plan[value, tables.COLUMN], slot])
        if function == tables.KNOWN:
            words[code, offset] += sign * np.int64(kind != tables.NULL)
        elif function == tables.TRUE:
            words[code, offset] += sign * np.int64(kind == tables.BOOLEAN)
        elif function <= tables.QUANTILE and kind not in (tables.INTEGER, tables.FLOAT, tables.INTEGRAL):
            continue
        elif function in (tables.SUM, tables.AVERAGE, tables.DEVIATION):
            number = number_at(held, plan[value], slot)
            change_sum(words, code, offset, plan[value, tables.DIGITS], kind, number, sign)
        elif function == tables.SQUARES:
            number = number_at(held, plan[value], slot)
            change_squares(words, code, offset, plan[value, tables.DIGITS], kind, number, sign)
        elif function in (tables.FIRST_SEEN, tables.LAST_SEEN):
            see_end(groups, code, plan[value], held, slot, before == 0)
        elif kind == tables.NULL or (function <= tables.GREATEST_OF and kind in (tables.BOOLEAN, tables.FALSE)):
            continue
        else:
            change_value(groups, state, held, logs, slot, plan, np.int64(value), sign)


@inlined
def change_value(
    groups: Groups,
    state: NDArray[np.int64],
    held: Events,
    logs: NDArray[np.int64],
    slot: np.int64,
    plan: NDArray[np.int64],
    value: np.int64,
    sign: np.int64,
) -> None:
    """Add an argument other than null to the extreme or tree of a value (``sign`` 1), or remove it (-1)."""
    function, offset = plan[value, tables.FUNCTION], plan[value, tables.OFFSET]
    if function not in (tables.LEAST, tables.GREATEST, tables.LOWEST_SEEN, tables.GREATEST_SEEN):
        change_tree(groups, state, held, logs, slot, plan, value, sign)
        return
    code = np.int64(held.codes[slot])
    real, integer = pair_of(np.int64(held.kinds[plan[value, tables.COLUMN], slot]), number_at(held, plan[value], slot))
    if function in (tables.LOWEST_SEEN, tables.GREATEST_SEEN):
        see_extreme(groups, code, offset, function == tables.GREATEST_SEEN, real, integer)
        return
    placed = -real if function == tables.LEAST else real
    if sign > 0:
        enter_extreme(groups, state, code, offset, held.times_us[slot], placed)
    else:
        leave_extreme(groups, state, code, offset, held.times_us[slot], placed)


@inlined
def put_pair(out: Steps, value: int, step: np.int64, real: float, integer: np.int64) -> None:
    """Write the value with the pair (``real``, ``integer``) as the value ``value`` of a step."""
    is_whole = integer != 0 or real == 0.0 or np.isinf(real)
    out.kinds[value, step] = tables.TEXT if real == np.inf else tables.INTEGER if is_whole else tables.FLOAT
    out.integers[value, step] = integer if is_whole else 0
    out.floats[value, step] = 0.0 if np.isinf(real) else real


@inlined
def put_end(
    groups: Groups, held: Events, code: np.int64, plan_row: NDArray[np.int64], out: Steps, value: int, step: np.int64
) -> None:
    """Write the first or last argument of the group ``code`` as the value ``value`` of a step."""
    function, offset = plan_row[tables.FUNCTION], plan_row[tables.OFFSET]
    if function in (tables.FIRST_SEEN, tables.LAST_SEEN):
        kind, number = groups.words[code, offset + 1], groups.words[code, offset + 2]
    else:
        slot = groups.words[code, tables.HEAD if function == tables.OLDEST_OF else tables.TAIL] - 1
        kind, number = np.int64(held.kinds[plan_row[tables.COLUMN], slot]), number_at(held, plan_row, slot)
    out.kinds[value, step] = tables.FLOAT if kind == tables.INTEGRAL else kind
    out.integers[value, step] = number if kind in (tables.INTEGER, tables.TEXT) else 0
    real = real_of(number) if kind == tables.FLOAT else 0.0
    out.floats[value, step] = float(number) if kind in (tables.INTEGER, tables.INTEGRAL) else real


@routine
def put_values(
    groups: Groups, held: Events, plan: NDArray[np.int64], code: np.int64, out: Steps, step: np.int64
) -> bool:
    """Write all values of a group into a step. Return whether sketches replace some of them."""
    words, is_sketched = groups.words, False
    size = words[code, tables.HELD_ROWS]
    out.sizes[step] = size
    for value in range(out.kinds.shape[0]):
        function, offset = plan[value, tables.FUNCTION], plan[value, tables.OFFSET]
        if function <= tables.TRUE or function == tables.DISTINCT:
            number = size if function == tables.ROWS else words[code, offset + np.int64(function == tables.DISTINCT)]
            out.kinds[value, step] = tables.INTEGER
            out.integers[value, step] = number
            out.floats[value, step] = float(number)
            is_sketched |= function == tables.DISTINCT and words[code, offset] == tables.IN_SKETCH
        elif function in (tables.OLDEST_OF, tables.NEWEST_OF, tables.FIRST_SEEN, tables.LAST_SEEN) and size > 0:
            put_end(groups, held, code, plan[value], out, value, step)
        elif function in (tables.OLDEST_OF, tables.NEWEST_OF) or words[code, offset] <= 0:
            out.kinds[value, step] = tables.NULL
            out.integers[value, step] = 0
            out.floats[value, step] = 0.0
            is_sketched |= function == tables.QUANTILE and words[code, offset] == tables.IN_SKETCH
        elif function in (tables.SUM, tables.AVERAGE):
            put_sum(groups, code, offset, plan[value, tables.DIGITS], function == tables.AVERAGE, out, value, step)
        elif function == tables.DEVIATION:
            put_deviation(groups, code, plan[value], out, value, step)
        elif function in (tables.LOWEST_SEEN, tables.GREATEST_SEEN):
            put_pair(out, value, step, groups.floats[code, offset + 2], words[code, offset + 1])
        elif function in (tables.LEAST, tables.GREATEST):
            real = groups.reals[words[code, offset] - 1]
            real = -real if function == tables.LEAST else real
            put_pair(out, value, step, real, whole_of(real))
        else:
            node = node_at(groups, code, offset, place_of(groups, plan[value], words[code, offset] - 1))
            put_pair(out, value, step, groups.reals[node], groups.integers[node])
    return bool(is_sketched)


@inlined
def put_deviation(
    groups: Groups, code: np.int64, plan_row: NDArray[np.int64], out: Steps, value: int, step: np.int64
) -> None:
    """Write a standard deviation of a group as the value ``value`` of a step. It is null for fewer than two numbers."""
    root, offset = np.inf, plan_row[tables.OFFSET]
    if groups.words[code, offset] & LOW > 1:
        root = deviation(groups.words, groups.scratch, code, offset, plan_row[tables.PART], plan_row[tables.DIGITS])
    out.kinds[value, step] = tables.FLOAT if root < np.inf else tables.NULL
    out.integers[value, step] = 0
    out.floats[value, step] = root if root < np.inf else 0.0


@inlined
def place_of(groups: Groups, plan_row: NDArray[np.int64], root: np.int64) -> np.int64:
    """Return the index of a function's result in the sorted values of a tree: the least, greatest or quantile.

    ``plan_row`` has the function, and ``root`` is the root of the tree.
    """
    size = np.int64(groups.sizes[root])
    if plan_row[tables.FUNCTION] == tables.LOWEST_OF:
        return np.int64(0)
    if plan_row[tables.FUNCTION] == tables.GREATEST_OF:
        return size - 1
    return np.int64((plan_row[tables.PART] * size + plan_row[tables.WHOLE] - 1) // plan_row[tables.WHOLE] - 1)


@routine
def clear_values(
    groups: Groups, plan: NDArray[np.int64], state: NDArray[np.int64], logs: NDArray[np.int64], code: np.int64
) -> None:
    """Free the nodes of all trees in which a group holds values."""
    for value in range(plan.shape[0]):
        function, offset = plan[value, tables.CHANGE], plan[value, tables.OFFSET]
        if function == tables.QUANTILE or tables.LOWEST_OF <= function <= tables.DISTINCT:
            clear_tree(groups, state, logs, code, np.int64(value), offset, np.int64(0))


@inlined
def may_hold(groups: Groups, plan: NDArray[np.int64], bounds: NDArray[np.float64], code: np.int64) -> bool:
    """Check whether the condition of a group can be true, from its counts and sums of whole numbers alone.

    ``bounds`` has ranges of values outside which the condition is false.
    """
    words = groups.words
    for row in range(bounds.shape[0]):
        value = np.int64(bounds[row, tables.VALUE])
        function, offset = plan[value, tables.FUNCTION], plan[value, tables.OFFSET]
        if function <= tables.TRUE:
            number = float(words[code, tables.HELD_ROWS] if function == tables.ROWS else words[code, offset])
        elif function == tables.SUM and plan[value, tables.DIGITS] <= 0:
            low, high = whole_digits(words, code, offset, plan[value, tables.DIGITS])
            number = float(high) * 2.0**32 + float(low)
        else:
            continue
        if number < bounds[row, tables.LOWEST] or number > bounds[row, tables.HIGHEST]:
            return False
    return True


@kernel
def mark_kinds(kinds: NDArray[np.uint8], integers: NDArray[np.int64], floats: NDArray[np.float64]) -> None:
    """Mark false booleans as ``FALSE``, and small whole floats as ``INTEGRAL``. A -0.0 remains a ``FLOAT``."""
    for row in range(kinds.shape[0]):
        if kinds[row] == tables.BOOLEAN and integers[row] == 0:
            kinds[row] = tables.FALSE
        elif kinds[row] == tables.FLOAT and abs(floats[row]) < _MOST_EXACT:
            number = np.int64(floats[row])
            if number == floats[row] and (number != 0 or not np.signbit(floats[row])):
                kinds[row], integers[row] = tables.INTEGRAL, number
