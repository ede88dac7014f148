"""The tables on which the kernels of windows work, and the names of their columns.

Events that may leave are in a ring of columns, ordered by time. The events of a group are linked if they leave in
another order than all events. A group, or a fixed window of a group, is a row of ``Groups.words``. The row has the
number of the group's events, a mark (the number of its newest step, and the truth of the condition), and times and ends
of links, if the window does not slide or has links. The words of each value follow, from the value's offset on. Sums
are digits (``kernels.sums``), and values over the same sum or tree share its words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.kernels.compiling import inlined

NULL, BOOLEAN, INTEGER, FLOAT, TEXT, FALSE, INTEGRAL = range(
    7
)  # kinds; BOOLEAN is true here, INTEGRAL an integral float
ROWS, KNOWN, TRUE, OLDEST_OF, NEWEST_OF, SUM, AVERAGE, DEVIATION, SQUARES, LEAST, GREATEST, QUANTILE = range(12)
LOWEST_SEEN, GREATEST_SEEN, LOWEST_OF, GREATEST_OF, DISTINCT, FIRST_SEEN, LAST_SEEN = range(12, 19)  # functions
FUNCTION, CHANGE, COLUMN, NUMBERS, HIGHS, OFFSET, DIGITS, PART, WHOLE, MOST = range(10)  # columns of a plan
FIRST, SPAN, HELD, ROW, STEPS, BEGUN, INSTANT, BASE, LIVE, LATE = range(10)  # places in ``state``
FREE, SPARE, AHEAD, TOUCHED, LOGS, ENDING, ROOM, NODES = range(
    10, 18
)  # ROOM, NODES: the most entries of the log, and nodes, for a row
PLACES = 18
HELD_ROWS, MARK, HEADER = range(3)  # words of every group
OLDEST, DUE, CLOCK, HEAD, TAIL, LONG_HEADER = range(2, 8)  # further words, unless the window slides
IS_TRUE, MAY_BE_TRUE = 1, 2  # bits of ``MARK``: the condition after the newest evaluation, after the newest step
TRUTH, TRUTH_BITS = 3, 2  # both bits as a mask, and the number of bits; higher bits have the step's number
VALUE, LOWEST, HIGHEST = range(3)  # columns of bounds
EACH, EXPIRIES, SIMULTANEOUS = 1, 2, 4  # modes: which changes are steps; one step of a group per time
HOLDS, LINKED, LOGGED, LOADING = 8, 16, 32, 64  # modes: events are held, linked, logged, entered without time
SLIDING, LAST, SESSION = 128, 256, 512  # modes: the kind of the window (none of these: another kind)
SHOWN, REMEMBERED = 1_024, 2_048  # modes: steps are logged; the values of steps are kept, and count as events
COUNT, END, RETRACT = range(3)  # the kind of a row of a batch
ENTERED, LEFT, STEPPED, RESET, SKETCHED = range(5)  # entries of the log
OP, GROUP, NUMBER, KIND, BITS = range(5)  # columns of the log; for a sketched value its place, kind and bits
IN_SKETCH = -1  # in place of a tree's root
DONE, FULL, NO_ROOM, NO_NODES, TOO_MANY = range(5)  # results of ``slide``
FOREVER = 2**62


class Events(NamedTuple):
    """Columns of events: the ring of the events in windows, or a batch of new events."""

    times_us: NDArray[np.int64]
    codes: NDArray[np.int32]  # (events,) the group
    kinds: NDArray[np.uint8]  # (arguments, events)
    lows: NDArray[np.int32]  # (numeric arguments, events) the low bits of integers, codes of texts, or bits of floats
    highs: NDArray[np.int32]  # (wide arguments, events) the high bits, where an argument has more than 32
    at_us: NDArray[np.int64]  # (events,) in a batch: times at which the events count, ascending; in a ring (0,)
    places: NDArray[np.int64]  # (events,) in a batch: numbers by which steps refer to events; in a ring (0,)
    ops: NDArray[np.uint8]  # (events,) in a batch: ``COUNT``, ``END`` or ``RETRACT``; in a ring (0,)
    serials: NDArray[np.int64]  # (events,) numbers by which the log refers to events; in a ring without a log (0,)
    links: NDArray[np.int32]  # (events, 2) in a linked ring: the older and the newer event of the group; -1: none


class Groups(NamedTuple):
    """The words of groups (one row of integers for each group), and the nodes in which groups hold values.

    A node of a tree (``kernels.trees``) has children. A node of an extreme (least or greatest value) has neighbours. It
    has the value of an event that no newer event of the group exceeds.
    """

    words: NDArray[np.int64]  # (groups, words)
    floats: NDArray[np.float64]  # the memory of ``words`` as floats
    integers: NDArray[np.int64]  # (nodes,) for extremes: times
    reals: NDArray[np.float64]  # (nodes,) negated for the least
    real_bits: NDArray[np.int64]  # the memory of ``reals`` as integers
    older: NDArray[np.int32]  # (nodes,) -1: none
    newer: NDArray[np.int32]  # (nodes,) -1: none; for a free node the next free node
    counts: NDArray[np.int32]  # (nodes,) for trees: how often the value occurs
    sizes: NDArray[np.int32]  # (nodes,) for trees: the sum of counts in the subtree
    texts: NDArray[np.uint8]  # the bytes of texts by code, if texts are ordered
    text_ends: NDArray[np.uint32]  # where each text begins, and the last one ends; without order (0,)
    scratch: NDArray[np.int64]  # (SCRATCH,)


class Steps(NamedTuple):
    """Steps, that is, changes of groups, with the values of the group after each change."""

    codes: NDArray[np.int32]
    at_us: NDArray[np.int64]
    places: NDArray[np.int64]  # place of the newest event that caused the step; -1: time was the cause
    sizes: NDArray[np.int64]  # events in the window
    ended: NDArray[np.bool_]  # whether the window ends, with these values
    firsts: NDArray[np.int64]  # for a window that ends, the time of its oldest event
    kinds: NDArray[np.uint8]  # (values, steps)
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]


@inlined
def log(
    logs: NDArray[np.int64],
    state: NDArray[np.int64],
    op: int,
    code: np.int64,
    number: np.int64,
    kind: int | np.int64 = 0,
    bits: int | np.int64 = 0,
) -> None:
    """Append an entry to the log. The caller of the kernel updates sketches and listed events of groups from it."""
    place = state[LOGS]
    logs[place, OP], logs[place, GROUP], logs[place, NUMBER] = op, code, number
    logs[place, KIND], logs[place, BITS] = kind, bits
    state[LOGS] += 1
