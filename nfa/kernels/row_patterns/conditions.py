"""A stack interpreter for conditions of MATCH_RECOGNIZE that read several rows of a match.

Integers and floats are in separate arrays. Booleans, ranks of texts, and times in microseconds are integers. Logic is
three-valued.
"""

from __future__ import annotations

import numpy as np

from nfa.kernels.row_patterns.tables import (
    ABSOLUTE,
    ADD,
    AGGREGATE,
    AND,
    ANY_VALUE,
    AT_COLUMN,
    AVERAGE,
    BY_LABEL,
    CHOOSE,
    CONSTANT,
    COUNT,
    DIFFERENT,
    DISTINCT,
    DIVIDE,
    EQUAL,
    FLOATS,
    FUNCTION,
    INTEGERS,
    IS_FIRST,
    IS_NULL,
    KNOWN_ONE,
    LANE,
    LEAF,
    LEAST,
    LESS,
    LESS_OR_EQUAL,
    MAXIMUM,
    MINIMUM,
    MORE,
    MULTIPLY,
    NEGATE,
    NEXT_NUMBER,
    NIL,
    NOT,
    NUMBER,
    OF_COLUMN,
    OF_LABELS,
    OF_LANE,
    OF_SET,
    OFFSET,
    OR,
    PHYSICAL,
    REMAINDER,
    SET,
    SUBTRACT,
    SUM,
    TO_FLOAT,
    Int,
    Plan,
    Rows,
    Search,
)
from streams.kernels.compiling import inlined, routine


@inlined
def note_row(plan: Plan, rows: Rows, search: Search, label: Int, row: Int, base: Int, begin: Int) -> None:
    """Store the data of a match up to a row, for conditions that read other rows of the match.

    The data are the aggregates, and the first and last row of each set of labels. ``label`` is the label of the row.
    ``base`` is the first row of the partition. ``begin`` is the first row of the attempt.
    """
    place = row - base
    for label_set in range(plan.members.shape[0]):
        is_member = plan.members[label_set, label] != 0
        first, last = np.int32(NIL), np.int32(NIL)
        if row > begin:
            first, last = search.first[label_set, place - 1], search.last[label_set, place - 1]
        if is_member:
            last = np.int32(place)
            if first == NIL:
                first = np.int32(place)
        search.first[label_set, place], search.last[label_set, place] = first, last
    for aggregate in range(plan.aggregates.shape[0]):
        carry(search, aggregate, place, bool(row > begin))
        if plan.members[plan.aggregates[aggregate, OF_SET], label] != 0:
            add_row(plan, rows, search, aggregate, label, row, place)


@inlined
def carry(search: Search, aggregate: Int, place: Int, has_before: bool) -> None:
    """Set an aggregate at a row to its value at the row before. At the first row of an attempt, set it to zero."""
    search.counts[aggregate, place] = search.counts[aggregate, place - 1] if has_before else 0
    search.sums[aggregate, place] = search.sums[aggregate, place - 1] if has_before else 0
    search.totals[aggregate, place] = search.totals[aggregate, place - 1] if has_before else 0.0


@inlined
def add_row(plan: Plan, rows: Rows, search: Search, aggregate: Int, label: Int, row: Int, place: Int) -> None:
    """Add the value of a row to an aggregate."""
    function, lane = plan.aggregates[aggregate, FUNCTION], plan.aggregates[aggregate, OF_LANE]
    column = plan.aggregates[aggregate, OF_COLUMN]
    if column != NIL:
        if plan.aggregates[aggregate, OF_LABELS] != 0:
            column += label
        known = rows.integers_known[column, row] if lane == INTEGERS else rows.floats_known[column, row]
        if known == 0:
            return
    search.counts[aggregate, place] += 1
    is_new = search.counts[aggregate, place] == 1
    if function == COUNT or (function == ANY_VALUE and not is_new):
        return
    if lane == INTEGERS:
        value = rows.integers[column, row]
        before = search.sums[aggregate, place]
        if function in (SUM, AVERAGE):
            value += before
        elif not is_new and ((function == MINIMUM and before < value) or (function == MAXIMUM and before > value)):
            value = before
        search.sums[aggregate, place] = value
    else:
        number = rows.floats[column, row]
        total = search.totals[aggregate, place]
        if function in (SUM, AVERAGE):
            number += total
        elif not is_new and ((function == MINIMUM and total < number) or (function == MAXIMUM and total > number)):
            number = total
        search.totals[aggregate, place] = number


@routine
def is_true(plan: Plan, rows: Rows, search: Search, label: Int, row: Int, base: Int, begin: Int, end: Int) -> bool:
    """Return whether the condition of a label is true at a row. The partition extends from ``base`` to ``end``."""
    top = np.int64(-1)
    for place in range(plan.places[label, 0], plan.places[label, 1]):
        operation, operand = plan.code[place, 0], plan.code[place, 1]
        if operation < TO_FLOAT:
            top += 1
            push(plan, rows, search, operation, operand, top, row, base, begin, end)
        elif operation < ADD:
            change(search, operation, operand, top)
        elif operation < AND:
            top -= 1
            combine(search, operation, operand, top)
        elif operation == CHOOSE:
            top -= 2
            choose(search, top)
        else:
            top -= 1
            decide(search, operation, top)
    return bool(search.known[0] != 0 and search.integers[0] != 0)


@inlined
def push(
    plan: Plan,
    rows: Rows,
    search: Search,
    operation: Int,
    operand: Int,
    top: Int,
    row: Int,
    base: Int,
    begin: Int,
    end: Int,
) -> None:
    """Write the value of an operand to the stack's top.

    The operand is a leaf (column reference), an aggregate, a constant, or the match number.
    """
    search.known[top] = 1
    if operation == CONSTANT:
        search.integers[top], search.floats[top] = plan.integers[operand], plan.floats[operand]
    elif operation == NUMBER:
        search.integers[top] = search.state[NEXT_NUMBER]
    elif operation == LEAF:
        push_leaf(plan, rows, search, operand, top, row, base, begin, end)
    elif operation == AGGREGATE:
        push_aggregate(plan, search, operand, top, row - base)
    else:
        search.known[top] = 0


@inlined
def push_leaf(
    plan: Plan, rows: Rows, search: Search, leaf: Int, top: Int, row: Int, base: Int, begin: Int, end: Int
) -> None:
    """Write the value of a leaf (column reference) to the stack's top. A row that does not exist gives null."""
    target = target_of(plan, search, leaf, row, base, begin)
    if target != NIL:
        target += plan.leaves[leaf, PHYSICAL]
        if target < base or target >= end:
            target = NIL
    column = plan.leaves[leaf, AT_COLUMN]
    if plan.leaves[leaf, BY_LABEL] != 0:
        is_labelled = begin <= target <= row
        column += np.int64(search.labels[target - base] >> 1) if is_labelled else plan.leaves[leaf, BY_LABEL] - 1
    if plan.leaves[leaf, LANE] == INTEGERS:
        place = rows.integers.shape[1] - 1 if target == NIL else target
        search.integers[top], search.known[top] = rows.integers[column, place], rows.integers_known[column, place]
    else:
        place = rows.floats.shape[1] - 1 if target == NIL else target
        search.floats[top], search.known[top] = rows.floats[column, place], rows.floats_known[column, place]


@inlined
def target_of(plan: Plan, search: Search, leaf: Int, row: Int, base: Int, begin: Int) -> np.int64:
    """Return the row to which a leaf (a column reference such as ``A.price``) refers, or NIL if no row matched.

    If PREV or NEXT surrounds the leaf, the caller adds its offset.
    """
    labels, offset = plan.leaves[leaf, SET], plan.leaves[leaf, OFFSET]
    if labels == NIL:
        target = begin + offset if plan.leaves[leaf, IS_FIRST] != 0 else row - offset
        return np.int64(target) if begin <= target <= row else NIL
    if plan.leaves[leaf, IS_FIRST] == 0:
        place = np.int64(search.last[labels, row - base])
        while offset > 0 and place != NIL:
            place = np.int64(search.last[labels, place - 1]) if place > begin - base else NIL
            offset -= 1
        return place + base if place != NIL else NIL
    place = np.int64(search.first[labels, row - base])
    while offset > 0 and place != NIL:
        place += 1
        if place > row - base:
            return NIL
        offset -= np.int64(search.last[labels, place] == place)
    return place + base if place != NIL else NIL


@inlined
def push_aggregate(plan: Plan, search: Search, aggregate: Int, top: Int, place: Int) -> None:
    """Write to the stack's top the value that an aggregate has at a row."""
    function = plan.aggregates[aggregate, FUNCTION]
    count = search.counts[aggregate, place]
    if function == COUNT:
        search.integers[top] = count
    elif count == 0:
        search.known[top] = 0
    elif function == AVERAGE:
        is_whole = plan.aggregates[aggregate, OF_LANE] == INTEGERS
        total = float(search.sums[aggregate, place]) if is_whole else search.totals[aggregate, place]
        write_float(search, total / count, top)
    else:
        search.integers[top] = search.sums[aggregate, place]
        write_float(search, search.totals[aggregate, place], top)


@inlined
def write_float(search: Search, number: float, top: Int) -> None:
    """Write a computed float to the stack's top. NaN becomes null."""
    search.floats[top], search.known[top] = number, np.uint8(not np.isnan(number))


@inlined
def change(search: Search, operation: Int, lane: Int, top: Int) -> None:
    """Apply an operator with one operand to the topmost value. ``lane`` is not used."""
    if operation == TO_FLOAT:
        search.floats[top] = float(search.integers[top])
    elif operation == NOT:
        search.integers[top] = np.int64(search.integers[top] == 0)
    elif operation == IS_NULL:
        search.integers[top] = np.int64(search.known[top] == 0)
        search.known[top] = 1
    elif operation == NEGATE:
        search.integers[top], search.floats[top] = -search.integers[top], -search.floats[top]
    elif operation == ABSOLUTE:
        search.integers[top], search.floats[top] = abs(search.integers[top]), abs(search.floats[top])


@inlined
def combine(search: Search, operation: Int, lane: Int, top: Int) -> None:
    """Apply an operator to the two topmost values, in their integer or float form by ``lane``.

    If one is null, the result is null, except for IS DISTINCT FROM.
    """
    is_known = search.known[top] != 0 and search.known[top + 1] != 0
    if operation == DISTINCT:
        are_alike = search.known[top] == search.known[top + 1]
        if is_known:
            are_alike = compare(search, EQUAL, lane, top)
        search.integers[top], search.known[top] = np.int64(not are_alike), 1
    elif not is_known:
        search.known[top] = 0
    elif operation >= EQUAL:
        search.integers[top] = np.int64(compare(search, operation, lane, top))
    elif operation in (DIVIDE, REMAINDER):
        divide(search, operation, lane, top)
    else:
        calculate(search, operation, lane, top)


@inlined
def compare(search: Search, operation: Int, lane: Int, top: Int) -> bool:
    """Return whether a comparison of two values that are not null is true."""
    if lane == FLOATS:
        left, right = search.floats[top], search.floats[top + 1]
        is_less, is_equal = left < right, left == right
        is_more = left > right
    else:
        whole, other = search.integers[top], search.integers[top + 1]
        is_less, is_equal = whole < other, whole == other
        is_more = whole > other
    if operation == EQUAL:
        return bool(is_equal)
    if operation == DIFFERENT:
        return not is_equal
    if operation == LESS:
        return bool(is_less)
    if operation == LESS_OR_EQUAL:
        return bool(is_less or is_equal)
    if operation == MORE:
        return bool(is_more)
    return bool(is_more or is_equal)


@inlined
def calculate(search: Search, operation: Int, lane: Int, top: Int) -> None:
    """Apply an arithmetic operator to two values that are not null."""
    if lane == FLOATS:
        write_float(search, calculated(operation, search.floats[top], search.floats[top + 1]), top)
    else:
        search.integers[top] = calculated(operation, search.integers[top], search.integers[top + 1])


@inlined
def calculated(operation: Int, left: float, right: float) -> float:
    """Return the result of an arithmetic operator, which is an integer if both operands are integers."""
    if operation == ADD:
        return left + right
    if operation == SUBTRACT:
        return left - right
    if operation == MULTIPLY:
        return left * right
    if operation == LEAST:
        return min(left, right)
    return max(left, right)


@inlined
def divide(search: Search, operation: Int, lane: Int, top: Int) -> None:
    """Apply division or remainder. Integer division truncates towards zero. A zero divisor gives null."""
    if lane == FLOATS:
        number, by = search.floats[top], search.floats[top + 1]
        if by == 0.0:
            search.known[top] = 0
            return
        quotient = number / by
        write_float(search, quotient if operation == DIVIDE else number - np.trunc(quotient) * by, top)
        return
    whole, divisor = search.integers[top], search.integers[top + 1]
    if divisor == 0:
        search.known[top] = 0
        return
    size = abs(whole) // abs(divisor)
    if (whole < 0) != (divisor < 0):
        size = -size
    search.integers[top] = size if operation == DIVIDE else whole - size * divisor


@inlined
def decide(search: Search, operation: Int, top: Int) -> None:
    """Apply AND, OR or COALESCE to the two topmost values."""
    if operation == KNOWN_ONE:
        if search.known[top] == 0:
            copy(search, top + 1, top)
        return
    decisive = np.int64(operation == OR)
    for operand in (top, top + 1):
        if search.known[operand] != 0 and (search.integers[operand] != 0) == (decisive != 0):
            search.integers[top], search.known[top] = decisive, 1
            return
    search.known[top] = search.known[top] & search.known[top + 1]
    search.integers[top] = 1 - decisive


@inlined
def choose(search: Search, top: Int) -> None:
    """Evaluate CASE: of the three topmost values, keep the second if the first is true, and otherwise the third."""
    is_met = search.known[top] != 0 and search.integers[top] != 0
    copy(search, top + 1 if is_met else top + 2, top)


@inlined
def copy(search: Search, source: Int, target: Int) -> None:
    """Copy a value within the stack."""
    search.known[target] = search.known[source]
    search.integers[target] = search.integers[source]
    search.floats[target] = search.floats[source]
