"""The choice of arrivals that wait on disk, and of the moment when they are read back.

Source: data-driven memory management for stream joins (DBF), section 3.6 of the specification.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from literature.kernels.unsynchronised.heaps import pop_key, push_key
from literature.kernels.unsynchronised.tables import ARRIVAL, CLOSING, FOREVER
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel, routine

# Statuses of the kernel.
DONE = 0
READ = 1  # the input ``counters[INPUT]`` has to read arrivals back
WRITE = 2  # the block of the input ``counters[INPUT]`` is full

# Indices of WaitingState.numbers.
HIGHEST = 0  # highest key that has arrived
CLOSED = 1
FACTOR = 2
IS_ON = 3
LOWEST = 4  # lowest key that waits; FOREVER: none waits
GATHERED = 5  # arrivals of the block that is not written yet
ON_DISK = 6
AHEAD = 7  # size of the heap of keys ahead
SPILLED = 8  # arrivals that have waited so far
FIRST_TIME = 9  # of the span of rates, in the row of times
END_OF_TIMES = 10
IS_DUE = 11  # has to check whether arrivals must be read back
N_WAITING = 12

# Indices of WaitingState.counters.
INPUT = 0
IO_NS = 1  # duration of writing and reading a block
OUT = 2  # items passed on in this call
N_COUNTERS = 3

SPAN_NS = 2_000_000_000  # span of rates
_SPAN_US = 2_000_000
_ON, _OFF = 6, 3  # leads at which waiting starts and stops, in halves of the duration of a write and a read


class WaitingState(NamedTuple):
    """The state of each input."""

    numbers: NDArray[np.int64]  # (inputs, N_WAITING)
    gathered: NDArray[np.void]  # (inputs, share) ITEM
    ahead: NDArray[np.void]  # (inputs, room) HEAP: keys passed on that some other input has not reached
    times: NDArray[np.int64]  # (inputs, room) times of arrivals in the span of rates, us
    counters: NDArray[np.int64]


@routine
def reached(lent: WaitingState, number: np.int64) -> np.int64:
    """The highest key that every other input has reached."""
    lowest = np.int64(FOREVER)
    for other in range(lent.numbers.shape[0]):
        if other != number:
            lowest = min(lowest, lent.numbers[other, HIGHEST])
    return lowest


@routine
def usable_closing(lent: WaitingState, number: np.int64) -> np.int64:
    """The key up to which no more arrivals of an input are passed on."""
    numbers = lent.numbers[number]
    return np.int64(numbers[CLOSED] if numbers[LOWEST] == FOREVER else min(numbers[CLOSED], numbers[LOWEST] - 1))


@routine
def needs_reading(lent: WaitingState, number: np.int64) -> bool:
    """Forget keys ahead that the others have reached; True: a waiting key is reached, or too few are ahead."""
    numbers, reach = lent.numbers[number], reached(lent, number)
    while numbers[AHEAD] and lent.ahead[number, 0]["key"] <= reach:
        pop_key(lent.ahead[number], numbers[AHEAD])
        numbers[AHEAD] -= 1
    waits: bool = numbers[LOWEST] != FOREVER
    return waits and (numbers[LOWEST] <= reach or numbers[AHEAD] < lent.gathered.shape[1])


@routine
def has_to_wait(lent: WaitingState, number: np.int64, key: np.int64, time_us: np.int64) -> bool:
    """Whether an arrival waits: its input leads by enough time, and enough of its arrivals are in memory."""
    numbers = lent.numbers[number]
    lent.times[number, numbers[END_OF_TIMES]] = time_us
    numbers[END_OF_TIMES] += 1
    while lent.times[number, numbers[FIRST_TIME]] <= time_us - _SPAN_US:
        numbers[FIRST_TIME] += 1
    lead = numbers[AHEAD] + numbers[GATHERED] + numbers[ON_DISK]
    least = _OFF if numbers[IS_ON] else _ON
    numbers[IS_ON] = 2 * lead * SPAN_NS >= least * lent.counters[IO_NS] * (numbers[END_OF_TIMES] - numbers[FIRST_TIME])
    if not numbers[IS_ON] or numbers[AHEAD] < lent.gathered.shape[1]:
        return False
    return bool(key > reached(lent, number))


@routine
def hand_on(lent: WaitingState, items: NDArray[np.void], item: np.int64, out: NDArray[np.void]) -> bool:
    """Pass an item on, or let it wait and pass on the closing key of its input; True: its block is full."""
    record, number = items[item], np.int64(items[item]["input"])
    numbers, key, place = lent.numbers[number], items[item]["key"], lent.counters[OUT]
    is_arrival = record["kind"] == ARRIVAL
    waits = is_arrival and has_to_wait(lent, number, key, record["time"])
    if waits:
        lent.gathered[number, numbers[GATHERED]] = record
        numbers[GATHERED] += 1
        numbers[SPILLED] += 1
        numbers[LOWEST] = min(numbers[LOWEST], key)
    elif is_arrival and key > reached(lent, number):
        push_key(lent.ahead[number], numbers[AHEAD], key, np.int64(0))
        numbers[AHEAD] += 1
    out[place] = record
    out[place]["closing"] = usable_closing(lent, number)
    if waits:
        out[place]["kind"] = CLOSING
        out[place]["key"] = out[place]["sequence"] = 0
    lent.counters[OUT] += 1
    return bool(numbers[GATHERED] == lent.gathered.shape[1])


@kernel
def divert(
    state: WaitingState, items: NDArray[np.void], out: NDArray[np.void], item: np.int64
) -> tuple[np.int64, np.int64]:
    """Process items from a place on; there is room for all of them in ``out``, ``ahead`` and ``times``.

    Returns:
        A status, and the place of the next item.
    """
    lent = borrowed(state)
    inputs = lent.numbers.shape[0]
    while item < items.shape[0]:
        record, numbers = items[item], lent.numbers[items[item]["input"]]
        numbers[CLOSED], numbers[FACTOR] = max(numbers[CLOSED], record["closing"]), record["factor"]
        key = record["key"] if record["kind"] == ARRIVAL else record["closing"]
        if key > numbers[HIGHEST]:
            numbers[HIGHEST] = key
            for other in range(inputs):
                lent.numbers[other, IS_DUE] = other != record["input"]
        for other in range(inputs):
            if lent.numbers[other, IS_DUE]:
                lent.numbers[other, IS_DUE] = 0
                if needs_reading(lent, np.int64(other)):
                    lent.counters[INPUT] = other
                    return np.int64(READ), item
        item += 1
        if hand_on(lent, items, item - 1, out):
            lent.counters[INPUT] = record["input"]
            return np.int64(WRITE), item
    return np.int64(DONE), item
