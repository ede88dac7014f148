"""The open-trace kernel, which keeps for each trace its first and newest event time and its number of events."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel

Int: TypeAlias = int | np.int32 | np.int64

# Values of OpenTimes.events that are not counts.
CLOSED = 0  # no open trace has this number
UNKNOWN = -1  # the first events were not counted, and no event has arrived since
UNCOUNTED = -2  # the first events were not counted, but events have arrived since
MOST_COUNTED = 2**31 - 1  # further events of a trace are not counted


class OpenTimes(NamedTuple):
    """The times and counts of the events of each trace, by trace number."""

    first: NDArray[np.int64]  # earliest time of the trace's events, us
    newest: NDArray[np.int64]  # latest time
    events: NDArray[np.int32]  # at most MOST_COUNTED
    last: NDArray[np.int32]  # type of the newest event, as a number; 0: unknown


@kernel
def note(
    open_times: OpenTimes,
    visits: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]],
    types: NDArray[np.int32],
    times: NDArray[np.int64],
    names: NDArray[np.int32],
    mark: Int,
    opened: NDArray[np.int32],
) -> Int:
    """Update the times and event counts of traces by the visits (relevant rows) of a batch.

    ``visits`` has, for each visit, the row, the trace number, and whether the trace ends. Rows of the type ``mark`` are
    not events. ``names`` has the type number of each row, even if the type is unknown. Visits with the first known
    event of their trace are written to ``opened``. Returns the number of these visits.
    """
    open_times, types, times, opened = borrowed(open_times), borrowed(types), borrowed(times), borrowed(opened)
    rows, traces, ends = borrowed(visits[0]), borrowed(visits[1]), borrowed(visits[2])
    first, newest, events, last = open_times.first, open_times.newest, open_times.events, open_times.last
    names = borrowed(names)
    count = np.int64(0)
    for visit in range(rows.shape[0]):
        row, trace = rows[visit], traces[visit]
        if types[row] != mark:
            time, known = times[row], events[trace]
            if known in (CLOSED, UNKNOWN) or time >= newest[trace]:
                last[trace] = names[row]
            if known in (CLOSED, UNKNOWN):
                first[trace] = newest[trace] = time
                events[trace] = 1 if known == CLOSED else UNCOUNTED
                opened[count] = visit
                count += 1
            else:
                first[trace], newest[trace] = min(first[trace], time), max(newest[trace], time)
                events[trace] += 0 < known < MOST_COUNTED
        if ends[visit]:
            events[trace] = CLOSED
    return count
