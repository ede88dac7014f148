"""Orders of the experiments' workflow as arrays: first the traces, then their interleaving as one stream.

All random choices are read from arrays of uniform numbers, so that equal numbers give an equal stream.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.int8]
Flags: TypeAlias = NDArray[np.bool_]
Points: TypeAlias = NDArray[np.float64]


@njit(cache=True)
def write_orders(
    rejected: Flags, local: Flags, cancelled: Flags, picks: Points, branches: Bytes, last: Bytes, codes: Bytes
) -> None:
    """Write the event types of every order, in order, into ``codes`` (orders, 20). Unused places get -1.

    Args:
        rejected: By order, whether the order is rejected.
        local: By order, whether the order takes local stock.
        cancelled: By order, whether the order ends cancelled.
        picks: (orders, 9) uniform numbers that choose the branch of the AND for the next event.
        branches: (2, 2, 5) type codes of the two branches of the AND, for remote stock and for local stock, padded
            with -1.
        last: Type codes before the AND (4: received, checked, rejected, inventory), after the AND (7), and the codes of
            finished and cancelled.
        codes: The output array.
    """
    for order in range(codes.shape[0]):
        codes[order] = -1
        codes[order, 0], codes[order, 1] = last[0], last[1]
        if rejected[order]:
            codes[order, 2] = last[2]
            continue
        codes[order, 2] = last[3]
        stock = 1 if local[order] else 0
        first, second, place = 0, 0, 3
        while first < 4 or second < 5:
            takes_first = second == 5 or (first < 4 and picks[order, place - 3] < 0.5)
            if takes_first:
                codes[order, place] = branches[stock, 0, first]
                first += 1
            else:
                codes[order, place] = branches[stock, 1, second]
                second += 1
            place += 1
        for task in range(7):
            codes[order, place + task] = last[4 + task]
        codes[order, place + 7] = last[12] if cancelled[order] else last[11]


@njit(cache=True)
def interleave(
    codes: Bytes, points: Points, orders: NDArray[np.int32], slots: NDArray[np.int32], places: Bytes, ends: Flags
) -> int:
    """Interleave the orders: at each step, a uniformly chosen open order emits its next event.

    A finished order is replaced at once.

    Args:
        codes: The result of ``write_orders``.
        points: (events,) uniform numbers.
        orders: (events,) output: number of the order.
        slots: (events,) output: the open order's slot, below ``concurrent``. The caller passes ``concurrent`` as first
            entry.
        places: (events,) output: place in the order, from 0.
        ends: (events,) output: whether the order ends.

    Returns:
        The number of events.
    """
    concurrent = min(slots[0], codes.shape[0])
    open_order = np.arange(concurrent)
    open_slot = np.arange(concurrent)
    done = np.zeros(concurrent, np.int64)
    n_open, waiting, event = concurrent, concurrent, 0
    longest = codes.shape[1]
    while n_open > 0:
        chosen = int(points[event] * n_open)
        order, slot = open_order[chosen], open_slot[chosen]
        place = done[slot]
        orders[event], slots[event], places[event] = order, slot, place
        is_last = place + 1 == longest or codes[order, place + 1] < 0
        ends[event] = is_last
        event += 1
        if not is_last:
            done[slot] = place + 1
        elif waiting < codes.shape[0]:
            open_order[chosen] = waiting
            done[slot] = 0
            waiting += 1
        else:
            n_open -= 1
            open_order[chosen], open_slot[chosen] = open_order[n_open], open_slot[n_open]
    return event
