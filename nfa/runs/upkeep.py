"""What is done with runs between the rows of a batch, by name."""

from __future__ import annotations

from nfa.kernels.runs import upkeep as kernel
from nfa.kernels.runs.tables import LATEST, Found, Int, RunProgram, RunState


def rebuild_index(state: RunState) -> None:
    """Fill an empty index with the pairs of all traces."""
    kernel.arrange(state, kernel.REBUILD_INDEX, 0)


def unpark_all(state: RunState) -> None:
    """Move the parked runs of all pairs to their lists of runs, in their order."""
    kernel.arrange(state, kernel.UNPARK_ALL, 0)


def close_pair(state: RunState, pair: int) -> None:
    """Give back a pair and all its runs."""
    kernel.arrange(state, kernel.CLOSE_PAIR, int(pair))


def free_run(state: RunState, run: int) -> None:
    """Give back a run that is in no list."""
    kernel.arrange(state, kernel.FREE_RUN, int(run))


def fill_buckets(program: RunProgram, state: RunState) -> None:
    """Put the parked runs of all pairs into empty buckets, under the values that they have now."""
    kernel.ask(program, state, kernel.FILL_BUCKETS, 0, 0)


def forget(program: RunProgram, state: RunState, pair: int, time_us: Int) -> None:
    """Forget what is over for a pair at a time; a pair of which nothing is left is closed."""
    kernel.ask(program, state, kernel.FORGET, int(pair), int(time_us))


def deadline(program: RunProgram, state: RunState, run: int) -> int:
    """When the last of a complete match's trailing NOTs is decided; ``LATEST`` where one has no deadline."""
    return int(kernel.ask(program, state, kernel.DEADLINE, int(run), 0))


def finish(program: RunProgram, state: RunState, found: Found, pair: int, last_us: int) -> None:
    """Complete what waits for the end of a pair's trace, whose last event was at a time: the input has ended."""
    kernel.conclude(program, state, found, kernel.FINISH, int(pair), LATEST, last_us)


def time_out(program: RunProgram, state: RunState, found: Found, pair: int, time_us: Int) -> None:
    """Report the maximal partial matches of a pair that WITHIN ended by a time, and forget what is over."""
    kernel.conclude(program, state, found, kernel.TIME_OUT, int(pair), int(time_us), 0)
