"""Kernels through which Python calls the routines of the run kernel.

Each kernel serves several operations on the same tables, because unpacking the tables is most of a kernel's code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.runs import arena as run_arena
from nfa.kernels.runs import dues as run_dues
from nfa.kernels.runs import parking as run_parking
from nfa.kernels.runs import rows as run_rows
from nfa.kernels.runs import timeouts as run_timeouts
from nfa.kernels.runs import waits as run_waits
from nfa.kernels.runs.tables import DONE, LATEST, NIL, NOTHING, PATTERN, TRACE, Int, RunMatches, RunProgram, RunState
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel

REBUILD_INDEX, UNPARK_ALL, CLOSE_PAIR, FREE_RUN = range(4)
PASS_TIME, FILL_BUCKETS, FORGET, DEADLINE, FINISH, TIME_OUT = range(6)


@kernel
def arrange(s: RunState, what: Int, number: Int) -> None:
    """Apply an operation that reads no compiled patterns to the run or pair ``number``.

    ``what`` is the operation: ``CLOSE_PAIR``, ``FREE_RUN``, ``REBUILD_INDEX`` or ``UNPARK_ALL``. The last two apply to
    all pairs.
    """
    s = borrowed(s)
    if what == REBUILD_INDEX:
        run_arena.rebuild_index(s)
    elif what == CLOSE_PAIR:
        run_arena.close_pair(s, np.int32(number))
    elif what == FREE_RUN:
        run_arena.free_run(s, np.int32(number))
    else:
        for pair in range(s.pair_parked.shape[0]):
            if s.pair_parked[pair] != NIL:
                run_parking.unpark(s, np.int32(pair))


@kernel
def attend(
    p: RunProgram, s: RunState, out: RunMatches, what: Int, numbers: NDArray[np.int32], place: Int, time: Int, last: Int
) -> tuple[Int, Int]:
    """Apply an operation that reads the time or the compiled patterns to the run or pair ``numbers[place]``.

    ``what`` is the operation. ``PASS_TIME`` applies to ``numbers[place:]``, and returns the result of ``pass_time``.
    ``FILL_BUCKETS`` applies to all pairs. Other operations return ``DONE`` and NIL, except that ``DEADLINE`` returns a
    time instead of NIL.
    """
    p, s, out = borrowed(p), borrowed(s), borrowed(out)
    if what == PASS_TIME:
        return run_dues.pass_time(p, s, out, numbers, place, time)
    if what == FILL_BUCKETS:
        run_parking.fill_buckets(p, s)
        return DONE, np.int64(NIL)
    number = numbers[place]
    if what == DEADLINE:
        return DONE, np.int64(run_waits.deadline(p, s, number, NOTHING, LATEST))
    if what == FINISH:
        run_rows.finish_pair(p, s, out, number, time, last)
    elif what == TIME_OUT:
        s.now[PATTERN], s.now[TRACE] = s.pair_pattern[number], s.pair_trace[number]
        run_timeouts.time_out(p, s, out, number, time)
    else:
        run_dues.forget(p, s, number, time)
    return DONE, np.int64(NIL)
