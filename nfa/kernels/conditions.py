"""Conditions between steps, evaluated by a stack interpreter on the events that a run has bound.

A program is a range of an int64 array, divided into instructions of ``WIDTH`` words: an operation and up to four
operands. Jumps count instructions. A value is a kind and 64 bits. The bits are a boolean, an integer, a float64, or the
number of an interned text. Logic is three-valued. ``nfa.conditions.bytecode`` writes programs. Semantics:
``docs/semantics.md``, conditions.

This module allocates nothing and retains no array. Therefore the kernels can be compiled without reference counts,
which would make a condition about ten times as slow.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.functions import number_of
from nfa.kernels.likeness import resembles
from streams.kernels.compiling import apart, inlined, routine

Int: TypeAlias = int | np.int32 | np.int64
Words: TypeAlias = NDArray[np.int64]
Kinds: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float64]
Bytes: TypeAlias = NDArray[np.uint8]

NIL = -1

# Kinds of values, as in nfa.conditions.values.
NULL = 0
BOOLEAN = 1
INTEGER = 2
FLOAT = 3
TEXT = 4

# Results of a condition.
FALSE = 0
TRUE = 1
UNKNOWN = 2

WIDTH = 5

# Instructions: loads of columns.
OWN = 0  # operand: column. Reads the current event
ALIAS = 1  # column, atoms as bits, repetition or NIL. Reads the newest event bound to an atom in this iteration
PREVIOUS = 2  # atoms as bits, length. Runs the next ``length`` instructions on the newest event bound to an atom
AGGREGATE = 3  # function, atoms as bits, whether the current event counts, length. Runs the program on every event
# Jumps and constants.
CONSTANT = 4  # kind, value
JUMP_IF_TRUE = 5  # instructions to jump over; the value remains on the stack
JUMP_IF_FALSE = 6
JUMP_UNLESS_NULL = 7  # a jump keeps the value; without a jump it is popped
# Operators on the topmost value.
NOT = 8
IS_NULL = 9
NEGATE = 10
IN = 11  # number of constants, which follow
LIKE = 12  # number of tokens; the tokens follow, then one more link than tokens, padded to whole instructions
# Operators on the two topmost values.
COMPARE = 13  # sign
CALCULATE = 14  # sign
AND = 15
OR = 16
# Functions of several topmost values; the last operand is the number of these values.
APPLY = 17  # function, number of arguments

EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST = range(6)
PLUS, MINUS, TIMES, OVER = range(4)
COUNT, SUM, AVG, MIN, MAX, FIRST, LAST = range(7)

# Functions of values that are not only numbers; the functions of numbers are in ``nfa.kernels.functions``.
CHOOSE, BETWEEN = 100, 101

INCOMPARABLE = 2  # a result of ``ordering`` besides -1, 0 and 1

# The last element of ``Stack.values`` counts the work of conditions: bytes of texts, and equivalents for other reads.
WORK = -1
NODE_WORK = 4  # work per node visited
EVENT_WORK = 16  # work per event of an aggregate


class Bindings(NamedTuple):
    """The data that conditions read: chains of bound events, the columns of the events, and texts."""

    node_parent: NDArray[np.int32]  # the previously bound node, or NIL
    node_event: NDArray[np.int32]  # row of the event arrays
    node_atom: NDArray[np.int32]  # number of the positive atom in its pattern, below 64
    node_step: NDArray[np.int32]  # transition that bound the event
    step_begins: NDArray[np.uint64]  # (transitions,) bit r: the transition starts an iteration of repetition r
    event_kinds: Kinds  # (events, columns)
    event_values: Words  # (events, columns)
    text_offsets: Words  # (texts + 1,)
    text_bytes: Bytes


class Stack(NamedTuple):
    """Scratch memory of the interpreter, created by ``nfa.conditions.bytecode.new_stack``."""

    kinds: Kinds  # (depth,)
    values: Words  # (depth + 1,); the last element counts work and is never reset
    floats: Floats  # (depth + 1,) a view of the same memory as ``values``
    chain: NDArray[np.int32]  # (longest chain,) events of an aggregate


@routine
def evaluate_condition(
    code: Words,
    start: Int,
    end: Int,
    bindings: Bindings,
    stack: Stack,
    head: Int,
    current: Int,
    own_begins: np.uint64,
) -> Int:
    """Return the truth of a condition on the events of a run.

    The condition's program extends from the word ``start`` to the word before ``end``. ``head`` is the newest node of
    the run, or NIL. ``current`` is the row of the event to bind, or NIL. ``own_begins`` has a bit for each repetition
    in which this event would start an iteration. The result is ``TRUE``, ``FALSE`` or ``UNKNOWN``. Null, and values
    that are not booleans, give ``UNKNOWN``. The kind and bits of the value remain at the bottom of the stack.
    """
    kinds, values, floats, chain = stack.kinds, stack.values, stack.floats, stack.chain
    parents, events, atoms = bindings.node_parent, bindings.node_event, bindings.node_atom
    steps, begins = bindings.node_step, bindings.step_begins
    event_kinds, event_values = bindings.event_kinds, bindings.event_values
    offsets, data = bindings.text_offsets, bindings.text_bytes
    place: Int = np.int64(start)
    top: Int = np.int64(NIL)
    while place < end:
        operation = code[place]
        if operation > AGGREGATE:
            place, top = operate(code, place, kinds, values, floats, top, offsets, data)
            continue
        top += 1
        event: Int = np.int64(current)
        body = place + WIDTH
        place = body
        if operation == ALIAS:
            event = newest(
                parents, events, atoms, steps, begins, values, head, code[body - 3], code[body - 2], own_begins
            )
        elif operation == PREVIOUS:
            event = newest(
                parents, events, atoms, steps, begins, values, head, code[body - 4], np.int64(NIL), own_begins
            )
            place += WIDTH * code[body - 3]
        elif operation == AGGREGATE:
            place += WIDTH * code[body - 1]
            size = gather(parents, events, atoms, chain, values, head, code[body - 3])
            aggregate(
                code, body, chain, size, event, kinds, values, floats, top, event_kinds, event_values, offsets, data
            )
            continue
        if operation == PREVIOUS and event != NIL:
            run_on_event(code, body, place, event, kinds, values, floats, top, event_kinds, event_values, offsets, data)
        else:
            load(kinds, values, top, event_kinds, event_values, event, code[body - 4])
    if kinds[0] != BOOLEAN:
        return UNKNOWN
    return TRUE if values[0] != 0 else FALSE


@inlined
def newest(
    node_parent: NDArray[np.int32],
    node_event: NDArray[np.int32],
    node_atom: NDArray[np.int32],
    node_step: NDArray[np.int32],
    step_begins: NDArray[np.uint64],
    values: Words,
    head: Int,
    atoms: Int,
    repetition: Int,
    own_begins: np.uint64,
) -> Int:
    """Return the row of the newest event that is bound to one of ``atoms``, or NIL if there is none.

    ``atoms`` are step numbers, as bits. If ``repetition`` is NIL, all bound events count. Otherwise only events of the
    repetition's current iteration count. ``own_begins`` is as in ``evaluate_condition``.
    """
    own_bit = np.uint64(0)
    if repetition != NIL:
        own_bit = np.uint64(1) << np.uint64(repetition)
    if own_begins & own_bit != np.uint64(0):
        return np.int64(NIL)
    node = np.int64(head)
    while node != NIL:
        values[WORK] += NODE_WORK
        if (atoms >> np.int64(node_atom[node])) & 1:
            return np.int64(node_event[node])
        if step_begins[node_step[node]] & own_bit != np.uint64(0):
            break
        node = np.int64(node_parent[node])
    return np.int64(NIL)


@inlined
def gather(
    node_parent: NDArray[np.int32],
    node_event: NDArray[np.int32],
    node_atom: NDArray[np.int32],
    chain: NDArray[np.int32],
    values: Words,
    head: Int,
    atoms: Int,
) -> Int:
    """Write to ``chain`` the rows of all events that are bound to ``atoms``, newest first, and return their number.

    ``atoms`` are step numbers, as bits.
    """
    size = np.int64(0)
    node = np.int64(head)
    while node != NIL:
        values[WORK] += NODE_WORK
        if (atoms >> np.int64(node_atom[node])) & 1:
            chain[size] = node_event[node]
            size += 1
        node = np.int64(node_parent[node])
    return size


@inlined
def aggregate(
    code: Words,
    body: Int,
    chain: NDArray[np.int32],
    size: Int,
    current: Int,
    kinds: Kinds,
    values: Words,
    floats: Floats,
    top: Int,
    event_kinds: Kinds,
    event_values: Words,
    offsets: Words,
    data: Bytes,
) -> None:
    """Write to ``top`` the aggregate of an expression over bound events.

    The program at ``body`` computes the expression. It runs on each event of ``chain``, oldest first.
    """
    function = code[body - 4]
    end = body + WIDTH * code[body - 1]
    last = np.int64(-1) if code[body - 2] != 0 and current != NIL else np.int64(0)
    place: Int = size - 1
    stop: Int = last - 1
    if function == FIRST:
        stop = max(stop, place - 1)
    elif function == LAST:
        place = min(last, place)
    seen = np.int64(0)
    kinds[top] = NULL
    while place > stop:
        event = np.int64(current) if place < 0 else np.int64(chain[place])
        place -= 1
        values[WORK] += EVENT_WORK
        run_on_event(code, body, end, event, kinds, values, floats, top + 1, event_kinds, event_values, offsets, data)
        if function in (FIRST, LAST):
            copy(kinds, values, top + 1, top)
        elif kinds[top + 1] != NULL:
            if not fold(function, kinds, values, floats, top, seen, offsets, data):
                kinds[top] = NULL
                return
            seen += 1
    if function == COUNT:
        kinds[top] = INTEGER
        values[top] = seen
    elif function in (SUM, AVG) and seen > 0:
        number = float(floats[top])
        put_number(kinds, floats, top, number / seen if function == AVG else number)


@inlined
def fold(
    function: Int,
    kinds: Kinds,
    values: Words,
    floats: Floats,
    top: Int,
    seen: Int,
    offsets: Words,
    data: Bytes,
) -> bool:
    """Add the value at ``top + 1`` to the aggregate at ``top``. Return false if the aggregate rejects the value.

    ``seen`` is the number of values in the aggregate so far.
    """
    item = top + 1
    if function == COUNT:
        return True
    if function in (SUM, AVG):
        if kinds[item] != INTEGER and kinds[item] != FLOAT:
            return False
        total = number_at(kinds, values, floats, top) if seen > 0 else 0.0
        kinds[top] = FLOAT
        floats[top] = total + number_at(kinds, values, floats, item)
        return True
    if kinds[item] == BOOLEAN:
        return False
    order = ordering(kinds, values, floats, item, top, offsets, data) if seen > 0 else np.int64(0)
    if seen == 0 or (order == -1 and function == MIN) or (order == 1 and function == MAX):
        copy(kinds, values, item, top)
    return bool(order != INCOMPARABLE)


@inlined
def run_on_event(
    code: Words,
    start: Int,
    end: Int,
    event: Int,
    kinds: Kinds,
    values: Words,
    floats: Floats,
    base: Int,
    event_kinds: Kinds,
    event_values: Words,
    offsets: Words,
    data: Bytes,
) -> None:
    """Run a program that reads a single event, and write the result to the place ``base`` of the stack."""
    place: Int = np.int64(start)
    top: Int = np.int64(base - 1)
    while place < end:
        if code[place] == OWN:
            top += 1
            load(kinds, values, top, event_kinds, event_values, event, code[place + 1])
            place += WIDTH
        else:
            place, top = operate(code, place, kinds, values, floats, top, offsets, data)


@inlined
def load(
    kinds: Kinds, values: Words, top: Int, event_kinds: Kinds, event_values: Words, event: Int, column: Int
) -> None:
    """Write the value of an event's column to the place ``top`` of the stack; write null if the event is NIL."""
    if event == NIL:
        kinds[top] = NULL
    else:
        kinds[top] = event_kinds[event, column]
        values[top] = event_values[event, column]


@inlined
def operate(
    code: Words, place: Int, kinds: Kinds, values: Words, floats: Floats, top: Int, offsets: Words, data: Bytes
) -> tuple[Int, Int]:
    """Run one instruction that reads no event. Return the next instruction's index and the stack's new top."""
    operation = code[place]
    following = place + WIDTH
    if operation == CONSTANT:
        top += 1
        kinds[top] = np.uint8(code[place + 1])
        values[top] = code[place + 2]
    elif operation <= JUMP_UNLESS_NULL:
        following, top = jump(code, place, kinds, values, top)
    elif operation <= NEGATE:
        change(operation, kinds, values, floats, top)
    elif operation == IN:
        following += WIDTH * code[place + 1]
        search(code, place, kinds, values, floats, top, offsets, data)
    elif operation == LIKE:
        following += (2 * code[place + 1] + WIDTH) // WIDTH * WIDTH
        if kinds[top] == TEXT:
            text = values[top]
            is_like = resembles(code, place + WIDTH, code[place + 1], values, data, offsets[text], offsets[text + 1])
            put_truth(kinds, values, top, TRUE if is_like else FALSE)
        else:
            kinds[top] = NULL
    elif operation == APPLY:
        top -= code[place + 2] - 1
        apply(code[place + 1], code[place + 2], kinds, values, floats, top, offsets, data)
    else:
        top -= 1
        combine(operation, code[place + 1], kinds, values, floats, top, offsets, data)
    return following, top


@inlined
def jump(code: Words, place: Int, kinds: Kinds, values: Words, top: Int) -> tuple[Int, Int]:
    """Run a jump instruction. Return the index of the next instruction, and the new top of the stack."""
    target = place + WIDTH * (code[place + 1] + 1)
    if code[place] == JUMP_UNLESS_NULL:
        if kinds[top] != NULL:
            return target, top
        return place + WIDTH, top - 1
    truth = TRUE if code[place] == JUMP_IF_TRUE else FALSE
    if truth_at(kinds, values, top) == truth:
        return target, top
    return place + WIDTH, top


@inlined
def change(operation: Int, kinds: Kinds, values: Words, floats: Floats, top: Int) -> None:
    """Apply an operator with one operand to the topmost value."""
    if operation == IS_NULL:
        put_truth(kinds, values, top, TRUE if kinds[top] == NULL else FALSE)
    elif operation == NOT:
        truth = truth_at(kinds, values, top)
        put_truth(kinds, values, top, truth if truth == UNKNOWN else TRUE - truth)
    elif kinds[top] == INTEGER or kinds[top] == FLOAT:
        put_number(kinds, floats, top, -number_at(kinds, values, floats, top))
    else:
        kinds[top] = NULL


@inlined
def combine(
    operation: Int, sign: Int, kinds: Kinds, values: Words, floats: Floats, top: Int, offsets: Words, data: Bytes
) -> None:
    """Apply an operator to the values at ``top`` and ``top + 1``, and write the result to ``top``."""
    if operation == COMPARE:
        put_truth(kinds, values, top, compared(sign, kinds, values, floats, top, top + 1, offsets, data))
    elif operation == CALCULATE:
        calculate(sign, kinds, values, floats, top)
    else:
        left, right = truth_at(kinds, values, top), truth_at(kinds, values, top + 1)
        decisive = FALSE if operation == AND else TRUE
        truth = UNKNOWN
        if decisive in (left, right):
            truth = decisive
        elif UNKNOWN not in (left, right):
            truth = TRUE - decisive
        put_truth(kinds, values, top, truth)


@apart
def apply(
    function: Int, count: Int, kinds: Kinds, values: Words, floats: Floats, top: Int, offsets: Words, data: Bytes
) -> None:
    """Apply a function to the ``count`` values that start at ``top``, and write the result to ``top``."""
    if function == CHOOSE:
        copy(kinds, values, top + 1 if truth_at(kinds, values, top) == TRUE else top + 2, top)
        return
    if function == BETWEEN:
        low = compared(np.int64(AT_LEAST), kinds, values, floats, top, top + 1, offsets, data)
        high = compared(np.int64(AT_MOST), kinds, values, floats, top, top + 2, offsets, data)
        put_truth(kinds, values, top, FALSE if FALSE in (low, high) else max(low, high))
        return
    for place in range(top, top + count):
        if kinds[place] != INTEGER and kinds[place] != FLOAT:
            kinds[top] = NULL
            return
        floats[place] = number_at(kinds, values, floats, place)
        kinds[place] = FLOAT
    put_number(kinds, floats, top, number_of(function, floats, top, count))


@inlined
def compared(
    sign: Int,
    kinds: Kinds,
    values: Words,
    floats: Floats,
    left: Int,
    right: Int,
    offsets: Words,
    data: Bytes,
) -> Int:
    """Return the truth of a comparison of the values at two places of the stack."""
    order = ordering(kinds, values, floats, left, right, offsets, data)
    if order == INCOMPARABLE or (kinds[left] == BOOLEAN and sign > UNEQUAL):
        return UNKNOWN
    is_met = order == 0
    if sign == UNEQUAL:
        is_met = order != 0
    elif sign == LESS:
        is_met = order < 0
    elif sign == AT_MOST:
        is_met = order <= 0
    elif sign == GREATER:
        is_met = order > 0
    elif sign == AT_LEAST:
        is_met = order >= 0
    return TRUE if is_met else FALSE


@inlined
def ordering(kinds: Kinds, values: Words, floats: Floats, left: Int, right: Int, offsets: Words, data: Bytes) -> Int:
    """Return -1, 0 or 1 if the left one of two stack values is less, equal or greater. False is less than true.

    If a value is null, or the values have different kinds, return ``INCOMPARABLE``.
    """
    if kinds[left] == TEXT or kinds[left] == BOOLEAN or kinds[left] == NULL:
        if kinds[left] != kinds[right] or kinds[left] == NULL:
            return np.int64(INCOMPARABLE)
        if kinds[left] == TEXT:
            return np.int64(text_ordering(values, values[left], values[right], offsets, data))
    elif kinds[right] != INTEGER and kinds[right] != FLOAT:
        return np.int64(INCOMPARABLE)
    elif kinds[left] == FLOAT or kinds[right] == FLOAT:
        a, b = number_at(kinds, values, floats, left), number_at(kinds, values, floats, right)
        return np.int64(a > b) - np.int64(a < b)
    return np.int64(values[left] > values[right]) - np.int64(values[left] < values[right])


@inlined
def text_ordering(values: Words, left: Int, right: Int, offsets: Words, data: Bytes) -> Int:
    """Return -1, 0 or 1 if the left one of two interned texts is less, equal or greater."""
    if left == right:
        return np.int64(0)
    at, other = offsets[left], offsets[right]
    size, other_size = offsets[left + 1] - at, offsets[right + 1] - other
    for index in range(min(size, other_size)):
        if data[at + index] != data[other + index]:
            values[WORK] += index
            return np.int64(-1) if data[at + index] < data[other + index] else np.int64(1)
    values[WORK] += min(size, other_size)
    return np.int64(-1) if size < other_size else np.int64(1)


@inlined
def calculate(sign: Int, kinds: Kinds, values: Words, floats: Floats, top: Int) -> None:
    """Apply an arithmetic operator to the values at ``top`` and ``top + 1``, and write the result to ``top``."""
    for place in (top, top + 1):
        if kinds[place] != INTEGER and kinds[place] != FLOAT:
            kinds[top] = NULL
            return
    left, right = number_at(kinds, values, floats, top), number_at(kinds, values, floats, top + 1)
    if sign == PLUS:
        put_number(kinds, floats, top, left + right)
    elif sign == MINUS:
        put_number(kinds, floats, top, left - right)
    elif sign == TIMES:
        put_number(kinds, floats, top, left * right)
    elif right == 0.0:
        kinds[top] = NULL
    else:
        put_number(kinds, floats, top, left / right)


@inlined
def search(
    code: Words, place: Int, kinds: Kinds, values: Words, floats: Floats, top: Int, offsets: Words, data: Bytes
) -> None:
    """Evaluate IN: replace the topmost value by a truth value, true if the value equals one of the constants.

    If no constant equals the value, but some comparison is unknown, the truth is unknown.
    """
    truth = FALSE
    for index in range(code[place + 1]):
        constant = place + WIDTH * (index + 1)
        kinds[top + 1] = np.uint8(code[constant + 1])
        values[top + 1] = code[constant + 2]
        equality = compared(np.int64(EQUAL), kinds, values, floats, top, top + 1, offsets, data)
        if equality == TRUE:
            truth = TRUE
            break
        if equality == UNKNOWN:
            truth = UNKNOWN
    put_truth(kinds, values, top, truth)


@inlined
def truth_at(kinds: Kinds, values: Words, place: Int) -> Int:
    """Return the truth of the value at a place of the stack. A value that is not a boolean is ``UNKNOWN``."""
    if kinds[place] != BOOLEAN:
        return np.int64(UNKNOWN)
    return np.int64(values[place])


@inlined
def put_truth(kinds: Kinds, values: Words, place: Int, truth: Int) -> None:
    """Write a truth value to a place of the stack. ``UNKNOWN`` becomes null."""
    kinds[place] = NULL if truth == UNKNOWN else BOOLEAN
    values[place] = truth


@inlined
def number_at(kinds: Kinds, values: Words, floats: Floats, place: Int) -> float:
    """Return the integer or float at a place of the stack, as float64."""
    return float(values[place]) if kinds[place] == INTEGER else float(floats[place])


@inlined
def put_number(kinds: Kinds, floats: Floats, place: Int, number: float) -> None:
    """Write a float64 to a place of the stack. A value that is not finite becomes null."""
    kinds[place] = FLOAT if np.isfinite(number) else NULL
    floats[place] = number


@inlined
def copy(kinds: Kinds, values: Words, place: Int, target: Int) -> None:
    """Copy the value at a place of the stack to another place."""
    kinds[target] = kinds[place]
    values[target] = values[place]
