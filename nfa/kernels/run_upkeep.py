"""What is done with runs between the rows of a batch: by itself, or where matches are ranked outside the kernel."""

from __future__ import annotations

import numpy as np

from nfa.kernels import run_arena, run_dues, run_parking, run_rows, run_waits, runs
from nfa.kernels.run_tables import NIL, Found, Int, RunProgram, RunState
from streams.kernels.borrowing import borrowed
from streams.kernels.compiling import kernel


@kernel
def rebuild_index(s: RunState) -> None:
    """Fill an empty index with the pairs of all traces."""
    run_arena.rebuild_index(borrowed(s))


@kernel
def close_pair(s: RunState, pair: Int) -> None:
    """Give back a pair and all its runs."""
    run_arena.close_pair(borrowed(s), pair)


@kernel
def unpark_all(s: RunState) -> None:
    """Move the parked runs of all pairs to their lists of runs, in their order."""
    s = borrowed(s)
    for pair in range(s.pair_parked.shape[0]):
        if s.pair_parked[pair] != NIL:
            run_parking.unpark(s, np.int32(pair))


@kernel
def fill_buckets(p: RunProgram, s: RunState) -> None:
    """Put the parked runs of all pairs into empty buckets, under the values that they have now."""
    run_parking.fill_buckets(borrowed(p), borrowed(s))


@kernel
def free_run(s: RunState, run: Int) -> None:
    """Give back a run that is in no list."""
    run_arena.free_run(borrowed(s), run)


@kernel
def forget(p: RunProgram, s: RunState, pair: Int, time: Int) -> None:
    """Forget what is over for a pair at a time; a pair of which nothing is left is closed."""
    run_dues.forget(borrowed(p), borrowed(s), pair, time)


@kernel
def finish_pair(p: RunProgram, s: RunState, found: Found, pair: Int, ended: Int, last: Int) -> None:
    """Complete what waits for the end of a trace."""
    run_rows.finish_pair(borrowed(p), borrowed(s), borrowed(found), pair, ended, last)


@kernel
def deadline(p: RunProgram, s: RunState, run: Int, greedy: np.uint64, at_end: Int) -> Int:
    """When the last of a complete match's trailing conditions is decided."""
    return run_waits.deadline(borrowed(p), borrowed(s), run, greedy, at_end)


@kernel
def has_future(p: RunProgram, s: RunState, run: Int, time: Int, order: Int) -> bool:
    """Whether some step of a run could be taken by an event of a time and order."""
    return runs.has_future(borrowed(p), borrowed(s), run, time, order)
