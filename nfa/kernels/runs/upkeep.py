"""What is done with runs between the rows of a batch.

There is one kernel for each set of tables, as unpacking them is most of what such a kernel is.
"""

from __future__ import annotations

import numpy as np

from nfa.kernels.runs import arena as run_arena
from nfa.kernels.runs import dues as run_dues
from nfa.kernels.runs import parking as run_parking
from nfa.kernels.runs import rows as run_rows
from nfa.kernels.runs import timeouts as run_timeouts
from nfa.kernels.runs import waits as run_waits
from nfa.kernels.runs.tables import LATEST, NIL, NOTHING, PATTERN, TRACE, Found, Int, RunProgram, RunState
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel

REBUILD_INDEX, UNPARK_ALL, CLOSE_PAIR, FREE_RUN = range(4)
FILL_BUCKETS, FORGET, DEADLINE = range(3)
FINISH, TIME_OUT = range(2)


@kernel
def arrange(s: RunState, what: Int, number: Int) -> None:
    """Change what no pattern is asked about: ``number`` is the run or pair meant."""
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
def ask(p: RunProgram, s: RunState, what: Int, number: Int, time: Int) -> Int:
    """What a pattern says about a run or a pair, ``number``, or what it wants done with it."""
    p, s = borrowed(p), borrowed(s)
    if what == FILL_BUCKETS:
        run_parking.fill_buckets(p, s)
    elif what == FORGET:
        run_dues.forget(p, s, np.int32(number), time)
    else:
        return np.int64(run_waits.deadline(p, s, np.int32(number), NOTHING, LATEST))
    return np.int64(NIL)


@kernel
def conclude(p: RunProgram, s: RunState, found: Found, what: Int, pair: Int, time: Int, last: Int) -> None:
    """Complete what waits for the end of a pair's trace, or report what timed out by a time."""
    p, s, found = borrowed(p), borrowed(s), borrowed(found)
    if what == FINISH:
        run_rows.finish_pair(p, s, found, np.int32(pair), time, last)
    else:
        s.now[PATTERN], s.now[TRACE] = s.pair_pattern[pair], s.pair_trace[pair]
        run_timeouts.time_out(p, s, found, np.int32(pair), time)
